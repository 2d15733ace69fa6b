"""Whether a process (an operator, the dashboard) needs more and more memory or file descriptors the longer it works.

A size alone does not show that. A process that leads holds more than one that waits, caches fill, and of what a list
took for a moment the C library keeps some. So each process is compared only with itself, over rounds of the same work
without faults: caches fill in the first third of the rounds, and the last third is held against the second. Where
caches take longer, that levels off: whoever leaks has grown in the last third as well, from its one half to the
other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROUNDS = 18
ROOM_MB, ROOM_FILES = 8.0, 20
"""How much more a process may need in the last third of the rounds than in the second: caches that no number of Hvpas
bounds (Events, quantities) fill within some 2,000 changes of Hvpas, and of what comes new in each round the C library
keeps a part. A round changes each Hvpa, which takes about three writes: of 500 Hvpas, a leak of 0.9 KB for each write
is found. A burst of writes opens as many connections as there are requests at once, and they stay for a while: twenty
more than before are no leak, which over 18 rounds of 30 Hvpas would be hundreds."""
MOST_MB = 512 * 2**20 / 1e6
"""The memory limit of `config/manager`: a process of any size above it would be killed. (The dashboard's limit has room
for a what-if beside it, and here is none.)"""


class Size(NamedTuple):
    """What a process needs: megabytes of resident memory, and file descriptors."""

    megabytes: float
    files: int


def size_of(pid: int) -> Size | None:
    """What a process needs; None where it has ended."""
    folder = Path(f"/proc/{pid}")
    try:
        lines = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        files = len(list((folder / "fd").iterdir()))
        return Size(int(lines["VmRSS"].split()[0]) * 1024 / 1e6, files)
    except (OSError, KeyError):
        return None


class Growth:
    """The sizes of all processes, by name."""

    def __init__(self) -> None:
        self.rounds: dict[str, list[Size]] = defaultdict(list)
        """After each round of those that worked in it."""
        self.largest: dict[str, float] = {}
        """In megabytes, at any time."""

    def look(self, process: str, size: Size) -> None:
        """Note a size at any time."""
        self.largest[process] = max(size.megabytes, self.largest.get(process, 0.0))

    def after_round(self, process: str, size: Size) -> None:
        """Note a size after a round."""
        self.rounds[process].append(size)

    def problems(self) -> list[str]:
        """Who is too large, and who goes on growing."""
        problems = [
            f"{process} needed {size:.0f} MB, its limit is {MOST_MB:.0f}"
            for process, size in self.largest.items()
            if size > MOST_MB
        ]
        for process, sizes in self.rounds.items():
            if len(sizes) < ROUNDS:
                problems.append(f"{process} worked in {len(sizes)} of {ROUNDS} rounds without faults")
            elif _grows([size.megabytes for size in sizes], ROOM_MB):
                problems.append(
                    f"{process} goes on growing, in MB: {_listed([size.megabytes for size in sizes])}"
                )
            elif _grows([size.files for size in sizes], ROOM_FILES):
                problems.append(f"{process} goes on opening files: {_listed([size.files for size in sizes])}")
        return problems


def _grows(figures: Sequence[float], room: float) -> bool:
    """Whether even the smallest of the last third is more than `room` above the smallest of the second, and that of its
    last half more than half of it above that of its first."""
    third = len(figures) // 3
    half = third // 2
    before, last = figures[-2 * third : -third], figures[-third:]
    return min(last) > min(before) + room and min(last[half:]) > min(last[:half]) + room / 2


def _listed(figures: Sequence[float]) -> str:
    return ", ".join(f"{figure:.0f}" for figure in figures)
