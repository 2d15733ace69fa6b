"""Caches results made from the same objects. Objects read from a cluster are frozen, and most are identical in the next
decision.

A result depends only on its arguments, so the cache changes the duration of a decision and nothing else
(tests/unit/core/test_properties.py).

Measured on 2026-11-23 with `python -m benchmarks decision` and `simulation`, with and without in one run: a reconcile
without changes takes 19 µs. Without the cache of deciding it takes 90 µs, without the caches of observing and deciding
135 µs, with no cache at all 740 µs. For 10,000 Hvpas whose HPAs report every 15 s, 19, 135 and 740 µs are 1, 9 and 49
percent of a core. Without the three caches a simulated step of an Hvpa takes 3.7 times as long.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable
from functools import wraps
from operator import is_
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, TypeVarTuple, cast

from hvpa.core.values.clock import LAST_INSTANT, Clock

P = ParamSpec("P")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

REMEMBERED = 512
"""Maximum number of results per function, stored with their arguments. The cache is cleared when it is full."""
HVPAS = 16_384
"""Maximum number of Hvpas whose latest result is stored. The cache is cleared when it is full."""

_tables: list[dict[Any, Any]] = []
_latest: list[dict[Hashable, Any]] = []
_of_status: list[dict[Hashable, Any]] = []
"""The caches of `_latest` whose results depend on the Hvpa's status."""
_ANY_TIME = Clock(dt.datetime.min.replace(tzinfo=dt.UTC))


def forget(hvpa: Hashable) -> None:
    """Drops the results of a deleted Hvpa (`hvpa` as in `Basis`)."""
    for table in _latest:
        table.pop(hvpa, None)


def forget_decision(hvpa: Hashable) -> None:
    """Drops the decision about an Hvpa whose status is being written: it was made with the old status, so it can't be
    used again."""
    for table in _of_status:
        table.pop(hvpa, None)


def forget_all() -> None:
    """Clears all caches, as a new process does."""
    for table in _tables + _latest:
        table.clear()


def remembered(function: Callable[[*Ts], R]) -> Callable[[*Ts], R]:
    """Caches a pure function's results by the identity of its arguments, which must be frozen. Comparing or hashing
    arguments would cost more than most of these functions do. The cache also stores the arguments, so no other object
    can get the same identity: use it for small objects only."""
    known: dict[tuple[int, ...], tuple[tuple[*Ts], R]] = {}
    _tables.append(known)

    @wraps(function)
    def call(*args: *Ts) -> R:
        key = tuple(map(id, args))
        entry = known.get(key)
        if entry is None:
            if len(known) >= REMEMBERED:
                known.clear()
            entry = known[key] = (args, function(*args))
        return entry[1]

    return call


class Basis(NamedTuple):
    """The input of a result. All of it must be frozen."""

    hvpa: Hashable
    """Namespace and name of the Hvpa."""
    same: tuple[object, ...]
    """Objects that must be identical."""
    equal: tuple[object, ...] = ()
    """Objects that must be equal."""


class _Kept(NamedTuple):
    same: tuple[object, ...]
    equal: tuple[object, ...]
    since: dt.datetime
    until: dt.datetime
    result: Any


def latest(basis: Callable[P, Basis]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Caches, for each Hvpa, the latest result of a pure function while its `basis` stays the same."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @remembered_while(basis)
        def timeless(clock: Clock, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return function(*args, **kwargs)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return timeless(_ANY_TIME, *args, **kwargs)

        return call

    return decorate


def remembered_while(
    basis: Callable[P, Basis], of_status: bool = False
) -> Callable[[Callable[Concatenate[Clock, P], R]], Callable[Concatenate[Clock, P], R]]:
    """Like `latest`, for a function that also depends on the time. The result is valid while time alone changes nothing
    (`Clock.changes_at`) and, with `of_status`, until the status is written (`forget_decision`)."""

    def decorate(function: Callable[Concatenate[Clock, P], R]) -> Callable[Concatenate[Clock, P], R]:
        table: dict[Hashable, _Kept] = {}
        _latest.append(table)
        if of_status:
            _of_status.append(table)

        @wraps(function)
        def call(clock: Clock, /, *args: P.args, **kwargs: P.kwargs) -> R:
            hvpa, same, equal = basis(*args, **kwargs)
            kept = table.get(hvpa)
            if (
                kept is not None
                and clock.is_within(kept.since, kept.until)
                and len(kept.same) == len(same)
                and all(map(is_, kept.same, same))
                and kept.equal == equal
            ):
                clock.is_past(kept.until)
                return cast(R, kept.result)
            own_clock = clock.fresh()
            result = function(own_clock, *args, **kwargs)
            until = own_clock.changes_at or LAST_INSTANT
            clock.is_past(until)
            if own_clock.is_recorded:
                table.pop(hvpa, None)
                clock.stamp()
                return result
            if hvpa not in table and len(table) >= HVPAS:
                table.clear()
            table[hvpa] = _Kept(same, equal, own_clock.stamp(), until, result)
            return result

        return call

    return decorate
