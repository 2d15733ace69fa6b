"""Resizes in place with real controllers: the API server, the HPA controller, metrics-server, the VPA recommender, the
Deployment controller and the scheduler; KWOK acts as the kubelet."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.manifests import CPU_ANNOTATION, MEMORY_ANNOTATION, START_UP_ANNOTATION
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.load import PodLoad, await_pods
from tests.e2e.full import objects
from tests.e2e.full.objects import MEBI
from tests.e2e.reapplying import FLUX, Reapplying, in_git

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 180
LOW, FACTOR = 300, 3
"""Millicores that arrive in the beginning, and how many times as many arrive later."""
TARGET = 80
"""The percentage of its request that a pod is to use."""
START_UP = 10
"""Seconds that a new pod takes to become ready: longer than the HPA takes to see it, and the operator to act."""
LOOK = 0.2


class Seen(NamedTuple):
    """The pods of a Deployment at one time."""

    at: float
    ready: int
    """Pods that are ready."""
    millicores: int
    """What those have, by their kubelet."""
    restarts: int


def deployment(name: str, namespace: str) -> Json:
    """Two pods of 250m that use as much as the HPA aims at until they get their share of the load."""
    usage = {CPU_ANNOTATION: "200m", MEMORY_ANNOTATION: "100Mi", START_UP_ANNOTATION: f"{START_UP}s"}
    return samples.deployment(name, namespace, replicas=2, cpu="250m", annotations=usage)


def hvpa(name: str, namespace: str, most: str = "2") -> Json:
    """Both axes follow the CPU from two pods of 250m on; what falls is held for eight seconds."""
    horizontal = objects.horizontal(least=2, most=6, scaleDown={"stabilizationDuration": "8s"})
    target = {"type": "Utilization", "averageUtilization": TARGET}
    horizontal["template"]["spec"]["metrics"] = [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]
    policy = {
        "containerName": "*",
        "controlledResources": ["cpu"],
        "controlledValues": "RequestsOnly",
        "minAllowed": {"cpu": "250m"},
        "maxAllowed": {"cpu": most},
    }
    small = {"cpu": {"value": "25m"}}
    vertical = objects.vertical(
        template={
            "metadata": {"labels": {"role": "vpa"}},
            "spec": {"resourcePolicy": {"containerPolicies": [policy]}},
        },
        scaleUp={"minChange": small},
        scaleDown={"minChange": small, "minHistory": "8s", "stabilizationDuration": "8s"},
    )
    return objects.hvpa(
        name,
        namespace,
        blend="Trajectory",
        updateStrategy={"type": "InPlace"},
        hpa=horizontal,
        vpa=vertical,
        weightBasedScalingIntervals=[{"vpaWeight": 50}],
    )


def look(api: KubeApi, namespace: str, name: str, began: float) -> Seen:
    pods = api.list("Pod", namespace, f"app={name}")
    ready = [
        pod
        for pod in pods
        if any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in pod["status"].get("conditions", ())
        )
    ]
    statuses = [status for pod in pods for status in pod["status"].get("containerStatuses", ())]
    have = [
        status["resources"]["requests"]["cpu"]
        for pod in ready
        for status in pod["status"]["containerStatuses"]
    ]
    restarts = sum(status.get("restartCount", 0) for status in statuses)
    return Seen(time.monotonic() - began, len(ready), sum(map(parse_cpu, have)), restarts)


@contextmanager
def watching(api: KubeApi, namespace: str, name: str) -> Iterator[list[Seen]]:
    """What is to be seen of the pods, five times a second, until the block ends."""
    observations: list[Seen] = []
    ended, began = threading.Event(), time.monotonic()

    def watch() -> None:
        while not ended.wait(LOOK):
            observations.append(look(api, namespace, name, began))

    thread = threading.Thread(target=watch, name="watch pods", daemon=True)
    thread.start()
    try:
        yield observations
    finally:
        ended.set()
        thread.join(10)


def both_recommend(api: KubeApi, name: str, namespace: str) -> bool:
    """Whether both recommenders' recommendations count."""
    conditions = objects.conditions(api, name, namespace)
    return {conditions[kind][0] for kind in ("HpaActive", "VpaActive")} == {"True"}


def size(api: KubeApi, namespace: str, name: str) -> list[str]:
    """The CPU that each pod is to have."""
    pods = api.list("Pod", namespace, f"app={name}")
    return sorted(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods)


