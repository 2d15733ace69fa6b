"""The VPA's updater: selects the pods to evict in a loop, so that the webhook sets the resources of the new pods, and
the pods to resize in mode InPlaceOrRecreate (vertical-pod-autoscaler 1.8.1,
`pkg/updater/{logic,priority,restriction}`). `tests/recorded` compares it with the real updater.

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
from hvpa_lab.simulate.cluster.state import SimPod
from hvpa_lab.simulate.policy.admission import RecommendedRequests, recommended, update_mode

IN_PLACE_OR_RECREATE: Final = "InPlaceOrRecreate"
ACTING_MODES: Final = frozenset({"Recreate", "Auto", IN_PLACE_OR_RECREATE})
"""Modes in which the updater changes running pods. `Initial` and `Off` do not."""
DEFERRED_TIMEOUT: Final = 300.0
"""Seconds after which a deferred resize counts as failed: `DeferredResizeUpdateTimeout`
(`pkg/updater/restriction/pods_inplace_restriction.go`)."""
EvictionDecision = Literal["approved", "deferred", "evict"]


@dataclass(frozen=True, slots=True)
class UpdaterSettings:
    """The updater's flags with their defaults. Times in seconds, fractions of 1."""

    min_replicas: int = 2
    """`--min-replicas`: minimum live pods for any change. A VPA's own `minReplicas` has precedence."""
    eviction_tolerance: float = 0.5
    """`--eviction-tolerance`: fraction of the replicas that may be missing at once."""
    update_threshold: float = 0.1
    """`--pod-update-threshold`: minimum relative change of a pod whose requests are inside the recommended range."""
    pod_lifetime: float = 12 * HOUR
    """`--in-recommendation-bounds-eviction-lifetime-threshold`: minimum age of such a pod."""
    evict_after_oom: float = 600.0
    """`--evict-after-oom-threshold`: maximum time from the container's start to the OOM, and from the OOM until now."""


class Priority(NamedTuple):
    """A pod's priority: pods with an increase come first, then pods with the largest change."""

    scale_up: bool
    difference: float
    """Relative change of the pod's requests, summed over the resources."""
    outside_range: bool
    """Whether a request is outside the recommended range."""


def live_pods(pods: Iterable[SimPod]) -> list[SimPod]:
    """The pods that have a node and are not being deleted. Simulated pods run as soon as they have a node, and never
    finish."""
    return [pod for pod in pods if pod.node is not None and pod.deleted is None]


def by_priority(pods: Iterable[SimPod], vpa: Vpa, now: float, settings: UpdaterSettings) -> list[SimPod]:
    """The pods that need other resources, by priority (`getPodsUpdateOrder`). Raises `QuantityError`."""
    priorities: dict[int, Priority] = {}  # by id of pod.resources, which pods of a template share
    wanted: list[tuple[Priority, SimPod]] = []
    for pod in pods:
        priority = priorities.get(id(pod.resources))
        if priority is None:
            priority = priority_of(pod.resources, recommended(pod.resources, vpa))
            priorities[id(pod.resources)] = priority
        if _is_due(pod, priority, vpa, now, settings):
            wanted.append((priority, pod))
    wanted.sort(key=lambda entry: entry[0][:2], reverse=True)
    return [pod for _, pod in wanted]


class DisruptionBudget:
    """Counts how many of a workload's pods may still be evicted or resized (`restriction.singleGroupStats`)."""

    def __init__(self, live: Sequence[SimPod], replicas: int, tolerance: float) -> None:
        self._replicas = replicas
        self._tolerance = int(replicas * tolerance)
        self._running = len(live)
        self.spent = 0
        """Evictions and resizes so far."""

    @property
    def allows(self) -> bool:
        """Whether another pod may be evicted or resized: as long as enough pods stay. If the tolerance is less than a
        pod, a single pod may be, while all pods run."""
        if self._running - self.spent > self._replicas - self._tolerance:
            return True
        return self._tolerance == 0 and self.spent == 0 and self._running == self._replicas


def _is_due(pod: SimPod, priority: Priority, vpa: Vpa, now: float, settings: UpdaterSettings) -> bool:
    """Whether the updater must change a pod of this priority now."""
    if _quick_oom(pod, vpa, now, settings.evict_after_oom):
        return priority.difference != 0.0
    if priority.outside_range:
        return True
    if pod.started is None or now < pod.started + settings.pod_lifetime:
        return False
    return priority.difference >= settings.update_threshold


