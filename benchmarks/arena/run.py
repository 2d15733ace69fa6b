"""Runs the arena's workloads in parallel, and keeps the result of each run.

A result is reused if the scenario with this policy, the seed and the code are the same. The rivals depend on the
recommenders and the simulator, not on `hvpa/core`: while rules are tuned, only the Hvpas run again.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from benchmarks.arena import outcome
from benchmarks.arena.draw import Drawn, drawn
from benchmarks.arena.outcome import Outcome, outcome_of
from benchmarks.arena.policies import AGAIN, HVPA, policies, scenario_of
from benchmarks.joint.run import ACTING_ROOMS, HVPA_ROOMS, SCENARIO, code_version, essence, write_scenario
from hvpa_lab.simulate.engine import quiet, simulate
from hvpa_lab.simulate.model import KubeletKind
from hvpa_lab.simulate.scenario.read import load_scenario

CACHE: Final = Path.home() / ".cache" / "hvpa" / "arena"
COUNTED: Final = essence(Path(outcome.__file__).read_text())
"""The code that computes the figures; each result depends on it."""
OTHER_NOISE: Final = 5000
"""Added to the seed of the noise, for the same policy again."""


class Result(msgspec.Struct, frozen=True):
    """A workload's outcomes and errors by policy, with its names for tables."""

    number: int
    text: str
    metric: str
    weight: int | None
    blend: str
    in_place: bool
    shape: str
    follows: bool
    rival: str
    outcomes: dict[str, Outcome]
    errors: dict[str, str]

    @property
    def own(self) -> Outcome:
        """The Hvpa's outcome."""
        return self.outcomes[HVPA]


OutcomeOrError = tuple[Outcome | None, str]
"""An outcome, or the error instead."""


def run_all(
    seed: int,
    workloads: Sequence[Drawn],
    kept: Path,
    processes: int,
    report: Callable[[int, int], None],
    kubelets: KubeletKind | None = None,
) -> dict[tuple[int, str], OutcomeOrError]:
    """Run all that is not kept in this folder. Results of finished runs stay if it is interrupted. `report` is called
    with the number of finished runs, and of all runs."""
    kept.mkdir(parents=True, exist_ok=True)
    wanted = [(workload.number, name) for workload in workloads for name in policies(workload)]
    outcomes: dict[tuple[int, str], OutcomeOrError] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, quiet) as pool:
        futures = {pool.submit(run_one, seed, *key, kept, kubelets): key for key in wanted}
        try:
            for future in as_completed(futures):
                outcomes[futures[future]] = future.result()
                report(len(outcomes), len(wanted))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return outcomes


def run_one(
    seed: int, number: int, name: str, kept: Path, kubelets: KubeletKind | None = None
) -> OutcomeOrError:
    """Run this policy in this process, or return its kept result."""
    workload = drawn(seed, number)
    scenario = scenario_of(workload, name, kubelets=kubelets if name == HVPA else None)
    code = code_version(HVPA_ROOMS if name == HVPA else ACTING_ROOMS)
    key = json.dumps([{**scenario, "description": ""}, seed, number, code, COUNTED], sort_keys=True)
    path = kept / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Outcome), ""
    began = time.process_time()
    try:
        with TemporaryDirectory() as folder:
            noise = seed + number + (OTHER_NOISE if name == AGAIN else 0)
            read = load_scenario(write_scenario(Path(folder) / SCENARIO, scenario, "", ""), noise)
        result = simulate(read, read.policies[0])
        done = outcome_of(read, result, workload.replicas[2], time.process_time() - began)
    except Exception as error:  # a failing policy must not end the others
        return None, f"{type(error).__name__}: {error}".rpartition(f"{SCENARIO}:")[2]
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(msgspec.json.encode(done))
    part.replace(path)
    return done, ""
