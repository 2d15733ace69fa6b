"""Today's configuration of a workload: its size, and the HPA, VPA or KEDA object that scales it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import BaseModel, ValidationError

from hvpa.api.objects.kinds import KINDS, has_replicas, is_custom
from hvpa.api.objects.read_models import Pod, Workload
from hvpa.api.schema.base import field_errors
from hvpa.api.values.documents import Plain
from hvpa.api.values.names import is_kind, is_label, is_subdomain
from hvpa.api.values.quantity import CPU, MEMORY
from hvpa.api.values.quantity import Resource as ResourceName
from hvpa.cli.errors import CommandError
from hvpa.cli.input.custom import read_custom
from hvpa.cli.input.files import value_at
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
    VPAS,
    WORKLOADS,
    ApiResource,
)
from hvpa.kube.objects.workloads import with_newest_pod
from hvpa_lab.simulate.history.pods import start_up
from hvpa_lab.simulate.history.table import UsageShare
from hvpa_lab.simulate.scenario.schema import HpaAlone, SimulatedPolicy

SCALED_OBJECT: Final = "ScaledObject"
START_UP: Final = 30.0
"""Seconds until a pod is ready, if no pod shows it: the value of the measurements in docs/joint-scaling.md."""
_CUSTOM: Final = ("pods", "object", "external")
IN_PLACE_SINCE: Final = 33
"""Kubernetes 1.33 resizes running pods, unless its feature gate is off (docs/in-place.md)."""
_SHORT: Final = {
    "deploy": "Deployment",
    "sts": "StatefulSet",
    "rs": "ReplicaSet",
    "rc": "ReplicationController",
}
"""kubectl's short names."""
_KINDS: Final = {
    **_SHORT,
    **{kind.lower(): kind for kind in KINDS},
    **{f"{kind.lower()}s": kind for kind in KINDS},
}
SCALED_OBJECTS: Final[ApiResource[Any]] = ApiResource(
    SCALED_OBJECT,
    "/apis/keda.sh/v1alpha1",
    "scaledobjects",
    msgspec.json.decode,
    lambda scaled_object: scaled_object,
)
_READ: Final[tuple[ApiResource[Any], ...]] = (*WORKLOADS.values(), HPAS, VPAS, HVPAS, PODS, SCALED_OBJECTS)
API_VERSIONS: Final = {
    resource.kind: resource.api.removeprefix("/apis/").removeprefix("/api/") for resource in _READ
}
"""API versions of the objects that are read, by kind."""
_SIMULATED_MODES: Final = {
    "Auto": "Recreate",
    "Recreate": "Recreate",
    "InPlaceOrRecreate": "InPlaceOrRecreate",
    "Off": "Off",
}


class TargetName(NamedTuple):
    """The workload on the command line."""

    kind: str
    """The kind; of a custom kind, the kind or its plural in lower case, as typed."""
    name: str
    group: str = ""
    """The API group of a custom kind; empty for the kinds of Kubernetes."""

    def __str__(self) -> str:
        return f"{self.title} {self.name}"

    @property
    def title(self) -> str:
        """The kind with its group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def names(self, manifest: Mapping[str, Any]) -> bool:
        """Whether this is the object's name."""
        kind, version = str(manifest.get("kind")), str(manifest.get("apiVersion"))
        if value_at(manifest, "metadata", "name") != self.name:
            return False
        if not self.group:
            return kind == self.kind
        return self.kind in (kind.lower(), f"{kind.lower()}s") and version.partition("/")[0] == self.group


def target_name(text: str) -> TargetName:
    """`deployment/web`, or for a custom kind `rollouts.argoproj.io/web`. Raises ArgumentTypeError."""
    kind, _, name = text.partition("/")
    known, group = _KINDS.get(kind.lower()), kind.lower().partition(".")[2]
    if not name or (known is None and not (group and kind[0] != ".")):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not deployment/NAME, another kind, or KIND.GROUP/NAME of a custom kind"
        )
    if not is_subdomain(name):
        raise argparse.ArgumentTypeError(f"{name!r} can't be the name of a {known or kind}")
    if known is not None:
        return TargetName(known, name)
    if not is_subdomain(group):
        raise argparse.ArgumentTypeError(f"{group!r} can't be the name of an API group")
    return TargetName(kind.lower().partition(".")[0], name, group)


