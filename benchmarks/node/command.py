"""`python -m benchmarks node`: measures on a real node the times from a resize to the cgroup and to the status, and
from a container's OOM to a larger limit, the age of a load's signals, and the operator's own usage meanwhile. Kubelet
(but for `--housekeeping`) and metrics-server have their defaults."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.node import resizes
from benchmarks.node.jumps import FAST, HVPA, POLICIES, jump
from benchmarks.node.signals import signals
from benchmarks.node.spread import spread
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.node.node import why_not
from localcluster.operator.operator import Operator, install_fast_signal, install_operator_rbac
from localcluster.programs.build import build, build_node
from localcluster.workloads.real_pods import RealPods

_DEFAULTS = AutoscalerSettings(metric_resolution="15s", hpa_sync_period="15s")


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 if everything was measured, 2 if this machine does not support real nodes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks node", description=__doc__)
    parser.add_argument("--resizes", type=int, default=20, help="of one pod (default: 20)")
    parser.add_argument("--ooms", type=int, default=5, help="containers that run out of memory (default: 5)")
    parser.add_argument("--steps", type=int, default=10, help="of a load, up and down (default: 10)")
    parser.add_argument("--factors", default="2,5,10", help="of the load that jumps (default: 2,5,10)")
    parser.add_argument(
        "--jumps", type=int, default=5, help="of each factor and policy (default: 5; 0: none)"
    )
    policies = f"that a jump has, separated by commas (default: {','.join(POLICIES)})"
    parser.add_argument("--policies", default=",".join(POLICIES), help=policies)
    housekeeping = "the kubelet's --housekeeping-interval (default: 10s)"
    parser.add_argument("--housekeeping", default="10s", help=housekeeping)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the steps (default: 1)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep all times there; measure only those that it lacks"
    )
    options = parser.parse_args(argv)
    if reason := why_not():
        print(reason, file=sys.stderr)
        return 2
    build()
    build_node()
    measured = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    for _ in _measure(options, measured):
        if options.json:
            options.json.write_text(json.dumps(measured, indent=2) + "\n")
    print("\n".join(_lines(measured)))
    return 0


def _measure(options: argparse.Namespace, measured: dict[str, Any]) -> Iterator[None]:
    """Add the missing times to `measured`; yield after each addition, so that an interrupted run loses little."""
    with (
        tempfile.TemporaryDirectory() as control,
        ControlPlane(
            nodes="real", settings=dataclasses.replace(_DEFAULTS, housekeeping=options.housekeeping)
        ) as plane,
        Operator(
            plane, install_operator_rbac(plane, deployment=False), *install_fast_signal(plane)
        ) as operator,
    ):
        pods = RealPods(plane.api, plane.nodes, "default", Path(control))
        parts: dict[str, Callable[[], Any]] = {
            "resizes": lambda: dataclasses.asdict(resizes.resizes(plane, pods, options.resizes)),
            "out of memory": lambda: dataclasses.asdict(
                resizes.out_of_memory(plane, pods, operator, options.ooms)
            ),
            "signals": lambda: signals(plane, pods, options.steps, random.Random(options.seed)),
        }
        for name, part in parts.items():
            if name not in measured:
                measured[name] = part()
                yield
        factors = [float(factor) for factor in options.factors.split(",")]
        cases = list(itertools.product(range(options.jumps), factors, options.policies.split(",")))
        yield from _jumps(plane, operator, cases, measured.setdefault("jumps", []))


def _jumps(
    plane: ControlPlane,
    operator: Operator,
    cases: Sequence[tuple[int, float, str]],
    results: list[dict[str, Any]],
) -> Iterator[None]:
    """Add the missing jumps, of run, factor and policy. Factors and policies take turns, so that a temporary
    disturbance of the machine affects all of them."""
    known = {(result["run"], result["factor"], result["policy"]) for result in results}
    for run, factor, policy in cases:
        if (run, factor, policy) in known:
            continue
        print(f"jump {len(results) + 1}: to {factor:g} times the load, {policy}", file=sys.stderr, flush=True)
        names = {"run": run, "factor": factor, "policy": policy}
        pid = operator.process.pid
        cpu, began = resizes.cpu_seconds(pid), time.monotonic()
        outcome = dataclasses.asdict(jump(plane, policy, factor, len(results)))
        used = (resizes.cpu_seconds(pid) - cpu) / (time.monotonic() - began)
        usage = {"operator_cpu": used, "operator_memory": resizes.resident(pid) / 1e6}
        results.append(names | outcome | usage)
        yield


def _lines(measured: dict[str, Any]) -> list[str]:
    resized, killed = measured["resizes"], measured["out of memory"]
    return [
        "from the request of a resize, median (least to most):",
        f"  until the API server has answered    {spread(resized['answered'])}",
        f"  until the cgroup has it              {spread(resized['cgroup'])}",
        f"  until the pod's status has it        {spread(resized['status'])}",
        "from the status that a container ran out of memory:",
        f"  until its pod's cgroup has more      {spread(killed['limit'])}",
        f"  until the container is ready         {spread(killed['ready'])}, "
        f"{max(killed['restarts'])} restarts at most",
        f"  the operator meanwhile               {killed['operator_cpu'] * 100:.1f} percent of a core, "
        f"{killed['operator_memory']:.0f} MB",
        "from a step of the load until half of it shows:",
        *(f"  in {source:<20} {spread(seconds)}" for source, seconds in measured["signals"].items()),
        *_lines_of_jumps(measured["jumps"]),
    ]


def _lines_of_jumps(jumps: Sequence[dict[str, Any]]) -> list[str]:
    lines = (
        ["from a jump of the load until more is requested, and until P99 is within its goal again:"]
        if jumps
        else []
    )
    for (factor, policy), results in _grouped(jumps).items():
        acted, within = (spread([result[name] for result in results]) for name in ("acted", "back"))
        above = statistics.median(result["above"] for result in results)
        failed = sum(result["failed"] for result in results) / sum(result["sent"] for result in results)
        cpu = statistics.median(result["cpu"] for result in results)
        lines.append(f"  x {factor:g} {policy:<12} {acted}; {within}")
        lines.append(
            f"{'':17}{above:g} s above the goal, {failed:.1%} failed, {cpu:.0f} core-seconds requested"
        )
        if policy in (HVPA, FAST) and (used := [result for result in results if "operator_cpu" in result]):
            cores, memory = (max(result[f"operator_{name}"] for result in used) for name in ("cpu", "memory"))
            lines.append(f"{'':17}the operator: {cores * 100:.1f} percent of a core, {memory:.0f} MB at most")
    return lines


def _grouped(jumps: Sequence[dict[str, Any]]) -> dict[tuple[float, str], list[dict[str, Any]]]:
    """Group the runs by factor and policy."""
    groups: defaultdict[tuple[float, str], list[dict[str, Any]]] = defaultdict(list)
    for result in jumps:
        groups[result["factor"], result["policy"]].append(result)
    return groups
