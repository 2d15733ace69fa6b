"""Reads objects from a cluster, once, with GET and LIST; nothing is written or watched.

The objects go into the operator's own local copy, so that an Hvpa's objects are found as in the operator.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

import msgspec
import structlog

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import TargetRef
from hvpa.api.objects.read_models import ObjectReference, Workload
from hvpa.cli.errors import ClusterError, CommandError
from hvpa.cli.input.gather import DEFAULT_NAMESPACE
from hvpa.core.model import Objects, Settings
from hvpa.core.workload.selector import selector_text
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.custom_targets import custom_target
from hvpa.kube.cache.scales import NotScalable, read_scale
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.credentials import Credentials, own_namespace
from hvpa.kube.client.discovery import resizes_pods, served
from hvpa.kube.client.errors import ApiError, ConfigError, Unreachable
from hvpa.kube.client.library import kube_config
from hvpa.kube.client.pages import ListPage, read_list
from hvpa.kube.client.paths import PathError
from hvpa.kube.client.transport import Transport
from hvpa.kube.clock import SystemClock
from hvpa.kube.objects.resources import (
    CHECKPOINTS,
    CLUSTER_WIDE,
    HPAS,
    HVPA_SIZES,
    HVPAS,
    NAMESPACES,
    NODES,
    PODS,
    VPAS,
    WORKLOADS,
    ApiResource,
)
from hvpa.kube.objects.stored_hvpa import Links
from hvpa.kube.objects.versions import other_version
from hvpa.reconcile.ports import Key

NOT_OUR_FAULT = frozenset({401, 408, 429})
"""HTTP codes below 500 that do not concern the request itself."""
NO_CRD = "the cluster does not serve Hvpas: the CRD is not installed"
_FORBIDDEN = 403
T = TypeVar("T")


def is_of_the_server(error: ApiError) -> bool:
    """Whether an error concerns the API server or the credentials, and not the request itself."""
    return error.status >= 500 or error.status in NOT_OUR_FAULT


class _Name(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Named(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)


def read_cluster(read: Callable[[Reader], Awaitable[T]], user_agent: str, args: argparse.Namespace) -> T:
    """The result of `read` on the cluster that the flags select; the namespace defaults to the kubeconfig context's.

    Raises CommandError if an object does not exist or can't be read, ClusterError if the cluster can't be reached.
    """

    async def connected() -> T:
        credentials = await Credentials.load(args.kubeconfig, args.context)
        transport = Transport(credentials, user_agent=user_agent)
        namespace = args.namespace or _default_namespace(args.kubeconfig, args.context)
        period: dt.timedelta = getattr(args, "vpa_recommender_interval", Settings().vpa_period)
        try:
            return await read(Reader(transport, namespace, period))
        except PathError as error:
            raise CommandError(str(error)) from error
        except Unreachable as error:
            raise ClusterError(f"can't reach the cluster at {transport.server}: {error}") from error
        except ApiError as error:
            kind = ClusterError if is_of_the_server(error) else CommandError
            raise kind(f"{transport.server} responds {error.status}: {error}") from error
        finally:
            await transport.close()

    try:
        with nullcontext() if args.debug else _silence():
            return asyncio.run(connected())
    except ConfigError as error:
        raise ClusterError(f"can't reach the cluster: {error}") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Disable logs during the block: errors already contain what matters."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        structlog.configure(**before)


def _default_namespace(kubeconfig: str | None, context: str | None) -> str:
    """The namespace of the kubeconfig's context; in a Pod without a kubeconfig, the Pod's."""
    try:
        contexts, current = kube_config.list_kube_config_contexts(kubeconfig)
    # The library lets YAML, type and key errors through; a broken file was refused before.
    except Exception:
        return own_namespace(DEFAULT_NAMESPACE)
    chosen = (
        current
        if context is None
        else next((entry for entry in contexts if entry.get("name") == context), None)
    )
    details: Any = chosen.get("context") if isinstance(chosen, Mapping) else None
    namespace = details.get("namespace") if isinstance(details, Mapping) else None
    return namespace if isinstance(namespace, str) and namespace else DEFAULT_NAMESPACE


class Reader:
    """Fills a local copy with objects."""

    def __init__(
        self, transport: Transport, namespace: str, vpa_period: dt.timedelta = Settings().vpa_period
    ) -> None:
        self.transport = transport
        self.on_unreadable: Callable[[str, str, str, str], None] = _refuse_unreadable
        """Called with the kind, namespace, name and fault of an object that can't be read; ends the command by
        default."""
        self.namespace: str | None = namespace
        """The namespace to list, None for all."""
        self.local = LocalCluster((ALL_NAMESPACES,), lambda key: None, vpa_period=vpa_period)

    async def hvpa(self, name: str) -> HvpaObject:
        """The Hvpa of this name in the reader's namespace."""
        if not await self.list(HVPAS):
            raise CommandError(await self.why_no_hvpas())
        stored = self.local.hvpas.get(self._key(name))
        if stored is None:
            raise CommandError(f"Hvpa {self._key(name)} does not exist")
        return stored.read()

    async def objects(self, name: str) -> Objects:
        """All objects of the Hvpa of this name in the reader's namespace."""
        spec = (await self.hvpa(name)).spec
        has_vpas = await self.list(VPAS)
        self.local.set_served(VPAS, has_vpas)
        if has_vpas and await self.may_list(CHECKPOINTS):
            self.local.note_silences(SystemClock().now())
        self.local.set_served(HVPA_SIZES, await self._list_sizes())
        if spec is not None and spec.joint and spec.strategy.is_default:
            await self.note_resizes()
        await self.list(HPAS)
        target = spec.target_ref if spec is not None else None
        if target is not None:
            workload = await self._target(target)
            if workload is not None and (selector := selector_text(workload.spec.selector)):
                await self.list(PODS, {"labelSelector": selector})
        await self.read_nodes()
        objects = self.local.objects(self._key(name))
        assert objects is not None
        return objects

    async def read_nodes(self) -> None:
        """List the nodes, if an Hvpa that was read needs them."""
        if self.local.nodes.is_wanted:
            self.local.nodes.set_readable(await self.may_list(NODES), "you may not list nodes")

    async def why_no_hvpas(self) -> str:
        """The message if Hvpas are not served."""
        return await other_version(self.transport) or NO_CRD

    async def refuse_other_version(self, resource: ApiResource[Any]) -> None:
        """Raise CommandError if `resource` is Hvpas and the cluster serves them in another version.

        Without this, the command would treat them as absent.
        """
        if resource is HVPAS and (other := await other_version(self.transport)):
            raise CommandError(other)

    def _key(self, name: str) -> Key:
        assert self.namespace is not None
        return Key(self.namespace, name)

    async def _target(self, reference: TargetRef) -> Workload | None:
        """The workload that an Hvpa of the namespace names."""
        if reference.kind in WORKLOADS:
            return await self._get(WORKLOADS[reference.kind], reference.name)
        assert self.namespace is not None
        named = ObjectReference(reference.kind, reference.name, reference.api_version or "")
        custom = custom_target(self.namespace, Links(named))
        if custom is None:
            return None
        try:
            workload = await read_scale(self.transport, self.local, custom)
        except (ApiError, NotScalable) as error:
            self.local.set_custom(custom, None, str(error))
            return None
        self.local.set_custom(custom, workload)
        return workload

    async def namespace_labels(self) -> Mapping[str, str] | None:
        """The labels of the reader's namespace; None if the user may not read them."""
        try:
            response = await self.transport.request("GET", NAMESPACES.path(None, self.namespace))
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            return None
        return NAMESPACES.decode(msgspec.Raw(response)).metadata.labels

    async def workload(self, resource: ApiResource[Workload], name: str) -> Workload | None:
        """The workload of this name in the reader's namespace; None if there is none."""
        return await self._get(resource, name)

    async def _get(self, resource: ApiResource[Workload], name: str) -> Workload | None:
        try:
            response = await self.transport.request("GET", resource.path(self.namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        self._put(resource, msgspec.Raw(response))
        return self.local.workloads[resource.kind].get(self._key(name))

    async def list(self, resource: ApiResource[Any], query: Mapping[str, str] | None = None) -> bool:
        """Store all objects of the namespace; returns False if the cluster does not serve the resource. Raises
        ApiError."""

        def store_page(page: ListPage) -> None:
            for item in page.items or ():
                self._put(resource, item)

        try:
            namespace = None if resource in CLUSTER_WIDE else self.namespace
            await read_list(self.transport, resource.path(namespace), store_page, query)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def _list_sizes(self) -> bool:
        """Whether a policy sizes new pods; the user need not be allowed to read the sizes."""
        try:
            return await self.list(HVPA_SIZES)
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            return await self.is_served(HVPA_SIZES)

    async def may_list(self, resource: ApiResource[Any]) -> bool:
        """List a resource that the user need not be allowed to read; returns whether it was listed."""
        try:
            return await self.list(resource)
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            return False

    async def is_served(self, resource: ApiResource[Any]) -> bool:
        """Whether the cluster serves the resource; every user may read this. Raises ApiError."""
        try:
            known = await served(self.transport, resource.api)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return any(served_resource.name == resource.plural for served_resource in known)

    async def note_resizes(self) -> None:
        """Check whether the cluster can resize pods. Raises ApiError and Unreachable."""
        self.local.set_resizes_pods(await resizes_pods(self.transport))

    def _put(self, resource: ApiResource[Any], raw: msgspec.Raw) -> None:
        try:
            self.local.store(resource).put(resource.decode(raw))
        except msgspec.MsgspecError as error:
            name = _name_of(raw)
            self.on_unreadable(resource.kind, self.namespace or name.namespace, name.name, str(error))


def _refuse_unreadable(kind: str, namespace: str, name: str, fault: str) -> None:
    raise CommandError(f"{kind} {namespace}/{name} can't be read: {fault}")


def _name_of(raw: msgspec.Raw) -> _Name:
    try:
        return msgspec.json.decode(raw, type=_Named).metadata
    except msgspec.MsgspecError:
        return _Name("?", "?")
