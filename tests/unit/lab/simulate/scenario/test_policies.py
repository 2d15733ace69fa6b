"""Policies of scenarios: what their manifests and specs become."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.errors import ScenarioError
from tests.unit.lab.simulate.scenario.build import HVPA, scenario, with_policies


def test_an_hvpa_is_read_from_its_file_and_put_into_the_workloads_namespace(tmp_path: Path) -> None:
    other = "kind: ConfigMap\nmetadata: {name: other}\n"
    (tmp_path / "hvpa.yaml").write_text(f"{other}---{HVPA}---\n- 3\n---\n")
    parsed = scenario(tmp_path, with_policies("- {name: P, hvpa: hvpa.yaml}"))
    (policy,) = parsed.policies
    assert (policy.name, policy.kind, policy.hpa, policy.vpa) == ("P", "Hvpa", None, None)
    assert policy.hvpa is not None
    assert policy.hvpa["metadata"] == {"name": "mine", "namespace": "default"}
    assert policy.hvpa["spec"] == yaml.safe_load(HVPA)["spec"]
    (note,) = parsed.notes
    assert note.startswith(f"{tmp_path}/hvpa.yaml: spec.weightBasedScalingIntervals[1] overlaps")


def test_an_hvpa_may_stand_in_the_scenario_and_is_named_like_the_workload_where_it_has_no_name(
    tmp_path: Path,
) -> None:
    inline = {**yaml.safe_load(HVPA), "metadata": {"generateName": "x"}}
    del inline["spec"]["weightBasedScalingIntervals"]
    (policy,) = scenario(tmp_path, with_policies(f"- {{name: P, hvpa: {json.dumps(inline)}}}")).policies
    assert policy.hvpa is not None
    assert policy.hvpa["metadata"] == {"name": "web", "generateName": "x", "namespace": "default"}


def test_an_hpa_and_a_vpa_by_themselves_become_their_specs(tmp_path: Path) -> None:
    text = """
- name: H
  hpa: &hpa
    maxReplicas: 4
    metrics: [{type: Resource, resource: {name: cpu, targetAverageValue: 100m}}]
    behavior: {scaleDown: {stabilizationWindowSeconds: 60}}
- name: V
  vpa: &vpa {updatePolicy: {updateMode: "Off"}, resourcePolicy: {containerPolicies: [{containerName: "*", mode: Auto}]}}
- {name: Both, hpa: *hpa, vpa: {}}
"""
    only_hpa, only_vpa, both = scenario(tmp_path, with_policies(text)).policies
    target = {"type": "AverageValue", "averageValue": "100m"}
    assert (only_hpa.kind, only_hpa.vpa) == ("HPA", None)
    assert only_hpa.hpa == {
        "maxReplicas": 4,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
    }
    assert (only_vpa.kind, only_vpa.hpa) == ("VPA", None)
    assert only_vpa.vpa == {
        "updatePolicy": {"updateMode": "Off"},
        "resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Auto"}]},
    }
    assert (both.kind, both.hpa, both.vpa) == (
        "HPA+VPA",
        only_hpa.hpa,
        {"updatePolicy": {"updateMode": "Recreate"}},
    )


def test_a_vpa_may_resize_in_place_where_the_workload_can(tmp_path: Path) -> None:
    text = with_policies("- {name: V, vpa: {updatePolicy: {updateMode: InPlaceOrRecreate, minReplicas: 1}}}")
    parsed = scenario(tmp_path, text)
    assert parsed.workload.resize == "InPlace"
    assert parsed.policies[0].vpa == {"updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1}}


def test_a_fixed_size_replaces_what_it_names(tmp_path: Path) -> None:
    text = with_policies(
        "- {name: A, fixed: {}}\n- {name: B, fixed: {replicas: 4, containers: {app: {requests: {cpu: 1}}}}}\n"
        "- {name: C, fixed: {containers: {app: {limits: {}}}}}"
    ).replace("{name: app}", "{name: app, requests: {memory: 1}, limits: {memory: 2}}")
    as_it_is, larger, unlimited = scenario(tmp_path, text).policies
    assert (as_it_is.kind, as_it_is.replicas, as_it_is.resources) == ("Fixed", None, {})
    assert (larger.replicas, larger.resources) == (
        4,
        {"app": ResourceRequirements({"cpu": 1000}, {"memory": 2})},
    )
    assert unlimited.resources == {"app": ResourceRequirements({"memory": 1}, {})}


WITH_POD = """
  resources: {requests: {cpu: 2}, limits: {cpu: 3}}
  containers: [{name: app, requests: {cpu: 1}, limits: {memory: 2}}, {name: side}]"""


def with_pod(text: str) -> str:
    return with_policies(text).replace("\n  containers: [{name: app}]", WITH_POD)


def test_a_fixed_size_may_have_other_resources_of_the_pod(tmp_path: Path) -> None:
    text = "- {name: A, fixed: {}}\n- {name: B, fixed: {resources: {requests: {cpu: 4}, limits: {cpu: 5}}}}"
    parsed = scenario(tmp_path, with_pod(text))
    assert parsed.workload.template[POD] == ResourceRequirements({"cpu": 2000}, {"cpu": 3000})
    as_it_is, larger = parsed.policies
    assert (as_it_is.resources, larger.resources) == (
        {},
        {POD: ResourceRequirements({"cpu": 4000}, {"cpu": 5000})},
    )


@pytest.mark.parametrize(
    ("fixed", "reason"),
    [
        (
            "resources: {requests: {cpu: 4}}",
            "11: policies[0].fixed.resources.limits.cpu: must not be less than the request",
        ),
        (
            "containers: {app: {requests: {cpu: 3}}}",
            "11: policies[0].fixed.resources.requests.cpu: must not be less than its containers request together",
        ),
    ],
)
def test_a_fixed_size_that_the_api_server_refuses(tmp_path: Path, fixed: str, reason: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(reason)):
        scenario(tmp_path, with_pod(f"- {{name: A, fixed: {{{fixed}}}}}"))


def test_a_vpa_that_only_recommends_may_stand_beside_resources_of_the_pod(tmp_path: Path) -> None:
    text = 'vpa: {updatePolicy: {updateMode: "Off"}}'
    (policy,) = scenario(tmp_path, with_pod(f"- {{name: V, {text}}}")).policies
    assert policy.kind == "VPA"


@pytest.mark.parametrize(
    ("metric", "noted"),
    [
        ("Resource, resource: {name: cpu", []),
        ("Resource, resource: {name: memory", []),
        ("ContainerResource, containerResource: {container: side, name: cpu", ["side"]),
    ],
    ids=["the pod's own", "that of a single container suffices", "of a container"],
)
def test_an_hpa_needs_no_request_of_containers_beside_that_of_their_pod(
    tmp_path: Path, metric: str, noted: list[str]
) -> None:
    target = "target: {type: Utilization, averageUtilization: 80}"
    hpa = f"- {{name: H, hpa: {{maxReplicas: 4, metrics: [{{type: {metric}, {target}}}}}]}}}}"
    parsed = scenario(tmp_path, with_pod(hpa))
    assert [re.search("container (\\w+) has", note)[1] for note in parsed.notes] == noted  # type: ignore[index]


def test_without_any_request_of_memory_an_hpa_has_no_utilization_of_it(tmp_path: Path) -> None:
    target = "target: {type: Utilization, averageUtilization: 80}"
    hpa = f"- {{name: H, hpa: {{maxReplicas: 4, metrics: [{{type: Resource, resource: {{name: memory, {target}}}}}]}}}}"
    parsed = scenario(tmp_path, with_pod(hpa).replace(", limits: {memory: 2}", ""))
    assert len(parsed.notes) == 2


def test_what_a_recommender_asks_of_the_workload_in_vain_is_reported(tmp_path: Path) -> None:
    text = """
