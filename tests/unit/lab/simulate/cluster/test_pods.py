"""The workload from outside: what it begins with, and what it reports of itself."""

from __future__ import annotations

from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.state import SimPod
from hvpa_lab.simulate.model import NodeModel
from tests.unit.lab.simulate.cluster.build import bounds, container, names, rolled_out, run, workload


def test_a_workload_begins_with_pods_that_have_been_ready_for_long() -> None:
    state = workload(2, container(requests=bounds(100, 200)))
    pod = state.pods[0]
    assert names(state) == ["app-1", "app-2"]
    times = (pod.created, pod.started, pod.ready_at, pod.ready_changed)
    assert times == (-3600.0, -3600.0, -3570.0, -3570.0)
    assert (pod.ready, pod.phase, pod.node, pod.deleted, pod.revision) == (True, "Running", 0, None, 1)
    assert rolled_out(state)
    assert state.template == {"app": ResourceRequirements(bounds(100, 200), {})}
    assert pod.resources is state.template
    state.advance(0.0, 15.0, 0.0)
    assert (state.replicas, state.revision, state.events, state.changes) == (2, 1, [], 0)


def test_a_start_up_longer_than_the_past_is_over_at_0() -> None:
    state = workload(1, start_up=7200.0)
    assert (state.pods[0].ready, state.pods[0].ready_at) == (True, 0.0)


def test_a_new_pod_starts_when_it_is_created() -> None:
    state = workload(0)
    state.scale(1, 0.0)
    pod = state.pods[0]
    assert (pod.created, pod.started, pod.ready_at, pod.ready_changed) == (0.0, 0.0, 30.0, 0.0)
    assert (pod.ready, pod.containers[0].started) == (False, 0.0)


def test_a_workload_without_pods() -> None:
    state = workload(0)
    assert state.advance(0.0, 15.0, 0.0) == (0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0)
    assert state.advance(15.0, 15.0, 0.0).pods == 0
    assert rolled_out(state)


def test_changes_stand_still_while_nothing_changes() -> None:
    state = workload(2)
    state.advance(0.0, 15.0, 1.0)
    before = state.changes
    state.advance(15.0, 15.0, 2.0)
    assert state.changes == before
    state.scale(3, 30.0)
    created = state.changes
    assert created > before
    state.advance(30.0, 15.0, 2.0)
    assert state.changes == created
    state.advance(45.0, 15.0, 2.0)
    assert state.changes > created


def test_a_pod_without_containers_has_no_restarts() -> None:
    assert SimPod("app-1", 1, {}, {}, 0.0).most_restarts == 0


def test_totals_go_on_over_a_change_of_the_pods() -> None:
    state = workload(1, container(cpu_base=4.0))
    sim_container = state.pods[0].containers[0]
    state.advance(0.0, 10.0, 0.0)
    state.scale(2, 10.0)
    assert sim_container.cpu_total == 40.0
    state.advance(10.0, 10.0, 0.0)
    assert sim_container.cpu_total == 80.0
    state.evict(state.pods[0], 20.0)
    state.advance(20.0, 10.0, 0.0)
    assert sim_container.cpu_total == 80.0


def test_a_deleted_pod_keeps_its_place_until_its_grace_is_over() -> None:
    app = container(requests=bounds(600), cpu_base=50.0, cpu_per_unit=10.0)
    state = workload(2, app, nodes=NodeModel(cpu=1000, count=2), start_up=0.0, termination_grace=20.0)
    state.scale(1, 0.0)
    tick = state.advance(0.0, 10.0, 30.0)
    assert (tick.pods, tick.ready, tick.requested_cpu, tick.used_cpu) == (1, 1, 1200, 400.0)
    state.scale(2, 10.0)
    assert [pod.node for pod in state.pods] == [1, None], "the second node is still taken"
    assert state.advance(10.0, 10.0, 30.0).requested_cpu == 1200
    tick = state.advance(20.0, 5.0, 30.0)
    assert (tick.pods, tick.ready, tick.requested_cpu, tick.used_cpu) == (2, 2, 1200, 400.0)


def test_a_blip_makes_one_ready_pod_not_ready_for_a_moment() -> None:
    state = workload(
        4,
        container(cpu_base=10.0, cpu_per_unit=1.0, cpu_start_up=90.0),
        blips=((20.0, 0.5),),
        blip_length=10.0,
    )
    counts = [state.advance(float(now), 5.0, 80.0) for now in range(0, 40, 5)]
    assert [tick.ready for tick in counts] == [4, 4, 4, 3, 3, 4, 4, 4], (
        "what happens at a step's end belongs to it"
    )
    assert {round(tick.used_cpu) for tick in counts} == {120}, "it uses its base: it does not start"
    assert sum(tick.restarts for tick in counts) == 0
    pod = state.pods[2]
    assert (pod.ready, pod.ready_changed, pod.blipped) == (True, 30.0, False)


def test_a_blip_of_no_pod_is_nothing() -> None:
    state = workload(1, blips=((20.0, 0.9), (25.0, 0.1)), blip_length=60.0)
    run(state, 0.0, 30.0)
    assert state.ready_replicas == 0
    run(state, 30.0, 85.0)
    assert state.ready_replicas == 1, "the second one found none that is ready"
