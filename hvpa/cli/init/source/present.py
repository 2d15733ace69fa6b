"""Today's configuration of one workload: its size, and the HPA, VPA or KEDA object that scales it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import BaseModel, ValidationError

from hvpa.api.hvpa.templates import ResourcePolicy
from hvpa.api.objects.read_models import Pod, Workload
from hvpa.api.schema.base import field_errors
from hvpa.api.values.documents import Plain
from hvpa.api.values.names import is_label, is_subdomain
from hvpa.api.values.quantity import CPU, MEMORY
from hvpa.api.values.quantity import Resource as ResourceName
from hvpa.cli.errors import CommandError
from hvpa.cli.input.files import below
from hvpa.cli.input.owners import Owners
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.containers import present_resources
from hvpa.core.workload.pod_owner import owns
from hvpa.kube.cache.indexes import selects
from hvpa.kube.objects.resources import (
    DEPLOYMENTS,
    HPAS,
    HVPAS,
    PODS,
    STATEFULSETS,
    VPAS,
    WORKLOADS,
    Resource,
)
from hvpa.simulate.history.pods import start_up
from hvpa.simulate.history.table import Share
from hvpa.simulate.scenario.schema import HpaAlone

SCALED_OBJECT: Final = "ScaledObject"
START_UP: Final = 30.0
"""Seconds until a pod is ready where no pod shows it: the value that docs/joint-scaling.md measured with."""
_CUSTOM: Final = ("pods", "object", "external")
IN_PLACE_SINCE: Final = 33
"""Kubernetes 1.33 resizes running pods unless that is switched off (docs/in-place.md)."""
_KINDS: Final = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), DEPLOYMENTS.kind),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), STATEFULSETS.kind),
}
SCALED_OBJECTS: Final[Resource[Any]] = Resource(
    SCALED_OBJECT, "/apis/keda.sh/v1alpha1", "scaledobjects", msgspec.json.decode, lambda one: one
)
API_VERSIONS: Final = {
    one.kind: one.api.removeprefix("/apis/").removeprefix("/api/")
    for one in (DEPLOYMENTS, STATEFULSETS, HPAS, VPAS, HVPAS, PODS, SCALED_OBJECTS)
}
"""What is read, by kind."""
_SIMULATED_MODES: Final = {
    "Auto": "Recreate",
    "Recreate": "Recreate",
    "InPlaceOrRecreate": "InPlaceOrRecreate",
    "Off": "Off",
}


class TargetName(NamedTuple):
    """The workload that the command line names."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def target_name(text: str) -> TargetName:
    """`deployment/web`. Raises ArgumentTypeError."""
    kind, slash, name = text.partition("/")
    if not slash or not name or kind.lower() not in _KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not deployment/NAME or statefulset/NAME")
    if not is_subdomain(name):
        raise argparse.ArgumentTypeError(f"{name!r} can't be the name of a {_KINDS[kind.lower()]}")
    return TargetName(_KINDS[kind.lower()], name)


