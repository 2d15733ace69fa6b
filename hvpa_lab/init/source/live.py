"""Reads a workload and its autoscalers from a cluster, with GET and LIST, once; nothing is written or watched."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import msgspec

from hvpa.cli.errors import CommandError
from hvpa.cli.input.live import Reader, read_cluster
from hvpa.core.workload.selector import selector_text
from hvpa.kube.client.discovery import served
from hvpa.kube.client.errors import ApiError, decoded
from hvpa.kube.client.pages import ListPage, read_list
from hvpa.kube.objects.resources import HPAS, HVPAS, PODS, VPAS, WORKLOADS, ApiResource, custom_resource
from hvpa_lab.init.source.present import SCALED_OBJECTS, Present, TargetName, present, read_workload

_SCALERS: Final[tuple[ApiResource[Any], ...]] = (HPAS, VPAS, HVPAS, SCALED_OBJECTS)
_FORBIDDEN: Final = 403
_NOT_THERE: Final = 404
_DIGITS: Final = re.compile(r"[0-9]+")

Object = Mapping[str, Any]
T = TypeVar("T")


class _Version(msgspec.Struct, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    """An API group (`metav1.APIGroup`)."""

    preferred_version: _Version = msgspec.field(default_factory=_Version)


def fetch_present(args: argparse.Namespace, wanted: TargetName) -> Present:
    """The current workload.

    Raises CommandError if it does not exist or a permission is missing, ClusterError if the cluster can't be reached.
    """

    async def read(reader: Reader) -> Present:
        namespace = reader.namespace
        assert namespace is not None
        objects = [await _get_workload(reader, wanted)]
        for resource in _SCALERS:
            objects += await _listed(reader, resource)
        if selector := selector_text(read_workload(objects[0], namespace).spec.selector):
            objects += await _pods(reader, selector)
        minor = args.kubernetes if args.kubernetes is not None else await _minor(reader)
        return present(objects, wanted, namespace, minor)

    return read_cluster(read, "hvpa-init", args)


async def _get_workload(reader: Reader, wanted: TargetName) -> Object:
    resource = await _custom(reader, wanted) if wanted.group else WORKLOADS[wanted.kind]
    try:
        body = await reader.transport.request("GET", resource.path(reader.namespace, wanted.name))
    except ApiError as error:
        if error.status == _NOT_THERE:
            raise CommandError(f"{wanted.title} {reader.namespace}/{wanted.name} does not exist") from None
        if error.status == _FORBIDDEN:
            raise CommandError(f"no right to get {resource.plural}: {error}") from error
        raise
    return _named(resource, msgspec.Raw(body))


async def _custom(reader: Reader, wanted: TargetName) -> ApiResource[Any]:
    """The resource of a custom kind, in its group's preferred version. Raises CommandError."""
    try:
        group = await _read(reader, f"/apis/{wanted.group}", _Group)
        version = group.preferred_version.group_version
        resources = await served(reader.transport, f"/apis/{version}")
    except ApiError as error:
        if error.status != _NOT_THERE:
            raise
        raise CommandError(f"the cluster does not serve {wanted.group}") from None
    for resource in resources:
        if wanted.kind in (resource.name, resource.kind.lower()) and "/" not in resource.name:
            return replace(custom_resource(version, resource.kind, resource.name), kind=resource.kind)
    raise CommandError(f"the cluster serves no {wanted.kind} of {version}")


async def _read(reader: Reader, path: str, kind: type[T]) -> T:
    return decoded(msgspec.json.Decoder(kind).decode, await reader.transport.request("GET", path), path)


def _named(resource: ApiResource[Any], raw: msgspec.Raw) -> Object:
    """The object with its kind and API version, which items of lists lack. Raises CommandError."""
    try:
        content = msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise CommandError(f"{resource.kind} can't be read: {error}") from error
    version = resource.api.removeprefix("/apis/").removeprefix("/api/")
    return {**content, "kind": resource.kind, "apiVersion": version}


async def _listed(
    reader: Reader, resource: ApiResource[Any], query: Mapping[str, str] | None = None
) -> list[Object]:
    """All objects of the kind; none if the cluster does not serve it.

    Raises CommandError if the permission is missing, or if the cluster serves Hvpas in another version only: an Hvpa
    may scale the workload.
    """
    objects: list[Object] = []

    def take(page: ListPage) -> None:
        objects.extend(_named(resource, raw) for raw in page.items or ())

    try:
        await read_list(reader.transport, resource.path(reader.namespace), take, query)
    except ApiError as error:
        if error.status not in (_NOT_THERE, _FORBIDDEN):
            raise
        # Permissions are checked first: without permission for a CRD that is not installed, the response is the same.
        if error.status == _NOT_THERE or not await reader.is_served(resource):
            await reader.refuse_other_version(resource)
            return []
        raise CommandError(
            f"no right to list {resource.plural}: {error}; hvpa init needs the verb list"
        ) from error
    return objects


async def _pods(reader: Reader, selector: str) -> list[Object]:
    """The workload's pods, which show how long a pod takes to be ready; none if they may not be read."""
    try:
        return await _listed(reader, PODS, {"labelSelector": selector})
    except CommandError:
        return []


async def _minor(reader: Reader) -> int | None:
    """The minor version of the API server, which every user may read; None if unknown."""
    try:
        content = msgspec.json.decode(await reader.transport.request("GET", "/version"), type=dict[str, Any])
    except (ApiError, msgspec.MsgspecError):
        return None
    digits = _DIGITS.match(str(content.get("minor", "")))
    return int(digits[0]) if digits else None
