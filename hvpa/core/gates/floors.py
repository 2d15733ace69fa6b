"""Scheduled floors: how many replicas there are at least, until when, and what comes next (`spec.hpa.schedule`,
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
    """The floor at an instant: how many replicas there are at least (0: there is none), by which `entry` of
    `spec.hpa.schedule` (1 is the first), and up to when that holds at least (None: for ever)."""

    replicas: int
    entry: int | None
    until: dt.datetime | None

    def text(self) -> str:
        """Until when there is a floor, and by which entry."""
        assert self.until is not None
        return f"until {readable_timestamp(self.until)}, by entry {self.entry} of spec.hpa.schedule"


def floor_state(spec: HvpaSpec, now: dt.datetime) -> FloorState:
    """The largest of all floors that have begun and not ended."""
    entries = spec.hpa.schedule
    ends: dict[int, dt.datetime] = {}
    begins: dict[int, dt.datetime] = {}
    for entry, one in enumerate(entries, 1):
        previous, following = starts(one, now)
        if previous is not None and now < (end := after(previous, one.duration)):
            # One that begins again before it ends goes on.
            begin = following if following is not None and following <= end else previous
            ends[entry] = after(begin, one.duration)
        elif following is not None:
            begins[entry] = following
    floor_of = {entry: one.min_replicas for entry, one in enumerate(entries, 1)}
    replicas = max((floor_of[entry] for entry in ends), default=0)
    # What begins below the floor changes nothing, nor does what ends below it.
    changes = [start for entry, start in begins.items() if floor_of[entry] > replicas]
    last = max((entry for entry in ends if floor_of[entry] == replicas), key=ends.__getitem__, default=None)
    if last is not None:
        changes.append(ends[last])
    return FloorState(replicas, last, min(changes, default=None))


def next_floor(spec: HvpaSpec, state: FloorState) -> tuple[dt.datetime, FloorState] | None:
    """The floor that follows, and from when; None where there is none."""
    while (begin := state.until) is not None:
        state = floor_state(spec, begin)
        if state.replicas:
            return begin, state
    return None
