"""Writes for policies: their Hvpas and their status."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from hvpa.api.policy.resource import PolicyObject
from hvpa.api.policy.status import PolicyStatus
from hvpa.core.model import FIELD_MANAGER
from hvpa.core.policies.model import PolicyChange
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.client.errors import ApiError, Unreachable, decoded, not_found_error, write_error
from hvpa.kube.client.limits import Limiter
from hvpa.kube.client.paths import PathError
from hvpa.kube.client.transport import JSON, MERGE_PATCH, Body, Transport, deletion
from hvpa.kube.objects.resources import CLUSTER_POLICIES, HVPA_POLICIES, HVPAS, ApiResource, T
from hvpa.reconcile.ports import Key, WriteError

_QUERY: Mapping[str, str] = {"fieldManager": FIELD_MANAGER}


class PolicyWriter:
    """Makes the writes of a plan. All methods raise WriteError."""

    def __init__(
        self, transport: Transport, local: LocalCluster, limiter: Limiter, may_write: Callable[[], bool]
    ) -> None:
        """`may_write` is called right before each write."""
        self._transport, self._local, self._limiter = transport, local, limiter
        self._may_write = may_write

    async def write(self, change: PolicyChange) -> None:
        """Create, patch or delete an Hvpa."""
        key = Key(change.namespace, change.name)
        try:
            path = HVPAS.path(change.namespace, None if change.action == "create" else change.name)
        except PathError as error:
            raise WriteError(str(error)) from error
        if change.action == "delete":
            await self._delete(key, path, change)
            return
        method, media = ("POST", JSON) if change.action == "create" else ("PATCH", MERGE_PATCH)
        body = Body(msgspec.json.encode(change.body), media)
        response = await self._send(key, method, path, _QUERY, body, change.action)
        self._take(HVPAS, response)

    async def write_status(self, policy: PolicyObject, status: PolicyStatus) -> None:
        """Write the status of a policy."""
        resource = HVPA_POLICIES if policy.kind == "HvpaPolicy" else CLUSTER_POLICIES
        meta = policy.metadata
        path = resource.path(meta.namespace or None, meta.name, "status")
        wire = status.model_dump(by_alias=True, mode="json")
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": wire}
        patch = Body(msgspec.json.encode(body), MERGE_PATCH)
        response = await self._send(Key(meta.namespace, meta.name), "PATCH", path, _QUERY, patch, "patch")
        self._take(resource, response)

    def _take(self, resource: ApiResource[T], response: bytes) -> None:
        """Put the response into the local copy."""
        try:
            obj = decoded(resource.decode, response, f"the {resource.kind}")
        except Unreachable as error:
            raise WriteError(str(error)) from error
        self._local.store(resource).put_own(obj, quiet=False)

    async def _delete(self, key: Key, path: str, change: PolicyChange) -> None:
        body = deletion(change.uid, change.resource_version)
        try:
            await self._send(key, "DELETE", path, {}, body, "delete")
        except WriteError as error:
            if not_found_error(error) is None:
                raise

    async def _send(
        self, key: Key, method: str, path: str, query: Mapping[str, str], body: Body, verb: str
    ) -> bytes:
        """Send a write once it has its permit."""
        async with self._limiter.permit():
            if not self._may_write():
                raise WriteError("not the leader (any more)")
            try:
                with self._limiter.write(key):
                    return await self._transport.request(method, path, query, body, verb=verb)
            except (ApiError, Unreachable) as error:
                raise write_error(error, patched=verb == "patch") from error
