"""SIGKILL at each write of a rollout that is tried on its first pod, held, and taken back: another operator goes on,
and nothing is written or counted twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.fault_points import VARIABLE
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged, weight
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import USER

WRITES = ("begun", "held", "taken back")
"""The patches of the Deployment, in their order."""
CASES = [
    f"{when}-patch-deployments:{number}"
    for number in range(1, len(WRITES) + 1)
    for when in ("before", "after")
]
TRIED: Json = {"mode": "Paused", "updateStrategy": {"canary": {"pods": 1, "duration": "10m"}}}


class Case:
    """An Hvpa in a namespace of its own, an operator that dies at a write, and the one that follows it."""

    def __init__(self, plane: ControlPlane, account: Path, case: str) -> None:
        changes = merged(merged(VERTICAL_ONLY, weight(100)), TRIED)
        self.one = Scenario(plane.api, new_namespace(plane.api, "tried"), changes=changes)
        self.pods = Pods(self.one)
        self._start: Callable[..., Operator] = lambda name, **env: Operator(
            plane, account, "--namespace", self.one.namespace, name=name, env=env
        )
        self.operator = self._start(case, **{VARIABLE: case})
        self.has_died = False

    def soon(self, holds: Callable[[], bool], what: str) -> None:
        """Wait, with the next operator once the first has died."""

        def look() -> bool:
            if not self.has_died and (code := self.operator.process.returncode) is not None:
                assert code == -9, self.operator.process.tail()
                self.has_died, self.operator = True, self._start("survivor")
                self.operator.start()
            return holds()

        wait_for(look, 90, what)

    def spec(self) -> Json:
        return dict(self.one.target["spec"])


@pytest.fixture(scope="module")
def ended(plane: ControlPlane, account: Path) -> Iterator[dict[str, Case]]:
    """All cases once their rollout has been taken back."""
    cases = {case: Case(plane, account, case) for case in CASES}
    with Operator(plane, account, name="first survivor"):
        for case in cases.values():
            case.one.create(wait=False)
        for case in cases.values():
            case.one.await_owned()
            for number in range(2):
                case.pods.start(str(number))
            case.one.vpa_recommends(cpu="500m", memory="400M")
        for case in cases.values():
            case.one.soon(lambda case=case: "recommended" in case.one.status, "a recommendation")  # type: ignore[misc]
    try:
        for case in cases.values():
            case.operator.start(wait=False)
            case.one.change({"mode": "Apply"})
        for case in cases.values():
            _roll_out(case)
        yield cases
    finally:
        for case in cases.values():
            case.operator.kill()


def _roll_out(case: Case) -> None:
    scenario, pods = case.one, case.pods
    case.soon(lambda: scenario.requests["memory"] == "400M", "a smaller size in the template")
    first = pods.start("new")
    _replaced(scenario, 1)
    case.soon(lambda: bool(case.spec().get("paused")), "the rollout is held")
    _replaced(scenario, 1)
    pods.ran_out_of_memory(first)
    case.soon(lambda: scenario.requests["memory"] == "500M", "the size before in the template")
    case.soon(lambda: "rolledBack" in scenario.status, "what was taken back in the status")
    case.soon(lambda: case.has_died, "the death of the first operator")


def _replaced(scenario: Scenario, updated: int) -> None:
    """The Deployment's controller has seen the present spec, and so many pods are new."""
    workload = scenario.target
    status = {
        "observedGeneration": workload["metadata"]["generation"],
        "replicas": workload["spec"]["replicas"] + 1,
        "updatedReplicas": updated,
        "readyReplicas": workload["spec"]["replicas"] + 1,
        "availableReplicas": workload["spec"]["replicas"] + 1,
    }
    scenario.api.patch_status(scenario.kind, scenario.name, scenario.namespace, status)


@pytest.mark.parametrize("case", CASES)
def test_after_a_sigkill_the_rollout_is_tried_held_and_taken_back_once(
    plane: ControlPlane, ended: dict[str, Case], case: str
) -> None:
    scenario, spec = ended[case].one, ended[case].spec()
    assert not spec.get("paused")
    record = scenario.status["rolledBack"]
    assert (record["count"], record["changes"][0]["previous"]) == (1, 500_000_000)
    scenario.await_blocked("RolledBack", "vertical", "down")
    assert len(scenario.patches(plane.audit, USER)) == len(WRITES)