def is_as_in_the_beginning(api: KubeApi, namespace: str, name: str) -> bool:
    """Two pods of 250m, or of what is no tenth more: that is left alone."""
    amounts = size(api, namespace, name)
    return len(amounts) == 2 and all(250 <= parse_cpu(amount) <= 275 for amount in amounts)


def test_three_times_the_load_has_the_size_of_three_pods_before_the_third_is_ready(
    cluster: ControlPlane, operator: Operator, namespace: str
) -> None:
    """300m on two pods of 250m become 900m within a second, for which three pods of 375m are right. The new pod takes
    ten seconds to start; the two that are there have that size meanwhile. Afterwards all is as in the beginning. All
    the time the Deployment is applied as Flux does it, with its resources and without replicas."""
    api, name = cluster.api, "tripled"
    made = deployment(name, namespace)
    manifest = in_git(made, replicas=False, resources=True)
    api.create(made)
    api.create(hvpa(name, namespace))
    await_pods(api, namespace, name)
    with (
        Reapplying(cluster, FLUX, lambda: [manifest]) as flux,
        PodLoad(api, namespace, f"app={name}", cpu=LOW, base_memory=100 * MEBI) as load,
    ):
        wait_for(lambda: both_recommend(api, name, namespace), TIMEOUT, "both recommend")
        wait_for(lambda: size(api, namespace, name) == ["250m"] * 2, TIMEOUT, "two pods of 250m")
        with watching(api, namespace, name) as observations:
            load.cpu = FACTOR * LOW
            wait_for(lambda: observations[-1].ready > 2, TIMEOUT, "new pods")
            time.sleep(2 * LOOK)
        larger = [observation for observation in observations if observation.millicores >= 2 * 350]
        assert larger, observations
        assert larger[0].ready == 2, "the pods that are there"
        started = next(observation.at for observation in observations if observation.ready > 2)
        assert started - larger[0].at > START_UP / 2, "long before new ones are ready"
        assert observations[-1].millicores >= FACTOR * LOW, "all of it is served"
        wait_for(lambda: len(set(size(api, namespace, name))) == 1, TIMEOUT, "pods of one size")
        assert objects.replicas(api, name, namespace) > 2
        load.cpu = LOW
        wait_for(lambda: is_as_in_the_beginning(api, namespace, name), TIMEOUT, "all is as in the beginning")
    assert look(api, namespace, name, 0).restarts == 0
    assert objects.resources(api, name, namespace)[0] == 250, "the pod template"
    assert flux.rounds > 3
    assert [axis for axis in objects.axes(api, name, namespace).values() if "setBack" in axis] == []


def test_pods_that_no_node_takes_are_served_by_size(
    cluster: ControlPlane, operator: Operator, namespace: str
) -> None:
    """No two pods may be on one node, and there are two nodes: new pods stay pending. The two that run serve their part
    as well once a smaller size was no help, as long as that lasts, and `Ready` says which pods no node takes."""
    api, name = cluster.api, "pending"
    made = deployment(name, namespace)
    apart = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    made["spec"]["template"]["spec"]["affinity"] = affinity
    api.create(made)
    api.create(hvpa(name, namespace))
    await_pods(api, namespace, name)
    with PodLoad(api, namespace, f"app={name}", cpu=LOW, base_memory=100 * MEBI) as load:
        wait_for(lambda: both_recommend(api, name, namespace), TIMEOUT, "both recommend")
        load.cpu = FACTOR * LOW
        with watching(api, namespace, name) as observations:
            wait_for(
                lambda: observations and observations[-1].millicores >= FACTOR * LOW,
                TIMEOUT,
                "two pods serve all of it",
            )
            wait_for(
                lambda: objects.conditions(api, name, namespace)["Ready"] == ("False", "PodsUnschedulable"),
                TIMEOUT,
                "what waits is reported",
            )
            time.sleep(8)
        larger = [observation for observation in observations if observation.millicores >= FACTOR * LOW]
        assert observations[-len(larger) :] == larger, "they stay larger"
        assert {observation.ready for observation in observations} == {2}
        assert objects.replicas(api, name, namespace) > 2
        load.cpu = LOW
        wait_for(lambda: is_as_in_the_beginning(api, namespace, name), TIMEOUT, "all is as in the beginning")
    assert look(api, namespace, name, 0).restarts == 0
