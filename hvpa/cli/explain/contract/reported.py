"""The part of `hvpa explain -o json` about conditions: those of the decision, and what the operator last reported."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from msgspec import Meta

from hvpa.api.hvpa.status import Refusal, StatusCondition
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.explain.contract.path import Count, Part
from hvpa.cli.explain.reported import differing
from hvpa.core.model import Axis, Decision, Observation


class Condition(Part, frozen=True):
    """A condition of the Hvpa's status after this decision."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


class ReportedCondition(Condition, frozen=True):
    """A condition as the operator last wrote it."""

    since: Annotated[str | None, Meta(description="Since when its status is so, an RFC 3339 timestamp.")]


class ReportedError(Part, frozen=True):
    """The last error that the operator wrote into the status."""

    operation: str | None
    time: str | None
    description: str | None


class RefusedWrite(Part, frozen=True):
    """A change of the workload that the API server refused."""

    axis: Literal["horizontal", "vertical"]
    time: str
    count: Annotated[Count, Meta(description="How often in a row.")]
    message: Annotated[str, Meta(description="What the API server responded.")]


class Report(Part, frozen=True):
    """What the operator last wrote into the Hvpa's status."""

    conditions: list[ReportedCondition]
    last_error: ReportedError | None
    refused: list[RefusedWrite]


class ReportDifference(Part, frozen=True):
    """A condition that the operator last reported otherwise than it is decided now."""

    type: str
    reported: Annotated[str, Meta(description="Status and reason as the operator last wrote them.")]
    decided: Annotated[str, Meta(description="Status and reason after this decision.")]
    why: Annotated[str, Meta(description="Why both may differ, for people.")]


def report(seen: Observation) -> Report:
    """The operator's report in the contract's form."""
    error = seen.status.last_error
    records: tuple[tuple[Axis, Refusal | None], ...] = (
        ("horizontal", seen.horizontal.refused),
        ("vertical", seen.vertical.refused),
    )
    return Report(
        conditions=[
            ReportedCondition(
                type=one.type,
                status=_condition_status(one.status),
                reason=one.reason,
                message=one.message,
                since=_timestamp(one.last_transition_time),
            )
            for one in seen.status.conditions
        ],
        last_error=None
        if error is None
        else ReportedError(
            operation=error.last_operation,
            time=_timestamp(error.last_update_time),
            description=error.description,
        ),
        refused=[
            RefusedWrite(axis=axis, time=format_timestamp(one.time), count=one.count, message=one.message)
            for axis, one in records
            if one is not None
        ],
    )


def report_differences(seen: Observation, decision: Decision) -> list[ReportDifference]:
    """The conditions that differ, in the contract's form."""
    return [
        ReportDifference(
            type=one.decided.type,
            reported=f"{one.reported.status} {one.reported.reason}",
            decided=f"{one.decided.status} {one.decided.reason}",
            why=one.why,
        )
        for one in differing(seen, decision)
    ]


def condition_view(one: StatusCondition) -> Condition:
    """A condition in the contract's form."""
    return Condition(
        type=one.type, status=_condition_status(one.status), reason=one.reason, message=one.message
    )


def _timestamp(instant: dt.datetime | None) -> str | None:
    return None if instant is None else format_timestamp(instant)


def _condition_status(status: str) -> Literal["True", "False", "Unknown"]:
    match status:
        case "True":
            return "True"
        case "False":
            return "False"
    return "Unknown"
