"""Every reason is walked by a row of the end-to-end table, or has its word why not and a test that shows it instead."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.e2e.bare.conditions.table import ELSEWHERE, ROWS, WALKED
from tests.reasons import reasons

ROOT = Path(__file__).resolve().parents[2]
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
    found = [
        node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    assert len(found) == 1, f"{file} has no {name}"
    assert f'"{reason}"' in (ast.get_source_segment(source, found[0]) or "")


def test_rows_have_names_of_their_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
