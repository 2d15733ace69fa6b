"""Simulates scenarios and their policies in parallel processes.

A worker gets a scenario and a policy, and returns the policy's result. Each worker watches a pipe that is never written
to. The other end is closed when the work is done, interrupted or failed, or when this process is killed; the worker
then ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any, Final, NamedTuple

from hvpa_lab.simulate.engine import quiet, simulate
from hvpa_lab.simulate.model import Policy, PolicyResult, Scenario, SimulationResult
from hvpa_lab.simulate.policy.base import SimulationError
from hvpa_lab.simulate.report.compare import caveats
from hvpa_lab.simulate.scenario.read import load_scenario

Progress = Callable[[float, float], None]
"""Called with the number of simulated seconds so far and in total, over all scenarios and policies."""
LOOK_EVERY: Final = 0.2
"""Seconds between two progress checks of the workers."""


class Task(NamedTuple):
    """A policy of a scenario, and the scenario's file."""

    path: Path
    scenario: Scenario
    policy: Policy


class Run(NamedTuple):
    """The planned work: scenario files, their scenarios (each with a seed), and the policies to simulate."""

    paths: tuple[Path, ...]
    scenarios: tuple[Scenario, ...]
    seeds: tuple[int, ...]

    @property
    def tasks(self) -> list[Task]:
        """All tasks, in order."""
        read = zip(self.paths, self.scenarios, strict=True)
        return [Task(path, scenario, policy) for path, scenario in read for policy in scenario.policies]

    @property
    def names(self) -> list[str]:
        """The names of the policies, each once, in order."""
        return list(dict.fromkeys(task.policy.name for task in self.tasks))


def plan(paths: Sequence[Path], seed: int, only: Sequence[str] = ()) -> Run:
    """Reads the scenarios and returns the planned work: all policies, or those named in `only`. Raises ScenarioError.
    Raises SimulationError if a scenario has none of these policies, or a policy is in no scenario."""
    return _plan(paths, [seed] * len(paths), only)


def plan_seeds(path: Path, seeds: Sequence[int], only: Sequence[str] = ()) -> Run:
    """Reads a scenario with each of the seeds. Raises the same errors as `plan`."""
    return _plan([path] * len(seeds), seeds, only)


def _plan(paths: Sequence[Path], seeds: Sequence[int], only: Sequence[str]) -> Run:
    read = [load_scenario(path, seed) for path, seed in zip(paths, seeds, strict=True)]
    run = Run(tuple(paths), tuple(read), tuple(seeds))
    for name in only:
        if name not in run.names:
            raise SimulationError(f"there is no policy {name!r}; there are: {', '.join(sorted(run.names))}")
    scenarios = []
    for path, scenario in zip(paths, run.scenarios, strict=True):
        wanted = tuple(policy for policy in scenario.policies if not only or policy.name in only)
        if not wanted:
            raise SimulationError(f"{path}: it has none of the requested policies")
        scenarios.append(replace(scenario, policies=wanted))
    return run._replace(scenarios=tuple(scenarios))


def simulate_all(run: Run, jobs: int, progress: Progress) -> list[SimulationResult]:
    """Simulates all planned work, `jobs` policies at a time, and returns the results in the order of the plan. Raises
    SimulationError. With a single job or task it starts no process."""
    tasks = run.tasks
    jobs = min(jobs, len(tasks))
    done = iter(_here(tasks, progress) if jobs <= 1 else _in_workers(tasks, jobs, progress))
    return [
        SimulationResult(
            name=scenario.name,
            description=scenario.description,
            start=scenario.start,
            duration=scenario.duration,
            step=scenario.step,
            warm_up=scenario.warm_up,
            seed=seed,
            notes=(*scenario.notes, *caveats(scenario)),
            policies=tuple(next(done) for _ in scenario.policies),
        )
        for scenario, seed in zip(run.scenarios, run.seeds, strict=True)
    ]


def _simulate_task(task: Task, progress: Callable[[float], None]) -> PolicyResult:
    """Returns a policy's result. Every error becomes a SimulationError, because errors pass through a pipe."""
    path, scenario, policy = task
    try:
        return simulate(scenario, policy, progress)
    except SimulationError as error:
        raise SimulationError(f"{path}: {error}") from error
    except Exception as error:
        text = f"internal error: {type(error).__name__}: {error} (--debug shows where)"
        raise SimulationError(f"{path}: policy {policy.name}: {text}") from error


def _total(tasks: Sequence[Task]) -> float:
    """Returns the simulated seconds of these tasks."""
    return sum(task.scenario.duration for task in tasks)


def _here(tasks: Sequence[Task], progress: Progress) -> list[PolicyResult]:
    def simulate_at(at: int) -> PolicyResult:
        before = _total(tasks[:at])
        return _simulate_task(tasks[at], lambda seconds: progress(before + seconds, _total(tasks)))

    return [simulate_at(at) for at in range(len(tasks))]


# --- parallel processes ---------------------------------------------------------------------------------------
def _in_workers(tasks: Sequence[Task], jobs: int, progress: Progress) -> list[PolicyResult]:
    context = multiprocessing.get_context("spawn")
    seconds: Any = RawArray("d", len(tasks))
    watched, kept = context.Pipe(duplex=False)
    # The queue carries numbers alone: before Python 3.11.5, a worker that died while a long message was written to it
    # left the pool waiting for ever (CPython issue 94777).
    pool = ProcessPoolExecutor(jobs, context, _begin, (seconds, watched, tasks))
    try:
        futures = [pool.submit(_work, index) for index in range(len(tasks))]
        _watch(futures, lambda: progress(min(sum(seconds), _total(tasks)), _total(tasks)))
        results = [future.result() for future in futures]
        pool.shutdown()
        return results
    except BrokenProcessPool:
        raise SimulationError("a simulation process ended early; is there enough memory?") from None
    finally:
        kept.close()
        pool.shutdown(cancel_futures=True)
        watched.close()


def _watch(futures: Sequence[Future[PolicyResult]], report: Callable[[], None]) -> None:
    """Waits until all tasks are done or a task has failed."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, LOOK_EVERY, FIRST_COMPLETED)
        for future in done:
            future.result()
        report()


_seconds: Any = None
"""In a worker: simulated seconds by task, shared with the parent process."""
_tasks: Sequence[Task] = ()
"""In a worker: all tasks."""


def _begin(seconds: Any, watched: Connection, tasks: Sequence[Task]) -> None:
    """Starts a worker. The parent process handles Ctrl-C."""
    global _seconds, _tasks
    _seconds, _tasks = seconds, tasks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    quiet()
    threading.Thread(target=_end_with, args=(watched,), daemon=True).start()


def _end_with(watched: Connection) -> None:
    """Ends this process immediately when the pipe's other end is closed."""
    with suppress(OSError):
        watched.poll(None)
    os._exit(1)


def _work(index: int) -> PolicyResult:
    def progress(seconds: float) -> None:
        _seconds[index] = seconds

    return _simulate_task(_tasks[index], progress)
