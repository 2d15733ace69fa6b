"""Limits the number of items that clients hold: connections, streams, watched Hvpas. No I/O here.

A new item is never refused. An owner (an address, a user) above its own limit loses an item of its own. At the total
limit, the owner that holds the most loses an item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class FairLimit(Generic[T]):
    """Items by owner: at most `total`, and at most `per_owner` per owner.

    `is_idle` separates idle items, which are displaced first, from items in use. Among equals, the item that was
    added or used longest ago is displaced.
    """

    def __init__(self, total: int, per_owner: int, is_idle: Callable[[T], bool]) -> None:
        self._total = total
        self._per_owner = per_owner
        self._is_idle = is_idle
        self._owners: dict[T, str] = {}
        """The item that was added or used longest ago comes first."""
        self._held: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._owners))

    def add(self, item: T, owner: str) -> T | None:
        """Add an item; returns the item that it displaces, which no longer counts, or None."""
        victim = None
        if self._held[owner] >= self._per_owner:
            victim = self._choose([held for held, other in self._owners.items() if other == owner])
        elif len(self._owners) >= self._total:
            victim = self._choose(self._owners)
        if victim is not None:
            self.discard(victim)
        self._owners[item] = owner
        self._held[owner] += 1
        return victim

    def used(self, item: T) -> None:
        """Note that the item was in use until now, so all other items are displaced before it."""
        if (owner := self._owners.pop(item, None)) is not None:
            self._owners[item] = owner

    def discard(self, item: T) -> None:
        """Remove an item; no effect if it does not count."""
        owner = self._owners.pop(item, None)
        if owner is None:
            return
        self._held[owner] -= 1
        if not self._held[owner]:
            del self._held[owner]

    def least_missed(self) -> T | None:
        """The item that would be displaced next; it still counts; None without items."""
        return self._choose(self._owners) if self._owners else None

    def _choose(self, items: Collection[T]) -> T:
        """The item to displace: idle items first, then items of the owner that holds the most, then the oldest."""
        candidates = [item for item in items if self._is_idle(item)] or items
        return max(candidates, key=lambda item: self._held[self._owners[item]])
