"""The phases of the scale benchmark in order; each records its figures."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.scale.environment import Environment, Spent, await_decisions
from benchmarks.scale.floor import Floor, shares
from benchmarks.scale.remote import Remote

Figures = dict[str, Any]
PHASES = ("creation", "step", "trickle", "idle", "startup", "floor")
TRICKLE = 0.01
"""Share of the objects that change per second."""
TIMERS = 65.0
"""Seconds after a step within which the operator reconciles an object again by itself (a new count settles in 60)."""
CHANGED_WHILE_DOWN = 0.01
"""Share of the objects that change while no operator runs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a measurement."""

    hvpas: int
    phases: frozenset[str]
    steps: int
    trickle_seconds: float
    idle_seconds: float
    floor_concurrency: int
    pods: int
    concurrency: int
    profile: Path | None = None


@dataclass(slots=True)
class Bench:
    """A run: the environment, the driver, and the figures so far."""

    environment: Environment
    driver: Remote
    plan: Plan
    report: Callable[[str], None]
    figures: Figures = field(default_factory=dict)
    last_step: float = 0.0
    sampled: list[Spent] = field(default_factory=list)
    """The measured steps, for the floor."""


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def latencies(seconds: Sequence[float]) -> Figures:
    """Return percentiles in milliseconds."""
    shares = {"median_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "max_ms": 1.0}
    return {name: round(1000 * quantile(seconds, share), 1) for name, share in shares.items()}


def spent(of: Spent) -> Figures:
    """Return CPU in seconds by process, and requests."""
    return {
        "cpu_seconds": {name: round(value, 2) for name, value in of.cpu.items()},
        "requests": of.requested.counts(),
        "refused": dict(of.requested.refused),
        "in_the_api_server": {str(kind): latencies(took) for kind, took in of.requested.seconds.items()},
    }


def creation(bench: Bench) -> None:
    """Create all Hvpas at once, while their workloads exist and the operator runs."""
    environment = bench.environment
    bench.report("creating workloads and pods")
    prepared = bench.driver.call("prepare")
    environment.start()
    environment.until_quiet()
    before = environment.memory()
    bench.report(f"workloads and pods: {prepared['seconds']:.1f} s; creating Hvpas")
    with environment.measured() as measurements:
        response = bench.driver.call("create")
        environment.until_quiet()
    bench.figures["creation"] = {
        "all_exist_seconds": round(response["seconds"], 2),
        "driver_seconds": round(response["driver_seconds"], 2),
        "cpu_ms_per_hvpa": round(1000 * measurements[0].cpu["operator"] / bench.plan.hvpas, 2),
        **spent(measurements[0]),
    }
    bench.figures["memory"] = {"before_creation": before, "after_creation": environment.memory()}
    bench.driver.call("recommend_present")
    settle(bench)


def settle(bench: Bench) -> None:
    """Complete rollouts and let HPAs desire the current replicas; not measured."""
    bench.driver.call("settle")
    if bench.environment.operator is not None:
        bench.environment.until_quiet()


def step(bench: Bench) -> None:
    """Change all statuses, several times."""
    for number in range(bench.plan.steps):
        bench.report(f"step {number + 1} of {bench.plan.steps}")
        profile = bench.plan.profile if number == 0 else None
        with bench.environment.measured() as measurements, bench.environment.profiled(profile):
            response = bench.driver.call("step")
            is_quiet = bench.environment.until_quiet()
        bench.last_step = time.monotonic()
        bench.sampled.append(measurements[0])
        bench.figures.setdefault("step", []).append(
            {
                "seconds": round(response["seconds"], 3),
                "driver_seconds": round(response["driver_seconds"], 3),
                "quiet_after_seconds": round(measurements[0].seconds, 2),
                "is_quiet": is_quiet,
                "latency": latencies(response["latencies"]),
                "cpu_ms_per_hvpa": round(1000 * measurements[0].cpu["operator"] / bench.plan.hvpas, 3),
                **spent(measurements[0]),
            }
        )
        settle(bench)
    bench.figures["memory"]["after_steps"] = bench.environment.memory()


def trickle(bench: Bench) -> None:
    """Change one percent of the objects per second."""
    bench.report(f"trickle for {bench.plan.trickle_seconds:g} s")
    with bench.environment.measured() as measurements:
        response = bench.driver.call("trickle", TRICKLE, bench.plan.trickle_seconds)
    bench.last_step = time.monotonic()
    bench.figures["trickle"] = {
        "objects": response["objects"],
        "seconds": round(response["seconds"], 2),
        "latency": latencies(response["latencies"]),
        "cpu_share": round(measurements[0].cpu["operator"] / measurements[0].seconds, 4),
        **spent(measurements[0]),
    }
    settle(bench)


def idle(bench: Bench) -> None:
    """Change nothing."""
    bench.report("waiting until the last timers have run out")
    time.sleep(max(0.0, bench.last_step + TIMERS - time.monotonic()))
    is_quiet = bench.environment.until_quiet(60)
    bench.report(f"idle for {bench.plan.idle_seconds:g} s")
    with bench.environment.measured() as measurements:
        time.sleep(bench.plan.idle_seconds)
    bench.figures["idle"] = {
        "seconds": round(measurements[0].seconds, 2),
        "is_quiet": is_quiet,
        "cpu_share": round(measurements[0].cpu["operator"] / measurements[0].seconds, 4),
        **spent(measurements[0]),
    }
    bench.figures["memory"]["at_the_end"] = bench.environment.memory()


def startup(bench: Bench) -> None:
    """Restart the operator while everything exists, and something has changed in the meantime."""
    environment = bench.environment
    bench.report("starting an operator anew")
    environment.end()
    count = bench.driver.call("change", CHANGED_WHILE_DOWN)
    with environment.measured() as measurements:
        began = time.perf_counter()
        bench.driver.begin("changed")
        operator = environment.start()
        filled = time.perf_counter() - began
        at_start = environment.memory()
        await_decisions(operator, bench.plan.hvpas)
        through = time.perf_counter() - began
        response = bench.driver.result()
        environment.until_quiet()
    bench.last_step = time.monotonic()
    bench.figures["startup"] = {
        "changed": count,
        "caches_filled_seconds": round(filled, 2),
        "first_patch_seconds": round(response["first"] - began, 2),
        "last_patch_seconds": round(response["last"] - began, 2),
        "through_seconds": round(through, 2),
        **spent(measurements[0]),
    }
    bench.figures["memory"]["at_start"] = at_start
    bench.figures["memory"]["after_start"] = environment.memory()
    settle(bench)


def floor(bench: Bench) -> None:
    """Stop the operator, and let a bare client repeat its writes of the last step."""
    environment, plan = bench.environment, bench.plan
    last = bench.sampled[-1]
    environment.end()
    bench.report("the floor of a step")
    writes = shares(last.requested, [sample.requested for sample in bench.sampled])
    with Remote(Floor, environment.account, plan.hvpas, plan.floor_concurrency, writes) as client:
        environment.others["client"] = client.pid
        with environment.measured() as measurements:
            bench.driver.begin("step")
            client.begin("run")
            wrote = client.result()
            response = bench.driver.result()
        del environment.others["client"]
    seconds = response["seconds_until_all_done"]
    steps = bench.figures["step"]
    bench.figures["floor"] = {
        "seconds": round(seconds, 3),
        "client_seconds": round(wrote["seconds"], 3),
        "driver_seconds": round(response["driver_seconds"], 3),
        "concurrency": plan.floor_concurrency,
        "cpu_ms_per_hvpa": round(1000 * measurements[0].cpu["client"] / plan.hvpas, 3),
        "ratio": round(statistics.median(step_figures["seconds"] for step_figures in steps) / seconds, 2),
        "cpu_ratio": round(last.cpu["operator"] / max(0.01, measurements[0].cpu["client"]), 2),
        **spent(measurements[0]),
    }
