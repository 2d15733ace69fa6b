"""Pods that ran out of memory, with `spec.runtimes`."""

from __future__ import annotations

from typing import Any

import pytest

from builders.build import (
    MIB,
    at,
    container,
    decided,
    hvpa,
    merged,
    objects,
    pod,
    stamp,
    vpa,
    workload,
)
from hvpa.api.objects.read_models import Pod
from hvpa.api.values.quantity import parse_resource
from hvpa.core.model import MemoryUse
from tests.unit.core.actuation.cluster_of_runtimes import JAVA, Cluster, many
from tests.unit.core.actuation.sized_pods import decision, ended, owned, resized, running, size_status

WINDOW = {
    "updateStrategy": {"type": "InPlaceOrRollout"},
    "vpa": {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}},
    "maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"},
}


def memory(text: str) -> int:
    return parse_resource("memory", text)


@pytest.mark.parametrize("strategy", [{"updateStrategy": {"type": "InPlace"}}, WINDOW])
def test_pods_with_the_old_memory_call_for_no_more_than_was_decided(strategy: dict[str, Any]) -> None:
    """2Gi was decided, and the six present JVMs keep 1Gi. They run out of 1Gi one after the other. None has run out of
    2Gi, so nothing shows that 2Gi is too little. Today each raises the desired memory by a fifth: 6.4G in the end,
    which new pods then have (up to four times the VPA's target, or maxAllowed)."""
    status = size_status(6, {"app": {"requests": {"memory": "2Gi"}}}, at(hours=-2))
    cluster = Cluster(6, merged(JAVA, strategy), {"cpu": "1", "memory": "2Gi"}, status=status)
    many(cluster, 3)
    for name in list(cluster.pods):
        assert cluster.memory(name) == "1Gi"
        cluster.oom(name)
        many(cluster, 15)
    assert cluster.rollouts == 0
    assert memory(cluster.desired()["requests"]["memory"]) < 1.01 * memory("2Gi")


def test_a_leak_in_one_pod_does_not_replace_all_others_each_time() -> None:
    """One of 50 JVMs runs out of memory each quarter of an hour. Without `runtimes` no pod is replaced. With them,
    every raise starts a rollout of all 50 pods at once: six in 90 minutes. The docs say only that the memory of this
    container is raised in place."""
    spec = merged(JAVA, {"updateStrategy": {"type": "InPlaceOrRollout"}})
    cluster = Cluster(50, spec, {"cpu": "1", "memory": "1Gi"})
    many(cluster, 3)
    for _ in range(6):
        cluster.oom(max(cluster.pods))
        many(cluster, 15)
    assert cluster.rollouts <= 1


# --- a heap that is full ---------------------------------------------------------------------------------------------
EXITS = {"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-XX:+ExitOnOutOfMemoryError"}]}


@pytest.mark.parametrize(
    ("code", "env", "spec", "raised"),
    [
        (3, EXITS, JAVA, True),
        (1, EXITS, JAVA, False),
        (3, merged(EXITS, {"command": ["java", "-Xmx512m"]}), JAVA, False),
        (3, {}, JAVA, False),
        (3, EXITS, {}, False),
        (134, {}, {"runtimes": [{"container": "app", "kind": "Node"}]}, True),
        (134, {}, {"runtimes": [{"container": "side", "kind": "Node"}]}, False),
    ],
)
def test_a_container_that_ended_because_its_heap_was_full_gets_more_memory(
    code: int, env: dict[str, Any], spec: dict[str, Any], raised: bool
) -> None:
    """In place, as after an OOM: it starts again, and reads the new limit."""
    size = {"cpu": "1", "memory": "1Gi"}
    end = {"terminated": {"reason": "Error", "exitCode": code, "finishedAt": stamp(at(minutes=-1))}}
    for state in ("state", "lastState"):
        app = merged(container(requests=size, limits={"memory": "1Gi"}), env)
        pods = [
            running("web-1", size, limits={"memory": "1Gi"}, more=env, status={state: end}),
            running("web-2", size, limits={"memory": "1Gi"}, more=env),
        ]
        usual = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}}
        inputs = objects(hvpa(merged(usual, spec)), workload(2, [app]), None, vpa({"app": size}), pods)
        result = decided(inputs)
        assert (result.containers["app"].requests["memory"] > memory("1Gi")) is raised
        resizes = {resize.pod for resize in result.resizes}
        assert resizes == ({"web-1"} if raised else set())


