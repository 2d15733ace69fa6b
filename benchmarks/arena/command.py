"""Compares an Hvpa with its rivals under workloads that nothing was tuned on: `python -m benchmarks arena --seed N`.

At least 300 workloads drawn from a seed (`draw`) run in the simulator (`hvpa_lab.simulate`) under an Hvpa, under HPA +
VPA and under an HPA alone with the same headroom and bounds (`policies`), and with weight 100 under a VPA alone.
A step is 15 seconds. A run is 36 hours, of which the first day does not count and is calm (`draw.HOURS`). Seeds 1 to 9
are for tuning, seeds from 100 on for judging: after looking at such a seed, take another.

A workload is *worse* if it costs 15 percent more than under its rival at no less unmet demand, if one percentage point
more of the demand is unmet, or if there are more OOMs. `outcome` defines cost, unmet demand and the queueing model of
response times. A table's cost is the geometric mean of Hvpa / rival, with the quartiles. Unmet demand, seconds below
demand and P99 are means over workloads (P99: geometric); OOMs are sums.

Kept results (`--keep`) are reused if scenario, seed and code are the same: after a change of `hvpa/core`, only the
Hvpas run again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import msgspec
import yaml

from benchmarks.arena.draw import Drawn, drawn
from benchmarks.arena.policies import policies, rival, scenario_of
from benchmarks.arena.report import compared, report
from benchmarks.arena.run import CACHE, OutcomeOrError, Result, run_all
from hvpa_lab.simulate.model import KubeletKind

WORKLOADS = 300
BEGIN, END = "<!-- arena -->", "<!-- end -->"
"""Markers of the report in a page."""


def main(argv: Sequence[str]) -> int:
    """Run the arena; 0 if all runs worked, whatever the results; else 1."""
    args = _arguments(argv)
    workloads = [
        candidate for number in range(args.workloads) if _wanted(candidate := drawn(args.seed, number), args)
    ]
    if args.only is not None:
        workloads = [drawn(args.seed, args.only)]
        text = yaml.safe_dump(
            scenario_of(workloads[0], *policies(workloads[0]), kubelets=args.fast), sort_keys=False, width=110
        )
        print(f"# hvpa simulate --seed {args.seed + args.only}\n{text}\n---")
    if not workloads:
        print("there is no such workload", file=sys.stderr)
        return 2
    began = time.monotonic()
    outcomes = run_all(args.seed, workloads, args.keep, args.jobs, _progress, args.fast)
    results = [_result(workload, outcomes) for workload in workloads]
    text = report(args.seed, results)
    print(text)
    if args.page:
        _write_page(args.page, text)
    print(f"\nIn {(time.monotonic() - began) / 60:.1f} minutes with {args.jobs} processes.")
    if args.json:
        args.json.write_bytes(msgspec.json.encode(results))
    if args.compare:
        before = msgspec.json.decode(args.compare.read_bytes(), type=list[Result])
        print(f"\n{compared(before, results)}")
    return 1 if any(result.errors for result in results) else 0


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    first = (__doc__ or "").splitlines()[0].partition(":")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks arena", description=first)
    add = parser.add_argument
    add("--seed", type=int, default=1, help="1 to 9: for tuning; from 100 on: for judging (default: 1)")
    add("--workloads", type=int, default=WORKLOADS, help=f"the first so many (default: {WORKLOADS})")
    add(
        "--only",
        type=int,
        metavar="NUMBER",
        help="this workload alone, with the scenario for `hvpa simulate`",
    )
    add("--weight", help="only this one: none, 0, 30, 50, 80 or 100")
    add("--strategy", help="only this one: Rollout, InPlaceOrRollout or InPlace")
    add("--metric", help="only this one, such as 'queue'")
    fast = "Hvpas that resize pods in place have the fast signal, of kubelets with these settings"
    add("--fast", choices=get_args(KubeletKind), help=fast)
    add("--jobs", type=int, default=2, help="processes (default: 2)")
    add("--keep", type=Path, default=CACHE, metavar="DIR", help=f"where results are kept (default: {CACHE})")
    add("--json", type=Path, metavar="FILE", help="also write all results to this file")
    add("--page", type=Path, metavar="FILE", help="also write the tables into this page, between its marks")
    add("--compare", type=Path, metavar="FILE", help="which workloads differ from those of this JSON file")
    return parser.parse_args(argv)


def _write_page(page: Path, text: str) -> None:
    """Replace the last report in the page."""
    before, mark, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise SystemExit(f"{page}: no {BEGIN} and {END}")
    page.write_text(f"{before}{mark}\n```text\n{text}\n```\n{end}{after}")


def _wanted(workload: Drawn, args: argparse.Namespace) -> bool:
    return (
        (args.weight is None or args.weight == str(workload.weight).lower())
        and args.strategy in (None, workload.strategy)
        and args.metric in (None, workload.metric)
    )


def _result(workload: Drawn, outcomes: dict[tuple[int, str], OutcomeOrError]) -> Result:
    by_policy = {name: outcomes[workload.number, name] for name in policies(workload)}
    return Result(
        number=workload.number,
        text=workload.text,
        metric=workload.metric,
        weight=workload.weight,
        blend=workload.blend,
        in_place=workload.in_place,
        shape=workload.shape,
        follows=workload.follows,
        rival=rival(workload),
        outcomes={name: done for name, (done, _) in by_policy.items() if done is not None},
        errors={name: why for name, (_, why) in by_policy.items() if why},
    )


def _progress(done: int, total: int) -> None:
    if done == total or done % 10 == 0:
        print(f"[{done}/{total}]", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
