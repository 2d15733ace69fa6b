"""The VPA's updater: which pods it evicts in one loop, so that the webhook can give their successors other resources,
and which it resizes in mode InPlaceOrRecreate (vertical-pod-autoscaler 1.8.1,
`pkg/updater/{logic,priority,restriction}`). It is held against the real updater (`tests/recorded`).

Times in seconds of the simulation, CPU in millicores, memory in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from hvpa.api.objects.read_models import Vpa
from hvpa.api.values.duration import HOUR
from hvpa.api.values.quantity import CPU, Resource
from hvpa.core.model import ResourceRequirements
from hvpa.simulate.cluster.state import SimPod
from hvpa.simulate.policy.admission import Recommended, recommended, update_mode

IN_PLACE_OR_RECREATE: Final = "InPlaceOrRecreate"
ACTING_MODES: Final = frozenset({"Recreate", "Auto", IN_PLACE_OR_RECREATE})
"""Modes in which running pods are changed; `Initial` and `Off` leave them alone."""
DEFERRED_TIMEOUT: Final = 300.0
"""Seconds after which a deferred resize counts as failed: `DeferredResizeUpdateTimeout`
(`pkg/updater/restriction/pods_inplace_restriction.go`)."""
Decision = Literal["approved", "deferred", "evict"]


@dataclass(frozen=True, slots=True)
class UpdaterSettings:
    """The updater's flags with their defaults; times in seconds, fractions of 1."""

    min_replicas: int = 2
    """`--min-replicas`: with fewer live pods none is changed. A VPA's own `minReplicas` goes before."""
    eviction_tolerance: float = 0.5
    """`--eviction-tolerance`: the fraction of the replicas that may be missing at once."""
    update_threshold: float = 0.1
    """`--pod-update-threshold`: inside the recommended range, a smaller relative change is not worth an eviction."""
    pod_lifetime: float = 12 * HOUR
    """`--in-recommendation-bounds-eviction-lifetime-threshold`: nor is a pod younger than this."""
    evict_after_oom: float = 600.0
    """`--evict-after-oom-threshold`: an OOM within this time of the container's start counts, for as long."""


class Priority(NamedTuple):
    """How much a pod should be changed; pods that grow come first, then those that change most."""

    scale_up: bool
    difference: float
    """Change of all requests relative to what they are, summed over the resources."""
    outside_range: bool


def live_pods(pods: Iterable[SimPod]) -> list[SimPod]:
    """Those that count: with a node, and not being deleted. Pods of a simulation run as soon as they have a
    node, and never finish."""
    return [pod for pod in pods if pod.node is not None and pod.deleted is None]


def by_priority(pods: Iterable[SimPod], vpa: Vpa, now: float, settings: UpdaterSettings) -> list[SimPod]:
    """Those of the pods that need other resources, by priority (`getPodsUpdateOrder`). Raises `QuantityError`."""
    priorities: dict[int, Priority] = {}  # of pods that share their resources, as those of one template do
    wanted: list[tuple[Priority, SimPod]] = []
    for pod in pods:
        priority = priorities.get(id(pod.resources))
        if priority is None:
            priority = priority_of(pod.resources, recommended(pod.resources, vpa))
            priorities[id(pod.resources)] = priority
        if _is_due(pod, priority, vpa, now, settings):
            wanted.append((priority, pod))
    wanted.sort(key=lambda one: one[0][:2], reverse=True)
    return [pod for _, pod in wanted]


class Budget:
    """How many of a workload's pods may still be taken away, or resized (`restriction.singleGroupStats`)."""

    def __init__(self, live: Sequence[SimPod], replicas: int, tolerance: float) -> None:
        self._replicas = replicas
        self._tolerance = int(replicas * tolerance)
        self._running = len(live)
        self.spent = 0
        """Evictions and resizes so far."""

    @property
    def allows(self) -> bool:
        """Whether one more pod may be evicted (or resized): as long as enough stay; where the tolerance is less than
        one pod, one of them while all run."""
        if self._running - self.spent > self._replicas - self._tolerance:
            return True
        return self._tolerance == 0 and self.spent == 0 and self._running == self._replicas


def _is_due(pod: SimPod, priority: Priority, vpa: Vpa, now: float, settings: UpdaterSettings) -> bool:
    """Whether a pod of this priority needs the change that its eviction brings."""
    if _quick_oom(pod, vpa, now, settings.evict_after_oom):
        return priority.difference != 0.0
    if priority.outside_range:
        return True
    if pod.started is None or now < pod.started + settings.pod_lifetime:
        return False
    return priority.difference >= settings.update_threshold


