"""The cluster port: reads from the local copy, conditional writes to the API server, responses back into the copy."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.kinds import kind_key
from hvpa.api.objects.read_models import Meta, Pod
from hvpa.api.schema.base import dotted_path
from hvpa.api.values import text
from hvpa.core.model import (
    ADOPTED,
    DELETION_COST,
    FIELD_MANAGER,
    Event,
    FastUsage,
    Involved,
    MetricValue,
    Objects,
    OwnedChange,
    PodCost,
    PodResize,
    WorkloadPatch,
)
from hvpa.core.recommenders import manifests
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.client.errors import UNREADABLE, ApiError, Unreachable, decoded, not_found_error, write_error
from hvpa.kube.client.limits import Limiter
from hvpa.kube.client.paths import PathError
from hvpa.kube.client.transport import (
    APPLY_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Body,
    Transport,
    deletion,
)
from hvpa.kube.creation_sizes import CreationSizes
from hvpa.kube.events import EventRecorder
from hvpa.kube.kubelets.signal import KubeletSignal
from hvpa.kube.objects import workloads
from hvpa.kube.objects.resources import HPAS, HVPA_SIZES, HVPAS, PODS, VPAS, WORKLOADS, ApiResource, T
from hvpa.kube.objects.stored_hvpa import StoredHvpa
from hvpa.kube.objects.usage import read_usage
from hvpa.kube.service_metrics import ServiceMetrics
from hvpa.reconcile.ports import (
    Conflict,
    Key,
    NotServed,
    Refused,
    ResizeFailures,
    SizeChanges,
    Unavailable,
    WriteError,
)

V = TypeVar("V")
W = TypeVar("W")
log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_BY_KIND: Mapping[str, ApiResource[Any]] = {**WORKLOADS, HPAS.kind: HPAS, VPAS.kind: VPAS}
PODS_AT_ONCE = 16
"""Maximum concurrent writes to a workload's pods."""
_VERBS: Mapping[str, str] = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
NO_DRY_RUN = "does not support dry run"
"""The API server's message about a webhook with side effects (`NewDryRunUnsupportedErr` in apiserver/pkg/admission)."""
RETURNED = "AdoptedReturned"
"""Reason of the Event on an HPA or VPA that is made as it was before an Hvpa adopted it."""
NO_RESIZE = "the API server has no subresource pods/resize, which requires Kubernetes 1.33"


class _Kind(msgspec.Struct):
    kind: str = ""


_decode_kind = msgspec.json.Decoder(_Kind).decode


class _Specified(msgspec.Struct):
    spec: dict[str, Any] = {}


_decode_spec = msgspec.json.Decoder(_Specified).decode


class _Items(msgspec.Struct):
    items: list[msgspec.Raw]


_decode_items = msgspec.json.Decoder(_Items).decode


