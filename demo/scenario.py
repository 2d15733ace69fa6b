"""The load of the demo as a function of time, and what a viewer is told at each turn of it. Pure: no clock,
no I/O."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20
BASE_CPU = 10.0
BASE_MEMORY = 48.0 * MIB
"""What each pod uses before it serves anything: millicores, bytes."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of the load between two instants (seconds since the load began to count)."""

    name: str
    start: float
    end: float
    begin_share: float
    """Where between the low and the high load it begins (0 to 1)."""
    end_share: float
    """Where it ends."""
    story: str
    """What happens and what to look for, for the viewer."""


# Shares of the whole time. The peak lasts until pods have grown, which waits a minute for measurements of all
# replicas; the last phase until both axes have come back.
_PLAN = (
    ("calm", 0.05, 0.0, 0.0, "little load; requests and replicas have no reason to move"),
    ("rise", 0.15, 0.0, 1.0, "the load rises eightfold: look for more pods"),
    (
        "peak",
        0.35,
        1.0,
        1.0,
        "the load stays high, and 6 pods of the first size are too few: look for larger ones",
    ),
    ("fall", 0.10, 1.0, 0.0, "the load falls back: look for fewer pods"),
    ("after", 0.35, 0.0, 0.0, "little load again: pods get smaller; it ends when all is as in the beginning"),
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The load's whole course over `seconds`. CPU in millicores, memory in bytes, both totals for all
    pods."""

    seconds: float = 300.0
    low_cpu: float = 300.0
    high_cpu: float = 2400.0
    low_memory: float = 120.0 * MIB
    # Below what two pods may use together, limits and base counted: nothing runs out of memory even if
    # nothing scales.
    high_memory: float = 1200.0 * MIB

    @property
    def phases(self) -> tuple[Phase, ...]:
        """All phases, in order, without gaps."""
        found: list[Phase] = []
        start = 0.0
        for name, share, begin, end, story in _PLAN:
            length = share * self.seconds
            found.append(Phase(name, start, start + length, begin, end, story))
            start += length
        return tuple(found)

    def phase(self, name: str) -> Phase:
        """The phase of that name."""
        return next(phase for phase in self.phases if phase.name == name)

    def phase_at(self, elapsed: float) -> Phase:
        """The phase at an instant; the last one lasts for ever."""
        return next((phase for phase in self.phases if elapsed < phase.end), self.phases[-1])

    def cpu(self, elapsed: float) -> float:
        """Millicores that arrive at an instant."""
        return self.low_cpu + (self.high_cpu - self.low_cpu) * self._share(elapsed)

    def memory(self, elapsed: float) -> float:
        """Bytes that are needed at an instant, without each pod's own base."""
        return self.low_memory + (self.high_memory - self.low_memory) * self._share(elapsed)

    def _share(self, elapsed: float) -> float:
        phase = self.phase_at(elapsed)
        done = min(1.0, max(0.0, (elapsed - phase.start) / (phase.end - phase.start)))
        return phase.begin_share + (phase.end_share - phase.begin_share) * done
