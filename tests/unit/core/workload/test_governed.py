"""Containers of a pod template with a limit of its own that stays never get more than it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.api.values.quantity import readable_resource
from hvpa.core import Decision, Objects
from hvpa.core.workload.containers import SHARED
from tests.unit.core.report.test_bounds import policy
from tests.unit.core.trajectory import jointly

FULL: dict[str, Any] = {
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
    "vpa": {"scaleUp": {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}}},
}


FIXED: dict[str, Any] = build.merged(FULL, policy(containerName="*", controlledValues="RequestsOnly"))


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
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, 500),
        ({"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}, 1000),
        ({"limits": {"cpu": "2"}}, 2000),
        ({"requests": {"cpu": "1"}}, 3000),
        ({"limits": {"memory": "1Gi"}}, 3000),  # no word of CPU
        ({}, 3000),
    ],
)
def test_where_limits_stay_a_container_gets_no_more_than_the_pods_limit_leaves(
    whole: Mapping[str, Any], most: int
) -> None:
    decision = build.decided(objects(whole, ONE, {"app": {"cpu": "3"}}, FIXED))
    assert requests(decision)["app"] == most
    reason, message = active(decision)
    if most == 3000:
        assert reason == "Recommending"
    else:
        assert reason == "PodLevelResources"
        assert "spec.template.spec.resources" in message
        assert f"app cpu: 3 recommended, {readable_resource('cpu', most)} at most" in message
        assert "PodLevelResources" in {event.reason for event in decision.events}


def test_other_containers_and_sidecars_keep_what_they_request() -> None:
    containers = [build.container(requests={"cpu": "200m"}), build.container("b", {}, {"cpu": "100m"})]
    sidecar = {**build.container("s", {"cpu": "150m"}), "restartPolicy": "Always"}
    before = build.container("i", {"cpu": "500m"})
    decision = build.decided(
        objects({"limits": {"cpu": "1"}}, containers, {"app": {"cpu": "3"}}, FIXED, init=[sidecar, before])
    )
    assert requests(decision)["app"] == 750


def test_several_that_rise_share_what_is_left() -> None:
    containers = [build.container("a", {"cpu": "300m"}), build.container("b", {"cpu": "200m"})]
    targets = {"a": {"cpu": "900m"}, "b": {"cpu": "300m"}}
    decision = build.decided(objects({"limits": {"cpu": "1"}}, containers, targets, FIXED))
    assert requests(decision) == {"a": 300 + 428, "b": 200 + 71, SHARED: 0}


def test_a_container_that_starves_gets_more_memory_as_far_as_there_is_some_left() -> None:
    killed = [build.oom_killed(build.at(minutes=-1))]
    whole, targets = {"limits": {"memory": "1100Mi"}}, {"app": {"memory": "1Gi"}}
    inputs = objects(whole, [build.container()], targets, FIXED, pods=killed)
    assert requests(build.decided(inputs), "memory")["app"] == 1100 * build.MIB


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
@given(
    now=st.lists(st.integers(1, 500), min_size=1, max_size=3),
    targets=st.lists(st.integers(1, 5000), min_size=3, max_size=3),
    spare=st.integers(0, 1000),
    weight=st.integers(0, 100),
)
def test_all_requests_together_never_exceed_a_limit_that_stays(
    blend: str, now: list[int], targets: list[int], spare: int, weight: int
) -> None:
    containers = [build.container(f"c{at}", {"cpu": f"{request}m"}) for at, request in enumerate(now)]
    wanted = {f"c{at}": {"cpu": f"{target}m"} for at, target in enumerate(targets[: len(now)])}
    whole = sum(now) + spare
    spec = {**FIXED, "blend": blend, "weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    busy = (
        jointly.hpa(1, jointly.utilization("cpu", 50, 90, f"{sum(now)}m")) if blend == "Trajectory" else None
    )
    inputs = objects({"limits": {"cpu": f"{whole}m"}}, containers, wanted, spec, hpa=busy)
    assert sum(requests(build.decided(inputs)).values()) <= whole
