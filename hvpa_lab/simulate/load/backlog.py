"""The backlog: work that no pod serves waits and is retried, up to a maximum."""

from __future__ import annotations

from hvpa_lab.simulate.model import Tick


class Backlog:
    """The work that is `waiting`, in load × seconds.

    `longest` is the maximum backlog, in seconds of the current load; with 0, work that is not served is lost.
    `per_unit` is the CPU in millicores for a unit of the load.
    """

    def __init__(self, longest: float, per_unit: float) -> None:
        self._longest = longest
        self._per_unit = per_unit
        self.waiting = 0.0
        self._offered = 0.0

    def offer(self, load: float, length: float) -> float:
        """The load of a step of `length` seconds plus the backlog: 30 waiting requests add 2 per second for 15 s."""
        self._offered = self.waiting / length
        return load + self._offered

    def step(self, tick: Tick, load: float, length: float) -> Tick:
        """The step's `Tick`, corrected for the backlog: unserved work waits, and only the work beyond the maximum is
        unmet. The demand does not count retried work again."""
        if not self._longest or not self._per_unit:
            return tick
        undone = tick.unmet / self._per_unit * length
        self.waiting = min(undone, self._longest * load)
        lost = (undone - self.waiting) / length * self._per_unit
        return tick._replace(unmet=lost, demand=tick.demand - self._offered * self._per_unit)
