"""Which pods the controllers create and delete: Deployment and StatefulSet."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.rollout import deletion_order, fenceposts
from hvpa_lab.simulate.model import NodeModel
from tests.unit.lab.simulate.cluster.build import (
    bounds,
    container,
    names,
    rolled_out,
    run,
    template,
    workload,
)

APP = container(requests=bounds(100))


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        ("25%", "25%", 4, (1, 1)),
        ("25%", "25%", 3, (1, 0)),
        ("25%", "25%", 5, (2, 1)),
        ("25%", "25%", 10, (3, 2)),
        (0, "25%", 3, (0, 1)),
        ("0%", "0%", 3, (0, 1)),
        (0, 0, 3, (0, 1)),
        (2, 0, 3, (2, 0)),
        ("100%", 0, 3, (3, 0)),
        (1, 5, 3, (1, 3)),
        (0, 0, 0, (0, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailable_down(
    surge: int | str, unavailable: int | str, replicas: int, expected: object
) -> None:
    assert fenceposts(surge, unavailable, replicas) == expected


def test_a_rollout_step_by_step() -> None:
    """4 replicas, surge 1, unavailable 1, start-up 30 s: 2 new pods at once, then as many as become ready."""
    state = workload(4, APP)
    state.set_template(template(cpu=200), 0.0)
    assert names(state) == ["app-1", "app-2", "app-3", "app-5", "app-6"]
    assert (state.updated_replicas, state.ready_replicas, len(state.pods)) == (2, 3, 5)
    tick = state.advance(0.0, 15.0, 0.0)
    assert (tick.pods, tick.ready, tick.restarts, tick.requested_cpu) == (5, 3, 1, 700)
    tick = state.advance(15.0, 15.0, 0.0)
    assert (tick.pods, tick.ready, tick.restarts, rolled_out(state)) == (5, 3, 2, False)
    assert names(state) == ["app-1", "app-5", "app-6", "app-7", "app-8"]
    tick = state.advance(30.0, 30.0, 0.0)
    assert (tick.pods, tick.ready, tick.restarts, tick.requested_cpu) == (4, 4, 1, 800)
    assert names(state) == ["app-5", "app-6", "app-7", "app-8"]
    assert rolled_out(state)
    assert (state.ready_replicas, state.revision) == (4, 2)


def test_without_surge_the_old_pods_go_first() -> None:
    state = workload(4, APP, max_surge=0, max_unavailable=2)
    state.set_template(template(cpu=200), 0.0)
    assert names(state) == ["app-1", "app-2", "app-5", "app-6"]
    assert run(state, 0.0, 60.0, step=15.0) == [(4, 2), (4, 2), (4, 2), (4, 4)]


def test_without_unavailable_ones_nothing_goes_before_a_new_pod_is_ready() -> None:
    state = workload(2, APP, max_surge=1, max_unavailable=0)
    state.set_template(template(cpu=200), 0.0)
    assert names(state) == ["app-1", "app-2", "app-3"]
    assert run(state, 0.0, 75.0, step=15.0) == [(3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]


def test_with_no_start_up_a_rollout_takes_no_time() -> None:
    state = workload(4, APP, start_up=0.0)
    state.set_template(template(cpu=200), 0.0)
    tick = state.advance(0.0, 1.0, 0.0)
    assert (tick.pods, tick.ready, tick.restarts, rolled_out(state)) == (4, 4, 4, True)


def test_the_same_template_again_is_no_rollout() -> None:
    state = workload(2, APP)
    before = state.changes
    state.set_template(template(cpu=100), 0.0)
    state.scale(2, 0.0)
    assert (state.revision, state.changes) == (1, before)


def test_a_rollout_that_is_taken_back_keeps_the_pods_that_it_has_not_replaced() -> None:
    state = workload(4, APP)
    state.set_template(template(cpu=200), 0.0)
    state.set_template(template(cpu=100), 10.0)
    assert state.revision == 3
    assert names(state) == ["app-1", "app-2", "app-3", "app-7"]
    assert state.updated_replicas == 4


def test_pods_that_do_not_get_ready_hold_the_rollout() -> None:
    """No node for the new pods: nothing beyond maxUnavailable is given up."""
    state = workload(4, APP, nodes=NodeModel(cpu=400, count=1))
    state.set_template(template(cpu=500), 0.0)
    assert run(state, 0.0, 600.0, step=60.0) == [(5, 3)] * 10
    assert [event.kind for event in state.events] == ["Unschedulable", "Unschedulable"]


def test_a_second_template_during_a_rollout_replaces_what_is_not_ready_first() -> None:
    state = workload(4, APP)
    state.set_template(template(cpu=200), 0.0)
    state.advance(0.0, 10.0, 0.0)
    state.set_template(template(cpu=300), 10.0)
    assert names(state) == ["app-1", "app-2", "app-3", "app-7", "app-8"]
    run(state, 10.0, 200.0, step=10.0)
    assert rolled_out(state)
    assert [pod.cpu_request for pod in state.pods] == [300] * 4


def test_unready_old_pods_beyond_the_budget_stay() -> None:
    state = workload(4, APP, max_surge=0, max_unavailable=1)
    for pod in state.pods[:2]:
        pod.ready = False
    state.set_template(template(cpu=200), 0.0)
    assert names(state) == ["app-1", "app-3", "app-4", "app-5"]


def test_scale_out_and_in() -> None:
    state = workload(2, APP)
    state.scale(4, 0.0)
    assert names(state) == ["app-1", "app-2", "app-3", "app-4"]
    assert run(state, 0.0, 30.0, step=15.0) == [(4, 2), (4, 4)]
    state.scale(3, 30.0)
    assert names(state) == ["app-1", "app-2", "app-3"]
    tick = state.advance(30.0, 15.0, 0.0)
    assert (tick.pods, tick.ready, tick.restarts) == (3, 3, 0)
    state.scale(0, 45.0)
    assert (names(state), state.advance(45.0, 15.0, 0.0).ready) == ([], 0)


def test_deletion_order() -> None:
    state = workload(5, APP)
    oldest, newer, late, unready, unscheduled = state.pods
    unscheduled.node = None
    unready.ready = False
    late.ready_changed = 50.0
    assert deletion_order(state.pods) == [unscheduled, unready, late, newer, oldest]
    oldest.containers[0].restarts = 1
    assert deletion_order(state.pods) == [unscheduled, unready, late, oldest, newer]


def test_a_scale_out_during_a_rollout_brings_pods_of_the_new_template() -> None:
    state = workload(4, APP)
    state.set_template(template(cpu=200), 0.0)
    state.scale(8, 10.0)
    assert (len(state.pods), state.updated_replicas) == (10, 7)
    run(state, 10.0, 120.0, step=10.0)
    assert rolled_out(state)
    assert len(state.pods) == 8


def test_a_scale_in_during_a_rollout() -> None:
    state = workload(8, APP, max_surge=2, max_unavailable=0)
    state.set_template(template(cpu=200), 0.0)
    assert (len(state.pods), state.updated_replicas) == (10, 2)
    state.scale(4, 10.0)
    assert names(state) == ["app-1", "app-2", "app-3", "app-4", "app-11", "app-12"]
    state.advance(10.0, 30.0, 0.0)
    state.scale(1, 40.0)
    assert all(pod.cpu_request == 200 or pod.ready for pod in state.pods)
    run(state, 40.0, 120.0, step=10.0)
    assert rolled_out(state)
    assert len(state.pods) == 1


def test_pods_that_a_scale_in_takes_are_not_counted_as_replaced() -> None:
    state = workload(2, APP, max_surge=2, max_unavailable=0)
    state.set_template(template(cpu=200), 0.0)
    state.scale(0, 0.0)
    assert state.advance(0.0, 1.0, 0.0)[-4:] == (0, 0, 0, 0)


def test_a_scale_in_when_all_new_pods_are_there_already() -> None:
    state = workload(6, APP, max_surge=3, max_unavailable=0)
    state.set_template(template(cpu=200), 0.0)
    state.advance(0.0, 30.0, 0.0)
    assert (state.updated_replicas, len(state.pods)) == (6, 9)
    state.scale(2, 30.0)
    assert (rolled_out(state), state.updated_replicas, len(state.pods)) == (True, 2, 2)


def test_an_evicted_pod_is_replaced_with_what_admission_says() -> None:
    state = workload(2, APP)
    state.admission = lambda given: {"app": ResourceRequirements(bounds(cpu=700), {})}
    first = state.pods[0]
    state.evict(first, 20.0)
    assert (first.deleted, names(state)) == (20.0, ["app-2", "app-3"])
    assert state.pods[1].resources["app"].requests == {"cpu": 700}
    assert state.pods[1].template == state.template
    assert rolled_out(state) is False
    assert state.updated_replicas == 2
    before = state.changes
    state.evict(first, 21.0)
    assert state.changes == before
    assert state.advance(20.0, 30.0, 0.0)[-5:] == (0, 2, 2, 0, 1)
    assert state.advance(50.0, 30.0, 0.0).restarts == 0


def test_containers_that_a_template_does_not_name_have_no_bounds() -> None:
    state = workload(1, container("a"), container("b", bounds(5)))
    state.set_template({"b": ResourceRequirements(bounds(7), {})}, 0.0)
    assert [sim_container.name for sim_container in state.pods[-1].containers] == ["a", "b"]
    assert state.pods[-1].resources["a"].requests == {}
    assert state.pods[-1].cpu_request == 7


# --- StatefulSet ---


def stateful(replicas: int, **fields: Any) -> SimWorkload:
    return workload(replicas, APP, kind="StatefulSet", **fields)


def test_a_stateful_set_is_updated_from_the_highest_ordinal_one_at_a_time_in_place() -> None:
    state = stateful(3)
    assert names(state) == ["app-0", "app-1", "app-2"]
    state.set_template(template(cpu=200), 0.0)
    updated = []
    for at in range(0, 90, 15):
        updated.append(sorted(pod.ordinal for pod in state.pods if pod.revision == 2))
        tick = state.advance(float(at), 15.0, 0.0)
        assert (tick.pods, tick.ready) == (3, 3 if at == 75 else 2)
    assert updated == [[2], [2], [1, 2], [1, 2], [0, 1, 2], [0, 1, 2]]
    assert rolled_out(state)
    assert sorted(names(state)) == ["app-0", "app-1", "app-2"]


def test_a_stateful_set_scales_out_in_order() -> None:
    state = stateful(1)
    state.scale(3, 0.0)
    assert names(state) == ["app-0", "app-1"]
    assert run(state, 0.0, 60.0, step=15.0) == [(2, 1), (3, 2), (3, 2), (3, 3)]


def test_a_stateful_set_scales_in_from_the_highest_ordinal() -> None:
    state = stateful(4)
    state.scale(2, 0.0)
    assert names(state) == ["app-0", "app-1"]


def test_a_stateful_set_scales_in_only_when_those_that_stay_are_ready() -> None:
    state = stateful(3)
    state.evict(state.pods[0], 0.0)
    assert sorted(names(state)) == ["app-0", "app-1", "app-2"]
    state.scale(2, 1.0)
    assert len(state.pods) == 3
    assert run(state, 1.0, 31.0, step=15.0) == [(3, 2), (2, 2)]


@pytest.mark.parametrize(("unready", "left"), [([3], 2), ([2], 2), ([2, 3], 4)])
def test_a_stateful_set_that_scales_in_waits_for_the_lowest_unready_pod(
    unready: list[int], left: int
) -> None:
    state = stateful(4)
    for ordinal in unready:
        state.pods[ordinal].ready = False
    state.scale(2, 0.0)
    assert len(state.pods) == left


def test_a_stateful_set_replaces_an_evicted_pod_in_its_place() -> None:
    state = stateful(3)
    lost = state.pods[1]
    state.evict(lost, 0.0)
    new = state.pods[-1]
    assert (new.name, new.ordinal, new.serial, new is lost) == ("app-1", 1, 4, False)


def test_a_stateful_set_starts_in_order() -> None:
    state = stateful(0)
    state.scale(2, 0.0)
    assert run(state, 0.0, 60.0, step=15.0) == [(1, 0), (2, 1), (2, 1), (2, 2)]
