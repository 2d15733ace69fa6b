"""From the documents of files to the operator's own local copy, and to the `Objects` of an Hvpa among them.

Read-models trust the API server and check little. Files have not passed an API server, so this module refuses what it
would have refused.

Files are often written by hand, so this module adds what a cluster would have filled in: namespace, uids, the owner
of an HPA or VPA that only recommends, and a workload's status if no controller has written it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from hvpa.api.hvpa.resource import HvpaObject, read_hvpa, validate_manifest
from hvpa.api.objects.kinds import has_replicas
from hvpa.api.objects.read_models import (
    Hpa,
    HpaSpecRead,
    Meta,
    OwnerReference,
    Pod,
    RawHvpa,
    Vpa,
    VpaSpecRead,
    Workload,
    WorkloadStatus,
)
from hvpa.api.schema.base import FieldError
from hvpa.api.schema.fields import INT32_MAX
from hvpa.api.values.documents import Plain
from hvpa.api.values.quantity import QuantityError, parse_cpu, parse_memory, parse_quantity
from hvpa.cli.errors import CommandError, UsageError, report_skipped
from hvpa.cli.input.custom import is_workload, key_of, named_targets, read_custom
from hvpa.cli.input.files import Document, read_documents, value_at, yaml_trap
from hvpa.cli.input.owners import Owners
from hvpa.cli.input.versions import OLDER
from hvpa.core.model import ADOPTED, API_VERSION, GROUP, Objects
from hvpa.core.recommenders.adoption import adoption_of, read_note
from hvpa.core.spec.check import spec_problems
from hvpa.core.workload.selector import selector_text
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.objects.resources import HPAS, HVPAS, NODES, ON_DEMAND, PODS, VPAS, WATCHED, ApiResource
from hvpa.kube.objects.stored_hvpa import stored
from hvpa.recommend.hpa import selector as labels
from hvpa.reconcile.ports import Key

T = TypeVar("T")
DEFAULT_NAMESPACE: Final = "default"
_SYNTHETIC: Final = uuid.UUID("5a3c2c6e-6d0e-5b7e-9a51-0f6f4b1f7a55")
"""Namespace of the uids for objects without a uid; the same objects always get the same uids."""
_FORMER_GROUPS: Final = {"extensions": "apps"}
"""Former groups of the same kinds."""
RESOURCES: Final[dict[str, ApiResource[Any]]] = {
    resource.kind: resource for resource in (*WATCHED, *ON_DEMAND, NODES)
}
"""The kinds that a decision reads."""
_SPECS: Final[dict[str, type]] = {HPAS.kind: HpaSpecRead, VPAS.kind: VpaSpecRead}
_PLACE: Final = re.compile(r"^(?P<message>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?$", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<found>[^`]*)`")
_BOUNDS: Final = re.compile(r"Expected `int` (?P<side>[<>]=) (?P<bound>-?[0-9]+)")
_WORDS: Final = {
    "object": "an object",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "bool": "true or false",
}
_QUANTITY_MAPS: Final = frozenset(
    {
        "requests",
        "limits",
        "target",
        "lower_bound",
        "upper_bound",
        "uncapped_target",
        "min_allowed",
        "max_allowed",
    }
)
_QUANTITIES: Final = frozenset({"value", "average_value", "tolerance"})
_LONG: Final = frozenset({"generation", "observed_generation"})


class Gathered(NamedTuple):
    """The objects of an Hvpa, and the assumptions about them."""

    objects: Objects
    notes: tuple[str, ...] = ()


def gather(paths: Sequence[str], namespace: str | None) -> Gathered:
    """The objects in the files at `paths`.

    `namespace` applies to documents without a namespace (default: the Hvpa's own, else `default`). Any other object
    that can't be used is skipped, with a line on standard error. Raises CommandError if a file or the Hvpa is wrong,
    UsageError for two Hvpas.
    """
    documents = [
        document for path in dict.fromkeys(paths) for document in read_documents(path, skip=report_skipped)
    ]
    hvpas = [document for document in documents if document.kind == HVPAS.kind]
    if not hvpas:
        raise CommandError(f"no Hvpa in {', '.join(dict.fromkeys(paths))}")
    if len(hvpas) > 1:
        raise UsageError(
            f"exactly one Hvpa can be explained, not {len(hvpas)}: "
            f"{', '.join(document.label for document in hvpas)}"
        )
    hvpa = hvpas[0]
    _refuse(hvpa, validate_manifest(hvpa.content))
    own_namespace = hvpa.metadata.get("namespace") or namespace or DEFAULT_NAMESPACE
    near = [
        document
        for document in documents
        if document.metadata.get("namespace", own_namespace) == own_namespace
    ]
    filled = Filled(near, own_namespace, must_read=(HVPAS.kind,))
    stored_objects = filled.local.objects(filled.hvpas[0])
    assert stored_objects is not None
    actuation = stored_objects.hvpa.status.actuation
    by_policy = actuation is not None and actuation.size_at_creation
    objects = replace(stored_objects, creation_sizes=() if by_policy else None)
    workload = objects.workload
    if workload is None or (workload.kind, workload.metadata.name) not in filled.settled:
        return Gathered(objects)
    complete = workload.status.available_replicas >= workload.spec.replicas
    note = (
        f"the status of {workload.kind} {workload.metadata.name} was not written by its controller: HVPA treats "
        f"the rollout as {'complete' if complete else 'not complete'}"
    )
    return Gathered(objects, (note,))


def invalid(hvpa: HvpaObject) -> list[FieldError]:
    """All problems of an Hvpa, whichever check finds them."""
    problems = list(hvpa.problems)
    if hvpa.spec is not None and not problems:
        problems += spec_problems(hvpa.spec)
    return problems


class Filled:
    """The documents as a local copy of a cluster, so that ownership is resolved as in the operator."""

    def __init__(
        self,
        documents: Sequence[Document],
        namespace: str,
        must_read: Collection[str] = (),
        skip: Callable[[CommandError], None] = report_skipped,
    ) -> None:
        """`namespace` applies to documents without a namespace.

        An object that can't be used is skipped, and `skip` gets the error: by default, it prints a line on standard
        error. Raises CommandError instead if its kind is in `must_read`.
        """
        self._namespace = namespace
        self._must_read = must_read
        self._skip = skip
        self.local = LocalCluster((ALL_NAMESPACES,), lambda key: None)
        """All objects that a decision reads."""
        self.settled: set[tuple[str, str]] = set()
        """Kinds and names of workloads whose status no controller wrote; it is filled in."""
        self.read: list[Document] = []
        """The documents that are used, in the API versions that are read. Other kinds and unusable documents are
        omitted."""
        known = list(filter(None, (self._unless_wrong(document, _current) for document in documents)))
        hvpas = [document for document in known if document.kind == HVPAS.kind]
        others = [
            document for document in known if document.kind in RESOURCES and document.kind != HVPAS.kind
        ]
        hvpas = [document for document in hvpas if self._unless_wrong(document, _checked) is not None]
        self._uids = {self._key(document): self._uid(document, others) for document in hvpas}
        decoded = [(document, self._unless_wrong(document, self._hvpa)) for document in hvpas]
        self._own = {self._key(document): hvpa for document, hvpa in decoded if hvpa is not None}
        self.hvpas = tuple(self._own)
        """Keys of the Hvpas, in the order of the files."""
        self.read += [document for document, hvpa in decoded if hvpa is not None]
        has_nodes = any(document.kind == NODES.kind for document in others)
        self.local.nodes.set_readable(has_nodes, "the files have no Node")
        # Pods first: they give the replica count of a DaemonSet without a status.
        for other in sorted(others, key=lambda document: document.kind != PODS.kind):
            self._unless_wrong(other, self._put)
        named = named_targets(known, namespace)
        for custom in (document for document in known if document.kind not in RESOURCES):
            if is_workload(custom, key_of(custom, namespace), named):
                self._unless_wrong(custom, self._put_custom)
        self._fill_owners()

    def _unless_wrong(self, document: Document, use: Callable[[Document], T | None]) -> T | None:
        """The result of `use`; None if the document can't be used and is skipped."""
        try:
            return use(document)
        except CommandError as error:
            if document.kind in self._must_read:
                raise
            self._skip(error)
            return None

    def _put(self, document: Document) -> None:
        obj = self._decoded(document)
        if isinstance(obj, Hpa | Vpa):
            obj = self._owned(obj)
        elif isinstance(obj, Workload) and obj.status.observed_generation == 0:
            self.settled.add((obj.kind, obj.metadata.name))
            obj = _settled(obj, self._count_pods(obj))
        store = self.local.store(RESOURCES[document.kind])
        # The later of two objects with the same name counts, as with kubectl.
        store.delete(Key(obj.metadata.namespace, obj.metadata.name))
        store.put(obj)
        self.read.append(document)

    def _put_custom(self, document: Document) -> None:
        content = self._completed(document)
        try:
            workload = read_custom(content)
        except (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError) as error:
            fault = _field_error(error, "")
            raise CommandError(f"{document.at(fault.path)}: {fault}") from None
        for fault in _faults(workload):
            raise CommandError(f"{document.at(fault.path)}: {fault}")
        self.local.put_scaled(workload)
        self.read.append(document)

    def _fill_owners(self) -> None:
        """Replace the pods by pods with the owners that a cluster would have filled in."""
        stores, pods = self.local.workloads.values(), self._pods()
        workloads = [
            workload for store in stores for key in store if (workload := store.get(key)) is not None
        ]
        without_uid = {
            (document.kind, _name(document)) for document in self.read if not document.metadata.get("uid")
        }
        owners = Owners(workloads, pods, without_uid)
        for pod in pods:
            if (filled := owners.filled(pod)) is not pod:
                self.local.pods.delete(Key(pod.metadata.namespace, pod.metadata.name))
                self.local.pods.put(filled)

    def _pods(self) -> list[Pod]:
        return [pod for key in self.local.pods if (pod := self.local.pods.get(key)) is not None]

    def _count_pods(self, workload: Workload) -> int:
        """Number of Pods in the files that a workload selects, except Pods that name another controller."""
        requirements = labels.parse_selector(selector_text(workload.spec.selector))
        near = [pod.metadata for pod in self._pods() if pod.metadata.namespace == workload.metadata.namespace]
        itself = (workload.kind, workload.metadata.name)
        return sum(
            labels.matches(requirements, meta.labels)
            and ((owner := meta.controller()) is None or (owner.kind, owner.name) == itself)
            for meta in near
        )

    def _key(self, document: Document) -> Key:
        return Key(document.metadata.get("namespace", self._namespace), _name(document))

    def _hvpa(self, document: Document) -> HvpaObject:
        raw: RawHvpa = self._decoded(document)
        hvpa = read_hvpa(raw)
        _refuse(document, invalid(hvpa))
        self.local.hvpas.put(stored(raw))
        return hvpa

    def _uid(self, hvpa: Document, others: Sequence[Document]) -> str:
        """The Hvpa's uid: its own, else the uid in its owned or adopted objects, else a synthetic uid."""
        own_uid, key = hvpa.metadata.get("uid"), self._key(hvpa)
        if isinstance(own_uid, str) and own_uid:
            return own_uid
        for document in others:
            is_near = document.metadata.get("namespace", self._namespace) == key.namespace
            note = value_at(document.content, "metadata", "annotations", ADOPTED) if is_near else None
            adoption = read_note(note) if isinstance(note, str) else None
            if adoption is not None and adoption.hvpa == key.name:
                return adoption.uid
            for reference in _list(document.metadata.get("ownerReferences")) if is_near else ():
                is_ours = isinstance(reference, dict) and reference.get("kind") == HVPAS.kind
                if is_ours and reference.get("name") == key.name and reference.get("uid"):
                    return str(reference["uid"])
        return self._synthetic(hvpa)

    def _synthetic(self, document: Document) -> str:
        key = self._key(document)
        return str(uuid.uuid5(_SYNTHETIC, f"{document.kind}/{key.namespace}/{key.name}"))

    def _decoded(self, document: Document) -> Any:
        """The read-model of a document, with the values that a cluster would have filled in."""
        return _decoded(document, self._completed(document))

    def _completed(self, document: Document) -> dict[str, Plain]:
        """The document's content with the metadata that a cluster would have filled in."""
        metadata = document.content.get("metadata")
        if not isinstance(metadata, dict):
            raise CommandError(f"{document.at('metadata')}: metadata: must be an object")
        key = self._key(document)
        filled = {**metadata, "name": key.name, "namespace": key.namespace}
        if document.kind == HVPAS.kind:
            filled["uid"] = self._uids[key]
        elif not filled.get("uid"):
            filled["uid"] = self._synthetic(document)
        if "ownerReferences" in filled:
            references = _list(filled["ownerReferences"])
            filled["ownerReferences"] = [
                self._reference(reference, key.namespace) for reference in references
            ]
        return {**document.content, "metadata": filled}

    def _reference(self, reference: Plain, namespace: str) -> Plain:
        """An owner reference; a reference to an Hvpa of the files gets the missing uid."""
        if not isinstance(reference, dict) or reference.get("uid") or reference.get("kind") != HVPAS.kind:
            return reference
        uid = self._uids.get(Key(namespace, str(reference.get("name"))))
        return reference if uid is None else {**reference, "uid": uid}

    def _owned(self, obj: Hpa | Vpa) -> Hpa | Vpa:
        """The HPA or VPA, owned by the Hvpa if the Hvpa would adopt it.

        It would if the object only recommends, to this Hvpa, and the selector matches. Manifests written by hand have
        no owner references, whatever the mode.
        """
        if obj.metadata.owner_references or adoption_of(obj) is not None:
            return obj
        for hvpa in self._own.values():
            assert hvpa.spec is not None
            part = hvpa.spec.hpa if isinstance(obj, Hpa) else hvpa.spec.vpa
            is_near = hvpa.metadata.namespace == obj.metadata.namespace and _only_recommends(obj, hvpa)
            if is_near and part.deploy and part.selector.matches(obj.metadata.labels):
                return _owned_by(obj, hvpa.metadata)
        return obj


def _current(document: Document) -> Document | None:
    """The document in the API version that is read.

    A document of a kind that is not read stays unchanged. The result is None for another group's kind of the same
    name. Raises CommandError for a version that can't be read.
    """
    resource = RESOURCES.get(document.kind)
    if resource is None or document.kind == HVPAS.kind:
        return document
    wanted = resource.api.removeprefix("/apis/").removeprefix("/api/")
    group, _, _ = wanted.rpartition("/")
    if _FORMER_GROUPS.get(document.group, document.group) != group:
        return None
    version = document.content.get("apiVersion")
    if version == wanted:
        return document
    upgrade = OLDER.get((document.kind, str(version)))
    if upgrade is None:
        raise CommandError(f"{document.at('apiVersion')}: apiVersion: must be {wanted}")
    return replace(document, content=upgrade(document.content))


def _checked(hvpa: Document) -> Document:
    """An Hvpa that the API server would accept. Raises CommandError."""
    _refuse(hvpa, validate_manifest(hvpa.content))
    _name(hvpa)
    return hvpa


def _only_recommends(obj: Hpa | Vpa, hvpa: HvpaObject) -> bool:
    if isinstance(obj, Hpa):
        target = obj.spec.scale_target_ref
        group = target.api_version.partition("/")[0]
        return (target.kind, target.name, group) == (HVPAS.kind, hvpa.metadata.name, GROUP)
    assert hvpa.spec is not None
    policy, reference = obj.spec.update_policy, obj.spec.target_ref
    workload = (hvpa.spec.target_ref.kind, hvpa.spec.target_ref.name)
    return (reference.kind, reference.name) == workload and policy is not None and policy.update_mode == "Off"


def _owned_by(obj: Hpa | Vpa, hvpa: Meta) -> Hpa | Vpa:
    owner = OwnerReference(
        kind=HVPAS.kind, name=hvpa.name, uid=hvpa.uid, api_version=API_VERSION, controller=True
    )
    return msgspec.structs.replace(
        obj, metadata=msgspec.structs.replace(obj.metadata, owner_references=[owner])
    )


def _settled(workload: Workload, pods: int) -> Workload:
    """A workload without its controller's status: missing values are taken from the spec.

    A DaemonSet has as many replicas as it has pods.
    """
    status, spec = workload.status, workload.spec
    if not has_replicas(workload.kind) and not spec.replicas:
        spec = msgspec.structs.replace(spec, replicas=pods)
    wanted = spec.replicas
    replicas = status.replicas or wanted
    ready = status.ready_replicas or replicas
    filled = WorkloadStatus(
        observed_generation=workload.metadata.generation,
        replicas=replicas,
        updated_replicas=status.updated_replicas or replicas,
        ready_replicas=ready,
        available_replicas=status.available_replicas or ready,
    )
    return msgspec.structs.replace(workload, spec=spec, status=filled)


def _name(document: Document) -> str:
    name = document.metadata.get("name")
    if not isinstance(name, str) or not name:
        raise CommandError(
            f"{document.at('metadata.name')}: metadata.name: {'must be a string' if name else 'is required'}"
        )
    return name


def _list(value: Plain) -> list[Plain]:
    return value if isinstance(value, list) else []


def _refuse(document: Document, problems: Sequence[FieldError]) -> None:
    if problems:
        text = "; ".join(_with_remedy(document, problem) for problem in problems)
        raise CommandError(f"{document.at(problems[0].path)}: {text}")


def _with_remedy(document: Document, problem: FieldError) -> str:
    remedy = yaml_trap(document, problem)
    return f"{problem}; {remedy}" if remedy else str(problem)


# --- read-models ----------------------------------------------------------------------------------------------------
def _decoded(document: Document, content: Plain) -> Any:
    """The read-model of `content`. Raises CommandError, which names the wrong field."""
    root = ""
    try:
        if document.kind in _SPECS:  # these are kept as bytes, and decoded when used
            root = "spec"
            msgspec.convert(content.get("spec", {}), type=_SPECS[document.kind])
            root = ""
        obj = RESOURCES[document.kind].read(msgspec.json.encode(content))
    except (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError) as error:
        fault = _field_error(error, root)
        raise CommandError(f"{document.at(fault.path)}: {_with_remedy(document, fault)}") from None
    for fault in _faults(obj):
        raise CommandError(f"{document.at(fault.path)}: {fault}")
    return obj


def _field_error(error: Exception, root: str) -> FieldError:
    match = _PLACE.match(str(error))
    assert match is not None
    path = ".".join(part for part in (root, (match["path"] or "").replace("[...]", "[*]")) if part)
    if "timezone" in match["message"]:
        return FieldError(path, "must be a timestamp with a time zone (such as 2026-11-21T10:15:00Z)")
    message = _BOUNDS.sub(_bound_text, match["message"])
    message = _TYPES.sub(
        lambda types: f"must be {_word(types['wanted'])}, is {_word(types['found'])}", message
    )
    return FieldError(path or "object", message[:1].lower() + message[1:])


def _bound_text(match: re.Match[str]) -> str:
    if (match["side"], match["bound"]) == (">=", "0"):
        return "must not be negative"
    return f"must not be {'below' if match['side'] == '>=' else 'above'} {match['bound']}"


def _word(types: str) -> str:
    return " or ".join(
        _WORDS.get(type_name, type_name) for type_name in types.split(" | ") if type_name != "null"
    )


def _faults(value: object, path: str = "") -> Iterator[FieldError]:
    """Problems in a read-model that decoding does not detect: invalid quantities, negative and huge counts."""
    if isinstance(value, Hpa | Vpa):
        yield from _faults(value.metadata, "metadata")
        yield from _faults(value.spec, "spec")
        yield from _faults(value.status, "status")
    elif isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            entry = getattr(value, field.name)
            below = f"{path}.{field.encode_name}" if path else field.encode_name
            yield from _scalar_faults(field.name, entry, below)
            yield from _faults(entry, below)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _faults(entry, f"{path}[{index}]")


def _scalar_faults(name: str, value: object, path: str) -> Iterator[FieldError]:
    if isinstance(value, dict) and name in _QUANTITY_MAPS:
        for resource, quantity in value.items():
            yield from _quantity_faults(resource, quantity, f"{path}.{resource}")
    elif name in _QUANTITIES and isinstance(value, str | int | float):
        yield from _quantity_faults("", value, path)
    elif isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            yield FieldError(path, "must not be negative")
        elif value > INT32_MAX and name not in _LONG:
            yield FieldError(path, f"must not be above {INT32_MAX}")


def _quantity_faults(resource: str, quantity: str | int | float, path: str) -> Iterator[FieldError]:
    try:
        {"cpu": parse_cpu, "memory": parse_memory}.get(resource, parse_quantity)(quantity)
    except QuantityError as error:
        yield FieldError(path, str(error))