@pytest.mark.parametrize(
    ("limits", "whole", "raised"),
    [(None, None, False), ({"memory": "1Gi"}, None, True), (None, {"memory": "2Gi"}, True)],
)
def test_without_a_limit_a_full_heap_gets_no_more_memory(limits: Any, whole: Any, raised: bool) -> None:
    """It is a share of the node's memory. A larger request does not enlarge it."""
    size = {"cpu": "1", "memory": "1Gi"}
    end = {"terminated": {"reason": "Error", "exitCode": 3, "finishedAt": stamp(at(minutes=-1))}}
    app = merged(container(requests=size, limits=limits), EXITS)
    own = {} if whole is None else {"spec": {"resources": {"requests": size, "limits": whole}}}
    pods = [running("web-1", size, limits=limits, more=EXITS, status={"state": end}, change=own)]
    usual = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, **JAVA}
    target = workload(1, [app], {"spec": {"template": own}})
    result = decided(objects(hvpa(usual), target, None, vpa({"app": size}), pods))
    assert (result.containers["app"].requests["memory"] > memory("1Gi")) is raised


# --- lowering --------------------------------------------------------------------------------------------------------
def test_the_memory_of_a_container_that_restarted_is_not_lowered_under_its_heap() -> None:
    """A JVM ran out of memory, restarted with 2Gi eight minutes ago, and 1Gi was decided now (maxAllowed was lowered,
    or a size was rolled back). Ends of the last ten minutes are meant to raise memory at once; they also lower it in
    place, below the heap of the JVM that started with 2Gi."""
    small = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    pods = [
        running(
            "web-1", {"cpu": "1", "memory": "2Gi"}, limits={"memory": "2Gi"}, status=ended(at(minutes=-8))
        )
    ]
    use = MemoryUse(at(seconds=-5), {("web-1", "app"): 300 * MIB})
    assert resized(decision(pods, small, spec=JAVA, since=at(minutes=-1), memory_use=use)) == {}


# --- other containers ------------------------------------------------------------------------------------------------
def two(name: str, app: dict[str, str], side: dict[str, str], status: dict[str, Any]) -> Pod:
    containers = [container("app", app), container("side", side)]
    shown = [{"name": entry["name"], "resources": entry["resources"]} for entry in containers]
    shown[1] |= status
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(hours=-1))}
    change = owned(generation=2) | {"status": {"containerStatuses": shown, "conditions": [ready]}}
    return pod(name, containers=containers, change=change)


@pytest.mark.parametrize("strategy", ["InPlace", "InPlaceOrRollout"])
def test_memory_of_a_jvm_that_waits_does_not_hold_the_raise_of_a_sidecar(strategy: str) -> None:
    """The sidecar of web-1 ran out of memory and has 200Mi now. web-2 must get them as well. But web-1 lacks memory of
    its JVM too, which no resize gives, so web-2 waits for ever: "pod web-1, which ran out of memory, gets its new size
    first"."""
    app, larger = {"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi"}
    side, more = {"cpu": "100m", "memory": "100Mi"}, {"cpu": "100m", "memory": "200Mi"}
    status = size_status(2, {"app": {"requests": larger}, "side": {"requests": more}}, at(minutes=-3))
    own = hvpa({"updateStrategy": {"type": strategy}, "hpa": {"deploy": False}, **JAVA}, status)
    pods = [two("web-1", app, more, ended(at(minutes=-4))), two("web-2", app, side, {})]
    target = workload(2, [container("app", app), container("side", side)])
    result = decided(objects(own, target, None, vpa({"app": larger, "side": more}), pods))
    assert resized(result) == {"web-2": {"requests": {"memory": "200Mi"}}}
