"""Results of simulations made by hand, for the tests of what is written about them."""

from __future__ import annotations

import datetime as dt
import math
import random
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from hvpa.api.values.prices import Prices
from hvpa.api.values.quantity import Resource
from hvpa_lab.simulate.model import (
    PolicyKind,
    PolicyResult,
    Reaction,
    Series,
    SimulationEvent,
    SimulationResult,
    Totals,
)
from hvpa_lab.simulate.report.compare import Comparison, compare
from hvpa_lab.simulate.report.plots import EVENT_ORDER

START = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
GIB = 2.0**30

TOTALS = Totals(
    core_hours_requested=1234.5,
    core_hours_used=800.25,
    gib_hours_requested=96.0,
    gib_hours_used=48.0,
    slack_cpu=0.3517,
    slack_memory=0.5,
    unmet_core_seconds=17.25,
    unmet_share=0.00123,
    ooms=0,
    restarts=3,
    replica_changes=12,
    request_changes=2,
    node_hours=168.0,
    reaction_median_seconds=42.0,
    reaction_max_seconds=95.5,
    demand_core_seconds=86_250.0,
    unmet_demand_share=0.0002,
    cover_median_seconds=30.0,
    cover_max_seconds=90.0,
)
REACTION = Reaction(
    start=3600.0,
    end=3660.0,
    tolerance=10.0,
    metric_age=15.0,
    hpa_period=7.5,
    gates=0.0,
    start_up=30.0,
    unmet_seconds=45.0,
    total=32.5,
    cover_seconds=30.0,
)


def series(
    replicas: Sequence[int] = (2, 2, 4, 4), step: float = 15.0, request: float = 500.0, base: float = 0.0
) -> Series:
    """A short series with these replica counts; a pod begins a step after it was asked for."""
    count = len(replicas)
    load = array("d", (100.0 + 10 * math.sin(index / 9) for index in range(count)))
    demand = array("d", (value * 10 + base for value in load))
    capacity = array("d", (pod_count * request for pod_count in replicas))
    ready = array(
        "q", (min(now, before) for now, before in zip(replicas, [replicas[0], *replicas], strict=False))
    )
    requests: dict[tuple[str, Resource], array[float]] = {
        ("app", "cpu"): array("d", [request] * count),
        ("app", "memory"): array("d", [GIB] * count),
    }
    return Series(
        step=step,
        load=load,
        demand=demand,
        capacity=capacity,
        unmet=array("d", (max(0.0, need - other) for need, other in zip(demand, capacity, strict=True))),
        used_cpu=array("d", map(min, demand, capacity)),
        used_memory=array("d", (pod_count * GIB / 2 for pod_count in replicas)),
        requested_cpu=array("d", capacity),
        requested_memory=array("d", (pod_count * GIB for pod_count in replicas)),
        replicas=array("q", replicas),
        ready=ready,
        requests=requests,
    )


def policy(name: str = "hvpa", kind: PolicyKind = "Hvpa", **changes: Any) -> PolicyResult:
    """A policy's result; `changes` are those of its fields, and of its figures."""
    figures = {key: changes.pop(key) for key in list(changes) if key in Totals.__struct_fields__}
    totals = msgspec.structs.replace(TOTALS, **figures)
    share = totals.unmet_core_seconds / totals.demand_core_seconds
    whole = PolicyResult(
        name=name,
        kind=kind,
        totals=msgspec.structs.replace(totals, unmet_demand_share=share),
        series=series(),
        events=(
            SimulationEvent(30.0, "Replicas", "HPA", "2 -> 4"),
            SimulationEvent(45.5, "OOM", "OOMKilled", "app of web-1 used 1.1Gi of 1Gi"),
        ),
        reactions=(REACTION,),
    )
    return replace(whole, **changes)


def result(*policies: PolicyResult, **changes: Any) -> SimulationResult:
    """A scenario's result under these policies (one of each of two kinds, where none is given)."""
    whole = SimulationResult(
        name="day and night",
        description="A web shop's week",
        start=START,
        duration=60.0,
        step=15.0,
        warm_up=0.0,
        seed=7,
        notes=(),
        policies=policies or (policy(), policy("hpa", "HPA", core_hours_requested=1500.0, ooms=2)),
    )
    return replace(whole, **changes)


PRICES = Prices(cpu=0.03, memory=0.004)


def compared(*policies: PolicyResult, **changes: Any) -> Comparison:
    """The same, compared at prices that are easy to reckon with."""
    return compare(result(*policies, **changes), PRICES)


def busy(steps: int, policies: int = 6) -> Comparison:
    """So many steps of 15 s that nothing can be left out of, under policies that cost nearly the same and have long
    names and thousands of events."""
    draw = random.Random(1)
    results = tuple(_policy(at, steps, draw) for at in range(policies))
    return compare(result(*results, duration=15.0 * steps, warm_up=300.0), Prices())


def _policy(at: int, steps: int, draw: random.Random) -> PolicyResult:
    events = tuple(
        SimulationEvent(
            15.0 * steps * i / 3000, EVENT_ORDER[i % len(EVENT_ORDER)], "AReason", "a message " * 40
        )
        for i in range(3000)
    )
    return policy(
        f"Policy number {at} with a name <that> is long",
        core_hours_requested=100.0 + at / 10,
        unmet_core_seconds=10.0 + at / 100,
        demand_core_seconds=360_000.0,
        events=events,
        series=_noisy(steps, draw),
    )


def _noisy(steps: int, draw: random.Random) -> Series:
    def values() -> array[float]:
        return array("d", [draw.uniform(1_000.0, 123_456.0) for _ in range(steps)])

    counts = array("q", [draw.randint(2, 99) for _ in range(steps)])
    ready = array("q", [max(0, count - 1) for count in counts])
    return replace(
        series([2, 2]),
        load=values(),
        demand=values(),
        capacity=values(),
        unmet=values(),
        used_cpu=values(),
        used_memory=values(),
        requested_cpu=values(),
        requested_memory=values(),
        replicas=counts,
        ready=ready,
        requests={("app", "cpu"): values(), ("app", "memory"): values()},
    )
