"""The HPA and VPA that an Hvpa owns (DESIGN 4)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import build
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.objects.read_models import Hpa, Vpa
from hvpa.core.model import TEMPLATE_HASH
from hvpa.core.recommenders.manifests import document, up_to_date

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"


def body_of(one: HvpaObject, kind: Any = HPA, name: str = "web") -> dict[str, Any]:
    assert one.spec is not None
    return document(kind, name, one.metadata, one.spec)


def hash_of(one: HvpaObject, name: str = "web") -> str:
    return str(body_of(one, name=name)["metadata"]["annotations"][TEMPLATE_HASH])


def spec_of(one: HvpaObject, kind: Any = HPA) -> dict[str, Any]:
    found: dict[str, Any] = body_of(one, kind)["spec"]
    return found


def test_the_hpa_is_the_template_pointed_at_the_hvpa() -> None:
    owner = build.hvpa({"hpa": {"template": {"metadata": {"annotations": {"why": "so"}}}}})
    body = body_of(owner)
    assert body["apiVersion"] == "autoscaling/v2"
    assert body["kind"] == HPA
    assert body["metadata"] == {
        "name": "web",
        "namespace": "default",
        "labels": {"of": "web"},
        "annotations": {"why": "so", TEMPLATE_HASH: hash_of(owner)},
        "ownerReferences": [
            {
                "apiVersion": "autoscaling.k8s.io/v1alpha1",
                "kind": "Hvpa",
                "name": "web",
                "uid": build.UID,
                "controller": True,
            }
        ],
    }
    spec = body["spec"]
    assert spec["scaleTargetRef"] == {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "name": "web",
    }
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 10)
    assert spec["metrics"] == build.HPA_TEMPLATE["spec"]["metrics"]


def test_the_hpas_own_memory_is_switched_off_unless_the_user_sets_behavior() -> None:
    behavior = spec_of(build.hvpa())["behavior"]
    for direction in ("scaleUp", "scaleDown"):
        assert behavior[direction]["stabilizationWindowSeconds"] == 0
        assert behavior[direction]["selectPolicy"] == "Max"
    assert behavior["scaleDown"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 1}]
    assert behavior["scaleUp"]["policies"] == [{"type": "Pods", "value": 10_000, "periodSeconds": 1}]
    own = {"scaleDown": {"stabilizationWindowSeconds": 120}}
    kept = build.hvpa({"hpa": {"template": {"spec": {"behavior": own}}}})
    assert spec_of(kept)["behavior"] == own


@pytest.mark.parametrize(
    ("wait", "window"), [(None, 300), ("0s", 300), ("2m", 120), ("90m", 3600), ("1500ms", 2)]
)
def test_in_a_joint_decision_the_hpa_keeps_its_memory_for_scaling_in(wait: str | None, window: int) -> None:
    down = {} if wait is None else {"stabilizationDuration": wait}
    spec = {"blend": "Trajectory", "hpa": {"scaleDown": down}}
    found = spec_of(build.hvpa(spec))["behavior"]
    neutral = spec_of(build.hvpa())["behavior"]
    assert found["scaleUp"] == neutral["scaleUp"]
    assert found["scaleDown"] == {**neutral["scaleDown"], "stabilizationWindowSeconds": window}
    own = {"template": {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 7}}}}}
    kept = spec_of(build.hvpa({"blend": "Trajectory", "hpa": own}))["behavior"]
    assert kept == {"scaleDown": {"stabilizationWindowSeconds": 7}}


def test_the_old_form_of_metrics_becomes_the_new_one() -> None:
    old = [{"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 50}}]
    spec = spec_of(build.hvpa({"hpa": {"template": {"spec": {"metrics": old}}}}))
    target = {"type": "Utilization", "averageUtilization": 50}
    assert spec["metrics"] == [{"type": "Resource", "resource": {"name": "memory", "target": target}}]


def test_the_vpa_only_recommends_and_is_for_the_workload() -> None:
    policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"memory": "3000Mi"}}]}
    body = body_of(build.hvpa({"vpa": {"template": {"spec": {"resourcePolicy": policy}}}}), VPA)
    assert body["apiVersion"] == "autoscaling.k8s.io/v1"
    assert body["spec"] == {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "updatePolicy": {"updateMode": "Off"},
        "resourcePolicy": policy,
    }
    bare = build.hvpa({"vpa": {"template": {"spec": {}}}, "targetRef": {"apiVersion": None}})
    assert spec_of(bare, VPA)["targetRef"]["apiVersion"] == "apps/v1"
    assert "resourcePolicy" not in spec_of(bare, VPA)


def test_the_same_spec_gives_the_same_manifest_and_another_one_another_hash() -> None:
    assert body_of(build.hvpa()) == body_of(build.hvpa({}, metadata={"generation": 9}))
    assert hash_of(build.hvpa()) != hash_of(build.hvpa(), name="web-2")
    other = build.hvpa({"hpa": {"template": {"spec": {"maxReplicas": 11}}}})
    assert hash_of(build.hvpa()) != hash_of(other)


def as_hpa(body: Any) -> Hpa:
    return msgspec.json.decode(msgspec.json.encode(body), type=Hpa)


def altered(change: dict[str, Any]) -> Hpa:
    return as_hpa(build.merged(body_of(build.hvpa()), change))


def is_up_to_date(existing: Hpa | Vpa, owner: HvpaObject, kind: Any = HPA) -> bool:
    return up_to_date(existing, body_of(owner, kind))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, True, id="as it was applied"),
        pytest.param(
            {"spec": {"extra": {"filled": "in"}}}, True, id="what the API server filled in does not matter"
        ),
        pytest.param({"metadata": {"labels": {"more": "labels"}}}, True, id="more labels don't matter"),
        pytest.param({"metadata": {"labels": {"of": "other"}}}, False, id="another label"),
        pytest.param(
            {"metadata": {"annotations": {TEMPLATE_HASH: "0"}}}, False, id="applied from another template"
        ),
        pytest.param({"metadata": {"ownerReferences": None}}, False, id="no owner"),
        pytest.param(
            {"metadata": {"ownerReferences": [{"uid": "x", "controller": True}]}}, False, id="another owner"
        ),
        pytest.param({"spec": {"maxReplicas": 12}}, False, id="another value"),
        pytest.param({"spec": {"metrics": []}}, False, id="a shorter list"),
        pytest.param({"spec": {"metrics": {"no": "list"}}}, False, id="no list at all"),
        pytest.param({"spec": {"scaleTargetRef": None}}, False, id="a part that is gone"),
        pytest.param({"spec": {"scaleTargetRef": "web"}}, False, id="a part of another type"),
    ],
)
def test_whether_an_object_is_up_to_date(change: dict[str, Any], expected: bool) -> None:
    assert is_up_to_date(altered(change), build.hvpa()) is expected


def test_quantities_are_compared_by_value() -> None:
    metrics = [
        {
            "type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1000m"}},
        }
    ]
    owner = build.hvpa({"hpa": {"template": {"spec": {"metrics": metrics}}}})

    def with_value(value: object) -> Hpa:
        text = msgspec.json.encode(body_of(owner)).replace(b'"1000m"', msgspec.json.encode(value))
        return msgspec.json.decode(text, type=Hpa)

    for value, expected in (("1", True), (1, True), ("2", False), ("many", False), (None, False)):
        assert is_up_to_date(with_value(value), owner) is expected


def test_a_vpa_is_compared_likewise() -> None:
    owner = build.hvpa()
    body = body_of(owner, VPA)
    assert is_up_to_date(msgspec.json.decode(msgspec.json.encode(body), type=Vpa), owner, VPA)
    auto = msgspec.json.encode(build.merged(body, {"spec": {"updatePolicy": {"updateMode": "Auto"}}}))
    assert not is_up_to_date(msgspec.json.decode(auto, type=Vpa), owner, VPA)


def test_a_tolerance_that_an_older_api_server_dropped_is_not_applied_for_ever() -> None:
    rules = {"stabilizationWindowSeconds": 60, "tolerance": "0.05"}
    owner = build.hvpa({"hpa": {"template": {"spec": {"behavior": {"scaleUp": rules}}}}})

    def with_tolerance(value: str | None) -> Hpa:
        change = {"spec": {"behavior": {"scaleUp": {"tolerance": value}}}}
        return as_hpa(build.merged(body_of(owner), change))

    for value, expected in (("0.05", True), ("50m", True), (None, True), ("0.1", False)):
        assert is_up_to_date(with_tolerance(value), owner) is expected