def priority_of(
    resources: Mapping[str, ResourceRequirements], recommendations: Mapping[str, RecommendedRequests]
) -> Priority:
    """The priority of a pod with these resources under the `recommendations`. A missing request counts as 0, and as
    outside the range."""
    requested: dict[Resource, int] = {}
    wanted: dict[Resource, int] = {}
    scale_up = outside = False
    for name, requirements in resources.items():
        if name not in recommendations:
            continue
        recommendation = recommendations[name]
        for resource, target in recommendation.target.items():
            request = requirements.requests.get(resource)
            wanted[resource] = wanted.get(resource, 0) + target
            requested[resource] = requested.get(resource, 0) + (request or 0)
            scale_up = scale_up or request is None or target > request
            outside = outside or request is None or _is_outside(request, resource, recommendation)
    difference = sum(_relative(resource, requested[resource], wanted[resource]) for resource in wanted)
    return Priority(scale_up, float(difference), outside)


def _is_outside(request: int, resource: Resource, bounds: RecommendedRequests) -> bool:
    return request < bounds.lower.get(resource, request) or request > bounds.upper.get(resource, request)


def _relative(resource: Resource, requested: int, wanted: int) -> float:
    """The relative change, calculated in thousandths of a core or byte as in the updater."""
    milli = 1 if resource == CPU else 1000
    base = max(float(requested * milli), 1.0)
    return abs(base - float(wanted * milli)) / base


def _quick_oom(pod: SimPod, vpa: Vpa, now: float, threshold: float) -> bool:
    """Whether a container was recently OOMKilled, soon after its start. Containers whose policy is Off do not count."""
    for container in pod.containers:
        if container.oom_at is None or container.oom_started is None:
            continue
        ran, ago = container.oom_at - container.oom_started, now - container.oom_at
        if ran < threshold and ago < threshold and vpa.spec.policy(container.name).mode != "Off":
            return True
    return False


class Updates(NamedTuple):
    """The result of a loop: pods to resize in place and pods to evict, each by priority."""

    resize: list[SimPod]
    evict: list[SimPod]


class Updater:
    """The updater of a VPA, with its state between loops."""

    def __init__(self, settings: UpdaterSettings | None = None) -> None:
        self._settings = settings or UpdaterSettings()
        self._pending_since: dict[str, float] = {}
        """Time when a loop first found a pending resize at a pod of this name. As in the updater
        (`lastInPlaceAttemptTimeMap`), entries are never removed, so a later resize may time out at once."""

    def loop(
        self,
        pods: Sequence[SimPod],
        vpa: Vpa,
        replicas: int,
        now: float,
        is_refused: Callable[[SimPod], bool],
    ) -> Updates:
        """The pods to change now (`RunOnce`). `replicas` is the workload's configured count. `is_refused` returns
        whether the API server refuses to resize a pod; the updater evicts it then.

        Pods of equal priority keep the order of `pods` (Go's sort leaves it open for more than a dozen). The VPA's
        `evictionRequirements` are not supported. Raises `QuantityError` if the VPA has an invalid quantity.
        """
        updates = Updates([], [])
        live, mode = live_pods(pods), update_mode(vpa)
        if mode not in ACTING_MODES or vpa.status.recommendation is None:
            return updates
        if len(live) < self._min_replicas(vpa) or replicas == 0:
            return updates
        budget = DisruptionBudget(live, replicas, self._settings.eviction_tolerance)
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
        minimum = policy.min_replicas if policy is not None else None
        return self._settings.min_replicas if minimum is None else minimum

    def _resize(
        self,
        wanted: Sequence[SimPod],
        budget: DisruptionBudget,
        now: float,
        is_refused: Callable[[SimPod], bool],
        updates: Updates,
    ) -> list[SimPod]:
        """Add pods to `updates.resize`; returns the pods that must be evicted instead."""
        given_up: list[SimPod] = []
        for pod in wanted:
            decision = self._decide(pod, budget, now)
            if decision == "evict" or (decision == "approved" and is_refused(pod)):
                given_up.append(pod)
            elif decision == "approved":
                budget.spent += 1
                updates.resize.append(pod)
        return given_up

    def _decide(self, pod: SimPod, budget: DisruptionBudget, now: float) -> EvictionDecision:
        """Whether the pod may be changed: now, only later, or only by eviction (`CanInPlaceUpdate`, `CanEvict`)."""
        if pod.resize is not None and pod.resize.state:  # an empty state: the kubelet has not reported yet
            first = self._pending_since.setdefault(pod.name, now)
            waited = pod.resize.state == "Deferred" and now - first <= DEFERRED_TIMEOUT
            return "evict" if budget.allows and not waited else "deferred"
        return "approved" if budget.allows else "deferred"
