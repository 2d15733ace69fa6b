"""Where pods are scheduled, and when nodes come and go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import pytest

from hvpa.api.objects.read_models import condition
from hvpa.api.values.quantity import Resource
from hvpa_lab.simulate.cluster.objects import PodObjects
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.model import NodeModel
from tests.unit.lab.simulate.cluster.build import MI, bounds, container, names, run, template, workload

BIG = container(requests=bounds(600, 100 * MI))


def nodes_of(state: SimWorkload) -> list[int | None]:
    return [pod.node for pod in state.pods]


def test_without_a_size_there_is_one_endless_node_that_is_not_counted() -> None:
    state = workload(50, container(requests=bounds(10**9, 10**15)))
    assert set(nodes_of(state)) == {0}
    state.advance(0.0, 15.0, 0.0)
    assert (state.node_count, state.node_seconds) == (0, 0.0)


def test_a_pod_goes_to_the_first_node_with_room_for_its_requests() -> None:
    nodes = NodeModel(cpu=1000, memory=1000 * MI)
    state = workload(3, container(requests=bounds(600)), nodes=nodes)
    assert nodes_of(state) == [1, 2, 3]
    state.set_template(template(cpu=400), 0.0)
    assert [(pod.name, pod.node) for pod in state.pods] == [
        ("app-1", 1),
        ("app-2", 2),
        ("app-3", 3),
        ("app-4", 1),
    ]


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        (bounds(cpu=500), [1, 1, 2]),
        (bounds(cpu=501), [1, 2, 3]),
        (bounds(memory=300 * MI), [1, 1, 1]),
        (bounds(memory=500 * MI), [1, 1, 2]),
        (bounds(cpu=100, memory=501 * MI), [1, 2, 3]),
    ],
)
def test_both_resources_must_fit(requests: Mapping[Resource, int], expected: object) -> None:
    state = workload(3, container(requests=requests), nodes=NodeModel(cpu=1000, memory=1000 * MI))
    assert nodes_of(state) == expected


def test_a_limit_without_a_request_is_the_request() -> None:
    state = workload(2, container(limits=bounds(cpu=501)), nodes=NodeModel(cpu=1000))
    assert nodes_of(state) == [1, 2]
    assert state.advance(0.0, 1.0, 0.0).requested_cpu == 1002


def test_a_node_that_is_added_is_usable_after_its_start_up_and_its_pod_starts_then() -> None:
    state = workload(1, BIG, nodes=NodeModel(cpu=1000, start_up=100.0))
    state.scale(2, 7.0)
    pod = state.pods[1]
    assert (pod.node, pod.phase, pod.started, state.node_count) == (None, "Pending", None, 2)
    for at in range(7, 106):
        assert state.advance(float(at), 1.0, 0.0).ready == 1
    assert state.advance(106.0, 1.0, 0.0).requested_cpu == 1200
    assert (pod.node, pod.phase, pod.started, pod.ready_at) == (2, "Running", 107.0, 137.0)
    assert run(state, 107.0, 137.0) == [(2, 1)] * 29 + [(2, 2)]
    assert pod.ready_changed == 137.0


def test_pods_that_wait_share_the_node_that_starts() -> None:
    state = workload(0, container(requests=bounds(400)), nodes=NodeModel(cpu=1000, start_up=100.0))
    state.scale(3, 0.0)
    assert (nodes_of(state), state.node_count) == ([None] * 3, 2)
    state.advance(0.0, 50.0, 0.0)
    state.scale(4, 50.0)
    assert state.node_count == 2
    state.advance(50.0, 50.0, 0.0)
    assert nodes_of(state) == [1, 1, 2, 2]
    assert state.events == []


def test_memory_of_a_starting_node_is_counted_too() -> None:
    state = workload(
        0, container(requests=bounds(memory=600 * MI)), nodes=NodeModel(memory=1000 * MI, start_up=9.0)
    )
    state.scale(2, 0.0)
    assert state.node_count == 2


def test_a_pod_that_waits_takes_room_that_others_leave() -> None:
    state = workload(1, BIG, nodes=NodeModel(cpu=1000, start_up=100.0), max_surge=1, max_unavailable=0)
    state.scale(2, 0.0)
    state.advance(0.0, 10.0, 0.0)
    state.evict(state.pods[0], 10.0)
    assert [(pod.name, pod.node) for pod in state.pods] == [("app-2", 1), ("app-3", None)]
    assert state.pods[0].started == 10.0


def test_a_pod_larger_than_a_node_stays_pending_and_says_so_once() -> None:
    state = workload(1, BIG, nodes=NodeModel(cpu=500, memory=500 * MI))
    run(state, 0.0, 5.0)
    state.evict(state.pods[0], 5.0)
    run(state, 5.0, 10.0)
    assert [(event.time, event.kind, event.message) for event in state.events] == [
        (0.0, "Unschedulable", "Pod app-1 requests more than a node has"),
        (5.0, "Unschedulable", "Pod app-2 requests more than a node has"),
    ]
    (pod,) = PodObjects(state, dt.datetime(2026, 1, 5, tzinfo=dt.UTC)).read()
    scheduled = condition(pod.status.conditions, "PodScheduled")
    assert scheduled is not None
    assert (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
    state.set_template(template(memory=501 * MI), 10.0)
    assert state.events[-1].message == "Pod app-3 requests more than a node has"
    assert (state.node_count, state.pods[0].phase, state.pods[0].ready_at) == (0, "Pending", None)
    assert state.advance(10.0, 1.0, 0.0).requested_cpu == 0


def test_no_more_nodes_than_there_may_be() -> None:
    state = workload(2, BIG, nodes=NodeModel(cpu=1000, count=2))
    state.scale(4, 3.0)
    state.scale(5, 4.0)
    assert (nodes_of(state), state.node_count) == ([1, 2, None, None, None], 2)
    assert [(event.time, event.message) for event in state.events] == [
        (3.0, "No room for pod app-3 on 2 nodes, and there may be no more"),
        (3.0, "No room for pod app-4 on 2 nodes, and there may be no more"),
        (4.0, "No room for pod app-5 on 2 nodes, and there may be no more"),
    ]
    state.scale(2, 5.0)
    assert names(state) == ["app-1", "app-2"]


def test_a_node_that_is_empty_for_ten_minutes_goes_away_and_its_time_counts() -> None:
    state = workload(2, BIG, nodes=NodeModel(cpu=1000))
    state.advance(0.0, 100.0, 0.0)
    assert state.node_seconds == 200.0
    state.scale(1, 100.0)
    for at in range(100, 670, 30):
        state.advance(float(at), 30.0, 0.0)
    assert (state.node_count, state.node_seconds) == (2, 1340.0)
    state.advance(670.0, 60.0, 0.0)
    assert (state.node_count, state.node_seconds) == (1, 1340.0 + 30.0 * 2 + 30.0)


def test_a_node_that_gets_a_pod_again_stays() -> None:
    state = workload(2, BIG, nodes=NodeModel(cpu=1000))
    state.scale(1, 0.0)
    run(state, 0.0, 500.0, step=100.0)
    state.scale(2, 500.0)
    run(state, 500.0, 2000.0, step=100.0)
    assert (nodes_of(state), state.node_count) == ([1, 2], 2)
    state.scale(0, 2000.0)
    run(state, 2000.0, 2600.0, step=100.0)
    assert state.node_count == 0


def test_a_node_that_keeps_a_pod_stays_and_has_room_for_others() -> None:
    small = container(requests=bounds(400, 400 * MI))
    state = workload(2, small, nodes=NodeModel(cpu=1000, memory=1000 * MI))
    state.scale(1, 0.0)
    run(state, 0.0, 700.0, step=100.0)
    assert (nodes_of(state), state.node_count) == ([1], 1)
    for count in (2, 1, 2, 1, 2):
        state.scale(count, 700.0)
    assert nodes_of(state) == [1, 1]


def test_numbers_of_nodes_are_not_used_again() -> None:
    state = workload(1, BIG, nodes=NodeModel(cpu=1000))
    state.scale(0, 0.0)
    run(state, 0.0, 700.0, step=100.0)
    state.scale(1, 700.0)
    assert nodes_of(state) == [2]


def test_without_pods_there_are_no_nodes() -> None:
    state = workload(0, BIG, nodes=NodeModel(cpu=1000, start_up=60.0))
    state.scale(2, 0.0)
    assert run(state, 0.0, 90.0) == [(2, 0)] * 89 + [(2, 2)]
    assert state.pods[0].started == 60.0
