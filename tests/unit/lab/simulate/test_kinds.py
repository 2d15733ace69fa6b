"""Workloads of all kinds in a simulation: how many pods they have, and how those come to another size."""

from __future__ import annotations

from pathlib import Path

import pytest

from hvpa_lab.simulate.engine import simulate
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.model import PolicyResult
from hvpa_lab.simulate.scenario.read import load_scenario

VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "Rollout": "argoproj.io/v1alpha1",
}
HPA = """
      hpa:
        deploy: true
        template:
          spec:
            maxReplicas: 9
            metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]
"""
SCENARIO = """
name: kinds
duration: 3h
load: {{formula: "600 * pulse(t, hour, 4 * hour)"}}
workload:
  kind: {kind}
  apiVersion: {version}
  name: web
  replicas: 2
  resize: {resize}
  containers:
  - name: app
    requests: {{cpu: 500m, memory: 512Mi}}
    cpu: {{base: 50m, perUnit: 2m}}
    memory: {{base: 300Mi}}
policies:
- name: hvpa
  hvpa:
    apiVersion: autoscaling.k8s.io/v1alpha1
    kind: Hvpa
    metadata: {{name: web}}
    spec:
      targetRef: {{apiVersion: {version}, kind: {kind}, name: web}}
      updateStrategy: {{type: {strategy}}}
      vpa: {{deploy: true, template: {{spec: {{}}}}}}
      weightBasedScalingIntervals: [{{vpaWeight: 0.5}}]{hpa}
"""


def run(
    folder: Path, kind: str, resize: str = "InPlace", strategy: str = "InPlace", hpa: str = HPA
) -> PolicyResult:
    """A simulation whose load makes the VPA recommend more than the pods have."""
    path = folder / "scenario.yaml"
    text = SCENARIO.format(kind=kind, version=VERSIONS[kind], resize=resize, strategy=strategy, hpa=hpa)
    path.write_text(text)
    scenario = load_scenario(path, 0)
    return simulate(scenario, scenario.policies[0])


@pytest.mark.parametrize("kind", [kind for kind in VERSIONS if kind != "DaemonSet"])
def test_replicas_follow_the_load_and_pods_are_resized_in_place(tmp_path: Path, kind: str) -> None:
    result = run(tmp_path, kind)
    assert result.series.replicas[-1] > 2
    assert result.series.requests["app", "cpu"][-1] != 500
    assert result.totals.restarts == 0


def test_a_daemon_set_keeps_its_pods_and_replaces_one_at_a_time(tmp_path: Path) -> None:
    result = run(tmp_path, "DaemonSet", "Recreate", "Rollout", hpa="")
    assert set(result.series.replicas) == {2}
    assert result.totals.restarts >= 2
    assert max(result.series.ready) == 2, "no pod comes before another one goes"


@pytest.mark.parametrize(("kind", "is_replaced"), [("Deployment", True), ("ReplicaSet", False)])
def test_a_replica_set_replaces_no_pod_for_another_template(
    tmp_path: Path, kind: str, is_replaced: bool
) -> None:
    result = run(tmp_path, kind, "Recreate", "Rollout", hpa="")
    assert bool(result.totals.restarts) is is_replaced


def test_a_custom_kind_whose_template_would_be_changed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"updateStrategy\.type: must be InPlace: the pod template of a Rollout"
    ):
        run(tmp_path, "Rollout", strategy="Rollout")


def test_an_hpa_alone_on_a_daemon_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    text = SCENARIO.format(kind="DaemonSet", version="apps/v1", resize="InPlace", strategy="InPlace", hpa="")
    path.write_text(f"{text}- name: hpa\n  hpa: {{maxReplicas: 3}}\n")
    with pytest.raises(ScenarioError, match="hpa: a DaemonSet has no replicas that an HPA could set"):
        load_scenario(path, 0)


def test_an_hvpa_of_another_group_with_the_same_kind_is_another_workload(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    text = SCENARIO.format(
        kind="Rollout", version="argoproj.io/v1alpha1", resize="InPlace", strategy="InPlace", hpa=""
    )
    path.write_text(
        text.replace("targetRef: {apiVersion: argoproj.io", "targetRef: {apiVersion: example.com")
    )
    with pytest.raises(ScenarioError, match=r"must be the workload, Rollout\.argoproj\.io web"):
        load_scenario(path, 0)
