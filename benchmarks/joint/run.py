"""Runs the comparison of `python -m benchmarks joint`: a policy under a load per process, several processes at once.

This module turns scenarios into outcomes. It keeps each result under a key of all its inputs, and reuses it if the
scenario with this policy, its CSV file, the seed and the code are the same; comments, docstrings and layout do not
count. An Hvpa also depends on the operator's packages, the other policies only on those of the recommenders and the
simulator.
"""

from __future__ import annotations

import ast
import datetime as dt
import hashlib
import json
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import yaml

import hvpa
from benchmarks.joint.loads import LoadCase
from benchmarks.joint.policies import (
    CONTAINER,
    DEFAULT_TARGET,
    POLICIES,
    WORKLOADS,
    Case,
    PolicyCase,
    headroom,
    workload_field,
)
from hvpa.api.values.duration import format_duration
from hvpa_lab.simulate.engine import quiet, simulate
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.model import PolicyResult, Scenario, Totals
from hvpa_lab.simulate.policy.base import SimulationError
from hvpa_lab.simulate.scenario.read import load_scenario

STEP: Final = 5
SCENARIO: Final = "scenario.yaml"
"""File name of a run's scenario while it is read."""
DAY: Final = 86400.0
GIB: Final = 1024.0**3
ACTING_ROOMS: Final = ("hvpa/api", "hvpa/recommend", "hvpa_lab/recommend", "hvpa_lab/simulate")
HVPA_ROOMS: Final = (*ACTING_ROOMS, "hvpa/core", "hvpa/reconcile")


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a run. Replicas, and a pod's requests in cores and GiB, are means over time after the warm-up."""

    totals: Totals
    cpu_beyond: float
    """Core-hours used beyond the requests, of all pods together at each step: pods may use each other's reserve."""
    memory_beyond: float
    """GiB-hours used beyond the requests, of all pods together at each step."""
    replicas_mean: float
    replicas_max: int
    """Highest count after the warm-up."""
    cpu_mean: float
    memory_mean: float
    seconds: float
    """CPU time of the run."""
    code: str
    """Version of the code."""


class Names(msgspec.Struct, frozen=True):
    """The names of a run in reports. `seed` seeds all its random values."""

    load: str
    workload: str
    policy: str
    resize: str
    target: int
    seed: int


class Job(Names, frozen=True):
    """A run: the scenario with a single policy, and the load's file."""

    scenario: dict[str, Any]
    file: str
    text: str


class Run(Names, frozen=True):
    """A job's names with its outcome, or the error instead."""

    outcome: Outcome | None = None
    error: str = ""
    kept: bool = False
    """Whether the result was reused."""


# --- scenarios ------------------------------------------------------------------------------------------------------
def scenario_of(load: LoadCase, case: Case, policies: Sequence[PolicyCase]) -> dict[str, Any]:
    """Return the scenario of this load, workload, headroom and kind of resizes, in the form of its YAML."""
    return {
        "name": f"{load.name}, {case.workload.name}, {case.resize}, {case.headroom.name}",
        "duration": _length(load.duration),
        "warmUp": _length(min(DAY, load.duration / 2)),
        "step": f"{STEP}s",
        "load": dict(load.field),
        "workload": workload_field(case.workload, case.resize, load.leak),
        "nodes": {"cpu": 16, "memory": "64Gi", "headroom": "20%", "startUp": "2m"},
        "controllers": {"vpa": {"safetyMargin": case.headroom.margin}},
        "policies": [{"name": policy.name, **policy.build(case)} for policy in policies],
    }


def _length(seconds: float) -> str:
    return format_duration(dt.timedelta(seconds=seconds))


def job_of(load: LoadCase, case: Case, policy: PolicyCase, seed: int) -> Job:
    """Return the run of this policy."""
    scenario = scenario_of(load, case, [policy])
    names = (load.name, case.workload.name, policy.name, case.resize)
    return Job(*names, case.headroom.target, seed, scenario, load.file, load.text)


def load_of(load: LoadCase, seed: int) -> Sequence[float]:
    """Return the load of this seed at each step that counts, in cores of work."""
    case = Case(WORKLOADS[0], headroom(DEFAULT_TARGET), "Recreate")
    with TemporaryDirectory() as folder:
        fields = scenario_of(load, case, [POLICIES[0]])
        scenario = load_scenario(write_scenario(Path(folder) / SCENARIO, fields, load.file, load.text), seed)
    steps = math.ceil(scenario.duration / STEP)
    return [scenario.load.at(at * STEP) for at in range(round(scenario.warm_up / STEP), steps)]


