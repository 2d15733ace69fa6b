"""Resizes in words: what was decided for the pods, how many have it, and what each of the others waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hvpa.api.values.duration import format_duration
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.explain.json import resizes
from hvpa.cli.explain.pods import STATES, PodRow, differences_text, pod_rows
from hvpa.cli.explain.words import counted, readable
from hvpa.core.model import Decision, Observation
from hvpa.core.workload.containers import RESOURCES


def resizing(seen: Observation, decision: Decision) -> Iterable[str]:
    """Where pods are resized in place: the strategy, the desired size, and the pods that do not have it. Nothing where
    they are replaced by rollouts."""
    if seen.spec is None or not seen.spec.update_strategy.in_place:
        return
    strategy, size = seen.spec.update_strategy, decision.status.desired
    timeout = format_duration(strategy.timeout)
    yield f"{strategy.type}, timeout {timeout}, maxUnavailable {strategy.max_unavailable}"
    if size is None:
        yield "no size has been decided yet"
    else:
        sizes = [_container(one.name, one.requests, one.limits) for one in size.containers]
        text = ", ".join([counted(size.replicas), *(sizes or ["no other size than the template's"])])
        yield f"desired since {readable_timestamp(size.since)}: {text}"
    rows = pod_rows(seen, seen.resizable, size)
    left = [row for row in rows if row.state not in ("resized", "template")]
    yield f"{len(rows) - len(left)} of {len(rows)} pods have it"
    yield from map(_pod, left)


def due(decision: Decision) -> Iterable[str]:
    """The resizes that a decision asks for, a line for each pod."""
    for one in resizes(decision):
        sizes = [_container(name, to["requests"], to["limits"]) for name, to in one["containers"].items()]
        yield f"pod {one['pod']} is resized to {', '.join(sizes)}"


def _pod(row: PodRow) -> str:
    differences = differences_text(row)
    why = row.why or STATES[row.state]
    return f"{row.name}: {row.state.replace('_', ' ')}: {why}{f' ({differences})' if differences else ''}"


def _container(name: str, requests: Mapping[str, str], limits: Mapping[str, str]) -> str:
    parts = [name]
    for section, amounts in (("requests", requests), ("limits", limits)):
        if amounts:
            parts += [
                section,
                *(f"{what} {readable(what, amounts[what])}" for what in RESOURCES if what in amounts),
            ]
    return " ".join(parts)
