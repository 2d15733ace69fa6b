"""The decision: `observe(objects, now, settings) -> Observation` and `decide(Observation) -> Decision`.

Pure: nothing in this room reads a clock, does I/O, knows asyncio or logs. The operator, `explain` and the simulator
call the same two functions.
"""

from hvpa.core.deciding import decide
from hvpa.core.model import Decision, Objects, Observation, Settings
from hvpa.core.observing import observe

__all__ = ["Decision", "Objects", "Observation", "Settings", "decide", "observe"]
