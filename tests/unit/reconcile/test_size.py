"""Large decisions are found before they are made, and made aside."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from builders import build
from hvpa.api.hvpa.trajectory import MOST_INTERVALS
from hvpa.api.hvpa.windows import MOST_WINDOWS
from hvpa.core import Objects, Settings
from hvpa.reconcile.aside import Aside
from hvpa.reconcile.reconciler import POSTPONED_REPORTED, Reconciler
from hvpa.reconcile.size import LARGE, OF_POD, containers_of, parts
from tests.unit.reconcile.fakes import KEY, FakeClock, FakeCluster, FakeTelemetry, drive, scaling_out

T = TypeVar("T")


def with_spec(spec: dict[str, Any], containers: int = 1) -> Objects:
    every = [build.container(f"c-{number}") for number in range(containers)]
    return build.objects(build.hvpa(spec), build.workload(3, every), build.hpa(), pods=[build.pod()])


WINDOW = {"schedule": "0 22 * * *", "duration": "1h"}
FLOOR = {**WINDOW, "minReplicas": 1}
INTERVALS = [{"maxReplicas": n, "maxResources": {"cpu": n}} for n in range(1, MOST_INTERVALS + 1)]
PATH = {"trajectory": {"intervals": INTERVALS}, "weightBasedScalingIntervals": None}


@pytest.mark.parametrize(
    "seen",
    [
        with_spec(
            {"maintenanceWindows": [WINDOW] * MOST_WINDOWS, "hpa": {"schedule": [FLOOR] * MOST_WINDOWS}}
        ),
        with_spec(PATH, containers=50),
        with_spec({}, containers=200),
        build.objects(pods=[build.pod(f"web-{number}") for number in range(LARGE // OF_POD)]),
        replace(build.objects(), hpas=tuple(build.hpa() for _ in range(LARGE // 3))),
    ],
    ids=["windows", "intervals", "containers", "pods", "candidates"],
)
def test_a_large_decision_is_found_before_it_is_made(seen: Objects) -> None:
    assert parts(seen) >= LARGE


def test_usual_decisions_are_small_and_what_is_not_decided_has_no_size() -> None:
    assert parts(with_spec(PATH, containers=3)) < LARGE / 5
    assert parts(with_spec({"maintenanceWindows": [WINDOW] * 5})) < LARGE / 5
    assert parts(replace(build.objects(), workload=None)) == 0


def test_pods_are_counted_no_further_than_is_of_use() -> None:
    looked_at = []

    def pods() -> Any:
        for number in range(10_000):
            looked_at.append(number)
            yield pod

    pod = build.pod()
    assert containers_of(pods()) * OF_POD >= LARGE
    assert len(looked_at) == LARGE // OF_POD


class Noted:
    """Runs aside at once, and says that it took a second."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, work: Callable[[], T], /) -> Awaitable[tuple[T, float]]:
        self.runs += 1

        async def run() -> tuple[T, float]:
            return work(), 1.0

        return run()


def reconciler(objects: Objects, noted: Noted, late: float = 0.0) -> tuple[Reconciler, FakeCluster]:
    cluster = FakeCluster(objects)
    return Reconciler(cluster, FakeClock(), Settings(), FakeTelemetry(), lambda key: late, noted), cluster


def test_a_large_decision_is_made_aside_and_its_cost_is_reported() -> None:
    noted = Noted()
    large, cluster = reconciler(with_spec({}, containers=200), noted)
    assert drive(large.reconcile(KEY)).aside == 1.0
    assert noted.runs == 1
    assert "status" in [name for name, _ in cluster.writes]
    small, _ = reconciler(scaling_out(), noted)
    assert drive(small.reconcile(KEY)).aside == 0.0
    assert noted.runs == 1


def test_a_decision_aside_that_fails_costs_as_well() -> None:
    noted = Noted()
    large, cluster = reconciler(with_spec(PATH, containers=60), noted)
    cluster.failures["status"] = RuntimeError("no")
    result = drive(large.reconcile(KEY))
    assert (result.outcome, result.aside) == ("crashed", 1.0)


async def test_aside_is_a_thread_of_its_own() -> None:
    aside = Aside()
    try:
        thread, seconds = await aside(threading.current_thread)
        assert thread is not threading.current_thread()
        assert seconds >= 0.0
        order: list[str] = []

        def slow() -> None:
            while not order:  # until the event loop has gone on
                pass

        task = asyncio.ensure_future(aside(slow))
        await asyncio.sleep(0)
        order.append("the event loop")
        await task
    finally:
        aside.close()


@pytest.mark.parametrize("late", [0.0, POSTPONED_REPORTED - 0.1, POSTPONED_REPORTED])
def test_a_decision_that_came_late_is_reported_in_the_status(late: float) -> None:
    late_reconciler, cluster = reconciler(scaling_out(), Noted(), late)
    drive(late_reconciler.reconcile(KEY))
    (patch,) = [body for name, body in cluster.writes if name == "status"]
    ready = next(entry for entry in patch["conditions"] if entry["type"] == "Ready")
    assert ("this decision is late" in ready["message"]) == (late >= POSTPONED_REPORTED)
