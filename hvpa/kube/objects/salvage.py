"""What is kept of objects that are larger than any that means something, and how those are read that hold a time which
no calendar has.

What belongs here: what makes one strange object bearable for all others. None of this is done for usual ones.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from hvpa.api.objects.read_models import Condition, Hpa, Pod, Vpa, Workload
from hvpa.api.values.text import MESSAGE_LENGTH
from hvpa.api.values.timestamp import TimestampError, parse_timestamp
from hvpa.core.observing import MOST_CONTAINERS

LARGE: Final = 65_536
"""Bytes of JSON beyond which an object is cut down."""
MOST_ENTRIES: Final = 1000
"""Entries of a list that are kept: conditions, metrics, recommendations, owners."""
_TIMES: Final = frozenset(
    {"creationTimestamp", "finishedAt", "lastScaleTime", "lastTransitionTime", "startTime", "time"}
)
"""Fields whose value is a time, as far as objects are read. (`deletionTimestamp` is the API server's own.)"""

O = TypeVar("O", Hpa, Pod, Vpa, Workload)  # noqa: E741
_set = msgspec.structs.force_setattr


def cut_down(obj: Hpa | Pod | Vpa | Workload) -> None:
    """Leave of a large object what can have a say. It is nobody else's yet, so it is changed in place."""
    _cut(obj.metadata, "owner_references")
    if isinstance(obj, Pod):
        _cut_pod(obj)
    elif isinstance(obj, Workload):
        spec = obj.spec.template.spec
        _cut(obj.metadata, "managed_fields")
        # One more than may be, so that it is seen that there are too many.
        _cut(spec, "containers", MOST_CONTAINERS + 1)
        _cut(spec, "init_containers", MOST_CONTAINERS + 1)
    else:
        _cut_conditions(obj.status)
        if isinstance(obj, Hpa):
            _cut(obj.status, "current_metrics")
        elif obj.status.recommendation is not None:
            _cut(obj.status.recommendation, "container_recommendations")


def _cut_pod(pod: Pod) -> None:
    for name in ("containers", "init_containers"):
        _cut(pod.spec, name, MOST_CONTAINERS + 1)
    _cut(pod.status, "container_statuses", MOST_CONTAINERS + 1)
    _cut_conditions(pod.status)
    _set(pod.status, "message", pod.status.message[:MESSAGE_LENGTH])


def _cut_conditions(status: Any) -> None:
    _cut(status, "conditions")
    entries: list[Condition] = status.conditions or []
    for one in entries:
        _set(one, "message", one.message[:MESSAGE_LENGTH])


def _cut(owner: msgspec.Struct, name: str, most: int = MOST_ENTRIES) -> None:
    entries = getattr(owner, name)
    if entries is not None and len(entries) > most:
        _set(owner, name, entries[:most])


def without_wrong_times(raw: bytes | msgspec.Raw) -> bytes | None:
    """The object's JSON without the times that can't be read (a year beyond 9999, no time zone); None where all can be.
    Raises msgspec.MsgspecError, ValueError or RecursionError where it is no JSON."""
    document = msgspec.json.decode(raw)
    return msgspec.json.encode(document) if _drop_wrong_times(document) else None


def _drop_wrong_times(value: object) -> int:
    """Drop the wrong times below a value; how many there were."""
    if isinstance(value, list):
        return sum([_drop_wrong_times(entry) for entry in value])
    if not isinstance(value, dict):
        return 0
    wrong = [key for key, entry in value.items() if key in _TIMES and not _is_time(entry)]
    for key in wrong:
        del value[key]
    return len(wrong) + sum([_drop_wrong_times(entry) for entry in value.values()])


def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        parse_timestamp(value)
    except TimestampError:
        return False
    return True
