"""Resizing pods in place: what a node allows, what waits for room, what fails."""

from __future__ import annotations

import pytest

from hvpa.simulate.model import NodeModel
from tests.unit.simulate.cluster.build import (
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


def test_a_wish_that_is_taken_back_waits_no_longer() -> None:
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
