"""Small scenarios for tests, read from files as users write them."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from hvpa_lab.simulate.load.series import StepLoad
from hvpa_lab.simulate.model import Scenario
from hvpa_lab.simulate.scenario.read import load_scenario

SMALL = """
name: Small
load: {formula: "5"}
duration: 1m
step: 15s
workload:
  name: web
  containers: [{name: app}]
policies: [{name: As it is, fixed: {}}]
"""


def scenario(folder: Path, text: str, seed: int = 0) -> Scenario:
    path = folder / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(path, seed)


def values(found: Scenario) -> list[float]:
    return list(cast(StepLoad, found.load).values)


HVPA = """
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata: {name: mine, creationTimestamp: null, namespace: null}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  hpa: {deploy: true, template: {spec: {maxReplicas: 3, metrics: [
    {type: Pods, pods: {metric: {name: load}, target: {type: AverageValue, averageValue: 5}}}]}}}
  weightBasedScalingIntervals: [{vpaWeight: 50, lastReplicaCount: 5}, {vpaWeight: 20, startReplicaCount: 3}]
"""


def with_policies(text: str) -> str:
    return SMALL.replace("policies: [{name: As it is, fixed: {}}]", f"policies:\n{text}")