class NamedScaler(NamedTuple):
    """An object that scales the workload: its name, and its spec in the API server's form."""

    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Present:
    """A workload in its current state."""

    workload: Workload
    raw: Mapping[str, Any]
    """Its manifest."""
    hpa: NamedScaler | None
    vpa: NamedScaler | None
    scaled_object: str | None
    minor: int | None
    """Minor number of the API server's version 1.x; None: unknown."""
    start_up: float | None
    """Seconds until its pods were ready; None: no pod shows it."""
    notes: tuple[str, ...]
    """Assumptions about the workload."""

    @property
    def title(self) -> str:
        """The workload's name in messages."""
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
        return self.is_custom or (self.minor is not None and self.minor >= IN_PLACE_SINCE)

    @property
    def is_custom(self) -> bool:
        """Whether only running pods can be resized: an Hvpa does not change the pod template of a custom kind."""
        return is_custom(self.workload.api_version, self.workload.kind)

    @property
    def load_metrics(self) -> list[str]:
        """The names of the HPA's metrics except resource metrics; they measure the load."""
        metrics = [] if self.hpa is None else self.hpa.spec.get("metrics") or ()
        names = [
            value_at(metric, kind, "metric", "name")
            for metric in metrics
            for kind in _CUSTOM
            if kind in metric
        ]
        return list(dict.fromkeys(map(str, names)))

    @property
    def vpa_mode(self) -> str:
        """The VPA's update mode, as far as it can be simulated."""
        mode = None if self.vpa is None else value_at(self.vpa.spec, "updatePolicy", "updateMode") or "Auto"
        return _SIMULATED_MODES.get(str(mode), "Off")

    @property
    def scaled_by(self) -> str:
        """The workload's autoscalers today, in words."""
        parts = []
        if self.scaled_object is not None:
            parts.append(f"KEDA's {SCALED_OBJECT} {self.scaled_object}")
        elif self.hpa is not None:
            parts.append(f"HPA {self.hpa.name}")
        if self.vpa is not None:
            mode = value_at(self.vpa.spec, "updatePolicy", "updateMode") or "Auto"
            parts.append(f"VPA {self.vpa.name} ({mode})")
        return " and ".join(parts) or "nothing"

    def shares(self) -> dict[str, UsageShare]:
        """Each container's share of the pod's requests; equal shares without requests."""
        even = 1 / len(self.containers)
        resources: tuple[ResourceName, ...] = (CPU, MEMORY)
        sums = {
            resource: sum(container.requests.get(resource, 0) for container in self.containers.values())
            for resource in resources
        }
        return {
            name: UsageShare(
                *(
                    container.requests.get(resource, 0) / whole if whole else even
                    for resource, whole in sums.items()
                )
            )
            for name, container in self.containers.items()
        }


