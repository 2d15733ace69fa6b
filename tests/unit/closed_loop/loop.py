"""The loop: the operator's own reconciler over a cluster in memory, the exact HPA and VPA, and virtual time.

Time goes from one instant at which anything can happen to the next. The HPA looks every 15 seconds, as in a cluster,
but only in the minutes after a change of what it looks at: later it finds what it found before. The VPA takes a sample
of each container every five minutes, not every minute: all samples weigh the same, so its percentiles are the same.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec

from builders import build
from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import (
    Hpa,
    Meta,
    MetricName,
    ObjectReference,
    Pod,
    Vpa,
    VpaStatusRead,
    Workload,
)
from hvpa.api.values.quantity import Resource, parse_resource
from hvpa.core.model import (
    Decision,
    Event,
    FastUsage,
    MetricValue,
    Objects,
    OwnedChange,
    PodCost,
    PodResize,
    Settings,
    WorkloadPatch,
)
from hvpa.recommend.hpa import inputs
from hvpa.recommend.hpa.pods import requests_of
from hvpa.reconcile.ports import Conflict, Key, Refused, ResizeFailures, SizeChanges, WriteError
from hvpa.reconcile.reconciler import Reconciler
from hvpa.reconcile.telemetry import Silent
from hvpa_lab.recommend.hpa.controller import HorizontalAutoscaler, MetricsError, PodReading, Scale
from hvpa_lab.recommend.vpa.recommender import VerticalRecommender
from hvpa_lab.simulate.cluster.objects import raw
from hvpa_lab.simulate.cluster.port import VirtualClock, owned_meta
from hvpa_lab.simulate.policy.hvpa import run_to_end
from tests.unit.closed_loop.loads import Load
from tests.unit.closed_loop.workload import DEFAULT_REQUESTS, Deployment, Fate, Running, Shape, instant

Usage = Mapping[str, Mapping[str, tuple[float, int]]]
"""Millicores and bytes by pod and container."""
HPA_PERIOD = 15.0
HPA_LOOKS = 360.0
"""Seconds after a change of pods: their CPU initialization period (300 s) and a metric window more."""
HPA_LOOKS_AT_LOAD = 60.0
"""The same after a change of the load or of `spec.replicas` alone: metrics are two periods old at most."""
VPA_PERIOD = 300.0
WINDOW = dt.timedelta(seconds=30)
MEASURED_AFTER = 30.0
"""Seconds until a new pod has metrics."""
TOLERATED = 1.1 + 0.02
"""The HPA's tolerance, and the percent that a utilization is cut off by."""
MOST_AT_ONCE = 30
"""Reconciles at one instant after which something is written again and again."""


@dataclass(frozen=True)
class Write:
    """A change of the workload: counts before and after, and requests before and after by container."""

    at: float
    replicas: tuple[int, int]
    requests: tuple[Mapping[str, Any], Mapping[str, Any]]
    load: float
    serves: int
    """How many replicas serve the load at the HPA's target."""

    @property
    def is_horizontal(self) -> bool:
        return self.replicas[0] != self.replicas[1]

    @property
    def is_vertical(self) -> bool:
        return self.requests[0] != self.requests[1]

    def __repr__(self) -> str:
        hours = f"{self.at / 3600:.2f}h"
        sizes = f" {_short(self.requests[0])} -> {_short(self.requests[1])}" if self.is_vertical else ""
        return f"{hours}: {self.replicas[0]} -> {self.replicas[1]} (serves {self.serves}){sizes}"


def _short(requests: Mapping[str, Any]) -> str:
    return "/".join(
        f"{amounts.get('cpu', '-')},{amounts.get('memory', '-')}" for amounts in requests.values()
    )


@dataclass(frozen=True)
class Decided:
    """A decision that was made."""

    at: float
    decision: Decision
    workload: Workload | None


class _Telemetry(Silent):
    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        self._loop.decisions.append(Decided(self._loop.now, decision, workload))


