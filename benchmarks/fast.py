"""Measures in simulation what the fast signal (`spec.fastSignal`) is worth: `python -m benchmarks fast`.

*Jumps*: two hours of 1.5 cores of work, and then 2, 5 or 10 times that, permanently, as in `python -m benchmarks
jumps`, with steps of a second. *Covered* is the longest time with unmet demand, the median over seeds.

*Cost at equal unmet demand* (`--cost`): the loads of `python -m benchmarks joint` that are drawn from a seed, bound by
CPU and resized in place. HPA and VPA have a line through three headrooms; joint scaling is compared with the point of
that line that leaves as much demand unmet, with its default headroom and with less.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, get_args

import msgspec

from benchmarks.joint.generated import generated
from benchmarks.joint.jumps import CALM, JUMPS, SHOWN, WORKLOAD
from benchmarks.joint.kept import FOLDER, cost_of, version
from benchmarks.joint.live import WORK
from benchmarks.joint.loads import LoadCase
from benchmarks.joint.policies import BASELINE, DEFAULT_TARGET, LINE, POLICIES, POLICY, Case, headroom
from benchmarks.joint.report import NEGLIGIBLE, Point, Rows, cost_at, markdown
from benchmarks.joint.run import SCENARIO, Job, Outcome, job_of, run_all, scenario_of, write_scenario
from hvpa_lab.simulate.engine import quiet, simulate
from hvpa_lab.simulate.model import KubeletKind
from hvpa_lab.simulate.scenario.read import load_scenario

SEEDS: Final = 9
HPA, PAIR, JOINT = SHOWN[0], SHOWN[-2], SHOWN[-1]
KUBELETS: Final[tuple[KubeletKind, ...]] = get_args(KubeletKind)
GOALS: Final[dict[KubeletKind, dict[int, float]]] = {
    "Default": {2: 0.45, 5: 0.35, 10: 0.35},
    "Housekeeping1s": {2: 0.15, 5: 0.15, 10: 0.15},
}
"""The goal for the time until capacity covers demand, as a share of the HPA's, by kubelet and jump (issue 40)."""
COSTS: Final[dict[KubeletKind, float]] = {"Default": 0.76, "Housekeeping1s": 0.72}
"""The goal for the cost at equal unmet demand."""
TARGETS: Final = (DEFAULT_TARGET, 850, 900)
"""The default headroom, and two with less."""
RESIZE_DELAY: Final = "1s"
"""Time of a resize. A kubelet takes a tenth of that (docs/performance.md)."""
KEPT: Final = FOLDER / "fast.json"


class Way(NamedTuple):
    """A way to scale: the policy, and the kubelets' settings if it has the fast signal."""

    policy: str
    kubelets: KubeletKind | None = None

    @property
    def name(self) -> str:
        """Its name in tables."""
        name = self.policy.replace("/Recreate", "").replace("/InPlace", ", in place")
        return name if self.kubelets is None else f"{name}, fast signal, kubelets: {self.kubelets}"


WAYS: Final = (Way(HPA), Way(PAIR), Way(JOINT), *(Way(JOINT, kind) for kind in KUBELETS))


def _signalled(fields: dict[str, Any], way: Way) -> dict[str, Any]:
    """Return the scenario with this way's signal."""
    if way.kubelets is not None:
        fields["metrics"] = {"kubelets": way.kubelets}
        fields["policies"][0]["hvpa"]["spec"]["fastSignal"] = {"mode": "Raise"}
    return fields


# --- jumps ----------------------------------------------------------------------------------------------------------
class Jump(NamedTuple):
    """The runs of a jump: seconds until covered for each seed; core-hours requested, percent of demand unmet, and
    changes of requests, as means."""

    times: int
    way: Way
    covered: tuple[float, ...]
    cost: float
    unmet: float
    changes: float

    @property
    def median(self) -> float:
        """The median of `covered`."""
        return statistics.median(self.covered)


def simulated(times: int, way: Way, seeds: Sequence[int]) -> Jump:
    """Simulate this jump with these seeds."""
    quiet()
    (case,) = [policy for policy in POLICIES if policy.full_name == way.policy]
    formula = f"{WORK / 1000:g} * (1 if t < {CALM:g} else {times})"
    load = LoadCase("jump", {"formula": formula, "noise": 0.02}, CALM + 1800)
    fields = scenario_of(load, Case(WORKLOAD, headroom(DEFAULT_TARGET), case.resize), [case])
    fields["step"] = "1s"
    if case.resize == "InPlace":
        fields["workload"]["resizeDelay"] = RESIZE_DELAY
    results = []
    with TemporaryDirectory() as folder:
        path = write_scenario(Path(folder) / SCENARIO, _signalled(fields, way), "", "")
        for seed in seeds:
            scenario = load_scenario(path, seed)
            results.append(simulate(scenario, scenario.policies[0]))
    totals = [result.totals for result in results]
    return Jump(
        times,
        way,
        tuple(sorted(result.reactions[-1].cover_seconds for result in results)),
        round(statistics.mean(total.core_hours_requested for total in totals), 3),
        round(statistics.mean(100 * total.unmet_demand_share for total in totals), 3),
        round(statistics.mean(total.request_changes for total in totals), 1),
    )


