"""Pods with resources of their own (docs/pod-level-resources.md): defaults, shared CPU and memory, resizes, objects."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.pod_level import POD
from hvpa.recommend.hpa.pods import request_of
from hvpa_lab.simulate.cluster.objects import PodObjects, WorkloadObject
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.state import Shape, Template, pod_shape, with_default_requests
from hvpa_lab.simulate.model import NodeModel, RuntimeModel
from tests.unit.lab.simulate.build import START
from tests.unit.lab.simulate.cluster.build import bounds, container, measured, reasons, states, workload


def resources(requests: Any = None, limits: Any = None) -> ResourceRequirements:
    return ResourceRequirements(bounds(*(requests or ())), bounds(*(limits or ())))


def shared(requests: Any = None, limits: Any = None, *containers: Any, **fields: Any) -> SimWorkload:
    """An app and a proxy, which share the resources of their pod."""
    given = containers or (
        container("app", cpu_per_unit=10.0, memory_per_unit=10.0),
        container("proxy", cpu_base=5.0, memory_base=50.0),
    )
    return workload(1, *given, resources=resources(requests, limits), **fields)


# --- requests -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("app", "own", "filled"),
    [
        (resources(), resources((600, 900)), resources((600, 900))),
        (resources(), resources(None, (600, 900)), resources((600, 900), (600, 900))),
        (resources((200, 300)), resources(None, (600, 900)), resources((200, 300), (600, 900))),
        (resources(None, (200, 300)), resources(None, (600, 900)), resources((200, 300), (600, 900))),
        (resources((200, 300)), resources(None, (600,)), resources((200, 300), (600,))),
        (resources((200, 300)), resources((600,), (600,)), resources((600, 300), (600,))),
        (resources((200, 300)), resources((600,)), resources((600,))),
    ],
    ids=[
        "as given",
        "the limit without any request",
        "the containers' total",
        "the containers' limits are their requests",
        "a limit of CPU sets the request of memory too",
        "beside a request",
        "no defaults without a limit",
    ],
)
def test_the_missing_request_of_a_pod(
    app: ResourceRequirements, own: ResourceRequirements, filled: ResourceRequirements
) -> None:
    template = {"app": app, "proxy": resources(), POD: own}
    assert with_default_requests(template)[POD] == filled


def test_complete_resources_stay_the_same_object() -> None:
    template = {"app": resources((1, 2)), POD: resources((3, 4), (3, 4))}
    assert with_default_requests(template) is template


@pytest.mark.parametrize(
    ("own", "shape"),
    [
        ({}, Shape(300, 400, math.inf, math.inf)),
        ({POD: resources((1000,))}, Shape(1000, 400, math.inf, math.inf)),
        ({POD: resources((1000, 2000), (1500, 2000))}, Shape(1000, 2000, 1500, 2000)),
    ],
)
def test_a_pod_requests_what_its_containers_request_beside_its_own(own: Template, shape: Shape) -> None:
    containers = {"app": resources((200, 300), (9000, 9000)), "proxy": resources((100, 100))}
    assert pod_shape({**containers, **own}) == shape


def test_nodes_hold_what_pods_request_themselves() -> None:
    """Two pods of 600m each do not fit on a node of a core, although their containers request nothing."""
    state = shared((600, 100), None, nodes=NodeModel(cpu=1000))
    state.scale(2, 0.0)
    assert [pod.node for pod in state.pods] == [1, 2]
    assert state.advance(0.0, 15.0, 0.0).requested_cpu == 1200


# --- CPU and memory -------------------------------------------------------------------------------------------------
def test_containers_share_the_cpu_limit_of_their_pod_and_one_takes_what_the_other_leaves() -> None:
    state = shared(None, (100, 1000))
    tick, cpu = measured(state, 0.0, 15.0, 20.0)
    assert cpu == {(1, "app"): 95.0, (1, "proxy"): 5.0}
    assert (tick.unmet, tick.capacity) == (105.0, 100.0)


def test_a_container_without_a_request_has_the_weight_of_the_pods_limit() -> None:
    """The app requests 50m, the proxy has the weight of the pod's 100m: a third and two thirds."""
    app = container("app", bounds(50), cpu_per_unit=10.0)
    state = shared((100,), (100,), app, container("proxy", cpu_per_unit=10.0))
    _, cpu = measured(state, 0.0, 15.0, 100.0)
    assert cpu == pytest.approx({(1, "app"): 100 / 3, (1, "proxy"): 200 / 3})


def test_above_the_memory_limit_of_the_pod_the_container_most_beyond_its_request_is_killed() -> None:
    app = container("app", bounds(None, 400), memory_base=350.0)
    state = shared((100, 500), (100, 500), app, container("proxy", memory_per_unit=10.0))
    assert state.advance(0.0, 15.0, 15.0).ooms == 0
    assert state.advance(15.0, 15.0, 15.1).ooms == 1
    first, proxy = state.pods[0].containers
    assert (first.oom_at, proxy.oom_at) == (None, 15.0)


