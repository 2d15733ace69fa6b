"""What joint scaling costs beside what there is: `python -m benchmarks joint --traces DIR --out DIR --cache DIR`.

Every load runs under every policy with every workload, in the simulator (`hvpa.simulate`). A day of warm-up does not
count. Rows and points are comparable because of these rules:

- **Cost** is core-hours + GiB-hours / 8, the usual ratio of the prices of cloud machines; both parts are shown too. It
  counts what is requested, and what is used beyond that (as OpenCost does: the larger of request and usage). Pods can
  burst only a fifth beyond their request (`nodes.headroom`): without that, a request that is too small costs nothing,
  and unmet demand says nothing about requests.
- **Bounds** are the same for all: 2 to 30 replicas of 100m/128Mi to 4 cores/16Gi. All begin with 3 replicas of 1 core /
  2Gi and limit memory to 1.5 times its request, and CPU not at all. The HPA by itself keeps these requests, the VPA by
  itself this count.
- **Headroom**: an HPA, alone, beside a VPA or an Hvpa's, lets a pod use 800m (memory-heavy: and 1600Mi) of 1 core and
  2Gi; a VPA puts 15 percent on top of what it saw. `--sweep` goes from 600m to 900m. The target alone says little
  about a VPA beside it: when there are more pods, each is asked for less, and the sum stays (five days of the wave cost
  405, 402, 404 and 407 from 600m to 900m). So the sweep scales the VPA's margin along with 1 / target for all (600m: 53
  percent, 900m: 2), and the same days cost 536, 458, 404 and 363; `--fixed-margin` leaves the margin alone.
  A `Trajectory` sizes pods by what its HPA lets them use of their request. For it to have the same margin as the VPA,
  that is 1 / (1 + margin) of 1 core and 2Gi (800m: 870m).
- **The way down** is held for five minutes by all, each by its own means: an HPA takes its largest count of the last
  five minutes; an Hvpa waits for five minutes from its last step out or in (`hpa.scaleDown.stabilizationDuration`), as
  the HPA that it deploys has no memory. Neither is a gift: the Hvpa looks at one measurement when the time is over, the
  HPA can follow a falling load every 15 seconds. `--hpa-window` gives the Hvpa's HPA that same memory, in place of the
  wait.
- **All else** of an Hvpa is its default, as the defaults are what is judged, and the same for every load. Where
  replicas have a base use to speak of, the spec of `Trajectory` has it: an owner knows it.
- **No tuning**: recorded series are scaled by one rule (`loads`), and nothing else depends on a load.

In the folder of `--out`: `results.json`, `tables.txt` (what is printed), `scenarios/` for `hvpa simulate`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.joint.kept import keep
from benchmarks.joint.loads import LoadCase, formulas, traces
from benchmarks.joint.policies import (
    BASELINE,
    DEFAULT_TARGET,
    POLICIES,
    TARGETS,
    WORKLOADS,
    Case,
    PolicyCase,
    Workload,
    headroom,
)
from benchmarks.joint.report import failures, same_unmet, summary, tables
from benchmarks.joint.run import (
    ACTING_ROOMS,
    HVPA_ROOMS,
    Job,
    Run,
    code_version,
    job_of,
    run_all,
    scenario_of,
    write_scenario,
)
from hvpa.simulate.errors import ScenarioError

DAYS: Final = 14.0


def main(argv: Sequence[str]) -> int:
    """Run it: 0 when all could be run, whatever came of it; 1 when not."""
    args = _arguments(argv)
    try:
        loads = [*(traces(args.traces, args.days) if args.traces else ()), *formulas(args.days)]
    except (ScenarioError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    wanted = _wanted(loads, args.only)
    if not wanted:
        print("--only leaves nothing to run", file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    jobs = _jobs(wanted, args)
    runs = run_all(jobs, args.cache or args.out / "cache", args.jobs, _Progress(len(jobs)))
    _write(args.out, runs, args)
    if args.keep:
        keep(runs, args.days)
    return 1 if any(run.error for run in runs) else 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    summary = (__doc__ or "").splitlines()[0].partition(":")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks joint", description=summary)
    add = parser.add_argument
    add("--traces", type=Path, metavar="DIR", help="also every CSV file (timestamp,value) in this folder")
    add("--out", type=Path, metavar="DIR", required=True, help="where results and tables go")
    add("--cache", type=Path, metavar="DIR", help="where results are kept (default: cache in --out)")
    add("--days", type=float, default=DAYS, help=f"of each load, from its start (default: {DAYS:g})")
    add("--jobs", type=int, default=1, help="processes (default: 1)")
    add("--seed", type=int, default=0, help="what noise is drawn from (default: 0)")
    add("--sweep", action="store_true", help=f"all headrooms, not only {DEFAULT_TARGET}m")
    add("--fixed-margin", action="store_true", help="the sweep leaves the VPA's margin alone")
    add("--hpa-window", action="store_true", help="an Hvpa's HPA has a memory of five minutes")
    add("--keep", action="store_true", help="also keep in the repository what the documents cite")
    only = "only these, by name or pattern; policies as NAME or NAME/RESIZE; empty: all. Repeatable"
    add("--only", action="append", type=_filter, metavar="LOAD,WORKLOAD,POLICY", help=only)
    return parser.parse_args(argv)


def _filter(text: str) -> tuple[str, str, str]:
    """LOAD,WORKLOAD,POLICY as patterns; parts at the end may be missing."""
    parts = [part.strip() or "*" for part in text.split(",")]
    if len(parts) > 3:
        raise argparse.ArgumentTypeError(f"{text!r} has more than LOAD,WORKLOAD,POLICY")
    load, workload, policy = (*parts, "*", "*")[:3]
    return load, workload, policy


Wanted = tuple[LoadCase, Workload, PolicyCase]


def _wanted(loads: Sequence[LoadCase], only: Sequence[tuple[str, str, str]] | None) -> list[Wanted]:
    """What is asked for, and the baselines that it is compared with."""
    every = [(load, workload, policy) for load in loads for workload in WORKLOADS for policy in POLICIES]
    if not only:
        return every
    requested = [one for one in every if any(_matches(one, patterns) for patterns in only)]
    places = {(load.name, workload.name, policy.resize) for load, workload, policy in requested}
    return [
        one
        for one in every
        if one in requested
        or (one[2].name == BASELINE and (one[0].name, one[1].name, one[2].resize) in places)
    ]


def _matches(one: Wanted, patterns: tuple[str, str, str]) -> bool:
    load, workload, policy = one
    named = any(fnmatch(name, patterns[2]) for name in (policy.name, policy.full_name))
    return fnmatch(load.name, patterns[0]) and fnmatch(workload.name, patterns[1]) and named


def _jobs(wanted: Sequence[Wanted], args: argparse.Namespace) -> list[Job]:
    """The runs, with the scenarios that hold them written down."""
    folder = args.out / "scenarios"
    folder.mkdir(exist_ok=True)
    targets = TARGETS if args.sweep else (DEFAULT_TARGET,)
    jobs, files = [], dict[tuple[str, Case], tuple[LoadCase, list[PolicyCase]]]()
    for load, workload, policy in wanted:
        for target in targets:
            room = headroom(target, not args.fixed_margin)
            case = Case(workload, room, policy.resize, args.hpa_window)
            jobs.append(job_of(load, case, policy, args.seed))
            files.setdefault((load.name, case), (load, []))[1].append(policy)
    for (_, case), (load, policies) in files.items():
        name = f"{load.name}-{case.workload.name}-{case.resize}-{case.headroom.name}.yaml"
        write_scenario(folder / name, scenario_of(load, case, policies), load.file, load.text)
    return jobs


class _Progress:
    """Reports on standard error what is done."""

    def __init__(self, total: int) -> None:
        self._print = partial(print, file=sys.stderr, flush=True)
        self._total = total
        self._done = 0

    def __call__(self, run: Run) -> None:
        self._done += 1
        how = "kept" if run.kept else "not run" if run.outcome is None else f"{run.outcome.seconds:.1f} s"
        name = f"{run.load}, {run.workload}, {run.policy}/{run.resize}, {run.target}m"
        self._print(f"[{self._done}/{self._total}] {name}: {how}")


def _write(out: Path, runs: Sequence[Run], args: argparse.Namespace) -> None:
    """Results and tables."""
    parts = [*tables(runs), summary(runs)]
    if args.sweep:
        parts.append(same_unmet(runs))
    if any(run.error for run in runs):
        parts.append(failures(runs))
    text = "\n\n".join(parts)
    print(text)
    (out / "tables.txt").write_text(f"{text}\n")
    code = {"hvpa": code_version(HVPA_ROOMS), "others": code_version(ACTING_ROOMS)}
    reported = {"days": args.days, "seed": args.seed, "code": code, "runs": msgspec.to_builtins(runs)}
    (out / "results.json").write_text(json.dumps(reported, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