def write_scenario(path: Path, scenario: Mapping[str, Any], file: str, text: str) -> Path:
    """Write the scenario to this path, and its load to the same folder; return the path."""
    if file:
        (path.parent / file).write_text(text)
    path.write_text(yaml.safe_dump(dict(scenario), sort_keys=False, width=110))
    return path


# --- running --------------------------------------------------------------------------------------------------------
def run_all(jobs: Sequence[Job], kept: Path, processes: int, report: Callable[[Run], None]) -> list[Run]:
    """Run all jobs that are not kept in this folder, `processes` at once, and return their results in order. `report`
    gets each run when it ends. Results of finished runs stay if it is interrupted."""
    kept.mkdir(parents=True, exist_ok=True)
    finished: dict[int, Run] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, quiet) as pool:
        futures = {pool.submit(run_one, job, kept): at for at, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                finished[futures[future]] = run = future.result()
                report(run)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [finished[at] for at in range(len(jobs))]


def run_one(job: Job, kept: Path) -> Run:
    """Run the job in this process, or return its kept result."""
    names: dict[str, Any] = {name: getattr(job, name) for name in Names.__struct_fields__}
    code = code_version(HVPA_ROOMS if "hvpa" in job.scenario["policies"][0] else ACTING_ROOMS)
    path = kept / f"{_key(job, code)}.json"
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return Run(**names, outcome=msgspec.json.decode(path.read_bytes(), type=Outcome), kept=True)
    try:
        outcome = _simulated(job, code)
    except (ScenarioError, SimulationError) as error:
        return Run(**names, error=str(error).rpartition(f"{SCENARIO}:")[2])
    except Exception as error:  # a failing policy must not end the others
        return Run(**names, error=f"internal error: {type(error).__name__}: {error}")
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(msgspec.json.encode(outcome))
    part.replace(path)
    return Run(**names, outcome=outcome)


def _key(job: Job, code: str) -> str:
    scenario = {**job.scenario, "name": ""}
    key = json.dumps([scenario, job.text, job.seed, code], sort_keys=True)
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _simulated(job: Job, code: str) -> Outcome:
    began = time.process_time()
    with TemporaryDirectory() as folder:
        path = write_scenario(Path(folder) / SCENARIO, job.scenario, job.file, job.text)
        scenario = load_scenario(path, job.seed)
    (policy,) = scenario.policies
    result = simulate(scenario, policy)
    return _outcome(scenario, result, time.process_time() - began, code)


def _outcome(scenario: Scenario, result: PolicyResult, seconds: float, code: str) -> Outcome:
    series, first = result.series, round(scenario.warm_up / scenario.step)
    replicas = series.replicas[first:]
    return Outcome(
        totals=result.totals,
        cpu_beyond=_beyond(series.used_cpu, series.requested_cpu, first) / 1000,
        memory_beyond=_beyond(series.used_memory, series.requested_memory, first) / GIB,
        replicas_mean=statistics.fmean(replicas),
        replicas_max=max(replicas),
        cpu_mean=statistics.fmean(series.requests[CONTAINER, "cpu"][first:]) / 1000,
        memory_mean=statistics.fmean(series.requests[CONTAINER, "memory"][first:]) / GIB,
        seconds=seconds,
        code=code,
    )


def _beyond(used: Sequence[float], requested: Sequence[float], first: int) -> float:
    """Return the usage beyond the requests from step `first` on, in unit-hours."""
    pairs = zip(used[first:], requested[first:], strict=True)
    return math.fsum(max(0.0, own - asked) for own, asked in pairs) * STEP / 3600


# --- the code's version ---------------------------------------------------------------------------------------------
@cache
def code_version(rooms: tuple[str, ...]) -> str:
    """Return a hash of the code in these packages."""
    digest = hashlib.sha256()
    root = Path(hvpa.__file__).parents[1]
    for room in rooms:
        for file in sorted((root / room).rglob("*.py")):
            digest.update(f"{file.relative_to(root)}\n{essence(file.read_text())}".encode())
    return digest.hexdigest()[:12]


def essence(text: str) -> str:
    """Return the syntax tree of the code without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_text(statement)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
