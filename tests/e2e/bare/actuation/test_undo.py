"""The return to the sizes before the last step, as Git or `hvpa undo` demands it, by an operator that starts later. The
command beside a running operator: `test_commands.py`."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml

from hvpa.cli.main import main
from hvpa.core.actuation.undo import ANNOTATION
from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.bare_manifests import merged, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import NewScenario, Start

PAGE: Final = Path(__file__).parents[4] / "docs/operations.md"
BEFORE: Json = {"cpu": "500m", "memory": "500M"}


def documented(step: str) -> Json:
    """The manifest of `docs/operations.md`, with this step."""
    blocks = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL))
    manifest: Json = next(block for block in blocks if "annotations" in block.get("metadata", {}))
    undo = json.loads(manifest["metadata"]["annotations"][ANNOTATION])
    return merged(manifest, {"metadata": {"annotations": {ANNOTATION: json.dumps({**undo, "step": step})}}})


def step(scenario: Scenario, pods: Pods, names: list[str]) -> None:
    """The operator raises the pods' requests, and the kubelets follow."""
    scenario.vpa_recommends(cpu="800m", memory="600M")
    for pod in names:
        scenario.soon(partial(pods.requests, pod, cpu="800m", memory="600M"), f"a resize of {pod}")
        pods.resize(pod)
    scenario.soon(
        lambda: scenario.status["actuation"]["resized"] == f"{len(names)}/{len(names)}", "resized pods"
    )


def test_git_can_undo_and_an_operator_that_starts_later_does_it(
    new_scenario: NewScenario, start: Start, capsys: pytest.CaptureFixture[str], plane: ControlPlane
) -> None:
    """The same fields as in a manifest, without the command. Replicas come back, too, once."""
    operator = start()
    scenario = new_scenario(changes=weight(100) | {"updateStrategy": {"type": "InPlace"}})
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(2)]
    step(scenario, pods, names)
    operator.kill()
    manifest = documented(scenario.status["previousSize"]["time"])
    scenario.api.patch("Hvpa", scenario.name, scenario.namespace, manifest)
    scenario.change_workload({"replicas": 1})
    flags = ("-n", scenario.namespace, "--kubeconfig", str(plane.kubeconfig), "--timeout", "0s")
    assert main(["undo", scenario.name, *flags]) == 1
    assert "the operator has not returned to the former sizes within 0s" in capsys.readouterr().err

    scenario.api.patch("Hvpa", scenario.name, scenario.namespace, manifest)
    start()
    scenario.soon(lambda: scenario.target["spec"]["replicas"] == 2, "the former replicas")
    for pod in names:
        scenario.soon(partial(pods.requests, pod, **BEFORE), f"the return of {pod}")
        pods.resize(pod)
    scenario.soon(lambda: scenario.status["actuation"]["resized"] == "2/2", "both pods returned")
    assert "by hvpa undo (ann)" in scenario.await_condition("Paused", "True", "Paused")["message"]
    scenario.change_workload({"replicas": 1})
    scenario.vpa_recommends(cpu="900m", memory="600M")
    scenario.soon(
        lambda: scenario.status["recommended"]["containers"][0]["requests"]["cpu"] == "900m",
        "a decision after another client has set the replicas",
    )
    assert scenario.target["spec"]["replicas"] == 1
    assert all(pods.requests(pod, **BEFORE) for pod in names)
