"""What is kept of objects that are larger than any that means something, and how those are read that hold a time which
no calendar has.

What belongs here: what makes one strange object bearable for all others. None of this is done for usual ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, Final

import msgspec

from hvpa.api.objects.read_models import Hpa, HvpaSizes, Pod, Vpa, Workload
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

_FEW: Final = MOST_CONTAINERS + 1
"""Containers that are kept: one more than may be, so that it is seen that there are too many."""
_LISTS: Final[Mapping[type, Mapping[str, int]]] = {
    Pod: {
        "spec.containers": _FEW,
        "spec.init_containers": _FEW,
        "status.container_statuses": _FEW,
        "status.init_container_statuses": _FEW,
        "status.conditions": MOST_ENTRIES,
    },
    Workload: {
        "metadata.managed_fields": MOST_ENTRIES,
        "spec.template.spec.containers": _FEW,
        "spec.template.spec.init_containers": _FEW,
    },
    Hpa: {"status.conditions": MOST_ENTRIES, "status.current_metrics": MOST_ENTRIES},
    Vpa: {
        "status.conditions": MOST_ENTRIES,
        "status.recommendation.container_recommendations": MOST_ENTRIES,
    },
    HvpaSizes: {},
}
"""Lists of each kind of object, and how many of their entries are kept."""
_set = msgspec.structs.force_setattr


def cut_down(obj: Hpa | HvpaSizes | Pod | Vpa | Workload) -> None:
    """Leave of a large object what can count. It has no other user yet, so it is changed in place."""
    for path, most in {"metadata.owner_references": MOST_ENTRIES, **_LISTS[type(obj)]}.items():
        *parents, name = path.split(".")
        owner: Any = reduce(lambda one, parent: one and getattr(one, parent), parents, obj)
        entries = owner and getattr(owner, name)
        if entries and len(entries) > most:
            _set(owner, name, entries[:most])
    if isinstance(obj, Hpa | Pod | Vpa):
        for one in obj.status.conditions or ():
            _set(one, "message", one.message[:MESSAGE_LENGTH])
    labels = obj.metadata.labels
    if len(labels) > MOST_ENTRIES:  # each of them is an entry of an index
        _set(obj.metadata, "labels", dict(list(labels.items())[:MOST_ENTRIES]))
    if isinstance(obj, Pod):
        _set(obj.status, "message", obj.status.message[:MESSAGE_LENGTH])


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
