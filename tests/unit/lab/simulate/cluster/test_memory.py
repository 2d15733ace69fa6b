"""Memory: what containers have, OOM kills, the kubelet's back-off."""

from __future__ import annotations

import pytest

from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.model import NodeModel
from tests.unit.lab.simulate.cluster.build import MI, bounds, container, measured, run, template, workload

APP = container(
    requests=bounds(100, 200), limits=bounds(None, 400), cpu_base=1.0, memory_base=100.0, memory_per_unit=10.0
)


def restarts_of(
    state: SimWorkload, end: float, load: float = 0.0, step: float = 1.0, start: float = 0.0
) -> list[float | None]:
    """The times at which the first pod's container was started again."""
    times, last, at = [], state.pods[0].containers[0].restarts, start
    while at < end:
        state.advance(at, step, load)
        container = state.pods[0].containers[0]
        if container.restarts != last:
            times.append(container.started)
            last = container.restarts
        at += step
    return times


def test_memory_follows_the_load() -> None:
    state = workload(2, APP)
    assert state.advance(0.0, 15.0, 40.0).used_memory == 600.0
    assert state.advance(15.0, 15.0, 10.0).used_memory == 300.0
    sim_container = state.pods[0].containers[0]
    assert sim_container.memory == 150.0
    state.scale(3, 30.0)
    state.advance(30.0, 15.0, 0.0)
    assert sim_container.memory == 100.0


def test_above_the_limit_a_container_is_killed_and_started_again() -> None:
    """At the limit it lives (30 units each); above it both are killed, at the step's start."""
    state = workload(2, APP)
    assert state.advance(0.0, 15.0, 60.0).ooms == 0
    before = state.changes
    tick = state.advance(15.0, 15.0, 60.2)
    assert (tick.ooms, tick.restarts, tick.ready, tick.pods) == (2, 2, 0, 2)
    assert state.changes > before
    pod = state.pods[0]
    sim_container = pod.containers[0]
    assert (
        sim_container.oom_at,
        sim_container.oom_started,
        sim_container.started,
        sim_container.restarts,
    ) == (15.0, -3600.0, 15.0, 1)
    assert (pod.ready, pod.ready_changed, pod.ready_at, pod.phase) == (False, 15.0, 45.0, "Running")
    assert (tick.used_memory, sim_container.memory, tick.used_cpu) == (200.0, 100.0, 2.0)
    assert [(event.time, event.kind, event.reason, event.message) for event in state.events] == [
        (15.0, "OOM", "OOMKilled", "Container app of app-1 had 400 bytes of memory"),
        (15.0, "OOM", "OOMKilled", "Container app of app-2 had 400 bytes of memory"),
    ]


def test_one_that_is_killed_leaves_its_load_to_the_others() -> None:
    """A second pod that leaks drops out alone; the first serves all, until it has too much itself."""
    leaky = container(limits=bounds(None, 1000), memory_leak=10.0, memory_per_unit=1.0, cpu_per_unit=1.0)
    state = workload(1, leaky, start_up=20.0)
    run(state, 0.0, 50.0, step=10.0)
    state.scale(2, 50.0)
    run(state, 50.0, 100.0, load=20.0, step=10.0)
    assert [pod.containers[0].oom_at for pod in state.pods] == [99.0, None]
    assert [pod.ready for pod in state.pods] == [False, True]
    _, cpu = measured(state, 100.0, 10.0, 20.0)
    assert list(cpu.values()) == [0.0, 20.0]


def test_back_off_of_a_container_that_never_fits() -> None:
    """At once, then after 10 s, 20 s … 5 min, each counted from the kill; the container dies as it starts."""
    state = workload(1, container(limits=bounds(None, 99), memory_base=100.0))
    times = restarts_of(state, 1300.0)
    assert times == [0.0, 10.0, 30.0, 70.0, 150.0, 310.0, 610.0, 910.0, 1210.0]
    assert state.pods[0].containers[0].restarts == 9
    assert len(state.events) == 10
    assert state.pods[0].phase == "Running"


@pytest.mark.parametrize("step", [1.0, 15.0, 90.0, 450.0])
def test_a_leak_kills_at_its_exact_time(step: float) -> None:
    """4 bytes per second from 100 to 400: 75 s of life; what happens does not depend on the step."""
    leaky = container(limits=bounds(None, 400), memory_base=100.0, memory_leak=4.0, cpu_base=8.0)
    state = workload(1, leaky)
    ticks = [state.advance(index * step, step, 0.0) for index in range(int(450 / step))]
    # lives 0..75, 75..150, (10) 160..235, (20) 255..330, (40) 370..445, (80) 525
    assert [event.time for event in state.events] == pytest.approx([75.0, 150.0, 235.0, 330.0, 445.0])
    sim_container = state.pods[0].containers[0]
    assert (sum(tick.ooms for tick in ticks), sim_container.restarts) == (5, 4)
    assert sim_container.restart_at == pytest.approx(525.0)
    assert sum(tick.restarts for tick in ticks) == 4
    assert sim_container.cpu_total == pytest.approx(8.0 * 375)
    assert (sim_container.running, sim_container.memory) == (False, 0.0)
    assert sum(tick.demand * step for tick in ticks) == pytest.approx(8.0 * 375)


