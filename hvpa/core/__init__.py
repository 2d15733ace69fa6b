"""The decision: `observe(objects, now, settings) -> Observation` and `decide(Observation) -> Decision`.

Both are pure: this package reads no clock, does no I/O, uses no asyncio and writes no log. The operator, `explain` and
the simulator call the same two functions.
"""

from hvpa.core.deciding import decide
from hvpa.core.model import Decision, Objects, Observation, Settings
from hvpa.core.observing import observe

__all__ = ["Decision", "Objects", "Observation", "Settings", "decide", "observe"]
