"""The work queue: which Hvpa is due, who is being worked on, and who waits for how long.

A plain state machine: every method takes the current time `now` (seconds of any monotonic clock), nothing here waits.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hvpa.reconcile.fair import Budget, Line, Overdrawn, Window
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
PROBES = 5.0
"""Hvpas per second, all together, that are tried again while the API server gives no response or fails."""
SHORTEST_CAP = 10.0
"""Seconds; the largest such back-off where few Hvpas wait."""
RELEASED = 100.0
"""Hvpas per second that are tried again once a write succeeds after that: so many are reconciled in half a second."""
CONFLICT = Backoff(base=0.005, cap=5.0)
"""After a conflict: practically at once (client-go's first delay is 5 ms); the watch event re-adds the key anyway."""
SLOW_SHARE = 4
"""Every so many-th key is one that is not urgent, while there are both."""
SPACING = 0.1
"""Seconds between reconciles of one Hvpa under constant change: the difference is not seen, as HPAs look every 15 s."""
BURST = 5
"""So many reconciles of one Hvpa may follow each other at once: a step and its aftermath."""
FAILING_SPACING = 1.0
"""Seconds; what SPACING grows to, doubling with each failure in a row, while writes fail or conflict. Changes still
bring an Hvpa back before its back-off is over: they may be what mends it."""
COST_SHARE = 10.0
"""An Hvpa may use one part in so many of the operator's computing time."""
SMALL = 64
"""A heap of up to so many timers is not worth cleaning."""


class Pace:
    """Spaces the work on each key by the generic cell rate algorithm (ITU-T I.371): each reconcile moves the key's
    theoretical time on by its interval, and the next one may begin (BURST - 1) * SPACING before that."""

    def __init__(self) -> None:
        self._theoretical: dict[Key, float] = {}
        self._clean_at = 1024

    def first(self, key: Key, now: float) -> float:
        """When `key` may be worked on; not before `now`."""
        return max(now, self._theoretical.get(key, 0.0) - (BURST - 1) * SPACING)

    def worked(self, key: Key, now: float, cost: float, failures: int) -> None:
        """`key` was worked on: with `cost` seconds of computing, and before with `failures` failures in a row."""
        interval = min(FAILING_SPACING, SPACING * 2.0 ** min(failures, 10))
        start = max(now, self._theoretical.get(key, now))
        self._theoretical[key] = start + max(interval, cost * COST_SHARE)
        if len(self._theoretical) > self._clean_at:
            self._theoretical = {one: time for one, time in self._theoretical.items() if time > now}
            self._clean_at = max(1024, 2 * len(self._theoretical))


class Timers:
    """One due time per key; entries of the heap that were overtaken are skipped, and dropped when they prevail."""

    def __init__(self) -> None:
        self.due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []

    def add(self, key: Key, due: float) -> None:
        """Have `key` due at `due`; an earlier time that it already has stays."""
        if due >= self.due.get(key, float("inf")):
            return
        self.due[key] = due
        heapq.heappush(self._heap, (due, key))
        if len(self._heap) > SMALL and len(self._heap) > 4 * len(self.due):
            self._heap = [entry for entry in self._heap if self.due.get(entry[1]) == entry[0]]
            heapq.heapify(self._heap)

    def next(self) -> float | None:
        """The earliest due time; None when there is none."""
        while self._heap and self.due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> tuple[Key, float] | None:
        """Take out the earliest key that is due by `now`, with its due time; None when none is."""
        due = self.next()
        if due is None or due > now:
            return None
        key = heapq.heappop(self._heap)[1]
        del self.due[key]
        return key, due


class WorkQueue:
    """Keys without duplicates; a key that is being worked on is handed out again only when it is done.

    Urgent is what has changed, and not urgent a pass over everything (after a start, or when a shard was taken over);
    in each, namespaces take turns (`hvpa.reconcile.fair`), and keys of a namespace are first in, first out. Delayed
    re-adds: the earliest wins, and taking a key forgets them, since the work decides again when to look. A key that
    comes too often is spaced (`Pace`).
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._urgent, self._others = Line(), Line()
        """Keys that are due, with the time they became so."""
        self._budget, self._overdrawn, self._window = Budget(), Overdrawn(), Window()
        self._postponed: dict[Key, float] = {}
        """Keys that are being worked on and waited for their namespace's budget, with the seconds that they waited."""
        self._taken = 0
        self._working: dict[Key, float] = {}
        """Keys that are being worked on, with the seconds that they had waited."""
        self._dirty: dict[Key, float] = {}
        """Keys added while they were being worked on, with the time of the first add."""
        self._discarded: set[Key] = set()
        """Keys that were discarded while they were being worked on."""
        self._timers = Timers()
        self._failures: dict[Key, int] = {}
        self._unanswered: set[Key] = set()
        """Keys whose writes failed because the API server gave no response, or failed itself."""
        self._held: dict[Key, float] = {}
        self._pace = Pace()

    def add(self, key: Key, now: float, urgent: bool = True) -> None:
        """Make `key` due at once, or when its hold ends, when the work on it is done, or when it is its time again."""
        self._discarded.discard(key)
        if key in self._working:
            self._timers.due.pop(key, None)
            self._dirty.setdefault(key, now)
        elif (allowed := self._allowed(key, now)) > now:
            self._add_later(key, allowed)
        else:
            self._timers.due.pop(key, None)
            self._put(key, now, urgent)

    def add_at(self, key: Key, due: float, now: float) -> None:
        """Make `key` due at `due`, urgently; an earlier time that it already has stays. Not for a key that was
        discarded while it was being worked on."""
        if key in self._discarded:
            return
        if due <= now:
            self.add(key, now)
        else:
            self._add_later(key, due)

    def retry(self, key: Key, backoff: Backoff, now: float) -> float:
        """Re-add `key` after the next back-off delay, which is returned (seconds)."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = backoff.delay(failures, self._rng)
        self.add_at(key, now + delay, now)
        return delay

    def retry_unanswered(self, key: Key, now: float) -> float:
        """Re-add `key`, whose write got no response or met a fault of the API server, after the next back-off delay,
        which is returned (seconds). Its cap is such that all keys that wait so make PROBES tries per second."""
        self._unanswered.add(key)
        cap = max(SHORTEST_CAP, 2.0 * len(self._unanswered) / PROBES)  # the mean delay is half of the cap
        cap = min(FAILURE.cap, cap)
        return self.retry(key, Backoff(FAILURE.base, cap), now)

    def hold(self, key: Key, until: float, now: float) -> None:
        """Keep `key`, which is being worked on, from being handed out again before `until`, whatever is added: the
        server asked to wait."""
        self._held[key] = until
        self._timers.due.pop(key, None)
        self._dirty.pop(key, None)
        self.add_at(key, until, now)

    def succeeded(self, key: Key, now: float) -> None:
        """Reset the back-off of `key`. If it had waited for the API server, that is back: so are the others, soon."""
        self._failures.pop(key, None)
        if key not in self._unanswered:
            return
        others, self._unanswered = self._unanswered - {key}, set()
        spread = len(others) / RELEASED
        for other in others:
            if other in self._timers.due:
                self._timers.add(other, now + self._rng.random() * spread)

    def discard(self, condition: Callable[[Key], bool]) -> None:
        """Forget all about the keys that fulfil `condition`. One that is being worked on is worked on to its end, and
        forgotten then."""
        self._urgent.discard(condition)
        self._others.discard(condition)
        tables: tuple[dict[Key, Any], ...] = (self._dirty, self._held, self._timers.due, self._failures)
        for keys in tables:
            for key in [key for key in keys if condition(key)]:
                del keys[key]
        self._unanswered = {key for key in self._unanswered if not condition(key)}
        self._discarded.update(key for key in self._working if condition(key))

    def take(self, now: float) -> Key | None:
        """The key whose turn it is, which now counts as being worked on; None when none is due. Namespaces take turns;
        in a namespace, the key that has been due for longest comes first."""
        self._promote(now)
        keys = self._urgent
        if self._others:
            self._taken = (self._taken + 1) % SLOW_SHARE
            if not self._urgent or self._taken == 0:
                keys = self._others
        taken = keys.take()
        if taken is None:
            return None
        key, since = taken
        if self._overdrawn.postponed(key.namespace, since):
            self._postponed[key] = now - since
        self._window.began(key.namespace)
        self._admit(key.namespace)
        self._timers.due.pop(key, None)
        self._held.pop(key, None)
        self._working[key] = max(0.0, now - since)
        return key

    def done(self, key: Key, now: float, cost: float = 0.0) -> None:
        """The work on `key` is over, and has cost `cost` seconds of computing; what was added meanwhile becomes due."""
        self._working.pop(key, None)
        self._postponed.pop(key, None)
        self._window.ended(key.namespace, cost)
        self._budget.spent(key.namespace, now, cost)
        if (until := self._budget.first(key.namespace, now)) > now:
            self._overdrawn.put(key.namespace, until)
        self._admit(key.namespace)
        if key in self._discarded:
            self._discarded.discard(key)
            self._timers.due.pop(key, None)
            self._failures.pop(key, None)
            self._unanswered.discard(key)
            self._held.pop(key, None)
            return
        self._pace.worked(key, now, cost, self._failures.get(key, 0))
        if self._dirty.pop(key, None) is not None:
            self.add(key, now)

    def waited(self, key: Key) -> float:
        """For how long (seconds) a key that is being worked on had been due before it was taken."""
        return self._working.get(key, 0.0)

    def postponed(self, key: Key) -> float:
        """For how long (seconds) a key that is being worked on had been due, if its namespace was over budget
        meanwhile; else 0."""
        return self._postponed.get(key, 0.0)

    def working(self, condition: Callable[[Key], bool]) -> bool:
        """Whether a key that fulfils `condition` is being worked on."""
        return any(condition(key) for key in self._working)

    def next_due(self) -> float | None:
        """When the next delayed key, or a namespace that is over budget, becomes due; None when there is none."""
        times = (self._timers.next(), self._overdrawn.next())
        return min((one for one in times if one is not None), default=None)

    def depth(self, now: float) -> int:
        """How many keys are due and wait for a worker. Those of a namespace that is over budget wait for that."""
        self._promote(now)
        return len(self._urgent) + len(self._others)

    def waiting_for_budget(self, now: float) -> int:
        """How many keys are due and wait because their namespace is over budget."""
        self._promote(now)
        lines = (self._urgent, self._others)
        return sum(line.waiting(namespace) for line in lines for namespace in self._overdrawn)

    def oldest_age(self, now: float) -> float:
        """For how long (seconds) the key that waits longest for a worker has been due; 0 when none waits."""
        self._promote(now)
        times = [one for line in (self._urgent, self._others) if (one := line.oldest()) is not None]
        return max(0.0, now - min(times, default=now))

    def _admit(self, namespace: str) -> None:
        """Let the namespace's keys be taken, or wait."""
        waits = namespace in self._overdrawn or self._window.is_full(namespace)
        for line in (self._urgent, self._others):
            if waits:
                line.hold(namespace)
            else:
                line.release(namespace)

    def _put(self, key: Key, since: float, urgent: bool) -> None:
        if key in self._urgent:
            return
        if urgent:
            self._urgent.put(key, self._others.pop(key, since))
        else:
            self._others.put(key, since)

    def _allowed(self, key: Key, when: float) -> float:
        """The first time from `when` on at which `key` may be handed out."""
        return max(self._held.get(key, when), self._pace.first(key, when))

    def _add_later(self, key: Key, due: float) -> None:
        if key not in self._urgent:  # one that is not urgent becomes so then
            self._timers.add(key, due)

    def _promote(self, now: float) -> None:
        """Make those delayed keys due whose time has come, and let namespaces go that are within budget again."""
        while (namespace := self._overdrawn.pop(now)) is not None:
            self._admit(namespace)
        while (timer := self._timers.pop(now)) is not None:
            key, due = timer
            if key in self._working:
                self._dirty.setdefault(key, due)
            elif (allowed := self._allowed(key, due)) > due:
                self._timers.add(key, allowed)
            else:
                self._held.pop(key, None)
                self._put(key, due, urgent=True)
