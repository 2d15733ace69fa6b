"""Remembering what was made of the same objects: what is read of a cluster is frozen, and most of it is the very same
object at one decision and at the next.

A result depends on its arguments alone, so remembering it changes how long a decision takes and nothing else
(tests/unit/core/test_properties.py).

What it is worth (2026-11-23, `python -m benchmarks decision` and `simulation`, with and without in one run): a
reconcile in which nothing is to do takes 19 µs. Without what is kept of observing and deciding it
takes 135 µs (without that of deciding alone: 90), with nothing kept at all 740 µs. For 10,000 Hvpas whose HPAs report
every 15 s that is 1, 9 and 49 percent of a core. A simulated step of an Hvpa takes 3.7 times as long without the three.
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
"""Results that a function keeps, with the objects that they were made of. When there are more, it starts anew."""
HVPAS = 16_384
"""Hvpas of which the latest result is kept. When there are more, it starts anew."""

_tables: list[dict[Any, Any]] = []
_latest: list[dict[Hashable, Any]] = []
_of_status: list[dict[Hashable, Any]] = []
"""Those of `_latest` whose results were made of the Hvpa's status."""
_ANY_TIME = Clock(dt.datetime.min.replace(tzinfo=dt.UTC))


def forget(hvpa: Hashable) -> None:
    """Drop what is kept for an Hvpa that is gone: `hvpa` as in `Basis`."""
    for table in _latest:
        table.pop(hvpa, None)


def forget_decision(hvpa: Hashable) -> None:
    """Drop what was decided about an Hvpa whose status is written now: it was made of the one before, which would be
    kept for nothing."""
    for table in _of_status:
        table.pop(hvpa, None)


def forget_all() -> None:
    """Start anew, as in another process."""
    for table in _tables + _latest:
        table.clear()


def remembered(function: Callable[[*Ts], R]) -> Callable[[*Ts], R]:
    """`function`, which must be pure, with its results kept by the identity of its arguments, which must be frozen.
    Comparing them by value, or hashing them, would cost more than most of these functions do. The arguments are kept
    as well, so that no other object can get the same identity: for small objects only."""
    known: dict[tuple[int, ...], tuple[tuple[*Ts], R]] = {}
    _tables.append(known)

    @wraps(function)
    def call(*args: *Ts) -> R:
        key = tuple(map(id, args))
        found = known.get(key)
        if found is None:
            if len(known) >= REMEMBERED:
                known.clear()
            found = known[key] = (args, function(*args))
        return found[1]

    return call


class Basis(NamedTuple):
    """What a result is made of: whose it is (`hvpa`: namespace and name of the Hvpa), objects that must
    be the very `same`, and what must be `equal`. All of it must be frozen."""

    hvpa: Hashable
    same: tuple[object, ...]
    equal: tuple[object, ...] = ()


class _Kept(NamedTuple):
    same: tuple[object, ...]
    equal: tuple[object, ...]
    since: dt.datetime
    until: dt.datetime
    result: Any


def latest(basis: Callable[P, Basis]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keeps, for each Hvpa, the latest result of a pure function of what `basis` names of its arguments, for as long
    as that is the same."""

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
    """As `latest`, for a function of the time as well: the result is kept while time alone changes nothing
    (`Clock.changes_at`), and, where it is made `of_status`, until that is written (`forget_decision`)."""

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
            own = clock.fresh()
            result = function(own, *args, **kwargs)
            until = own.changes_at or LAST_INSTANT
            clock.is_past(until)
            if own.is_recorded:
                table.pop(hvpa, None)
                clock.stamp()
                return result
            if hvpa not in table and len(table) >= HVPAS:
                table.clear()
            table[hvpa] = _Kept(same, equal, own.stamp(), until, result)
            return result

        return call

    return decorate
