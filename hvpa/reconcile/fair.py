"""Fair shares of the operator's computing time. Each namespace has its own line of keys, and the lines take turns. A
namespace with expensive decisions waits without delaying the others.

Plain state, like the queue: every method takes the current time, in seconds of any monotonic clock.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterator

from hvpa.reconcile.ports import Key

USUAL = 0.01
"""Seconds of computing time that every reconcile may use: twice the cost of a step of an Hvpa (docs/performance.md).
Time beyond it counts against the namespace's budget."""
NAMESPACE_SHARE = 5.0
"""Divisor of the operator's time: a namespace may use at most one fifth of it beyond USUAL."""
ALLOWANCE = 0.25
"""Seconds beyond USUAL that a namespace may use at once: enough for a few large Hvpas that are read for the first time
after a start."""

MOST_REMEMBERED = 1024
"""Maximum number of namespaces for which the last time over budget and the window size are stored."""

FIRST_WINDOW = 4
"""Keys of a namespace that may be worked on at once, before its costs are known."""
LARGEST_WINDOW = 64
"""More than any useful number of workers (`--max-in-flight` is 16 by default)."""


class TimeBudget:
    """The computing time of namespaces, by the generic cell rate algorithm (like the queue's `Pace` for keys)."""

    def __init__(self) -> None:
        self._theoretical: dict[str, float] = {}
        self._clean_at = 1024

    def first(self, namespace: str, now: float) -> float:
        """Returns the earliest time at which a key of this namespace may be worked on; at least `now`."""
        return max(now, self._theoretical.get(namespace, 0.0) - ALLOWANCE * NAMESPACE_SHARE)

    def spent(self, namespace: str, now: float, cost: float) -> None:
        """Records that a reconcile used `cost` seconds of computing time. Example: for 60 ms, 50 ms are beyond USUAL;
        once the allowance is used up, the namespace waits for 250 ms."""
        if cost <= USUAL:
            return
        start = max(now, self._theoretical.get(namespace, now))
        self._theoretical[namespace] = start + (cost - USUAL) * NAMESPACE_SHARE
        if len(self._theoretical) > self._clean_at:
            self._theoretical = {name: time for name, time in self._theoretical.items() if time > now}
            self._clean_at = max(1024, 2 * len(self._theoretical))


class Window:
    """Limits how many keys of each namespace may be worked on at once. The cost of a reconcile is known only at its
    end, so a namespace starts with a small window. Each reconcile that costs at most USUAL increases it by one. A more
    expensive reconcile resets it to one (like the congestion window of TCP)."""

    def __init__(self) -> None:
        self._size: dict[str, int] = {}
        self._working: dict[str, int] = {}

    def began(self, namespace: str) -> None:
        """Records that work on a key of this namespace has begun."""
        self._working[namespace] = self._working.get(namespace, 0) + 1

    def ended(self, namespace: str, cost: float) -> None:
        """Records that work on a key has ended, and its cost in seconds of computing time."""
        left = self._working.pop(namespace, 1) - 1
        if left:
            self._working[namespace] = left
        if len(self._size) >= MOST_REMEMBERED:
            self._size.clear()  # windows grow again within a few reconciles
        size = self._size.get(namespace, FIRST_WINDOW)
        self._size[namespace] = min(size + 1, LARGEST_WINDOW) if cost <= USUAL else 1

    def is_full(self, namespace: str) -> bool:
        """Whether no further key of this namespace may be worked on now."""
        return self._working.get(namespace, 0) >= self._size.get(namespace, FIRST_WINDOW)