def test_back_off_begins_anew_after_ten_minutes() -> None:
    """Lives of 660 s: each time started again at once."""
    leaky = container(limits=bounds(None, 660), memory_leak=1.0)
    assert restarts_of(workload(1, leaky), 2000.0, step=10.0) == pytest.approx([660.0, 1320.0, 1980.0])


def with_limit(state: SimWorkload, memory: int) -> dict[str, ResourceRequirements]:
    """The resources of the only pod with another memory limit, and a request as large if it had that."""
    own = state.pods[0].resources["app"]
    requests = {
        resource: memory if resource == "memory" else amount for resource, amount in own.requests.items()
    }
    return {"app": ResourceRequirements(requests, {"memory": memory})}


def test_a_resize_ends_the_back_off() -> None:
    """Killed at 0, 0 and 10 s, it would be started at 30 s. Resized at 12 s it is started then, and killed again (the
    new limit is too small as well) it is started after 10 s."""
    state = workload(1, container(limits=bounds(None, 99), memory_base=100.0), resize="InPlace")
    (sim_container,) = state.pods[0].containers
    state.advance(0.0, 12.0, 0.0)
    assert (sim_container.running, sim_container.restarts, sim_container.restart_at) == (False, 2, 30.0)
    state.resize(state.pods[0], with_limit(state, 98), 12.0)
    state.advance(12.0, 12.0, 0.0)
    assert (sim_container.restarts, sim_container.restart_at) == (4, 42.0)


def test_a_resize_of_a_container_that_runs_makes_its_next_start_the_first() -> None:
    leaky = container(limits=bounds(None, 100), memory_leak=10.0)
    state = workload(1, leaky, resize="InPlace")
    (sim_container,) = state.pods[0].containers
    state.advance(0.0, 15.0, 0.0)
    assert (sim_container.running, sim_container.restarts, sim_container.back_off) == (True, 1, 10.0)
    state.resize(state.pods[0], with_limit(state, 101), 15.0)
    assert (sim_container.running, sim_container.back_off) == (True, 0.0)


def test_a_resize_of_another_container_ends_no_back_off() -> None:
    state = workload(
        1,
        container(limits=bounds(None, 99), memory_base=100.0),
        container("proxy", bounds(10)),
        resize="InPlace",
    )
    app, proxy = state.pods[0].containers
    state.advance(0.0, 12.0, 0.0)
    assert (app.restarts, app.restart_at, proxy.restarts) == (2, 30.0, 0)
    state.resize(state.pods[0], {**state.pods[0].resources, **template(20, name="proxy")}, 12.0)
    assert (state.pods[0].cpu_request, app.restart_at) == (20, 30.0)


def test_back_off_goes_on_after_a_life_of_ten_minutes() -> None:
    leaky = container(limits=bounds(None, 600), memory_leak=1.0)
    times = restarts_of(workload(1, leaky), 1900.0, step=10.0)
    assert times == pytest.approx([600.0, 1210.0, 1830.0])


def test_memory_that_reaches_the_limit_at_the_end_of_a_step_kills_in_the_next() -> None:
    leaky = container(limits=bounds(None, 100), memory_leak=10.0)
    state = workload(1, leaky)
    assert state.advance(0.0, 10.0, 0.0).ooms == 0
    assert state.advance(10.0, 10.0, 0.0).ooms == 1
    assert [event.time for event in state.events] == [10.0]


def test_a_settled_pod_leaks_from_the_beginning_and_a_new_one_from_its_start() -> None:
    state = workload(1, container(memory_leak=2.0))
    state.scale(2, 0.0)
    assert state.advance(0.0, 10.0, 0.0).used_memory == 40.0
    state.scale(3, 10.0)
    assert state.advance(10.0, 10.0, 0.0).used_memory == 100.0


def test_the_other_containers_of_a_pod_go_on_without_load() -> None:
    leaky = container("leaky", limits=bounds(None, 100), memory_leak=10.0, cpu_per_unit=5.0)
    sound = container("sound", cpu_base=3.0, cpu_per_unit=7.0, memory_base=11.0)
    state = workload(1, leaky, sound)
    _, cpu = measured(state, 0.0, 9.0, 1.0)
    assert list(cpu.values()) == [5.0, 10.0]
    run(state, 9.0, 21.0, load=1.0)
    _, cpu = measured(state, 21.0, 1.0, 1.0)
    first, second = state.pods[0].containers
    assert list(cpu.values()) == [0.0, 3.0]
    assert (first.running, first.memory, second.memory) == (False, 0.0, 11.0)
    assert (first.restarts, second.restarts, state.pods[0].most_restarts) == (1, 0, 1)


