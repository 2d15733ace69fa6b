"""A result by hand that has much of everything: for how large a page may get, and whether its labels stay apart."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace

from hvpa.api.values.prices import Prices
from hvpa.simulate.model import PolicyResult, Series, SimulationEvent
from hvpa.simulate.report.compare import Comparison, compare
from tests.unit.simulate.report.results import policy, result, series

KINDS = ("OOM", "Evicted", "Unschedulable", "Replicas", "Requests", "Condition", "Blocked", "Event")


def busy(steps: int, policies: int = 6) -> Comparison:
    """So many steps of 15 s that nothing can be left out of, under policies that cost nearly the same and have long
    names and thousands of events."""
    draw = random.Random(1)
    results = tuple(_policy(at, steps, draw) for at in range(policies))
    return compare(result(*results, duration=15.0 * steps, warm_up=300.0), Prices())


def _policy(at: int, steps: int, draw: random.Random) -> PolicyResult:
    events = tuple(
        SimulationEvent(15.0 * steps * i / 3000, KINDS[i % len(KINDS)], "AReason", "a message " * 40)
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
    ready = array("q", [max(0, one - 1) for one in counts])
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
