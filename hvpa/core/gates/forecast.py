"""The forecast (`spec.forecast`, docs/decisions/0036): the replicas needed at the same time on previous days are a
floor, if the forecast was nearly right in the last 24 hours.

A day has 96 quarters of an hour, in UTC. The value of a quarter is the median of its measurements, taken every five
minutes, so a single wrong measurement has no effect. The status stores the values for a day more than `history`. The
forecast and its error are calculated from them.
"""

from __future__ import annotations

import datetime as dt
import re
from statistics import median_low
from typing import Final, NamedTuple

from msgspec import structs

from hvpa.api.hvpa.status import ForecastRecord
from hvpa.api.hvpa.windows import Forecast
from hvpa.api.schema.fields import INT32_MAX
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import ScalableState
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.clock import Clock, after
from hvpa.core.values.memo import Basis, remembered_while
from hvpa.core.values.weight import Bounds

TICK: Final = dt.timedelta(minutes=5)
"""HVPA uses the first measurement of each tick. The forecast of a quarter starts a tick early, because pods need time
to start."""
TICKS: Final = 3
"""Ticks per quarter of an hour."""
DAY: Final = 96
"""Quarters of an hour per day."""
ALLOWED_PERCENT: Final = 20
"""Maximum error of the forecast in the last 24 hours, in percent of the needed replicas (figures:
docs/decisions/0036)."""
LEAST_JUDGED: Final = DAY // 2
"""Minimum number of quarters in the last 24 hours that were both forecast and measured."""
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_VALUES: Final = re.compile(r"(?:(?:[0-9]{1,10}|-) )*", re.ASCII)
_UNKNOWN: Final = "-"
_NEVER: Final = ForecastRecord()

MOST: Final = DAY * 8
"""Maximum number of stored quarters: `history` (up to a week) plus a day."""
LONGEST: Final = MOST * 11
"""Maximum length of the stored values in characters: counts have 32 bits, so up to ten digits."""
Values = tuple[int | None, ...]


class Outlook(NamedTuple):
    """The forecast at a tick."""

    tick: int
    """Number of five-minute ticks since 1970."""
    until: dt.datetime
    """End of the tick."""
    values: Values
    """Needed replicas in the quarters before the current one, oldest first; None: unknown."""
    samples: tuple[int, ...]
    """Measurements of the current quarter."""
    is_due: bool
    """Another measurement is due."""
    foreseen: int | None
    """Replicas that the forecast expects now; None if too few days are known."""
    judged: int
    """Quarters of the last 24 hours for which both forecast and needed replicas are known."""
    off: int
    """Error over those quarters, in percent."""

    @property
    def floor(self) -> int | None:
        """The minimum replica count; None if the forecast is not used."""
        return self.foreseen if self.judged >= LEAST_JUDGED and self.off <= ALLOWED_PERCENT else None

    @property
    def text(self) -> str:
        """Describes whether the forecast is used, or why not."""
        if self.judged < LEAST_JUDGED:
            return (
                f"not used yet: {self.judged} quarters of an hour of the last 24 hours were both forecast and measured;"
                f" at least {LEAST_JUDGED} are required"
            )
        was_off = f"in the last 24 hours it was off by {self.off} percent"
        if self.off > ALLOWED_PERCENT:
            return f"not used: {was_off}; it is used up to {ALLOWED_PERCENT} percent"
        if self.foreseen is None:
            return f"not used now: the demand at this time of day is recorded for too few days; {was_off}"
        return f"used: {was_off}; it is used up to {ALLOWED_PERCENT} percent"


def _basis(observation: ScalableState, bounds: Bounds) -> Basis:
    return Basis((observation.status.forecast, observation.spec.forecast), (bounds,))


