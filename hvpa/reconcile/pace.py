"""How often one Hvpa may be worked on, whatever happens to it: one that changes, fails or computes all the time must
not starve the others."""

from __future__ import annotations

from hvpa.reconcile.ports import Key

SPACING = 0.1
"""Seconds between reconciles of one Hvpa under constant change: nobody sees the difference, as HPAs look every 15 s."""
BURST = 5
"""So many reconciles of one Hvpa may follow each other at once: a step and its aftermath."""
FAILING_SPACING = 1.0
"""Seconds; what SPACING grows to, doubling with each failure in a row, while writes fail or conflict. Changes still
bring an Hvpa back before its back-off is over: they may be what mends it."""
COST_SHARE = 10.0
"""An Hvpa may use one part in so many of the operator's computing time."""


class Pace:
    """Spaces the work on each key by the generic cell rate algorithm (ITU-T I.371): each reconcile moves the key's
    theoretical time on by its interval, and the next one may begin (BURST - 1) * SPACING before that."""

    def __init__(self) -> None:
        self._theoretical: dict[Key, float] = {}
        self._clean_at = 1024

    def __len__(self) -> int:
        """How many keys are remembered: those that were worked on lately, and some that were before."""
        return len(self._theoretical)

    def next(self, key: Key, now: float) -> float:
        """When `key` may be worked on; not before `now`."""
        theoretical = self._theoretical.get(key)
        return now if theoretical is None else max(now, theoretical - (BURST - 1) * SPACING)

    def worked(self, key: Key, now: float, cost: float, failures: int) -> None:
        """`key` was worked on: with `cost` seconds of computing, and before with `failures` failures in a row."""
        interval = min(FAILING_SPACING, SPACING * 2.0 ** min(failures, 10))
        start = max(now, self._theoretical.get(key, now))
        self._theoretical[key] = start + max(interval, cost * COST_SHARE)
        if len(self._theoretical) > self._clean_at:
            self._theoretical = {one: time for one, time in self._theoretical.items() if time > now}
            self._clean_at = max(1024, 2 * len(self._theoretical))
