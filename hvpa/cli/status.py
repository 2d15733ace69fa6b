"""`hvpa status`: the state of an Hvpa at a glance: the operator's last report, and the current state of each pod.
Without a name: all Hvpas, one line each.

Writes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.hvpa.progress import Actuation
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.status import BlockedScaling, to_wire
from hvpa.api.values.duration import readable_duration
from hvpa.api.values.text import printable
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.arguments import add_cluster, add_operator, add_output
from hvpa.cli.errors import DONE, UsageError, plain_line
from hvpa.cli.explain.pods import STATES, PodRow, differences_text, pod_rows
from hvpa.cli.explain.words import change_text, kind, readable, size_text, when
from hvpa.cli.input.live import Reader, is_of_the_server, read_cluster
from hvpa.cli.input.operator import DEFAULT_LEASE, OperatorState, operator_state
from hvpa.cli.output import Json, containers, indented, table, timestamp
from hvpa.cli.overview import overview, read_all
from hvpa.core import observe
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.model import Objects, Observation, ResourceRequirements, Settings
from hvpa.core.workload.containers import present_resources
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.clock import SystemClock
from hvpa.reconcile.ports import Key

PERIOD: Final = 2.0
"""Seconds between updates of `--watch`."""
COLUMNS: Final = ("POD", "READY", "RESTARTS", "PRESENT", "DESIRED", "STATE", "SINCE", "WHY")
_CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"
"""Clears a terminal."""
_LABEL: Final = 11
"""Width of the labels of the head."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="the Hvpa; without a name, all Hvpas of the namespace")
    add("-n", "--namespace", help="the namespace (default: the kubeconfig's)")
    add("-A", "--all-namespaces", action="store_true", help="all Hvpas of all namespaces")
    add("-w", "--watch", action="store_true", help="refresh when something changes, until Ctrl-C")
    add_output(add)
    add_cluster(add)
    add_operator(add)


def main(args: argparse.Namespace) -> int:
    """Show an Hvpa, or all. Raises CommandError."""
    if args.name is None:
        return _all(args)
    if args.all_namespaces:
        raise UsageError("use either NAME or --all-namespaces, not both")
    if not args.watch:
        print(_drawn(read_cluster(lambda reader: _look(reader, args), "hvpa-status", args), args))
        return DONE
    try:
        read_cluster(lambda reader: _watch(reader, args), "hvpa-status", args)
    except KeyboardInterrupt:  # the regular end of a watch
        return DONE
    raise AssertionError("a watch ends by an error or an interrupt only")


def _all(args: argparse.Namespace) -> int:
    if args.watch:
        raise UsageError("--watch requires NAME")
    if args.all_namespaces and args.namespace is not None:
        raise UsageError("use either --namespace or --all-namespaces, not both")

    async def read(reader: Reader) -> list[HvpaObject]:
        return await read_all(reader, everywhere=args.all_namespaces)

    print(overview(read_cluster(read, "hvpa-status", args), args.output))
    return DONE


async def _look(reader: Reader, args: argparse.Namespace) -> HvpaView:
    objects = await reader.objects(args.name)
    key = Key(str(reader.namespace), args.name)
    operator = await operator_state(reader.transport, args.operator_lease or DEFAULT_LEASE, key)
    view = view_of(objects, observe(objects, SystemClock().now(), Settings()))
    return view._replace(operator=operator)


async def _watch(reader: Reader, args: argparse.Namespace) -> None:
    """Show the Hvpa whenever its state changes.

    On a terminal, ages are updated as well. The last state stays while the API server does not respond.
    """
    is_terminal = sys.stdout.isatty()
    shown = fault = ""
    while True:
        try:
            view = await _look(Reader(reader.transport, str(reader.namespace)), args)
        except (Unreachable, ApiError) as error:
            if not shown or (isinstance(error, ApiError) and not is_of_the_server(error)):
                raise
            if str(error) != fault:
                print(f"no response from the cluster; trying again: {plain_line(error)}", file=sys.stderr)
            fault = str(error)
        else:
            fault, text = "", _drawn(view, args)
            state = text if is_terminal else to_json(view)
            if state != shown:
                print(f"{_CLEAR}{text}" if is_terminal else f"{text}\n", flush=True)
            shown = state
        await asyncio.sleep(PERIOD)