def present(
    objects: Sequence[Mapping[str, Any]], wanted: TargetName | None, namespace: str, minor: int | None
) -> Present:
    """The workload of this name among the objects (None: the only workload), and its autoscalers.

    Raises CommandError if it does not exist, or if its autoscaler can't be taken over.
    """
    here = [manifest for manifest in objects if _is_read(manifest, namespace)]
    raw = _workload(here, wanted, namespace)
    kind, name = str(raw["kind"]), str(value_at(raw, "metadata", "name"))
    workload = read_workload(raw, namespace)
    pods = tuple(_pods(here, workload))
    if kind not in KINDS and not workload.spec.template.spec.containers:
        workload = with_newest_pod(workload, pods)
    _refuse_names(workload)
    _refuse_kind(workload, minor)
    if not workload.spec.template.spec.containers:
        raise CommandError(f"{kind} {namespace}/{name} has no containers")
    _refuse_hvpas(here, kind, name)
    hpa = _scaler(here, HPAS.kind, ("scaleTargetRef",), kind, name)
    vpa = _scaler(here, VPAS.kind, ("targetRef",), kind, name)
    notes = []
    if hpa is not None:
        if hpa.spec.get("minReplicas") == 0:
            hpa = NamedScaler(hpa.name, {**hpa.spec, "minReplicas": 1})
            notes.append(f"HPA {hpa.name} scales to 0: that is not simulated")
        _check_spec(HpaAlone, hpa.spec, f"{HPAS.kind} {hpa.name}: spec", leave_out="scaleTargetRef")
    if vpa is not None:
        policy = value_at(vpa.spec, "resourcePolicy")
        _check_spec(SimulatedPolicy, policy or {}, f"{VPAS.kind} {vpa.name}: spec.resourcePolicy")
    keda = _scaler(here, SCALED_OBJECT, ("scaleTargetRef",), kind, name)
    if keda is not None and hpa is None:
        raise CommandError(
            f"{SCALED_OBJECT} {keda.name} scales {kind} {name}, and the HPA that KEDA makes of it is missing:"
            f" give it too (kubectl get hpa keda-hpa-{keda.name} -o yaml)"
        )
    if keda is not None and not value_at(keda.spec, "minReplicaCount"):
        notes.append(f"{SCALED_OBJECT} {keda.name} scales to 0 when idle: that is not simulated")
    keda_metrics = [
        metric for metric in (hpa.spec.get("metrics") or () if keda and hpa else ()) if "external" in metric
    ]
    if keda_metrics:
        names = ", ".join(str(value_at(metric, "external", "metric", "name")) for metric in keda_metrics)
        notes.append(f"{names}: KEDA's metrics go with the ScaledObject, so the Hvpa scales by CPU instead")
    mode = None if vpa is None else value_at(vpa.spec, "updatePolicy", "updateMode")
    if mode is not None and mode not in _SIMULATED_MODES:
        notes.append(f"updateMode {mode} of VPA {vpa.name if vpa else ''} is not simulated: it counts as Off")
    started = start_up(pods)
    return Present(workload, raw, hpa, vpa, keda.name if keda else None, minor, started, tuple(notes))


def _refuse_names(workload: Workload) -> None:
    """Raise CommandError for names that the API server does not accept: they are used in file names and queries."""
    meta = workload.metadata
    names = [
        ("kind", workload.kind, is_kind(workload.kind)),
        ("metadata.name", meta.name, is_subdomain(meta.name)),
        ("metadata.namespace", meta.namespace, is_label(meta.namespace)),
        *(
            ("containers", container.name, is_label(container.name))
            for container in workload.spec.template.spec.containers
        ),
    ]
    for field, name, is_valid in names:
        if not is_valid:
            raise CommandError(f"{workload.kind}: {field}: {name!r} is not a valid Kubernetes name")


def _check_spec(model: type[BaseModel], spec: Mapping[str, Any], place: str, leave_out: str = "") -> None:
    """Raise CommandError if the simulated part of an object is wrong, or unknown."""
    simulated = {field: value for field, value in spec.items() if field != leave_out}
    try:
        model.model_validate(simulated, by_alias=True, by_name=False)
    except ValidationError as error:
        problem = field_errors(error)[0]
        path = f".{problem.path}" if problem.path else ""
        raise CommandError(f"{place}{path}: {problem.message}") from None


def _pods(objects: Iterable[Mapping[str, Any]], workload: Workload) -> list[Pod]:
    """The workload's pods."""
    namespace = workload.metadata.namespace
    near = [
        msgspec.convert({**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}, type=Pod)
        for manifest in objects
        if manifest.get("kind") == PODS.kind and "metadata" in manifest
    ]
    near = [pod for pod in near if selects(workload.spec.selector, pod.metadata.labels)]
    without_uid = () if workload.metadata.uid else ((workload.kind, workload.metadata.name),)
    owners = Owners([workload], near, without_uid)
    return [pod for pod in map(owners.filled, near) if owns(workload, pod)]


