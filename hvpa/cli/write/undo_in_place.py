"""`hvpa undo` for pods that are resized in place. It pauses the Hvpa and names the step in an annotation. The operator
returns the pods to the sizes before that step, because only it may resize pods and write the sizes of new pods
(docs/decisions/0100).
"""

from __future__ import annotations

import argparse
import asyncio
from functools import partial
from typing import Any, Final

import msgspec

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus, read_status
from hvpa.api.values.duration import format_duration
from hvpa.api.values.quantity import RESOURCES, readable_resource
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.errors import CommandError
from hvpa.cli.input.live import Reader
from hvpa.cli.write.approve import revoked, who
from hvpa.cli.write.hvpas import HvpaChange, HvpaMeta, WrittenHvpa, change_hvpa, paused, read_written
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.actuation.undo import ANNOTATION, NOTHING_UNDONE, Undo, returned
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.containers import wire

PERIOD: Final = 1.0
"""Seconds between two looks at the status."""


class _Plan(msgspec.Struct, frozen=True):
    """The step to take back."""

    undo: Undo
    changes: str
    """The changes in words."""


async def undo_in_place(reader: Reader, hvpa: HvpaObject, args: argparse.Namespace) -> None:
    """Pause the Hvpa, have the operator return to the former sizes, and wait until it does. Raises CommandError."""
    spec, name, namespace = hvpa.spec, hvpa.metadata.name, str(reader.namespace)
    assert spec is not None
    title = f"Hvpa {namespace}/{name}"
    plan = _planned(title, spec, hvpa.status)
    text = f"{spec.target_ref.kind} {namespace}/{spec.target_ref.name}: {plan.changes}"
    if args.dry_run:
        print(text)
        return
    undo = msgspec.structs.replace(plan.undo, by=await who(reader))
    written = WrittenHvpa(HvpaMeta(name, namespace))
    await change_hvpa(reader, written, partial(_change, spec=spec, undo=undo), known=False)
    waited = 0.0
    while not _is_done(stored := await read_written(reader, written), spec):
        if waited >= args.timeout.total_seconds():
            conditions = read_status(bytes(stored.status))[0].conditions
            for _, begin, why in (one.message.partition(NOTHING_UNDONE) for one in conditions):
                if begin:
                    raise CommandError(f"{title}: is paused, but {begin}{why}")
            raise CommandError(
                f"{title}: is paused, but the operator has not returned to the former sizes within"
                f" {format_duration(args.timeout)}: is it running, and is it as new as this command? It returns to them"
                f" once it is. hvpa status {name} -n {namespace} shows more"
            )
        await asyncio.sleep(PERIOD)
        waited += PERIOD
    print(text)
    print(
        f"The operator resizes the pods; hvpa status {name} -n {namespace} --watch shows how far they are. Until hvpa"
        f" resume {name} -n {namespace}, HVPA changes nothing else: memory that runs out is not raised."
    )


def _planned(title: str, spec: HvpaSpec, status: HvpaStatus) -> _Plan:
    """Returns the step to take back. Raises CommandError if there is none."""
    size, previous = status.desired, status.previous_size
    if size is None or previous is None or previous.time is None:
        raise CommandError(f"{title}: the size before HVPA's last change is not recorded")
    back = returned(spec, size, previous)
    if back is size:
        raise CommandError(f"{title}: the pods already have the size before HVPA's last change")
    before = sizes_of(back.containers)
    words = [
        f"{name} {change}"
        for name, now in sizes_of(size.containers).items()
        for change in changes_between(now, before[name])[1]
    ]
    if back.replicas != size.replicas:
        words.append(f"replicas {size.replicas} -> {back.replicas}")
    text = f"{', '.join(words)}, as before {readable_timestamp(previous.time)}"
    return _Plan(Undo(previous.time), text)


def _change(hvpa: WrittenHvpa, spec: HvpaSpec, undo: Undo) -> HvpaChange | str:
    """Decide to pause an Hvpa and to take the step back. Raises CommandError if it has made another step."""
    if _planned(str(hvpa), spec, read_status(bytes(hvpa.status))[0]).undo.step != undo.step:
        raise CommandError(f"{hvpa}: HVPA has just made another step; look at it with --dry-run")
    change, text = stopped(hvpa), msgspec.json.encode(undo, order="sorted").decode()
    if isinstance(change, str):
        change = HvpaChange(change, {})
    return change._replace(annotations={**change.annotations, ANNOTATION: text})


def _is_done(hvpa: WrittenHvpa, spec: HvpaSpec) -> bool:
    """Whether the operator has decided the former sizes."""
    status, _ = read_status(bytes(hvpa.status))
    size, previous = status.desired, status.previous_size
    return size is not None and previous is not None and returned(spec, size, previous) is size


def stopped(hvpa: WrittenHvpa) -> HvpaChange | str:
    """Decide to pause an Hvpa, and to revoke its approval, or HVPA would set the same size after `hvpa resume`."""
    pause, revoke = paused(hvpa), revoked(hvpa)
    if isinstance(revoke, str):
        return pause
    if isinstance(pause, str):
        return revoke
    done, annotations = f"{pause.done}, {revoke.done}", {**pause.annotations, **revoke.annotations}
    return pause._replace(done=done, annotations=annotations)


def changes_between(
    now: ResourceRequirements, before: ResourceRequirements
) -> tuple[dict[str, Any], list[str]]:
    """The requests and limits that differ (None: it was missing, and is removed), and the same in words."""
    resources: dict[str, Any] = {}
    words = []
    sections = (("requests", now.requests, before.requests), ("limits", now.limits, before.limits))
    for section, have, had in sections:
        for resource in RESOURCES:
            if have.get(resource) != had.get(resource):
                resources.setdefault(section, {})[resource] = wire(had).get(resource)
                old, new = (
                    readable_resource(resource, size[resource]) if resource in size else "none"
                    for size in (have, had)
                )
                words.append(f"{resource} {section.removesuffix('s')} {old} -> {new}")
    return resources, words
