"""The evidence in the repository: cost and unmet demand of each policy under each load, seed by seed. `--keep` writes
it; `tools/evidence.py` makes all tables, plots and numbers of the documents from it."""

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
"""Name of the main results; each of the others (`--keep NAME`) answers a single question."""
_JUMPS: Final = "jumps.json"
GIB_PER_CORE: Final = 8.0
"""GiB with the price of a core: about the ratio of cloud machines."""
Key = tuple[str, str, str]
"""Load, workload, and kind of resizes."""


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy with a headroom. Each tuple has a number for each seed."""

    policy: str
    target: int
    cost: tuple[float, ...]
    """Core-hours, and GiB-hours / 8."""
    unmet: tuple[float, ...]
    """Unmet demand in core-seconds."""
    ooms: tuple[int, ...]
    restarts: tuple[int, ...]
    used: tuple[float, ...]
    """Usage in the cost's unit."""


class Place(Struct, frozen=True, forbid_unknown_fields=True):
    """All policies under a load, with a workload and kind of resizes. `oracle` is the lowest possible cost for each
    seed."""

    load: str
    workload: str
    resize: str
    oracle: tuple[float, ...]
    lines: tuple[Line, ...]


class Kept(Struct, frozen=True, forbid_unknown_fields=True):
    """The results that the documents cite."""

    how: str
    """How the figures were made."""
    commit: str
    """The commit of the code."""
    date: str
    """The date of the run."""
    days: float
    """Length of each load; the first day does not count."""
    seeds: int
    first_seed: int = 0
    code: str = ""
    """Hash of the operator's and the simulator's code (`run.code_version`). The same hash means the same figures."""
    wall: float = 0
    """Seconds of the whole run with this number of `processes`; 0 if some results came from a cache."""
    processes: int = 0
    places: tuple[Place, ...] = ()


def read(name: str = MAIN) -> Kept:
    """Return the kept results of this name."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Kept)


def keep(kept: Kept, name: str = MAIN) -> None:
    """Replace the kept results of this name, with a line of text for each policy."""
    head = msgspec.structs.replace(kept, places=())
    text = msgspec.json.encode(head).decode().removesuffix("[]}")
    places = []
    for place in kept.places:
        lines = ",\n".join(f"  {msgspec.json.encode(line).decode()}" for line in place.lines)
        own = msgspec.json.encode(msgspec.structs.replace(place, lines=())).decode().removesuffix("[]}")
        places.append(f" {own}[\n{lines}]}}")
    (FOLDER / f"{name}.json").write_text(f"{text}[\n" + ",\n".join(places) + "]}\n")


class Phases(NamedTuple):
    """The phases of a reaction to a jump in seconds: until capacity covered demand; until a measurement showed the
    jump; from there until the HPA synced, until the change was made, until all new pods were ready. None: not
    reached."""

    cover: float
    measured: float | None
    looks: float | None
    made: float | None
    ready: float | None


class Felt(NamedTuple):
    """A policy under a jump: the phases with each seed."""

    policy: str
    times: int
    phases: tuple[Phases, ...]

    @property
    def cover(self) -> float:
        """Median seconds until capacity covers demand."""
        return statistics.median(phases.cover for phases in self.phases)


class Jumps(Struct, frozen=True, forbid_unknown_fields=True):
    """The simulated jumps that the documents cite, with the fields of `Kept`."""

    how: str
    commit: str
    date: str
    code: str
    felt: tuple[Felt, ...]


def read_jumps() -> Jumps:
    """Return the kept jumps."""
    return msgspec.json.decode((FOLDER / _JUMPS).read_bytes(), type=Jumps)


def keep_jumps(results: Sequence[Felt]) -> None:
    """Replace the kept jumps, with a line of text for each policy."""
    how = "Written by `python -m benchmarks jumps --keep`."
    head = Jumps(how, version(), _today(), code_version(HVPA_ROOMS), ())
    text = msgspec.json.encode(head).decode().removesuffix("]}")
    lines = ",\n".join(f" {msgspec.json.encode(result).decode()}" for result in results)
    (FOLDER / _JUMPS).write_text(f"{text}\n{lines}]}}\n")


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def version() -> str:
    """Return the code's commit, and whether files other than kept results have changed since."""
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
    """Return the results of these runs, grouped by policy and headroom, in the order of their seeds. A policy that
    failed with a seed is left out."""
    seeds = sorted({run.seed for run in runs})
    outcomes_by_place: dict[Key, dict[tuple[str, int], list[Outcome]]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        if run.outcome is not None:
            place = outcomes_by_place.setdefault((run.load, run.workload, run.resize), {})
            place.setdefault((run.policy, run.target), []).append(run.outcome)
    places = [
        Place(
            *key,
            tuple(round(cost, 2) for cost in oracles[key]),
            tuple(
                _line(*named, outcomes) for named, outcomes in lines.items() if len(outcomes) == len(seeds)
            ),
        )
        for key, lines in outcomes_by_place.items()
    ]
    how = "Written by `python -m benchmarks joint --keep`."
    code = code_version(HVPA_ROOMS)
    return Kept(how, commit or version(), _today(), days, len(seeds), seeds[0], code, places=tuple(places))


def _line(policy: str, target: int, outcomes: Sequence[Outcome]) -> Line:
    totals = [outcome.totals for outcome in outcomes]
    return Line(
        policy,
        target,
        tuple(round(cost_of(outcome), 2) for outcome in outcomes),
        tuple(round(total.unmet_core_seconds, 1) for total in totals),
        tuple(total.ooms for total in totals),
        tuple(total.restarts for total in totals),
        tuple(round(total.core_hours_used + total.gib_hours_used / GIB_PER_CORE, 2) for total in totals),
    )


def cost_of(outcome: Outcome) -> float:
    """Return the cost of core-hours and GiB-hours as a number: requests, and usage beyond them."""
    totals = outcome.totals
    cpu = totals.core_hours_requested + outcome.cpu_beyond
    return cpu + (totals.gib_hours_requested + outcome.memory_beyond) / GIB_PER_CORE
