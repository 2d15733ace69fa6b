"""A LimitRange that allows no larger pods, with resizes in place: its words are reported, what it allows is set, and
with `blend: Trajectory` replicas serve the demand. The operator's clock is moved: a size is given up after three
refusals, which take three minutes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.operator.shifted_clock import VARIABLE
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged, request, trajectory, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import NewScenario

IN_PLACE: Json = {"updateStrategy": {"type": "InPlace"}}


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the operator's clock: by how many seconds it is ahead."""
    return tmp_path_factory.mktemp("clock") / "offset"


@pytest.fixture(scope="module", autouse=True)
def operator(plane: ControlPlane, account: Path, clock: Path) -> Iterator[Operator]:
    with Operator(plane, account, env={VARIABLE: str(clock)}) as running:
        yield running


def allow(scenario: Scenario, **most: str) -> None:
    """No container of the namespace may have more."""
    limits = {"limits": [{"type": "Container", "max": most}]}
    metadata = {"name": "most", "namespace": scenario.namespace}
    scenario.api.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits})


def test_what_it_refuses_is_reported_in_its_words_and_what_it_allows_is_set(
    new_scenario: NewScenario,
) -> None:
    scenario = new_scenario(changes=merged(merged(VERTICAL_ONLY, weight(100)), IN_PLACE))
    pods = Pods(scenario)
    name = pods.start("0")
    allow(scenario, cpu="1500m")
    scenario.vpa_recommends(cpu="800m", memory="500M")
    message = scenario.await_condition("Ready", "False", "PodsNotResized")["message"]
    assert "maximum cpu usage per Container is 1500m, but limit is 1600m" in message
    assert pods.requests(name, cpu="500m", memory="500M")
    scenario.vpa_recommends(cpu="750m", memory="500M")
    scenario.soon(partial(pods.requests, name, cpu="750m", memory="500M"), "the largest size that it allows")
    assert pods.spec(name)["limits"] == {"cpu": "1500m", "memory": "1G"}
    pods.resize(name)
    scenario.await_ready()


def test_replicas_serve_in_place_of_larger_pods(
    operator: Operator, new_scenario: NewScenario, clock: Path
) -> None:
    """One pod of a core uses 5, for which the path has 3 of 1667m: 5 of one core serve."""
    path = merged(trajectory(least={"cpu": "1"}), weight(50))
    scenario = new_scenario(create=False, replicas=1, changes={**merged(path, IN_PLACE), "mode": "Paused"})
    request(scenario.workload, cpu="1", memory="500M")
    scenario.create()
    allow(scenario, cpu="1200m")
    name = Pods(scenario).start("0")
    scenario.under(5000)
    scenario.soon(partial(scenario.recommends, 3, cpu="1667m"), "a recommendation")
    scenario.change({"mode": "Apply"})

    def decided_at(seconds: int) -> None:
        """Decided anew, with the clock so far ahead."""
        new = clock.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(clock)
        scenario.change({"hpa": {"scaleDown": {"stabilizationDuration": f"{seconds + 1}s"}}})

    def refusals() -> int:
        lines = [each for each in operator.log_lines() if each.get("namespace") == scenario.namespace]
        return sum("limit is 1667m" in each.get("error", "") for each in lines)

    for count, seconds in enumerate((0, 65, 190), 1):
        decided_at(seconds)
        scenario.soon(lambda count=count: refusals() == count, f"refusal {count}")  # type: ignore[misc]
    record = scenario.soon(lambda: scenario.status["rolledBack"], "the size is given up")
    assert "maximum cpu usage per Container is 1200m" in record["message"]
    decided_at(250)
    scenario.await_replicas(5)
    scenario.await_blocked("RolledBack", "vertical", "up")
    assert Pods(scenario).requests(name, cpu="1", memory="500M")
