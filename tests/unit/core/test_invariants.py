"""What must hold for every joint decision, whatever its input: found by other means than the decision's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders import build
from builders.build import GIB, NOW
from hvpa.api.hvpa.status import FastRaise
from hvpa.api.values.quantity import Resource
from hvpa.core import Decision, Objects, Observation, Settings, decide, observe
from hvpa.core.invariants import CAPACITY, UNEXPLAINED, UNMEASURED, violations
from hvpa.core.model import Blocked, PodShape, ReplicaView, ResourceRequirements
from tests.unit.core.trajectory.jointly import app, external, state, usually, utilization, value
from tests.unit.core.trajectory.test_properties import observed

MEASURED = value("cpu", "1", "1")


def looked_at(objects: Objects, **settings: Any) -> tuple[Observation, Decision]:
    observation = observe(objects, NOW, Settings(**settings))
    return observation, decide(observation)


def broken(observation: Observation, decision: Decision) -> list[str]:
    return [violation.invariant for violation in violations(observation, decision)]


def at_rest(*readings: Any, replicas: int = 4, way: str = "Rollout") -> tuple[Observation, Decision]:
    """Pods of 1 core and 1Gi, which the VPA targets as well. Each uses its core, which is the HPA's target."""
    targets = {"app": {"cpu": "1", "memory": "1Gi"}}
    spec = {"updateStrategy": {"type": way}, "weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    return looked_at(state(replicas, [app("1", "1Gi")], [*(readings or [MEASURED])], targets, spec))


def counts(decision: Decision, target: int, recommended: int | None = None) -> Decision:
    view = ReplicaView(4, 4, target, target if recommended is None else recommended)
    return structs.replace(decision, replicas=view)


def sized(decision: Decision, cpu: int | None = None, memory: int | None = None) -> Decision:
    """The decision with another request, as recommended."""
    before = decision.containers["app"].requests
    requests: dict[Resource, int] = {"cpu": cpu or before["cpu"], "memory": memory or before["memory"]}
    own = ResourceRequirements(requests, {})
    return structs.replace(decision, containers={"app": own}, recommended={"app": own})


# --- capacity --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["Rollout", "InPlace"])
def test_replicas_or_sizes_that_the_demand_needs_are_not_taken_away(way: str) -> None:
    observation, decision = at_rest(way=way)
    assert broken(observation, decision) == []
    assert broken(observation, counts(decision, 3)) == [CAPACITY]
    assert broken(observation, counts(decision, 5)) == []
    assert broken(observation, sized(decision, cpu=800)) == [CAPACITY]
    assert broken(observation, counts(sized(decision, cpu=800), 6)) == (
        [] if way == "Rollout" else [CAPACITY]
    ), "new pods serve once they are ready, which pods that are resized don't wait for"
    assert broken(observation, sized(decision, cpu=950)) == [], "within the HPA's tolerance"


def test_what_calls_for_no_size_can_lose_no_capacity() -> None:
    observation, decision = at_rest(external("10", "10"))
    assert broken(observation, counts(decision, 3)) == []


def test_a_count_above_the_largest_is_brought_inside() -> None:
    many = state(
        12,
        [app("1", "1Gi")],
        [MEASURED],
        {"app": {"cpu": "1", "memory": "1Gi"}},
        {"replicas": 10},
        desired=10,
    )
    observation, decision = looked_at(many)
    assert decision.replicas is not None
    assert decision.replicas.target == 10
    assert CAPACITY not in broken(observation, decision)


@pytest.mark.parametrize("way", ["Rollout", "InPlace"])
def test_a_pod_that_refuses_its_resize_keeps_what_it_has(way: str) -> None:
    observation, decision = at_rest(way=way)
    shapes = (PodShape({"app": {"cpu": 1000}}, 3), PodShape({"app": {"cpu": 2000}}, refuses=True))
    other = structs.replace(observation, pods=structs.replace(observation.pods, shapes=shapes))
    assert broken(other, sized(decision, cpu=700)) == [], "3 x 700m and 2 cores are 4.1"
    assert broken(other, sized(decision, cpu=500)) == [CAPACITY]


def test_within_the_vpas_target_any_size_is_explained() -> None:
    targets = {"app": {"cpu": "1", "memory": "512Mi"}}
    observation, decision = looked_at(state(4, [app("1", "1Gi")], [MEASURED], targets))
    assert UNMEASURED not in broken(observation, sized(decision, memory=3 * GIB // 4))


# --- sizes -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("memory", "expected"),
    [(GIB // 2, [UNMEASURED]), (2 * GIB, []), (GIB, [])],
    ids=["lower than the VPA's target", "higher, as after an OOM", "as it is"],
)
def test_what_no_metric_measures_goes_no_further_than_the_vpas_target(
    memory: int, expected: list[str]
) -> None:
    observation, decision = at_rest()
    assert broken(observation, sized(decision, memory=memory)) == expected


def test_cpu_is_not_sized_by_a_queue() -> None:
    observation, decision = at_rest(external("10", "10"))
    assert broken(observation, sized(decision, cpu=2000)) == [UNMEASURED]


def test_cpu_may_be_sized_by_what_the_kubelets_measure() -> None:
    observation, decision = at_rest(external("10", "10"))
    raised = FastRaise(container="app", resource="cpu", request=2000, time=NOW)
    axes = decision.status.axes
    assert axes is not None
    assert axes.vertical is not None
    vertical = axes.vertical.model_copy(update={"fast_raises": (raised,)})
    status = decision.status.model_copy(update={"axes": axes.model_copy(update={"vertical": vertical})})
    by_kubelets = structs.replace(decision, status=status)
    assert broken(observation, sized(by_kubelets, cpu=2000)) == []
    assert broken(observation, sized(by_kubelets, cpu=3000)) == [UNMEASURED]


def test_without_an_hpa_sizes_have_nothing_to_be_measured_by() -> None:
    objects = state(
        4, [app("1", "1Gi")], [], {"app": {"cpu": "1", "memory": "1Gi"}}, {"hpa": {"deploy": False}}
    )
    observation, decision = looked_at(objects)
    assert decision.joint is not None
    assert UNMEASURED not in broken(observation, sized(decision, cpu=2000))


# --- reasons ---------------------------------------------------------------------------------------------------------
def test_a_difference_from_the_recommendation_has_a_reason() -> None:
    observation, decision = at_rest()
    more = counts(decision, 4, recommended=6)
    assert broken(observation, more) == [UNEXPLAINED]
    held = Blocked("horizontal", "up", "MinChange", 4, 6)
    assert broken(observation, structs.replace(more, blocked=(held,))) == []
    larger = structs.replace(decision, recommended=sized(decision, cpu=2000).containers)
    assert broken(observation, larger) == [UNEXPLAINED]
    held = Blocked("vertical", "up", "MinChange", 1000, 2000, container="app", resource="cpu")
    assert broken(observation, structs.replace(larger, blocked=(held,))) == []
    assert broken(observation, counts(structs.replace(larger, blocked=(held,)), 5, recommended=4)) == [], (
        "more pods stand in for larger ones"
    )
    gone = structs.replace(decision, containers={})
    assert broken(observation, gone) == [UNEXPLAINED] * 2


def test_recommended_replicas_are_for_sizes_that_are_close_enough_to_stay() -> None:
    """The path has 5 pods of 615m for the HPA's count, which its stabilization holds. 600m is close enough, and 5 pods
    of that are too few."""
    status = build.merged(usually(712), {"axes": {"vertical": {"base": {"app": {"cpu": "87m"}}}}})
    template = {"spec": {"minReplicas": 3, "maxReplicas": 8}}
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": 100}], "hpa": {"template": template}}
    readings, targets = [utilization("cpu", 82, 42, "252m")], {"app": {"cpu": "99m"}}
    objects = state(6, [app("600m")], readings, targets, spec, status=status, desired=5)
    observation, decision = looked_at(objects)
    assert decision.replicas == ReplicaView(6, 5, 6, 6)
    assert broken(observation, decision) == []


# --- all of it -------------------------------------------------------------------------------------------------------
def test_a_decision_of_one_axis_after_the_other_is_not_looked_at() -> None:
    observation, decision = looked_at(state(4, readings=[MEASURED], spec={"blend": "Additive"}))
    assert violations(observation, counts(decision, 1)) == ()


@given(observed(), st.sampled_from(["Rollout", "InPlace"]))
def test_no_decision_breaks_an_invariant(objects: dict[str, Any], way: str) -> None:
    observation, decision = looked_at(state(**objects, spec={"updateStrategy": {"type": way}}))
    assert violations(observation, decision) == ()


def test_pods_that_are_not_known_have_what_the_template_has() -> None:
    observation, decision = looked_at(
        state(
            4,
            [app("1", "1Gi")],
            [MEASURED],
            {"app": {"cpu": "1", "memory": "1Gi"}},
            pods=[build.pod("web-0")],
        )
    )
    assert broken(observation, decision) == []