def _drawn(view: HvpaView, args: argparse.Namespace) -> str:
    return to_json(view) if args.output == "json" else to_text(view, SystemClock().now())


# --- content ------------------------------------------------------------------------------------------------------
class HvpaView(NamedTuple):
    """An Hvpa at a glance."""

    observation: Observation
    """The current observation."""
    replicas: int | None
    """The replicas that were last decided; None: unknown."""
    desired: Mapping[str, ResourceRequirements]
    """The sizes that were last decided, by container."""
    since: dt.datetime | None
    """When these were decided."""
    actuation: Actuation | None
    """The progress of in-place resizes; None with rollouts."""
    pods: tuple[PodRow, ...]
    operator: OperatorState | None = None
    """Whether the operator is alive; None if this was not checked."""

    @property
    def target(self) -> tuple[str, str, str | None]:
        """The target, the mode and the update strategy of the spec."""
        spec = self.observation.spec
        if spec is None:
            return ("unknown", "unknown", "unknown")
        return f"{spec.target_ref.kind} {spec.target_ref.name}", spec.mode, spec.strategy.type

    @property
    def counts(self) -> tuple[int | None, int | None]:
        """The workload's replicas and ready replicas; None without a workload."""
        workload = self.observation.target
        return (None, None) if workload is None else (workload.spec.replicas, workload.status.ready_replicas)

    @property
    def notes(self) -> list[str]:
        """The reasons why the report may not be current."""
        conditions = self.observation.status.conditions
        if not conditions:
            return ["the operator has reported nothing yet: is it running, and does it watch this namespace?"]
        known = next(
            (condition.observed_generation for condition in conditions if condition.type == "Ready"), None
        )
        if known is not None and known < self.observation.metadata.generation:
            return ["the operator has not processed the latest spec yet"]
        return []


def view_of(objects: Objects, observation: Observation) -> HvpaView:
    """The state of the observed Hvpa."""
    status, workload = observation.status, observation.target
    if observation.spec is not None and observation.spec.strategy.in_place:
        size, pods = status.desired, pod_rows(observation, objects.pods, status.desired)
        if size is None:
            return HvpaView(observation, None, {}, None, status.actuation, pods)
        return HvpaView(
            observation, size.replicas, sizes_of(size.containers), size.since, status.actuation, pods
        )
    since = status.last_scaling.last_scale_time if status.last_scaling is not None else None
    pods = pod_rows(observation, objects.pods, None)
    if workload is None:
        return HvpaView(observation, None, {}, since, None, pods)
    desired = present_resources(workload.spec.template.spec.containers)
    return HvpaView(observation, workload.spec.replicas, desired, since, None, pods)


def to_json(view: HvpaView) -> str:
    """The state as indented JSON."""
    return indented(as_json(view))


def as_json(view: HvpaView) -> Json:
    """The state as JSON: a stable contract with its types and words in `docs/status.schema.json`. All keys are always
    present."""
    observation, (target, mode, strategy), (replicas, ready) = view.observation, view.target, view.counts
    return {
        "namespace": observation.metadata.namespace,
        "name": observation.metadata.name,
        "target": target,
        "mode": mode,
        "updateStrategy": strategy,
        "notes": view.notes,
        "operator": None if view.operator is None else view.operator.as_json(),
        "conditions": [to_wire(condition) for condition in observation.status.conditions],
        "blocked": [to_wire(entry) for entry in observation.status.last_blocked_scaling],
        "replicas": {"current": replicas, "ready": ready, "desired": view.replicas},
        "desired": {"containers": containers(view.desired), "since": timestamp(view.since)},
        "actuation": None if view.actuation is None else to_wire(view.actuation),
        "pods": [row.to_json() for row in view.pods],
    }


