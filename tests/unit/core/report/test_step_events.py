"""The events of a step say what changed, and why, on the Hvpa and on its workload."""

from __future__ import annotations

from typing import Any

import pytest

from builders import build
from builders.build import at
from hvpa.api.objects.read_models import Workload
from hvpa.api.values.quantity import Resource
from hvpa.core import Decision, Objects
from hvpa.core.report.summary import with_unit
from tests.unit.core.trajectory import jointly

TARGETS = {"app": {"cpu": "2", "memory": "1Gi"}}


def step(decision: Decision) -> str:
    """The message of the step's event on the Hvpa; the one on the workload names the Hvpa and says the same."""
    on_hvpa, on_workload = decision.events[:2]
    assert on_hvpa.involved is None
    assert on_workload.involved is not None
    assert (on_hvpa.type, on_hvpa.reason) == (on_workload.type, on_workload.reason)
    assert on_workload.message == f"Hvpa web: {on_hvpa.message}"
    return on_hvpa.message


def usual(
    spec: dict[str, Any] | None = None, target: Workload | None = None, hpa: Any = None, **rest: Any
) -> Objects:
    one = build.hvpa({"replicas": 6, **(spec or {})})
    return build.objects(
        one, target, build.hpa(6, 100) if hpa is None else hpa, rest.pop("vpa", build.vpa(TARGETS)), **rest
    )


def test_a_step_on_both_axes_lists_what_changed_and_its_causes() -> None:
    decision = build.decided(usual())
    assert step(decision) == (
        "replicas 3 -> 5, cpu 1 -> 1500m of app; HPA: cpu at 200 % of its target, using 6; "
        "VPA: cpu 2 of app; vpaWeight 50"
    )
    involved = decision.events[1].involved
    assert involved is not None
    assert (involved.api_version, involved.kind, involved.name) == ("apps/v1", "Deployment", "web")
    assert (involved.uid, involved.resource_version) == ("w", "7")


def test_a_step_in_names_the_metric_that_calls_for_most() -> None:
    assert step(build.decided(usual(hpa=build.hpa(1, 10), vpa=build.vpa()))).startswith(
        "replicas 3 -> 2; HPA: cpu at 20 % of its target, using 1"
    )


def test_a_step_of_requests_alone_says_nothing_of_the_hpa() -> None:
    decision = build.decided(usual(hpa=build.hpa(3, 50), spec={"replicas": 3}))
    assert step(decision) == "cpu 1 -> 1500m of app; VPA: cpu 2 of app; vpaWeight 50"


def test_a_request_that_was_missing_was_none() -> None:
    target = build.workload(3, [build.container(requests={"memory": "1Gi"})])
    seen = usual(target=target, hpa=build.hpa(3, 50), spec={"replicas": 3})
    assert step(build.decided(seen)).startswith("cpu none -> 1500m of app; "), "the pods had 1"


def test_a_count_outside_of_its_bounds_is_the_cause() -> None:
    seen = usual(target=build.workload(12), hpa=build.hpa(10, 50, replicas=12), vpa=build.vpa())
    assert "12 is outside of minReplicas 1 and maxReplicas 10" in step(build.decided(seen))


def test_a_silent_hpa_is_no_cause() -> None:
    seen = usual(target=build.workload(12), hpa=build.hpa(10, None, replicas=12), vpa=build.vpa())
    message = step(build.decided(seen))
    assert "12 is outside of" in message
    assert "HPA" not in message


def test_memory_that_ran_out_is_the_cause() -> None:
    seen = usual(
        hpa=build.hpa(3, 50),
        spec={"replicas": 3},
        vpa=build.vpa({"app": {"memory": "2Gi"}}),
        pods=[build.oom_killed(at(seconds=-30))],
    )
    assert "; out of memory: app; VPA: memory 2Gi of app; " in step(build.decided(seen))


