"""Rollouts that `spec.runtimes` starts, and those that it does not start."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from builders.build import (
    MIB,
    at,
    condition,
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
from hvpa.api.values.quantity import parse_resource
from hvpa.core.model import FastUsage, MemoryUse, PodUsage
from tests.unit.core.actuation.cluster_of_runtimes import JAVA, Cluster, many
from tests.unit.core.actuation.sized_pods import decision, owned, patches_template, running, size_status

ROLLOUT = {"updateStrategy": {"type": "InPlaceOrRollout"}}


def test_another_client_that_reverts_the_template_ends_the_rollouts() -> None:
    """Argo CD, Flux or a webhook puts the template back to 1Gi after each patch. With `InPlaceOrRollout` and without
    `runtimes` HVPA leaves the template alone, so such a client was no problem. With `runtimes` it is a rollout per
    reverted patch, without an end and without a condition (`Contested` is False). `Rollout` has the gate for that."""
    cluster = Cluster(3, merged(JAVA, ROLLOUT), {"cpu": "1", "memory": "2Gi"})
    written = []
    for minute in range(0, 13 * 60, 5):
        before = cluster.generation
        cluster.tick(5)
        if cluster.generation != before:
            written.append(minute)
            cluster.template = container()
            cluster.generation += 1
            cluster.rollout()
    assert cluster.last is not None
    assert condition(cluster.last, "Contested").status == "True"
    assert written == [0, 6 * 60, 12 * 60]


# --- the fast signal -------------------------------------------------------------------------------------------------
LIMITED = container(requests={"cpu": "1", "memory": "1Gi"}, limits={"memory": "1Gi"})


def grows(cluster: Cluster, percent: int = 95) -> FastUsage:
    """The kubelets report, in the next tick, that the memory of the first pod grows to this part of its limit."""
    name, now = min(cluster.pods), cluster.now + dt.timedelta(minutes=1)
    limit = cluster.pods[name]["resources"]["limits"]["memory"]
    used = parse_resource("memory", limit) * percent // 100
    return FastUsage(now, {(name, "app"): PodUsage(memory=used, memory_time=now, grows=True)}, nodes=1)


def test_the_fast_signal_starts_no_rollout() -> None:
    """ "A short load does not justify a rollout." But a pod that lacks memory of its runtime lacks it in the very
    decision that raises it, when `fast_raises` does not have the raise yet: the template is patched at once."""
    spec = merged(merged(JAVA, ROLLOUT), {"fastSignal": {"mode": "Raise"}})
    cluster = Cluster(10, spec, {"cpu": "1", "memory": "1Gi"}, LIMITED)
    many(cluster, 3)
    cluster.tick(usage=grows(cluster))
    assert cluster.rollouts == 0


def test_a_jvm_that_fills_its_memory_is_not_replaced_again_and_again() -> None:
    """A JVM takes a share of its limit, so its use of memory after each rollout is again 95 percent. Each time the fast
    signal raises the memory by a fifth and replaces all pods: up to four times the VPA's target."""
    spec = merged(merged(JAVA, ROLLOUT), {"fastSignal": {"mode": "Raise"}})
    cluster = Cluster(10, spec, {"cpu": "1", "memory": "1Gi"}, LIMITED)
    many(cluster, 3)
    for _ in range(120):
        cluster.tick(usage=grows(cluster))
    assert cluster.rollouts <= 1


def test_the_fast_signal_raises_no_memory_that_no_pod_gets() -> None:
    """With `InPlace`, the raise is of use to nobody: the pod that grows keeps its memory. (Memory of containers that
    restart for it is left out for this reason.)"""
    spec = merged(JAVA, {"updateStrategy": {"type": "InPlace"}, "fastSignal": {"mode": "Raise"}})
    cluster = Cluster(2, spec, {"cpu": "1", "memory": "1Gi"}, LIMITED)
    many(cluster, 3)
    result = cluster.tick(usage=grows(cluster))
    assert result.resizes == ()
    assert [event.message for event in result.events if event.reason == "ScaledUp"] == []


