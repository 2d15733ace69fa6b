"""A Deployment and its pods: documents as the API server has them, a rollout that takes its time, and what containers
use.

Pods may differ from the pod template, as in real clusters: a webhook injects sidecars, a LimitRange fills in requests,
and pods may have requests as a whole. Native sidecars are init containers of the template.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from builders.build import CONTROLLER, GIB, MIB, NOW, stamp
from hvpa.api.objects.read_models import Pod, Workload

Place = Literal["template", "native", "injected"]
DEFAULT_REQUESTS = {"cpu": "100m", "memory": f"{128 * MIB}"}
"""What the namespace's LimitRange sets where a container requests nothing."""
START = 30
"""Seconds until a pod is ready."""
PROGRESS_DEADLINE = 600
"""`spec.progressDeadlineSeconds`, by Kubernetes' default."""


@dataclass(frozen=True)
class Use:
    """A container of each pod: where it comes from, what it requests (millicores and bytes; None: nothing), and what it
    uses: `base` millicores and `share` cores (times `sway` at that time) for each core of load that a pod has,
    `memory_base` bytes and `memory_share` for each core of load. `governed`: the VPA's policy scales it."""

    name: str = "app"
    cpu: int | None = 500
    memory: int | None = 512 * MIB
    share: float = 1.0
    base: int = 0
    memory_base: int = 50 * MIB
    memory_share: int = 500 * MIB
    place: Place = "template"
    governed: bool = True
    sway: Callable[[float], float] = lambda _now: 1.0

    @property
    def container(self) -> dict[str, Any]:
        """The container as it is first written."""
        amounts = {"cpu": None if self.cpu is None else f"{self.cpu}m", "memory": self.memory}
        requests = {name: str(amount) for name, amount in amounts.items() if amount is not None}
        container: dict[str, Any] = {"name": self.name, "resources": {"requests": requests}}
        return container | {"restartPolicy": "Always"} if self.place == "native" else container

    def millicores(self, load: float, now: float) -> float:
        """What a pod's container uses where the pod has so many millicores of load."""
        return self.base + self.share * self.sway(now) * load

    def memory_used(self, load: float) -> int:
        """The same of memory, in bytes."""
        return self.memory_base + math.ceil(self.memory_share * load / 1000)


@dataclass(frozen=True)
class Shape:
    """A workload as it begins. `whole`: the requests of each pod as a whole, as Kubernetes writes them; `controlled`:
    which of its resources the VPA scales."""

    uses: tuple[Use, ...] = (Use(),)
    replicas: int = 3
    whole: Mapping[str, str] | None = None
    controlled: tuple[str, ...] = ("cpu", "memory")

    @property
    def names(self) -> frozenset[str]:
        return frozenset(use.name for use in self.uses)

    @property
    def mine(self) -> tuple[Use, ...]:
        """The containers of the template, which an Hvpa can scale."""
        return tuple(use for use in self.uses if use.place == "template")

    def template(self) -> dict[str, Any]:
        """The pod template's spec."""
        spec: dict[str, Any] = {
            "containers": [use.container for use in self.mine],
            "initContainers": [use.container for use in self.uses if use.place == "native"],
        }
        return spec if self.whole is None else spec | {"resources": {"requests": dict(self.whole)}}

    def admitted(self, template: Mapping[str, Any]) -> dict[str, Any]:
        """A pod's spec, made of the template: what webhooks and the LimitRange make of it."""
        injected = [use.container for use in self.uses if use.place == "injected"]
        return dict(template) | {
            "containers": [_defaulted(container) for container in (*template["containers"], *injected)],
            "initContainers": [_defaulted(container) for container in template["initContainers"]],
        }


def _defaulted(container: Mapping[str, Any]) -> dict[str, Any]:
    resources = container["resources"]
    return dict(container) | {
        "resources": dict(resources) | {"requests": DEFAULT_REQUESTS | resources["requests"]}
    }


