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
from collections.abc import Callable
from functools import wraps
from operator import is_
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, TypeVarTuple, cast

from hvpa.core.values.clock import LAST_INSTANT, Clock

P = ParamSpec("P")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

REMEMBERED = 512
"""Maximum number of results per function, stored with their arguments. The cache is cleared when it is full."""

_tables: list[dict[Any, Any]] = []


def forget_all() -> None:
    """Clears the caches by identity, as a new process does."""
    for table in _tables:
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

    same: tuple[object, ...]
    """Objects that must be identical."""
    equal: tuple[object, ...] = ()
    """Objects that must be equal."""


class Kept(NamedTuple):
    """The latest result of a function, and its input."""

    basis: Basis
    since: dt.datetime
    until: dt.datetime
    result: Any

    def is_for(self, basis: Basis) -> bool:
        """Whether the result was made from this input."""
        same = self.basis.same
        return (
            len(same) == len(basis.same)
            and all(map(is_, same, basis.same))
            and self.basis.equal == basis.equal
        )


class Memo(dict[Callable[..., Any], Kept]):
    """The latest results of the cached functions about an Hvpa, for its next decision. The caller owns the memo and
    drops it together with everything else that it stores about the Hvpa."""


def remembered_while(
    basis: Callable[P, Basis],
) -> Callable[[Callable[Concatenate[Clock, P], R]], Callable[Concatenate[Clock, P], R]]:
    """Caches the latest result of a pure function in the clock's memo (`Clock.memo`; None: no cache). The result is
    valid while its `basis` stays the same and time alone changes nothing (`Clock.changes_at`)."""

    def decorate(function: Callable[Concatenate[Clock, P], R]) -> Callable[Concatenate[Clock, P], R]:
        @wraps(function)
        def call(clock: Clock, /, *args: P.args, **kwargs: P.kwargs) -> R:
            memo = clock.memo
            if memo is None:
                return function(clock, *args, **kwargs)
            present = basis(*args, **kwargs)
            kept = memo.get(function)
            if kept is not None and clock.is_within(kept.since, kept.until) and kept.is_for(present):
                clock.is_past(kept.until)
                return cast(R, kept.result)
            own_clock = clock.fresh()
            result = function(own_clock, *args, **kwargs)
            until = own_clock.changes_at or LAST_INSTANT
            clock.is_past(until)
            if own_clock.is_recorded:
                memo.pop(function, None)
                clock.stamp()
            else:
                memo[function] = Kept(present, own_clock.stamp(), until, result)
            return result

        return call

    return decorate
