"""The evidence as it is gathered and kept: a number for each seed, and the file read back as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.joint import kept
from benchmarks.joint.kept import Felt, Line, Phases, Place, gathered, keep, keep_jumps, read, read_jumps
from benchmarks.joint.run import Outcome, Run
from hvpa_lab.simulate.model import Totals


def run(policy: str, seed: int, core_hours: float, unmet: float = 0.0, **other: Any) -> Run:
    """A run of pods that are bound by CPU and replaced."""
    numbers = {name: 0 for name in Totals.__struct_fields__}
    totals = Totals(**{**numbers, "core_hours_requested": core_hours, "unmet_core_seconds": unmet, **other})
    outcome = Outcome(totals, 1.0, 4.0, 2, 3, 1, 1, 1, "code")
    return Run("wave", "cpu", policy, "Recreate", 800, seed, outcome)


def test_results_are_gathered_by_policy_in_the_order_of_their_seeds() -> None:
    runs = [
        run("A", 1, 20, 5, ooms=1, restarts=2),
        run("B", 0, 1),
        run("A", 0, 10, gib_hours_requested=12),
        Run("wave", "cpu", "B", "Recreate", 800, 1, error="it could not be run"),
    ]
    results = gathered(runs, {("wave", "cpu", "Recreate"): [7, 8]}, 2, "abc")
    assert (results.commit, results.days, results.seeds) == ("abc", 2, 2)
    line = Line("A", 800, (13, 21.5), (0, 5), (0, 1), (0, 2), (0, 0))  # 10 + 1 + (12 + 4) / 8
    assert results.places == (Place("wave", "cpu", "Recreate", (7, 8), (line,)),), "B was not run with seed 1"


def test_what_is_kept_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    oracles = {("wave", "cpu", "Recreate"): [7]}
    results = gathered([run("A", 4, 10), run("B", 4, 20)], oracles, 2)
    assert results.first_seed == 4
    keep(results, "some")
    assert read("some") == results
    assert (tmp_path / "some.json").read_text().count("\n") == 4, "a line of text for each policy"


def test_jumps_that_are_kept_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    jumps = (Felt("A", 2, (Phases(50, 20, 5, 0, 30), Phases(60, None, None, None, None))), Felt("B", 2, ()))
    keep_jumps(jumps)
    assert read_jumps().felt == jumps
    assert (tmp_path / "jumps.json").read_text().count("\n") == 3, "a line of text for each policy"
