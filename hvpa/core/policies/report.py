"""The status of a policy: counts, and the conditions Ready and Conflict."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from hvpa.api.hvpa.status import StatusCondition
from hvpa.api.policy.resource import PolicyKey, PolicyObject
from hvpa.api.policy.status import PolicyStatus
from hvpa.api.values import text
from hvpa.core.policies.removing import Window

UP_TO_DATE: Final = "UpToDate"
"""All selected workloads have the Hvpa that the policy requires, or one that somebody wrote."""
INVALID_SPEC: Final = "InvalidSpec"
NOT_PERMITTED: Final = "NotPermitted"
"""The operator may not read namespaces, so it ignores every ClusterHvpaPolicy."""
WRITE_FAILED: Final = "WriteFailed"
"""The API server refused to create, change or delete an Hvpa."""
NAME_TAKEN: Final = "NameTaken"
"""An Hvpa for another workload has the name."""
EDITED: Final = "Edited"
"""Somebody changed Hvpas of this policy, so it does not update them."""
REMOVAL_HELD: Final = "RemovalHeld"
"""The policy no longer selects so many workloads that it leaves their Hvpas as they are."""
ROLLING_OUT: Final = "RollingOut"
"""Hvpas are being created, or wait for their turn to change."""
NOTHING_SELECTED: Final = "NothingSelected"
"""No workload belongs to this policy."""
OVERLAPS: Final = "Overlaps"
NO_OVERLAP: Final = "NoOverlap"


PROBLEMS: Final = frozenset({INVALID_SPEC, NOT_PERMITTED, WRITE_FAILED, NAME_TAKEN, REMOVAL_HELD})
"""Reasons that need a person. (Hvpas are edited on purpose, and a policy may select nothing yet.)"""


def ready_of(status: PolicyStatus) -> StatusCondition | None:
    """Returns the condition Ready; None if there is none yet."""
    return next((condition for condition in status.conditions if condition.type == "Ready"), None)


def needs_person(status: PolicyStatus) -> bool:
    """Whether the policy needs a person. Removals that go on when the hour is over need none."""
    ready = ready_of(status)
    return (
        ready is not None
        and ready.reason in PROBLEMS
        and (ready.reason != REMOVAL_HELD or status.removal_held)
    )


@dataclass(slots=True)
class Tally:
    """What a plan finds about a policy."""

    selected: int = 0
    generated: int = 0
    up_to_date: int = 0
    written_by_others: int = 0
    opted_out: int = 0
    awaiting_adoption: int = 0
    missing: int = 0
    """Hvpas that are created now, or once their name is free."""
    left: int = 0
    """Hvpas of another policy, which does nothing (it is invalid or being deleted), or may not stop so many."""
    waiting: int = 0
    """Hvpas that differ from what the policy requires."""
    held: int = 0
    """Hvpas of workloads that the policy no longer selects, and that stay."""
    limit: int = 0
    """How many of them may be removed within an hour."""
    holds_until_change: bool = False
    """Whether they stay until the policy changes, and not only until the hour is over."""
    waits_for: list[str] = field(default_factory=list)
    """Hvpas that were updated and have yet to settle."""
    edited: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    won: Counter[PolicyKey] = field(default_factory=Counter)
    """Workloads that a less specific policy selects as well."""
    lost: Counter[PolicyKey] = field(default_factory=Counter)
    """Workloads that belong to a more specific policy."""


def status_of(policy: PolicyObject, tally: Tally | None, window: Window, now: dt.datetime) -> PolicyStatus:
    """Returns the next status; `tally` is None for a policy that does nothing, whose counts stay."""
    generation = max(0, policy.metadata.generation)
    if tally is None:
        why = _why_inactive(policy)
        counts = policy.status.model_dump(exclude={"observed_generation", "conditions"})
        conflict = False, NO_OVERLAP, "this policy selects nothing at present"
    else:
        why = _ready(tally, window.removed)
        names = ("selected", "generated", "up_to_date", "written_by_others", "opted_out", "awaiting_adoption")
        counts = {name: getattr(tally, name) for name in names} | {"awaiting_removal": tally.held}
        counts["removal_held"] = tally.holds_until_change
        counts |= {"removed": window.removed, "removed_since": window.since if window.removed else None}
        conflict = _conflict(tally)
    conditions = [
        _condition(policy, kind, *each, now) for kind, each in (("Ready", why), ("Conflict", conflict))
    ]
    return PolicyStatus(observed_generation=generation, conditions=tuple(conditions), **counts)


def _why_inactive(policy: PolicyObject) -> tuple[bool, str, str]:
    if policy.spec is None:
        return False, INVALID_SPEC, text.joined(map(str, policy.problems))
    return False, NOT_PERMITTED, "the operator may not read namespaces (config/hvpa-policy)"


def _ready(tally: Tally, removed: int) -> tuple[bool, str, str]:
    """Returns the first of the reasons why the policy is not ready."""
    if tally.failures:
        return False, WRITE_FAILED, text.joined(tally.failures[: text.MOST_NAMES])
    if tally.held:
        return False, REMOVAL_HELD, _why_held(tally, removed)
    if tally.taken:
        return False, NAME_TAKEN, f"Hvpas for other workloads have the names for {text.names(tally.taken)}"
    if tally.missing:
        return False, ROLLING_OUT, f"{tally.missing} Hvpas are missing, and are created"
    if tally.left:
        others = (
            "workloads still have the Hvpa of another policy, which is invalid, being deleted or RemovalHeld"
        )
        return False, ROLLING_OUT, f"{tally.left} {others}"
    if tally.waiting:
        held = f"; waiting for {text.names(sorted(tally.waits_for))}" if tally.waits_for else ""
        return False, ROLLING_OUT, f"{tally.waiting} Hvpas have yet to change{held}"
    if tally.edited:
        why = "somebody changed these Hvpas, so the policy leaves them as they are"
        how = f"delete them, or remove their label to keep them: {text.names(tally.edited)}"
        return False, EDITED, f"{why}; {how}"
    if not tally.selected:
        others = f"; {sum(tally.lost.values())} belong to more specific policies" if tally.lost else ""
        return False, NOTHING_SELECTED, f"no workload belongs to this policy{others}"
    return True, UP_TO_DATE, "all selected workloads have their Hvpa"


def _why_held(tally: Tally, removed: int) -> str:
    what = f"{tally.held} Hvpas stay although this policy no longer selects their workloads"
    if not tally.selected:
        how = "correct the selectors, or, to remove the Hvpas, let the workloads opt out or delete the policy"
        return f"{what}, since it selects no workload at all; {how}"
    why = f"since rollout.maxRemovals allows {tally.limit} removals within an hour"
    why += f", and {removed} were made" if removed else ""
    if not tally.holds_until_change:
        return f"{what}, {why}; they are removed when the hour is over"
    confirmed = max(tally.held + removed, tally.limit + 1)
    return f"{what}, {why}; correct the selectors, or set rollout.maxRemovals to {confirmed} to remove them"


def _conflict(tally: Tally) -> tuple[bool, str, str]:
    parts = [f"this policy wins {count} workloads over {key}" for key, count in sorted(tally.won.items())]
    parts += [
        f"{count} workloads belong to {key}, which is more specific"
        for key, count in sorted(tally.lost.items())
    ]
    if not parts:
        return False, NO_OVERLAP, "no other policy selects the same workloads"
    return True, OVERLAPS, text.joined(parts)


def _condition(
    policy: PolicyObject, kind: str, holds: bool, reason: str, message: str, now: dt.datetime
) -> StatusCondition:
    """Returns a condition; its time stays as long as its status does."""
    old = next((condition for condition in policy.status.conditions if condition.type == kind), None)
    status = "True" if holds else "False"
    since = old.last_transition_time if old is not None and old.status == status else None
    return StatusCondition(
        type=kind,
        status=status,
        reason=reason,
        message=text.one_line(message),
        last_transition_time=since or now.replace(microsecond=0),
        observed_generation=max(0, policy.metadata.generation),
    )
