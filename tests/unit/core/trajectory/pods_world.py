"""A closed loop around the decision with pods that hold more than their template: sidecars that a webhook injects,
native sidecars, containers without a request that a LimitRange gives one, requests of the pods themselves.

HPA and VPA are the exact models of `hvpa.recommend`. A change of the template replaces all pods at once; what is new is
measured a minute later.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from builders import build
from hvpa.api.objects.read_models import Hpa, MetricName, ObjectReference, Pod, Vpa
from hvpa.api.values.quantity import Resource
from hvpa.core import Decision, Objects, decide, observe
from hvpa.core.model import Settings
from hvpa.core.workload.containers import amount
from hvpa.recommend.hpa.controller import HorizontalAutoscaler, MetricsError, PodReading, Scale
from hvpa.recommend.vpa.recommender import VerticalRecommender

STEP, LATER, FIRST_HOURS = dt.timedelta(seconds=60), dt.timedelta(minutes=5), dt.timedelta(hours=8)
"""How often all of them look: each minute of the first hours, later less often, which changes nothing but the time that
a test takes."""
MEASURED_AFTER = dt.timedelta(seconds=60)
"""From a pod's start until its usage is known."""
WINDOW = dt.timedelta(seconds=30)
MIB = 1024 * 1024
Use = Callable[[dt.timedelta, int], float]
"""Millicores, or MiB, that a container uses, by the time since the start and the number of pods that share the load."""


def shared(total: float) -> Use:
    """A load that pods share."""
    return lambda _, pods: total / pods


def each(amount: float) -> Use:
    """What each pod uses, however many there are."""
    return lambda _, pods: amount


@dataclass(frozen=True)
class Part:
    """One container of the pods. `kind`: of the `template`, `injected` by a webhook, or a `native` sidecar. Without a
    `request` the template has none, and pods have `default`, of a LimitRange."""

    name: str
    use: Use
    request: int | None = 500
    kind: str = "template"
    default: int | None = None
    memory: int = 100
    """Its request of memory, in MiB."""
    fills: Use = field(default_factory=lambda: each(80))
    """MiB that it uses."""
    recommended: bool = True
    """Whether a VPA sees it: the recommender has nothing to say of init containers."""


