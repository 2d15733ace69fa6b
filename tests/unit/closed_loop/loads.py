"""Loads in millicores, which change step by step: what is constant between two instants can be skipped."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True)
class Load:
    """A load that changes every `every` seconds at most."""

    name: str
    shape: Callable[[float], float]
    every: float = math.inf

    def at(self, now: float) -> float:
        """The load now, in millicores."""
        return self.shape(now if self.every == math.inf else now // self.every * self.every)

    def next_change(self, now: float) -> float:
        """When it may change next."""
        return math.inf if self.every == math.inf else (now // self.every + 1) * self.every

    def __repr__(self) -> str:
        return self.name


def constant(load: float) -> Load:
    return Load(f"constant({load})", lambda _: load)


def drift(load: float, percent: float = 1.0) -> Load:
    """More by so many percent an hour."""
    return Load(f"drift({load}, {percent})", lambda now: load * (1 + percent / 100) ** (now / HOUR), 600.0)


def wave(load: float, percent: float = 5.0) -> Load:
    """So many percent more and less in the course of a day."""
    return Load(
        f"wave({load}, {percent})",
        lambda now: load * (1 + percent / 100 * math.sin(2 * math.pi * now / DAY)),
        600.0,
    )


def noise(load: float, percent: float = 5.0) -> Load:
    """Up to so many percent more or less, every ten minutes anew, without a trend."""

    def shape(now: float) -> float:
        turn = math.sin(now / 600.0 * 12.9898) * 43758.5453  # a hash: what is drawn depends on the time alone
        return load * (1 + percent / 100 * (2 * (turn - math.floor(turn)) - 1))

    return Load(f"noise({load}, {percent})", shape, 600.0)


def step(load: float, peak: float, begin: float, end: float = math.inf) -> Load:
    """Another load from `begin` to `end`."""
    return Load(
        f"step({load}, {peak}, {begin}, {end})", lambda now: peak if begin <= now < end else load, 900.0
    )
