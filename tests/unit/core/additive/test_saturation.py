"""Both ends of the path are reached (DESIGN 5.4): the condition and the event that say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import build
from hvpa.core import Decision, Objects
from hvpa.core.report.bounds import saturation
from tests.unit.core.named import named
from tests.unit.core.trajectory.jointly import usually

TARGETS = {"app": {"cpu": "2", "memory": "1Gi"}}
SMALL = {"cpu": "1", "memory": "2Gi"}
JOINT: dict[str, Any] = {
    "blend": "Trajectory",
    "replicas": 10,
    "vpa": {
        "template": {
            "spec": {"resourcePolicy": {"containerPolicies": [{"containerName": "app", "maxAllowed": SMALL}]}}
        }
    },
}


def busy(utilization: int | None = 213, **spec: Any) -> Objects:
    """10 pods of 1 core, which is all that there may be. At 213 percent, of which 50 are wanted, 42.6 are needed."""
    hvpa = build.hvpa(build.merged(JOINT, spec))
    pods = build.workload(10, [build.container(requests={"cpu": "1", "memory": "1Gi"})])
    return build.objects(hvpa, pods, build.hpa(10, utilization, replicas=10), build.vpa(TARGETS))


def ready(decision: Decision) -> tuple[str, str, str]:
    """Status, reason and message of the condition Ready."""
    condition = decision.status.conditions[0]
    assert condition.type == "Ready"
    return condition.status, condition.reason, condition.message


def warned(decision: Decision) -> list[str]:
    """Warning events about saturation."""
    return [
        event.message for event in decision.events if (event.type, event.reason) == ("Warning", "Saturated")
    ]


def test_the_event_comes_once_and_small_moves_write_nothing() -> None:
    objects = build.settled(busy())
    moved = busy(212)
    again = build.decided(
        Objects(
            hvpa=objects.hvpa,
            workload=objects.workload,
            hpas=moved.hpas,
            vpas=objects.vpas,
            pods=objects.pods,
        )
    )
    assert ready(again)[1] == "Saturated"
    assert warned(again) == []
    assert again.status.conditions == objects.hvpa.status.conditions


def test_it_goes_when_demand_falls() -> None:
    objects = build.settled(busy())
    calm = build.objects(objects.hvpa, objects.workload, build.hpa(10, 40, replicas=10), build.vpa(TARGETS))
    assert ready(build.decided(calm))[1] == "Reconciled"


@pytest.mark.parametrize(
    ("maximum", "needed"),
    named(
        {"pods may be larger": (None, 0), "large enough": ({"cpu": "5"}, 0), "not quite": ({"cpu": "4"}, 1)}
    ),
)
def test_it_is_saturated_only_where_both_ends_are_reached(
    maximum: dict[str, str] | None, needed: int
) -> None:
    policy = {"containerName": "app", **({"maxAllowed": maximum} if maximum else {})}
    vpa = {"template": {"spec": {"resourcePolicy": {"containerPolicies": [policy]}}}}
    assert len(warned(build.decided(busy(vpa=vpa)))) == needed


def test_base_usage_is_not_capacity() -> None:
    base = {"baseResourcesPerReplica": {"cpu": {"value": "500m"}}}
    assert " (maxAllowed) serve 5 cores" in ready(build.decided(busy(trajectory=base)))[2]


def test_present_sizes_are_no_need() -> None:
    # No recommender reports what is needed now, and a day's mean fits: too large pods prove no need.
    small = {"cpu": "1", "memory": "1Gi"}
    objects = busy(None)
    pods = build.workload(10, [build.container(requests={"cpu": "3", "memory": "1Gi"})])
    objects = build.objects(objects.hvpa, pods, build.hpa(10, None, replicas=10), build.vpa({"app": small}))
    decision = build.decided(objects)
    assert decision.joint is not None
    assert saturation(decision.joint) == ()


@pytest.mark.parametrize(
    ("spec", "number"),
    [({}, "maxReplicas"), ({"hpa": {"deploy": False, "name": "missing"}}, "their current number")],
)
def test_it_names_max_replicas_or_where_the_hpa_is_missing_the_current_number(
    spec: dict[str, Any], number: str
) -> None:
    hvpa = build.hvpa(build.merged(JOINT, spec), usually(16_000))
    decision = build.decided(replace(busy(None), hvpa=hvpa))
    assert decision.joint is not None
    assert saturation(decision.joint) == (
        f"app cpu: needs about 16 cores, but 10 replicas ({number}) of 1 core (maxAllowed) serve 10 cores",
    )


def test_a_mode_that_changes_nothing_says_so_instead() -> None:
    assert ready(build.decided(busy(mode="Recommend")))[1] == "Recommend"


def test_additive_knows_no_path_and_names_the_bound_of_the_size() -> None:
    condition = ready(build.decided(busy(blend="Additive")))
    assert condition[:2] == ("True", "Saturated")
    assert condition[2].startswith("app cpu: needs about 2 cores, but maxAllowed is 1 core")