class Found(NamedTuple):
    """An object that scales the workload: its name and its spec as the API server has it."""

    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Present:
    """A workload as it is today. `raw` is its manifest, `minor` that of the API server's version 1.x (None: not known),
    `start_up` how long its pods took to be ready, in seconds (None: no pod shows it); `notes` is what was taken for
    granted."""

    workload: Workload
    raw: Mapping[str, Any]
    hpa: Found | None
    vpa: Found | None
    scaled_object: str | None
    minor: int | None
    start_up: float | None
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """How messages call the workload."""
        return f"{self.workload.kind} {self.namespace}/{self.name}"

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.workload.metadata.name

    @property
    def namespace(self) -> str:
        """The workload's namespace."""
        return self.workload.metadata.namespace

    @property
    def containers(self) -> Mapping[str, ResourceRequirements]:
        """Requests and limits of the containers."""
        return present_resources(self.workload.spec.template.spec.containers)

    @property
    def in_place(self) -> bool:
        """Whether pods can be resized while they run."""
        return self.minor is not None and self.minor >= IN_PLACE_SINCE

    @property
    def load_metrics(self) -> list[str]:
        """The names of the HPA's metrics that are no resource: they speak of the load."""
        metrics = [] if self.hpa is None else self.hpa.spec.get("metrics") or ()
        names = [below(one, kind, "metric", "name") for one in metrics for kind in _CUSTOM if kind in one]
        return list(dict.fromkeys(map(str, names)))

    @property
    def vpa_mode(self) -> str:
        """What the VPA's updater does, of what can be simulated."""
        mode = None if self.vpa is None else below(self.vpa.spec, "updatePolicy", "updateMode") or "Auto"
        return _SIMULATED_MODES.get(str(mode), "Off")

    @property
    def scaled_by(self) -> str:
        """What scales the workload today, in words."""
        parts = []
        if self.scaled_object is not None:
            parts.append(f"KEDA's {SCALED_OBJECT} {self.scaled_object}")
        elif self.hpa is not None:
            parts.append(f"HPA {self.hpa.name}")
        if self.vpa is not None:
            mode = below(self.vpa.spec, "updatePolicy", "updateMode") or "Auto"
            parts.append(f"VPA {self.vpa.name} ({mode})")
        return " and ".join(parts) or "nothing"

    def shares(self) -> dict[str, Share]:
        """Each container's part of the pod's requests; equal parts where nothing is requested."""
        even = 1 / len(self.containers)
        resources: tuple[ResourceName, ...] = (CPU, MEMORY)
        sums = {
            resource: sum(one.requests.get(resource, 0) for one in self.containers.values())
            for resource in resources
        }
        return {
            name: Share(
                *(
                    one.requests.get(resource, 0) / whole if whole else even
                    for resource, whole in sums.items()
                )
            )
            for name, one in self.containers.items()
        }


def present(
    objects: Sequence[Mapping[str, Any]], wanted: TargetName | None, namespace: str, minor: int | None
) -> Present:
    """The workload of this name among the objects (None: the only one), and what scales it. Raises CommandError where
    it is not there, or where it is scaled by what can't be taken over."""
    here = [one for one in objects if _is_read(one, namespace)]
    raw = _workload(here, wanted, namespace)
    kind, name = str(raw["kind"]), str(below(raw, "metadata", "name"))
    workload: Workload = WORKLOADS[kind].read(_encoded(raw, namespace))
    _refuse_names(workload)
    if not workload.spec.template.spec.containers:
        raise CommandError(f"{kind} {namespace}/{name} has no containers")
    _refuse_hvpas(here, kind, name)
    hpa = _one(here, HPAS.kind, ("scaleTargetRef",), kind, name)
    vpa = _one(here, VPAS.kind, ("targetRef",), kind, name)
    notes = []
    if hpa is not None:
        if hpa.spec.get("minReplicas") == 0:
            hpa = Found(hpa.name, {**hpa.spec, "minReplicas": 1})
            notes.append(f"HPA {hpa.name} scales to 0: that is not simulated")
        _check(HpaAlone, hpa.spec, f"{HPAS.kind} {hpa.name}: spec", leave_out="scaleTargetRef")
    if vpa is not None:
        policy = below(vpa.spec, "resourcePolicy")
        _check(ResourcePolicy, policy or {}, f"{VPAS.kind} {vpa.name}: spec.resourcePolicy")
    keda = _one(here, SCALED_OBJECT, ("scaleTargetRef",), kind, name)
    if keda is not None and hpa is None:
        raise CommandError(
            f"{SCALED_OBJECT} {keda.name} scales {kind} {name}, and the HPA that KEDA makes of it is missing:"
            f" give it too (kubectl get hpa keda-hpa-{keda.name} -o yaml)"
        )
    if keda is not None and not below(keda.spec, "minReplicaCount"):
        notes.append(f"{SCALED_OBJECT} {keda.name} scales to 0 when idle: that is not simulated")
    own = [one for one in (hpa.spec.get("metrics") or () if keda and hpa else ()) if "external" in one]
    if own:
        names = ", ".join(str(below(one, "external", "metric", "name")) for one in own)
        notes.append(f"{names}: KEDA's metrics go with the ScaledObject, so the Hvpa scales by CPU instead")
    mode = None if vpa is None else below(vpa.spec, "updatePolicy", "updateMode")
    if mode is not None and mode not in _SIMULATED_MODES:
        notes.append(f"updateMode {mode} of VPA {vpa.name if vpa else ''} is not simulated: it counts as Off")
    started = start_up(_pods(here, workload))
    return Present(workload, raw, hpa, vpa, keda.name if keda else None, minor, started, tuple(notes))


