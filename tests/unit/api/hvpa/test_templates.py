"""Templates of the HPA and the VPA: what is written to the cluster of them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.hvpa.metrics import MetricSpec
from hvpa.api.hvpa.resource import parse_spec
from hvpa.api.hvpa.templates import PASSED_ON_BYTES, HpaTemplateSpec, ResourcePolicy
from hvpa.api.schema.base import DEEPEST, FieldError

METRICS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = yaml.safe_load("""\
a utilization:
  - resource
  - {name: cpu, targetAverageUtilization: 50}
  - {name: cpu, target: {type: Utilization, averageUtilization: 50}}
an average value:
  - resource
  - {name: memory, targetAverageValue: 1Gi}
  - {name: memory, target: {type: AverageValue, averageValue: 1Gi}}
a container:
  - containerResource
  - {name: cpu, container: app, targetAverageUtilization: 50}
  - {name: cpu, container: app, target: {type: Utilization, averageUtilization: 50}}
pods:
  - pods
  - {metricName: packets, targetAverageValue: 5}
  - {metric: {name: packets}, target: {type: AverageValue, averageValue: "5"}}
pods with a selector:
  - pods
  - {metricName: packets, targetAverageValue: 5, selector: {matchLabels: {verb: GET}}}
  - metric: {name: packets, selector: {matchLabels: {verb: GET}}}
    target: {type: AverageValue, averageValue: "5"}
an object:
  - object
  - {metricName: requests, target: &main {apiVersion: networking.k8s.io/v1, kind: Ingress, name: main}, targetValue: 2k}
  - {metric: {name: requests}, describedObject: *main, target: {type: Value, value: 2k}}
an object by average:
  - object
  - {metricName: requests, target: *main, targetValue: "0", averageValue: "3"}
  - {metric: {name: requests}, describedObject: *main, target: {type: AverageValue, averageValue: "3"}}
an external metric:
  - external
  - {metricName: queue, metricSelector: {matchLabels: {verb: GET}}, targetValue: 30}
  - {metric: {name: queue, selector: {matchLabels: {verb: GET}}}, target: {type: Value, value: "30"}}
an external metric by average:
  - external
  - {metricName: queue, targetAverageValue: 30}
  - {metric: {name: queue}, target: {type: AverageValue, averageValue: "30"}}
