"""Containers of a pod template that has resources of its own never get more than those leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.core import Decision, Objects
from tests.unit.core.trajectory import jointly

FULL: dict[str, Any] = {
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
    "vpa": {"scaleUp": {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}}},
}


def objects(
    whole: Mapping[str, Any],
    containers: Sequence[Mapping[str, Any]],
    targets: Mapping[str, Mapping[str, Any]],
    spec: Mapping[str, Any] = FULL,
    init: Sequence[Mapping[str, Any]] = (),
    hpa: Any = None,
    **rest: Any,
) -> Objects:
    """A pod template with resources of its own."""
    pod = {"resources": dict(whole), "initContainers": list(init)}
    workload = build.workload(1, containers, {"spec": {"template": {"spec": pod}}})
    content = build.hpa(desired=1, replicas=1)
    return build.objects(build.hvpa(spec), workload, hpa or content, build.vpa(targets), **rest)


def requests(decision: Decision, resource: Any = "cpu") -> dict[str, int]:
    return {name: container.requests.get(resource, 0) for name, container in decision.containers.items()}


def active(decision: Decision) -> tuple[str, str]:
    condition = build.condition(decision, "VpaActive")
    return condition.reason, condition.message


ONE = [build.container(requests={"cpu": "500m"})]


@pytest.mark.parametrize(
    ("whole", "most"),
    [
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, 1000),
        ({"requests": {"cpu": "1"}}, 1000),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, 1000),  # the pod's request is not changed
        ({"limits": {"cpu": "2"}}, 2000),
        ({"requests": {"memory": "1Gi"}}, 3000),  # no word of CPU
        ({}, 3000),
    ],
)
def test_one_container_gets_no_more_than_the_pod_has(whole: Mapping[str, Any], most: int) -> None:
    decision = build.decided(objects(whole, ONE, {"app": {"cpu": "3"}}))
    assert requests(decision) == {"app": most}
    reason, message = active(decision)
    if most == 3000:
        assert reason == "Recommending"
    else:
        assert reason == "PodLevelResources"
        assert "spec.template.spec.resources" in message
        assert f"app cpu: 3 recommended, {most // 1000} at most" in message


def test_where_nothing_is_left_the_request_stays_and_the_condition_says_why() -> None:
    full = [build.container(requests={"cpu": "1"})]
    decision = build.decided(objects({"requests": {"cpu": "1"}}, full, {"app": {"cpu": "3"}}))
    assert decision.workload_patch is None
    assert active(decision)[0] == "PodLevelResources"
    assert "PodLevelResources" in {event.reason for event in decision.events}


def test_a_limit_ends_at_the_pods_limit() -> None:
    container = [build.container(requests={"cpu": "500m"}, limits={"cpu": "1"})]
    whole = {"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}
    decision = build.decided(objects(whole, container, {"app": {"cpu": "1"}}))
    assert requests(decision) == {"app": 1000}
    assert decision.containers["app"].limits == {"cpu": 1500}


def test_other_containers_and_sidecars_keep_what_they_request() -> None:
    containers = [build.container(requests={"cpu": "200m"}), build.container("b", {}, {"cpu": "100m"})]
    sidecar = {**build.container("s", {"cpu": "150m"}), "restartPolicy": "Always"}
    before = build.container("i", {"cpu": "1"})
    decision = build.decided(
        objects({"requests": {"cpu": "1"}}, containers, {"app": {"cpu": "3"}}, init=[sidecar, before])
    )
    assert requests(decision)["app"] == 750


def test_several_that_rise_share_what_is_left() -> None:
    containers = [build.container("a", {"cpu": "300m"}), build.container("b", {"cpu": "200m"})]
    targets = {"a": {"cpu": "900m"}, "b": {"cpu": "300m"}}
    decision = build.decided(objects({"requests": {"cpu": "1"}}, containers, targets))
    assert requests(decision) == {"a": 300 + 428, "b": 200 + 71}


def test_a_container_that_starves_gets_more_memory_as_far_as_there_is_some_left() -> None:
    killed = [build.oom_killed(build.at(minutes=-1))]
    whole, targets = {"requests": {"memory": "1100Mi"}}, {"app": {"memory": "1Gi"}}
    inputs = objects(whole, [build.container()], targets, pods=killed)
    assert requests(build.decided(inputs), "memory") == {"app": 1100 * build.MIB}


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
@given(
    now=st.lists(st.integers(1, 500), min_size=1, max_size=3),
    targets=st.lists(st.integers(1, 5000), min_size=3, max_size=3),
    spare=st.integers(0, 1000),
    weight=st.integers(0, 100),
)
def test_all_requests_together_never_exceed_the_pods(
    blend: str, now: list[int], targets: list[int], spare: int, weight: int
) -> None:
    containers = [build.container(f"c{at}", {"cpu": f"{request}m"}) for at, request in enumerate(now)]
    wanted = {f"c{at}": {"cpu": f"{target}m"} for at, target in enumerate(targets[: len(now)])}
    whole = sum(now) + spare
    spec = {**FULL, "blend": blend, "weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    busy = (
        jointly.hpa(1, jointly.utilization("cpu", 50, 90, f"{sum(now)}m")) if blend == "Trajectory" else None
    )
    inputs = objects({"requests": {"cpu": f"{whole}m"}}, containers, wanted, spec, hpa=busy)
    assert sum(requests(build.decided(inputs)).values()) <= whole
