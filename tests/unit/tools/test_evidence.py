"""The tables of measured results say what the kept results say, in the documents as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from benchmarks.joint import kept as joint_kept
from tools import evidence

ROOT = Path(__file__).resolve().parents[3]
KEPT = joint_kept.read()


@pytest.mark.parametrize(("name", "part"), [("README.md", "headline"), ("docs/joint-scaling.md", "table")])
def test_a_page_says_what_is_kept(name: str, part: str) -> None:
    text = (ROOT / name).read_text()
    assert f"<!-- measured: {part} -->" in text
    assert evidence.page(text, KEPT) == text


def test_another_result_changes_the_pages() -> None:
    first, *others = KEPT.rows
    assert (first.workload, first.resize) == ("cpu", "Recreate")
    better = structs.replace(KEPT, rows=(structs.replace(first, cost=0.71, unmet=1.0), *others))
    readme = evidence.page((ROOT / "README.md").read_text(), better)
    assert "bound by CPU: 29 % less cost, 0 % more unmet demand" in " ".join(readme.split())
    assert "| bound by CPU, replaced | 0.71 | 1.00 |" in evidence.page(
        (ROOT / "docs/joint-scaling.md").read_text(), better
    )


def test_the_kept_results_say_where_they_are_from() -> None:
    assert KEPT.commit
    assert KEPT.date
    assert KEPT.how
