"""`hvpa explain KIND/NAME`: why policies make an Hvpa for a workload, or why not."""

from __future__ import annotations

import argparse
from typing import Final

from hvpa.api.objects.read_models import Workload
from hvpa.cli.errors import CommandError, UsageError
from hvpa.cli.input.live import Reader, read_cluster
from hvpa.cli.input.operator import DEFAULT_LEASE
from hvpa.core.policies.explaining import explained
from hvpa.core.policies.model import PolicyInput, PresentHvpa, Target
from hvpa.kube.cache.targeting import target_in
from hvpa.kube.objects.resources import CLUSTER_POLICIES, HPAS, HVPA_POLICIES, HVPAS, VPAS, WORKLOADS

KINDS: Final = {
    alias: kind
    for kind, short in (("Deployment", "deploy"), ("StatefulSet", "sts"), ("DaemonSet", "ds"))
    for alias in (kind.lower(), f"{kind.lower()}s", short)
}
"""Names of the kinds that policies select, as kubectl has them."""


def explain_workload(args: argparse.Namespace) -> str:
    """Returns why policies make an Hvpa for the workload `args.name`, or why not. Raises CommandError."""
    given, _, name = args.name.partition("/")
    kind = KINDS.get(given.lower())
    if kind is None or not name or "/" in name:
        raise UsageError(f"{args.name}: policies select deployment/NAME, statefulset/NAME and daemonset/NAME")
    if args.output != "text" or args.plot is not None:
        raise UsageError(f"{args.name}: -o and --plot need the name of an Hvpa")
    operator = (args.operator_lease or DEFAULT_LEASE).namespace

    async def read(reader: Reader) -> list[str]:
        workload = await reader.workload(WORKLOADS[kind], name)
        if workload is None:
            raise CommandError(f"{kind} {reader.namespace}/{name} does not exist")
        return [f"{kind} {reader.namespace}/{name}", *await _lines(reader, workload, operator)]

    return "\n".join(read_cluster(read, "hvpa-explain", args))


async def _lines(reader: Reader, workload: Workload, operator: str) -> list[str]:
    if not await reader.list(HVPAS):
        raise CommandError(await reader.why_no_hvpas())
    if not await reader.list(HVPA_POLICIES):
        return ["No policy makes an Hvpa: policies are not installed (config/hvpa-policy)"]
    may_read = await reader.may_list(CLUSTER_POLICIES)
    notes = [] if may_read else ["Note: you may not list ClusterHvpaPolicies, so they are left out"]
    for resource in (HPAS, VPAS):
        await reader.list(resource)
    local = reader.local
    labels = await reader.namespace_labels() if len(local.policies.cluster_policies) else {}
    world = PolicyInput(
        local.policies.read(),
        None if labels is None else {workload.metadata.namespace: labels},
        [workload],
        frozenset({workload.kind}),
        [
            PresentHvpa(hvpa.metadata, Target(*target_in(hvpa.metadata.namespace, hvpa.links)), hvpa.read)
            for hvpa in local.hvpas.all()
        ],
        local.hpas.all(),
        local.vpas.all(),
        operator,
    )
    return [*notes, *(f"- {line}" for line in explained(world, workload))]
