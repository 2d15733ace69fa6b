"""Estimates the size of a decision before it is made. Large decisions run in another thread
(`hvpa.reconcile.aside`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol, TypeVar

from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Objects

T = TypeVar("T")

LARGE: Final = 2000
"""Minimum number of parts of a large decision: about 20 ms of CPU (`python -m benchmarks hostile`)."""
OF_POD: Final = 4
"""Parts for a container of a pod: 40 µs if its quantities are not in the cache."""
OF_TEMPLATE: Final = 10
"""Parts for a container of the pod template, with any strategy: 100 µs."""
OF_METRIC: Final = 1000
"""Bytes of an HPA's spec (about five metrics) that add one part to each container of the template."""
OF_CANDIDATE: Final = 3
"""Parts for an HPA or a VPA that may belong to the Hvpa."""
OF_WINDOW: Final = 50
"""Parts for a window or a floor: 500 µs if its schedule must be parsed and searched."""


class RunsAside(Protocol):
    """Runs work outside of the event loop."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[tuple[T, float]]:
        """Returns the result of `work`, and the computing time in seconds."""


def parts(objects: Objects) -> int:
    """Returns the size of a decision about these objects in parts of about 10 µs of CPU, if nothing is cached.

    Example: 3 pods with 2 containers and one maintenance window have 3·2·4 + 2·10 + 50 = 94 parts. An HPA and a VPA add
    6.
    """
    spec, workload = objects.hvpa.spec, objects.workload
    if spec is None or workload is None:
        return 0
    windows = len(spec.maintenance_windows) + len(spec.hpa.schedule)
    intervals = len(spec.weight_based_scaling_intervals)
    if spec.trajectory is not None:
        intervals += len(spec.trajectory.intervals)
    metrics = max([len(hpa.raw_spec) for hpa in objects.hpas], default=0) // OF_METRIC
    containers = (OF_TEMPLATE + intervals + metrics) * len(workload.spec.template.spec.containers)
    candidates = OF_CANDIDATE * (len(objects.hpas) + len(objects.vpas))
    return OF_POD * containers_of(objects.pods) + containers + candidates + OF_WINDOW * windows


def containers_of(pods: Iterable[Pod]) -> int:
    """Returns the number of containers of all pods, by spec or by status, whichever is higher. Counting stops when the
    number makes a decision large."""
    count = 0
    for pod in pods:
        specified = len(pod.spec.containers) + len(pod.spec.init_containers)
        count += max(1, specified, len(pod.status.container_statuses))
        if count * OF_POD >= LARGE:
            break
    return count
