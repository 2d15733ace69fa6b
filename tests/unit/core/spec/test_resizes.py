"""Remarks on `spec.updateStrategy`: each where it is true, and none where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.core.spec.ranges import review_resizes
from tests.unit.core.spec.test_review import TEMPLATE, spec_of

FIELD = "spec.updateStrategy"
OFF = {
    "spec.vpa.scaleUp.updatePolicy.updateMode": "Off",
    "spec.vpa.scaleDown.updatePolicy.updateMode": "Off",
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "a rollout after a resize that was not waited for": (
        {"type": "InPlaceOrRollout", "timeout": "9s"}, {}, "timeout", "9s is shorter than a kubelet may take"
        " to report a resize: pods are replaced by a rollout"),
    "pods that count as stuck at once": (
        {"type": "InPlace", "timeout": "1s"}, {}, "timeout", "1s is shorter than a kubelet may take to report a"
        " resize: pods count as stuck"),
    "all pods in percent": ({"type": "InPlace", "maxUnavailable": "100%"}, {}, "maxUnavailable", "it is all pods"),
    "all pods": ({"type": "InPlace", "maxUnavailable": 10}, {}, "maxUnavailable",
                 "10 pods are all that there are (maxReplicas 10)"),
    "a VPA that is off": ({"type": "InPlaceOrRollout"}, OFF, "type", "InPlaceOrRollout resizes no pod"),
    "a timeout of rollouts": ({"timeout": "1m"}, {}, "timeout", "has no effect: type is Rollout"),
    "pods of rollouts": ({"maxUnavailable": 2}, {}, "maxUnavailable", "has no effect: type is Rollout"),
}  # fmt: skip


@pytest.mark.parametrize(("strategy", "changes", "field", "reason"), CASES.values(), ids=CASES.keys())
def test_a_remark_names_the_field_the_reason_and_a_remedy(
    strategy: dict[str, Any], changes: dict[str, Any], field: str, reason: str
) -> None:
    (remark,) = review_resizes(spec_of({FIELD: strategy, **changes}))
    assert remark.path == f"{FIELD}.{field}"
    assert remark.reason.startswith(reason)
    assert remark.remedy


ALONE: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "nothing": ({}, {}, ()),
    "what the API server fills in": ({"type": "Rollout", "timeout": "5m", "maxUnavailable": "25%"}, {}, ()),
    "the shortest timeout": ({"type": "InPlaceOrRollout", "timeout": "10s"}, {}, ()),
    "fewer than all pods": ({"type": "InPlace", "maxUnavailable": 9}, {}, ()),
    "a single pod": ({"type": "InPlace", "maxUnavailable": 1}, {f"{TEMPLATE}.maxReplicas": 1}, ()),
    "a count without known bounds": ({"type": "InPlace", "maxUnavailable": 9}, {"spec.hpa": {"name": "h"}}, ()),
    "a VPA that is off in one direction": (
        {"type": "InPlace"}, {"spec.vpa.scaleDown.updatePolicy.updateMode": "Off"}, ()),
    "replicas alone, which need no right to change templates": ({"type": "InPlace"}, {}, ("spec.vpa",)),
}  # fmt: skip


@pytest.mark.parametrize(("strategy", "changes", "removed"), ALONE.values(), ids=ALONE.keys())
def test_there_are_no_false_alarms(
    strategy: dict[str, Any], changes: dict[str, Any], removed: tuple[str, ...]
) -> None:
    assert review_resizes(spec_of({FIELD: strategy, **changes}, removed)) == ()
