"""Limits for oversized objects, and a reader for objects with an invalid time.

This module keeps a strange object from harming all others. Ordinary objects do not need it.
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
"""Maximum entries of a list: conditions, metrics, recommendations, owners."""
_TIMES: Final = frozenset(
    {"creationTimestamp", "finishedAt", "lastScaleTime", "lastTransitionTime", "startTime", "time"}
)
"""Fields that contain a time, among the fields that are read. (`deletionTimestamp` is the API server's own.)"""

_FEW: Final = MOST_CONTAINERS + 1
"""Maximum containers that are kept: 1 above the allowed number, to detect that there are too many."""
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
"""Lists of each kind of object, and the number of their entries that are kept."""
_set = msgspec.structs.force_setattr


def cut_down(obj: Hpa | HvpaSizes | Pod | Vpa | Workload) -> None:
    """Reduce a large object to the parts that can matter. It is changed in place, since no other code holds it yet."""
    for path, most in {"metadata.owner_references": MOST_ENTRIES, **_LISTS[type(obj)]}.items():
        *parents, name = path.split(".")
        owner: Any = reduce(lambda part, parent: part and getattr(part, parent), parents, obj)
        entries = owner and getattr(owner, name)
        if entries and len(entries) > most:
            _set(owner, name, entries[:most])
    if isinstance(obj, Hpa | Pod | Vpa):
        for condition in obj.status.conditions or ():
            _set(condition, "message", condition.message[:MESSAGE_LENGTH])
    labels = obj.metadata.labels
    if len(labels) > MOST_ENTRIES:  # each label is an entry of an index
        _set(obj.metadata, "labels", dict(list(labels.items())[:MOST_ENTRIES]))
    if isinstance(obj, Pod):
        _set(obj.status, "message", obj.status.message[:MESSAGE_LENGTH])


def without_wrong_times(raw: bytes | msgspec.Raw) -> bytes | None:
    """The object's JSON without its invalid times (a year beyond 9999, no time zone); None if all are valid.

    Raises msgspec.MsgspecError, ValueError or RecursionError if it is not JSON.
    """
    document = msgspec.json.decode(raw)
    return msgspec.json.encode(document) if _drop_wrong_times(document) else None


def _drop_wrong_times(value: object) -> int:
    """Drop the invalid times below a value; returns their number."""
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
