"""`hvpa explain` on live objects says what the operator does, and writes nothing."""

from __future__ import annotations

import contextlib
import io
import json

from hvpa.cli.main import main
from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.bare_manifests import merged, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario, Start


def run(plane: ControlPlane, scenario: Scenario, *args: str) -> str:
    """What `hvpa explain` prints of a scenario's Hvpa, run in this process."""
    output, errors = io.StringIO(), io.StringIO()
    where = (scenario.name, "-n", scenario.namespace, "--kubeconfig", str(plane.kubeconfig))
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = main(["explain", *where, *args])
    assert code == 0, errors.getvalue()
    return output.getvalue()


def explained(plane: ControlPlane, scenario: Scenario) -> Json:
    answered: Json = json.loads(run(plane, scenario, "-o", "json"))
    return answered


def agrees_with_status(answer: Json, scenario: Scenario) -> None:
    """`hvpa explain` shows of a settled Hvpa what its status has."""
    status = scenario.status
    keys: tuple[str, ...] = ("type", "status", "reason", "message")
    for condition, other in zip(answer["conditions"], status["conditions"], strict=True):
        assert {key: condition[key] for key in keys} == {key: other[key] for key in keys}
    keys = ("axis", "direction", "reason", "container", "resource", "current", "wanted", "until")
    blocked = [{key: entry.get(key) for key in keys} for entry in status.get("lastBlockedScaling", [])]
    # The status has replicas as text, as it has quantities.
    entries = [
        {**entry, "current": str(entry["current"]), "wanted": str(entry["wanted"])}
        for entry in answer["blocked"]
    ]
    assert [{key: entry.get(key) for key in keys} for entry in entries] == blocked
    assert answer["recommended"]["replicas"] == status["recommended"]["replicas"]
    assert answer["weights"] == {"hpa": status["hpaWeight"], "vpa": status["vpaWeight"]}


def test_it_says_what_the_operator_then_does_and_writes_nothing(
    plane: ControlPlane, new_scenario: NewScenario, start: Start, space: str
) -> None:
    operator = start("--namespace", space)
    held = {"vpa": {"scaleUp": {"minChange": {"memory": {"value": "2G"}}}}}
    scenario = new_scenario(changes=merged(weight(50), held))
    operator.kill()
    scenario.hpa_wants(6)
    scenario.vpa_recommends(cpu="1500m", memory="1500M")
    mark = plane.audit.mark()
    answer = explained(plane, scenario)
    requests = [request for request in plane.audit.requests(mark) if request.user_agent == "hvpa-explain"]
    assert requests
    assert not [request for request in requests if request.is_write]

    assert answer["changes"] is True
    assert answer["replicas"] == {"current": 2, "hpa": 6, "target": 4}
    operator.start()
    scenario.await_replicas(answer["replicas"]["target"])
    scenario.await_requests(cpu=answer["containers"]["app"]["requests"]["cpu"])
    assert scenario.resources() == answer["containers"]["app"]
    scenario.rollout_completes()
    scenario.await_blocked("MinChange", "vertical")

    def settled() -> Json:
        """The explanation once the operator has reported all, too."""
        after = explained(plane, scenario)
        assert after["changes"] is False
        agrees_with_status(after, scenario)
        return after

    assert scenario.soon(settled, "the explanation is what the status has")["replicas"]["target"] == 4
    assert "MinChange" in run(plane, scenario)
