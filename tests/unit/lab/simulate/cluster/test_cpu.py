"""How load becomes CPU: shares, limits, headroom, nodes."""

from __future__ import annotations

import pytest

from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.usage import share_out
from hvpa_lab.simulate.model import NodeModel
from tests.unit.lab.simulate.cluster.build import bounds, container, measured, run, workload

APP = container(requests=bounds(500), limits=bounds(1000), cpu_base=50.0, cpu_per_unit=10.0)


def test_the_load_is_shared_equally() -> None:
    state = workload(4, APP)
    tick = state.advance(0.0, 15.0, 100.0)
    assert (tick.demand, tick.used_cpu, tick.unmet, tick.capacity) == (1200.0, 1200.0, 0.0, 4000.0)
    assert [pod.containers[0].cpu_total for pod in state.pods] == [4500.0] * 4
    state.advance(15.0, 10.0, 0.0)
    assert state.pods[3].containers[0].cpu_total == 5000.0


def test_a_step_like_the_last_one_counts_too() -> None:
    state = workload(2, APP)
    ticks = [state.advance(at * 15.0, 15.0, 10.0) for at in range(3)]
    assert ticks[0] == ticks[1] == ticks[2]
    assert state.pods[0].containers[0].cpu_total == 3 * 15.0 * 100.0
    assert state.advance(45.0, 15.0, 20.0).used_cpu == 300.0


def test_usage_is_capped_by_the_limit_and_the_rest_is_lost() -> None:
    state = workload(2, APP)
    tick = state.advance(0.0, 15.0, 300.0)
    assert (tick.demand, tick.used_cpu, tick.unmet, tick.capacity) == (3100.0, 2000.0, 1100.0, 2000.0)
    assert state.advance(15.0, 15.0, 190.0).unmet == 0.0


def test_demand_at_the_limit_but_for_rounding_is_met() -> None:
    state = workload(1, container(limits=bounds(300), cpu_per_unit=0.1))
    assert 3000.0000000001 * 0.1 > 300.0
    assert state.advance(0.0, 1.0, 3000.0000000001).unmet == 0.0


def test_without_ready_pods_all_of_the_load_is_unmet_and_base_is_still_used() -> None:
    state = workload(0, APP)
    state.scale(1, 0.0)
    tick = state.advance(0.0, 15.0, 10.0)
    assert tick == (150.0, 100.0, 0.0, 50.0, 0.0, 500, 0, 1, 0, 0, 0)
    state.scale(0, 15.0)
    assert state.advance(15.0, 15.0, 10.0) == (100.0, 100.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0)


def test_a_pending_pod_uses_nothing() -> None:
    state = workload(1, APP, nodes=NodeModel(cpu=400))
    assert state.advance(0.0, 15.0, 10.0) == (100.0, 100.0, 0.0, 0.0, 0.0, 0, 0, 1, 0, 0, 0)


@pytest.mark.parametrize("step", [1.0, 15.0, 60.0])
def test_readiness_takes_place_at_its_exact_time_inside_a_step(step: float) -> None:
    """Ready at 40 s (scaled at 10 s): the mean over a minute is exact whatever the step."""
    state = workload(1, APP)
    totals = [0.0, 0.0, 0.0]
    at = 0.0
    while at < 60.0:
        if at == 0.0:
            state.scale(3, 0.0)
        tick = state.advance(at, step, 180.0)
        totals = [total + step * part for total, part in zip(totals, tick[1:4], strict=True)]
        at += step
    # 30 s: 1000 of 1850 and twice 50; then three pods that use 650 each
    assert totals == pytest.approx([30 * 850, 30 * 1000 + 30 * 3000, 30 * 1100 + 30 * 1950], rel=1e-12)
    assert [pod.ready_at for pod in state.pods] == [-3570.0, 30.0, 30.0]
    first, second, _ = (pod.containers[0].cpu_total for pod in state.pods)
    assert (first, second) == pytest.approx((30 * 1000 + 30 * 650, 30 * 50 + 30 * 650), rel=1e-12)


def test_a_step_in_which_a_pod_becomes_ready_has_the_mean_of_its_parts() -> None:
    state = workload(1, APP)
    state.scale(2, 0.0)
    _, uneven = measured(state, 0.0, 60.0, 40.0)
    assert list(uneven.values()) == [(450 + 250) / 2, (50 + 250) / 2]
    _, even = measured(state, 60.0, 60.0, 40.0)
    assert list(even.values()) == [250.0, 250.0]


def test_what_is_due_at_the_end_of_a_step_belongs_to_it() -> None:
    state = workload(1, APP)
    state.scale(2, 0.0)
    assert run(state, 0.0, 30.0, step=15.0) == [(2, 1), (2, 2)]
    assert state.pods[1].ready_changed == 30.0


