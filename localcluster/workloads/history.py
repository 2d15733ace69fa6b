"""Two made-up weeks of a Deployment `web` in namespace `shop`, as cAdvisor and kube-state-metrics report them: the load
has a daily pattern, and an HPA on CPU at 70 percent follows the load. The usage of a pod is known exactly."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

DAYS: Final = 14
EVERY: Final = 120
"""Seconds between two samples."""
CPU_BASE, CPU_PER_UNIT = 0.015, 0.001
"""Cores for each pod, and for each request per second."""
MEMORY_BASE, MEMORY_PER_UNIT = 40 * 2**20, 0.4 * 2**20
"""Bytes."""
POD_CPU: Final = 0.1
"""Cores that each pod requests."""
MOST: Final = 12
THROTTLED: Final = 0.9
"""Share of the CPU periods in which a start is throttled."""


def load(at: int) -> float:
    """Requests per second: 40 to 360, and three fifths of that at weekends."""
    day = 200 - 160 * math.cos(2 * math.pi * ((at % 86400) / 86400 - 0.1))
    return day * (0.6 if at // 86400 % 7 in (2, 3) else 1.0) * random.Random(at).uniform(0.95, 1.05)


def _rows(end: int, days: int) -> list[tuple[int, int]]:
    """Each time, and the number of replicas."""
    times = range(end - days * 86400, end, EVERY)
    return list(zip(times, _replicas(times), strict=True))


def _replicas(times: range) -> list[int]:
    """Pods at each time; a pod is removed when it was not needed for six minutes."""
    wanted: list[int] = []
    count = 2
    counts = []
    for at in times:
        needed = math.ceil((CPU_BASE * count + CPU_PER_UNIT * load(at)) / (0.7 * POD_CPU))
        wanted = [*wanted[-2:], min(MOST, max(2, needed))]
        count = max(wanted)
        counts.append(count)
    return counts


def lines(end: int, days: int = DAYS) -> Iterator[str]:
    """OpenMetrics text, metric by metric; the last sample is before `end` (unix seconds)."""
    rows = _rows(end, days)
    yield from _per_pod("container_cpu_usage_seconds_total", 'container="app",image="web"', _cpu, rows)
    yield from _per_pod("container_memory_working_set_bytes", 'container="app",image="web"', _memory, rows)
    yield from _per_pod("kube_pod_owner", 'owner_kind="ReplicaSet",owner_name="web-5c7"', _constant, rows)
    labels = '{namespace="shop",replicaset="web-5c7",owner_kind="Deployment",owner_name="web"}'
    yield from (f"kube_replicaset_owner{labels} 1 {at}" for at, _ in rows)
    ready = 'kube_deployment_status_replicas_ready{namespace="shop",deployment="web"}'
    yield from (f"{ready} {count} {at}" for at, count in rows)
    total = 0.0
    for at, _ in rows:
        total += EVERY * load(at)
        yield f'http_requests_total{{namespace="shop",service="web"}} {total:.3f} {at}'


def starts(end: int, days: int = DAYS) -> Iterator[str]:
    """The starts of the pods: each is throttled in most of its CPU periods until it is ready, and never after that; it
    loses readiness again after five minutes. Another workload's pods start at the same times and are not throttled."""
    rows = _rows(end, days)
    begins = sorted(
        (pod, at - EVERY // 2)
        for (_, before), (at, count) in zip([(0, 0), *rows], rows, strict=False)
        for pod in range(before, count)
    )
    app = 'container="app",image="web"'
    metrics: tuple[tuple[str, str, Start], ...] = (
        ("container_cpu_cfs_throttled_periods_total", app, lambda begin, age, share: share * 10 * EVERY // 2),
        ("container_cpu_cfs_periods_total", app, lambda begin, age, share: age * 10),
        ("container_start_time_seconds", app, lambda begin, age, share: begin),
        ("kube_pod_status_ready", 'condition="true"', lambda begin, age, share: EVERY // 2 < age < 300),
    )
    for metric, labels, value in metrics:
        for name, share in (("web-5c7", THROTTLED), ("other", 0)):
            for pod, begin in begins:
                for age in range(EVERY // 2, 301, EVERY):
                    sample = value(begin, age, share)
                    yield f'{metric}{{namespace="shop",pod="{name}-{pod}",{labels}}} {sample:.0f} {begin + age}'


def recorded(end: int, days: int = DAYS) -> Iterator[str]:
    """The same in the form of recording rules, with the names of docs/init.md."""
    rows = _rows(end, days)
    of_web = '{namespace="shop",workload="web"}'
    of_app = '{namespace="shop",workload="web",container="app"}'
    for at, count in rows:
        yield f"namespace_workload_container:cpu:rate5m{of_app} {CPU_BASE * count + CPU_PER_UNIT * load(at):.4f} {at}"
    for at, count in rows:
        memory = MEMORY_BASE * count + MEMORY_PER_UNIT * load(at)
        yield f"namespace_workload_container:memory{of_app} {memory:.0f} {at}"
    yield from (f"workload:ready:replicas{of_web} {count} {at}" for at, count in rows)
    yield from (
        f'service:requests:rate5m{{namespace="shop",service="web"}} {load(at):.3f} {at}' for at, _ in rows
    )


def renamed(samples: Iterable[str], labels: Mapping[str, str]) -> Iterator[str]:
    """The samples with other label names."""
    for sample in samples:
        for before, after in labels.items():
            sample = re.sub(rf'([{{,]){before}="', rf'\1{after}="', sample)
        yield sample


def without(samples: Iterable[str], begin: int, end: int) -> Iterator[str]:
    """The samples without those from `begin` up to `end` (unix seconds)."""
    return (sample for sample in samples if not begin <= int(sample.rpartition(" ")[2]) < end)


Start = Callable[[int, int, float], float]
"""A sample of a pod that starts, by the time when it began, its age, and the share of throttled periods."""
Value = Callable[[int, int, float], float]
"""A sample of a pod, by the time, the replicas, and the sample before it."""


def _per_pod(metric: str, labels: str, value: Value, rows: Sequence[tuple[int, int]]) -> Iterator[str]:
    for pod in range(MOST):
        before = 0.0
        for at, count in rows:
            before = value(at, count, before) if pod < count else 0.0
            if pod < count:
                yield f'{metric}{{namespace="shop",pod="web-5c7-{pod}",{labels}}} {before:.3f} {at}'


def _cpu(at: int, count: int, before: float) -> float:
    return before + EVERY * (CPU_BASE + CPU_PER_UNIT * load(at) / count)


def _memory(at: int, count: int, before: float) -> float:
    return MEMORY_BASE + MEMORY_PER_UNIT * load(at) / count


def _constant(at: int, count: int, before: float) -> float:
    return 1.0