# --- pods that wait for something else -------------------------------------------------------------------------------
def test_memory_of_a_jvm_does_not_wait_for_a_sidecar_that_uses_too_much_memory() -> None:
    """The sidecar's limit is to fall, and it uses too much for that, which may last for ever. The JVM must have more
    memory, which a rollout would give it (and the sidecar as well)."""
    was = container("side", {"cpu": "100m", "memory": "1Gi"}, {"memory": "1Gi"})
    has = container("side", {"cpu": "100m", "memory": "500Mi"}, {"memory": "1Gi"})
    wanted = {"requests": {"cpu": "100m", "memory": "500Mi"}, "limits": {"memory": "500Mi"}}
    larger = {"cpu": "1", "memory": "2Gi"}
    status = size_status(1, {"app": {"requests": larger}, "side": wanted}, at(hours=-3))
    own = hvpa(merged({"hpa": {"deploy": False}, **ROLLOUT}, JAVA), status)
    app = container("app")
    shown = [{"name": entry["name"], "resources": entry["resources"]} for entry in (app, has)]
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(hours=-1))}
    change = owned(generation=2) | {"status": {"containerStatuses": shown, "conditions": [ready]}}
    pods = [pod("web-1", containers=[app, has], change=change)]
    use = MemoryUse(at(seconds=-5), {("web-1", "side"): 1000 * MIB, ("web-1", "app"): 500 * MIB})
    vertical = vpa({"app": larger, "side": wanted["requests"]})
    result = decided(objects(own, workload(1, [app, was]), None, vertical, pods, memory_use=use))
    assert patches_template(result)


@pytest.mark.parametrize("cpu", ["1", "500m"])
def test_memory_of_a_jvm_does_not_wait_for_cpu_that_a_window_holds(cpu: str) -> None:
    """Less CPU was decided in a window that has closed, so it waits for the next one. More memory is allowed at any
    time, but waits with it: up to a day, until the JVM runs out of memory."""
    window: dict[str, Any] = {
        "vpa": {"scaleDown": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}},
        "maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"},
    }
    wanted = {"requests": {"cpu": cpu, "memory": "2Gi"}}
    result = decision([running()], wanted, strategy=ROLLOUT["updateStrategy"], spec=merged(JAVA, window))
    assert patches_template(result)


def test_memory_of_a_jvm_does_not_wait_for_cpu_that_all_pods_have() -> None:
    """CPU was lowered in place from 4 to 1 long ago, so the template still has 4. Now the JVM must have more memory,
    which may be raised at any time. But the patch of the template would also "lower" its CPU, so it waits for the next
    window of scaleDown, and no condition says so: ScalingBlocked is False, and the message promises that new pods have
    it."""
    window: dict[str, Any] = {
        "vpa": {"scaleDown": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}},
        "maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"},
    }
    wanted = {"cpu": "1", "memory": "2Gi"}
    status = size_status(1, {"app": {"requests": wanted}}, at(hours=-3))
    own = hvpa(merged(merged({"hpa": {"deploy": False}, **ROLLOUT}, window), JAVA), status)
    target = workload(1, [container("app", {"cpu": "4", "memory": "1Gi"})])
    result = decided(
        objects(own, target, None, vpa({"app": wanted}), [running(requests={"cpu": "1", "memory": "1Gi"})])
    )
    assert patches_template(result)


def test_a_rollout_that_a_window_holds_is_reported() -> None:
    """More memory was decided in a window that has closed before the rollout could begin (another one went on). The
    Hvpa says neither that it waits nor for what."""
    window: dict[str, Any] = {
        "vpa": {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}},
        "maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"},
    }
    wanted = {"requests": {"cpu": "1", "memory": "2Gi"}}
    result = decision([running()], wanted, strategy=ROLLOUT["updateStrategy"], spec=merged(JAVA, window))
    assert not patches_template(result)
    assert any("MaintenanceWindow" in shown.message for shown in result.status.conditions)


def test_without_the_policy_in_place_the_status_promises_nothing() -> None:
    """With `InPlace` and without the policy for new pods, new pods are created with the template's memory, and no
    resize changes it: no pod ever has the decided memory. The Hvpa is Ready and says "new pods have the new size"."""
    cluster = Cluster(2, merged(JAVA, {"updateStrategy": {"type": "InPlace"}}), {"cpu": "1", "memory": "2Gi"})
    many(cluster, 3)
    cluster.create()
    result = many(cluster, 5)[-1]
    assert {cluster.memory(name) for name in cluster.pods} == {"1Gi"}
    assert result.status.actuation is not None
    assert not result.status.actuation.size_at_creation
    assert "new pods have the new size" not in result.status.actuation.message
