"""Resizing pods in place: what a node allows, what waits for room or for memory, what fails, and what the API server
refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.nodes import Nodes
from hvpa_lab.simulate.cluster.resizes import Resizes, is_refused, message_of, qos_class
from hvpa_lab.simulate.cluster.state import SimPod
from hvpa_lab.simulate.model import NodeModel, SimulationEvent, WorkloadModel
from tests.unit.lab.simulate.cluster.build import (
    bounds,
    container,
    cpus,
    in_place,
    names,
    reasons,
    resize_all,
    run,
    states,
    template,
)

SMALL = container(requests=bounds(400), cpu_base=100.0)


# --- a kubelet that defers or refuses ---------------------------------------------------------------------------------
def test_a_kubelet_that_refuses_makes_each_resize_infeasible() -> None:
    state = in_place(2, SMALL, nodes=NodeModel(cpu=2000), resize_refused=True)
    resize_all(state, template(cpu=300), 15.0)
    assert (cpus(state), states(state)) == ([400, 400], ["Infeasible"] * 2)
    assert reasons(state) == [(15.0, "ResizeInfeasible")] * 2


def test_a_kubelet_that_defers_holds_back_more_for_so_long_and_less_not_at_all() -> None:
    state = in_place(2, SMALL, nodes=NodeModel(cpu=2000), resize_delay=5.0, resize_deferred=60.0)
    resize_all(state, template(cpu=600), 15.0)
    run(state, 15.0, 40.0)
    assert (cpus(state), states(state)) == ([400, 400], ["Deferred"] * 2)
    resize_all(state, template(cpu=700), 40.0)
    run(state, 40.0, 79.0)
    assert (cpus(state), states(state)) == ([400, 400], ["Deferred"] * 2)
    run(state, 79.0, 81.0)
    assert (cpus(state), states(state)) == ([700, 700], [None, None]), "a minute after it was first looked at"
    resize_all(state, template(cpu=500), 81.0)
    run(state, 81.0, 87.0)
    assert cpus(state) == [500, 500]


# --- with room --------------------------------------------------------------------------------------------------------
def test_all_pods_get_the_new_resources_at_once_and_go_on_running() -> None:
    state = in_place(3, SMALL, nodes=NodeModel(cpu=2000))
    run(state, 0.0, 30.0)
    before, changes = state.pods[:], state.changes
    assert before[0].containers[0].cpu_total == pytest.approx(3000.0)
    resize_all(state, template(cpu=600), 30.0)
    assert state.changes > changes
    assert state.pods == before
    assert cpus(state) == [600, 600, 600]
    assert (state.updated_replicas, state.ready_replicas, state.revision) == (3, 3, 1)
    tick = state.advance(30.0, 30.0, 0.0)
    assert (tick.requested_cpu, tick.restarts, tick.ready) == (1800, 0, 3)
    assert before[0].containers[0].cpu_total == pytest.approx(6000.0)
    assert state.events == []


def test_a_larger_request_counts_for_the_pods_cpu_from_then_on() -> None:
    busy = container(requests=bounds(100), cpu_per_unit=1.0)
    state = in_place(1, busy, nodes=NodeModel(cpu=2000, headroom=50))
    assert state.advance(0.0, 15.0, 300.0).used_cpu == 150.0
    resize_all(state, template(cpu=220), 15.0)
    assert state.advance(15.0, 15.0, 300.0).used_cpu == 270.0


def test_a_resize_takes_its_time_and_a_later_one_takes_the_place_of_an_earlier() -> None:
    state = in_place(2, SMALL, nodes=NodeModel(cpu=2000), resize_delay=5.0)
    resize_all(state, template(cpu=600), 15.0)
    assert (cpus(state), states(state)) == ([400, 400], ["", ""])
    tick = state.advance(15.0, 10.0, 0.0)
    assert tick.requested_cpu == 1200
    assert cpus(state) == [600, 600]
    resize_all(state, template(cpu=700), 25.0)
    state.advance(25.0, 3.0, 0.0)
    resize_all(state, template(cpu=500), 28.0)
    state.advance(28.0, 3.0, 0.0)
    assert cpus(state) == [600, 600]
    state.advance(31.0, 2.0, 0.0)
    assert cpus(state) == [500, 500]


def test_what_the_api_server_refuses_it_refuses_at_once() -> None:
    state = in_place(1, SMALL, resize_delay=5.0)
    resize_all(state, {"app": ResourceRequirements({}, {})}, 0.0)
    assert states(state) == ["Infeasible"]
    state.advance(0.0, 15.0, 0.0)
    assert (cpus(state), states(state)) == ([400], ["Infeasible"])


def test_a_pod_without_a_node_has_them_at_once_and_may_fit_then() -> None:
    state = in_place(2, SMALL, nodes=NodeModel(cpu=600, count=1))
    assert [pod.node for pod in state.pods] == [1, None]
    resize_all(state, template(cpu=300), 0.0)
    assert [(pod.node, pod.cpu_request) for pod in state.pods] == [(1, 300), (1, 300)]


def test_one_pod_alone_may_be_resized() -> None:
    state = in_place(2, SMALL)
    state.resize(state.pods[1], template(cpu=900), 0.0)
    assert cpus(state) == [400, 900]
    assert (state.updated_replicas, state.revision) == (2, 1)


def test_a_changed_template_resizes_none() -> None:
    state = in_place(2, SMALL)
    state.set_template(template(cpu=600), 0.0)
    assert cpus(state) == [400, 400, 600]


# --- without room -----------------------------------------------------------------------------------------------------
def test_without_room_a_resize_waits_until_a_pod_leaves() -> None:
    """400 of 1000 are used twice: the first pod grows to 600, the second one waits, and shows what it waits for."""
    state = in_place(2, SMALL, nodes=NodeModel(cpu=1000, count=1))
    resize_all(state, template(cpu=600), 0.0)
    assert (cpus(state), states(state)) == ([600, 400], [None, "Deferred"])
    assert [pod.desired_resources for pod in state.pods] == [template(cpu=600)] * 2
    assert state.updated_replicas == 2
    assert reasons(state) == [(0.0, "ResizeDeferred")]
    assert state.advance(0.0, 15.0, 0.0).requested_cpu == 1000
    state.scale(1, 15.0)
    (left,) = state.pods
    assert (left.cpu_request, left.resize) == (600, None)


def test_nor_does_it_wait_longer_than_until_another_shrinks() -> None:
    state = in_place(2, SMALL, nodes=NodeModel(cpu=1000))
    first, second = state.pods
    state.resize(second, template(cpu=700), 0.0)
    assert states(state) == [None, "Deferred"]
    state.resize(first, template(cpu=300), 10.0)
    assert (cpus(state), states(state)) == ([300, 700], [None, None])


def test_what_makes_room_is_done_first_and_of_the_others_the_oldest() -> None:
    state = in_place(3, container(requests=bounds(300)), nodes=NodeModel(cpu=1000))
    first, second, third = state.pods
    state.resize(second, template(cpu=500), 0.0)
    state.resize(first, template(cpu=500), 10.0)
    assert states(state) == ["Deferred", "Deferred", None]
    state.resize(third, template(cpu=200), 20.0)
    assert (cpus(state), states(state)) == ([300, 500, 200], ["Deferred", None, None])


def test_a_resize_that_makes_room_lets_those_before_it_through_as_well() -> None:
    """More of the one and less of the other: whoever needs CPU waits for the pod that changes it for memory."""
    state = in_place(2, container(requests=bounds(500, 500)), nodes=NodeModel(cpu=1000, memory=1100))
    first, second = state.pods
    state.resize(first, template(600, 500), 0.0)
    state.resize(second, template(400, 600), 0.0)
    assert (cpus(state), states(state)) == ([600, 400], [None, None])


def test_the_room_that_a_resize_waits_for_is_not_given_to_new_pods() -> None:
    """100 are free, and the waiting pod wants 200 more: a pod of 100 goes to another node, one of nothing fits."""
    state = in_place(3, container(requests=bounds(300)), nodes=NodeModel(cpu=1000))
    state.resize(state.pods[0], template(cpu=500), 0.0)
    assert states(state) == ["Deferred", None, None]
    state.admission = lambda _: template(cpu=100)
    state.scale(4, 0.0)
    state.admission = lambda _: template(cpu=0)
    state.scale(5, 0.0)
    assert [pod.node for pod in state.pods] == [1, 1, 1, 2, 1]


def test_a_pod_that_leaves_gives_back_what_it_had_and_what_it_waited_for() -> None:
    state = in_place(2, SMALL, nodes=NodeModel(cpu=1000, count=1))
    first, second = state.pods
    state.resize(first, template(cpu=900), 0.0)
    state.evict(first, 0.0)
    assert [(pod.name, pod.node) for pod in state.pods] == [("app-2", 1), ("app-3", 1)]
    state.resize(second, template(cpu=600), 0.0)
    assert cpus(state) == [600, 400]


def test_another_size_has_waited_as_long_as_the_one_before() -> None:
    state = in_place(1, SMALL, nodes=NodeModel(cpu=500))
    state.resize(state.pods[0], template(cpu=501), 0.0)
    assert states(state) == ["Infeasible"]
    state = in_place(2, SMALL, nodes=NodeModel(cpu=1000))
    resize_all(state, template(cpu=600), 0.0)
    resize_all(state, template(cpu=650), 200.0)
    waiting = state.pods[1].resize
    assert waiting is not None
    assert (waiting.state, waiting.since) == ("Deferred", 0.0)


def test_a_resize_that_is_taken_back_waits_no_longer() -> None:
    state = in_place(2, SMALL, nodes=NodeModel(cpu=1000))
    resize_all(state, template(cpu=600), 0.0)
    resize_all(state, template(cpu=400), 60.0)
    assert (cpus(state), states(state)) == ([400, 400], [None, None])
    run(state, 60.0, 400.0, step=10.0)
    assert names(state) == ["app-1", "app-2"]


# --- never ------------------------------------------------------------------------------------------------------------
def test_a_qos_class_can_not_be_changed_in_place() -> None:
    state = in_place(2, container(), start_up=5.0)
    resize_all(state, template(cpu=600), 0.0)
    assert reasons(state)[0] == (0.0, "ResizeInfeasible")
    assert (names(state), states(state)) == (["app-1", "app-2"], ["Infeasible"] * 2)


def test_a_pod_that_can_not_be_resized_stays_as_it_is() -> None:
    state = in_place(2, SMALL, nodes=NodeModel(cpu=1000))
    state.resize(state.pods[0], template(cpu=601), 0.0)
    state.resize(state.pods[1], template(cpu=1001), 0.0)
    run(state, 0.0, 900.0, step=10.0)
    assert (names(state), states(state)) == (["app-1", "app-2"], ["Deferred", "Infeasible"])


FULL = container(
    requests=bounds(400, 100),
    limits=bounds(None, 1000),
    memory_base=100.0,
    memory_per_unit=10.0,
    cpu_base=1.0,
)


def limited(memory: int, cpu: int = 400, name: str = "app") -> dict[str, ResourceRequirements]:
    return {name: ResourceRequirements(bounds(cpu, 100), bounds(None, memory))}


def test_a_memory_limit_waits_until_less_is_used() -> None:
    """50 units make 600 bytes: the whole resize waits, its CPU too, to the instant at which the load is less."""
    state = in_place(1, FULL, nodes=NodeModel(cpu=1000, count=1))
    state.advance(0.0, 15.0, 50.0)
    resize_all(state, limited(600, cpu=500), 15.0)
    assert (states(state), cpus(state)) == (["Error"], [400])
    state.advance(15.0, 15.0, 50.0)
    state.advance(30.0, 600.0, 50.0)
    assert (names(state), states(state)) == (["app-1"], ["Error"])
    changes = state.changes
    tick = state.advance(630.0, 15.0, 49.0)
    assert (states(state), cpus(state), tick.ooms, tick.requested_cpu) == ([None], [500], 0, 500)
    assert state.changes > changes
    assert reasons(state) == [(15.0, "ResizeError")]
    assert state.advance(645.0, 15.0, 51.0).ooms == 1


def test_the_rest_of_a_resize_goes_on_when_the_memory_limit_is_put_back() -> None:
    state = in_place(1, FULL, nodes=NodeModel(cpu=1000, count=1))
    state.advance(0.0, 15.0, 50.0)
    resize_all(state, limited(600, cpu=500), 15.0)
    resize_all(state, limited(600, cpu=600), 20.0)
    (pod,) = state.pods
    assert (states(state), cpus(state)) == (["Error"], [400])
    assert pod.resize is not None
    assert message_of(pod.resize).endswith('"app" memory limit (600) below current usage (600)]')
    resize_all(state, limited(1000, cpu=600), 25.0)
    assert (states(state), cpus(state)) == ([None], [600])


def test_a_limit_above_what_is_used_is_lowered_and_one_that_grows_never_waits() -> None:
    state = in_place(1, FULL)
    state.advance(0.0, 15.0, 50.0)
    resize_all(state, limited(601), 15.0)
    assert state.pods[0].shapes[0].memory_limit == 601
    resize_all(state, limited(2000), 15.0)
    assert state.pods[0].shapes[0].memory_limit == 2000


def test_a_container_that_does_not_run_uses_nothing() -> None:
    leaky = container(limits=bounds(None, 100), memory_leak=10.0)
    state = in_place(1, leaky)
    run(state, 0.0, 21.0)
    assert state.pods[0].containers[0].restart_at == 30.0
    resize_all(state, {"app": ResourceRequirements(bounds(None, 50), bounds(None, 50))}, 21.0)
    assert states(state) == [None]


def test_room_for_a_resize_that_waits_for_memory_is_kept() -> None:
    state = in_place(1, FULL, nodes=NodeModel(cpu=1000, memory=1000))
    state.advance(0.0, 15.0, 50.0)
    state.resize(state.pods[0], limited(300, cpu=700), 15.0)
    state.scale(2, 15.0)
    assert [pod.node for pod in state.pods] == [1, 2]
    state.resize(state.pods[0], limited(300, cpu=600), 15.0)
    state.scale(3, 15.0)
    assert [pod.node for pod in state.pods] == [1, 2, 1]
    assert states(state) == ["Error", None, None]


def test_of_several_pods_each_waits_for_itself() -> None:
    """The second pod is made later and has leaked less: it is resized, the first one waits for its restart."""
    leaky = container(requests=bounds(400), limits=bounds(None, 1000), memory_leak=10.0)
    state = in_place(1, leaky, start_up=0.0)
    run(state, 0.0, 50.0, step=10.0)
    state.scale(2, 50.0)
    run(state, 50.0, 60.0, step=10.0)
    resize_all(state, {"app": ResourceRequirements(bounds(400, 300), bounds(None, 300))}, 60.0)
    assert states(state) == ["Error", None]
    tick = state.advance(60.0, 50.0, 0.0)
    assert (tick.ooms, states(state)) == (2, [None, None])
    assert [pod.containers[0].oom_at for pod in state.pods] == [100.0, 80.0]


# --- what the API server refuses --------------------------------------------------------------------------------------
def one(requests: dict[Resource, int], limits: dict[Resource, int]) -> ResourceRequirements:
    return ResourceRequirements(requests, limits)


BOTH = bounds(100, 200)


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([one({}, {})], "BestEffort"),
        ([one(bounds(0, 0), {})], "BestEffort"),
        ([one({}, BOTH)], "Guaranteed"),
        ([one(BOTH, BOTH), one(bounds(100), BOTH)], "Guaranteed"),
        ([one(BOTH, BOTH), one({}, {})], "Burstable"),
        ([one(BOTH, bounds(100))], "Burstable"),
        ([one(bounds(100, 199), BOTH)], "Burstable"),
        ([one(bounds(100), {})], "Burstable"),
        ([one({}, bounds(0, 100))], "Burstable"),
    ],
)
def test_qos_class(containers: list[ResourceRequirements], expected: str) -> None:
    assert qos_class({f"c{index}": requirements for index, requirements in enumerate(containers)}) == expected


@pytest.mark.parametrize(
    ("own", "wanted", "expected"),
    [
        (one(bounds(100), {}), one(bounds(200, 100), bounds(300)), False),
        (one(BOTH, {}), one(bounds(100), {}), True),
        (one(BOTH, bounds(300)), one(BOTH, {}), True),
        (one(BOTH, BOTH), one(BOTH, bounds(100, 300)), True),
        (one(BOTH, BOTH), one(bounds(50, 60), bounds(50, 60)), False),
    ],
)
def test_what_is_refused(own: ResourceRequirements, wanted: ResourceRequirements, expected: bool) -> None:
    assert is_refused({"app": own}, {"app": wanted}) is expected


# --- accounting -------------------------------------------------------------------------------------------------------
CPU, MEMORY = 1000, 800
sizes = st.tuples(st.integers(0, 1100), st.integers(0, 900))
steps = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "remove", "add"]), st.integers(0, 9), sizes), max_size=25
)


def made(serial: int, size: tuple[int, int]) -> SimPod:
    return SimPod(f"p{serial}", serial, {}, template(size[0], size[1]), 0.0)


def check(nodes: Nodes, pods: list[SimPod]) -> None:
    """Every node's books agree with its pods, and none holds more than it has."""
    for node in nodes.nodes:
        own = [pod for pod in pods if pod.node == node.number]
        assert len(own) == node.pods
        waiting = [pod.resize for pod in own if pod.resize is not None]
        cpu, memory = sum(pod.cpu_request for pod in own), sum(pod.memory_request for pod in own)
        assert node.free_cpu == CPU - cpu - sum(resize.held_cpu for resize in waiting)
        assert node.free_memory == MEMORY - memory - sum(resize.held_memory for resize in waiting)
        assert cpu <= CPU
        assert memory <= MEMORY
        for pod in own:
            wanted = pod.resize
            if wanted is not None and wanted.due is not None:
                assert (wanted.held_cpu, wanted.held_memory) == (0, 0)
            elif wanted is not None:
                too_large = wanted.cpu_request > CPU or wanted.memory_request > MEMORY
                assert wanted.state == ("Infeasible" if too_large else "Deferred")
                more_cpu, more_memory = (
                    wanted.cpu_request - pod.cpu_request,
                    wanted.memory_request - pod.memory_request,
                )
                assert more_cpu > CPU - cpu or more_memory > MEMORY - memory or too_large


@settings(deadline=None, derandomize=True, max_examples=50)
@given(steps, st.sampled_from([0.0, 1.5]))
def test_nodes_and_pods_agree_whatever_is_asked_for(
    script: list[tuple[str, int, tuple[int, int]]], delay: float
) -> None:
    events: list[SimulationEvent] = []
    nodes = Nodes(NodeModel(cpu=CPU, memory=MEMORY))
    model = WorkloadModel("Deployment", "app", "default", 1, (), resize_delay=delay)
    resizes, pods = Resizes(nodes, model, events), list[SimPod]()
    for at, (what, which, size) in enumerate(script):
        now = float(at)
        if what == "add":
            pods.append(made(at, (1 + min(size[0], CPU - 1), 1 + min(size[1], MEMORY - 1))))
        elif what == "remove" and which < len(pods):
            nodes.release(pods.pop(which), now)
        elif what == "ask" and which < len(pods):
            resizes.request(pods[which], template(1 + size[0], 1 + size[1]), now)
        resizes.settle(pods, now)
        nodes.schedule([pod for pod in pods if pod.node is None], now)
        check(nodes, pods)