@dataclass
class PodsWorld:
    """One Deployment. `spec` is a change of the usual joint Hvpa, `whole` a CPU request of the pods themselves."""

    parts: Sequence[Part]
    spec: Mapping[str, Any]
    metric: Mapping[str, Any]
    replicas: int = 4
    most: int = 20
    whole: int | None = None
    policies: Sequence[Mapping[str, Any]] = ()
    alone: bool = False
    """Whether the HPA acts by itself, and nothing else does."""
    now: dt.datetime = build.NOW
    pods: dict[str, tuple[dt.datetime, Pod]] = field(default_factory=dict)
    counts: list[tuple[dt.timedelta, int]] = field(default_factory=list)
    templates: list[tuple[dt.timedelta, dict[str, int], dict[str, int]]] = field(default_factory=list)
    last: Decision | None = None
    _serial: int = 0

    def __post_init__(self) -> None:
        self.start = self.now
        template = {"spec": {"minReplicas": 1, "maxReplicas": self.most, "metrics": [dict(self.metric)]}}
        vpa: dict[str, Any] = {"resourcePolicy": {"containerPolicies": list(self.policies)}}
        spec = build.merged(
            {
                "blend": "Trajectory",
                "replicas": self.replicas,
                "weightBasedScalingIntervals": [{"vpaWeight": 50}],
                "hpa": {"template": template},
                "vpa": {"template": {"spec": vpa}},
            },
            self.spec,
        )
        seen = build.objects(
            build.hvpa(spec),
            build.workload(self.replicas, self._template()),
            build.hpa(self.replicas, None, replicas=self.replicas),
            build.vpa(
                change={
                    "metadata": {"creationTimestamp": build.stamp(self.now)},
                    "status": {"conditions": [], "recommendation": None},
                }
            ),
            (),
        )
        self.seen: Objects = build.settled(seen, self.now)
        self.hpa, self.vpa = HorizontalAutoscaler(), VerticalRecommender()

    # --- what is asked of it -----------------------------------------------------------------------------------------
    def run(self, duration: dt.timedelta) -> PodsWorld:
        """Let so much time pass."""
        until = self.now + duration
        while self.now < until:
            self._follow()
            self._recommend()
            self._decide()
            self.now += STEP if self.now - self.start < FIRST_HOURS else LATER
        return self

    def requests_of(self, resource: Resource) -> dict[str, int]:
        """Requests of the template, by container; 0 where there is none."""
        assert self.seen.workload is not None
        containers = self.seen.workload.spec.template.spec.containers
        return {one.name: amount(one.resources.requests, resource) or 0 for one in containers}

    @property
    def requests(self) -> dict[str, int]:
        """CPU requests of the template."""
        return self.requests_of("cpu")

    @property
    def memory(self) -> dict[str, int]:
        """Memory requests of the template, in whole MiB."""
        return {name: size // MIB for name, size in self.requests_of("memory").items()}

    @property
    def count(self) -> int:
        """Replicas of the workload."""
        assert self.seen.workload is not None
        return self.seen.workload.spec.replicas

    def changed_since(self, since: dt.timedelta) -> list[dt.timedelta]:
        """When counts and templates were set since then."""
        times = [when for when, _ in self.counts] + [when for when, *_ in self.templates]
        return [when for when in times if when >= since]

    # --- its parts ---------------------------------------------------------------------------------------------------
    def _template(self) -> list[dict[str, Any]]:
        return [self._container(one, one.request) for one in self.parts if one.kind == "template"]

    def _container(self, part: Part, cpu: int | None) -> dict[str, Any]:
        requests = {"memory": f"{part.memory}Mi"} | ({} if cpu is None else {"cpu": f"{cpu}m"})
        return build.container(part.name, requests)

    def _follow(self) -> None:
        """The Deployment's controller, the webhook and the LimitRange: pods of the present template."""
        assert self.seen.workload is not None
        template = self.seen.workload.spec.template.spec.containers
        kinds = {one.name: one for one in self.parts}
        containers = []
        for one in msgspec.to_builtins(template):
            default = kinds[one["name"]].default
            if default is not None and "cpu" not in one["resources"]["requests"]:
                one["resources"]["requests"]["cpu"] = f"{default}m"
            containers.append(one)
        containers += [self._container(one, one.request) for one in self.parts if one.kind == "injected"]
        native = [
            {**self._container(one, one.request), "restartPolicy": "Always"}
            for one in self.parts
            if one.kind == "native"
        ]
        spec: dict[str, Any] = {"containers": containers, "initContainers": native}
        if self.whole is not None:
            spec["resources"] = {"requests": {"cpu": f"{self.whole}m"}}
        wanted = build.pod(change={"spec": spec}).spec
        self.pods = {name: one for name, one in self.pods.items() if one[1].spec == wanted}
        for name in list(self.pods)[self.count :]:
            self._forget(name)
        while len(self.pods) < self.count:
            self._serial += 1
            name, since = f"web-{self._serial}", build.stamp(self.now)
            status = {
                "startTime": since,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
            }
            self.pods[name] = self.now, build.pod(name, change={"spec": spec, "status": status})
        self.seen = replace(self.seen, pods=tuple(pod for _, pod in self.pods.values()))

    def _forget(self, name: str) -> None:
        del self.pods[name]
        self.vpa.forget(name)

    def used(self, part: Part) -> tuple[float, float]:
        """What one container uses now: millicores, bytes."""
        since, pods = self.now - self.start, len(self.pods)
        return part.use(since, pods), part.fills(since, pods) * MIB

    # --- hvpa.recommend.hpa.controller.Metrics -----------------------------------------------------------------------
    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        """What the pods use that have been there long enough."""
        parts = [one for one in self.parts if container in ("", one.name)]
        cpu, memory = (sum(amounts) for amounts in zip(*[self.used(one) for one in parts], strict=True))
        value = round(cpu) if resource == "cpu" else round(memory) * 1000
        reading = PodReading(value, self.now, WINDOW)
        return {name: reading for name, (since, _) in self.pods.items() if self.now - since >= MEASURED_AFTER}

    def pods_metric(self, metric: MetricName) -> Mapping[str, PodReading]:
        """There is none."""
        raise MetricsError("none")

    def object(self, metric: MetricName, described: ObjectReference) -> int:
        """There is none."""
        raise MetricsError("none")

    def external(self, metric: MetricName) -> Sequence[int]:
        """There is none."""
        raise MetricsError("none")

    # --- turns -------------------------------------------------------------------------------------------------------
    def _recommend(self) -> None:
        """One turn of the HPA and of the VPA."""
        at = self.now.timestamp()
        for name, (since, _) in self.pods.items():
            for part in self.parts:
                if part.recommended:
                    known = self.now - since >= MEASURED_AFTER
                    cpu, memory = self.used(part)
                    if known:
                        self.vpa.add_sample(name, part.name, at, cpu / 1000, memory)
                    else:
                        self.vpa.add_sample(name, part.name, at, None, None)
        (hpa,), (vpa,) = self.seen.hpas, self.seen.vpas
        assert self.seen.hvpa.spec is not None
        scale = Scale(self.seen.hvpa.spec.replicas or 1, self.count, "app=web")
        metrics: Any = _Metrics(self)
        outcome = self.hpa.sync(hpa, scale, self.seen.pods, metrics, self.now)
        new_hpa: Hpa = msgspec.structs.replace(hpa, status=outcome.status)
        new_vpa: Vpa = msgspec.structs.replace(vpa, status=self.vpa.recommend(vpa, self.now))
        self.seen = replace(self.seen, hpas=(new_hpa,), vpas=(new_vpa,))
        if outcome.replicas is not None:
            self._write_mailbox(outcome.replicas)

    def _write_mailbox(self, count: int) -> None:
        assert self.seen.hvpa.spec is not None
        spec = self.seen.hvpa.spec.model_copy(update={"replicas": count})
        self.seen = replace(self.seen, hvpa=replace(self.seen.hvpa, spec=spec))

    def _decide(self) -> None:
        before, count = (self.requests, self.memory), self.count
        if self.alone:
            assert self.seen.hvpa.spec is not None
            target = build.workload(self.seen.hvpa.spec.replicas or 1, self._template())
            self.seen = replace(self.seen, workload=target)
        else:
            self.last = decide(observe(self.seen, self.now, Settings()))
            self.seen = build.apply(self.seen, self.last)
        since = self.now - self.start
        if self.count != count:
            self.counts.append((since, self.count))
        if (self.requests, self.memory) != before:
            self.templates.append((since, self.requests, self.memory))


class _Metrics:
    """`hvpa.recommend.hpa.controller.Metrics`, whose `pods` is the world's own."""

    def __init__(self, world: PodsWorld) -> None:
        self.resource = world.resource
        self.pods = world.pods_metric
        self.object = world.object
        self.external = world.external
