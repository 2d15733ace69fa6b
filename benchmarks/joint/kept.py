"""The results of `python -m benchmarks joint` that the documents cite, kept in the repository: one policy beside the
baseline, a row for each kind of workload and of resizes. `--keep` writes them; `tools/evidence.py` writes the
tables."""

from __future__ import annotations

import datetime as dt
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from benchmarks.joint.policies import BASELINE
from benchmarks.joint.report import compared, done, mean, sums
from benchmarks.joint.run import Run

ROOT: Final = Path(__file__).resolve().parents[2]
FILE: Final = ROOT / "benchmarks" / "kept" / "joint-scaling.json"
POLICY: Final = "Trajectory 50"


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """`cost` and `unmet` are geometric means of ratios to the baseline (0.97: 3 percent less), the others sums."""

    workload: str
    resize: str
    cost: float
    unmet: float
    ooms: int
    baseline_ooms: int
    restarts: int
    baseline_restarts: int


class Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """What the documents cite. `how` says how the figures came to be, `commit` and `date` of which code they speak,
    `days` how long each load was, `scenarios` how many loads and workloads there were."""

    how: str
    commit: str
    date: str
    days: float
    scenarios: int
    policy: str
    baseline: str
    rows: tuple[Row, ...]


def read() -> Kept:
    """The kept results."""
    return msgspec.json.decode(FILE.read_bytes(), type=Kept)


def keep(runs: Sequence[Run], days: float) -> None:
    """Write the results of these runs in place of the kept ones."""
    commit = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    version = subprocess.run(commit, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    today = dt.datetime.now(dt.UTC).date().isoformat()
    text = msgspec.json.format(msgspec.json.encode(kept(runs, days, version, today)), indent=1)
    FILE.write_bytes(text + b"\n")


def kept(runs: Sequence[Run], days: float, commit: str, date: str) -> Kept:
    """The rows of these runs."""
    found = [one for one in compared(done(runs)) if one.done.run.policy == POLICY]
    kinds = {(one.done.run.resize, one.done.run.workload) for one in found}
    rows = []
    for resize, workload in sorted(kinds, key=lambda kind: (kind[0] != "Recreate", kind[1])):
        part = [one for one in found if (one.done.run.resize, one.done.run.workload) == (resize, workload)]
        own, base = (sums(side) for side in zip(*(one.totals for one in part), strict=True))
        cost, unmet = mean([one.cost for one in part]), mean([one.unmet for one in part])
        counts = (own[0], base[0], own[1], base[1])
        rows.append(Row(workload, resize, round(cost, 2), round(unmet, 2), *counts))
    scenarios = len({(one.done.run.load, one.done.run.workload) for one in found})
    how = "Written by `python -m benchmarks joint --keep`."
    return Kept(how, commit, date, days, scenarios, POLICY, BASELINE, tuple(rows))