@dataclass
class Loop:
    """An Hvpa (`spec` is a change of the usual one) over a workload. `refuses`: no patch of requests gets through."""

    spec: Mapping[str, Any]
    shape: Shape
    load: Load
    fate: Fate = lambda _number, _now: True
    refuses: bool = False
    tolerance: float = 0.1
    """The HPA's own; the operator assumes 0.1."""
    shown: Callable[[float], float] = lambda _now: 1.0
    """How many times the CPU in use the HPA's metrics show at that time."""
    ahead: Callable[[float], float] = lambda _now: 0.0
    """How many seconds the operator's clock is ahead at that time."""
    now: float = 0.0
    writes: list[Write] = field(default_factory=list)
    decisions: list[Decided] = field(default_factory=list)
    desired_replicas_writes: list[float] = field(default_factory=list)
    status_writes: list[float] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deployment = Deployment(self.shape, self.fate)
        self.hvpa = build.hvpa({**self.spec, "replicas": self.shape.replicas})
        assert self.hvpa.spec is not None, self.hvpa.problems
        self.hpa: Hpa | None = None
        self.vpa: Vpa | None = None
        self.key = Key("default", "web")
        self._clock = VirtualClock(build.NOW)
        self._reconciler = Reconciler(self, self._clock, Settings(), _Telemetry(self))
        self._autoscaler = HorizontalAutoscaler(inputs.HpaSettings(tolerance=self.tolerance))
        self._recommender = VerticalRecommender()
        self._known: dict[str, Running] = {}
        self._awake = True
        self._recheck = math.inf
        self._seen: int | None = None
        self._looks_until = HPA_LOOKS
        self._sight: tuple[Any, Any] = (None, None)
        self._measured: Usage = {}
        self._published: Usage = {}
        self._load = self.load.at(0.0)
        self._next_vpa = 0.0
        self._next_hpa = 0.0

    # --- time --------------------------------------------------------------------------------------------------------
    def run(self, until: float) -> Loop:
        """Let time pass until then (seconds since the start)."""
        while self.now < until:
            self._at_once()
            self.now = min(until, self._next())
        return self

    def _next(self) -> float:
        now = self.now
        hpa = self._next_hpa if self._next_hpa <= self._looks_until else math.inf
        recheck = max(self._recheck, now + 0.001)
        return min(hpa, self._next_vpa, recheck, self.load.next_change(now), self.deployment.next_change(now))

    def _at_once(self) -> None:
        now = self.now
        self._clock.instant = instant(now + self.ahead(now))
        self._load = self.load.at(now)
        self.deployment.advance(now)
        self._look_closely()
        if now >= self._next_hpa:
            self._next_hpa = (now // HPA_PERIOD + 1) * HPA_PERIOD
            self._sync_hpa()
        if now >= self._next_vpa:
            self._next_vpa = now + VPA_PERIOD
            self._recommend()
        if self._awake or now >= self._recheck or self.deployment.version != self._seen:
            self._reconcile()
        self._look_closely()

    def _look_closely(self) -> None:
        """Have the HPA look for a while after a change."""
        assert self.hvpa.spec is not None
        pods = self.deployment.version, self.hpa is None, self.shown(self.now)
        sight = pods, (self._load, self.hvpa.spec.replicas)
        if sight == self._sight:
            return
        looks = HPA_LOOKS_AT_LOAD if sight[0] == self._sight[0] else HPA_LOOKS
        self._sight = sight
        self._looks_until = max(self._looks_until, self.now + looks)
        self._next_hpa = max(self._next_hpa, self.now // HPA_PERIOD * HPA_PERIOD)

    # --- the recommenders --------------------------------------------------------------------------------------------
    def usage(self) -> Usage:
        """What each container of each pod uses now; pods that don't serve are idle."""
        each = self._load / max(1, len(self.deployment.ready(self.now)))
        loads = {
            pod.name: each if pod.is_ready(self.now) else 0.0
            for pod in self.deployment.pods
            if self.now - pod.created >= MEASURED_AFTER
        }
        return {
            pod: {
                use.name: (use.millicores(load, self.now), use.memory_used(load)) for use in self.shape.uses
            }
            for pod, load in loads.items()
        }

    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        """The metrics API, as the HPA reads it."""
        pods = {pod.name for pod in self.deployment.pods}
        at = instant(self.now)
        readings = {}
        for name, used in self._published.items():
            if name in pods:
                readings[name] = PodReading(self._value(resource, container, used), at, WINDOW)
        if not readings:
            raise MetricsError("no metrics returned from resource metrics API")
        return readings

    def _value(self, resource: str, container: str, used: Mapping[str, tuple[float, int]]) -> int:
        usages = [usage for name, usage in used.items() if container in ("", name)]
        if resource == "memory":
            return sum(1000 * memory for _, memory in usages)
        return math.ceil(self.shown(self.now) * sum(math.ceil(cpu) for cpu, _ in usages))

    def pods(self, metric: MetricName) -> Mapping[str, PodReading]:
        raise MetricsError("there are no custom metrics")

    def object(self, metric: MetricName, described: ObjectReference) -> int:
        raise MetricsError("there are no custom metrics")

    def external(self, metric: MetricName) -> Sequence[int]:
        raise MetricsError("there are no external metrics")

    def _sync_hpa(self) -> None:
        self._published, self._measured = self._measured, self.usage()
        spec, status = self.hvpa.spec, self.hvpa.status
        if self.hpa is None or spec is None or spec.replicas is None or status.replicas is None:
            return
        scale = Scale(spec.replicas, status.replicas, status.target_selector or "")
        _, pods = self.deployment.read(self.now)
        outcome = self._autoscaler.sync(self.hpa, scale, pods, self, instant(self.now))
        if outcome.replicas is not None:
            self._set_desired_replicas(outcome.replicas)
        if outcome.status != self.hpa.status:
            self.hpa = msgspec.structs.replace(self.hpa, status=outcome.status)
            self._awake = True

    def _recommend(self) -> None:
        if self.vpa is None:
            return
        epoch = build.NOW.timestamp()
        running = {pod.name: pod for pod in self.deployment.pods}
        for name in self._known.keys() - running.keys():
            self._recommender.forget(name)
        self._known = running
        named = [
            use.name for use in self.shape.uses if use.place != "native"
        ]  # it recommends nothing for these
        for pod, used in self.usage().items():
            for name in named:
                cpu, memory = used[name]
                self._recommender.add_sample(pod, name, epoch + self.now, cpu / 1000, float(memory))
        status = self._recommender.recommend(self.vpa, instant(self.now))
        before = self.vpa.status
        if status is before:
            return
        self.vpa = msgspec.structs.replace(self.vpa, status=status)
        if _targets(before) != _targets(status) or before.conditions != status.conditions:
            self._awake = True

    # --- the operator ------------------------------------------------------------------------------------------------
    def _reconcile(self) -> None:
        for _ in range(MOST_AT_ONCE):
            self._awake, self._seen = False, self.deployment.version
            result = run_to_end(self._reconciler.reconcile(self.key))
            if result.outcome == "crashed":
                raise AssertionError(f"{self.now}: {self.hvpa.status.last_error}")
            self._recheck = math.inf if result.wait is None else self.now + result.wait.total_seconds()
            if result.outcome != "done":
                self._recheck = self.now + 60.0  # the queue's back-off
                return
            if not self._awake and self.deployment.version == self._seen:
                return
            self.deployment.advance(self.now)
        raise AssertionError(f"{self.now}: something is written again and again")

    def objects(self, key: Key) -> Objects | None:
        """See the port."""
        workload, pods = self.deployment.read(self.now)
        hpas = () if self.hpa is None else (self.hpa,)
        vpas = () if self.vpa is None else (self.vpa,)
        return Objects(hvpa=self.hvpa, workload=workload, hpas=hpas, vpas=vpas, pods=pods)

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """See the port."""
        if patch.resource_version != str(self.deployment.version):
            raise Conflict("the workload has changed")
        body = cast(Mapping[str, Any], patch.body)
        if "template" in body["spec"]:
            self._validate(body)
        serves = self.serves()
        before, requests = self.deployment.replicas, self.requests()
        self.deployment.patch(body, self.now)
        after = self.deployment.replicas
        self.writes.append(
            Write(
                self.now, (before, after), (requests, self.requests()), self._load, max(serves, self.serves())
            )
        )
        self._awake = True

    def _validate(self, body: Mapping[str, Any]) -> None:
        """What an API server or a webhook refuses: requests are larger in sum than those of the pod as a whole."""
        if self.refuses:
            raise Refused('admission webhook "policy" denied the request: requests are too large')
        spec = self.deployment.patched(body["spec"])
        every = (*spec["containers"], *spec["initContainers"])
        for resource, whole in spec.get("resources", {}).get("requests", {}).items():
            amounts = [container["resources"]["requests"].get(resource, 0) for container in every]
            if sum(parse_resource(cast(Resource, resource), amount) for amount in amounts) > parse_resource(
                cast(Resource, resource), whole
            ):
                what = f"spec.template.spec.resources.requests[{resource}]"
                raise Refused(f"{what}: must be greater than or equal to aggregate container requests")

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """See the port."""

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        """No Hvpa here resizes pods in place."""
        return ()

    async def write_pod_costs(self, hvpa: Meta, costs: Sequence[PodCost]) -> Sequence[WriteError]:
        """No Hvpa here resizes pods in place."""
        return ()

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        """No Hvpa here resizes pods in place."""
        return {}

    def canary_values(
        self, key: Key, metrics: Sequence[RollbackMetric], *, often: bool
    ) -> tuple[MetricValue, ...] | None:
        """No Hvpa here has metrics that judge a canary."""
        return None

    def reported_usage(self, key: Key, pods: Sequence[Pod], above: int) -> FastUsage | None:
        return None

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        """No Hvpa here resizes pods in place."""

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, Any], status: HvpaStatus) -> None:
        """See the port."""
        self.hvpa = replace(self.hvpa, status=status)
        self.status_writes.append(self.now)
        if status.last_error is not None:
            self.errors.append(status.last_error.description)

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        """See the port."""
        self.desired_replicas_writes.append(self.now)
        self._set_desired_replicas(replicas)

    async def give_back(self, hvpa: Meta) -> None:
        """See the port. The Hvpa stays."""

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        """See the port."""
        assert change.action == "apply"
        assert change.manifest is not None
        metadata = owned_meta(change.manifest, instant(self.now))
        spec = raw(cast(Mapping[str, object], change.manifest["spec"]))
        if change.kind == "HorizontalPodAutoscaler":
            self.hpa = Hpa(metadata=metadata, raw_spec=spec)
        else:
            self.vpa = Vpa(metadata=metadata, raw_spec=spec, status=VpaStatusRead())
        self._awake = True

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        """See the port."""
        self.events.append(event.reason)

    def _set_desired_replicas(self, replicas: int) -> None:
        assert self.hvpa.spec is not None
        if self.hvpa.spec.replicas != replicas:
            spec = self.hvpa.spec.model_copy(update={"replicas": replicas})
            self.hvpa = replace(self.hvpa, spec=spec)
            self._awake = True

    # --- what is asked of it -----------------------------------------------------------------------------------------
    def requests(self) -> dict[str, Any]:
        """The template's requests by container."""
        return {
            container["name"]: dict(container["resources"]["requests"])
            for container in self.deployment.template["containers"]
        }

    def vertical(self, since: float = 0.0, until: float = math.inf) -> list[Write]:
        """The changes of requests in that time."""
        return [write for write in self.writes if write.is_vertical and since <= write.at < until]

    def request(self, container: str, resource: Resource = "cpu") -> int:
        """What the template requests for a container, in millicores or bytes; 0 where it requests nothing."""
        return parse_resource(resource, self.requests()[container].get(resource, 0))

    def recommended(self, container: str, resource: Resource = "cpu") -> int:
        """The VPA's target, in millicores or bytes."""
        assert self.vpa is not None
        assert self.vpa.status.recommendation is not None
        recommendations = self.vpa.status.recommendation.container_recommendations or []
        target = next(
            recommendation.target
            for recommendation in recommendations
            if recommendation.container_name == container
        )
        return parse_resource(resource, target[resource])

    def serves(self) -> int:
        """How many replicas of the pods that there are, or of those that are made now, serve the load at the HPA's
        target: what a perfect HPA would want. The largest load of the last minutes counts, since metrics are older."""
        _, pods = self.deployment.read(self.now)
        recently = max(self.load.at(max(0.0, self.now - back)) for back in (0.0, 60.0, 120.0))
        return max(self._needed(pod, recently, 1.0) for pod in (*pods, self.deployment.sample()))

    def is_served(self) -> bool:
        """Whether there are as many replicas of the template's size as serve the load within the HPA's tolerance."""
        return self.deployment.replicas >= self._needed(
            self.deployment.sample(), self.load.at(self.now), TOLERATED
        )

    def _needed(self, pod: Pod, load: float, tolerated: float) -> int:
        assert self.hvpa.spec is not None
        assert self.hvpa.spec.hpa.template.spec is not None
        bounds = self.hvpa.spec.hpa.template.spec
        least, most = bounds.min_replicas or 1, bounds.max_replicas
        counts = [least]
        for metric in self.targets():
            capacity = metric.capacity(pod) * tolerated - metric.base(self.shape)
            share = metric.share(self.shape)
            counts.append(most if capacity <= 0 else math.ceil(load * share / capacity - 1e-9))
        return min(most, max(counts))

    def targets(self) -> list[Target]:
        """The HPA's CPU metrics."""
        assert self.hvpa.spec is not None
        joint = self.hvpa.spec.joint
        first = sum(
            parse_resource("cpu", DEFAULT_REQUESTS["cpu"]) if use.cpu is None else use.cpu
            for use in self.shape.uses
        )
        targets = []
        for metric in build.merged(build.SPEC, self.spec)["hpa"]["template"]["spec"]["metrics"]:
            source = metric.get("resource") or metric["containerResource"]
            targets.append(Target(source["target"], source.get("container", ""), first if joint else 0))
        return targets


