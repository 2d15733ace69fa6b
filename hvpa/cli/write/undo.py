"""`hvpa undo`: pauses an Hvpa, and restores the requests and limits before HVPA's last change. This module restores the
pod template; for pods that are resized in place, see `undo_in_place`.

Pausing comes first, so that the operator does not set the size again. Replicas are never removed: the pods may have
been larger and fewer.
"""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from hvpa.api.hvpa.resource import HvpaObject, read_hvpa
from hvpa.api.hvpa.status import AppliedTarget, PreviousSize
from hvpa.api.objects.kinds import KINDS
from hvpa.api.objects.read_models import RawHvpa, Resources, TemplateSpec, Workload
from hvpa.api.values.duration import parse_duration
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.arguments import add_cluster, add_hvpa, checked
from hvpa.cli.errors import DONE, CommandError
from hvpa.cli.input.live import Reader, read_cluster
from hvpa.cli.write.hvpas import MANAGER, TRIES, HvpaMeta, WrittenHvpa, change_hvpa
from hvpa.cli.write.undo_in_place import changes_between, stopped, undo_in_place
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.actuation.undo import replicas_returned
from hvpa.core.model import LAST_APPLIED, ResourceRequirements
from hvpa.core.path.path import ResourceKey
from hvpa.core.state import recorded_axes
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import SHARED, amounts, present_resources, wire
from hvpa.core.workload.pod_level import POD, own_resources, shared_in_template, with_pod
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.transport import STRATEGIC_MERGE_PATCH, Body
from hvpa.kube.clock import SystemClock
from hvpa.kube.objects.resources import HVPAS, WORKLOADS, ApiResource


class _Undo(NamedTuple):
    """The write that restores a workload."""

    resource: ApiResource[Workload]
    workload: Workload
    spec: dict[str, Any]
    changes: str
    """The changes in words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_hvpa(parser.add_argument)
    text = "print what would be restored, and write nothing"
    parser.add_argument("--dry-run", action="store_true", help=text)
    text = "how long to wait for the operator, if pods are resized in place (default 30s)"
    parser.add_argument("--timeout", type=_timeout, default="30s", metavar="DURATION", help=text)
    add_cluster(parser.add_argument)


def _timeout(text: str) -> dt.timedelta:
    what = "a duration of at most 1h"
    return checked(text, parse_duration, lambda wait: dt.timedelta(0) <= wait <= dt.timedelta(hours=1), what)


def main(args: argparse.Namespace) -> int:
    """Pause and restore. Raises CommandError."""
    read_cluster(partial(_undo, args=args), "hvpa-undo", args)
    return DONE


async def _undo(reader: Reader, args: argparse.Namespace) -> None:
    namespace, name = str(reader.namespace), args.name
    hvpa = await _read(reader, namespace, name)
    if hvpa.spec is not None and hvpa.status.desired is not None:
        await undo_in_place(reader, hvpa, args)
        return
    undo = await _planned(reader, hvpa)
    if args.dry_run:
        print(undo.changes)
        return
    await change_hvpa(reader, WrittenHvpa(HvpaMeta(name, namespace)), stopped, known=False)
    for left in reversed(range(TRIES)):
        # The operator may have written in the meantime.
        undo = await _planned(reader, await _read(reader, namespace, name))
        try:
            await _write(reader, undo)
        except ApiError as error:
            if error.status != 409 or not left:
                raise
            continue
        print(undo.changes)
        return


async def _write(reader: Reader, undo: _Undo) -> None:
    meta = undo.workload.metadata
    body = {"metadata": {"resourceVersion": meta.resource_version}, "spec": undo.spec}
    path = undo.resource.path(meta.namespace, meta.name)
    content = Body(msgspec.json.encode(body), STRATEGIC_MERGE_PATCH)
    await reader.transport.request("PATCH", path, {"fieldManager": MANAGER}, content)


async def _read(reader: Reader, namespace: str, name: str) -> HvpaObject:
    try:
        response = await reader.transport.request("GET", HVPAS.path(namespace, name))
    except ApiError as error:
        if error.status == 404 and not error.is_of_an_object:
            raise CommandError(await reader.why_no_hvpas()) from error
        raise
    return read_hvpa(msgspec.json.decode(response, type=RawHvpa))


async def _planned(reader: Reader, hvpa: HvpaObject) -> _Undo:
    """The write. Raises CommandError if there is nothing to restore, ApiError if something can't be read."""
    namespace = str(reader.namespace)
    title = f"Hvpa {namespace}/{hvpa.metadata.name}"
    previous = _previous(title, hvpa)
    assert hvpa.spec is not None
    resource = WORKLOADS[hvpa.spec.target_ref.kind]
    raw = await reader.transport.request("GET", resource.path(namespace, hvpa.spec.target_ref.name))
    workload = shared_in_template(resource.read(raw))
    targets = _last_change(title, hvpa, workload, previous)
    keys = {
        ResourceKey(each.container, of) for each in targets for of in amounts({each.resource: each.request})
    }
    replicas = replicas_returned(hvpa.spec, workload.spec.replicas, previous)
    spec, changes = _restored(workload, previous, keys, replicas)
    names = {container.name for container in workload.spec.template.spec.containers}
    if spec or not names.issuperset(each.container for each in targets):
        _refuse_other_sizes(title, workload, targets)
    if not spec:
        raise CommandError(f"{title}: the workload already has the size before its last change")
    assert previous.time is not None
    before = f"as before {readable_timestamp(previous.time)}"
    text = f"{workload.kind} {namespace}/{workload.metadata.name}: {', '.join(changes)}, {before}"
    return _Undo(resource, workload, spec, text)