def _is_read(manifest: Mapping[str, Any], namespace: str) -> bool:
    """Whether it is an object of the namespace, and of an API that is read."""
    kind, version = str(manifest.get("kind")), str(manifest.get("apiVersion"))
    is_known = is_custom(version, kind) if kind not in API_VERSIONS else version == API_VERSIONS[kind]
    return is_known and (value_at(manifest, "metadata", "namespace") or namespace) == namespace


def _workload(
    objects: Iterable[Mapping[str, Any]], wanted: TargetName | None, namespace: str
) -> Mapping[str, Any]:
    workloads = [
        manifest for manifest in objects if manifest["kind"] in KINDS or manifest["kind"] not in API_VERSIONS
    ]
    # Not the ReplicaSets of Deployments, unless named.
    workloads = [
        manifest
        for manifest in workloads
        if (not _is_controlled(manifest) if wanted is None else wanted.names(manifest))
    ]
    if len(workloads) == 1:
        return workloads[0]
    if wanted is not None:
        raise CommandError(f"{wanted.title} {namespace}/{wanted.name} does not exist")
    there = ", ".join(
        f"{manifest['kind']} {value_at(manifest, 'metadata', 'name')}" for manifest in workloads
    )
    raise CommandError(f"name the workload: there are {there or 'none'}")


def _is_controlled(manifest: Mapping[str, Any]) -> bool:
    owners = value_at(manifest, "metadata", "ownerReferences")
    return any(value_at(owner, "controller") for owner in (owners if isinstance(owners, list) else ()))


def read_workload(raw: Mapping[str, Any], namespace: str) -> Workload:
    """The workload from an object of any kind in this namespace. Raises msgspec.MsgspecError."""
    kind = str(raw["kind"])
    if kind in KINDS:
        workload: Workload = WORKLOADS[kind].read(_encoded(raw, namespace))
        return workload
    return read_custom({**raw, "metadata": {**raw["metadata"], "namespace": namespace}})


def _refuse_kind(workload: Workload, minor: int | None) -> None:
    """Raise CommandError for a workload for which no Hvpa can be drafted."""
    title = f"{workload.kind} {workload.metadata.namespace}/{workload.metadata.name}"
    if not has_replicas(workload.kind):
        raise CommandError(
            f"{title}: hvpa init drafts an Hvpa that decides replicas, and a {workload.kind} has no replica count:"
            " write an Hvpa with only spec.vpa"
        )
    if is_custom(workload.api_version, workload.kind) and minor is not None and minor < IN_PLACE_SINCE:
        raise CommandError(
            f"{title}: an Hvpa resizes the pods of a custom kind while they run, which Kubernetes 1.{minor} does "
            "not support"
        )


def _encoded(raw: Mapping[str, Any], namespace: str) -> bytes:
    return msgspec.json.encode({**raw, "metadata": {**raw["metadata"], "namespace": namespace}})


def _scaler(
    objects: Iterable[Mapping[str, Any]], kind: str, reference: tuple[str, ...], target: str, name: str
) -> NamedScaler | None:
    """The object of this kind that targets the workload. Raises CommandError if there are several."""
    scalers = []
    for manifest in objects:
        to: Plain = value_at(manifest, "spec", *reference)
        points_at = (value_at(to, "kind") or DEPLOYMENTS.kind, value_at(to, "name"))  # KEDA's default kind
        if manifest.get("kind") == kind and points_at == (target, name):
            scalers.append(NamedScaler(str(value_at(manifest, "metadata", "name")), manifest.get("spec", {})))
    if len(scalers) > 1:
        names = ", ".join(scaler.name for scaler in scalers)
        raise CommandError(
            f"{len(scalers)} objects of kind {kind} scale {target} {name}: {names}; delete all but one"
        )
    return scalers[0] if scalers else None


def _refuse_hvpas(objects: Iterable[Mapping[str, Any]], kind: str, name: str) -> None:
    hvpa = _scaler(objects, HVPAS.kind, ("targetRef",), kind, name)
    if hvpa is not None:
        raise CommandError(f"Hvpa {hvpa.name} scales {kind} {name} already: see hvpa explain")
