"""All that happens in a soak, drawn from its seed: recommendations, what users do, and faults, each with its time.

The schedule is the same for the same seed, length, and numbers of Hvpas and of operators. (How the operators and the
machine answer it is not: what they are doing when a fault happens differs from run to run.)"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

LEAST, MOST = 2, 60
"""Bounds of the HPAs, in replicas."""
RECOMMENDED_EVERY = 15.0
"""Seconds between two recommendations for one Hvpa, on average."""
EDITED_EVERY = 150.0
"""Seconds between two things that users do to one Hvpa or its workload, on average."""
LINE_EVERY, LINE_LASTS = 1.2, (0.2, 3.0)
"""Seconds between faults of the lines to the API server, and how long each lasts."""
DEAD_EVERY = 20.0
"""Seconds between times at which all connections of an operator (or of all) go dead without a word."""
PROCESS_EVERY, FROZEN_FOR = 14.0, (0.5, 12.0)
"""Seconds between faults of an operator's process, and how long one is stopped."""
SERVER_EVERY = 110.0
"""Seconds between restarts of the API server; there is one in the middle of a shorter run."""
QUIET_START = 1.0
"""Seconds before the first fault."""
CODES = (409, 410, 422, 429, 500, 503)
LINE_FAULTS = (
    "fail",
    "fail",
    "fail",
    "damage",
    "delay",
    "hold",
    "hold",
    "cut",
    "cut in event",
    "expire",
    "end",
    "refuse",
)
USERS_ACTS = ("edit", "edit", "edit", "set", "workload", "hvpa")


@dataclass(frozen=True, slots=True)
class Act:
    """Something that happens at a time (seconds from the start). `who` is an Hvpa's number, or a replica's (one more
    than the last: all of them); `number` and `text` say more, by kind; `lasts` are seconds."""

    at: float
    kind: str
    who: int = 0
    number: int = 0
    text: str = ""
    lasts: float = 0.0

    def __str__(self) -> str:
        more = " ".join(str(part) for part in (self.number or "", self.text) if part)
        return f"{self.at:8.2f} {self.kind} #{self.who} {more} {self.lasts:.2f}s"


@dataclass(frozen=True, slots=True)
class _Size:
    seconds: float
    hvpas: int
    shards: int

    @property
    def replicas(self) -> int:
        return replicas_of(self.shards)


def replicas_of(shards: int) -> int:
    """How many operators there are: one that leads (a single shard) and one that waits, or three that share the
    work."""
    return 2 if shards == 1 else 3


def schedule(seed: int, seconds: float, hvpas: int, shards: int = 1) -> list[Act]:
    """All acts in the order of their times."""
    size = _Size(seconds, hvpas, shards)
    streams = (_recommendations, _users, _lines, _dead_lines, _processes, _restarts)
    acts = [act for stream in streams for act in stream(random.Random(f"{seed}/{stream.__name__}"), size)]
    return sorted(acts, key=lambda act: act.at)


def recommendations_of(number: int, hvpas: int) -> list[Act]:
    """New recommendations for all Hvpas, in the round of this number: others than those of the round before, and
    targets that no schedule has."""
    desired = [Act(0.0, "replicas", who, LEAST + (who + 7 * number) % (MOST - LEAST)) for who in range(hvpas)]
    targets = [Act(0.0, "target", who, 3001 + 100 * number + who % 99) for who in range(hvpas)]
    return desired + targets


def delay_of(seed: int, what: str, longest: float) -> float:
    """A random time of seconds that depends on the seed and on what it is for; seldom near `longest`."""
    return longest * random.Random(f"{seed}/{what}").random() ** 2


def _recommendations(rng: random.Random, size: _Size) -> Iterator[Act]:
    """New desired replicas and targets (`number` replicas or millicores): both for each Hvpa at the start, later one or
    both for any. No Hvpa gets the same number of replicas twice in a row, nor ever the same target."""
    desired, targets = [0] * size.hvpas, [set[int]() for _ in range(size.hvpas)]
    for who in range(size.hvpas):
        yield from _new(rng, 0.0, who, ("replicas", "target"), desired, targets)
    at = rng.expovariate(size.hvpas / RECOMMENDED_EVERY)
    while at < size.seconds:
        axes = rng.choice((("replicas",), ("target",), ("replicas", "target")))
        yield from _new(rng, at, rng.randrange(size.hvpas), axes, desired, targets)
        at += rng.expovariate(size.hvpas / RECOMMENDED_EVERY)