def priority_of(resources: Mapping[str, ResourceRequirements], found: Mapping[str, Recommended]) -> Priority:
    """How far a pod's requests are from what is recommended for it. A missing request counts as 0, and as outside of
    the range."""
    requested: dict[Resource, int] = {}
    wanted: dict[Resource, int] = {}
    scale_up = outside = False
    for name, own in resources.items():
        if name not in found:
            continue
        one = found[name]
        for resource, target in one.target.items():
            request = own.requests.get(resource)
            wanted[resource] = wanted.get(resource, 0) + target
            requested[resource] = requested.get(resource, 0) + (request or 0)
            scale_up = scale_up or request is None or target > request
            outside = outside or request is None or _is_outside(request, resource, one)
    difference = sum(_relative(resource, requested[resource], wanted[resource]) for resource in wanted)
    return Priority(scale_up, float(difference), outside)


def _is_outside(request: int, resource: Resource, one: Recommended) -> bool:
    return request < one.lower.get(resource, request) or request > one.upper.get(resource, request)


def _relative(resource: Resource, requested: int, wanted: int) -> float:
    """The relative change, computed in thousandths of a core or byte as the updater does."""
    milli = 1 if resource == CPU else 1000
    base = max(float(requested * milli), 1.0)
    return abs(base - float(wanted * milli)) / base


def _quick_oom(pod: SimPod, vpa: Vpa, now: float, threshold: float) -> bool:
    """Whether a container was OOMKilled soon after its start, and lately. One whose policy is Off does not count."""
    for container in pod.containers:
        if container.oom_at is None or container.oom_started is None:
            continue
        ran, ago = container.oom_at - container.oom_started, now - container.oom_at
        if ran < threshold and ago < threshold and vpa.spec.policy(container.name).mode != "Off":
            return True
    return False


class Updates(NamedTuple):
    """What one loop does: pods to resize in place, and pods to evict, each in this order."""

    resize: list[SimPod]
    evict: list[SimPod]


class Updater:
    """The updater of one VPA, with what it remembers of the pods between its loops."""

    def __init__(self, settings: UpdaterSettings | None = None) -> None:
        self._settings = settings or UpdaterSettings()
        self._seen: dict[str, float] = {}
        """When a pod of this name was first seen with a resize that waits; never forgotten, as in the updater
        (`lastInPlaceAttemptTimeMap`): a later one may be given up at once."""

    def loop(
        self,
        pods: Sequence[SimPod],
        vpa: Vpa,
        replicas: int,
        now: float,
        is_refused: Callable[[SimPod], bool],
    ) -> Updates:
        """What is done now (`RunOnce`). `replicas` is the workload's configured count; `is_refused`: whether the API
        server would not change a pod so, whereupon the pod is evicted.

        Among equal priorities the order of `pods` counts (Go's sort leaves it open for more than a dozen). Of the VPA's
        `updatePolicy`, `evictionRequirements` are not read. Raises `QuantityError` for a quantity of
        the VPA that is none.
        """
        updates = Updates([], [])
        live, mode = live_pods(pods), update_mode(vpa)
        if mode not in ACTING_MODES or vpa.status.recommendation is None:
            return updates
        if len(live) < self._min_replicas(vpa) or replicas == 0:
            return updates
        budget = Budget(live, replicas, self._settings.eviction_tolerance)
        able = [pod for pod in live if self._decide(pod, budget, now) != "deferred"]
        wanted = by_priority(able, vpa, now, self._settings)
        if mode == IN_PLACE_OR_RECREATE:
            wanted = self._resize(wanted, budget, now, is_refused, updates)
        for pod in wanted:
            if self._decide(pod, budget, now) != "deferred":
                budget.spent += 1
                updates.evict.append(pod)
        return updates

    def _min_replicas(self, vpa: Vpa) -> int:
        policy = vpa.spec.update_policy
        own = policy.min_replicas if policy is not None else None
        return self._settings.min_replicas if own is None else own

    def _resize(
        self,
        wanted: Sequence[SimPod],
        budget: Budget,
        now: float,
        is_refused: Callable[[SimPod], bool],
        updates: Updates,
    ) -> list[SimPod]:
        """Note those that are resized; the pods that have to be evicted instead."""
        given_up: list[SimPod] = []
        for pod in wanted:
            decision = self._decide(pod, budget, now)
            if decision == "evict" or (decision == "approved" and is_refused(pod)):
                given_up.append(pod)
            elif decision == "approved":
                budget.spent += 1
                updates.resize.append(pod)
        return given_up

    def _decide(self, pod: SimPod, budget: Budget, now: float) -> Decision:
        """What may be done with the pod (`CanInPlaceUpdate`, `CanEvict`)."""
        if pod.resize is not None and pod.resize.state:  # the kubelet has not reported on others yet
            first = self._seen.setdefault(pod.name, now)
            waited = pod.resize.state == "Deferred" and now - first <= DEFERRED_TIMEOUT
            return "evict" if budget.allows and not waited else "deferred"
        return "approved" if budget.allows else "deferred"
