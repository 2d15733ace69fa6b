"""The work queue: which Hvpas are due, which are being worked on, and how long the others wait.

A plain state machine: every method takes the current time `now` (seconds of any monotonic clock), and no method waits.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hvpa.reconcile.fair import Overdrawn, TimeBudget, WaitingLine, Window
from hvpa.reconcile.ports import Key

MAX_EXPONENT = 40
"""After this many failures, the back-off is at its cap for any reasonable base. Keeps 2**n small."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off with full jitter: the n-th delay is uniform in (0, min(cap, base * 2**n)], in seconds.

    Source of full jitter: "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
    """

    base: float
    cap: float

    def delay(self, failures: int, rng: random.Random) -> float:
        """Returns the delay after this number of failures in a row (at least one)."""
        ceiling = min(self.cap, self.base * 2.0 ** min(failures, MAX_EXPONENT))
        return ceiling * (1.0 - rng.random())


FAILURE = Backoff(base=0.25, cap=300.0)
"""Back-off after a failed write: up to 5 minutes (controller-runtime's default cap is 1000 s)."""
PROBES = 5.0
"""Total retries per second, over all Hvpas, while the API server does not respond or fails."""
SHORTEST_CAP = 10.0
"""Smallest cap in seconds of that back-off, if few Hvpas wait."""
RELEASED = 100.0
"""Retries per second once a write succeeds again. Reconciling this number of Hvpas takes half a second."""
CONFLICT = Backoff(base=0.005, cap=5.0)
"""Back-off after a conflict, which is nearly immediate (client-go's first delay is 5 ms). The watch event adds the key
again anyway."""
SLOW_SHARE = 4
"""If urgent and other keys wait, every fourth key taken is not urgent."""
SPACING = 0.1
"""Seconds between reconciles of an Hvpa under constant change. The delay does not matter, because HPAs sync every 15
s."""
BURST = 5
"""Number of reconciles of an Hvpa that may follow each other without spacing: a step and its consequences."""
FAILING_SPACING = 1.0
"""Upper limit in seconds to which SPACING grows while writes fail or conflict, doubling with each failure in a row.
Changes still add the Hvpa before its back-off ends, because they may remove the cause."""
COST_SHARE = 10.0
"""Divisor: an Hvpa may use at most one tenth of the operator's computing time."""
SMALL = 64
"""Heaps with up to this number of timers are not cleaned."""


class Pace:
    """Spaces the work on each key by the generic cell rate algorithm (ITU-T I.371). Each reconcile advances the key's
    theoretical time by its interval. The next reconcile may begin (BURST - 1) * SPACING before that time."""

    def __init__(self) -> None:
        self._theoretical: dict[Key, float] = {}
        self._clean_at = 1024

    def first(self, key: Key, now: float) -> float:
        """Returns the earliest time at which `key` may be worked on; at least `now`."""
        return max(now, self._theoretical.get(key, 0.0) - (BURST - 1) * SPACING)

    def worked(self, key: Key, now: float, cost: float, failures: int) -> None:
        """Records work on `key` that used `cost` seconds of computing time, after `failures` failures in a row."""
        interval = min(FAILING_SPACING, SPACING * 2.0 ** min(failures, 10))
        start = max(now, self._theoretical.get(key, now))
        self._theoretical[key] = start + max(interval, cost * COST_SHARE)
        if len(self._theoretical) > self._clean_at:
            self._theoretical = {paced: time for paced, time in self._theoretical.items() if time > now}
            self._clean_at = max(1024, 2 * len(self._theoretical))


class Timers:
    """One due time per key. Outdated entries of the heap are skipped, and removed if they are most of the heap."""

    def __init__(self) -> None:
        self.due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []

    def add(self, key: Key, due: float) -> None:
        """Makes `key` due at `due`, unless it is due earlier."""
        if due >= self.due.get(key, float("inf")):
            return
        self.due[key] = due
        heapq.heappush(self._heap, (due, key))
        if len(self._heap) > SMALL and len(self._heap) > 4 * len(self.due):
            self._heap = [entry for entry in self._heap if self.due.get(entry[1]) == entry[0]]
            heapq.heapify(self._heap)

    def next(self) -> float | None:
        """Returns the earliest due time; None if there is none."""
        while self._heap and self.due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> tuple[Key, float] | None:
        """Removes the earliest key that is due by `now`. Returns it with its due time; None if no key is due."""
        due = self.next()
        if due is None or due > now:
            return None
        key = heapq.heappop(self._heap)[1]
        del self.due[key]
        return key, due


class WorkQueue:
    """Keys without duplicates. A key that is being worked on is not handed out again before that work is done.

    Keys of changed Hvpas are urgent. Keys of a pass over everything (after a start, or when a shard was taken over) are
    not. For both, namespaces take turns (`hvpa.reconcile.fair`), and a namespace's keys are first in, first out. Of
    several delayed adds the earliest applies. Taking a key removes its delayed adds, because the reconcile sets a new
    time. Keys that come too often are spaced (`Pace`).
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._urgent, self._others = WaitingLine(), WaitingLine()
        """Keys that are due, with the time at which they became due."""
        self._budget, self._overdrawn, self._window = TimeBudget(), Overdrawn(), Window()
        self._postponed: dict[Key, float] = {}
        """Keys that are being worked on and had waited for their namespace's budget, with the waiting time in
        seconds."""
        self._taken = 0
        self._working: dict[Key, float] = {}
        """Keys that are being worked on, with the time in seconds that they had waited."""
        self._dirty: dict[Key, float] = {}
        """Keys that were added while they were being worked on, with the time of the first add."""
        self._discarded: set[Key] = set()
        """Keys that were discarded while they were being worked on."""
        self._timers = Timers()
        self._failures: dict[Key, int] = {}
        self._unanswered: set[Key] = set()
        """Keys whose writes failed because the API server did not respond or failed itself."""
        self._held: dict[Key, float] = {}
        self._pace = Pace()

    def add(self, key: Key, now: float, urgent: bool = True) -> None:
        """Makes `key` due at once, or as soon as its hold, the work on it and its spacing permit."""
        self._discarded.discard(key)
        if key in self._working:
            self._timers.due.pop(key, None)
            self._dirty.setdefault(key, now)
        elif (allowed := self._allowed(key, now)) > now:
            self._add_later(key, allowed)
        else:
            self._timers.due.pop(key, None)
            self._add_key(key, now, urgent)

    def add_at(self, key: Key, due: float, now: float) -> None:
        """Makes `key` due at `due`, as urgent, unless it is due earlier. Ignores a key that was discarded while it was
        being worked on."""
        if key in self._discarded:
            return
        if due <= now:
            self.add(key, now)
        else:
            self._add_later(key, due)

    def retry(self, key: Key, backoff: Backoff, now: float) -> float:
        """Adds `key` again after the next back-off delay. Returns the delay in seconds."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = backoff.delay(failures, self._rng)
        self.add_at(key, now + delay, now)
        return delay

    def retry_unanswered(self, key: Key, now: float) -> float:
        """Adds `key` again after a write without a response or with a server error. Returns the back-off delay in
        seconds. The cap grows with the number of such keys, so that together they make PROBES retries per second."""
        self._unanswered.add(key)
        cap = max(SHORTEST_CAP, 2.0 * len(self._unanswered) / PROBES)  # the mean delay is half of the cap
        cap = min(FAILURE.cap, cap)
        return self.retry(key, Backoff(FAILURE.base, cap), now)

    def hold(self, key: Key, until: float, now: float) -> None:
        """Keeps `key`, which is being worked on, from being handed out before `until`, even if it is added again: the
        server required a wait."""
        self._held[key] = until
        self._timers.due.pop(key, None)
        self._dirty.pop(key, None)
        self.add_at(key, until, now)

    def succeeded(self, key: Key, now: float) -> None:
        """Resets the back-off of `key`. If the key had waited for the API server, the server responds again, and the
        other waiting keys become due soon."""
        self._failures.pop(key, None)
        if key not in self._unanswered:
            return
        others, self._unanswered = self._unanswered - {key}, set()
        spread = len(others) / RELEASED
        for other in others:
            if other in self._timers.due:
                self._timers.add(other, now + self._rng.random() * spread)

    def discard(self, condition: Callable[[Key], bool]) -> None:
        """Removes all state of the keys that fulfil `condition`. Work on such a key continues to its end; its state is
        removed then."""
        self._urgent.discard(condition)
        self._others.discard(condition)
        tables: tuple[dict[Key, Any], ...] = (self._dirty, self._held, self._timers.due, self._failures)
        for keys in tables:
            for key in [key for key in keys if condition(key)]:
                del keys[key]
        self._unanswered = {key for key in self._unanswered if not condition(key)}
        self._discarded.update(key for key in self._working if condition(key))

    def take(self, now: float) -> Key | None:
        """Takes the next key, which then counts as being worked on; None if no key is due. Namespaces take turns. In a
        namespace, the key that has been due longest comes first."""
        self._release_due_keys(now)
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
        self._admit_namespace(key.namespace)
        self._timers.due.pop(key, None)
        self._held.pop(key, None)
        self._working[key] = max(0.0, now - since)
        return key

    def done(self, key: Key, now: float, cost: float = 0.0) -> None:
        """Ends the work on `key`, which used `cost` seconds of computing time. If the key was added during the work, it
        becomes due."""
        self._working.pop(key, None)
        self._postponed.pop(key, None)
        self._window.ended(key.namespace, cost)
        self._budget.spent(key.namespace, now, cost)
        if (until := self._budget.first(key.namespace, now)) > now:
            self._overdrawn.put(key.namespace, until)
        self._admit_namespace(key.namespace)
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
        """Returns for how many seconds a key that is being worked on had been due before it was taken."""
        return self._working.get(key, 0.0)

    def postponed(self, key: Key) -> float:
        """Returns for how many seconds a key that is being worked on had been due, if its namespace was over budget in
        that time; otherwise 0."""
        return self._postponed.get(key, 0.0)

    def working(self, condition: Callable[[Key], bool]) -> bool:
        """Whether a key that fulfils `condition` is being worked on."""
        return any(condition(key) for key in self._working)

    def next_due(self) -> float | None:
        """Returns when the next delayed key is due, or the next namespace may be within budget again; None if there is
        none."""
        times = (self._timers.next(), self._overdrawn.next())
        return min((time for time in times if time is not None), default=None)

    def depth(self, now: float) -> int:
        """Returns the number of keys that are due and wait for a worker, without keys of namespaces that are over
        budget."""
        self._release_due_keys(now)
        return len(self._urgent) + len(self._others)

    def waiting_for_budget(self, now: float) -> int:
        """Returns the number of keys that are due and wait because their namespace is over budget."""
        self._release_due_keys(now)
        lines = (self._urgent, self._others)
        return sum(line.waiting(namespace) for line in lines for namespace in self._overdrawn)

    def oldest_age(self, now: float) -> float:
        """Returns for how many seconds the key that waits longest for a worker has been due; 0 if none waits."""
        self._release_due_keys(now)
        times = [since for line in (self._urgent, self._others) if (since := line.oldest()) is not None]
        return max(0.0, now - min(times, default=now))

    def _admit_namespace(self, namespace: str) -> None:
        """Releases the namespace's keys, or puts them on hold."""
        waits = namespace in self._overdrawn or self._window.is_full(namespace)
        for line in (self._urgent, self._others):
            if waits:
                line.hold(namespace)
            else:
                line.release(namespace)

    def _add_key(self, key: Key, since: float, urgent: bool) -> None:
        if key in self._urgent:
            return
        if urgent:
            self._urgent.put(key, self._others.pop(key, since))
        else:
            self._others.put(key, since)

    def _allowed(self, key: Key, when: float) -> float:
        """Returns the earliest time from `when` on at which `key` may be handed out."""
        return max(self._held.get(key, when), self._pace.first(key, when))

    def _add_later(self, key: Key, due: float) -> None:
        if key not in self._urgent:  # a key that is not urgent becomes urgent then
            self._timers.add(key, due)

    def _release_due_keys(self, now: float) -> None:
        """Makes delayed keys due whose time has come, and releases namespaces that are within budget again."""
        while (namespace := self._overdrawn.pop(now)) is not None:
            self._admit_namespace(namespace)
        while (timer := self._timers.pop(now)) is not None:
            key, due = timer
            if key in self._working:
                self._dirty.setdefault(key, due)
            elif (allowed := self._allowed(key, due)) > due:
                self._timers.add(key, allowed)
            else:
                self._held.pop(key, None)
                self._add_key(key, due, urgent=True)