def test_a_pod_is_ready_when_the_last_of_its_containers_is() -> None:
    slow = container("slow", limits=bounds(None, 100), memory_leak=10.0)
    fast = container("fast", limits=bounds(None, 70), memory_leak=10.0)
    state = workload(1, slow, fast, start_up=1.0)
    # fast: killed at 7, up at once; 14, up at 24; slow: killed at 10, up at once; 20, up at 30
    run(state, 0.0, 24.0)
    assert [sim_container.running for sim_container in state.pods[0].containers] == [False, True]
    assert (state.pods[0].ready, state.pods[0].ready_at) == (False, None)
    run(state, 24.0, 30.0)
    assert (state.pods[0].ready, state.pods[0].ready_at) == (False, 31.0)
    assert state.advance(30.0, 0.5, 0.0).ready == 0
    assert state.advance(30.5, 0.4, 0.0).ready == 0


def test_more_than_a_node_has_kills_the_pod_with_most_beyond_its_request() -> None:
    """Three pods of one node, without limits: the newest of equals goes, then the load is too much for two, and one."""
    app = container(requests=bounds(None, 100), memory_base=100.0, memory_per_unit=1.0)
    state = workload(3, app, nodes=NodeModel(memory=1000))
    assert state.advance(0.0, 10.0, 700.0).ooms == 0
    tick = state.advance(10.0, 10.0, 750.0)
    assert (tick.ooms, tick.ready, tick.used_memory) == (3, 0, 300.0)
    messages = [event.message.removeprefix("Container app of ") for event in state.events]
    assert messages[0] == "app-3 had 350 bytes of memory"
    assert messages[1] == "app-2 had 475 bytes of memory"
    assert messages[2].startswith("app-1 had ")


def test_a_leak_fills_a_node() -> None:
    leaky = container("leaky", bounds(None, 10), memory_leak=1.0)
    large = container("large", bounds(None, 490), memory_base=450.0)
    state = workload(2, leaky, large, nodes=NodeModel(memory=1000))
    for at in range(0, 60, 20):
        state.advance(float(at), 20.0, 0.0)
    # 900 + 2 t = 1000 at 50 s: leaky has 40 more than its request, large 40 less
    assert [(event.time, event.message) for event in state.events] == [
        (50.0, "Container leaky of app-2 had 50 bytes of memory")
    ]


def test_the_pod_with_most_beyond_its_request_is_not_always_the_largest() -> None:
    app = container(requests=bounds(None, 800), memory_base=300.0, memory_leak=1.0)
    state = workload(1, app, nodes=NodeModel(memory=1000))
    state.admission = lambda given: {"app": ResourceRequirements(bounds(None, 100), {})}
    run(state, 0.0, 20.0, step=20.0)
    state.scale(2, 20.0)
    run(state, 20.0, 240.0, step=20.0)
    assert [(event.time, event.message.split()[3]) for event in state.events] == [(210.0, "app-2")]


def test_nodes_alike_lose_one_container_each() -> None:
    app = container(requests=bounds(None, 500), memory_base=500.0, memory_per_unit=1.0)
    state = workload(4, app, nodes=NodeModel(memory=1000))
    assert [pod.node for pod in state.pods] == [1, 1, 2, 2]
    state.advance(0.0, 1.0, 0.0)
    assert state.events == []
    state.advance(1.0, 1.0, 4.0)
    assert [event.message.split()[3] for event in state.events[:2]] == ["app-2", "app-4"]


def test_memory_on_a_scale_of_months() -> None:
    """A small leak late in a long run is still found, in a step of its own length."""
    leaky = container(
        limits=bounds(None, 1000 * MI), memory_base=400.0 * MI, memory_leak=300.0 * MI / 2_592_000.0 * 2
    )
    state = workload(1, leaky)
    for index in range(0, 2_600_000, 3600):
        state.advance(float(index), 3600.0, 0.0)
    assert [event.time for event in state.events] == pytest.approx([2_592_000.0])


def test_a_runtime_keeps_a_share_of_what_the_load_took_until_it_starts_anew() -> None:
    app = container(limits=bounds(None, 400), memory_base=100.0, memory_per_unit=10.0, memory_kept=0.5)
    state = workload(1, app, start_up=0.0)
    used = [
        state.advance(at * 1.0, 1.0, load).used_memory for at, load in enumerate([20.0, 20.0, 0.0, 15.0, 5.0])
    ]
    assert used == [300.0, 300.0, 200.0, 250.0, 200.0]
    state.scale(2, 5.0)
    assert state.advance(5.0, 1.0, 10.0).used_memory == 200.0 + 150.0, "the new pod had 5 units at most"
    state.evict(state.pods[0], 6.0)
    assert state.advance(6.0, 1.0, 10.0).used_memory == 150.0 + 150.0
    state.advance(7.0, 1.0, 62.0)
    assert state.advance(8.0, 20.0, 0.0).used_memory == 200.0, "killed at 410, and back without what was kept"
