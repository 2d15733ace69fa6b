"""Regression of a total on replicas and load: an amount for each replica, and an amount for each unit of the load.

Ordinary least squares without an intercept; both coefficients are at least 0. Outliers (a batch job, a restart) would
distort the line: they are left out, and the line is fitted again.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

_ROUNDS: Final = 3
"""Rounds of removing outliers: further rounds change almost nothing."""
_FAR: Final = 4.5
"""A value is an outlier beyond this multiple of the median distance from the line: 3 standard deviations of a normal
distribution."""
_DISTINCT: Final = 0.002
"""Minimum share of the replicas' variation that the load does not explain. Below it, replicas and load rise and fall
together, and their parts can't be separated. Example: 0.002 is a load that varies by 4.5 percent at a fixed count."""
_NEAR: Final = 0.01
"""A value is never an outlier if its distance from the line is within this share of the median total."""
_EPSILON: Final = 1e-12

Row = tuple[float, float, float]
"""Replicas, load, total."""


class FittedLine(NamedTuple):
    """total = per_replica * replicas + per_unit * load, in the total's unit."""

    per_replica: float
    per_unit: float
    explained: float
    """Share of the total's variance that the line explains (1 for a constant total that the line meets), times the
    share of the values that are not outliers."""
    error: float
    """Median distance from the line as a share of the median total."""
    is_distinct: bool = True
    """Whether the parts of replicas and load can be separated. If not, `per_replica` is 0."""

    def at(self, replicas: float, load: float) -> float:
        """The line's total for these replicas and this load."""
        return self.per_replica * replicas + self.per_unit * load

    @property
    def is_poor(self) -> bool:
        """Whether the fit is poor: it explains less than 70 percent of the variance, and its median error is above 10
        percent. (Both, since no line explains the noise of a constant total, yet a line predicts it well.)"""
        return self.explained < 0.7 and self.error > 0.1


def fitted(replicas: Sequence[float], load: Sequence[float], total: Sequence[float]) -> FittedLine:
    """The line that fits these values. There must be at least one row."""
    rows = list(zip(replicas, load, total, strict=True))
    kept, line = rows, _least_squares(rows)
    usual = statistics.median(total)
    for _ in range(_ROUNDS):
        off = [abs(measured - line.at(count, units)) for count, units, measured in rows]
        most = max(_FAR * statistics.median(off), _NEAR * usual)
        kept = [row for row, distance in zip(rows, off, strict=True) if distance <= most]
        line = _least_squares(kept)
    explained = _explained(line, kept) * len(kept) / len(rows)
    return line._replace(explained=explained, error=_error(line, rows))


def _least_squares(rows: Sequence[Row]) -> FittedLine:
    """The best line for all rows; `explained` and `error` are not set. Solves the normal equations of two regressors
    without an intercept by Cramer's rule. Example: 2 replicas use 700m at load 100 and 1200m at load 200, and 4
    replicas use 900m at load 100: 100m for each replica, and 5m for each unit of the load."""
    nn = math.fsum(n * n for n, _, _ in rows)
    nx = math.fsum(n * x for n, x, _ in rows)
    xx = math.fsum(x * x for _, x, _ in rows)
    ny = math.fsum(n * y for n, _, y in rows)
    xy = math.fsum(x * y for _, x, y in rows)
    det = nn * xx - nx * nx
    only_load = max(0.0, xy / xx) if xx > _EPSILON else 0.0
    if xx <= _EPSILON:
        return FittedLine(max(0.0, ny / nn) if nn else 0.0, 0.0, 0.0, 0.0)
    if det <= _DISTINCT * nn * xx:
        return FittedLine(0.0, only_load, 0.0, 0.0, is_distinct=False)
    per_replica, per_unit = (ny * xx - xy * nx) / det, (xy * nn - ny * nx) / det
    if per_replica < 0:
        return FittedLine(0.0, only_load, 0.0, 0.0)
    if per_unit < 0:
        return FittedLine(max(0.0, ny / nn), 0.0, 0.0, 0.0)
    return FittedLine(per_replica, per_unit, 0.0, 0.0)


def _explained(line: FittedLine, rows: Sequence[Row]) -> float:
    """The coefficient of determination (R²) of the line. Example: the line has 700m, 900m and 1200m; 700m, 900m and
    1300m were used. The squared distances from the mean (967m) add up to 186,667, from the line to 10,000: R² is
    0.946."""
    mean = math.fsum(y for *_, y in rows) / len(rows)
    all_of_it = math.fsum((y - mean) ** 2 for *_, y in rows)
    left = math.fsum((y - line.at(n, x)) ** 2 for n, x, y in rows)
    if all_of_it <= _EPSILON * mean * mean * len(rows):
        return 1.0 if left <= all_of_it + _EPSILON * mean * mean * len(rows) else 0.0
    return 1 - left / all_of_it


def _error(line: FittedLine, rows: Sequence[Row]) -> float:
    """The median distance from the line as a share of the median total. Example: distances of 20m, 45m and 100m, and
    totals of 700m, 900m and 1300m: 45 / 900 = 0.05."""
    usual = statistics.median(y for *_, y in rows)
    off = statistics.median(abs(y - line.at(n, x)) for n, x, y in rows)
    return off / usual if usual > 0 else 0.0