@remembered_while(_basis)
def outlook_of(clock: Clock, observation: ScalableState, bounds: Bounds) -> Outlook:
    """Returns the forecast for now, within the HPA's `bounds` (docs/decisions/0036).

    `off` is the sum of absolute errors divided by the sum of needed replicas (weighted absolute percentage error).
    Example: forecast 4 and 6, needed 5 and 5: (1 + 1) / 10 = 20 percent.
    """
    assert observation.spec.forecast is not None
    spec, record = observation.spec.forecast, observation.status.forecast or _NEVER
    tick, until = clock.answer(_tick)
    sampled = None if record.time is None else _tick(record.time)[0][0]
    samples, values = _values_at(record, sampled, tick)
    current_index = DAY * (spec.days + 1)
    values = values[-current_index:]
    whole = (*[None] * (current_index - len(values)), *values)
    forecasts = [
        _foreseen(whole, index, spec)
        for index in {current_index, current_index + (tick + 1) // TICKS - tick // TICKS}
    ]
    foreseen = max((bounds.clamp(replicas) for replicas in forecasts if replicas is not None), default=None)
    judged = off = needed = 0
    for index in range(current_index - DAY, current_index):
        measured = whole[index]
        if measured is not None and (guess := _foreseen(whole, index, spec)) is not None:
            measured = bounds.clamp(measured)
            judged, needed, off = judged + 1, needed + measured, off + abs(bounds.clamp(guess) - measured)
    percent = ceil_div(off * 100, max(1, needed))
    return Outlook(tick, until, values, samples, sampled != tick, foreseen, judged, percent)


def raised_by_forecast(clock: Clock, observation: ScalableState, bounds: Bounds) -> Bounds:
    """Returns the bounds with the forecast's floor, if it is above the scheduled floor."""
    if observation.spec.forecast is None or not observation.hpa.in_charge:
        return bounds
    outlook = outlook_of(clock, observation, Bounds(bounds.lower, bounds.upper))
    if outlook.floor is None or outlook.floor <= max(bounds.lower, bounds.floor):
        return bounds
    floor_by = f"until {readable_timestamp(outlook.until)}, by spec.forecast"
    return structs.replace(bounds, floor=outlook.floor, floor_by=floor_by)


def next_record(
    clock: Clock, observation: ScalableState, bounds: Bounds, needed: int | None, is_left: bool
) -> ForecastRecord:
    """Returns the next record for the status, given the replicas `needed` now (None: unknown). `is_left`: the target
    has 0 replicas, so HVPA leaves it alone."""
    before = observation.status.forecast
    if not observation.hpa.in_charge:
        return unused(before, "not used: no HPA scales the workload")
    if is_left:
        return unused(before, "not used: the target has 0 replicas")
    outlook = outlook_of(clock, observation, Bounds(bounds.lower, bounds.upper))
    fields: dict[str, object] = {
        "message": outlook.text,
        "replicas": outlook.floor,
        "off_percent": outlook.off if outlook.judged >= LEAST_JUDGED else None,
    }
    if outlook.is_due and needed is not None and observation.spec.mode != "Paused":
        fields["time"] = _EPOCH + outlook.tick * TICK
        fields["samples"] = (*outlook.samples, needed)[-TICKS:]
        fields["values"] = " ".join(
            [_UNKNOWN if replicas is None else str(replicas) for replicas in outlook.values]
        )
    return (before or _NEVER).model_copy(update=fields)


def unused(before: ForecastRecord | None, why: str) -> ForecastRecord:
    """Returns the record while the forecast is not used; it keeps the values of earlier quarters."""
    return (before or _NEVER).model_copy(update={"message": why, "replicas": None, "off_percent": None})


def _tick(now: dt.datetime) -> tuple[tuple[int, dt.datetime], dt.datetime]:
    """Returns the number of five-minute ticks since 1970, and when the tick ends."""
    tick = (now - _EPOCH) // TICK
    until = after(_EPOCH + tick * TICK, TICK)
    return (tick, until), until


def _values_at(record: ForecastRecord, sampled: int | None, tick: int) -> tuple[tuple[int, ...], Values]:
    """Returns the samples of this tick's quarter and the recorded values of earlier quarters. Values from the future
    were recorded with a wrong clock and are dropped."""
    if (
        sampled is None
        or len(record.values) > LONGEST
        or _VALUES.fullmatch(f"{record.values} ".lstrip()) is None
    ):
        return (), ()
    values: Values = tuple([None if count == _UNKNOWN else int(count) for count in record.values.split()])
    passed = tick // TICKS - sampled // TICKS
    if sampled > tick:
        return (), values[: max(0, len(values) + passed)]
    if not passed:
        return record.samples[-TICKS:], values
    last = min(median_low(record.samples[-TICKS:]), INT32_MAX) if record.samples else None
    return (), (*values, last, *[None] * min(passed - 1, MOST))


def _foreseen(values: Values, index: int, spec: Forecast) -> int | None:
    """Returns the forecast for the quarter at this index, from the same quarter on previous days; None unless more than
    half of those days are known.

    Example (nearest rank): three days needed 4, 9 and 5 replicas. The median is 5; from quantile 67 on it is 9.
    """
    known = sorted(
        [replicas for replicas in values[index - DAY * spec.days : index : DAY] if replicas is not None]
    )
    if len(known) * 2 <= spec.days:
        return None
    return known[max(0, ceil_div(len(known) * spec.quantile, 100) - 1)]
