"""SIGKILL at each write of a step in place: afterwards replicas and pods are where an undisturbed run brings them, and
nothing was decided twice. What comes after the first resize is in `test_later_crashes.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.fault_points import POINTS, VARIABLE
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import merged, weight
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import USER
from tests.e2e.bare.outcome import dying

WRITES = (
    "patch-hvpas-status",
    "patch-deployments-scale",
    "patch-pods-resize",
    "patch-hvpasizes",
    "create-hvpasizes",
)
SECOND = ("before-patch-pods-resize:2", "after-patch-pods-resize:2")
"""One pod is resized, and the other one not yet; or both, and nothing is known of it."""
CASES = (*(point for point in POINTS if point.partition("-")[2] in WRITES), *SECOND)
BOTH_AXES: Json = {"updateStrategy": {"type": "InPlace"}, "mode": "Paused"}
PODS = 2


@pytest.fixture(scope="module")
def scenarios(plane: ControlPlane, account: Path) -> Iterator[dict[str, Scenario]]:
    """All cases, after an operator has died at each one's point and another one has gone on."""
    made = {case: _scenario(plane) for case in CASES}
    with Operator(plane, account, name="first survivor"):
        for scenario in made.values():
            scenario.create(wait=False)
        for scenario in made.values():
            scenario.await_owned()
            pods = Pods(scenario)
            for number in range(PODS):
                pods.start(str(number))
            scenario.hpa_wants(6)
            scenario.vpa_recommends(cpu="1500m", memory="1500M")
        for scenario in made.values():
            scenario.soon(
                partial(scenario.recommends, 4, cpu="1", memory="1G"), "a recommendation on both axes"
            )
        _with_older_sizes([scenario for case, scenario in made.items() if "patch-hvpasizes" in case])
    operators = [
        Operator(plane, account, "--namespace", scenario.namespace, env={VARIABLE: case}, name=case)
        for case, scenario in made.items()
    ]
    for scenario in made.values():
        scenario.change({"mode": "Apply"})
    with dying(operators):
        pass
    with Operator(plane, account, name="last survivor"):
        yield made
    for scenario in made.values():
        scenario.delete()


def _with_older_sizes(scenarios: list[Scenario]) -> None:
    """Pods of these are created with another size, which was decided before."""
    for scenario in scenarios:
        old = f"{scenario.name}; app 100m: :"
        kind = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "HvpaSizes"}
        metadata = {"name": "hvpa", "namespace": scenario.namespace}
        scenario.api.create({**kind, "metadata": metadata, "sizes": {_owner(scenario): old}})


def _scenario(plane: ControlPlane) -> Scenario:
    space = new_namespace(plane.api, "resize")
    return Scenario(plane.api, space, "app", changes=merged(weight(50), BOTH_AXES))


def _owner(scenario: Scenario) -> str:
    return f"Deployment.apps/{scenario.name}"


def _new_pods_have(scenario: Scenario, size: str) -> bool:
    sizes = scenario.api.find("HvpaSizes", "hvpa", scenario.namespace)
    return sizes is not None and bool(sizes["sizes"].get(_owner(scenario)) == f"{scenario.name}; {size}")


def test_every_write_in_place_is_died_at_before_and_after() -> None:
    """Of the kinds of workloads one stands for all, as in `crashes/test_writes.py`, which has the other writes."""
    in_place = {point for point in POINTS if point.endswith(("-deployments-scale", "-resize", "-hvpasizes"))}
    assert in_place <= set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_after_a_sigkill_replicas_and_pods_are_where_an_undisturbed_run_brings_them(
    plane: ControlPlane, scenarios: dict[str, Scenario], case: str
) -> None:
    scenario, pods = scenarios[case], Pods(scenarios[case])
    scenario.await_replicas(4)
    for number in range(PODS):
        name = f"app-{number}"
        scenario.soon(partial(pods.requests, name, cpu="1", memory="1G"), f"a resize of {name}")
    for number in range(PODS, 4):  # their controller creates the pods that are missing
        pods.start(str(number))
    scenario.soon(partial(_new_pods_have, scenario, "app 1:2 1G:2G"), "the size of new pods")
    desired = scenario.status["desired"]
    assert desired["replicas"] == 4
    assert desired["containers"][0]["requests"] == {"cpu": "1", "memory": "1G"}
    assert scenario.requests == {"cpu": "500m", "memory": "500M"}  # the template is not touched
    assert len(scenario.patches(plane.audit, USER)) == 1
    times = [entry["count"] for entry in scenario.events() if entry["reason"].startswith("Scaled")]
    assert all(count == 1 for count in times)
