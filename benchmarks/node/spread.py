"""Formats the seconds of repeated runs in a line. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence


def spread(seconds: Sequence[float | None]) -> str:
    """Format `1.20 s (0.90 to 3.10, 5 runs)`: the median, the minimum and the maximum. None is a run without a result;
    it counts as longer than all others."""
    if not seconds:
        return "not measured"
    ordered = sorted(math.inf if value is None else value for value in seconds)
    middle = ordered[(len(ordered) - 1) // 2]
    return f"{_text(middle)} ({_text(ordered[0])} to {_text(ordered[-1])}, {len(ordered)} runs)"


def _text(seconds: float) -> str:
    if math.isinf(seconds):
        return "never"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