def _new(
    rng: random.Random,
    at: float,
    who: int,
    axes: tuple[str, ...],
    desired: list[int],
    targets: list[set[int]],
) -> Iterator[Act]:
    for axis in axes:
        if axis == "replicas":
            while (count := rng.randint(LEAST + 1, MOST)) == desired[who]:
                pass
            desired[who] = count
            yield Act(at, "replicas", who, count)
        else:
            while (target := rng.randrange(101, 3000)) % 10 == 0 or target in targets[who]:
                pass
            targets[who].add(target)
            yield Act(at, "target", who, target)


def _users(rng: random.Random, size: _Size) -> Iterator[Act]:
    """Users edit workloads (`edit`: an image; `set`: what the operator governs), and delete and make again workloads
    and Hvpas, `lasts` seconds apart. What an Hvpa has set is undone once at most: the second time within an hour it
    would wait, and rightly so."""
    undone = set[int]()
    at = QUIET_START + rng.expovariate(size.hvpas / EDITED_EVERY)
    while at < size.seconds:
        who, kind = rng.randrange(size.hvpas), rng.choice(USERS_ACTS)
        if kind in ("set", "workload"):
            kind = "edit" if who in undone else kind
            undone.add(who)
        yield Act(at, kind, who, rng.randint(LEAST, MOST), lasts=rng.uniform(0.1, 4.0))
        at += rng.expovariate(size.hvpas / EDITED_EVERY)


def _lines(rng: random.Random, size: _Size) -> Iterator[Act]:
    """Faults between an operator (or all) and the API server, one after another. `number` is a code, or how many
    requests are hit; `text` which ones, or how."""
    at = QUIET_START + rng.expovariate(1 / LINE_EVERY)
    while at < size.seconds:
        kind, lasts = rng.choice(LINE_FAULTS), rng.uniform(*LINE_LASTS)
        verb = rng.choice(("patch", "patch", "list", "watch", "update", "create", ""))
        number = rng.choice(CODES) if kind == "fail" else rng.randint(1, 20)
        if kind == "hold":
            lasts, verb = (
                rng.uniform(0.1, 1.0),
                rng.choice(("before", "after")) + rng.choice((" release", " drop")),
            )
        yield Act(at, kind, rng.randrange(size.replicas + 1), number, verb, lasts)
        at += lasts + rng.expovariate(1 / LINE_EVERY)


def _dead_lines(rng: random.Random, size: _Size) -> Iterator[Act]:
    """The line to an operator (or to all) swallows packets: what is connected goes dead, new connections work."""
    at = QUIET_START + rng.expovariate(1 / DEAD_EVERY)
    while at < size.seconds:
        yield Act(at, "dead", rng.randrange(size.replicas + 1))
        at += rng.expovariate(1 / DEAD_EVERY)


def _processes(rng: random.Random, size: _Size) -> Iterator[Act]:
    """Signals to the operator that leads, or to any (`text`: the signal): it is killed, stopped for a time, asked to
    end."""
    at = QUIET_START + rng.expovariate(1 / PROCESS_EVERY)
    while at < size.seconds:
        name = rng.choice(("SIGKILL", "SIGSTOP", "SIGTERM"))
        lasts = rng.uniform(*FROZEN_FOR) if name == "SIGSTOP" else 0.0
        who = 0 if size.shards == 1 else rng.randrange(size.replicas)
        yield Act(at, "signal", who, 0, name, lasts)
        at += lasts + rng.expovariate(1 / PROCESS_EVERY)


def _restarts(rng: random.Random, size: _Size) -> Iterator[Act]:
    """The API server is restarted, in order or after a SIGKILL (`text`), and away for `lasts` seconds more."""
    at = min(size.seconds / 2, SERVER_EVERY) * rng.uniform(0.8, 1.2)
    while at < size.seconds:
        yield Act(at, "restart", 0, 0, rng.choice(("in order", "killed")), rng.uniform(0.0, 2.0))
        at += SERVER_EVERY * rng.uniform(0.7, 1.3)
