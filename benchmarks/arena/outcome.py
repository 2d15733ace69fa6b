"""The figures of a run of the arena.

**Cost** is core-hours + GiB-hours / 8, requested and used beyond that, as in `benchmarks/joint`. **Unmet** is the share
of the demand for CPU that no pod served. It includes losses by OOMs: containers that ran out of memory serve nothing
until they are ready again. The first day counts in no figure.

**Response times** follow a model. Each pod is an M/M/1 queue, because a Service splits Poisson arrivals at random into
Poisson streams: with a mean service time s and utilization ρ the response time is exponential with mean s / (1 - ρ) (L.
Kleinrock, Queueing Systems, vol. 1, 3.2, 1975). Example: s = 0.05 s and ρ = 0.8 give a mean of 0.25 s. s is `SERVICE`
for any pod size; ρ is the usage of all pods divided by the capacity of ready pods in that step. Unmet requests, and all
that would take longer on average, take `TIMEOUT`. Steps are weighted by their demand, so the 99th percentile is that of
all requests. In this model a larger pod serves a request no faster, and does not serve several at once: the model
compares how close to its capacity a policy runs, and for how long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from hvpa.api.values.quantity import GIB
from hvpa_lab.simulate.model import PolicyResult, Scenario

GIB_PER_CORE: Final = 8
SERVICE: Final = 0.05
"""Seconds of a request without waiting."""
TIMEOUT: Final = 10.0
"""Seconds after which clients stop waiting."""


class Outcome(msgspec.Struct, frozen=True):
    """A policy under a workload. Replicas, and a pod's requests in cores and GiB, are means over time."""

    cost: float
    cpu_cost: float
    unmet: float
    """Share of the demand."""
    below: float
    """Seconds with unmet demand."""
    starting: float
    """Share of the unmet demand while fewer pods were ready than desired."""
    at_most: float
    """Share of the unmet demand at the maximum of replicas."""
    ooms: int
    restarts: int
    p99: float
    """Seconds."""
    replicas: float
    cpu: float
    memory: float
    writes: int
    """Changes of the pods' requests."""
    replica_changes: int
    violations: int
    """Decisions of an Hvpa that break an invariant (`hvpa/core/invariants.py`), the first day included."""
    seconds: float = 0.0
    """CPU time of the run."""


def outcome_of(scenario: Scenario, result: PolicyResult, most: int, seconds: float) -> Outcome:
    """Return the figures; `most` is maxReplicas."""
    totals, series, step = result.totals, result.series, scenario.step
    first = math.ceil(scenario.warm_up / step)
    demand, unmet, replicas, ready = (
        samples[first:] for samples in (series.demand, series.unmet, series.replicas, series.ready)
    )
    lost = math.fsum(unmet) or 1.0
    pods = sum(replicas) / len(replicas)
    hours = pods * len(replicas) * step / 3600
    cpu = totals.core_hours_requested + _beyond(series.used_cpu, series.requested_cpu, first, step) / 1000
    memory = (
        totals.gib_hours_requested + _beyond(series.used_memory, series.requested_memory, first, step) / GIB
    )
    steps = zip(unmet, replicas, ready, strict=True)
    short = [(lack, has < wanted, wanted >= most) for lack, wanted, has in steps if lack]
    return Outcome(
        cost=cpu + memory / GIB_PER_CORE,
        cpu_cost=cpu,
        unmet=totals.unmet_demand_share,
        below=totals.unmet_share * len(replicas) * step,
        starting=sum(lack for lack, starts, _ in short if starts) / lost,
        at_most=sum(lack for lack, _, full in short if full) / lost,
        ooms=totals.ooms,
        restarts=totals.restarts,
        p99=percentile(response_means(demand, unmet, series.used_cpu[first:], series.capacity[first:]), 0.99),
        replicas=pods,
        cpu=totals.core_hours_requested / hours if hours else 0.0,
        memory=totals.gib_hours_requested / hours if hours else 0.0,
        writes=totals.request_changes,
        replica_changes=totals.replica_changes,
        violations=sum(event.kind == "Violation" for event in result.events),
        seconds=seconds,
    )


def _beyond(used: Sequence[float], requested: Sequence[float], first: int, step: float) -> float:
    """Return the usage beyond the requests from step `first` on, in unit-hours."""
    pairs = zip(used[first:], requested[first:], strict=True)
    return math.fsum(max(0.0, usage - request) for usage, request in pairs) * step / 3600


def response_means(
    demand: Iterable[float], unmet: Iterable[float], used: Iterable[float], capacity: Iterable[float]
) -> list[tuple[float, float]]:
    """Return amounts of requests with their mean response time in seconds, unmet requests separately."""
    means = []
    for wanted, lost, busy, most in zip(demand, unmet, used, capacity, strict=True):
        free = 1 - busy / most if most > 0 else 0.0
        means.append((wanted - lost, min(TIMEOUT, SERVICE / free) if free > 0 else TIMEOUT))
        if lost:
            means.append((lost, TIMEOUT))
    return means


def percentile(means: Sequence[tuple[float, float]], share: float) -> float:
    """Return the time within which this share of the requests is answered. Each part of the requests has exponential
    response times with its own mean; parts with a mean of `TIMEOUT` are not answered earlier."""
    parts: dict[float, float] = {}
    for amount, mean in means:
        parts[round(mean, 4)] = parts.get(round(mean, 4), 0.0) + amount
    allowed = (1 - share) * math.fsum(parts.values())
    low, high = 0.0, TIMEOUT
    while high - low > 1e-4:
        at = (low + high) / 2
        late = sum(
            amount * (1.0 if mean >= TIMEOUT else math.exp(-at / mean)) for mean, amount in parts.items()
        )
        low, high = (at, high) if late > allowed else (low, at)
    return high
