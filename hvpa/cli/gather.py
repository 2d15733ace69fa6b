"""From the documents of files to the `Objects` of the one Hvpa among them, by the operator's own local copy.

Files are often written by hand, so what a cluster would have filled in is added: namespace, uids, the owner of
an HPA or VPA that only recommends, and a workload's status where no controller has written one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from hvpa.api.hvpa import FieldError, HvpaObject, HvpaSpec, LabelSelector, read_hvpa, validate_manifest
from hvpa.api.objects import Hpa, OwnerReference, RawHvpa, Vpa, Workload, WorkloadStatus
from hvpa.cli.decode import RESOURCES, decoded
from hvpa.cli.errors import CommandError, UsageError
from hvpa.cli.files import Document, Plain, read_documents
from hvpa.core.model import API_VERSION, GROUP, Objects
from hvpa.core.spec_check import spec_problems
from hvpa.kube.cache import ALL_NAMESPACES
from hvpa.kube.local import LocalCluster
from hvpa.kube.parsed import stored
from hvpa.kube.resources import HVPAS
from hvpa.reconcile.ports import Key

DEFAULT_NAMESPACE: Final = "default"
_SYNTHETIC: Final = uuid.UUID("5a3c2c6e-6d0e-5b7e-9a51-0f6f4b1f7a55")
"""Namespace of the uids that objects without one are given: the same ones each time."""
_FORMER_GROUPS: Final = {"extensions": "apps"}
"""Groups that once served the same kinds."""
R = TypeVar("R", Hpa, Vpa)
"""A recommender's read-model."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The objects of one Hvpa, and what was taken for granted about them."""

    objects: Objects
    notes: tuple[str, ...] = ()


def gather(paths: Sequence[str], namespace: str | None) -> Gathered:
    """The objects in the files at `paths`; `namespace` is that of documents that name none (default: the
    Hvpa's own, else `default`). Raises CommandError where a file or an object is wrong, UsageError for two Hvpas."""
    documents = [one for path in dict.fromkeys(paths) for one in read_documents(path)]
    hvpas = [one for one in documents if one.kind == HVPAS.kind]
    if not hvpas:
        raise CommandError(f"no Hvpa in {', '.join(dict.fromkeys(paths))}")
    if len(hvpas) > 1:
        raise UsageError(
            f"exactly one Hvpa can be explained, not {len(hvpas)}: {', '.join(one.label for one in hvpas)}"
        )
    return _Gathering(hvpas[0], documents, namespace).gathered()


def invalid(hvpa: HvpaObject) -> list[FieldError]:
    """Everything that is wrong with an Hvpa, whichever check finds it."""
    problems = list(hvpa.problems)
    if hvpa.spec is not None and not problems:
        problems += spec_problems(hvpa.spec)
    return problems


