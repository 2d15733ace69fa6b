"""The HPA and VPA that an Hvpa owns (DESIGN 4)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import build
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.objects.read_models import Hpa, Vpa
from hvpa.core.model import TEMPLATE_HASH
from hvpa.core.recommenders.manifests import document, not_taken, up_to_date

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"
TOLERATED = {"stabilizationWindowSeconds": 60, "tolerance": "0.05"}


def body_of(hvpa: HvpaObject, kind: Any = HPA, name: str = "web") -> dict[str, Any]:
    assert hvpa.spec is not None
    return document(kind, name, hvpa.metadata, hvpa.spec)


def of_hpa(**spec: Any) -> HvpaObject:
    """An Hvpa whose HPA's template has this in its spec."""
    return build.hvpa({"hpa": {"template": {"spec": spec}}})


def hash_of(hvpa: HvpaObject, name: str = "web") -> str:
    return str(body_of(hvpa, name=name)["metadata"]["annotations"][TEMPLATE_HASH])


def spec_of(hvpa: HvpaObject, kind: Any = HPA) -> dict[str, Any]:
    spec: dict[str, Any] = body_of(hvpa, kind)["spec"]
    return spec


def test_the_hpa_is_the_template_pointed_at_the_hvpa() -> None:
    owner = build.hvpa({"hpa": {"template": {"metadata": {"annotations": {"why": "so"}}}}})
    body, this = body_of(owner), {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "web"}
    assert (body["apiVersion"], body["kind"]) == ("autoscaling/v2", HPA)
    assert body["metadata"] == {
        "name": "web",
        "namespace": "default",
        "labels": {"of": "web"},
        "annotations": {"why": "so", TEMPLATE_HASH: hash_of(owner)},
        "ownerReferences": [{**this, "uid": build.UID, "controller": True}],
    }
    template = build.HPA_TEMPLATE["spec"]
    assert body["spec"] == {**template, "scaleTargetRef": this, "behavior": body["spec"]["behavior"]}


def test_the_hpas_own_memory_is_switched_off_unless_the_user_sets_behavior() -> None:
    behavior = spec_of(build.hvpa())["behavior"]
    for direction in ("scaleUp", "scaleDown"):
        assert behavior[direction]["stabilizationWindowSeconds"] == 0
        assert behavior[direction]["selectPolicy"] == "Max"
    assert behavior["scaleDown"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 1}]
    assert behavior["scaleUp"]["policies"] == [{"type": "Pods", "value": 10_000, "periodSeconds": 1}]
    own = {"scaleDown": {"stabilizationWindowSeconds": 120}}
    assert spec_of(of_hpa(behavior=own))["behavior"] == own


@pytest.mark.parametrize(
    ("wait", "window"), [(None, 300), ("0s", 300), ("2m", 120), ("90m", 3600), ("1500ms", 2)]
)
def test_in_a_joint_decision_the_hpa_keeps_its_memory_for_scaling_in(wait: str | None, window: int) -> None:
    down = {} if wait is None else {"stabilizationDuration": wait}
    spec = {"blend": "Trajectory", "hpa": {"scaleDown": down}}
    behavior = spec_of(build.hvpa(spec))["behavior"]
    neutral = spec_of(build.hvpa())["behavior"]
    assert behavior["scaleUp"] == neutral["scaleUp"]
    assert behavior["scaleDown"] == {**neutral["scaleDown"], "stabilizationWindowSeconds": window}
    own = {"template": {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 7}}}}}
    kept = spec_of(build.hvpa({"blend": "Trajectory", "hpa": own}))["behavior"]
    assert kept == {"scaleDown": {"stabilizationWindowSeconds": 7}}