- name: H
  hpa:
    maxReplicas: 4
    metrics:
    - {type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 80}}}
    - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}
    - {type: ContainerResource, containerResource: {
        name: cpu, container: app, target: {type: Utilization, averageUtilization: 80}}}
- name: V
  hpa: {maxReplicas: 2}
  vpa: {resourcePolicy: {containerPolicies: [{containerName: "*"}, {containerName: ap}]}}
- name: I
  hvpa:
    apiVersion: autoscaling.k8s.io/v1alpha1
    kind: Hvpa
    metadata: {name: web}
    spec:
      targetRef: {kind: Deployment, name: web}
      vpa: {deploy: true, template: {spec: {resourcePolicy: {containerPolicies: [{containerName: ap}]}, later: 1}}}
"""
    containers = "[{name: app, requests: {memory: 1Gi}}, {name: side, limits: {cpu: 1}}]"
    parsed = scenario(tmp_path, with_policies(text).replace("[{name: app}]", containers))
    lacking = "so the HPA has no utilization"
    unknown = "the workload has no container ap, only app, side"
    policy = "resourcePolicy.containerPolicies"
    assert [note.removeprefix(f"{tmp_path}/scenario.yaml:") for note in parsed.notes] == [
        f"15: policies[0].hpa.metrics[0].resource: container side has no request for memory, {lacking}",
        f"17: policies[0].hpa.metrics[2].containerResource: container app has no request for cpu, {lacking}",
        f"20: policies[1].hpa: container app has no request for cpu, {lacking}",
        f"21: policies[1].vpa.{policy}[1].containerName: {unknown}",
        f"29: policies[2].hvpa.spec.vpa.template.spec.{policy}[0].containerName: {unknown}",
        "29: policies[2].hvpa.spec.vpa.template.spec.later: this field is not simulated",
    ]


@pytest.mark.parametrize(
    ("alone", "path"),
    [
        ("hpa: {maxReplicas: 2, behavior: {later: 1}}", "hpa.behavior.later"),
        (
            "vpa: {resourcePolicy: {containerPolicies: [{later: 1}]}}",
            "vpa.resourcePolicy.containerPolicies[0].later",
        ),
    ],
)
def test_an_unknown_field_of_an_hpa_or_vpa_by_itself_is_refused(
    tmp_path: Path, alone: str, path: str
) -> None:
    with pytest.raises(ScenarioError, match=re.escape(f"policies[0].{path}: unknown field")):
        scenario(tmp_path, with_policies(f"- name: A\n  {alone}\n"))