def test_a_noisy_neighbour_pins_usage_at_request_and_headroom() -> None:
    """DESIGN 7.4: whatever the load, no more than request + headroom is ever seen."""
    app = container(requests=bounds(1000), cpu_per_unit=10.0)
    state = workload(2, app, nodes=NodeModel(cpu=16000, headroom=500))
    for at, load in enumerate((100.0, 290.0, 300.0, 400.0, 10_000.0)):
        tick, cpu = measured(state, float(at), 1.0, load)
        assert tick.capacity == 3000.0
        assert tick.used_cpu == min(10.0 * load, 3000.0)
        assert tick.unmet == max(0.0, 10.0 * load - 3000.0)
        assert list(cpu.values()) == [tick.used_cpu / 2] * 2
    state.set_template({"app": ResourceRequirements(bounds(2000), {})}, 5.0)
    run(state, 5.0, 125.0, load=10_000.0, step=15.0)
    _, cpu = measured(state, 125.0, 1.0, 10_000.0)
    assert list(cpu.values()) == [2500.0, 2500.0]


def test_headroom_may_be_a_part_of_the_request() -> None:
    state = workload(2, container(requests=bounds(1000), cpu_per_unit=10.0), nodes=NodeModel(headroom="25%"))
    tick, _ = measured(state, 0.0, 1.0, 1000.0)
    assert tick.capacity == tick.used_cpu == 2500.0


def test_headroom_is_not_more_than_a_node() -> None:
    app = container(requests=bounds(1000), cpu_per_unit=10.0)
    state = workload(1, app, nodes=NodeModel(cpu=1200, headroom=500))
    assert state.advance(0.0, 1.0, 1000.0)[1:4] == (8800.0, 1200.0, 1200.0)


def test_with_headroom_pods_of_a_node_do_not_compete() -> None:
    app = container(requests=bounds(600), cpu_per_unit=10.0)
    state = workload(2, app, nodes=NodeModel(cpu=1200, headroom=500))
    assert [pod.node for pod in state.pods] == [1, 1]
    assert state.advance(0.0, 1.0, 1000.0).used_cpu == 2200.0


@pytest.mark.parametrize("nodes", [NodeModel(headroom=200), NodeModel(cpu=300)])
def test_demand_at_the_bound_of_a_node_but_for_rounding_is_met(nodes: NodeModel) -> None:
    state = workload(1, container(requests=bounds(100), cpu_per_unit=0.1), nodes=nodes)
    assert state.advance(0.0, 1.0, 3000.0000000001).unmet == 0.0
    assert state.advance(1.0, 1.0, 3001.0).unmet == pytest.approx(0.1)


def test_a_limit_below_the_headroom_counts() -> None:
    app = container(requests=bounds(1000), limits=bounds(1100), cpu_per_unit=10.0)
    state = workload(1, app, nodes=NodeModel(headroom=500))
    assert state.advance(0.0, 1.0, 1000.0)[1:4] == (8900.0, 1100.0, 1100.0)


def test_containers_share_what_their_pod_gets_by_their_requests() -> None:
    """1500 for a pod that wants 200 and 2000 and 1000: the small one has all, the others 300 : 100 of the rest."""
    small = container("small", bounds(600), cpu_base=200.0)
    large = container("large", bounds(300), cpu_per_unit=20.0)
    other = container("other", bounds(100), cpu_per_unit=10.0)
    state = workload(1, small, large, other, nodes=NodeModel(headroom=500))
    tick, cpu = measured(state, 0.0, 1.0, 100.0)
    assert list(cpu.values()) == pytest.approx([200.0, 975.0, 325.0])
    assert (tick.used_cpu, tick.capacity) == (1500.0, 1500.0)
    assert tick.unmet == pytest.approx(1700.0)


def test_pods_share_their_node() -> None:
    """Two pods on the first node (1000 each wanted, 1200 there), one on the second."""
    app = container(requests=bounds(600), cpu_per_unit=10.0)
    state = workload(3, app, nodes=NodeModel(cpu=1200))
    tick, cpu = measured(state, 0.0, 1.0, 300.0)
    assert [pod.node for pod in state.pods] == [1, 1, 2]
    assert list(cpu.values()) == [600.0, 600.0, 1000.0]
    assert (tick.used_cpu, tick.unmet, tick.capacity) == (2200.0, 800.0, 2400.0)
    assert state.advance(1.0, 1.0, 180.0)[1:] == (0.0, 2400.0, 1800.0, 0.0, 1800, 0, 3, 3, 0, 0)


