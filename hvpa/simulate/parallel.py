"""Simulates scenarios under their policies, several at once in processes of their own.

A worker gets the scenario's path and the policy's place in it and loads the rest itself; what it hands back is the
policy's result. A pipe to each worker that is never written into ends it: its other end is closed when the work is
over, interrupted or failed, and by the system when this process is killed.
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
from functools import lru_cache
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any, Final, NamedTuple

from hvpa.simulate.engine import quiet, simulate
from hvpa.simulate.errors import ScenarioError
from hvpa.simulate.model import Policy, PolicyResult, Scenario, SimulationResult
from hvpa.simulate.policy.base import SimulationError
from hvpa.simulate.report.compare import caveats
from hvpa.simulate.scenario.read import load_scenario

Progress = Callable[[float, float], None]
"""Called with the simulated seconds that are done, and how many there are, over all scenarios and policies."""
LOOK_EVERY: Final = 0.2
"""Seconds between looks at the workers' progress."""


class Task(NamedTuple):
    """One policy of one scenario, by their places in the run and in the scenario's file."""

    scenario: int
    path: Path
    seed: int
    policy: int


class Run(NamedTuple):
    """What is to be done."""

    scenarios: tuple[Scenario, ...]
    tasks: tuple[Task, ...]
    seed: int

    def policy(self, task: Task) -> Policy:
        """The policy that the task simulates."""
        return self.scenarios[task.scenario].policies[task.policy]

    @property
    def names(self) -> list[str]:
        """The names of the policies that are simulated, each once, in order."""
        return list(dict.fromkeys(self.policy(task).name for task in self.tasks))

    @property
    def lengths(self) -> list[float]:
        """Simulated seconds of each task."""
        return [self.scenarios[task.scenario].duration for task in self.tasks]


def plan(paths: Sequence[Path], seed: int, only: Sequence[str] = ()) -> Run:
    """Read the scenarios and find what is to be simulated: all policies, or those that `only` names. Raises
    ScenarioError, and SimulationError where a scenario has none of the policies, or none has one of them."""
    scenarios = tuple(load_scenario(path, seed) for path in paths)
    known = {policy.name for scenario in scenarios for policy in scenario.policies}
    for name in only:
        if name not in known:
            raise SimulationError(f"there is no policy {name!r}; there are: {', '.join(sorted(known))}")
    tasks: list[Task] = []
    for number, (path, scenario) in enumerate(zip(paths, scenarios, strict=True)):
        wanted = [at for at, policy in enumerate(scenario.policies) if not only or policy.name in only]
        if not wanted:
            raise SimulationError(f"{path}: none of the policies asked for is in it")
        tasks += (Task(number, path, seed, at) for at in wanted)
    return Run(scenarios, tuple(tasks), seed)


def simulate_all(run: Run, jobs: int, progress: Progress) -> list[SimulationResult]:
    """Simulate all that was planned, `jobs` policies at once; the results in the order of the plan. Raises
    SimulationError. With one job or one task, nothing else is started."""
    jobs = min(jobs, len(run.tasks))
    done = _here(run, progress) if jobs <= 1 else _in_workers(run, jobs, progress)
    return [
        _result(
            scenario,
            run.seed,
            tuple(one for task, one in zip(run.tasks, done, strict=True) if task.scenario == number),
        )
        for number, scenario in enumerate(run.scenarios)
    ]


def _result(scenario: Scenario, seed: int, policies: tuple[PolicyResult, ...]) -> SimulationResult:
    return SimulationResult(
        name=scenario.name,
        description=scenario.description,
        start=scenario.start,
        duration=scenario.duration,
        step=scenario.step,
        warm_up=scenario.warm_up,
        seed=seed,
        notes=(*scenario.notes, *caveats(scenario)),
        policies=policies,
    )


def _one(path: Path, scenario: Scenario, policy: Policy, progress: Callable[[float], None]) -> PolicyResult:
    """One policy's result. Raises SimulationError, whatever went wrong: it must get through a pipe."""
    try:
        return simulate(scenario, policy, progress)
    except SimulationError as error:
        raise SimulationError(f"{path}: {error}") from error
    except Exception as error:
        text = f"internal error: {type(error).__name__}: {error} (--debug shows where)"
        raise SimulationError(f"{path}: policy {policy.name}: {text}") from error


def _here(run: Run, progress: Progress) -> list[PolicyResult]:
    results: list[PolicyResult] = []
    for task in run.tasks:

        def report(seconds: float, before: float = sum(run.lengths[: len(results)])) -> None:
            progress(before + seconds, sum(run.lengths))

        results.append(_one(task.path, run.scenarios[task.scenario], run.policy(task), report))
    return results


# --- several at once ------------------------------------------------------------------------------------------
def _in_workers(run: Run, jobs: int, progress: Progress) -> list[PolicyResult]:
    context = multiprocessing.get_context("spawn")
    tasks, lengths = run.tasks, run.lengths
    seconds: Any = RawArray("d", len(tasks))
    watched, kept = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, _begin, (seconds, watched))
    try:
        futures = [pool.submit(_work, index, task) for index, task in enumerate(tasks)]
        _watch(futures, lambda: progress(min(sum(seconds), sum(lengths)), sum(lengths)))
        results = [future.result() for future in futures]
        pool.shutdown()
        return results
    except BrokenProcessPool:
        raise SimulationError("a process ended before its work was done; is there enough memory?") from None
    finally:
        kept.close()
        pool.shutdown(cancel_futures=True)
        watched.close()


def _watch(futures: Sequence[Future[PolicyResult]], report: Callable[[], None]) -> None:
    """Wait until all are done, or one has failed."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, LOOK_EVERY, FIRST_COMPLETED)
        for future in done:
            future.result()
        report()


_seconds: Any = None
"""In a worker: shared with the process that began it, the simulated seconds done by task."""


def _begin(seconds: Any, watched: Connection) -> None:
    """Begin a worker: Ctrl-C is the first process's to handle."""
    global _seconds
    _seconds = seconds
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    quiet()
    threading.Thread(target=_end_with, args=(watched,), daemon=True).start()


def _end_with(watched: Connection) -> None:
    """End this process, whatever it does, when the pipe's other end is closed."""
    with suppress(OSError):
        watched.poll(None)
    os._exit(1)


def _work(index: int, task: Task) -> PolicyResult:
    try:
        scenario = _loaded(task.path, task.seed)
    except ScenarioError as error:
        raise SimulationError(str(error)) from None

    def progress(seconds: float) -> None:
        _seconds[index] = seconds

    result = _one(task.path, scenario, scenario.policies[task.policy], progress)
    progress(scenario.duration)
    return result


@lru_cache(maxsize=1)
def _loaded(path: Path, seed: int) -> Scenario:
    return load_scenario(path, seed)
