"""Events of a policy: its writes, and changes of its condition Ready that a person should know of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hvpa.api.policy.resource import PolicyObject
from hvpa.api.policy.status import PolicyStatus
from hvpa.api.values import text
from hvpa.core.model import API_VERSION, Event, Involved
from hvpa.core.policies.model import PolicyChange
from hvpa.core.policies.report import UP_TO_DATE, needs_person, ready_of

_DONE: Final = (
    ("create", None, "HvpasCreated", "created"),
    ("patch", None, "HvpasChanged", "changed"),
    ("delete", True, "HvpasRemoved", "no longer selected, so removed"),
    (
        "delete",
        False,
        "HvpasRemoved",
        "workload gone, opted out or with an Hvpa that somebody wrote, so removed",
    ),
)
"""Action, whether `rollout.maxRemovals` bounds it (None: no matter), reason, and text."""


def of_changes(policy: PolicyObject, changes: Sequence[PolicyChange]) -> Iterator[Event]:
    """Yields at most an Event for each kind of write, however many Hvpas were written."""
    for action, bounded, reason, what in _DONE:
        names = [
            f"{change.namespace}/{change.name}"
            for change in changes
            if change.action == action and (bounded is None or bounded == (change.removed_by is not None))
        ]
        if names:
            yield _event(
                policy, "Normal", reason, f"{what}: {len(names)} Hvpas ({text.names(sorted(names))})"
            )


def of_status(policy: PolicyObject, status: PolicyStatus) -> Event | None:
    """Returns a Warning if the policy needs a person now, and a normal Event once it is up to date after that; None if
    neither begins with this status."""
    before, after = ready_of(policy.status), ready_of(status)
    if after is None:
        return None
    needed = None if before is None or not needs_person(policy.status) else before.reason
    if needs_person(status) and after.reason != needed:
        return _event(policy, "Warning", after.reason, after.message)
    if after.reason == UP_TO_DATE and needed is not None:
        return _event(policy, "Normal", UP_TO_DATE, after.message)
    return None


def _event(policy: PolicyObject, kind: str, reason: str, message: str) -> Event:
    meta = policy.metadata
    involved = Involved(API_VERSION, policy.kind, meta.name, meta.uid, meta.resource_version)
    return Event("Warning" if kind == "Warning" else "Normal", reason, text.one_line(message), involved)
