"""The forecast of replicas by the time of day (`spec.forecast`, docs/decisions/0036)."""

from __future__ import annotations

from typing import Literal

from hvpa.api.schema.base import SpecModel
from hvpa.api.schema.fields import Percent


class Forecast(SpecModel):
    """A floor of the number of replicas by the time of day: what was needed at the same time on the days before. It is
    used only while it was nearly right in the last 24 hours."""

    history: Literal["1d", "2d", "3d", "4d", "5d", "6d", "7d"] = "3d"
    """How many days count: 1d to 7d."""
    quantile: Percent = 50
    """Which of these days counts for a time of day: 50 is the median, 0 the day on which the least was needed, 100 the
    one on which the most was."""

    @property
    def days(self) -> int:
        """How many days count."""
        return int(self.history.removesuffix("d"))