def test_a_leak_reaches_the_limit_of_the_pod_at_its_exact_time() -> None:
    state = shared(None, (100, 500), container("app", memory_leak=4.0), container("proxy", memory_base=100.0))
    state.advance(0.0, 150.0, 0.0)
    assert reasons(state) == [(100.0, "OOMKilled")]


def test_a_runtime_without_a_limit_reads_that_of_its_pod() -> None:
    app = container("app", runtime=RuntimeModel("Java", "75%"))
    state = shared(None, (100, 400), app, nodes=NodeModel(memory=4000))
    assert state.pods[0].containers[0].heap == 300


# --- resizes --------------------------------------------------------------------------------------------------------
def resized(state: SimWorkload, now: float, own: ResourceRequirements) -> None:
    (pod,) = state.pods
    state.resize(pod, {**pod.desired_resources, POD: own}, now)


def test_a_pod_is_resized_as_a_whole() -> None:
    state = shared((100, 500), (200, 500), nodes=NodeModel(cpu=1000), resize_delay=2.0)
    resized(state, 0.0, resources((900, 600), (1000, 600)))
    state.advance(0.0, 1.0, 0.0)
    assert (state.pods[0].cpu_request, states(state)) == (100, [""])
    state.advance(1.0, 2.0, 0.0)
    assert state.pods[0].shape == Shape(900, 600, 1000, 600)
    assert states(state) == [None]
    resized(state, 3.0, resources((1100, 600), (1100, 600)))
    assert state.refusal(state.pods[0], state.pods[0].desired_resources).endswith("resources: cpu")


def test_a_memory_limit_of_a_pod_below_its_usage_waits() -> None:
    """The kubelet compares the usage of both containers, 150."""
    state = shared((100, 100), (200, 500))
    state.advance(0.0, 15.0, 10.0)
    resized(state, 15.0, resources((100, 100), (200, 150)))
    state.advance(15.0, 15.0, 10.0)
    assert states(state) == ["Error"]
    progress = next(
        one for one in PodObjects(state, START).read()[0].status.conditions if one.reason == "Error"
    )
    problem = "attempting to set pod memory limit (150) below current usage (150)"
    assert progress.message == f"cannot decrease memory limits: [{problem}]"
    state.advance(30.0, 15.0, 9.0)
    assert (states(state), state.pods[0].shape.memory_limit) == ([None], 150)


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        (resources((100, 100), (100, 100)), resources((100, 100), (200, 100))),
        (resources((100, 100), (200, 200)), resources((200, 200), (200, 200))),
        (resources((100, 100), (200, 200)), resources((100, 100), (200,))),
    ],
    ids=["no longer Guaranteed", "no longer Burstable", "without its limit"],
)
def test_the_qos_class_is_that_of_the_pods_own_resources(
    own: ResourceRequirements, wanted: ResourceRequirements
) -> None:
    app = container("app", bounds(10, 10), bounds(50, 50))
    state = workload(1, app, resources=own)
    resized(state, 0.0, wanted)
    assert states(state) == ["Infeasible"]


# --- objects --------------------------------------------------------------------------------------------------------
def test_objects_show_the_resources_of_the_pod() -> None:
    app = container("app", bounds(100))
    state = shared((600, 100), (800, 1000), app, container("proxy"), resize_delay=60.0)
    template = WorkloadObject(state, START).read().spec.template.spec
    assert [one.name for one in template.containers] == ["app", "proxy"]
    assert template.resources is not None
    assert template.resources.requests == {"cpu": "600m", "memory": "100"}
    resized(state, 0.0, resources((700, 200), (900, 2000)))
    (pod,) = PodObjects(state, START).read()
    assert pod.spec.resources is not None
    assert pod.status.resources is not None
    assert (pod.spec.resources.limits["cpu"], pod.status.resources.limits["cpu"]) == ("900m", "800m")
    assert [one.name for one in pod.status.container_statuses] == ["app", "proxy"]


def test_the_hpa_divides_by_the_request_of_the_pod() -> None:
    state = shared((600,), None, container("app", bounds(100, 200)), container("proxy"))
    (pod,) = PodObjects(state, START).read()
    assert request_of(pod, "", "cpu") == 600
    assert request_of(pod, "", "memory") == 200 * 1000
    assert request_of(pod, "app", "cpu") == 100


def test_pods_without_their_own_resources_have_none() -> None:
    (pod,) = PodObjects(workload(1), START).read()
    assert (pod.spec.resources, pod.status.resources) == (None, None)
