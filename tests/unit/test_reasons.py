"""Every reason that a condition can have is in the documents, with what it means and what helps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.reasons import reasons

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs/operations.md").read_text().partition("## Conditions")[2].partition("\n## ")[0]
REMEDIES = (ROOT / "docs/troubleshooting.md").read_text()
NO_REMEDY = {"NotBlocked", "NotPaused", "NotContested", "Recommending", "Reconciled"}
"""Reasons of what is as it should be."""


REASONS = sorted(reasons())


def test_they_are_found() -> None:
    expected = {
        "TargetNotFound",
        "ForeignVpa",
        "ReplicaFailure",
        "PodsUnschedulable",
        "PodsNotStarting",
        "MaxStep",
        "ConfigDeprecated",
        "ScalingInactive",
        "Recommend",
        "WriteFailed",
    }
    assert expected <= set(REASONS)
    assert len(REASONS) > 50


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_in_the_table_of_conditions_and_has_its_remedy(reason: str) -> None:
    assert f"`{reason}`" in TABLE
    if reason not in NO_REMEDY:
        assert re.search(rf"[`= ]{reason}`", REMEDIES)
