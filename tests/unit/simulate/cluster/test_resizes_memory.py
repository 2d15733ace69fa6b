"""Memory limits of pods that are resized in place: none is lowered below what is used."""

from __future__ import annotations

from hvpa.core.model import ResourceRequirements
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
)

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
