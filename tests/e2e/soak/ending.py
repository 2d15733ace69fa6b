"""What stands at the end of a soak: every decision is quiet, and is what an undisturbed run would have come to."""

from __future__ import annotations

import datetime as dt

import msgspec

from hvpa.api.values.quantity import parse_cpu
from hvpa.core import decide, observe
from hvpa.core.model import Settings
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPAS, STATEFULSETS, VPAS
from hvpa.reconcile.patch import StatusPatch
from hvpa.reconcile.ports import Key
from hvpa.reconcile.reconciler import is_quiet
from localcluster.client.api import Json, KubeApi
from tests.e2e.soak.controllers import Controllers
from tests.e2e.soak.objects import CPU, REPLICAS, Place, Role

SETTLED = frozenset({"Reconciled", "HeldBack", "HpaInactive", "VpaInactive"})
"""Reasons of `Ready` at the end: for some, neither HPA nor VPA ever recommended anything."""


def unsettled(api: KubeApi, controllers: Controllers, roles: list[Role]) -> dict[Role, str]:
    """What is not yet as it must be in the end, and why. Raises ApiError and OSError."""
    local = LocalCluster((ALL_NAMESPACES,), lambda key: None)
    workloads: dict[Place, Json] = {}
    for resource in (HVPAS, DEPLOYMENTS, STATEFULSETS, HPAS, VPAS):
        for item in api.raw("GET", resource.path(None))["items"]:
            local.store(resource).put(resource.decode(msgspec.json.encode(item)))
            if resource in (DEPLOYMENTS, STATEFULSETS):
                workloads[item["metadata"]["namespace"], item["metadata"]["name"]] = item
    problems = {role: _loud(local, role) or _elsewhere(workloads, controllers, role) for role in roles}
    return {role: problem for role, problem in problems.items() if problem}


def _loud(local: LocalCluster, role: Role) -> str:
    """What the operator would do now with this Hvpa; empty for nothing."""
    objects = local.objects(Key(role.namespace, role.name))
    if objects is None:
        return "no such Hvpa"
    decision = decide(observe(objects, dt.datetime.now(dt.UTC), Settings()))
    status = StatusPatch(objects.hvpa, decision.status).fields
    ready = next(
        (condition for condition in objects.hvpa.status.conditions if condition.type == "Ready"), None
    )
    if ready is None or ready.reason not in SETTLED:
        return f"Ready is {ready.reason if ready else 'missing'}: {ready.message if ready else ''}"
    if is_quiet(decision) and not status:
        return ""
    writes = f"{decision.workload_patch}, {decision.scale_replicas}, {decision.owned}"
    return f"still to be written: {writes}, status {status}"


def _elsewhere(workloads: dict[Place, Json], controllers: Controllers, role: Role) -> str:
    """What differs from where an undisturbed run ends; empty for nothing."""
    if role.axes == "both":
        return ""  # it depends on the way
    place = (role.namespace, role.name)
    workload = workloads[place]
    if role.axes == "horizontal":
        wanted, amount = controllers.desired.get(place, REPLICAS), int(workload["spec"]["replicas"])
    else:
        wanted, amount = controllers.targets.get(place, CPU), _cpu(workload)
    return "" if wanted == amount else f"has {amount}, should have {wanted}"


def _cpu(workload: Json) -> int:
    container = workload["spec"]["template"]["spec"]["containers"][0]
    return parse_cpu(container["resources"]["requests"]["cpu"])