def to_text(view: HvpaView, now: dt.datetime) -> str:
    """The state as text: a head, and a table with a row per pod.

    Text from other clients can't break a line or move the terminal's cursor.
    """
    lines = [f"{label:<{_LABEL}}{text}" if label else text for label, text in _head(view, now)]
    lines += [
        "",
        *(table([COLUMNS, *(_cells(row, now) for row in view.pods)]) if view.pods else ["No pods."]),
    ]
    return "\n".join(printable(line) for line in lines)


def _head(view: HvpaView, now: dt.datetime) -> Iterable[tuple[str, str]]:
    """Labels, and the texts next to them."""
    observation, (target, mode, strategy), (replicas, ready) = view.observation, view.target, view.counts
    name = f"{observation.metadata.namespace}/{observation.metadata.name}"
    yield "", f"Hvpa {name}, target {target}, mode {mode}, {strategy}"
    if view.operator is not None and (text := view.operator.text(now)):
        yield "Operator", text
    for note in view.notes:
        yield "Note", note
    if (fallback := observation.status.replacing) is not None and strategy == "Rollout":
        yield (
            "Replacing",
            f"pods{_since(fallback.since, now)}, for a day, because they could not be resized: {fallback.message}",
        )
    for condition in observation.status.conditions:
        if condition.type == "Ready" or (
            condition.type in ("Paused", "Contested") and condition.status == "True"
        ):
            since = _since(condition.last_transition_time, now)
            yield condition.type, f"{condition.status}{since}, {condition.reason}: {condition.message}"
    for entry in observation.status.last_blocked_scaling:
        yield "Held back", _held(entry, now)
    wanted = "" if view.replicas in (None, replicas) else f"; desired {view.replicas}"
    none = "the workload does not exist, or is not supported"
    yield "Replicas", none if replicas is None else f"{replicas}, {ready} ready{wanted}"
    decided = size_text(view.desired) if view.desired else "the template's size"
    yield "Desired", f"{decided}{_since(view.since, now)}"
    if view.actuation is not None:
        yield "Resized", _resized(view.actuation)
        if view.actuation.size_at_creation:
            yield "New pods", "created with the desired size"
        else:
            how = "with the template's size and resized once they run, without config/size-at-creation"
            yield "New pods", f"created {how}"


def _since(instant: dt.datetime | None, now: dt.datetime) -> str:
    return "" if instant is None else f" since {readable_timestamp(instant)} ({_age(instant, now)})"


def _age(instant: dt.datetime, now: dt.datetime) -> str:
    return readable_duration(max(now - instant, dt.timedelta(0)))


def _held(entry: BlockedScaling, now: dt.datetime) -> str:
    pair = entry.current or "?", entry.wanted or "?"
    if entry.container is not None:
        pair = readable(kind(entry.resource), pair[0]), readable(kind(entry.resource), pair[1])
    until = "" if entry.until is None else f" until {when(entry.until, now)}"
    return f"{change_text(entry.container, entry.resource or '', pair)}: {entry.reason}{until}"


def _resized(actuation: Actuation) -> str:
    """The operator's last counts."""
    counts = (
        ("in progress", actuation.in_progress),
        ("deferred", actuation.deferred),
        ("infeasible", actuation.infeasible),
        ("waiting", actuation.waiting),
    )
    parts = [actuation.resized or "0/0", *(f"{count} {name}" for name, count in counts if count)]
    return ", ".join(parts) + (f": {actuation.message}" if actuation.message else "")


def _cells(row: PodRow, now: dt.datetime) -> Sequence[str]:
    """A row. `<5m` in column SINCE: less than 5 minutes, because the exact start is unknown."""
    since = "-" if row.since is None else f"{'' if row.exact else '<'}{_age(row.since, now)}".replace(" ", "")
    present, desired = size_text(row.present), size_text(row.desired)
    differences = differences_text(row)
    why = row.why or (STATES[row.state] if row.state in ("unknown", "old") else "")
    if present == desired and differences:
        why = "; ".join(part for part in (why, differences) if part)
    ready = "yes" if row.ready else "no"
    return (row.name, ready, str(row.restarts), present, desired, row.state.replace("_", " "), since, why)
