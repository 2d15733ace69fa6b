"""How large a decision is, before it is made: large ones are made aside (`hvpa.reconcile.aside`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol, TypeVar

from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Objects

T = TypeVar("T")

LARGE: Final = 2000
"""Parts of a decision from which on it is made aside: some 20 ms of CPU (`python -m benchmarks hostile`)."""
OF_POD: Final = 4
"""Parts that a container of a pod counts for: 40 µs if its quantities are like no other's."""
OF_TEMPLATE: Final = 10
"""Parts that a container of the pod template counts for, with any strategy: 100 µs."""
OF_METRIC: Final = 1000
"""Bytes of an HPA's spec, those of some five metrics, that add one part to each container of the template."""
OF_CANDIDATE: Final = 3
"""Parts that an HPA or a VPA that may belong to the Hvpa counts for."""
OF_WINDOW: Final = 50
"""Parts that a window or a floor counts for: 500 µs when its schedule is read and searched."""


class RunsAside(Protocol):
    """Runs work somewhere else than in the event loop."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[tuple[T, float]]:
        """The result of `work`, and the seconds of computing that it took."""


def parts(objects: Objects) -> int:
    """How large a decision about these objects is: some 10 µs of CPU for each part, if nothing of it is kept from an
    earlier one.

    Example: 3 pods with 2 containers and one maintenance window come to 3·2·4 + 2·10 + 50 = 94 parts, an HPA and a
    VPA to 6.
    """
    spec, workload = objects.hvpa.spec, objects.workload
    if spec is None or workload is None:
        return 0
    windows = len(spec.maintenance_windows) + len(spec.hpa.schedule)
    intervals = len(spec.weight_based_scaling_intervals)
    if spec.trajectory is not None:
        intervals += len(spec.trajectory.intervals)
    metrics = max([len(one.raw_spec) for one in objects.hpas], default=0) // OF_METRIC
    containers = (OF_TEMPLATE + intervals + metrics) * len(workload.spec.template.spec.containers)
    candidates = OF_CANDIDATE * (len(objects.hpas) + len(objects.vpas))
    return OF_POD * containers_of(objects.pods) + containers + candidates + OF_WINDOW * windows


def containers_of(pods: Iterable[Pod]) -> int:
    """The containers of all pods together, by spec or by status, whichever has more. Counting ends when they are enough
    to make a decision large."""
    count = 0
    for pod in pods:
        specified = len(pod.spec.containers) + len(pod.spec.init_containers)
        count += max(1, specified, len(pod.status.container_statuses))
        if count * OF_POD >= LARGE:
            break
    return count