class KubeCluster:
    """`hvpa.reconcile.ports.Cluster` of a real cluster.

    `may_write` is called with the Hvpa right before each write: a process that has lost its lease, or the Hvpa's
    shard, must not write any more.
    """

    def __init__(
        self,
        transport: Transport,
        local: LocalCluster,
        recorder: EventRecorder,
        may_write: Callable[[Key], bool] = lambda key: True,
        limiter: Limiter | None = None,
    ) -> None:
        self._transport = transport
        self._local = local
        self._recorder = recorder
        self._may_write = may_write
        self._limiter = limiter or Limiter()
        self.signal: KubeletSignal | None = None
        self.metrics: ServiceMetrics | None = None
        self.on_conflict: Callable[[], None] = lambda: None
        """Called after each write that was a conflict."""
        self._creation_sizes = CreationSizes(self._send, partial(self._take, HVPA_SIZES, quiet=True))

    def objects(self, key: Key) -> Objects | None:
        return self._local.objects(key)

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        resource = self._resource_of(patch)
        response = await self._send_workload_patch(hvpa, resource, patch)
        if patch.is_scale:
            self._take_scale(hvpa, resource, patch, response)
        else:
            self._take(resource, response, quiet=True)

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """A dry run: the API server runs all checks of the write and stores nothing. It can't call a webhook that has
        side effects, and reports that."""
        try:
            await self._send_workload_patch(hvpa, self._resource_of(patch), patch, dry_run=True)
        except Refused as error:
            if NO_DRY_RUN not in str(error):
                raise

    def _resource_of(self, patch: WorkloadPatch) -> ApiResource[Any]:
        """The resource of the workload. Raises WriteError if the cluster no longer serves it."""
        kind = kind_key(patch.api_version, patch.kind)
        resource = _BY_KIND.get(kind) or self._local.custom.resources.get((patch.api_version, patch.kind))
        if resource is None:
            raise WriteError(f"the cluster serves no {patch.kind} of {patch.api_version} any more")
        return resource

    async def _send_workload_patch(
        self, hvpa: Meta, resource: ApiResource[Any], patch: WorkloadPatch, *, dry_run: bool = False
    ) -> bytes:
        if patch.is_scale:
            path = _path(resource, hvpa, patch.name, "scale")
            return await self._patch(hvpa, path, patch.body, MERGE_PATCH, dry_run=dry_run)
        metadata = patch.body.get("metadata")
        known = metadata if isinstance(metadata, Mapping) else {}
        body = {**patch.body, "metadata": {**known, "resourceVersion": patch.resource_version}}
        path = _path(resource, hvpa, patch.name)
        return await self._patch(hvpa, path, body, STRATEGIC_MERGE_PATCH, dry_run=dry_run)

    def _take_scale(
        self, hvpa: Meta, resource: ApiResource[Any], patch: WorkloadPatch, response: bytes
    ) -> None:
        """Update the workload in the local copy after a write to its `scale` subresource.

        The response is a Scale, so only replicas and version of the workload change.
        """
        if resource.kind not in _BY_KIND:
            self._take(resource, response, quiet=True)
            return
        known = self._local.store(resource).get(Key(hvpa.namespace, patch.name))
        scale = _read(partial(workloads.from_scale, "", ""), response, "Scale")
        if scale is None or known is None or known.metadata.resource_version != patch.resource_version:
            return  # unreadable, or the watch is ahead of the response
        replace, version = msgspec.structs.replace, scale.metadata.resource_version
        generation = known.metadata.generation + 1
        metadata = replace(known.metadata, resource_version=version, generation=generation)
        spec = replace(known.spec, replicas=scale.spec.replicas)
        self._local.store(resource).put_own(replace(known, metadata=metadata, spec=spec), quiet=True)

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        return await _in_parallel(partial(self._resize, hvpa), resizes)

    async def _resize(self, hvpa: Meta, resize: PodResize) -> None:
        """Resize a pod. A pod that was deleted, or replaced by another pod of the same name, is left to the watch."""
        path = _path(PODS, hvpa, resize.pod, "resize")
        try:
            response = await self._patch(hvpa, path, resize.body, STRATEGIC_MERGE_PATCH)
        except Conflict as error:
            if (cause := not_found_error(error)) is None:
                raise
            if cause.is_of_an_object:
                return
            raise NotServed(NO_RESIZE) from error
        self._take(PODS, response)

    async def write_pod_costs(self, hvpa: Meta, costs: Sequence[PodCost]) -> Sequence[WriteError]:
        failures = await _in_parallel(partial(self._write_pod_cost, hvpa), costs)
        return [error for _, error in failures if not isinstance(error, Conflict)]

    async def _write_pod_cost(self, hvpa: Meta, cost: PodCost) -> None:
        annotations = {DELETION_COST: cost.cost}
        metadata = {"uid": cost.uid, "resourceVersion": cost.resource_version, "annotations": annotations}
        response = await self._patch(hvpa, _path(PODS, hvpa, cost.pod), {"metadata": metadata}, MERGE_PATCH)
        self._take(PODS, response, quiet=True)

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        try:
            usage = await read_usage(self._transport, hvpa.namespace, selector)
        except (ApiError, Unreachable) as error:
            log.debug("memory usage is unknown", namespace=hvpa.namespace, error=str(error))
            return {}
        return {key: used["memory"] for key, used in usage.items() if "memory" in used}

    def reported_usage(self, key: Key, pods: Sequence[Pod], above: int) -> FastUsage | None:
        return None if self.signal is None else self.signal.usage(key, pods, above)

    def canary_values(
        self, key: Key, metrics: Sequence[RollbackMetric], *, often: bool
    ) -> tuple[MetricValue, ...] | None:
        return None if self.metrics is None else self.metrics.values(key, metrics, often=often)

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        if changes is None:
            changes = dict.fromkeys(self._local.owners_of_sizes(Key(hvpa.namespace, hvpa.name)))
        if changes:
            await self._creation_sizes.write(hvpa, changes)

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        key = Key(hvpa.namespace, hvpa.name)
        body = {"metadata": {"resourceVersion": hvpa.resource_version}, "status": dict(patch)}
        written: StoredHvpa | None = None
        self._local.begin_status_write(key)
        try:
            path = _path(HVPAS, hvpa, hvpa.name, "status")
            written = self._take(HVPAS, await self._patch(hvpa, path, body, MERGE_PATCH), quiet=True)
            if (stored := self._local.hvpas.get(key)) is not None:
                stored.read()  # so that neither its bytes nor the previous version are kept until the next read
        finally:
            self._local.end_status_write(key, written)

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        known = self._local.hvpas.get(Key(hvpa.namespace, hvpa.name))
        newest = known.metadata.resource_version if known is not None else hvpa.resource_version
        body = {"metadata": {"resourceVersion": newest}, "spec": {"replicas": replicas}}
        path = _path(HVPAS, hvpa, hvpa.name)
        self._take(HVPAS, await self._patch(hvpa, path, body, MERGE_PATCH))

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        resource = _BY_KIND[change.kind]
        path = _path(resource, hvpa, change.name)
        if change.action == "apply":
            if change.manifest is None:
                raise WriteError(f"no manifest to apply to {change.kind} {change.name}")
            known = self._local.store(resource).get(Key(hvpa.namespace, change.name)) is not None
            if change.passed_on:
                await self._check_passed_on(hvpa, path, change, force=known)
            self._take(resource, await self._apply(hvpa, path, change.manifest, force=known))
        elif change.action == "delete":
            await self._delete(hvpa, resource, path, change)
        elif change.action == "release":
            self._take(resource, await self._patch(hvpa, path, change.manifest or {}, MERGE_PATCH))
        else:
            await self._return(hvpa, resource, path, change)

    async def _return(self, hvpa: Meta, resource: ApiResource[Any], path: str, change: OwnedChange) -> None:
        """Make an adopted object as it was. An Event on it reports that, since its Hvpa may be gone."""
        try:
            obj = self._take(resource, await self._patch(hvpa, path, change.manifest or {}, MERGE_PATCH))
        except Refused as error:
            what = f"{change.kind} {change.name} can't be made as before its adoption"
            how = f"to leave it as it is, remove its annotation {ADOPTED}"
            raise Refused(f"{what}: {error}; {how}") from error
        if obj is not None:
            meta, version = obj.metadata, resource.api.removeprefix("/apis/")
            involved = Involved(version, change.kind, meta.name, meta.uid, meta.resource_version)
            message = f"as before Hvpa {hvpa.name} adopted it"
            await self.record_event(hvpa, Event("Normal", RETURNED, message, involved))

    async def give_back(self, hvpa: Meta) -> None:
        changes = self._local.adopted_by(Key(hvpa.namespace, hvpa.name))
        if not changes or await self._exists(hvpa):
            return
        errors: list[WriteError] = []
        for change in changes:
            try:
                await self.change_owned(hvpa, change)
            except WriteError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def _exists(self, hvpa: Meta) -> bool:
        """Whether the API server has an Hvpa that the local copy lacks: it may be behind, or unable to read it."""
        path, query = HVPAS.path(hvpa.namespace), {"fieldSelector": f"metadata.name={hvpa.name}"}
        try:
            response = await self._transport.request("GET", path, query, verb="list")
            return bool(decoded(_decode_items, response, "the list of Hvpas").items)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.status == 404:
                return False  # the CRD was deleted
            raise write_error(error, patched=False) from error

    async def _check_passed_on(self, hvpa: Meta, path: str, change: OwnedChange, *, force: bool) -> None:
        """A dry run of an apply with fields that HVPA does not know. Raises Refused, with the field and the reason, if
        the API server does not know one of them either, drops it (a feature gate is off), or stores another value."""
        assert change.manifest is not None
        template = f"spec.{'hpa' if change.kind == HPAS.kind else 'vpa'}.template.spec"
        names = text.names([dotted_path((template, *field)) for field in change.passed_on])
        try:
            response = await self._apply(hvpa, path, change.manifest, force, dry_run=True)
        except Refused as error:
            raise Refused(f"{change.kind} {change.name} is not written, with {names}: {error}") from error
        written = _read(_decode_spec, response, change.kind)
        wanted = change.manifest.get("spec")
        lost = manifests.not_taken(None if written is None else written.spec, wanted, change.passed_on)
        if lost is not None:
            why = "the API server drops this field, or stores another value"
            gate = f"a feature gate of the cluster may be off, so {change.kind} {change.name} is not written"
            raise Refused(f"{dotted_path((template, *lost))}: {why}; {gate}")

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        """See the port. Returns at once; the Event is written in the background."""
        self._recorder.record(hvpa, event)

    def _take(self, resource: ApiResource[T], response: bytes, quiet: bool = False) -> T | None:
        """Put the response to a write into the local copy; returns its object, None if the response can't be read.

        `quiet`: the response is as expected and enqueues nothing.
        """
        obj = _read(resource.decode, response, resource.kind)
        if obj is not None:
            self._local.store(resource).put_own(obj, quiet)
        return obj

    async def _delete(self, hvpa: Meta, resource: ApiResource[Any], path: str, change: OwnedChange) -> None:
        try:
            body = deletion(change.uid)
            response = await self._send(hvpa, "DELETE", path, {}, body)
        except WriteError as error:
            if not_found_error(error) is None:
                raise
        else:
            deleted = _read(_decode_kind, response, resource.kind)
            if deleted is not None and deleted.kind == resource.kind:  # it exists until its finalizers end
                self._take(resource, response)
                return
        key = Key(hvpa.namespace, change.name)
        known = self._local.store(resource).get(key)
        if known is not None and known.metadata.uid == change.uid:
            self._local.store(resource).delete(key)

    async def _patch(
        self, hvpa: Meta, path: str, body: Mapping[str, object], content_type: str, *, dry_run: bool = False
    ) -> bytes:
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        return await self._send(hvpa, "PATCH", path, query, Body(msgspec.json.encode(body), content_type))

    async def _apply(
        self, hvpa: Meta, path: str, manifest: Mapping[str, object], force: bool, *, dry_run: bool = False
    ) -> bytes:
        """Server-side apply.

        Without `force` (an object not in the local copy), an object that another client has created under this name
        stays unchanged: the API server refuses to change fields of another manager.
        """
        query = {"fieldManager": FIELD_MANAGER} | ({"force": "true"} if force else {})
        query |= {"dryRun": "All", "fieldValidation": "Strict"} if dry_run else {}
        body = Body(msgspec.json.encode(manifest), APPLY_PATCH)
        try:
            return await self._send(hvpa, "PATCH", path, query, body)
        except Conflict as error:
            if force:
                raise
            raise WriteError(str(error)) from error  # retried slowly, or once the watch delivers the object

    async def _send(self, hvpa: Meta, method: str, path: str, query: Mapping[str, str], body: Body) -> bytes:
        """Send a write for a decision on `hvpa`: now or not at all, see `hvpa.kube.client.limits`.

        Without a response, or after a server error, the write is sent once more. That is safe: a patch or deletion
        names its version, and an apply is idempotent. If the first attempt succeeded after all, the second attempt is
        a conflict, and the next read shows the result.
        """
        try:
            return await self._send_once(hvpa, method, path, query, body)
        except Unavailable as error:
            log.debug("sending the write again", method=method, path=path, error=str(error))
        return await self._send_once(hvpa, method, path, query, body)

    async def _send_once(
        self, hvpa: Meta, method: str, path: str, query: Mapping[str, str], body: Body
    ) -> bytes:
        key = Key(hvpa.namespace, hvpa.name)
        if not self._may_write(key):
            raise WriteError("not the leader (any more)")
        verb = "apply" if body.content_type == APPLY_PATCH else _VERBS[method]
        try:
            with self._limiter.write(key):
                return await self._transport.request(method, path, query, body, verb=verb)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.status == 409:
                self.on_conflict()
            raise write_error(error, patched=verb != "apply") from error


async def _in_parallel(
    write: Callable[[W], Awaitable[None]], writes: Sequence[W]
) -> list[tuple[W, WriteError]]:
    """Make writes to pods, PODS_AT_ONCE at a time. Returns the failed writes with their errors."""
    left, failures = iter(writes), list[tuple[W, WriteError]]()

    async def one_after_another() -> None:
        for one in left:
            try:
                await write(one)
            except WriteError as error:
                failures.append((one, error))

    await asyncio.gather(*[one_after_another() for _ in range(min(PODS_AT_ONCE, len(writes)))])
    return failures


def _path(resource: ApiResource[Any], hvpa: Meta, name: str, subresource: str | None = None) -> str:
    """The path of an object in the Hvpa's namespace. Raises WriteError if the name is invalid."""
    try:
        return resource.path(hvpa.namespace, name, subresource)
    except PathError as error:
        raise WriteError(str(error)) from error


def _read(decode: Callable[[bytes], V], response: bytes, kind: str) -> V | None:
    """The decoded response to a write; None, with a line in the log, if it can't be read."""
    try:
        return decode(response)
    except UNREADABLE as error:
        log.warning("response to a write can't be read", kind=kind, error=str(error))
        return None
