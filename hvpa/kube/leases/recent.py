"""Which Hvpas changed lately: what one who takes over looks at first, as its predecessor may not have come to it."""

from __future__ import annotations

from collections import OrderedDict

from hvpa.kube.leases.lease import Monotonic
from hvpa.reconcile.ports import Key

MOST = 1000
"""Hvpas that are remembered; of more, those that changed last."""


class Recent:
    """The Hvpas that changed within the last `seconds`."""

    def __init__(self, seconds: float, monotonic: Monotonic, most: int = MOST) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._most = most
        self._times: OrderedDict[Key, float] = OrderedDict()

    def note(self, key: Key) -> None:
        """This Hvpa, or something that it depends on, has changed."""
        self._times[key] = self._monotonic()
        self._times.move_to_end(key)
        if len(self._times) > self._most:
            self._times.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        self._times.clear()

    def latest(self) -> list[Key]:
        """Them, the one that changed last at the end."""
        oldest = self._monotonic() - self._seconds
        while self._times and next(iter(self._times.values())) < oldest:
            self._times.popitem(last=False)
        return list(self._times)
