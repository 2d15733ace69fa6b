"""Requests that wait: what no pod serves is tried again, until too much waits."""

from __future__ import annotations

from hvpa.simulate.model import Tick


class Backlog:
    """The work that is `waiting`, in load × seconds. `longest` is how much may wait, in seconds' worth of the load at
    the time; `per_unit` the CPU in millicores that a unit of the load takes. With 0 seconds, what is not served is
    lost."""

    def __init__(self, longest: float, per_unit: float) -> None:
        self._longest = longest
        self._per_unit = per_unit
        self.waiting = 0.0
        self._offered = 0.0

    def offer(self, load: float, length: float) -> float:
        """The load of a step of so many seconds, with what waits on top: 30 that wait are 2 more for 15 seconds."""
        self._offered = self.waiting / length
        return load + self._offered

    def step(self, tick: Tick, load: float, length: float) -> Tick:
        """What the pods did with what was offered. What they left undone waits, and only what is beyond the bound is
        unmet; what waits is no demand a second time."""
        if not self._longest or not self._per_unit:
            return tick
        undone = tick.unmet / self._per_unit * length
        self.waiting = min(undone, self._longest * load)
        lost = (undone - self.waiting) / length * self._per_unit
        return tick._replace(unmet=lost, demand=tick.demand - self._offered * self._per_unit)