def _refuse_names(workload: Workload) -> None:
    """Raise CommandError for names that the API server takes for none: they stand in files' names and in queries."""
    meta = workload.metadata
    names = [
        ("metadata.name", meta.name, is_subdomain(meta.name)),
        ("metadata.namespace", meta.namespace, is_label(meta.namespace)),
        *(("containers", one.name, is_label(one.name)) for one in workload.spec.template.spec.containers),
    ]
    for field, name, is_valid in names:
        if not is_valid:
            raise CommandError(f"{workload.kind}: {field}: {name!r} is no name that Kubernetes accepts")


def _check(model: type[BaseModel], spec: Mapping[str, Any], place: str, leave_out: str = "") -> None:
    """Raise CommandError where what is simulated of an object is wrong, or is not known."""
    own = {field: value for field, value in spec.items() if field != leave_out}
    try:
        model.model_validate(own, by_alias=True, by_name=False)
    except ValidationError as error:
        problem = field_errors(error)[0]
        path = f".{problem.path}" if problem.path else ""
        raise CommandError(f"{place}{path}: {problem.message}") from None


def _pods(objects: Iterable[Mapping[str, Any]], workload: Workload) -> list[Pod]:
    """The workload's pods."""
    namespace = workload.metadata.namespace
    near = [
        msgspec.convert({**one, "metadata": {**one["metadata"], "namespace": namespace}}, type=Pod)
        for one in objects
        if one.get("kind") == PODS.kind and "metadata" in one
    ]
    near = [pod for pod in near if selects(workload.spec.selector, pod.metadata.labels)]
    without_uid = () if workload.metadata.uid else ((workload.kind, workload.metadata.name),)
    owners = Owners([workload], near, without_uid)
    return [pod for pod in map(owners.filled, near) if owns(workload, pod)]


def _is_read(one: Mapping[str, Any], namespace: str) -> bool:
    """Whether it is an object of the namespace, and of an API that is read."""
    is_known = one.get("apiVersion") == API_VERSIONS.get(str(one.get("kind")))
    return is_known and (below(one, "metadata", "namespace") or namespace) == namespace


def _workload(
    objects: Iterable[Mapping[str, Any]], wanted: TargetName | None, namespace: str
) -> Mapping[str, Any]:
    found = [one for one in objects if one.get("kind") in (DEPLOYMENTS.kind, STATEFULSETS.kind)]
    if wanted is not None:
        found = [one for one in found if (one["kind"], below(one, "metadata", "name")) == wanted]
    if len(found) == 1:
        return found[0]
    if wanted is not None:
        raise CommandError(f"{wanted.kind} {namespace}/{wanted.name} does not exist")
    there = ", ".join(f"{one['kind']} {below(one, 'metadata', 'name')}" for one in found)
    raise CommandError(f"name one of the workloads: there are {there or 'none'}")


def _encoded(raw: Mapping[str, Any], namespace: str) -> bytes:
    return msgspec.json.encode({**raw, "metadata": {**raw["metadata"], "namespace": namespace}})


def _one(
    objects: Iterable[Mapping[str, Any]], kind: str, reference: tuple[str, ...], target: str, name: str
) -> Found | None:
    """The object of this kind that points at the workload. Raises CommandError where there are several."""
    found = []
    for one in objects:
        to: Plain = below(one, "spec", *reference)
        points_at = (below(to, "kind") or DEPLOYMENTS.kind, below(to, "name"))  # KEDA's default kind
        if one.get("kind") == kind and points_at == (target, name):
            found.append(Found(str(below(one, "metadata", "name")), one.get("spec", {})))
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise CommandError(
            f"{len(found)} objects of kind {kind} scale {target} {name}: {names}; delete all but one"
        )
    return found[0] if found else None


def _refuse_hvpas(objects: Iterable[Mapping[str, Any]], kind: str, name: str) -> None:
    own = _one(objects, HVPAS.kind, ("targetRef",), kind, name)
    if own is not None:
        raise CommandError(f"Hvpa {own.name} scales {kind} {name} already: hvpa explain shows what it does")
