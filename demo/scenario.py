"""The load of the demo as a function of time, and what a viewer is told at each turn of it. Pure: no clock,
no I/O."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


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


# Shares of the whole time. The rise takes four scrapes of metrics-server (11 s each) at the usual length, so
# that the recommenders see several loads on the way, not a jump; the last phase is as long as the VPA needs
# to forget a peak (3.3 half-lives of 10 s) and the Hvpa to step down twice.
_PLAN = (
    ("calm", 0.06, 0.0, 0.0, "little load; requests and replicas have no reason to move"),
    ("rise", 0.24, 0.0, 1.0, "the load rises eightfold: look for more pods (HPA) and for larger ones (VPA)"),
    (
        "peak",
        0.20,
        1.0,
        1.0,
        "the load stays high: shared by more pods it is less for each, so requests may shrink a little",
    ),
    ("fall", 0.15, 1.0, 0.0, "the load falls back: pods are taken away, and those that stay get smaller"),
    ("after", 0.35, 0.0, 0.0, "little load again; it ends when all four directions were seen"),
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The load's whole course over `seconds`. CPU in millicores, memory in bytes, both totals for all
    pods."""

    seconds: float = 200.0
    low_cpu: float = 300.0
    high_cpu: float = 2400.0
    low_memory: float = 200.0 * MIB
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
