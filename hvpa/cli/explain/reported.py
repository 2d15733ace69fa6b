"""What the operator last reported about an Hvpa, beside what is decided now, and why the two may differ.

What belongs here: the sections of `hvpa explain` about conditions, errors and refused writes, and their form in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hvpa.api.hvpa.status import StatusCondition
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.explain.words import refused
from hvpa.core.gates.gates import REFUSED
from hvpa.core.model import Decision, Observation
from hvpa.core.report.remedies import needs_action, remedy

_NEVER = "nothing yet: is the operator running, and does it watch this namespace?"
_WRITES = (
    "a write of the operator failed; whether it still would, the next try shows, as nothing is written here"
)
_UNSEEN = "the operator has not looked at the newest spec yet"
_DUE = "the operator has the writes above still to do"
_CHANGED = "something has changed since the operator looked last; if this stays so, it is not running"


class Difference(NamedTuple):
    """A condition that the operator last reported otherwise than it is decided now, and why that may be."""

    reported: StatusCondition
    decided: StatusCondition
    why: str


def reported(seen: Observation) -> Iterable[str]:
    """What the status says as it is: conditions with their times, the last error, refused writes."""
    status = seen.status
    if not status.conditions:
        yield _NEVER
    for one in status.conditions:
        since = (
            ""
            if one.last_transition_time is None
            else f" since {readable_timestamp(one.last_transition_time)}"
        )
        yield f"{one.type} {one.status}{since}, {one.reason}: {one.message}"
    if (error := status.last_error) is not None:
        at = "" if error.last_update_time is None else f" at {readable_timestamp(error.last_update_time)}"
        yield f"last error: {error.last_operation or 'a write'}{at}: {error.description}"
    for record in (seen.horizontal.refused, seen.vertical.refused):
        if record is not None:
            yield refused(record)


def conditions(decision: Decision) -> Iterable[str]:
    """The conditions after this decision, each with its remedy where somebody has to act."""
    for one in decision.status.conditions:
        yield f"{one.type} {one.status} {one.reason}: {one.message}"
        if needs_action(one) and remedy(one.reason) not in one.message:
            yield f"  to do: {remedy(one.reason)}."


def differing(seen: Observation, decision: Decision) -> Iterator[Difference]:
    """The conditions that differ in status or reason between the operator's report and this decision."""
    decided = {one.type: one for one in decision.status.conditions}
    for one in seen.status.conditions:
        now = decided.get(one.type)
        if now is not None and (now.status, now.reason) != (one.status, one.reason):
            yield Difference(one, now, _why(seen, decision, one))


def differences(seen: Observation, decision: Decision) -> Iterable[str]:
    """The same, as text."""
    for one in differing(seen, decision):
        was, now = one.reported, one.decided
        yield f"{was.type} was reported {was.status} {was.reason} and is now {now.status} {now.reason}: {one.why}"
        if needs_action(was):
            yield f"  to do: {remedy(was.reason)}."


def _why(seen: Observation, decision: Decision, was: StatusCondition) -> str:
    if was.type == "Ready" and was.reason in ("WriteFailed", REFUSED):
        return _WRITES
    if was.observed_generation is not None and was.observed_generation < seen.metadata.generation:
        return _UNSEEN
    writes = (decision.workload_patch, decision.scale_replicas)
    is_due = any(one is not None for one in writes) or bool(decision.owned or decision.resizes)
    return _DUE if is_due else _CHANGED
