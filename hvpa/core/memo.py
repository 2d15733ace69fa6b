"""Remembering what was made of the same objects: what is read of a cluster is frozen, and most of it is the very same
object at one decision and at the next.

A result depends on its arguments alone, so remembering it changes how long a decision takes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

REMEMBERED = 512
"""Results that a function keeps, with the objects that they were made of. When there are more, it starts anew."""


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which must be pure, with its results kept by the identity of its positional arguments, which must be
    frozen. Comparing them by value, or hashing them, would cost more than most of these functions do. The arguments
    are kept as well, so that no other object can get the same identity."""
    known: dict[tuple[int, ...], tuple[tuple[object, ...], R]] = {}

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