def jumps_table(jumps: Iterable[Jump]) -> str:
    """Return a row for each jump and way."""
    rows: Rows = [
        ("jump", "policy", "covered after", "of the HPA's time (goal)", "core-hours", "unmet", "changes")
    ]
    of_hpa = 0.0
    for jump in jumps:
        if jump.way.policy == HPA:
            of_hpa = jump.median
        share = f"{jump.median / of_hpa:.2f}"
        if jump.way.kubelets in GOALS:
            share += f" ({GOALS[jump.way.kubelets][jump.times]:g})"
        covered = f"{jump.median:.0f} s ({jump.covered[0]:.0f} to {jump.covered[-1]:.0f})"
        figures = (f"{jump.cost:.2f}", f"{jump.unmet:.2f} %", f"{jump.changes:.0f}")
        rows.append((f"× {jump.times}", jump.way.name, covered, share, *figures))
    return markdown(rows)


# --- cost at equal unmet demand -------------------------------------------------------------------------------------
class Cost(NamedTuple):
    """Joint scaling beside HPA and VPA at the same unmet demand: the mean ratio of costs over loads, and unmet
    core-seconds relative to HPA and VPA with the default headroom."""

    way: Way
    target: int
    ratio: float
    unmet: float


def costs(seeds: Sequence[int], days: float, folder: Path, processes: int) -> list[Cost]:
    """Simulate the loads of these seeds."""
    pair, joint = [
        next(policy for policy in POLICIES if policy.full_name == f"{name}/InPlace")
        for name in (BASELINE, POLICY)
    ]
    loads = [(load, seed) for seed in seeds for load in generated(seed, days)]
    ways = [(Way(PAIR), target) for target in LINE]
    ways += [(Way(JOINT, kind), target) for kind in (None, *KUBELETS) for target in TARGETS]
    jobs: list[Job] = []
    for load, seed in loads:
        for way, target in ways:
            case = Case(WORKLOAD, headroom(target), "InPlace")
            job = job_of(load, case, pair if way.policy == PAIR else joint, seed)
            jobs.append(msgspec.structs.replace(job, scenario=_signalled(job.scenario, way)))
    runs = iter(run_all(jobs, folder, processes, lambda run: print(".", end="", flush=True)))
    print()
    outcomes: list[dict[tuple[Way, int], Outcome]] = []
    for _ in loads:
        found = {way: run.outcome for way, run in zip(ways, runs, strict=False)}
        outcomes.append({way: outcome for way, outcome in found.items() if outcome is not None})
    return [_cost(way, target, outcomes) for way, target in ways]


def _cost(way: Way, target: int, outcomes: Sequence[dict[tuple[Way, int], Outcome]]) -> Cost:
    ratios, unmet, of_pair = [], 0.0, 0.0
    for of_load in outcomes:
        line = [_point(of_load[Way(PAIR), of]) for of in LINE]
        own = _point(of_load[way, target])
        ratios.append(own.cost / cost_at(line, own.unmet)[0])
        unmet += math.exp(own.unmet)
        of_pair += math.exp(_point(of_load[Way(PAIR), DEFAULT_TARGET]).unmet)
    return Cost(way, target, round(statistics.mean(ratios), 4), round(unmet / of_pair, 3))


def _point(outcome: Outcome) -> Point:
    return Point(cost_of(outcome), math.log(outcome.totals.unmet_core_seconds + NEGLIGIBLE))


def costs_table(found: Iterable[Cost]) -> str:
    """Return a row for each way and headroom."""
    rows: Rows = [("policy", "headroom", "cost at equal unmet demand (goal)", "unmet demand")]
    for cost in found:
        goal = f" ({COSTS[cost.way.kubelets]:g})" if cost.way.kubelets in COSTS else ""
        rows.append(
            (cost.way.name, headroom(cost.target).name, f"{cost.ratio:.3f}{goal}", f"{cost.unmet:.2f}")
        )
    return markdown(rows)


# --- kept results ---------------------------------------------------------------------------------------------------
class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The results that docs/fast-signal.md shows."""

    commit: str
    jumps: tuple[Jump, ...]
    costs: tuple[Cost, ...]


def read() -> Kept:
    """Return the kept results."""
    return msgspec.json.decode(KEPT.read_bytes(), type=Kept)


def main(argv: Sequence[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fast", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"of the jumps (default: {SEEDS})")
    parser.add_argument("--first-seed", type=int, default=0, help="default: 0")
    parser.add_argument("--cost", type=int, default=0, metavar="SEEDS", help="seeds of the cost (default: 0)")
    parser.add_argument("--days", type=float, default=3, help="of the cost's loads (default: 3)")
    parser.add_argument("--out", type=Path, default=Path("fast"), help="folder of finished runs of the cost")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep", action="store_true", help="keep the results for docs/fast-signal.md")
    args = parser.parse_args(argv)
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    with ProcessPoolExecutor(args.jobs) as pool:
        runs = [pool.submit(simulated, times, way, seeds) for times in JUMPS for way in WAYS]
        jumps = [run.result() for run in runs]
    print(jumps_table(jumps))
    found: list[Cost] = []
    if args.cost:
        found = costs(range(args.first_seed, args.first_seed + args.cost), args.days, args.out, args.jobs)
        print(costs_table(found))
    if args.keep:
        KEPT.write_bytes(
            msgspec.json.format(msgspec.json.encode(Kept(version(), tuple(jumps), tuple(found)))) + b"\n"
        )
    return 0
