"""Every reason that a condition can have is in the documents, with what it means and what helps; and it is walked by a
row of the end-to-end table, or has a word why not and a test that shows it instead."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.e2e.bare.conditions.table import ELSEWHERE, ROWS, WALKED
from tests.reasons import reasons

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs/operations.md").read_text().partition("## Conditions")[2].partition("\n## ")[0]
REMEDIES = (ROOT / "docs/troubleshooting.md").read_text()
NO_REMEDY = {"NotBlocked", "NotPaused", "NotContested", "Recommending", "Reconciled", "Reporting"}
"""Reasons of what is as it should be."""
REASONS = sorted(reasons())


def test_reasons_are_found() -> None:
    literal = {"TargetNotFound", "ForeignVpa", "PodsUnschedulable", "PodsNotStarting", "Recommend"}
    assert literal <= set(REASONS)
    assert {"ReplicaFailure", "MaxStep", "ConfigDeprecated", "ScalingInactive", "WriteFailed"} <= set(REASONS)
    assert len(REASONS) > 50


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_in_the_table_of_conditions_and_has_its_remedy(reason: str) -> None:
    assert f"`{reason}`" in TABLE
    if reason not in NO_REMEDY:
        assert re.search(rf"[`= ]{reason}`", REMEDIES)


# --- end-to-end ------------------------------------------------------------------------------------------------------
OF_THE_HPA = {"FailedGetResourceMetric"}
"""Reasons that kube-controller-manager gives an HPA, one for all."""


def test_every_reason_is_in_the_table_or_among_those_without_a_row() -> None:
    assert sorted(reasons() - WALKED - ELSEWHERE.keys()) == [], "add a row, or a word why there is none"
    assert sorted((WALKED | ELSEWHERE.keys()) - reasons()) == sorted(OF_THE_HPA), "no condition has this"
    assert sorted(WALKED & ELSEWHERE.keys()) == []


@pytest.mark.parametrize("reason", ELSEWHERE)
def test_a_reason_without_a_row_is_shown_by_the_test_that_is_named(reason: str) -> None:
    file, _, name = ELSEWHERE[reason].test.partition("::")
    source = (ROOT / file).read_text()
    functions = [
        node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    assert len(functions) == 1, f"{file} has no {name}"
    assert f'"{reason}"' in (ast.get_source_segment(source, functions[0]) or "")


def test_rows_have_names_of_their_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
