"""What `--keep` makes of runs: ratios to the baseline of the same place, and sums."""

from __future__ import annotations

from typing import Any

from benchmarks.joint.kept import POLICY, kept
from benchmarks.joint.policies import BASELINE
from benchmarks.joint.run import Outcome, Run
from hvpa.simulate.model import Totals


def run(load: str, policy: str, core_hours: float, unmet: float, **other: Any) -> Run:
    """A run of pods that are bound by CPU and replaced, whose memory costs nothing."""
    numbers = {name: 0 for name in Totals.__struct_fields__}
    totals = Totals(**{**numbers, "core_hours_requested": core_hours, "unmet_core_seconds": unmet, **other})
    outcome = Outcome(totals, 0, 0, 2, 3, 1, 1, 1, "code")
    return Run(load, "cpu", policy, "Recreate", 800, 0.15, outcome)


def test_ratios_are_geometric_means_over_loads_and_counts_are_sums() -> None:
    runs = [
        run("wave", BASELINE, 100, 60, ooms=3, restarts=7),
        run("wave", POLICY, 80, 180, ooms=1, restarts=2),  # (180 + 60) / (60 + 60)
        run("flash", BASELINE, 100, 0, ooms=1, restarts=1),
        run("flash", POLICY, 20, 0, restarts=4),
        run("flash", "Additive 50", 1, 0),
    ]
    found = kept(runs, 7, "abc", "2026-01-01")
    assert (found.commit, found.date, found.days, found.scenarios) == ("abc", "2026-01-01", 7, 2)
    (row,) = found.rows
    assert (row.workload, row.resize, row.cost, row.unmet) == ("cpu", "Recreate", 0.4, 1.41)
    assert (row.ooms, row.baseline_ooms, row.restarts, row.baseline_restarts) == (1, 4, 6, 8)
