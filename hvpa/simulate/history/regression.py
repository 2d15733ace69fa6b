"""Regression of a total on two things that cause it: so much for each replica, and so much for each unit of the load.

Ordinary least squares without an intercept, neither coefficient below 0. What is far off (a batch job, a restart) would
bend the line: it is left out, and the line is fitted again.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final, NamedTuple

_ROUNDS: Final = 3
"""How often what is far off is looked for: the third round changes nothing to speak of any more."""
_FAR: Final = 4.5
"""Median distances from the line beyond which a value is far off: 3 standard deviations of a normal distribution."""
_DISTINCT: Final = 0.002
"""Least share of the replicas' variation that the load does not explain; below it both rise and fall together, and
nothing separates one's part from the other's. 0.002 is a load that goes up and down by 4.5 percent at a fixed count."""
_NEAR: Final = 0.01
"""Share of the median total up to which no value is far off, however well the others are met."""
_EPSILON: Final = 1e-12

Row = tuple[float, float, float]
"""Replicas, load, total."""


class Line(NamedTuple):
    """total = per_replica * replicas + per_unit * load.

    `explained` is the share of the total's variance that the line accounts for (1 for a total that never changes and is
    met), less the share of the values that were left out. `error` is the median distance from the line as a share of
    the median total. `is_distinct`: the parts of replicas and load can be separated; where they can't, per_replica is
    0.
    """

    per_replica: float
    per_unit: float
    explained: float
    error: float
    is_distinct: bool = True

    def at(self, replicas: float, load: float) -> float:
        """The total that the line has there."""
        return self.per_replica * replicas + self.per_unit * load

    @property
    def is_poor(self) -> bool:
        """Whether the line says little about the total: it explains less than 70 percent of its variance, and is off by
        more than a tenth as a rule. (A total that hardly varies is noise around a constant, of which nothing can be
        explained; it is predicted well all the same.)"""
        return self.explained < 0.7 and self.error > 0.1


def fitted(replicas: Sequence[float], load: Sequence[float], total: Sequence[float]) -> Line:
    """The line through these values, of which there is at least one."""
    rows = list(zip(replicas, load, total, strict=True))
    kept, line = rows, _least_squares(rows)
    usual = statistics.median(total)
    for _ in range(_ROUNDS):
        off = [abs(own - line.at(count, units)) for count, units, own in rows]
        most = max(_FAR * statistics.median(off), _NEAR * usual)
        kept = [row for row, distance in zip(rows, off, strict=True) if distance <= most]
        line = _least_squares(kept)
    explained = _explained(line, kept) * len(kept) / len(rows)
    return line._replace(explained=explained, error=_error(line, rows))


def _least_squares(rows: Sequence[Row]) -> Line:
    """The best line for all of the rows, its quality left open: the normal equations of two regressors without an
    intercept, solved by Cramer's rule. Example: 2 replicas with load 100 use 700m, 4 with 100 use 900m, 2 with 200 use
    1200m: 100m for each replica, and 5m for each unit of the load."""
    nn = math.fsum(n * n for n, _, _ in rows)
    nx = math.fsum(n * x for n, x, _ in rows)
    xx = math.fsum(x * x for _, x, _ in rows)
    ny = math.fsum(n * y for n, _, y in rows)
    xy = math.fsum(x * y for _, x, y in rows)
    det = nn * xx - nx * nx
    only_load = max(0.0, xy / xx) if xx > _EPSILON else 0.0
    if xx <= _EPSILON:
        return Line(max(0.0, ny / nn) if nn else 0.0, 0.0, 0.0, 0.0)
    if det <= _DISTINCT * nn * xx:
        return Line(0.0, only_load, 0.0, 0.0, is_distinct=False)
    per_replica, per_unit = (ny * xx - xy * nx) / det, (xy * nn - ny * nx) / det
    if per_replica < 0:
        return Line(0.0, only_load, 0.0, 0.0)
    if per_unit < 0:
        return Line(max(0.0, ny / nn), 0.0, 0.0, 0.0)
    return Line(per_replica, per_unit, 0.0, 0.0)


def _explained(line: Line, rows: Sequence[Row]) -> float:
    """The coefficient of determination (R²) of the line. Example: it has 700m, 900m and 1200m, and 700m, 900m and 1300m
    were used. Their squared distances from the mean of 967m are 186,667, from the line 10,000: 0.946."""
    mean = math.fsum(y for *_, y in rows) / len(rows)
    all_of_it = math.fsum((y - mean) ** 2 for *_, y in rows)
    left = math.fsum((y - line.at(n, x)) ** 2 for n, x, y in rows)
    if all_of_it <= _EPSILON * mean * mean * len(rows):
        return 1.0 if left <= all_of_it + _EPSILON * mean * mean * len(rows) else 0.0
    return 1 - left / all_of_it


def _error(line: Line, rows: Sequence[Row]) -> float:
    """The median distance from the line as a share of the median total. Example: distances of 20m, 45m and 100m, and
    totals of 700m, 900m and 1300m: 45 / 900 = 0.05."""
    usual = statistics.median(y for *_, y in rows)
    off = statistics.median(abs(y - line.at(n, x)) for n, x, y in rows)
    return off / usual if usual > 0 else 0.0
