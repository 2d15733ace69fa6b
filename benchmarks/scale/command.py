"""The operator with 100 to 10,000 Hvpas, on only etcd and kube-apiserver.

A driver in a separate process acts as the user, the HPA controller, the VPA recommender, the Deployment controller and
the kubelet. The phases:

- creation: the workloads exist, all Hvpas are created at once; until all their HPAs and VPAs exist;
- step: the statuses of all HPAs and VPAs change as fast as the API server accepts them, so that each workload must
  change on both axes. Timed per Hvpa from its last status (sent) to the changed workload (seen by a watch), and as a
  whole from the first status to the last changed workload; and the operator's CPU until it is quiet again;
- trickle: one percent of the objects gets new statuses per second;
- idle: nothing changes;
- startup: the operator is stopped, some statuses change, and it is started again;
- floor: the operator is stopped; the driver writes the same statuses, while a bare client repeats the operator's writes
  of a step (kinds and numbers of requests from the audit log, bodies from a sample), with the operator's concurrency.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.scale import phases
from benchmarks.scale import report as scale_report
from benchmarks.scale.driver import Driver
from benchmarks.scale.environment import environment
from benchmarks.scale.objects import PER_NAMESPACE, PREFIX
from benchmarks.scale.phases import PHASES, Bench, Plan
from benchmarks.scale.remote import Remote
from hvpa.cli.run import add_arguments, run_settings

SIZES = "100,2000,10000"


def run(plan: Plan, flags: list[str], figures: dict[str, Any], save: Callable[[], None]) -> None:
    """Measure all figures for a number of Hvpas and put them into `figures`; they are saved after each phase."""

    def report(text: str) -> None:
        print(f"{plan.hvpas} Hvpas: {text}", file=sys.stderr, flush=True)

    report("starting a control plane")
    sample = f"{PREFIX}{plan.hvpas // PER_NAMESPACE // 2}"
    with (
        environment(sample, flags) as env,
        Remote(Driver, env.plane.kubeconfig, plan.hvpas, plan.pods, plan.concurrency) as driver,
    ):
        env.others["driver"] = driver.pid
        bench = Bench(env, driver, plan, report, figures)
        for name in PHASES:
            if name in plan.phases:
                getattr(phases, name)(bench)
                save()


def requests_at_once(flags: list[str]) -> int:
    """Return the maximum number of concurrent writes of an operator with these flags."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    settings = run_settings(parser.parse_args(flags))
    return min(settings.workers, getattr(settings, "max_in_flight", settings.workers))


def arguments() -> argparse.ArgumentParser:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--hvpas", type=sizes, default=sizes(SIZES), metavar="N,…", help=f"default: {SIZES}")
    add(
        "--phases",
        type=names,
        default=frozenset(PHASES),
        metavar="NAME,…",
        help=f"those, and creation (default: {','.join(PHASES)})",
    )
    add("--steps", type=int, default=2, help="default: 2")
    add("--pods", type=int, default=2, help="pods per workload (default: 2)")
    add("--concurrency", type=int, default=16, help="the driver's requests at once (default: 16)")
    add(
        "--floor-concurrency",
        type=int,
        metavar="N",
        help="the bare client's (default: as the operator's flags say)",
    )
    add("--trickle", type=float, default=20, metavar="SECONDS", help="default: 20")
    add("--idle", type=float, default=30, metavar="SECONDS", help="default: 30")
    add("--operator-args", type=shlex.split, default=[], metavar="FLAGS", help="further flags of `hvpa run`")
    add(
        "--profile",
        type=Path,
        metavar="FILE",
        help="sample the operator during the first step (needs py-spy; speedscope's format)",
    )
    add("--json", type=Path, metavar="FILE", help="write all figures")
    return parser


def sizes(text: str) -> list[int]:
    """Parse numbers of Hvpas."""
    return [int(part) for part in text.split(",")]


def names(text: str) -> frozenset[str]:
    """Parse names of phases."""
    phases_named = frozenset(text.split(","))
    if unknown := phases_named - set(PHASES):
        raise argparse.ArgumentTypeError(
            f"no phase {', '.join(sorted(unknown))}; there are {', '.join(PHASES)}"
        )
    return phases_named | {"creation"} | ({"step"} if "floor" in phases_named else set())


def main(options: list[str]) -> int:
    """Run the benchmark; 0 if all goals are met, else 1."""
    args = arguments().parse_args(options)
    flags: list[str] = args.operator_args
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # so that everything stops in order
    results: list[dict[str, Any]] = []

    def save() -> None:
        if args.json:
            report = {"results": results, "missed": scale_report.verdicts(results)}
            args.json.write_text(json.dumps(report, indent=1) + "\n")

    try:
        for hvpas in args.hvpas:
            results.append({"hvpas": hvpas})
            run(make_plan(args, hvpas), flags, results[-1], save)
    finally:  # report all measured figures, even after a failure
        print(scale_report.table(results))
        print(scale_report.hindrances(results))
        print(scale_report.requests_table(results))
    return 1 if any(scale_report.verdicts(results).values()) else 0


def make_plan(args: argparse.Namespace, hvpas: int) -> Plan:
    """Return the options for a number of Hvpas."""
    return Plan(
        hvpas=hvpas,
        phases=args.phases,
        steps=args.steps,
        trickle_seconds=args.trickle,
        idle_seconds=args.idle,
        floor_concurrency=args.floor_concurrency or requests_at_once(args.operator_args),
        pods=args.pods,
        concurrency=args.concurrency,
        profile=args.profile,
    )
