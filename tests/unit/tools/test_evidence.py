"""The tables of measured results say what the kept results say, in the documents as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from benchmarks import first_screen
from benchmarks.joint import kept as joint_kept
from benchmarks.joint import words
from benchmarks.joint.jumps import in_place_beside_hpa
from tools import evidence

ROOT = Path(__file__).resolve().parents[3]
KEPT = joint_kept.read()
FAST = ["fast_costs", "fast_jumps"]
PARTS = {
    "README.md": ["first_screen", "headline"],
    "docs/joint-scaling.md": sorted(evidence.PARTS.keys() - {"first_screen", "headline", *FAST}),
    "docs/fast-signal.md": FAST,
}


@pytest.mark.parametrize("name", evidence.PAGES)
def test_a_page_says_what_is_kept(name: str) -> None:
    text = (ROOT / name).read_text()
    for part in PARTS[name]:
        assert f"<!-- measured: {part} -->" in text
    assert evidence.page(text, KEPT) == text


@pytest.mark.parametrize("name", evidence.PLOTS)
def test_a_plot_shows_what_is_kept(name: str) -> None:
    assert evidence.PLOTS[name](KEPT) == (ROOT / name).read_text()


def test_the_first_screen_has_the_cost_of_the_arena() -> None:
    text = (ROOT / "docs" / "arena.md").read_text()
    whole = " ".join(text.split())
    costs = evidence.arena_costs(text)
    assert (
        f"the cost is {costs['in place'].cost:.2f} in place and {costs['replaced'].cost:.2f} replaced"
        in whole
    )
    assert f"In these {costs['all'].workloads} workloads" in whole
    assert f"and {costs['all'].worse} workloads are worse" in whole


def test_the_first_screen_has_the_slow_seconds_of_the_real_node() -> None:
    """The runs after a jump to 10 times the load, as `docs/fast-signal.md` has them."""
    slow = first_screen.slow()
    assert slow[10.0, "HPA and VPA"][:3] == (40, 35, 52)
    assert slow[10.0, "HPA and VPA"].failed == pytest.approx(22.3, abs=0.1)
    assert "10 times the load: 40, 24 and 40 seconds" in " ".join((ROOT / "README.md").read_text().split())


def test_another_result_changes_the_pages() -> None:
    def cheaper(line: joint_kept.Line) -> joint_kept.Line:
        return (
            structs.replace(line, cost=tuple(amount / 2 for amount in line.cost))
            if "Traj" in line.policy
            else line
        )

    places = tuple(structs.replace(place, lines=tuple(map(cheaper, place.lines))) for place in KEPT.places)
    better = structs.replace(KEPT, places=places)
    for name in ("README.md", "docs/joint-scaling.md"):
        text = (ROOT / name).read_text()
        assert evidence.page(text, better) != text


def test_the_kept_results_say_where_they_are_from() -> None:
    assert KEPT.commit
    assert KEPT.date
    assert KEPT.how


def test_what_is_typed_of_jumps_follows_from_tables() -> None:
    """The cluster's table is a measurement of its own, which nothing writes anew."""
    text = (ROOT / "docs" / "joint-scaling.md").read_text().partition("**On the local cluster**")[2]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ×")]
    covers = {(row[0], row[1]): float(row[2]) for row in rows}
    ratios = [
        f"{covers[jump, 'Trajectory 50, in place'] / covers[jump, 'HPA, replaced']:.2f}"
        for jump in dict.fromkeys(row[0] for row in rows)
    ]
    assert f"In place, that is {words.listed(ratios)} of the HPA's time; the simulator" in text
    twice = in_place_beside_hpa(joint_kept.read_jumps().felt)[2]
    assert f"({twice:.2f} of it)" in " ".join((ROOT / "docs" / "roadmap.md").read_text().split())
