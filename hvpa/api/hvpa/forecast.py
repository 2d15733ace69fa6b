"""The forecast of replicas by the time of day (`spec.forecast`, docs/decisions/0036)."""

from __future__ import annotations

from typing import Literal

from hvpa.api.schema.base import SpecModel
from hvpa.api.schema.fields import Percent


class Forecast(SpecModel):
    """Minimum number of replicas by time of day, from the replicas that were needed at the same time on previous days.
    HVPA uses it only while its error in the last 24 hours is at most 20 percent."""

    history: Literal["1d", "2d", "3d", "4d", "5d", "6d", "7d"] = "3d"
    """Number of previous days that the forecast uses: 1d to 7d."""
    quantile: Percent = 50
    """Which of the previous days to use for a time of day: 50 is the median, 0 is the day that needed the fewest
    replicas, 100 is the day that needed the most."""

    @property
    def days(self) -> int:
        """Returns the number of days."""
        return int(self.history.removesuffix("d"))
