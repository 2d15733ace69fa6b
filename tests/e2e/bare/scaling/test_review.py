"""Mode Review on a real API server: a size waits until `hvpa approve` approves it, and then follows within the
margin."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from hvpa.cli.main import main
from hvpa.core.gates.approval import ANNOTATION
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario

pytestmark = pytest.mark.usefixtures("operator")
PAGE: Final = Path(__file__).parents[4] / "docs/review.md"
ALL: Final = {"mode": "Review", "weightBasedScalingIntervals": [{"vpaWeight": 100}]}


def waits(scenario: Scenario) -> dict[str, str]:
    """The wanted requests that wait for approval."""
    blocked = scenario.status.get("lastBlockedScaling", ())
    return {entry["resource"]: entry["wanted"] for entry in blocked if entry["reason"] == "Approval"}


def test_a_size_waits_until_it_is_approved(
    plane: ControlPlane, new_scenario: NewScenario, space: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(line: str) -> str:
        capsys.readouterr()
        assert main([*line.split()[1:], "--kubeconfig", str(plane.kubeconfig)]) == 0
        return capsys.readouterr().out

    scenario = new_scenario(changes=merged(VERTICAL_ONLY, ALL))
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    status, approve = block.replace(" web", f" {scenario.name} -n {space}").splitlines()
    scenario.vpa_recommends(cpu="1", memory="2G")
    scenario.soon(lambda: waits(scenario) == {"cpu": "1", "memory": "2G"}, "both waiting")
    scenario.await_condition("ScalingBlocked", "True", "Approval")
    assert re.search(rf"^{space} +{scenario.name} ", command(status), re.MULTILINE)
    out = command(approve)
    assert re.search(r"approved until .*: app cpu .* -> 1, app memory .* -> 2G", out)
    scenario.await_requests(cpu="1", memory="2G")
    approval = json.loads(scenario.hvpa["metadata"]["annotations"][ANNOTATION])
    named = f'; approved by "{approval["by"]}"'
    scenario.soon(lambda: any(named in event["message"] for event in scenario.events()), "who approved")
    scenario.rollout_completes()
    scenario.vpa_recommends(cpu="1", memory="2150M")  # within the margin
    scenario.await_requests(cpu="1", memory="2150M")
    scenario.rollout_completes()
    scenario.vpa_recommends(cpu="1", memory="4G")
    scenario.soon(lambda: waits(scenario) == {"memory": "4G"}, "the larger size waiting")
    assert "revoked" in command(f"{approve} --revoke")
    scenario.await_requests(cpu="1", memory="2150M")


def test_the_pages_manifests_are_valid(new_scenario: NewScenario, plane: ControlPlane, space: str) -> None:
    hvpa, approval = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL))
    hvpa["metadata"] |= {"namespace": space, **approval["metadata"]}
    created = plane.api.create(hvpa)
    assert created["spec"]["mode"] == "Review"
    plane.api.delete("Hvpa", "web", space)
