"""The evidence that is kept in the repository: what each policy cost and left undone under each load, seed by seed.
`--keep` writes it; `tools/evidence.py` makes all tables, plots and numbers of the documents from it."""

from __future__ import annotations

import datetime as dt
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from benchmarks.joint.run import HVPA_ROOMS, Outcome, Run, code_version

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "benchmarks" / "kept"
MAIN: Final = "joint-scaling"
"""What the main results are called; those beside them (`--keep NAME`) answer one question each."""
_JUMPS: Final = "jumps.json"
GIB_PER_CORE: Final = 8.0
"""So many GiB cost what a core costs: about the price ratio of the clouds' machines."""
Key = tuple[str, str, str]
"""Load, workload, and kind of resizes."""


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy with one headroom, a number for each seed: the cost (core-hours, and GiB-hours / 8), unmet demand
    (core-seconds), OOMs, restarts, and what was used, in the cost's unit."""

    policy: str
    target: int
    cost: tuple[float, ...]
    unmet: tuple[float, ...]
    ooms: tuple[int, ...]
    restarts: tuple[int, ...]
    used: tuple[float, ...]


class Place(Struct, frozen=True, forbid_unknown_fields=True):
    """All policies under one load, with one workload and kind of resizes. `oracle` is the limit of the cost, for each
    seed."""

    load: str
    workload: str
    resize: str
    oracle: tuple[float, ...]
    lines: tuple[Line, ...]


class Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """What the documents cite. `how` says how the figures came to be, `commit` and `date` of which code they speak,
    `days` how long each load was (the first one is not counted). `code` is the hash of what the operator's and the
    simulator's files do (`run.code_version`): the same one means the same figures. `wall` is how many seconds all took
    with so many `processes`; 0 where some runs were found in a cache."""

    how: str
    commit: str
    date: str
    days: float
    seeds: int
    first_seed: int = 0
    code: str = ""
    wall: float = 0
    processes: int = 0
    places: tuple[Place, ...] = ()


def read(name: str = MAIN) -> Kept:
    """The kept results of this name."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Kept)


def keep(found: Kept, name: str = MAIN) -> None:
    """Write these results in place of the kept ones of this name, a line of text for each policy."""
    head = msgspec.structs.replace(found, places=())
    text = msgspec.json.encode(head).decode().removesuffix("[]}")
    places = []
    for place in found.places:
        lines = ",\n".join(f"  {msgspec.json.encode(line).decode()}" for line in place.lines)
        own = msgspec.json.encode(msgspec.structs.replace(place, lines=())).decode().removesuffix("[]}")
        places.append(f" {own}[\n{lines}]}}")
    (FOLDER / f"{name}.json").write_text(f"{text}[\n" + ",\n".join(places) + "]}\n")


class Phases(NamedTuple):
    """What a jump of the load was followed by, in seconds: until capacity covered demand, until a measurement showed
    it, then until the HPA looked, until the change was made, until all new pods were ready. None: not reached."""

    cover: float
    measured: float | None
    looks: float | None
    made: float | None
    ready: float | None


class Felt(NamedTuple):
    """One policy under one jump: the phases with each seed."""

    policy: str
    times: int
    phases: tuple[Phases, ...]

    @property
    def cover(self) -> float:
        """Median seconds until capacity covers demand."""
        return statistics.median(one.cover for one in self.phases)


class Jumps(Struct, frozen=True, forbid_unknown_fields=True):
    """The simulated jumps that the documents cite; the fields are those of `Kept`."""

    how: str
    commit: str
    date: str
    code: str
    felt: tuple[Felt, ...]


def read_jumps() -> Jumps:
    """The kept jumps."""
    return msgspec.json.decode((FOLDER / _JUMPS).read_bytes(), type=Jumps)


def keep_jumps(found: Sequence[Felt]) -> None:
    """Write these jumps in place of the kept ones, a line of text for each policy."""
    how = "Written by `python -m benchmarks jumps --keep`."
    head = Jumps(how, version(), _today(), code_version(HVPA_ROOMS), ())
    text = msgspec.json.encode(head).decode().removesuffix("]}")
    lines = ",\n".join(f" {msgspec.json.encode(one).decode()}" for one in found)
    (FOLDER / _JUMPS).write_text(f"{text}\n{lines}]}}\n")


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def version() -> str:
    """The commit that the code is of, and whether something but kept results was changed since."""
    commit = _git("describe", "--always", "--exclude", "*")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/kept")
    return f"{commit}-dirty" if changed else commit


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def gathered(
    runs: Sequence[Run], oracles: Mapping[Key, Sequence[float]], days: float, commit: str = ""
) -> Kept:
    """The results of these runs: those of one policy and headroom together, in the order of their seeds. A policy that
    could not be run with each seed is left out."""
    seeds = sorted({run.seed for run in runs})
    found: dict[Key, dict[tuple[str, int], list[Outcome]]] = {}
    for run in sorted(runs, key=lambda one: one.seed):
        if run.outcome is not None:
            place = found.setdefault((run.load, run.workload, run.resize), {})
            place.setdefault((run.policy, run.target), []).append(run.outcome)
    places = [
        Place(
            *key,
            tuple(round(one, 2) for one in oracles[key]),
            tuple(
                _line(*named, outcomes) for named, outcomes in lines.items() if len(outcomes) == len(seeds)
            ),
        )
        for key, lines in found.items()
    ]
    how = "Written by `python -m benchmarks joint --keep`."
    code = code_version(HVPA_ROOMS)
    return Kept(how, commit or version(), _today(), days, len(seeds), seeds[0], code, places=tuple(places))


def _line(policy: str, target: int, outcomes: Sequence[Outcome]) -> Line:
    totals = [one.totals for one in outcomes]
    return Line(
        policy,
        target,
        tuple(round(cost_of(one), 2) for one in outcomes),
        tuple(round(one.unmet_core_seconds, 1) for one in totals),
        tuple(one.ooms for one in totals),
        tuple(one.restarts for one in totals),
        tuple(round(one.core_hours_used + one.gib_hours_used / GIB_PER_CORE, 2) for one in totals),
    )


def cost_of(outcome: Outcome) -> float:
    """Core-hours and GiB-hours in one number: requested, and used beyond that."""
    totals = outcome.totals
    cpu = totals.core_hours_requested + outcome.cpu_beyond
    return cpu + (totals.gib_hours_requested + outcome.memory_beyond) / GIB_PER_CORE
