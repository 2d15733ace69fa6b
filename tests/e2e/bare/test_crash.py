"""SIGKILL at each named fault point (`hvpa/kube/faults.py`): afterwards everything stands as after an undisturbed run.

Two phases have their own points: setting up (status, mailbox, owned objects, Events), and one step on both axes at once
(workload, status, Events). So that both are one decision each, the Hvpas are paused while recommendations are written.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hvpa.kube.faults import POINTS, VARIABLE
from tests.e2e.bare.conftest import USER
from tests.e2e.bare.manifests import weight
from tests.e2e.bare.stage import Stage, new_namespace
from tests.e2e.world.controlplane import ControlPlane
from tests.e2e.world.kube import Json, wait_for
from tests.e2e.world.operator import Operator

SETTING_UP = [point for point in POINTS if not point.endswith("workload-patch")]
STEPPING = [point for point in POINTS if not point.endswith(("mailbox", "owned"))]
UNDISTURBED = "undisturbed"
CASES = [
    UNDISTURBED,
    *(f"{point}, setting up" for point in SETTING_UP),
    *(f"{point}, stepping" for point in STEPPING),
]


class Cast:
    """One stage per case, each in a namespace of its own, and operators for some of them."""

    def __init__(self, plane: ControlPlane, account: Path) -> None:
        self.plane = plane
        self.account = account
        changes = {**weight(50), "mode": "Paused"}
        self.stages = {
            case: Stage(plane.api, new_namespace(plane.api, "crash"), "app", changes=changes)
            for case in CASES
        }

    def operator(self, cases: Iterable[str], point: str | None = None) -> Operator:
        namespaces = [self.stages[case].namespace for case in cases]
        flags = [flag for name in namespaces for flag in ("--namespace", name)]
        env = {VARIABLE: point} if point else {}
        return Operator(self.plane, self.account, *flags, env=env, name=point or "plain")

    def killed(self, phase: str) -> None:
        """An operator for each case of this phase: each dies at its point."""
        dying = {case: self.operator([case], case.split(",")[0]) for case in CASES if case.endswith(phase)}
        try:
            for one in dying.values():
                one.start(wait=False)
            for case, one in dying.items():
                assert one.process.wait(60) == -9, (case, one.process.tail())
        finally:
            for one in dying.values():
                one.kill()


@pytest.fixture(scope="module")
def cast(plane: ControlPlane, account: Path) -> Iterator[Cast]:
    """All cases, played to their ends."""
    cast = Cast(plane, account)
    for stage in cast.stages.values():
        stage.create(wait=False)
    cast.killed("setting up")
    with cast.operator(CASES):
        for stage in cast.stages.values():
            stage.await_owned()
            stage.hpa_wants(6)
            stage.vpa_recommends(cpu="1500m", memory="1500M")
        for stage in cast.stages.values():
            stage.soon(partial(ready_to_step, stage), "a recommendation on both axes")
    for stage in cast.stages.values():
        stage.change({"mode": "Apply"})
    cast.killed("stepping")
    with cast.operator(CASES) as survivor:
        for stage in cast.stages.values():
            stage.await_condition("Ready", "True", "Reconciled")
            with contextlib.suppress(TimeoutError):  # the case's own test says what is amiss
                stage.soon(partial(step_told, stage), "the step in the status")
        wait_for(lambda: survivor.metric("hvpa_queue_depth") == 0, 20, "an empty queue")
        yield cast
    for stage in cast.stages.values():
        stage.delete()


def ready_to_step(stage: Stage) -> bool:
    recommended = stage.status["recommended"]
    requests = {"cpu": "1", "memory": "1G"}
    return recommended["replicas"] == 4 and bool(recommended["containers"][0]["requests"] == requests)


def step_told(stage: Stage) -> bool:
    return spent(stage.status["axes"]) == spent(stage.record)


def spent(axes: Json) -> list[Any]:
    return [axes["horizontal"]["spent"], axes["vertical"]["spent"]]


def outcome(stage: Stage) -> Json:
    """All that is left behind, without names and times."""
    hvpa, api, namespace = stage.hvpa, stage.api, stage.namespace
    status = hvpa["status"]
    return {
        "workload": stage.target["spec"],
        "generation": stage.target["metadata"]["generation"],
        "spent": spent(status["axes"]),
        "clocks": [
            status["axes"][axis]["lastScaleTime"] == stage.record[axis]["lastScaleTime"]
            for axis in ("horizontal", "vertical")
        ],
        "mailbox": hvpa["spec"]["replicas"],
        "conditions": {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]},
        "recommended": status["recommended"],
        "blocked": status.get("lastBlockedScaling"),
        "error": status.get("lastError"),
        "hpas": [one["spec"] for one in api.list("HorizontalPodAutoscaler", namespace)],
        "vpas": [one["spec"] for one in api.list("VerticalPodAutoscaler", namespace)],
    }


@pytest.mark.parametrize("case", CASES)
def test_after_a_sigkill_all_is_as_in_an_undisturbed_run_and_one_step_was_taken(
    cast: Cast, case: str
) -> None:
    stage = cast.stages[case]
    assert outcome(stage) == outcome(cast.stages[UNDISTURBED])
    assert (stage.replicas, stage.requests) == (4, {"cpu": "1", "memory": "1G"})
    patches = cast.plane.audit.requests(
        user=USER, resource="deployments", namespace=stage.namespace, code=200
    )
    assert [patch.verb for patch in patches if patch.is_write] == ["patch"]
    told = Counter((one["reason"], one["message"], one["count"]) for one in stage.events())
    steps = {key: count for key, count in told.items() if key[0] in ("ScaledOut", "ScaledUp")}
    assert set(steps.values()) <= {1}
    assert {key[2] for key in steps} <= {1}
