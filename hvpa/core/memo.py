"""Remembering what was made of the same objects: what is read of a cluster is frozen, and most of it is the very same
object at one decision and at the next.

A result depends on its arguments alone, so remembering it changes how long a decision takes and nothing else.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable
from functools import wraps
from operator import is_
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from hvpa.core.present import Present

P = ParamSpec("P")
R = TypeVar("R")

REMEMBERED = 512
"""Results that a function keeps, with the objects that they were made of. When there are more, it starts anew."""
HVPAS = 16_384
"""Hvpas of which the latest result is kept. When there are more, it starts anew."""

_tables: list[dict[Any, Any]] = []


def forget() -> None:
    """Start anew, as in another process."""
    for table in _tables:
        table.clear()


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which must be pure, with its results kept by the identity of its positional arguments, which must be
    frozen. Comparing them by value, or hashing them, would cost more than most of these functions do. The arguments
    are kept as well, so that no other object can get the same identity."""
    known: dict[tuple[int, ...], tuple[tuple[object, ...], R]] = {}
    _tables.append(known)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        assert not kwargs, "the key is made of positional arguments"
        key = tuple(map(id, args))
        found = known.get(key)
        if found is None:
            if len(known) >= REMEMBERED:
                known.clear()
            found = known[key] = (args, function(*args, **kwargs))
        return found[1]

    return call


class Basis(NamedTuple):
    """What a result is made of: whose it is (`slot`), objects that must be the very `same`, and what must be `equal`.
    All of it must be frozen."""

    slot: Hashable
    same: tuple[object, ...]
    equal: tuple[object, ...] = ()


class _Kept(NamedTuple):
    same: tuple[object, ...]
    equal: tuple[object, ...]
    since: dt.datetime
    until: dt.datetime
    result: object


def remembered_while(
    basis: Callable[P, Basis],
) -> Callable[[Callable[Concatenate[Present, P], R]], Callable[Concatenate[Present, P], R]]:
    """Keeps the latest result of a pure function of the present and of what `basis` names of its arguments, for as long
    as that is the same and time alone changes nothing (`Present.until`)."""

    def decorate(function: Callable[Concatenate[Present, P], R]) -> Callable[Concatenate[Present, P], R]:
        latest: dict[Hashable, _Kept] = {}
        _tables.append(latest)

        @wraps(function)
        def call(present: Present, /, *args: P.args, **kwargs: P.kwargs) -> R:
            slot, same, equal = basis(*args, **kwargs)
            kept = latest.get(slot)
            if (
                kept is not None
                and kept.since <= present.now < kept.until
                and len(kept.same) == len(same)
                and all(map(is_, kept.same, same))
                and kept.equal == equal
            ):
                present.is_past(kept.until)
                return kept.result  # type: ignore[return-value]
            own = Present(present.now)
            result = function(own, *args, **kwargs)
            if own.until > own.now:
                if len(latest) >= HVPAS:
                    latest.clear()
                latest[slot] = _Kept(same, equal, own.now, own.until, result)
                present.is_past(own.until)
            else:
                present.stamp()
            return result

        return call

    return decorate