def _previous(title: str, hvpa: HvpaObject) -> PreviousSize:
    """The size to restore. Raises CommandError."""
    status = hvpa.status
    if hvpa.spec is None or hvpa.spec.target_ref.kind not in KINDS:
        why = "its spec is invalid" if hvpa.spec is None else "it changes no pod template"
        raise CommandError(f"{title}: {why}, so there is nothing to restore")
    if status.rollout is not None:
        why = f"its rollout is held ({status.rollout.reason}), and a restored template would be held, too"
        raise CommandError(f"{title}: {why}")
    if status.previous_size is None:
        raise CommandError(f"{title}: HVPA has not changed the requests of its workload")
    return status.previous_size


def _last_change(
    title: str, hvpa: HvpaObject, workload: Workload, previous: PreviousSize
) -> Sequence[AppliedTarget]:
    """The requests that HVPA has set. Raises CommandError if `previous` is not the size before its last change."""
    annotation = workload.metadata.annotations.get(LAST_APPLIED)
    axis = recorded_axes(hvpa.status, annotation, Clock(SystemClock().now()))[1]
    if previous.time is None or axis.last_scale_time != previous.time:
        raise CommandError(f"{title}: the size before its last change is not recorded")
    return axis.applied_from


def _refuse_other_sizes(title: str, workload: Workload, targets: Sequence[AppliedTarget]) -> None:
    """Raise CommandError if the workload's requests are not those that HVPA has set."""
    present = present_resources(workload.spec.template.spec.containers)
    for known in targets:
        have, was_set = present.get(known.container), amounts({known.resource: known.request})
        if have is None or not was_set.items() <= have.requests.items():
            what = f"the {known.resource} request of container {known.container}"
            raise CommandError(
                f"{title}: another client has changed {what}, which HVPA had set to {known.request}"
            )


def _restored(
    workload: Workload, previous: PreviousSize, keys: Collection[ResourceKey], replicas: int
) -> tuple[dict[str, Any], list[str]]:
    """The spec of the patch, and the changes in words, of these container resources. The pod's own resources, if it has
    any, change with them."""
    template = workload.spec.template.spec
    present = present_resources(template.containers)
    restored = dict(present)
    for name, before in sizes_of(previous.containers).items():
        governed = {key.resource for key in keys if name in (key.container, SHARED)}
        if name in present and governed:
            requests = {resource for resource in governed if ResourceKey(name, resource) in keys}
            restored[name] = ResourceRequirements(
                _replaced(present[name].requests, before.requests, requests),
                _replaced(present[name].limits, before.limits, governed),
            )
    content: dict[str, Any] = {}
    words = []
    for name in [name for name in restored if name != SHARED]:
        resources, changed = changes_between(present[name], restored[name])
        words += [f"{name} {change}" for change in changed]
        if resources:
            content.setdefault("containers", []).append({"name": name, "resources": resources})
    if SHARED in present:
        resources, changed = changes_between(*_of_pod(template, restored, {key.resource for key in keys}))
        words += [f"{POD} {change}" for change in changed]
        if resources:
            content["resources"] = resources
    spec: dict[str, Any] = {"template": {"spec": content}} if content else {}
    if content and replicas != workload.spec.replicas:
        spec["replicas"] = replicas
        words.append(f"replicas {workload.spec.replicas} -> {replicas}")
    return spec, words


def _replaced(
    have: Mapping[Resource, int], had: Mapping[Resource, int], governed: Collection[Resource]
) -> dict[Resource, int]:
    """The present amounts, with the former amounts of the governed resources."""
    chosen = {resource: (had if resource in governed else have).get(resource) for resource in RESOURCES}
    return {resource: size for resource, size in chosen.items() if size is not None}


def _of_pod(
    template: TemplateSpec, restored: Mapping[str, ResourceRequirements], governed: Collection[Resource]
) -> tuple[ResourceRequirements, ResourceRequirements]:
    """The pod's own resources now, and with the restored containers."""
    own = own_resources(template)
    containers = [
        structs.replace(one, resources=Resources(dict(wire(size.requests)), dict(wire(size.limits))))
        for one in template.containers
        for size in (restored[one.name],)
    ]
    of_pod = with_pod(structs.replace(template, containers=containers), restored)[POD]
    requests = _replaced(own.requests, of_pod.requests, own.requests.keys() & governed)
    return own, ResourceRequirements(requests, of_pod.limits)
