"""Runtimes that size their heap when their container starts (docs/runtimes.md)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.api.hvpa.actuation import Runtime
from hvpa.api.objects.read_models import TemplateContainer
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.runtimes import Heap, full_heap_exits, heap_of
from hvpa_lab.simulate.cluster.objects import PodObjects, WorkloadObject
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.state import SimContainer
from hvpa_lab.simulate.model import ContainerModel, NodeModel, RuntimeKind, RuntimeModel
from tests.unit.lab.simulate.build import START
from tests.unit.lab.simulate.cluster.build import ENDLESS, MI, bounds, container, in_place, workload

HALF = RuntimeModel("Java", "50%")


def jvm(limit: int | None = 400, runtime: RuntimeModel = HALF, **uses: float) -> ContainerModel:
    """100 bytes beside the heap, and 10 in it for each unit of the load."""
    values = {"memory_base": 100.0, "memory_per_unit": 10.0, "cpu_per_unit": 1.0} | uses
    return container("app", bounds(1, 50), bounds(None, limit), runtime, **values)


def with_limit(memory: int) -> dict[str, ResourceRequirements]:
    return {"app": ResourceRequirements(bounds(1, 50), bounds(None, memory))}


def only(state: SimWorkload) -> SimContainer:
    return state.pods[0].containers[0]


def last_state(state: SimWorkload) -> str:
    (status,) = PodObjects(state, START).read()[0].status.container_statuses
    return "" if status.last_state.terminated is None else status.last_state.terminated.reason


def test_a_container_whose_heap_is_full_ends_without_an_oom() -> None:
    """Half of 400 is heap, and 100 are beside it: 20 units fill it, far below the limit."""
    killed: list[object] = []
    state = workload(1, jvm())
    state.on_oom = lambda *what: killed.append(what)
    assert state.advance(0.0, 15.0, 20.0).ooms == 0
    tick = state.advance(15.0, 15.0, 20.1)
    assert (tick.ooms, tick.restarts, tick.ready) == (1, 1, 0)
    assert (only(state).oom_at, only(state).failed_at, killed) == (None, 15.0, [])
    assert last_state(state) == "Error"
    (event,) = state.events
    assert (event.kind, event.reason) == ("OOM", "HeapFull")
    assert event.message == "Container app of app-1 had 300 bytes of memory, and its heap of 200 was full"


def test_a_heap_keeps_its_size_when_its_container_grows_in_place_and_has_a_new_one_after_a_restart() -> None:
    state = in_place(1, jvm())
    state.resize(state.pods[0], with_limit(1000), 0.0)
    state.advance(0.0, 15.0, 20.0)
    assert (state.pods[0].shapes[0].memory_limit, only(state).heap) == (1000, 200)
    assert state.advance(15.0, 60.0, 21.0).ooms == 1
    assert only(state).heap == 500
    assert state.advance(75.0, 15.0, 50.0).ooms == 0


def test_a_container_that_shrinks_below_its_heap_is_oomkilled_when_the_heap_grows() -> None:
    state = in_place(1, jvm())
    state.resize(state.pods[0], with_limit(250), 0.0)
    assert state.advance(0.0, 15.0, 15.0).ooms == 0
    state.advance(15.0, 15.0, 16.0)
    assert (only(state).oom_at, only(state).failed_at, last_state(state)) == (15.0, None, "OOMKilled")
    assert [event.reason for event in state.events] == ["OOMKilled"]


def test_of_two_ends_the_last_is_reported() -> None:
    state = in_place(1, jvm())
    state.advance(0.0, 60.0, 21.0)
    assert last_state(state) == "Error"
    state.resize(state.pods[0], with_limit(250), 60.0)
    state.advance(60.0, 15.0, 16.0)
    assert last_state(state) == "OOMKilled"
    assert only(state).failed_at is None
    state.advance(75.0, 60.0, 0.0)
    state.advance(135.0, 15.0, 14.0)
    assert (only(state).heap, last_state(state), only(state).oom_at) == (125, "Error", None)


def test_a_leak_fills_the_heap_at_its_exact_time() -> None:
    state = workload(1, jvm(memory_leak=4.0))
    state.advance(0.0, 60.0, 0.0)
    assert [(event.time, event.reason) for event in state.events] == [(50.0, "HeapFull")]


@pytest.mark.parametrize(
    ("nodes", "heap"),
    [(NodeModel(memory=3000), 1500.0), (NodeModel(cpu=4000), math.inf), (ENDLESS, math.inf)],
)
def test_without_a_limit_the_node_counts(nodes: NodeModel, heap: float) -> None:
    assert only(workload(1, jvm(None), nodes=nodes)).heap == heap


def test_the_node_counts_if_the_limit_is_above_it() -> None:
    assert only(workload(1, jvm(8000), nodes=NodeModel(memory=3000))).heap == 1500


def test_pods_with_different_heaps_are_measured_apart() -> None:
    """The second pod comes after the first has grown, so its heap is larger."""
    state = in_place(1, jvm(), start_up=0.0)
    state.resize(state.pods[0], with_limit(1000), 0.0)
    state.set_template(with_limit(1000), 0.0)
    state.pods[0].revision = state.revision
    state.scale(2, 0.0)
    state.advance(0.0, 15.0, 20.0)
    assert [pod.containers[0].heap for pod in state.pods] == [200, 500]
    state.advance(15.0, 1.0, 42.0)
    assert [pod.containers[0].failed_at for pod in state.pods] == [15.0, None]


@pytest.mark.parametrize(
    ("kind", "heap", "shown"),
    [
        ("Java", "75%", Heap("-XX:MaxRAMPercentage=75 in JAVA_TOOL_OPTIONS", percent=75.0)),
        ("Java", 600 * MI, Heap("-Xmx600m in JAVA_TOOL_OPTIONS", 600 * MI)),
        ("Node", 400 * MI, Heap("--max-old-space-size=400 in NODE_OPTIONS", 400 * MI)),
        ("Node", "50%", None),
    ],
)
def test_the_pod_template_shows_the_heap(kind: RuntimeKind, heap: int | str, shown: Heap | None) -> None:
    state = workload(1, jvm(runtime=RuntimeModel(kind, heap)), container("proxy"))
    app, proxy = WorkloadObject(state, START).read().spec.template.spec.containers
    assert heap_of(app, kind) == shown
    assert isinstance(proxy, TemplateContainer)
    assert not proxy.env


@pytest.mark.parametrize("kind", ["Java", "Node"])
def test_hvpa_knows_the_exit_code_of_a_full_heap(kind: RuntimeKind) -> None:
    """It is that of a runtime that ends once its heap is full, which the template of a JVM must show."""
    state = workload(1, jvm(runtime=RuntimeModel(kind, "50%")))
    state.advance(0.0, 15.0, 20.1)
    (status,) = PodObjects(state, START).read()[0].status.container_statuses
    assert status.last_state.terminated is not None
    containers = WorkloadObject(state, START).read().spec.template.spec.containers
    exits = full_heap_exits((Runtime(container="app", kind=kind),), containers)
    assert status.last_state.terminated.exit_code in exits["app"]


def test_a_custom_kind_shows_no_heap() -> None:
    state = in_place(1, jvm(), kind="Rollout", api_version="argoproj.io/v1alpha1")
    (app,) = WorkloadObject(state, START).read().spec.template.spec.containers
    assert heap_of(app, "Java") is None


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.integers(1, 95).map("{}%".format) | st.integers(1, 2000),
    st.lists(st.tuples(st.integers(0, 200), st.none() | st.integers(1, 3000)), min_size=1, max_size=12),
)
def test_no_container_has_more_than_its_limit_and_its_heap(
    heap: int | str, script: list[tuple[int, int | None]]
) -> None:
    """Whatever it is resized to, its heap is that of the limit at its last start."""
    state = in_place(2, jvm(runtime=RuntimeModel("Java", heap), memory_base=20.0), start_up=5.0)
    heaps = {pod.name: (only_one.started, only_one.heap) for pod in state.pods for only_one in pod.containers}
    for index, (load, limit) in enumerate(script):
        if limit is not None:
            state.resize_all([(pod, with_limit(limit)) for pod in state.pods], index * 15.0)
        state.advance(index * 15.0, 15.0, float(load))
        for pod in state.pods:
            (running,), (shape,) = pod.containers, pod.shapes
            assert running.memory <= min(shape.memory_limit, 20.0 + running.heap) * (1 + 1e-9)
            started, before = heaps[pod.name]
            assert running.started != started or running.heap == before
            heaps[pod.name] = running.started, running.heap
            assert running.oom_at is None or running.failed_at is None
