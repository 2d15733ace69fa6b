"""The work queue: which Hvpa is due, who is being worked on, and who waits for how long.

A plain state machine: every method is told the present `now` (seconds of any monotonic clock), nothing here waits.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass

from hvpa.reconcile.ports import Key

MAX_EXPONENT = 40
"""Beyond this many failures the back-off is at its cap for any sane base; keeps 2**n a small number."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off with full jitter: the n-th delay is uniform in (0, min(cap, base * 2**n)], in seconds.

    Full jitter as in "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
    """

    base: float
    cap: float

    def delay(self, failures: int, rng: random.Random) -> float:
        """The delay after `failures` failures in a row (at least one)."""
        ceiling = min(self.cap, self.base * 2.0 ** min(failures, MAX_EXPONENT))
        return ceiling * (1.0 - rng.random())


FAILURE = Backoff(base=0.25, cap=300.0)
"""Between tries of an Hvpa whose writes fail: up to 5 minutes (controller-runtime's default cap is 1000 s)."""
CONFLICT = Backoff(base=0.005, cap=5.0)
"""After a conflict: practically at once (client-go's first delay is 5 ms); the watch event re-adds the key anyway."""


class WorkQueue:
    """A FIFO of keys without duplicates; a key that is being worked on is handed out again only when it is done.

    Delayed re-adds: the earliest wins, and taking a key forgets them, since the work decides anew when to look again.
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._ready: deque[Key] = deque()
        self._since: dict[Key, float] = {}
        """Keys in `_ready`, with the time they became due."""
        self._working: set[Key] = set()
        self._dirty: dict[Key, float] = {}
        """Keys added while they were being worked on, with the time of the first add."""
        self._due: dict[Key, float] = {}
        self._timers: list[tuple[float, int, Key]] = []
        self._sequence = 0
        self._failures: dict[Key, int] = {}
        self._held: dict[Key, float] = {}

    def add(self, key: Key, now: float) -> None:
        """Make `key` due at once (or when its hold ends, or when the work on it is done)."""
        held_until = self._held.get(key)
        if held_until is not None and held_until > now:
            self.add_at(key, held_until, now)
            return
        self._due.pop(key, None)
        if key in self._working:
            self._dirty.setdefault(key, now)
        elif key not in self._since:
            self._since[key] = now
            self._ready.append(key)

    def add_at(self, key: Key, due: float, now: float) -> None:
        """Make `key` due at `due`; an earlier time that it already has stays."""
        due = max(due, self._held.get(key, due))
        if due <= now:
            self.add(key, now)
        elif key not in self._since and due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._sequence += 1
            heapq.heappush(self._timers, (due, self._sequence, key))
            self._compact()

    def retry(self, key: Key, backoff: Backoff, now: float) -> float:
        """Re-add `key` after the next back-off delay, which is returned (seconds)."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = backoff.delay(failures, self._rng)
        self.add_at(key, now + delay, now)
        return delay

    def hold(self, key: Key, until: float, now: float) -> None:
        """Keep `key` from being handed out before `until`, whatever is added: the server asked to wait."""
        self._held[key] = until
        if self._dirty.pop(key, None) is not None:
            self._due.pop(key, None)
        self.add_at(key, until, now)

    def forget(self, key: Key) -> None:
        """Reset the back-off of `key`."""
        self._failures.pop(key, None)

    def take(self, now: float) -> Key | None:
        """The key that has been due for longest, which now counts as being worked on; None when none is due."""
        self._promote(now)
        if not self._ready:
            return None
        key = self._ready.popleft()
        del self._since[key]
        self._held.pop(key, None)
        self._working.add(key)
        return key

    def done(self, key: Key, now: float) -> None:
        """The work on `key` is over; what was added meanwhile becomes due."""
        self._working.discard(key)
        if self._dirty.pop(key, None) is not None:
            self.add(key, now)

    def next_due(self) -> float | None:
        """When the next delayed key becomes due; None when there is none."""
        while self._timers and self._due.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def depth(self, now: float) -> int:
        """How many keys are due and wait for a worker."""
        self._promote(now)
        return len(self._ready)

    def oldest_age(self, now: float) -> float:
        """For how long (seconds) the key at the head of the queue has been due; 0 when none waits."""
        self._promote(now)
        return max(0.0, now - self._since[self._ready[0]]) if self._ready else 0.0

    def _promote(self, now: float) -> None:
        due = self.next_due()
        while due is not None and due <= now:
            _, _, key = heapq.heappop(self._timers)
            del self._due[key]
            if self._held.get(key, 0.0) <= due:
                self._held.pop(key, None)
            if key in self._working:
                self._dirty.setdefault(key, due)
            elif key not in self._since:
                self._since[key] = due
                self._ready.append(key)
            due = self.next_due()

    def _compact(self) -> None:
        """Drop overtaken timers once they outnumber the live ones, so that the heap stays small."""
        if len(self._timers) > 64 and len(self._timers) > 4 * len(self._due):
            self._timers = [entry for entry in self._timers if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._timers)