def test_a_joint_step_names_the_metric_what_it_takes_and_the_usual_demand() -> None:
    load = [jointly.utilization("cpu", 50, 90, "900m")]
    message = step(build.decided(jointly.state(2, [jointly.app("1")], load, {"app": {"cpu": "1500m"}})))
    assert message == (
        "replicas 2 -> 3, cpu 1 -> 1500m of app; HPA: cpu at 180 % of its target; cpu asks for 3 replicas; "
        "usual demand of all pods: cpu 3 of app"
    ), "3.6 cores at 1.5 each, with the HPA's tolerance"


def test_a_joint_step_without_a_vpa_s_recommendation_is_of_replicas_alone() -> None:
    seen = jointly.state(2, [jointly.app("1")], [jointly.utilization("cpu", 50, 90, "900m")])
    message = "replicas 2 -> 4; HPA: cpu at 180 % of its target; cpu asks for 4 replicas"
    assert step(build.decided(seen)) == message


def test_a_joint_step_without_metrics_says_so() -> None:
    message = step(build.decided(jointly.state(12, [jointly.app("1")])))
    assert message == (
        "replicas 12 -> 10; 12 is outside of minReplicas 1 and maxReplicas 10; "
        "the HPA has no metrics: nothing shrinks"
    )


def test_more_pods_than_wanted_name_what_holds_larger_requests() -> None:
    load = [jointly.utilization("cpu", 50, 90, "900m")]
    off = {"vpa": {"deploy": True, "scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    seen = jointly.state(2, [jointly.app("1")], load, {"app": {"cpu": "1500m"}}, off)
    assert step(build.decided(seen)) == (
        "replicas 2 -> 4; HPA: cpu at 180 % of its target; cpu asks for 3 replicas; "
        "4 of the size that pods have, as larger requests are held by UpdatePolicy"
    )


def test_a_step_that_max_step_cut_names_where_it_leads() -> None:
    steps = {"hpa": {"deploy": True, "scaleUp": {"maxStep": {"factor": 1.5, "minimum": 1}}}}
    seen = jointly.state(2, [jointly.app("1")], [jointly.utilization("cpu", 50, 90, "900m")], None, steps)
    assert step(build.decided(seen)) == (
        "replicas 2 -> 3; HPA: cpu at 180 % of its target; cpu asks for 4 replicas; 4 are reached in several steps"
    )


def test_more_pods_than_wanted_stay_until_all_have_the_new_size() -> None:
    pods = [build.pod(f"web-{index}", containers=[jointly.app("1")]) for index in range(5)]
    base = {"axes": {"vertical": {"base": {"app": {"cpu": "1"}}}}}
    seen = jointly.state(
        6,
        [jointly.app("1")],
        [jointly.value("cpu", "1", "1")],
        {"app": {"cpu": "1"}},
        {"trajectory": jointly.EXACT},
        pods=pods,
        status=base,
    )
    assert step(build.decided(seen)) == (
        "replicas 6 -> 5, cpu 1 -> 2 of app; HPA: cpu at 100 % of its target; cpu asks for 3 replicas; "
        "5 of the size that pods have, until all pods have the new size; usual demand of all pods: cpu 6 of app"
    )


def test_without_metrics_more_pods_are_for_the_usual_demand() -> None:
    message = step(build.decided(jointly.state(2, [jointly.app("1")], (), {"app": {"cpu": "4"}})))
    assert message == (
        "replicas 2 -> 3, cpu 1 -> 2667m of app; the usual demand takes 3 replicas; the HPA has no metrics now; "
        "usual demand of all pods: cpu 8 of app"
    )


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [("cpu", 1000, "1 core"), ("cpu", 1500, "1500m"), ("cpu", 13000, "13 cores"), ("memory", 2**30, "1Gi")],
)
def test_amounts_in_a_sentence_have_units(resource: Resource, amount: int, shown: str) -> None:
    assert with_unit(resource, amount) == shown


def test_two_amounts_that_read_alike_are_exact() -> None:
    target = build.workload(3, [build.container(requests={"memory": "1000000001"})])
    spec = {"replicas": 3, "vpa": {"scaleUp": {"minChange": {"memory": {"value": "1"}}}}}
    vpa = build.vpa({"app": {"memory": "1000100k"}})
    assert "memory 1000000001 -> " in step(build.decided(usual(spec, target, build.hpa(3, 50), vpa=vpa)))