class WaitingLine:
    """Keys and the time since which they wait. A namespace's keys are first in, first out, and namespaces take
    turns."""

    def __init__(self) -> None:
        self._keys: dict[str, OrderedDict[Key, float]] = {}
        self._turns: OrderedDict[str, None] = OrderedDict()
        """Namespaces with keys that may be taken, in order of their turns."""
        self._held: dict[str, None] = {}
        self._free = 0
        """Number of keys that may be taken."""

    def __contains__(self, key: Key) -> bool:
        return key in self._keys.get(key.namespace, ())

    def __len__(self) -> int:
        """Returns the number of keys that may be taken. If a namespace's window is nearly full, fewer of its keys may
        be available."""
        return self._free

    def __iter__(self) -> Iterator[Key]:
        """Yields all keys, including those of namespaces on hold."""
        return (key for keys in self._keys.values() for key in keys)

    def waiting(self, namespace: str) -> int:
        """Returns the number of keys of this namespace."""
        return len(self._keys.get(namespace, ()))

    def put(self, key: Key, since: float) -> None:
        """Adds a key at the end of its namespace's line. A key that is already there keeps its place."""
        keys = self._keys.get(key.namespace)
        if keys is None:
            keys = self._keys[key.namespace] = OrderedDict()
            if key.namespace not in self._held:
                self._turns[key.namespace] = None
        if key not in keys:
            keys[key] = since
            self._free += key.namespace not in self._held

    def pop(self, key: Key, default: float) -> float:
        """Removes a key at any position. Returns the time since which it waited, or `default` if it is not there."""
        keys = self._keys.get(key.namespace)
        if keys is None or key not in keys:
            return default
        since = keys.pop(key)
        self._free -= key.namespace not in self._held
        if not keys:
            self._drop_namespace(key.namespace)
        return since

    def take(self) -> tuple[Key, float] | None:
        """Removes and returns the next key, with the time since which it waited; None if there is none."""
        if not self._turns:
            return None
        namespace = next(iter(self._turns))
        key = next(iter(self._keys[namespace]))
        self._turns.move_to_end(namespace)
        return key, self.pop(key, 0.0)

    def hold(self, namespace: str) -> None:
        """Puts a namespace on hold until `release`."""
        if namespace not in self._held:
            self._held[namespace] = None
            self._free -= len(self._keys.get(namespace, ()))
            self._turns.pop(namespace, None)

    def release(self, namespace: str) -> None:
        """Lets a namespace take its turns again."""
        if namespace in self._held:
            del self._held[namespace]
            self._free += len(self._keys.get(namespace, ()))
            if namespace in self._keys:
                self._turns[namespace] = None

    def oldest(self) -> float | None:
        """Returns the time since which the oldest available key waits; None if there is none. A namespace's keys are in
        order of time, except keys that waited in another line before."""
        return min((min(self._keys[namespace].values()) for namespace in self._turns), default=None)

    def discard(self, condition: Callable[[Key], bool]) -> None:
        """Removes all keys that fulfil `condition`."""
        for key in [key for key in self if condition(key)]:
            self.pop(key, 0.0)

    def _drop_namespace(self, namespace: str) -> None:
        del self._keys[namespace]
        self._turns.pop(namespace, None)


class Overdrawn:
    """Namespaces that are over budget, each with the time at which that ends, and the time of each namespace's last
    release."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._let_go: OrderedDict[str, float] = OrderedDict()

    def put(self, namespace: str, until: float) -> None:
        """Records until when a namespace is over budget."""
        self._until[namespace] = until
        heapq.heappush(self._heap, (until, namespace))

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._until

    def __iter__(self) -> Iterator[str]:
        return iter(self._until)

    def next(self) -> float | None:
        """Returns the earliest time at which a namespace may be within budget again; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> str | None:
        """Removes and returns a namespace whose time is over; None if there is none."""
        while self._heap and self._heap[0][0] <= now:
            until, namespace = heapq.heappop(self._heap)
            if self._until.get(namespace) != until:
                continue  # it has used more time since
            del self._until[namespace]
            self._let_go[namespace] = now
            self._let_go.move_to_end(namespace)
            if len(self._let_go) > MOST_REMEMBERED:
                self._let_go.popitem(last=False)
            return namespace
        return None

    def postponed(self, namespace: str, since: float) -> bool:
        """Whether a key that became due at `since` had to wait for its namespace."""
        return self._let_go.get(namespace, since) > since
