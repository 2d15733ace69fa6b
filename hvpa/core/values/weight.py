"""A vertical weight, in parts per million, and the bounds of the replica count. `weight_at` in `core/additive.py`
chooses the interval."""

from __future__ import annotations

import msgspec

FULL = 1_000_000
"""Weight 1 (100 percent) in parts per million."""


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """Replica bounds of the horizontal axis; `upper` is None where there is no HPA."""

    lower: int = 1
    upper: int | None = None

    def clamp(self, count: int) -> int:
        """The nearest count inside the bounds."""
        if self.upper is not None and count > self.upper:
            count = self.upper
        return max(count, self.lower)

    def contains(self, count: int) -> bool:
        """Whether `count` is inside the bounds."""
        return self.clamp(count) == count


class Weight(msgspec.Struct, frozen=True, gc=False):
    """The vertical weight that counts, and the interval it is from (an index, None where none matched)."""

    vertical_ppm: int
    interval: int | None
    why: str

    @property
    def percent(self) -> int | float:
        """The vertical weight as a percentage; a whole number where it is one."""
        return percent(self.vertical_ppm)

    @property
    def horizontal_ppm(self) -> int:
        """1 minus the vertical weight."""
        return FULL - self.vertical_ppm


def percent(ppm: int) -> int | float:
    """Parts per million as a percentage; a whole number where it is one."""
    whole, rest = divmod(ppm, FULL // 100)
    return whole if rest == 0 else ppm * 100 / FULL
