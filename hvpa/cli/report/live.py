"""Reading all workloads, and what recommends for them, from a cluster: one list of each kind, page by page; nothing is
written or watched."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, Final

from hvpa.api.objects.read_models import Vpa
from hvpa.cli.errors import CommandError
from hvpa.cli.input.live import Reader, read_cluster
from hvpa.cli.report.inventory import LeftOut
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.client.errors import ApiError
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPAS, PODS, STATEFULSETS, VPAS, Resource

_WHOLE_VPAS: Final[Resource[Vpa]] = replace(VPAS, slim=lambda vpa: vpa)
"""With the bounds of the recommendations, which the operator has no use for."""
_FORBIDDEN: Final = 403


def fetch(args: argparse.Namespace) -> tuple[LocalCluster, list[LeftOut]]:
    """All that a report reads, of one namespace (default: the kubeconfig context's) or of all, and the objects that
    can't be read. Raises CommandError where a right is missing, ClusterError where the cluster can't be reached."""
    unreadable: list[LeftOut] = []

    def leave_out(kind: str, namespace: str, name: str, fault: str) -> None:
        unreadable.append(LeftOut(kind, namespace, name, f"it can't be read: {fault}"))

    async def read(reader: Reader) -> LocalCluster:
        reader.on_unreadable = leave_out
        if args.all_namespaces:
            reader.namespace = None
        for resource in (DEPLOYMENTS, STATEFULSETS, HPAS, PODS, HVPAS):
            await _list(reader, resource)
        reader.local.set_served(VPAS, await _list(reader, _WHOLE_VPAS))
        return reader.local

    return read_cluster(read, "hvpa-report", args), unreadable


async def _list(reader: Reader, resource: Resource[Any]) -> bool:
    """Put all objects of a kind; False where the cluster does not serve it, as the CRDs of Hvpas and VPAs may be
    missing. Raises CommandError where Hvpas are served in another version only, or the right is missing."""
    try:
        if await reader.list(resource):
            return True
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        # Rights are checked first: without one for a CRD that is not installed, the response is the same.
        if await reader.is_served(resource):
            wider = "" if reader.namespace is not None else ", or -n NAMESPACE for one namespace"
            raise CommandError(
                f"no right to list {resource.plural}: {error}; hvpa report needs the verb list{wider}"
            ) from error
    await reader.refuse_other_version(resource)
    return False
