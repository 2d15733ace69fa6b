"""Removal of Hvpas: how many a policy may remove, and which HPAs and VPAs go back to acting themselves.

An HPA or VPA that an Hvpa adopted was there before, and the garbage collector would delete it with the Hvpa. So the
policy notes its spec when it lets the Hvpa adopt it, and returns it before it removes the Hvpa.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from hvpa.api.objects.kinds import api_version_of
from hvpa.api.objects.read_models import Hpa, OwnerReference, Vpa
from hvpa.api.policy.resource import PolicyObject
from hvpa.core.model import TEMPLATE_HASH, OwnedKind
from hvpa.core.policies.model import ADOPTED, Document, PresentHvpa, Return

WINDOW: Final = dt.timedelta(hours=1)
"""Time in which a policy may remove `rollout.maxRemovals` Hvpas of workloads that it no longer selects."""


class Window(NamedTuple):
    """The present hour in which removals are counted."""

    since: dt.datetime
    removed: int
    """Hvpas removed since then."""


def removal_window(policy: PolicyObject, uncounted: int, now: dt.datetime) -> Window:
    """Returns the hour of the policy's status if it is not over, else one that begins now. `uncounted` removals are
    those that the status does not have yet. An hour that begins later than now counts, unless it is far off: the clock
    of the operator before was ahead, or the clock was set back."""
    since, removed = policy.status.removed_since, policy.status.removed
    if since is None or abs(now - since) >= WINDOW:
        since, removed = now.replace(microsecond=0), 0
    return Window(since, removed + uncounted)


def noted(recommenders: Iterable[Hpa | Vpa], before: str | None) -> str | None:
    """Returns the note of the HPAs and VPAs that an Hvpa may adopt, with the entries of the note before; None if it
    is empty."""
    note = _read_note(before)
    for recommender in recommenders:
        if recommender.metadata.controller() is None:
            note[_key(recommender)] = msgspec.json.decode(recommender.raw_spec)
    return msgspec.json.encode(note, order="sorted").decode() if note else None


def returns(hvpa: PresentHvpa, recommenders: Iterable[Hpa | Vpa]) -> tuple[Return, ...]:
    """Returns the HPAs and VPAs that an Hvpa has adopted, with the patches that make them as they were. Their target is
    the Hvpa's, whatever the note says."""
    note = _read_note(hvpa.metadata.annotations.get(ADOPTED))
    if not note:
        return ()
    return tuple(
        Return(_kind(recommender), recommender.metadata.name, _patch(hvpa, recommender, before))
        for recommender in recommenders
        if (before := note.get(_key(recommender))) is not None
    )


def wire(owner: OwnerReference) -> Document:
    """Returns an owner reference as JSON."""
    return {"controller": False, **msgspec.to_builtins(owner)}


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Document:
    """Returns the JSON merge patch from one document to another. Example: from `{a: 1, b: 2}` to `{b: 2, c: 3}` it is
    `{a: null, c: 3}`."""
    patch: Document = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if nested := difference(old, value):
                patch[key] = nested
        elif key not in before or old != value:
            patch[key] = value
    return patch


def _patch(hvpa: PresentHvpa, recommender: Hpa | Vpa, before: Document) -> Document:
    meta, target = recommender.metadata, hvpa.target
    reference = {"apiVersion": api_version_of(target.kind), "kind": target.kind, "name": target.name}
    field = "scaleTargetRef" if isinstance(recommender, Hpa) else "targetRef"
    others = [wire(owner) for owner in meta.owner_references if owner.uid != hvpa.metadata.uid]
    metadata = {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "ownerReferences": others or None,
        "annotations": {TEMPLATE_HASH: None},
    }
    present = msgspec.json.decode(recommender.raw_spec)
    return {"metadata": metadata, "spec": difference(present, {**before, field: reference})}


def _read_note(note: str | None) -> dict[str, Document]:
    """Returns the specs of a note; none if somebody changed it to something else."""
    try:
        return msgspec.json.decode(note or "{}", type=dict[str, dict[str, Any]])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _key(recommender: Hpa | Vpa) -> str:
    """Returns the object's entry in a note. An object that the Hvpa creates later has another, also under its name."""
    meta = recommender.metadata
    return f"{_kind(recommender)}/{meta.name}/{meta.uid}"


def _kind(recommender: Hpa | Vpa) -> OwnedKind:
    return "HorizontalPodAutoscaler" if isinstance(recommender, Hpa) else "VerticalPodAutoscaler"
