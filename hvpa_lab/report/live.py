"""Reads all workloads and their recommenders from a cluster: a list per kind, page by page; nothing is written or
watched."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from hvpa.api.objects.kinds import KINDS
from hvpa.api.objects.read_models import Vpa
from hvpa.cli.errors import CommandError
from hvpa.cli.input.live import NO_CRD, Reader, read_cluster
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.custom_targets import CustomTarget
from hvpa.kube.cache.scales import AT_ONCE, NotScalable
from hvpa.kube.cache.scales import read_scale as read_scale
from hvpa.kube.cache.targeting import Target
from hvpa.kube.client.errors import ApiError
from hvpa.kube.clock import SystemClock
from hvpa.kube.objects.resources import (
    CHECKPOINTS,
    DEPLOYMENTS,
    HPAS,
    HVPAS,
    ON_DEMAND,
    PODS,
    STATEFULSETS,
    VPAS,
    ApiResource,
)
from hvpa_lab.report.inventory import LeftOut, named_targets
from hvpa_lab.report.surroundings import Surroundings, fetch_surroundings

_WHOLE_VPAS: Final[ApiResource[Vpa]] = replace(VPAS, slim=lambda vpa: vpa)
"""VPAs with all bounds of their recommendations; the operator's own copy drops the lower bounds."""
_FORBIDDEN: Final = 403


class Fetched(NamedTuple):
    """All objects of a report."""

    local: LocalCluster
    unreadable: Sequence[LeftOut]
    """Objects that can't be decoded."""
    unread: Mapping[Target, str]
    """Targets that can't be read, and the reasons."""
    namespace: str | None
    """The namespace; None: all."""
    around: Surroundings
    """Usage of pods, and labels of namespaces."""


def fetch(
    args: argparse.Namespace, command: str = "report", *, of_hvpas: bool = False, with_labels: bool = False
) -> Fetched:
    """All objects of a report, from a namespace (default: the kubeconfig context's) or from all.

    Kinds that few clusters scale are read if an HPA, VPA or Hvpa names them; namespaces are read if `with_labels`. With
    `of_hvpas`, Hvpas must be served, checkpoints of VPAs are read if they may be, and no usage is read. Raises
    CommandError if a permission is missing, ClusterError if the cluster can't be reached.
    """
    unreadable: list[LeftOut] = []

    def leave_out(kind: str, namespace: str, name: str, fault: str) -> None:
        unreadable.append(LeftOut(kind, namespace, name, f"it can't be read: {fault}"))

    async def read(reader: Reader) -> Fetched:
        reader.on_unreadable = leave_out
        if args.all_namespaces:
            reader.namespace = None
        for resource in (DEPLOYMENTS, STATEFULSETS, HPAS, PODS, HVPAS):
            if not await _list_objects(reader, resource, command) and of_hvpas:
                raise CommandError(NO_CRD)
        reader.local.set_served(VPAS, await _list_objects(reader, _WHOLE_VPAS, command))
        if of_hvpas and await reader.may_list(CHECKPOINTS):
            reader.local.note_silences(SystemClock().now())
        await reader.read_nodes()
        await reader.note_resizes()
        unread = await _read_named(reader)
        around = Surroundings() if of_hvpas else await fetch_surroundings(reader, with_labels=with_labels)
        return Fetched(reader.local, unreadable, unread, reader.namespace, around)

    return read_cluster(read, f"hvpa-{command}", args)


async def _read_named(reader: Reader) -> dict[Target, str]:
    """Store the named workloads of other kinds; returns the targets that can't be read, and the reasons."""
    named = named_targets(reader.local)
    unread: dict[Target, str] = {}
    for resource in ON_DEMAND:
        targets = [target for target in named if target.kind == resource.kind]
        try:
            if targets:
                await reader.list(resource)
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            unread |= dict.fromkeys(targets, f"no right to list {resource.plural}")
    at_once = asyncio.Semaphore(AT_ONCE)

    async def scale(target: Target, api_version: str) -> None:
        custom_target = CustomTarget(target, api_version, target.kind.partition(".")[0])
        async with at_once:
            try:
                workload = await read_scale(reader.transport, reader.local, custom_target)
            except (ApiError, NotScalable) as error:
                unread[target] = f"its scale can't be read: {error}"
                return
        if workload is not None:
            reader.local.put_scaled(workload)

    custom = [
        (target, version)
        for target, version in named.items()
        if target.kind not in KINDS and "." in target.kind
    ]
    await asyncio.gather(*(scale(target, version) for target, version in custom))
    return unread


async def _list_objects(reader: Reader, resource: ApiResource[Any], command: str) -> bool:
    """Store all objects of a kind; returns False if the cluster does not serve it (a missing CRD of Hvpas or VPAs).

    Raises CommandError if Hvpas are served in another version only, or the permission is missing.
    """
    try:
        if await reader.list(resource):
            return True
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        # Permissions are checked first: without permission for a CRD that is not installed, the response is the same.
        if await reader.is_served(resource):
            wider = "" if reader.namespace is not None else ", or -n NAMESPACE for a single namespace"
            raise CommandError(
                f"no right to list {resource.plural}: {error}; hvpa {command} needs the verb list{wider}"
            ) from error
    await reader.refuse_other_version(resource)
    return False