def test_what_a_starting_pod_uses_of_its_node_is_not_there_for_the_others() -> None:
    app = container(requests=bounds(600), cpu_base=300.0, cpu_per_unit=10.0)
    state = workload(1, app, nodes=NodeModel(cpu=1200))
    state.scale(2, 0.0)
    tick, cpu = measured(state, 0.0, 1.0, 200.0)
    assert list(cpu.values()) == [900.0, 300.0]
    assert (tick.demand, tick.unmet, tick.used_cpu, tick.capacity) == (2600.0, 1400.0, 1200.0, 1200.0)


def test_pods_of_different_requests_share_their_node_by_them() -> None:
    """What the rollout's pods of 300 and 600 get of 900: 300 and 600."""
    app = container(requests=bounds(300), cpu_per_unit=10.0)
    state = workload(1, app, nodes=NodeModel(cpu=900), max_surge=1, max_unavailable=0, start_up=0.0)
    state.admission = lambda given: {"app": ResourceRequirements(bounds(600), {})}
    state.scale(2, 0.0)
    _, cpu = measured(state, 0.0, 1.0, 200.0)
    assert list(cpu.values()) == [300.0, 600.0]


def test_where_nothing_bounds_a_pod_its_capacity_is_its_request_or_what_is_asked_for() -> None:
    bounded = container("bounded", bounds(100), bounds(100))
    endless = container("endless", bounds(200), cpu_per_unit=10.0)
    state = workload(2, bounded, endless)
    assert state.advance(0.0, 1.0, 10.0)[:4] == (100.0, 0.0, 600.0, 100.0)
    assert state.advance(1.0, 1.0, 100.0)[:4] == (1000.0, 0.0, 1000.0, 1000.0)


def test_bounded_pods_beside_boundless_ones() -> None:
    state = workload(1, container(limits=bounds(300), cpu_per_unit=1.0), start_up=0.0)
    state.admission = lambda given: {"app": ResourceRequirements(bounds(200), {})}
    state.scale(2, 0.0)
    assert state.advance(0.0, 1.0, 10.0).capacity == 500.0


def test_sharing_out() -> None:
    assert share_out(900.0, [(500.0, 1.0, 1), (500.0, 2.0, 1)]) == [400.0, 500.0]
    assert share_out(900.0, [(500.0, 1.0, 2), (100.0, 1.0, 1)]) == [400.0, 100.0]
    assert share_out(900.0, [(100.0, 1.0, 1), (200.0, 1.0, 3)]) == [100.0, 200.0]
    assert share_out(0.0, [(0.0, 2.0, 1), (10.0, 2.0, 1)]) == [0.0, 0.0]


def test_what_a_container_uses_while_it_starts_is_no_demand() -> None:
    app = container(requests=bounds(100), cpu_base=10.0, cpu_per_unit=10.0, cpu_start_up=300.0)
    state = workload(1, app, nodes=NodeModel(cpu=1000, headroom="50%"))
    state.scale(2, 0.0)
    tick = state.advance(0.0, 15.0, 5.0)
    assert (tick.demand, tick.unmet, tick.used_cpu) == (60.0, 0.0, 60.0 + 150.0)
    state.advance(15.0, 45.0, 5.0)  # a start of 30 s at 300m takes 60 s at 150m
    tick = state.advance(60.0, 15.0, 5.0)
    assert (tick.demand, tick.unmet, tick.used_cpu) == (70.0, 0.0, 70.0)


def test_a_start_is_as_fast_as_its_cpu_allows() -> None:
    """30 s at 300m: 20 s at 150m, 10 s at 300m and the rest at 300m, although the pod may use more."""
    app = container(requests=bounds(100), cpu_per_unit=10.0, cpu_start_up=300.0)
    state = workload(1, app, nodes=NodeModel(cpu=4000, headroom="50%"))
    state.scale(2, 0.0)
    state.advance(0.0, 20.0, 5.0)
    state.resize(state.pods[1], {"app": ResourceRequirements(bounds(600), {})}, 20.0)
    state.advance(20.0, 19.0, 5.0)
    assert state.ready_replicas == 1
    state.advance(39.0, 2.0, 5.0)
    assert state.ready_replicas == 2
    assert state.pods[1].ready_changed == pytest.approx(40.0)


def test_pods_may_share_the_load_unequally() -> None:
    uneven = workload(5, container(cpu_per_unit=1.0, memory_per_unit=1.0), spread=0.3, seed=4)
    parts = [pod.part for pod in uneven.pods]
    assert len(set(parts)) == 5
    tick, used = measured(uneven, 0.0, 10.0, 1000.0)
    assert tick.demand == 1000.0
    assert tick.used_cpu == pytest.approx(1000.0)
    assert list(used.values()) == pytest.approx([1000.0 * part / sum(parts) for part in parts])
    assert [pod.part for pod in workload(5, spread=0.3, seed=4).pods] == parts
    assert [pod.part for pod in workload(5, spread=0.3, seed=5).pods] != parts
