"""Joint decisions of an Hvpa without an HPA: replicas follow the usual demand where a path is written out."""

from __future__ import annotations

from typing import Any

from builders import build
from hvpa.core import Decision

WRITTEN: dict[str, Any] = {
    "blend": "Trajectory",
    "hpa": None,
    "weightBasedScalingIntervals": None,
    "trajectory": {
        "intervals": [
            {"maxReplicas": 2, "maxResources": {"cpu": "1"}},
            {"maxReplicas": 5, "maxResources": {"cpu": "4"}},
        ]
    },
}


def decided(**spec: Any) -> Decision:
    """3 pods of 1 core, of which each usually needs 2: 6 in total."""
    one = build.hvpa(build.merged(WRITTEN, spec))
    return build.decided(build.objects(one, vertical=build.vpa({"app": {"cpu": "2"}})))


def test_replicas_and_sizes_are_those_of_the_usual_demand() -> None:
    decision = decided()
    assert decision.joint is not None
    assert decision.joint.because == "the usual demand of app cpu asks for 3 replicas"
    assert decision.replicas is not None
    assert decision.replicas.target == 3
    assert decision.containers["app"].requests["cpu"] == 2000


def test_more_replicas_make_up_for_sizes_that_are_held() -> None:
    decision = decided(vpa={"scaleUp": {"updatePolicy": {"updateMode": "Off"}}})
    assert decision.containers["app"].requests["cpu"] == 1000
    assert decision.replicas is not None
    assert decision.replicas.target == 5  # 6 would do, and there may be 5


def test_nobody_says_what_is_needed_now() -> None:
    (item,) = view.items if (view := decided().joint) is not None else ()
    assert (item.present, item.present_from, item.present_replicas) == (None, "", None)