class _Gathering:
    """One Hvpa's objects on their way from documents into the local copy."""

    def __init__(self, hvpa: Document, documents: list[Document], namespace: str | None) -> None:
        _refuse(hvpa, validate_manifest(hvpa.content))
        _name(hvpa)
        self.namespace = hvpa.metadata.get("namespace") or namespace or DEFAULT_NAMESPACE
        self.own = hvpa
        self.others = [one for one in documents if one is not hvpa and self._counts(one)]
        self.uid = self._uid()
        raw: RawHvpa = self._decoded(hvpa)
        found = read_hvpa(raw)
        _refuse(hvpa, invalid(found))
        assert found.spec is not None
        self.raw = raw
        self.spec: HvpaSpec = found.spec
        self.notes: list[str] = []

    def gathered(self) -> Gathered:
        """Everything put in place."""
        local = LocalCluster((ALL_NAMESPACES,), lambda key: None)
        local.hvpas.put(stored(self.raw))
        for document in self.others:
            obj = self._decoded(document)
            if isinstance(obj, Hpa):
                obj = self._owned(obj, self.spec.hpa.deploy, self.spec.hpa.selector)
            elif isinstance(obj, Vpa):
                obj = self._owned(obj, self.spec.vpa.deploy, self.spec.vpa.selector)
            store = local.store(RESOURCES[document.kind])
            store.delete(
                Key(obj.metadata.namespace, obj.metadata.name)
            )  # of two, the later counts, as with kubectl
            store.put(obj)
        objects = local.objects(Key(self.namespace, self.raw.metadata.name))
        assert objects is not None
        workload = objects.workload
        if workload is not None and workload.status.observed_generation == 0:
            settled = _settled(workload)
            complete = settled.status.available_replicas >= settled.spec.replicas
            self.notes.append(
                f"the status of {workload.kind} {workload.metadata.name} is not its controller's: "
                f"its rollout counts as {'complete' if complete else 'not complete'}"
            )
            objects = replace(objects, workload=settled)
        return Gathered(objects, tuple(self.notes))

    def _counts(self, document: Document) -> bool:
        """Whether a document may have to do with the Hvpa: its kind, and its namespace."""
        resource = RESOURCES.get(document.kind)
        if resource is None:
            return False
        wanted = resource.api.removeprefix("/apis/").removeprefix("/api/")
        group, _, _ = wanted.rpartition("/")
        found = document.content.get("apiVersion")
        if _FORMER_GROUPS.get(document.group, document.group) != group:
            return False
        if found != wanted:
            raise CommandError(f"{document.at('apiVersion')}: apiVersion: must be {wanted}")
        return bool(document.metadata.get("namespace", self.namespace) == self.namespace)

    def _uid(self) -> str:
        """The Hvpa's uid: its own, else what the objects that it owns say, else a synthetic one."""
        own, name = self.own.metadata.get("uid"), _name(self.own)
        if isinstance(own, str) and own:
            return own
        for document in self.others:
            for reference in _owners(document):
                if (
                    reference.get("kind") == HVPAS.kind
                    and reference.get("name") == name
                    and reference.get("uid")
                ):
                    return str(reference["uid"])
        return self._synthetic(self.own)

    def _synthetic(self, document: Document) -> str:
        return str(uuid.uuid5(_SYNTHETIC, f"{document.kind}/{self.namespace}/{_name(document)}"))

    def _decoded(self, document: Document) -> Any:
        """The read-model of a document, with what a cluster would have filled in."""
        metadata = document.content.get("metadata")
        if not isinstance(metadata, dict):
            raise CommandError(f"{document.at('metadata')}: metadata: must be an object")
        name = _name(document)
        filled = {**metadata, "name": name, "namespace": self.namespace}
        if document is self.own:
            filled["uid"] = self.uid
        elif not filled.get("uid"):
            filled["uid"] = self._synthetic(document)
        if "ownerReferences" in filled:
            filled["ownerReferences"] = [self._reference(one) for one in _list(filled["ownerReferences"])]
        return decoded(document, {**document.content, "metadata": filled})

    def _reference(self, reference: Plain) -> Plain:
        """An owner reference; one to the Hvpa that lacks the uid is given it."""
        if not isinstance(reference, dict) or reference.get("uid"):
            return reference
        ours = reference.get("kind") == HVPAS.kind and reference.get("name") == _name(self.own)
        return {**reference, "uid": self.uid} if ours else reference

    def _owned(self, obj: R, deploy: bool, selector: LabelSelector) -> R:
        """The HPA or VPA, owned by the Hvpa where it would be after adoption: it only recommends, to this Hvpa,
        and the selector matches. Manifests written by hand have no owner references, whatever the mode."""
        if obj.metadata.owner_references or not self._only_recommends(obj):
            return obj
        if not deploy or not selector.matches(obj.metadata.labels):
            return obj
        owner = OwnerReference(
            kind=HVPAS.kind,
            name=self.raw.metadata.name,
            uid=self.uid,
            api_version=API_VERSION,
            controller=True,
        )
        return msgspec.structs.replace(
            obj, metadata=msgspec.structs.replace(obj.metadata, owner_references=[owner])
        )

    def _only_recommends(self, obj: Hpa | Vpa) -> bool:
        if isinstance(obj, Hpa):
            target = obj.spec.scale_target_ref
            return (target.kind, target.name, target.api_version.partition("/")[0]) == (
                HVPAS.kind,
                self.raw.metadata.name,
                GROUP,
            )
        policy, reference = obj.spec.update_policy, obj.spec.target_ref
        workload = (self.spec.target_ref.kind, self.spec.target_ref.name)
        return (
            (reference.kind, reference.name) == workload
            and policy is not None
            and policy.update_mode == "Off"
        )


def _settled(workload: Workload) -> Workload:
    """A workload without its controller's status: what the status does not say is as the spec has it."""
    status, wanted = workload.status, workload.spec.replicas
    replicas = status.replicas or wanted
    ready = status.ready_replicas or replicas
    filled = WorkloadStatus(
        observed_generation=workload.metadata.generation,
        replicas=replicas,
        updated_replicas=status.updated_replicas or replicas,
        ready_replicas=ready,
        available_replicas=status.available_replicas or ready,
    )
    return msgspec.structs.replace(workload, status=filled)


def _name(document: Document) -> str:
    name = document.metadata.get("name")
    if not isinstance(name, str) or not name:
        raise CommandError(
            f"{document.at('metadata.name')}: metadata.name: {'must be a string' if name else 'is required'}"
        )
    return name


def _owners(document: Document) -> Iterator[dict[str, Plain]]:
    return (one for one in _list(document.metadata.get("ownerReferences")) if isinstance(one, dict))


def _list(value: Plain) -> list[Plain]:
    return value if isinstance(value, list) else []


def _refuse(document: Document, problems: Sequence[FieldError]) -> None:
    if problems:
        told = "; ".join(str(one) for one in problems)
        raise CommandError(f"{document.at(problems[0].path)}: {told}")