""")
"""The source, and how the old form and autoscaling/v2 write the same metric."""


def metric(source: str, content: dict[str, Any]) -> dict[str, Any]:
    """A metric with its type."""
    return {"type": source[0].upper() + source[1:], source: content}


@pytest.mark.parametrize(("source", "old", "new"), METRICS.values(), ids=METRICS.keys())
def test_a_metric_of_the_old_form_becomes_one_of_autoscaling_v2(
    source: str, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert MetricSpec.model_validate(metric(source, old)).to_v2() == metric(source, new)


@pytest.mark.parametrize(("source", "old", "new"), METRICS.values(), ids=METRICS.keys())
def test_a_metric_of_autoscaling_v2_stays_as_it_is(
    source: str, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert MetricSpec.model_validate(metric(source, new)).to_v2() == metric(source, new)


def test_a_template_says_no_more_than_it_must() -> None:
    assert HpaTemplateSpec.model_validate({"maxReplicas": 3}).to_v2() == {"maxReplicas": 3}


def test_a_template_is_written_whole() -> None:
    behavior = {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "tolerance": "50m",
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}],
        },
        "scaleDown": {"selectPolicy": "Disabled"},
    }
    resource = metric("resource", METRICS["a utilization"][2])
    wire = {"minReplicas": 1, "maxReplicas": 3, "metrics": [resource], "behavior": behavior}
    assert HpaTemplateSpec.model_validate(wire).to_v2() == wire


def test_behavior_of_one_direction_leaves_the_other_out() -> None:
    wire = {"maxReplicas": 3, "behavior": {"scaleUp": {"tolerance": 0, "policies": []}}}
    assert HpaTemplateSpec.model_validate(wire).to_v2()["behavior"] == {"scaleUp": {"tolerance": "0"}}


def test_min_allowed_max_allowed_and_controlled_values_are_written_as_read() -> None:
    wire = {
        "containerPolicies": [
            {"containerName": "*", "mode": "Off"},
            {
                "containerName": "app",
                "minAllowed": {"cpu": 1, "memory": "1Gi"},
                "maxAllowed": {"cpu": "2"},
                "controlledResources": [],
                "controlledValues": "RequestsOnly",
            },
        ]
    }
    assert ResourcePolicy.model_validate(wire).to_wire() == wire


# --- fields that HVPA does not know ---------------------------------------------------------------------------
RECOMMENDERS = [{"name": "fast"}]


def spec_with(hpa: dict[str, Any] | None = None, vpa: dict[str, Any] | None = None) -> dict[str, Any]:
    """A spec whose templates have this in their specs."""
    return {
        "targetRef": {"kind": "Deployment", "name": "web"},
        "hpa": {"deploy": True, "template": {"spec": {"maxReplicas": 3, **(hpa or {})}}},
        "vpa": {"deploy": True, "template": {"spec": vpa or {}}},
    }


def test_a_field_that_hvpa_does_not_know_is_kept_and_named_by_its_path() -> None:
    policy = {"containerName": "app", "minAllowed": {"cpu": "1"}, "oomBumpUpRatio": "1.5"}
    vpa = {"recommenders": RECOMMENDERS, "resourcePolicy": {"containerPolicies": [policy], "podPolicies": 1}}
    hpa = {
        "later": {"a": [1, None]},
        "behavior": {"scaleUp": {"pace": "slow", "tolerance": "0.1"}, "both": True},
    }
    spec, problems = parse_spec(spec_with(hpa, vpa))
    assert problems == ()
    assert spec is not None
    assert spec.vpa.template.spec is not None
    assert spec.hpa.template.spec is not None
    assert spec.vpa.template.spec.passed_on() == {
        ("recommenders",): RECOMMENDERS,
        ("resourcePolicy", "podPolicies"): 1,
        ("resourcePolicy", "containerPolicies", 0, "oomBumpUpRatio"): "1.5",
    }
    assert spec.hpa.template.spec.passed_on() == {
        ("later",): {"a": [1, None]},
        ("behavior", "both"): True,
        ("behavior", "scaleUp", "pace"): "slow",
    }
    assert spec.hpa.template.spec.to_v2() == {"maxReplicas": 3, **hpa}
    assert spec.vpa.template.spec.resource_policy is not None
    assert spec.vpa.template.spec.resource_policy.to_wire() == vpa["resourcePolicy"]


def test_null_in_a_field_that_hvpa_does_not_know_counts_as_absent() -> None:
    spec, _ = parse_spec(spec_with(vpa={"recommenders": None, "other": {"a": None, "b": {"c": None}}}))
    assert spec is not None
    assert spec.vpa.template.spec is not None
    assert spec.vpa.template.spec.passed_on() == {("other",): {"b": {}}}


@pytest.mark.parametrize(
    ("axis", "path", "why"),
    [
        ("hpa", "scaleTargetRef", "HVPA sets it"),
        ("vpa", "targetRef", "HVPA sets it"),
        ("vpa", "updatePolicy", "HVPA sets updateMode Off"),
        ("vpa", "startupBoost", "HVPA has spec.startupBoost"),
        ("vpa", "resourcePolicy.containerPolicies[0].startupBoost", "HVPA has spec.startupBoost"),
    ],
)
@pytest.mark.parametrize("value", [{}, {"a": 1}, "text"])
def test_a_field_that_hvpa_sets_itself_is_refused(axis: str, path: str, why: str, value: object) -> None:
    name = path.rpartition(".")[2]
    fields = {name: value}
    if "containerPolicies" in path:
        fields = {"resourcePolicy": {"containerPolicies": [fields]}}
    (problem,) = parse_spec(spec_with(**{axis: fields}))[1]
    assert problem.path == f"spec.{axis}.template.spec.{path}"
    assert problem.message.startswith("must not be set: ")
    assert why in problem.message


DEEP: Any = "bottom"
for _ in range(DEEPEST):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        (DEEP, "later" + "[0]" * DEEPEST, f"must not be nested deeper than {DEEPEST} levels"),
        ({1: 2}, "later", "must have strings as keys"),
        ([float("nan")], "later[0]", "must be JSON"),
        ({"a": float("inf")}, "later.a", "must be JSON"),
        (2**63, "later", "must be JSON"),
        (dt.date(2027, 1, 1), "later", "must be JSON"),
    ],
)
def test_a_value_that_the_api_server_can_not_store_is_refused(value: object, path: str, why: str) -> None:
    (problem,) = parse_spec(spec_with(vpa={"later": value}))[1]
    assert problem.path == f"spec.vpa.template.spec.{path}"
    assert problem.message.startswith(why)


def test_fields_that_hvpa_does_not_know_are_bounded_together() -> None:
    def problems(size: int) -> tuple[FieldError, ...]:
        return parse_spec(spec_with({"later": "x" * size, "behavior": {"also": 1}}))[1]

    room = PASSED_ON_BYTES - len('[{"later":""},{"also":1}]')
    assert problems(room) == ()
    (problem,) = problems(room + 1)
    assert problem.path == "spec.hpa.template.spec"
    assert "fields that HVPA does not know (later, …) may have 16384 bytes" in problem.message


@pytest.mark.parametrize(
    "fields", [{PASSED_ON_BYTES * "x": 1}, {f"field{index}": 0 for index in range(PASSED_ON_BYTES // 8)}]
)
def test_the_names_of_fields_that_hvpa_does_not_know_count(fields: dict[str, int]) -> None:
    in_policy = {"resourcePolicy": {"containerPolicies": [{"containerName": "app", **fields}]}}
    for vpa in (fields, in_policy):
        (problem,) = parse_spec(spec_with(vpa=vpa))[1]
        assert problem.path == "spec.vpa.template.spec"
        assert "may have 16384 bytes as JSON" in problem.message


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.text(max_size=9) | st.sampled_from(["to_v2", "resource_policy", "others"]), json_values
    )
)
def test_any_json_is_kept_as_it_is_or_refused_with_its_path(fields: dict[str, Any]) -> None:
    spec, problems = parse_spec(spec_with(vpa=fields))
    if problems:
        assert all(problem.path.startswith("spec.vpa.template.spec") for problem in problems)
        return
    assert spec is not None
    template = spec.vpa.template.spec
    assert template is not None
    wire = without_null_entries({key: value for key, value in fields.items() if key not in KNOWN_OF_VPA})
    assert template.others == wire
    assert template.passed_on() == {(key,): value for key, value in wire.items()}
    assert msgspec.json.decode(msgspec.json.encode(template.others)) == wire


KNOWN_OF_VPA = {"resourcePolicy", "targetRef", "updatePolicy", "startupBoost"}


def without_null_entries(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_null_entries(entry) for key, entry in value.items() if entry is not None}
    return [without_null_entries(entry) for entry in value] if isinstance(value, list) else value


def test_a_template_that_is_no_object_is_refused() -> None:
    spec = spec_with()
    spec["vpa"]["template"]["spec"] = "text"
    (problem,) = parse_spec(spec)[1]
    assert str(problem) == "spec.vpa.template.spec: must be an object"