@dataclass(eq=False)
class Running:
    """A pod: when it was created (seconds), when it is ready (infinity: never), and its revision of the template."""

    name: str
    created: float
    ready_at: float
    revision: int
    spec: dict[str, Any]
    deleted: bool = False

    def is_ready(self, now: float) -> bool:
        return now >= self.ready_at

    def read(self, now: float) -> Pod:
        """The pod as the API server has it."""
        ready = self.is_ready(now)
        changed = self.ready_at if ready else self.created
        document = {
            "metadata": {
                "name": self.name,
                "namespace": "default",
                "uid": self.name,
                "labels": {"app": "web"},
                "ownerReferences": [CONTROLLER],
                "creationTimestamp": stamp(instant(self.created)),
            },
            "spec": self.spec,
            "status": {
                "phase": "Running",
                "startTime": stamp(instant(self.created)),
                "conditions": [
                    {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(instant(changed))}
                ],
            },
        }
        return msgspec.convert(document, Pod)


def instant(seconds: float) -> dt.datetime:
    """The instant so many seconds after the start."""
    return NOW + dt.timedelta(seconds=seconds)


Fate = Callable[[int, float], bool]
"""Whether the pod of this number, which is made at this second, ever becomes ready."""


@dataclass(eq=False)
class Deployment:
    """The Deployment with its pods. `version` changes with all that can be read of it."""

    shape: Shape
    fate: Fate = lambda _number, _now: True
    replicas: int = field(init=False)
    template: dict[str, Any] = field(init=False)
    pods: list[Running] = field(default_factory=list)
    version: int = 1
    _generation: int = 1
    _revision: int = 1
    _made: int = 0
    _reverted_at: float | None = None
    """When another client set the replicas."""
    _moved_at: float = 0.0
    """When a rollout last got on."""
    _annotations: dict[str, str] = field(default_factory=dict)
    _ready: tuple[bool, ...] = ()
    _read: tuple[int, Workload, tuple[Pod, ...]] | None = None

    def __post_init__(self) -> None:
        self.replicas = self.shape.replicas
        self.template = self.shape.template()
        spec = self.shape.admitted(self.template)
        for _ in range(self.replicas):
            self._made += 1
            self.pods.append(Running(f"web-{self._made}", -86_400.0, -86_000.0, 1, spec))
        self._ready = tuple(True for _ in self.pods)

    # --- time --------------------------------------------------------------------------------------------------------
    def next_change(self, now: float) -> float:
        """When something happens next without anybody's doing: a pod is ready, a rollout's deadline passes."""
        coming = [pod.ready_at for pod in self.pods if pod.ready_at > now]
        if not self._complete(now) and self._moved_at + PROGRESS_DEADLINE > now:
            coming.append(self._moved_at + PROGRESS_DEADLINE)
        return min(coming, default=math.inf)

    def advance(self, now: float) -> None:
        """Let the controllers do what they can now."""
        before = self._ready
        while self._resize(now) or self._replace(now):
            self._moved_at = now
        self._ready = tuple(pod.is_ready(now) for pod in self.pods)
        if self._ready != before:
            self._moved_at = now
            self.version += 1
        elif now == self._moved_at + PROGRESS_DEADLINE:
            self.version += 1

    def ready(self, now: float) -> list[Running]:
        """The pods that serve."""
        return [pod for pod in self.pods if pod.is_ready(now)]

    # --- writes ------------------------------------------------------------------------------------------------------
    def patch(self, body: Mapping[str, Any], now: float) -> None:
        """A strategic merge patch of replicas, of containers' resources, and of annotations."""
        self._annotations |= body["metadata"].get("annotations", {})
        spec = body.get("spec", {})
        self.replicas = spec.get("replicas", self.replicas)
        if "template" in spec:
            self.template = self.patched(spec)
            self._revision += 1
            self._moved_at = now
        self._generation += 1
        self.version += 1

    def revert(self, replicas: int, now: float, *, replaces: bool) -> None:
        """Another client sets the replicas, and where it `replaces` pods, something of their template as well."""
        self.replicas, self._reverted_at = replicas, now
        self._revision += replaces
        self._moved_at = now
        self._generation += 1
        self.version += 1

    def patched(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The template's spec after such a patch."""
        changes = spec.get("template", {}).get("spec", {})
        kinds = ("containers", "initContainers")
        spec_after = self.template | {
            kind: _merged(self.template[kind], changes.get(kind, ())) for kind in kinds
        }
        if "resources" in changes:
            own = self.template["resources"]
            merged = {
                section: own.get(section, {}) | values for section, values in changes["resources"].items()
            }
            spec_after["resources"] = own | merged
        return spec_after

    # --- the Deployment's controller, with its defaults: 25 percent more, 25 percent missing -------------------------
    def _resize(self, now: float) -> bool:
        current = [pod for pod in self.pods if pod.revision == self._revision]
        rolling = len(current) < len(self.pods)
        allowed = self.replicas + (math.ceil(self.replicas / 4) if rolling else 0)
        missing = min(allowed - len(self.pods), self.replicas - len(current))
        for _ in range(missing):
            self._create(now)
        surplus = self._leaving(self.pods, now)[: max(0, len(self.pods) - allowed)]
        self._delete(surplus)
        return missing > 0 or bool(surplus)

    def _replace(self, now: float) -> bool:
        old = self._leaving([pod for pod in self.pods if pod.revision != self._revision], now)
        least = self.replicas - self.replicas // 4
        spare = max(0, len(self.ready(now)) - least)
        leaving = [pod for pod in old if not pod.is_ready(now)]
        leaving += [pod for pod in old if pod.is_ready(now)][:spare]
        self._delete(leaving)
        return bool(leaving)

    def _leaving(self, pods: list[Running], now: float) -> list[Running]:
        return sorted(pods, key=lambda pod: (pod.is_ready(now), -pod.created, pod.name))

    def _create(self, now: float) -> None:
        self._made += 1
        ready_at = now + START if self.fate(self._made, now) else math.inf
        spec = self.shape.admitted(self.template)
        self.pods.append(Running(f"web-{self._made}", now, ready_at, self._revision, spec))
        self.version += 1

    def _delete(self, pods: list[Running]) -> None:
        self.pods = [pod for pod in self.pods if pod not in pods]
        self.version += bool(pods)

    # --- reads -------------------------------------------------------------------------------------------------------
    def read(self, now: float) -> tuple[Workload, tuple[Pod, ...]]:
        """The Deployment and its pods; the very same objects until something changes."""
        if self._read is None or self._read[0] != self.version:
            pods = tuple(pod.read(now) for pod in self.pods)
            self._read = self.version, msgspec.convert(self._document(now), Workload), pods
        return self._read[1], self._read[2]

    def sample(self) -> Pod:
        """A pod as it would be made now."""
        return Running("sample", 0.0, 0.0, self._revision, self.shape.admitted(self.template)).read(0.0)

    def _complete(self, now: float) -> bool:
        current = [pod for pod in self.pods if pod.revision == self._revision]
        return len(current) == len(self.pods) == len(self.ready(now)) == self.replicas

    def _document(self, now: float) -> dict[str, Any]:
        current = [pod for pod in self.pods if pod.revision == self._revision]
        ready = len(self.ready(now))
        return {
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "namespace": "default",
                "uid": "w",
                "resourceVersion": str(self.version),
                "generation": self._generation,
                "annotations": dict(self._annotations),
                "managedFields": self._managed(),
            },
            "spec": {
                "replicas": self.replicas,
                "progressDeadlineSeconds": PROGRESS_DEADLINE,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"spec": self.template},
            },
            "status": {
                "observedGeneration": self._generation,
                "replicas": len(self.pods),
                "updatedReplicas": len(current),
                "readyReplicas": ready,
                "availableReplicas": ready,
                "conditions": [self._progressing(now)],
            },
        }

    def _managed(self) -> list[dict[str, Any]]:
        if self._reverted_at is None:
            return []
        entry = {"manager": "flux", "time": stamp(instant(self._reverted_at))}
        return [entry | {"fieldsV1": {"f:spec": {"f:replicas": {}}}}]

    def _progressing(self, now: float) -> dict[str, str]:
        status, reason = "True", "ReplicaSetUpdated"
        if self._complete(now):
            reason = "NewReplicaSetAvailable"
        elif now >= self._moved_at + PROGRESS_DEADLINE:
            status, reason = "False", "ProgressDeadlineExceeded"
        moved = stamp(instant(self._moved_at))
        return {
            "type": "Progressing",
            "status": status,
            "reason": reason,
            "lastUpdateTime": moved,
            "lastTransitionTime": moved,
        }


def _merged(containers: list[dict[str, Any]], changes: Any) -> list[dict[str, Any]]:
    by_name = {change["name"]: change["resources"] for change in changes}
    merged = []
    for container in containers:
        resources = dict(container["resources"])
        for section, values in by_name.get(container["name"], {}).items():
            resources[section] = {**resources.get(section, {}), **values}
        merged.append(container | {"resources": resources})
    return merged


__all__ = ["GIB", "MIB", "Deployment", "Shape", "Use", "instant"]
