"""The events of a step say what changed, and why, on the Hvpa and on its workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from builders import build
from builders.build import at
from hvpa.api.values.quantity import Resource
from hvpa.core import Objects
from hvpa.core.model import Involved
from hvpa.core.report.summary import with_unit
from tests.unit.core.trajectory import jointly

LOAD = [jointly.utilization("cpu", 50, 90, "900m")]


def step(objects: Objects) -> str:
    """The message of the step's event on the Hvpa; the one on the workload names the Hvpa and says the same."""
    on_hvpa, on_workload = build.decided(objects).events[:2]
    assert on_hvpa.involved is None
    assert on_workload.involved == Involved("apps/v1", "Deployment", "web", "w", "7")
    assert (on_hvpa.type, on_hvpa.reason) == (on_workload.type, on_workload.reason)
    assert on_workload.message == f"Hvpa web: {on_hvpa.message}"
    return on_hvpa.message


def usual(replicas: int = 3, hpa: Any = None, spec: Mapping[str, Any] | None = None, **rest: Any) -> Objects:
    """At so many replicas the HPA is content, but for what is given."""
    target = rest.pop("target", build.workload(replicas))
    content = build.hpa(min(replicas, 10), 50, replicas=replicas)
    vpa = rest.pop("vpa", build.vpa({"app": {"cpu": "2", "memory": "1Gi"}}))
    return build.objects(
        build.hvpa({"replicas": replicas, **(spec or {})}), target, hpa or content, vpa, **rest
    )


def joint(replicas: int, load: Sequence[Any] = LOAD, *rest: Any, **more: Any) -> Objects:
    return jointly.state(replicas, [jointly.app("1")], load, *rest, **more)


OFF = {"vpa": {"deploy": True, "scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
IN_STEPS = {"hpa": {"deploy": True, "scaleUp": {"maxStep": {"factor": 1.5, "minimum": 1}}}}
EIGHT_CORES = {
    "container": "app", "resource": "cpu", "mean": 8000, "weight": 86400, "time": build.stamp(at()), "present": 8000
}  # fmt: skip
ALL = {
    "on both axes what changed and its causes are listed": (
        usual(hpa=build.hpa(6, 100), spec={"replicas": 6}),
        "replicas 3 -> 5, cpu 1 -> 1500m of app; HPA: cpu at 200 % of its target, using 6; "
        "VPA: cpu 2 of app; vpaWeight 50"),
    "of requests alone, nothing of the HPA": (usual(), "cpu 1 -> 1500m of app; VPA: cpu 2 of app; vpaWeight 50"),
    # 3.6 cores: two pods of 1 core as they are, and two of 1.5
    "on a path, the metric, what it takes and the usual demand": (
        joint(2, LOAD, {"app": {"cpu": "1500m"}}),
        "replicas 2 -> 4, cpu 1 -> 1500m of app; HPA: cpu at 180 % of its target; cpu needs 4 replicas; "
        "usual demand of all pods: cpu 3 of app"),
    "on a path without a VPA's recommendation, of replicas alone": (
        joint(2), "replicas 2 -> 4; HPA: cpu at 180 % of its target; cpu needs 4 replicas"),
    "on a path without metrics": (
        joint(12, ()), "replicas 12 -> 10; 12 is outside minReplicas 1 and maxReplicas 10; "
        "the HPA has no metrics, so HVPA does not follow lower demand"),
    "more pods than wanted, and what holds larger requests": (
        # 9 cores: five pods of 1 core as they are, and two of 2.5; all of 1 core: nine
        joint(5, LOAD, {"app": {"cpu": "1500m"}}, OFF),
        "replicas 5 -> 9; HPA: cpu at 180 % of its target; cpu needs 7 replicas; "
        "9 of the current size, because larger requests are held by UpdatePolicy"),
    "cut by maxStep, with where it leads": (
        joint(2, LOAD, None, IN_STEPS),
        "replicas 2 -> 3; HPA: cpu at 180 % of its target; cpu needs 4 replicas; HVPA reaches 4 in several steps"),
    "as many pods as serve before all have the new size": (
        joint(6, [jointly.value("cpu", "1", "1")], {"app": {"cpu": "1"}}, {"trajectory": jointly.EXACT},
              pods=[build.pod(f"web-{index}", containers=[jointly.app("1")]) for index in range(5)],
              status={"axes": {"vertical": {"base": {"app": {"cpu": "1"}}}}}),
        "replicas 6 -> 5, cpu 1 -> 2 of app; HPA: cpu at 100 % of its target; cpu needs 5 replicas; "
        "usual demand of all pods: cpu 6 of app"),
    "without metrics, more pods for the usual demand": (
        joint(2, (), {"app": {"cpu": "4"}}, status={"axes": {"vertical": {"usualDemand": [EIGHT_CORES]}}}),
        "replicas 2 -> 3, cpu 1 -> 2667m of app; the usual demand needs 3 replicas; the HPA has no metrics; "
        "usual demand of all pods: cpu 8 of app"),
}  # fmt: skip
PART = {
    "inwards, the metric that calls for most": (
        usual(hpa=build.hpa(1, 10), vpa=build.vpa()), "replicas 3 -> 2; HPA: cpu at 20 % of its target, using 1"),
    "a request that was missing was none, although the pods had 1": (
        usual(target=build.workload(3, [build.container(requests={"memory": "1Gi"})])),
        "cpu none -> 1500m of app; "),
    "a count outside of its bounds is the cause": (
        usual(12, vpa=build.vpa()), "12 is outside minReplicas 1 and maxReplicas 10"),
    "memory that ran out is the cause": (
        usual(vpa=build.vpa({"app": {"memory": "2Gi"}}), pods=[build.oom_killed(at(seconds=-30))]),
        "; out of memory: app; VPA: memory 2Gi of app; "),
    "of what no metric measures, the VPA's target": (
        jointly.state(2, [jointly.app("1", "1G")], [jointly.value("cpu", "1", "1")],
                      {"app": {"cpu": "1", "memory": "2G"}}),
        "memory 1G -> 2G of app; VPA: memory 2G of app"),
    "two amounts that read alike are exact": (
        usual(target=build.workload(3, [build.container(requests={"memory": "104857601"})]),
              spec={"vpa": {"scaleUp": {"minChange": {"memory": {"value": "1"}}}}},
              vpa=build.vpa({"app": {"memory": "105200k"}})),
        "memory 104857601 -> "),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "message"), ALL.values(), ids=ALL)
def test_a_step_says_what_changed_and_why(seen: Objects, message: str) -> None:
    assert step(seen) == message


@pytest.mark.parametrize(("seen", "part"), PART.values(), ids=PART)
def test_a_step_names_its_cause(seen: Objects, part: str) -> None:
    assert part in step(seen)


def test_a_silent_hpa_is_no_cause() -> None:
    message = step(usual(12, build.hpa(10, None, replicas=12), vpa=build.vpa()))
    assert "12 is outside minReplicas" in message
    assert "HPA" not in message


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [("cpu", 1000, "1 core"), ("cpu", 1500, "1500m"), ("cpu", 13000, "13 cores"), ("memory", 2**30, "1Gi")],
)
def test_amounts_in_a_sentence_have_units(resource: Resource, amount: int, shown: str) -> None:
    assert with_unit(resource, amount) == shown
