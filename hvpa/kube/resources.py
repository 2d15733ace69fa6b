"""The resources that are watched: where they are served, and how their bytes become narrow, compact objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from hvpa.api.objects import Hpa, Meta, Pod, PodSpec, RawHvpa, Vpa, Workload

OWN_ANNOTATIONS = "hvpa.autoscaling.k8s.io/"
"""Prefix of the annotations that are read from workloads; others are dropped while decoding."""
DROPPED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
"""A whole manifest as a string: not worth its memory."""
INTERNED = 32768
"""How many distinct label sets or pod specs are shared at most; beyond that the table starts afresh."""


class ObjectLike(Protocol):
    """Any object with metadata."""

    @property
    def metadata(self) -> Meta:
        """The object's metadata."""
        ...


T = TypeVar("T", bound=ObjectLike)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A kind of object at an API server. `decode` makes an object of its JSON without keeping a reference to it;
    raises msgspec.MsgspecError."""

    kind: str
    api: str
    """Path prefix: `/api/v1` or `/apis/GROUP/VERSION`."""
    plural: str
    decode: Callable[[bytes | msgspec.Raw], T]

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of a collection, an object or a subresource of it."""
        parts = [self.api]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/".join(parts)


class _Interner(Generic[V]):
    """Shares equal values, keyed by their bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, V] = {}

    def share(self, value: V) -> V:
        """The first value seen that equals this one."""
        if len(self._known) >= INTERNED:
            self._known.clear()
        return self._known.setdefault(msgspec.json.encode(value), value)


_labels: _Interner[dict[str, str]] = _Interner()
_pod_specs: _Interner[PodSpec] = _Interner()
_NOTHING: dict[str, str] = {}
_set = msgspec.structs.force_setattr


def _slim(meta: Meta, keep_annotations: Callable[[str], bool]) -> None:
    """Share the labels and drop the annotations that nobody reads. The object is still ours alone, so it is changed in
    place although it is frozen for everybody else."""
    if meta.labels:
        _set(meta, "labels", _labels.share(meta.labels))
    if meta.annotations:
        kept = {key: value for key, value in meta.annotations.items() if keep_annotations(key)}
        _set(meta, "annotations", kept or _NOTHING)


def _not_dropped(key: str) -> bool:
    return key != DROPPED_ANNOTATION


def _own(key: str) -> bool:
    return key.startswith(OWN_ANNOTATIONS)


def _none(key: str) -> bool:
    return False


def _workload(kind: str) -> Callable[[bytes | msgspec.Raw], Workload]:
    decode = msgspec.json.Decoder(Workload).decode

    def read(raw: bytes | msgspec.Raw) -> Workload:
        workload = decode(raw)
        _set(workload, "kind", kind)
        _slim(workload.metadata, _own)
        return workload

    return read


_decode_pod = msgspec.json.Decoder(Pod).decode
_decode_hpa = msgspec.json.Decoder(Hpa).decode
_decode_vpa = msgspec.json.Decoder(Vpa).decode
_decode_hvpa = msgspec.json.Decoder(RawHvpa).decode


def _pod(raw: bytes | msgspec.Raw) -> Pod:
    pod = _decode_pod(raw)
    _slim(pod.metadata, _none)
    _set(pod, "spec", _pod_specs.share(pod.spec))
    if pod.status.phase != "Failed":  # of a failed pod all times count: they tell when it ended
        _set(pod.status, "conditions", [entry for entry in pod.status.conditions if entry.type == "Ready"])
    return pod


def _hpa(raw: bytes | msgspec.Raw) -> Hpa:
    hpa = _decode_hpa(raw)
    _slim(hpa.metadata, _not_dropped)
    _set(hpa, "raw_spec", hpa.raw_spec.copy())
    _ = hpa.spec  # one that can't be decoded must show now, not in a decision
    return hpa


def _vpa(raw: bytes | msgspec.Raw) -> Vpa:
    vpa = _decode_vpa(raw)
    _slim(vpa.metadata, _not_dropped)
    _set(vpa, "raw_spec", vpa.raw_spec.copy())
    _ = vpa.spec
    return vpa


def _hvpa(raw: bytes | msgspec.Raw) -> RawHvpa:
    hvpa = _decode_hvpa(raw)
    _slim(hvpa.metadata, _not_dropped)
    _set(hvpa, "spec", hvpa.spec.copy())
    _set(hvpa, "status", hvpa.status.copy())
    return hvpa


APPS = "/apis/apps/v1"
HVPAS: Resource[RawHvpa] = Resource("Hvpa", "/apis/autoscaling.k8s.io/v1alpha1", "hvpas", _hvpa)
DEPLOYMENTS: Resource[Workload] = Resource("Deployment", APPS, "deployments", _workload("Deployment"))
STATEFULSETS: Resource[Workload] = Resource("StatefulSet", APPS, "statefulsets", _workload("StatefulSet"))
PODS: Resource[Pod] = Resource("Pod", "/api/v1", "pods", _pod)
HPAS: Resource[Hpa] = Resource(
    "HorizontalPodAutoscaler", "/apis/autoscaling/v2", "horizontalpodautoscalers", _hpa
)
VPAS: Resource[Vpa] = Resource(
    "VerticalPodAutoscaler", "/apis/autoscaling.k8s.io/v1", "verticalpodautoscalers", _vpa
)
WATCHED: tuple[Resource[Any], ...] = (HVPAS, DEPLOYMENTS, STATEFULSETS, HPAS, VPAS, PODS)
