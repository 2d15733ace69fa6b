"""Compares the cost of joint scaling with an HPA, a VPA and both: `python -m benchmarks joint --out DIR`.

Every load runs under every policy with every workload and seed, in the simulator (`hvpa_lab.simulate`), in steps of 5
seconds. A day of warm-up does not count. The rules that make points comparable:

- **Loads** are drawn from a seed (`generated`), of kinds that no rule was tuned on. Five seeds are five loads of each
  kind. The same seed also draws the noise, and the phases of metrics-server and each controller. `--tuned` runs the
  formulas that rules were tuned on, and with `--traces DIR` the recorded series.
- **Timing** is strict: a measurement can be read 10 seconds after it was made, a resize takes 5 seconds, a pod 30, a
  node two minutes.
- **Cost** is core-hours + GiB-hours / 8, the usual price ratio of cloud machines. It counts requests, and usage beyond
  them (as OpenCost does: the larger of request and usage). Pods can burst only a fifth beyond their request
  (`nodes.headroom`). Without that, too small a request costs nothing, and unmet demand does not depend on requests.
- **Bounds** are the same for all: 2 to 30 replicas of 100m/128Mi to 4 cores/16Gi. All begin with 3 replicas of 1 core /
  2Gi, limit memory to 1.5 times its request, and do not limit CPU. The HPA by itself keeps these requests, the VPA by
  itself this count.
- **Headroom**: an HPA (alone, with a VPA or an Hvpa's) lets a pod use 800m (memory-heavy: and 1600Mi) of 1 core and
  2Gi; a VPA adds 15 percent to the usage. Other headrooms (600m to 900m) scale the VPA's margin with 1 / target (600m:
  53 percent, 900m: 2). With a VPA the target alone has little effect: with more pods, each requests less, and the sum
  stays. A `Trajectory` sizes pods by its HPA's target. For the same margin as the VPA's, that target is
  1 / (1 + margin) of 1 core and 2Gi (800m: 870m).
- **Scaling in and down** is delayed by five minutes for all: an HPA takes its largest count of the last five minutes,
  and so does the HPA of a `Trajectory`. Any Hvpa also waits for five minutes after its last step out or in
  (`hpa.scaleDown.stabilizationDuration`). So both delays apply to joint scaling.
- **Pods** use nothing more while they start, end at once and release memory at once, except with `--slow`.
- **Other settings** of an Hvpa are its defaults, which the benchmark judges, and the same for every load. If replicas
  have a significant base usage, the spec of `Trajectory` has it: an owner knows it.

The folder of `--out` contains `results.json` (kept by `--keep`), `tables.md` (the printed tables), and `scenarios/` for
`hvpa simulate`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.joint.generated import generated
from benchmarks.joint.kept import MAIN, Kept, Key, gathered, keep
from benchmarks.joint.loads import LoadCase, formulas, traces
from benchmarks.joint.oracle import limit
from benchmarks.joint.policies import (
    BASELINE,
    DEFAULT_TARGET,
    LINE,
    POLICIES,
    WORKLOADS,
    Case,
    PolicyCase,
    WorkloadUse,
    headroom,
)
from benchmarks.joint.report import RESIZES, by_load, others, summary
from benchmarks.joint.run import STEP, Run, job_of, load_of, run_all, scenario_of, write_scenario
from hvpa_lab.simulate.errors import ScenarioError

DAYS: Final = 2.0
SEEDS: Final = 5


def main(argv: Sequence[str]) -> int:
    """Run the comparison; 0 if all runs worked, whatever the results; else 1."""
    args = _arguments(argv)
    try:
        loads = [(load, seed) for seed in _seeds(args) for load in _loads(args, seed)]
    except (ScenarioError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    workloads = [workload._replace(slow=args.slow) for workload in WORKLOADS]
    wanted = _wanted(loads, workloads, args.only)
    if not wanted:
        print("--only leaves nothing to run", file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        job_of(load, Case(workload, headroom(target), policy.resize), policy, seed)
        for load, seed, workload, policy in wanted
        for target in (LINE if args.line else policy.targets or (DEFAULT_TARGET,))
    ]
    _write_scenarios(args.out / "scenarios", wanted)
    began = time.monotonic()
    runs = run_all(jobs, args.cache or args.out / "cache", args.jobs, _Progress(len(jobs)))
    for run in runs:
        if run.error:
            print(
                f"not run: {run.load}, {run.workload}, {run.policy}/{run.resize}: {run.error}",
                file=sys.stderr,
            )
    kept = gathered(runs, _oracles(wanted), args.days)
    if not any(run.kept for run in runs):
        kept = msgspec.structs.replace(kept, wall=round(time.monotonic() - began), processes=args.jobs)
    (args.out / "results.json").write_bytes(msgspec.json.encode(kept))
    text = report(kept)
    print(text)
    (args.out / "tables.md").write_text(text)
    if args.keep:
        keep(kept, args.keep)
    return 1 if any(run.error for run in runs) else 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    first = (__doc__ or "").splitlines()[0].partition(":")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks joint", description=first)
    add = parser.add_argument
    add("--tuned", action="store_true", help="the loads that rules were tuned on, instead of those drawn")
    add(
        "--traces",
        type=Path,
        metavar="DIR",
        help="with --tuned: also every CSV file (timestamp,value) in this folder",
    )
    add("--out", type=Path, metavar="DIR", required=True, help="where results and tables go")
    add("--cache", type=Path, metavar="DIR", help="where results are kept (default: cache in --out)")
    add(
        "--days", type=float, default=DAYS, help=f"of each load, the first is not counted (default: {DAYS:g})"
    )
    add("--seeds", type=int, default=SEEDS, help=f"how many (default: {SEEDS})")
    add("--first-seed", type=int, default=0, help="the first of them (default: 0): others than those judged")
    add("--slow", action="store_true", help="pods that start, stop and give back memory slowly")
    add("--line", action="store_true", help="each policy with several headrooms, as HPA and VPA have them")
    add("--jobs", type=int, default=1, help="processes (default: 1)")
    add(
        "--keep",
        nargs="?",
        const=MAIN,
        metavar="NAME",
        help=f"also keep it in the repository, where the documents cite it (default: {MAIN})",
    )
    only = "only these, by name or pattern; policies as NAME or NAME/RESIZE; empty: all. Repeatable"
    add("--only", action="append", type=_filter, metavar="LOAD,WORKLOAD,POLICY", help=only)
    args = parser.parse_args(argv)
    if args.traces and not args.tuned:
        parser.error("--traces has a meaning with --tuned only")
    return args


def _seeds(args: argparse.Namespace) -> range:
    return range(args.first_seed, args.first_seed + args.seeds)


def _loads(args: argparse.Namespace, seed: int) -> list[LoadCase]:
    if not args.tuned:
        return generated(seed, args.days)
    return [*(traces(args.traces, args.days) if args.traces else ()), *formulas(args.days)]


def _filter(text: str) -> tuple[str, str, str]:
    """Parse LOAD,WORKLOAD,POLICY as patterns; parts at the end may be missing."""
    parts = [part.strip() or "*" for part in text.split(",")]
    if len(parts) > 3:
        raise argparse.ArgumentTypeError(f"{text!r} has more than LOAD,WORKLOAD,POLICY")
    load, workload, policy = (*parts, "*", "*")[:3]
    return load, workload, policy


Wanted = tuple[LoadCase, int, WorkloadUse, PolicyCase]
"""A load and its seed, a workload, and a policy."""


def _wanted(
    loads: Sequence[tuple[LoadCase, int]],
    workloads: Sequence[WorkloadUse],
    only: Sequence[tuple[str, str, str]] | None,
) -> list[Wanted]:
    """Return the requested runs, and their baselines."""
    every = [(*load, workload, policy) for load in loads for workload in workloads for policy in POLICIES]
    if not only:
        return [run for run in every if run[3].targets]
    requested = [run for run in every if any(_matches(run, patterns) for patterns in only)]
    places = {(load.name, workload.name, policy.resize) for load, _, workload, policy in requested}
    return [
        run
        for run in every
        if run in requested
        or (run[3].name == BASELINE and (run[0].name, run[2].name, run[3].resize) in places)
    ]


def _matches(wanted: Wanted, patterns: tuple[str, str, str]) -> bool:
    load, _, workload, policy = wanted
    named = any(fnmatch(name, patterns[2]) for name in (policy.name, policy.full_name))
    return fnmatch(load.name, patterns[0]) and fnmatch(workload.name, patterns[1]) and named


def _write_scenarios(folder: Path, wanted: Sequence[Wanted]) -> None:
    """Write a scenario of all policies with the default headroom for each load, workload and kind of resizes."""
    folder.mkdir(exist_ok=True)
    files: dict[str, tuple[LoadCase, Case, list[PolicyCase]]] = {}
    for load, seed, workload, policy in wanted:
        case = Case(workload, headroom(DEFAULT_TARGET), policy.resize)
        name = f"{load.name}-{seed}-{workload.name}-{policy.resize}.yaml"
        files.setdefault(name, (load, case, []))[2].append(policy)
    for name, (load, case, policies) in files.items():
        write_scenario(folder / name, scenario_of(load, case, policies), load.file, load.text)


def _oracles(wanted: Sequence[Wanted]) -> dict[Key, list[float]]:
    """Return the oracle's costs by seed."""
    costs: dict[Key, list[float]] = {}
    places = dict.fromkeys(
        (load.name, seed, workload.name, policy.resize) for load, seed, workload, policy in wanted
    )
    loads = {(load.name, seed): load for load, seed, _, _ in wanted}
    workloads = {workload.name: workload for workload in WORKLOADS}
    counted = {named: load_of(load, named[1]) for named, load in loads.items()}
    for name, seed, workload, resize in places:
        cost = limit(counted[name, seed], STEP / 3600, workloads[workload], resize)
        costs.setdefault((name, workload, resize), []).append(cost)
    return costs


class _Progress:
    """Reports progress on standard error."""

    def __init__(self, total: int) -> None:
        self._print = partial(print, file=sys.stderr, flush=True)
        self._total = total
        self._done = 0

    def __call__(self, run: Run) -> None:
        self._done += 1
        how = "kept" if run.kept else "not run" if run.outcome is None else f"{run.outcome.seconds:.1f} s"
        name = f"{run.load} {run.seed}, {run.workload}, {run.policy}/{run.resize}, {run.target}m"
        self._print(f"[{self._done}/{self._total}] {name}: {how}")


def report(kept: Kept) -> str:
    """Return all tables of these results."""
    parts = [f"At the unmet demand of {BASELINE}\n\n{summary(kept)}"]
    parts += [f"By load, {name}\n\n{by_load(kept, resize)}" for resize, name in RESIZES.items()]
    parts.append(f"Cost / unmet demand with the default headroom\n\n{others(kept)}")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