@dataclass(frozen=True)
class Target:
    """What an HPA's CPU metric wants a pod to use at most. An absolute one is meant for pods as they are `first` where
    both axes are solved together (DESIGN 5.4)."""

    target: Mapping[str, Any]
    container: str
    first: int
    """What a pod requested then, in millicores; 0 where that does not matter."""

    def capacity(self, pod: Pod) -> float:
        """In millicores."""
        if "averageUtilization" in self.target:
            request = requests_of([pod], self.container, "cpu")[pod.metadata.name]
            return request * float(self.target["averageUtilization"]) / 100
        value = float(str(self.target["averageValue"]).removesuffix("m"))
        if not self.first:
            return value
        containers = msgspec.structs.replace(pod.spec, resources=None)
        now = requests_of([msgspec.structs.replace(pod, spec=containers)], self.container, "cpu")
        return value * now[pod.metadata.name] / max(self.first, value)

    def base(self, shape: Shape) -> float:
        """What an idle pod uses of it."""
        return sum(use.base for use in shape.uses if self.container in ("", use.name))

    def share(self, shape: Shape) -> float:
        """What of the load it measures."""
        return sum(use.share for use in shape.uses if self.container in ("", use.name))


def _targets(status: VpaStatusRead) -> list[tuple[object, ...]]:
    recommendations = (
        status.recommendation.container_recommendations if status.recommendation is not None else None
    )
    return [
        (recommendation.container_name, recommendation.target, recommendation.uncapped_target)
        for recommendation in recommendations or ()
    ]
