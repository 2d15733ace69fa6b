"""Keys that become due later: a heap in which each key stands once."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from hvpa.reconcile.ports import Key

SMALL = 64
"""A heap of up to so many entries is not worth cleaning."""


class Timers:
    """One due time per key; entries of the heap that were overtaken are skipped, and dropped when they prevail."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._sequence = 0

    def add(self, key: Key, due: float) -> None:
        """Have `key` due at `due`; an earlier time that it already has stays."""
        if due >= self._due.get(key, float("inf")):
            return
        self._due[key] = due
        self._sequence += 1
        heapq.heappush(self._heap, (due, self._sequence, key))
        if len(self._heap) > SMALL and len(self._heap) > 4 * len(self._due):
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)

    def drop(self, key: Key) -> None:
        """Forget the due time of `key`."""
        self._due.pop(key, None)

    def discard(self, condition: Callable[[Key], bool]) -> None:
        """Forget the due times of all keys that fulfil `condition`."""
        for key in [key for key in self._due if condition(key)]:
            del self._due[key]

    def next(self) -> float | None:
        """The earliest due time; None when there is none."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> tuple[Key, float] | None:
        """Take out the earliest key that is due by `now`, with its due time; None when none is."""
        due = self.next()
        if due is None or due > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        return key, due

    def __len__(self) -> int:
        """How many entries the heap has, overtaken ones included."""
        return len(self._heap)
