"""Two made-up weeks of a Deployment `web` in namespace `shop`, as cAdvisor and kube-state-metrics report them: the load
follows the day, and an HPA on CPU at 70 percent follows the load. What a pod uses is known exactly."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Final

DAYS: Final = 14
EVERY: Final = 120
"""Seconds between two samples."""
CPU_BASE, CPU_PER_UNIT = 0.15, 0.010
"""Cores: of each pod, and of each request per second."""
MEMORY_BASE, MEMORY_PER_UNIT = 400 * 2**20, 4 * 2**20
"""Bytes."""
MOST: Final = 12
_IN: Final = '{namespace="shop",pod="web-5c7-'


def load(at: int) -> float:
    """Requests per second: 40 to 360, and three fifths of that at weekends."""
    day = 200 - 160 * math.cos(2 * math.pi * ((at % 86400) / 86400 - 0.1))
    return day * (0.6 if at // 86400 % 7 in (2, 3) else 1.0) * random.Random(at).uniform(0.95, 1.05)


def _times(end: int) -> range:
    return range(end - DAYS * 86400, end, EVERY)


def _replicas(end: int) -> list[int]:
    """Pods of 1 core at each time; a pod is taken away when it was not needed for six minutes."""
    wanted: list[int] = []
    count = 2
    found = []
    for at in _times(end):
        needed = math.ceil((CPU_BASE * count + CPU_PER_UNIT * load(at)) / 0.7)
        wanted = [*wanted[-2:], min(MOST, max(2, needed))]
        count = max(wanted)
        found.append(count)
    return found


def lines(end: int) -> Iterator[str]:
    """OpenMetrics text, metric by metric; the last sample is before `end` (unix seconds)."""
    times, counts = list(_times(end)), _replicas(end)
    rows = list(zip(times, counts, strict=True))
    for pod in range(MOST):
        total = 0.0
        for at, count in rows:
            if pod < count:
                total += EVERY * (CPU_BASE + CPU_PER_UNIT * load(at) / count)
                yield f'container_cpu_usage_seconds_total{_IN}{pod}",container="app",image="web"}} {total:.3f} {at}'
            else:
                total = 0.0
    for pod in range(MOST):
        for at, count in rows:
            if pod < count:
                used = MEMORY_BASE + MEMORY_PER_UNIT * load(at) / count
                yield f'container_memory_working_set_bytes{_IN}{pod}",container="app",image="web"}} {used:.0f} {at}'
    for pod in range(MOST):
        for at, count in rows:
            if pod < count:
                owner = 'owner_kind="ReplicaSet",owner_name="web-5c7"'
                yield f'kube_pod_owner{_IN}{pod}",{owner}}} 1 {at}'
    labels = '{namespace="shop",replicaset="web-5c7",owner_kind="Deployment",owner_name="web"}'
    yield from (f"kube_replicaset_owner{labels} 1 {at}" for at in times)
    ready = 'kube_deployment_status_replicas_ready{namespace="shop",deployment="web"}'
    yield from (f"{ready} {count} {at}" for at, count in rows)
    total = 0.0
    for at in times:
        total += EVERY * load(at)
        yield f'http_requests_total{{namespace="shop",service="web"}} {total:.3f} {at}'
