"""Scheduled floors: the minimum replica count now, until when it holds, and the next floor (`spec.hpa.schedule`,
docs/decisions/0033)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.gates.windows import starts
from hvpa.core.values.clock import after


@dataclass(frozen=True, slots=True)
class FloorState:
    """The floor at an instant."""

    replicas: int
    """Minimum replica count; 0 without a floor."""
    entry: int | None
    """Entry of `spec.hpa.schedule` that sets it, counted from 1."""
    until: dt.datetime | None
    """Until when this floor holds at least; None: forever."""

    def text(self) -> str:
        """Describes until when the floor holds, and which entry sets it."""
        assert self.until is not None
        return f"until {readable_timestamp(self.until)}, by entry {self.entry} of spec.hpa.schedule"


def floor_state(spec: HvpaSpec, now: dt.datetime) -> FloorState:
    """Returns the largest of all floors that are active now."""
    entries = spec.hpa.schedule
    ends: dict[int, dt.datetime] = {}
    begins: dict[int, dt.datetime] = {}
    for entry, floor in enumerate(entries, 1):
        previous, following = starts(floor, now)
        if previous is not None and now < (end := after(previous, floor.duration)):
            # A floor that starts again before it ends continues.
            begin = following if following is not None and following <= end else previous
            ends[entry] = after(begin, floor.duration)
        elif following is not None:
            begins[entry] = following
    floor_of = {entry: floor.min_replicas for entry, floor in enumerate(entries, 1)}
    replicas = max((floor_of[entry] for entry in ends), default=0)
    # A floor below the current floor changes nothing when it starts or ends.
    changes = [start for entry, start in begins.items() if floor_of[entry] > replicas]
    last = max((entry for entry in ends if floor_of[entry] == replicas), key=ends.__getitem__, default=None)
    if last is not None:
        changes.append(ends[last])
    return FloorState(replicas, last, min(changes, default=None))


def next_floor(spec: HvpaSpec, state: FloorState) -> tuple[dt.datetime, FloorState] | None:
    """Returns the next floor and its start; None if there is none."""
    while (begin := state.until) is not None:
        state = floor_state(spec, begin)
        if state.replicas:
            return begin, state
    return None