def test_the_old_form_of_metrics_becomes_the_new_one() -> None:
    old = [{"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 50}}]
    target = {"type": "Utilization", "averageUtilization": 50}
    new = [{"type": "Resource", "resource": {"name": "memory", "target": target}}]
    assert spec_of(of_hpa(metrics=old))["metrics"] == new


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
    assert hash_of(build.hvpa()) != hash_of(of_hpa(maxReplicas=11))


def is_up_to_date(change: dict[str, Any], owner: HvpaObject | None = None, kind: Any = HPA) -> bool:
    """Whether what was applied for an Hvpa, and has been changed since, is up to date."""
    body = body_of(owner or build.hvpa(), kind)
    text = msgspec.json.encode(build.merged(body, change))
    existing: Any = msgspec.json.decode(text, type=Hpa if kind == HPA else Vpa)
    return up_to_date(existing, body)


def metric(value: object) -> dict[str, Any]:
    source = {"metric": {"name": "q"}, "target": {"type": "Value", "value": value}}
    return {"spec": {"metrics": [{"type": "External", "external": source}]}}


def tolerance(value: str | None) -> dict[str, Any]:
    return {"spec": {"behavior": {"scaleUp": {"tolerance": value}}}}


QUANTITY, OF_TOLERANCE = of_hpa(**metric("1000m")["spec"]), of_hpa(behavior={"scaleUp": TOLERATED})
CASES: dict[str, tuple[dict[str, Any], HvpaObject | None, bool]] = {
    "as it was applied": ({}, None, True),
    "what the API server filled in does not matter": ({"spec": {"extra": {"filled": "in"}}}, None, True),
    "more labels don't matter": ({"metadata": {"labels": {"more": "labels"}}}, None, True),
    "another label": ({"metadata": {"labels": {"of": "other"}}}, None, False),
    "applied from another template": ({"metadata": {"annotations": {TEMPLATE_HASH: "0"}}}, None, False),
    "no owner": ({"metadata": {"ownerReferences": None}}, None, False),
    "another owner": ({"metadata": {"ownerReferences": [{"uid": "x", "controller": True}]}}, None, False),
    "another value": ({"spec": {"maxReplicas": 12}}, None, False),
    "a shorter list": ({"spec": {"metrics": []}}, None, False),
    "no list at all": ({"spec": {"metrics": {"no": "list"}}}, None, False),
    "a part that is gone": ({"spec": {"scaleTargetRef": None}}, None, False),
    "a part of another type": ({"spec": {"scaleTargetRef": "web"}}, None, False),
    "a quantity in its canonical form": (metric("1"), QUANTITY, True),
    "a quantity as a number": (metric(1), QUANTITY, True),
    "another quantity": (metric("2"), QUANTITY, False),
    "no quantity": (metric("many"), QUANTITY, False),
    "null in place of a quantity": (metric(None), QUANTITY, False),
    "the same tolerance": (tolerance("0.05"), OF_TOLERANCE, True),
    "the same tolerance in its canonical form": (tolerance("50m"), OF_TOLERANCE, True),
    "a tolerance that an older API server dropped is not applied for ever": (
        tolerance(None),
        OF_TOLERANCE,
        True,
    ),
    "another tolerance": (tolerance("0.1"), OF_TOLERANCE, False),
}


@pytest.mark.parametrize(("change", "owner", "expected"), CASES.values(), ids=CASES)
def test_whether_an_object_is_up_to_date(
    change: dict[str, Any], owner: HvpaObject | None, expected: bool
) -> None:
    assert is_up_to_date(change, owner) is expected


@pytest.mark.parametrize(("mode", "expected"), [("Off", True), ("Auto", False)])
def test_a_vpa_is_compared_likewise(mode: str, expected: bool) -> None:
    assert is_up_to_date({"spec": {"updatePolicy": {"updateMode": mode}}}, kind=VPA) is expected


BUMPED = {"resourcePolicy": {"containerPolicies": [{"containerName": "app", "oomBumpUpRatio": "1.5"}]}}
PASSED_ON: dict[str, Any] = {"recommenders": [{"name": "fast"}], **BUMPED}
PATHS: list[tuple[str | int, ...]] = [
    ("recommenders",),
    ("resourcePolicy", "containerPolicies", 0, "oomBumpUpRatio"),
]


def test_fields_that_hvpa_does_not_know_are_part_of_the_manifest() -> None:
    vpa = spec_of(build.hvpa({"vpa": {"template": {"spec": PASSED_ON}}}), VPA)
    assert vpa["recommenders"] == PASSED_ON["recommenders"]
    assert vpa["resourcePolicy"] == PASSED_ON["resourcePolicy"]
    assert vpa["updatePolicy"] == {"updateMode": "Off"}
    assert spec_of(of_hpa(later={"a": 1}))["later"] == {"a": 1}


@pytest.mark.parametrize(("change", "expected"), [({}, True), ({"recommenders": None}, False)])
def test_a_field_that_hvpa_does_not_know_is_kept_as_in_the_template(
    change: dict[str, Any], expected: bool
) -> None:
    owner = build.hvpa({"vpa": {"template": {"spec": PASSED_ON}}})
    assert is_up_to_date({"spec": change}, owner, VPA) is expected


@pytest.mark.parametrize(
    ("have", "expected"),
    [
        (PASSED_ON, None),
        ({**PASSED_ON, "other": "filled in"}, None),
        (BUMPED, PATHS[0]),
        ({**PASSED_ON, "recommenders": []}, PATHS[0]),
        ({**PASSED_ON, "recommenders": [{"name": "slow"}]}, PATHS[0]),
        ({**PASSED_ON, "resourcePolicy": {"containerPolicies": []}}, PATHS[1]),
        ({**PASSED_ON, "resourcePolicy": "text"}, PATHS[1]),
        (None, PATHS[0]),
    ],
)
def test_a_field_that_the_api_server_did_not_take_is_found(have: Any, expected: Any) -> None:
    assert not_taken(have, PASSED_ON, PATHS) == expected
