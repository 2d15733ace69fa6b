"""Several policies and scenarios at once: the same results in the same order, and no process left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from hvpa.api.values.prices import Prices
from hvpa_lab.simulate import parallel
from hvpa_lab.simulate.parallel import plan, plan_seeds, simulate_all
from hvpa_lab.simulate.policy.base import SimulationError
from hvpa_lab.simulate.report.compare import compare
from hvpa_lab.simulate.report.json import to_json

SCENARIO = """
name: small
duration: {duration}
load: {{formula: "100 + 50 * sin(t / hour)", noise: 0.1}}
workload:
  name: web
  replicas: 2
  containers:
    - {{name: app, requests: {{cpu: 500m, memory: 256Mi}}, cpu: {{perUnit: 10m}}, memory: {{base: 100Mi}}}}
policies:
  - {{name: large, fixed: {{replicas: 9}}}}
  - {{name: small, fixed: {{replicas: 1}}}}
"""


def quiet(done: float, total: float) -> None:
    """Reports nothing."""


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """The command silences its process's logs; other tests want to read theirs."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    """Writes a scenario's file."""

    def write(duration: str = "10m", name: str = "small.yaml", **changes: str) -> Path:
        path = tmp_path / name
        text = SCENARIO.format(duration=duration)
        for old, new in changes.items():
            text = text.replace(old, new)
        path.write_text(text)
        return path

    return write


def names(results: Any) -> list[tuple[str, list[str]]]:
    """What the results are of."""
    return [(result.name, [policy.name for policy in result.policies]) for result in results]


def test_the_names_of_what_is_simulated_are_each_there_once(scenario: Callable[..., Path]) -> None:
    paths = [scenario(), scenario(name="other.yaml", small="other")]
    assert plan(paths, 0).names == ["large", "small", "other"]
    assert plan(paths, 0, ["large"]).names == ["large"]


def test_one_scenario_is_simulated_with_several_seeds(scenario: Callable[..., Path]) -> None:
    path = scenario()
    results = simulate_all(plan_seeds(path, (4, 7), ["small"]), 1, quiet)
    assert [(result.seed, [policy.name for policy in result.policies]) for result in results] == [
        (4, ["small"]), (7, ["small"]),
    ]  # fmt: skip
    (alone,) = simulate_all(plan([path], 7, ["small"]), 1, quiet)
    assert to_json([compare(alone, Prices())]) == to_json([compare(results[1], Prices())])


def test_more_processes_give_the_same_results_in_the_same_order(scenario: Callable[..., Path]) -> None:
    paths = [scenario("2h"), scenario(name="other.yaml", small="other")]
    run = plan(paths, 3)
    reported: list[tuple[float, float]] = []
    alone = simulate_all(run, 1, quiet)
    several = simulate_all(run, 2, lambda done, total: reported.append((done, total)))
    assert names(several) == [("small", ["large", "small"]), ("other", ["large", "other"])]
    there, here = ([compare(result, Prices()) for result in results] for results in (several, alone))
    assert to_json(there, series=True) == to_json(here, series=True)
    assert {result.seed for result in several} == {3}
    assert reported[-1] == (15600.0, 15600.0)
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert multiprocessing.active_children() == []


def test_one_task_needs_no_other_process(
    scenario: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "_in_workers", None)
    reported: list[float] = []
    results = simulate_all(
        plan([scenario()], 0, ["small"]), 8, lambda done, total: reported.append(done / total)
    )
    assert names(results) == [("small", ["small"])]
    assert reported == sorted(reported)
    assert reported[-1] == 1.0


def test_only_the_policies_that_are_named_are_simulated(scenario: Callable[..., Path]) -> None:
    run = plan([scenario()], 0, ["small"])
    assert [task.policy.name for task in run.tasks] == ["small"]


def test_a_policy_that_is_nowhere_is_an_error(scenario: Callable[..., Path]) -> None:
    with pytest.raises(SimulationError, match="there is no policy 'none'; there are: large, small"):
        plan([scenario()], 0, ["none", "small"])


def test_a_scenario_without_the_policies_is_an_error(scenario: Callable[..., Path]) -> None:
    paths = [scenario(), scenario(name="other.yaml", large="other")]
    with pytest.raises(SimulationError, match=r"other\.yaml: it has none of the requested policies"):
        plan(paths, 0, ["large"])


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (SimulationError("policy large: it can't be"), "{path}: policy large: it can't be"),
        (ValueError("a\nb"), "{path}: policy large: internal error: ValueError: a\nb (--debug shows where)"),
    ],
)
def test_an_error_of_a_policy_names_file_and_policy(
    scenario: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, error: Exception, reported: str
) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(parallel, "simulate", fails)
    path = scenario()
    with pytest.raises(SimulationError) as caught:
        simulate_all(plan([path], 0), 1, quiet)
    assert str(caught.value) == reported.format(path=path)
    assert caught.value.__cause__ is error


def test_an_error_in_a_worker_ends_them_all(
    scenario: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also: there are no more workers than tasks, and they inherit nothing."""
    pools: list[tuple[int, str]] = []

    class Pool(ProcessPoolExecutor):
        def __init__(self, jobs: int, context: Any, *args: Any) -> None:
            pools.append((jobs, context.get_start_method()))
            super().__init__(jobs, context, *args)

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Pool)
    run = plan([scenario("5d")], 0)
    (whole,) = run.scenarios
    wrong = replace(whole.policies[1], name="wrong", hvpa={"spec": {"mode": "Now"}})
    run = run._replace(scenarios=(replace(whole, policies=(whole.policies[0], wrong)),))
    with pytest.raises(SimulationError, match=r"small\.yaml: policy wrong: spec"):
        simulate_all(run, 64, quiet)
    assert multiprocessing.active_children() == []
    assert pools == [(2, "spawn")]


def test_ctrl_c_ends_the_workers(scenario: Callable[..., Path]) -> None:
    def interrupted(done: float, total: float) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_all(plan([scenario("5d")], 0), 2, interrupted)
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_is_reported_in_one_line(scenario: Callable[..., Path]) -> None:
    def kill(done: float, total: float) -> None:
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(SimulationError, match="a simulation process ended early"):
        simulate_all(plan([scenario("5d")], 0), 2, kill)
    assert multiprocessing.active_children() == []


# --- what a worker does, in this process -----------------------------------------------------------------------
def test_a_worker_leaves_ctrl_c_to_the_first_process_and_ends_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[int] = []
    ignored: list[Any] = []
    monkeypatch.setattr(parallel, "_seconds", None)
    monkeypatch.setattr(parallel, "_tasks", ())
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(signal, "signal", lambda number, action: ignored.append((number, action)))
    before = set(threading.enumerate())
    watched, kept = multiprocessing.Pipe(duplex=False)
    parallel._begin([0.0], watched, ())
    (waits,) = set(threading.enumerate()) - before
    assert (ignored, waits.daemon, ended) == ([(signal.SIGINT, signal.SIG_IGN)], True, [])
    kept.close()
    waits.join(60)
    assert ended == [1]
    watched.close()
    parallel._end_with(watched)
    assert ended == [1, 1], "also where the pipe is broken"


def test_a_worker_reports_how_far_it_is(
    scenario: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0, 0.0]
    monkeypatch.setattr(parallel, "_seconds", seconds)
    monkeypatch.setattr(parallel, "_tasks", plan([scenario()], 0).tasks)
    done = parallel._work(1)
    assert (done.name, seconds) == ("small", [0.0, 600.0])
