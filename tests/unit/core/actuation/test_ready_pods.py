"""Pods that are ready are larger until the others are: `status.desired.readyPods`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from builders.build import NOW, at, container, hvpa, merged, objects, stamp, vpa, workload
from hvpa.api.objects.read_models import Pod
from hvpa.core.actuation.desired import Decided, next_desired
from hvpa.core.actuation.pods import Resizing, resize_pods
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import RefusedResize, ResourceRequirements, Settings
from hvpa.core.observing import observe
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from tests.unit.core.actuation.test_pods import RESTARTS, resize_condition, running

GIB = 1024**3
CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")
SIZE = {"app": ResourceRequirements({"cpu": 2000, "memory": GIB}, {})}
HAS = {"cpu": "2", "memory": "1Gi"}
LARGER = {"cpu": "6", "memory": "1Gi"}


def resizing(
    pods: Sequence[Pod],
    ready_pods: Mapping[ResourceKey, int],
    spec: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Resizing:
    """What is to be resized where 2 cores were decided, and `ready_pods` for the pods that are ready."""
    one = hvpa(merged({"updateStrategy": {"type": "InPlace"}}, spec or {}))
    seen = observe(objects(one, workload(len(pods)), None, vpa({}), pods, **rest), NOW, Settings())
    assert seen.spec is not None
    assert seen.target is not None
    clock = Clock(at(hours=-1))
    parts = Decided(len(pods), SIZE, frozenset({"app"}), ready_pods)
    desired = next_desired(clock, None, seen.target, parts)
    return resize_pods(GateContext(Clock(NOW), seen.spec, is_settled=True), seen, desired)


def cpu(found: Resizing) -> dict[str, str]:
    """By pod the CPU that it is asked to have."""
    return {
        one.pod: one.body["spec"]["containers"][0]["resources"]["requests"]["cpu"]  # type: ignore[index]
        for one in found.resizes
    }


def test_those_that_are_ready_are_larger_and_give_it_back() -> None:
    pods = [running("web-0", HAS), running("web-1", HAS, ready=False)]
    first = resizing(pods, {CPU: 6000})
    assert cpu(first) == {"web-0": "6"}
    assert first.status.resized == "1/2"
    served = resizing([running("web-0", LARGER), pods[1]], {CPU: 6000})
    assert (served.resizes, served.status.resized) == ((), "2/2")
    after = resizing([running("web-0", LARGER), running("web-1", HAS)], {})
    assert cpu(after) == {"web-0": "2"}


def test_a_container_without_another_size_is_larger_as_well() -> None:
    side = [container(), container("side", {"cpu": "50m"})]
    found = resizing(
        [running("web-0", HAS, change={"spec": {"containers": side}})], {ResourceKey("side", "cpu"): 100}
    )
    (asked,) = found.resizes
    assert [one["name"] for one in asked.body["spec"]["containers"]] == ["app", "side"]  # type: ignore[index]


def test_memory_is_raised_with_its_limit_and_given_back_by_steps() -> None:
    limited = {"cpu": "4", "memory": "1Gi"}
    (asked,) = resizing([running("web-0", HAS, limits=limited)], {CPU: 3000, MEMORY: 3 * GIB}).resizes
    resources = asked.body["spec"]["containers"][0]["resources"]  # type: ignore[index]
    assert resources == {"requests": {"cpu": "3", "memory": "3Gi"}, "limits": {"memory": "3Gi"}}


def test_nothing_restarts_for_it() -> None:
    restarting = {"resizePolicy": [{**RESTARTS[0], "restartPolicy": "RestartContainer"}]}
    found = resizing([running("web-0", HAS, more=restarting)], {CPU: 6000})
    assert (found.resizes, found.status.resized) == ((), "1/1")


def test_a_node_without_room_for_it_is_no_reason_for_another_rung() -> None:
    has = {"requests": HAS}
    for reason in ("Deferred", "Infeasible"):
        told = resize_condition("PodResizePending", reason, hours=1)
        old = {"status": {"startTime": stamp(at(hours=-2))}}
        found = resizing([running("web-0", LARGER, has, conditions=[told], change=old)], {CPU: 6000})
        assert (found.resizes, found.stuck) == ((), "")
        assert getattr(found.status, reason.lower()) == 1


def test_a_pod_that_may_not_have_it_has_its_size() -> None:
    (asked,) = resizing([running("web-0", HAS)], {CPU: 6000}).resizes
    refused = RefusedResize("web-0", asked.body, "a quota is against it", NOW)
    found = resizing([running("web-0", HAS)], {CPU: 6000}, refused_resizes=(refused,))
    assert (found.resizes, found.stuck, found.status.resized) == ((), "", "1/1")


@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_it_is_raised_only_where_it_may_be_lowered_again(direction: str) -> None:
    off = {"vpa": {direction: {"updatePolicy": {"updateMode": "Off"}}}}
    assert resizing([running("web-0", HAS)], {CPU: 6000}, off).resizes == ()


def test_that_the_pods_are_ready_changes_nothing_else_of_what_was_decided() -> None:
    target, clock = workload(2), Clock(NOW)
    first = next_desired(Clock(at(hours=-1)), None, target, Decided(2, SIZE, frozenset({"app"}), {CPU: 6000}))
    after = next_desired(clock, first, target, Decided(2, SIZE, frozenset(), {}))
    assert after == first.model_copy(update={"ready_pods": ()})
    assert next_desired(clock, after, target, Decided(2, SIZE, frozenset(), {})) is after


def test_a_guaranteed_pod_stays_guaranteed_and_its_limit_goes_along() -> None:
    found = resizing([running("web-0", HAS, limits=HAS)], {CPU: 6000})
    (asked,) = found.resizes
    resources = asked.body["spec"]["containers"][0]["resources"]  # type: ignore[index]
    assert resources == {"requests": {"cpu": "6"}, "limits": {"cpu": "6"}}
