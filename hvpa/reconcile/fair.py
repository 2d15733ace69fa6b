"""Fair shares of the operator's computing time: keys wait in one line for each namespace, the lines take turns, and a
namespace whose decisions are expensive waits by itself.

Plain state, like the queue: every method takes the current time, in seconds of any monotonic clock.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterator

from hvpa.reconcile.ports import Key

USUAL = 0.01
"""Seconds of computing that every reconcile may take: twice what a step of an Hvpa costs (docs/performance.md). What it
takes beyond that, its namespace pays for."""
NAMESPACE_SHARE = 5.0
"""What a namespace's reconciles take beyond USUAL may be one part in so many of the operator's time."""
ALLOWANCE = 0.25
"""Seconds beyond USUAL that a namespace may take at once: a few large Hvpas, read for the first time after a start."""

MOST_REMEMBERED = 1024
"""Namespaces of which it is remembered when they were last over budget, and how many of their keys may be worked on at
once."""

FIRST_WINDOW = 4
"""Keys of a namespace that may be worked on at once, before anything is known of it."""
LARGEST_WINDOW = 64
"""More than any number of workers that is of use (`--max-in-flight` is 16 by default)."""


class Budget:
    """The computing time of namespaces, by the generic cell rate algorithm (as `Pace` of the queue, for keys)."""

    def __init__(self) -> None:
        self._theoretical: dict[str, float] = {}
        self._clean_at = 1024

    def first(self, namespace: str, now: float) -> float:
        """When a key of this namespace may be worked on; not before `now`."""
        return max(now, self._theoretical.get(namespace, 0.0) - ALLOWANCE * NAMESPACE_SHARE)

    def spent(self, namespace: str, now: float, cost: float) -> None:
        """A reconcile has taken `cost` seconds of computing. Example: of 60 ms, 50 ms are beyond USUAL, and keep the
        namespace, once its allowance is used up, waiting for 250 ms."""
        if cost <= USUAL:
            return
        start = max(now, self._theoretical.get(namespace, now))
        self._theoretical[namespace] = start + (cost - USUAL) * NAMESPACE_SHARE
        if len(self._theoretical) > self._clean_at:
            self._theoretical = {one: time for one, time in self._theoretical.items() if time > now}
            self._clean_at = max(1024, 2 * len(self._theoretical))


class Window:
    """How many keys of each namespace may be worked on at once. What a reconcile costs is known when it has ended, so
    a namespace begins with few; each reconcile that costs no more than USUAL adds one, and a more expensive one leaves
    one (as the congestion window of TCP)."""

    def __init__(self) -> None:
        self._size: dict[str, int] = {}
        self._working: dict[str, int] = {}

    def began(self, namespace: str) -> None:
        """A key of this namespace is worked on."""
        self._working[namespace] = self._working.get(namespace, 0) + 1

    def ended(self, namespace: str, cost: float) -> None:
        """The work on a key has ended, and has cost so many seconds of computing."""
        left = self._working.pop(namespace, 1) - 1
        if left:
            self._working[namespace] = left
        if len(self._size) >= MOST_REMEMBERED:
            self._size.clear()  # they grow again within some reconciles
        size = self._size.get(namespace, FIRST_WINDOW)
        self._size[namespace] = min(size + 1, LARGEST_WINDOW) if cost <= USUAL else 1

    def is_full(self, namespace: str) -> bool:
        """Whether no further key of this namespace may be worked on now."""
        return self._working.get(namespace, 0) >= self._size.get(namespace, FIRST_WINDOW)


class Line:
    """Keys with the time since which they wait: first in, first out within a namespace, and namespaces take turns."""

    def __init__(self) -> None:
        self._keys: dict[str, OrderedDict[Key, float]] = {}
        self._turns: OrderedDict[str, None] = OrderedDict()
        """Namespaces with keys that may be taken, the next one first."""
        self._held: dict[str, None] = {}
        self._free = 0
        """Keys that may be taken."""

    def __contains__(self, key: Key) -> bool:
        return key in self._keys.get(key.namespace, ())

    def __len__(self) -> int:
        """How many keys may be taken (of a namespace whose window is nearly full, maybe not all of them)."""
        return self._free

    def __iter__(self) -> Iterator[Key]:
        """All keys, those of namespaces that are held included."""
        return (key for keys in self._keys.values() for key in keys)

    def waiting(self, namespace: str) -> int:
        """How many keys of this namespace there are."""
        return len(self._keys.get(namespace, ()))

    def put(self, key: Key, since: float) -> None:
        """Add a key, at the end of its namespace's line; one that is there stays where it is."""
        keys = self._keys.get(key.namespace)
        if keys is None:
            keys = self._keys[key.namespace] = OrderedDict()
            if key.namespace not in self._held:
                self._turns[key.namespace] = None
        if key not in keys:
            keys[key] = since
            self._free += key.namespace not in self._held

    def pop(self, key: Key, default: float) -> float:
        """Take a key out, wherever it stands; since when it waited, or `default` if it is not there."""
        keys = self._keys.get(key.namespace)
        if keys is None or key not in keys:
            return default
        since = keys.pop(key)
        self._free -= key.namespace not in self._held
        if not keys:
            self._drop(key.namespace)
        return since

    def take(self) -> tuple[Key, float] | None:
        """Take out the key whose turn it is, with the time since which it waited; None if there is none."""
        if not self._turns:
            return None
        namespace = next(iter(self._turns))
        key = next(iter(self._keys[namespace]))
        self._turns.move_to_end(namespace)
        return key, self.pop(key, 0.0)

    def hold(self, namespace: str) -> None:
        """Let a namespace wait until `release`."""
        if namespace not in self._held:
            self._held[namespace] = None
            self._free -= len(self._keys.get(namespace, ()))
            self._turns.pop(namespace, None)

    def release(self, namespace: str) -> None:
        """Let a namespace take its turns again."""
        if namespace in self._held:
            del self._held[namespace]
            self._free += len(self._keys.get(namespace, ()))
            if namespace in self._keys:
                self._turns[namespace] = None

    def oldest(self) -> float | None:
        """Since when the first key waits that may be taken; None if there is none. Keys of a namespace are in order of
        time, but for what waited elsewhere before."""
        return min((min(self._keys[one].values()) for one in self._turns), default=None)

    def discard(self, condition: Callable[[Key], bool]) -> None:
        """Take out all keys that fulfil `condition`."""
        for key in [key for key in self if condition(key)]:
            self.pop(key, 0.0)

    def _drop(self, namespace: str) -> None:
        del self._keys[namespace]
        self._turns.pop(namespace, None)


class Overdrawn:
    """Namespaces that are over budget, until when, and when each was last let go."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._let_go: OrderedDict[str, float] = OrderedDict()

    def put(self, namespace: str, until: float) -> None:
        """Note until when a namespace is over budget."""
        self._until[namespace] = until
        heapq.heappush(self._heap, (until, namespace))

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._until

    def __iter__(self) -> Iterator[str]:
        return iter(self._until)

    def next(self) -> float | None:
        """When the next one may be over; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> str | None:
        """Take out a namespace whose time is over; None if there is none."""
        while self._heap and self._heap[0][0] <= now:
            until, namespace = heapq.heappop(self._heap)
            if self._until.get(namespace) != until:
                continue  # it has spent more since
            del self._until[namespace]
            self._let_go[namespace] = now
            self._let_go.move_to_end(namespace)
            if len(self._let_go) > MOST_REMEMBERED:
                self._let_go.popitem(last=False)
            return namespace
        return None

    def postponed(self, namespace: str, since: float) -> bool:
        """Whether a key that was due `since` then waited for its namespace."""
        return self._let_go.get(namespace, since) > since
