"""What holds for every workload: amounts are conserved, counts keep to the rollout's limits, steps do not matter."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.rollout import fenceposts
from hvpa_lab.simulate.model import ContainerModel, NodeModel, Tick, WorkloadModel
from tests.unit.lab.simulate.cluster.build import (
    bounds,
    container,
    measured,
    resize_all,
    rolled_out,
    workload,
)

Action = tuple[str, int] | None
Script = list[tuple[int, Action]]

QUIET = settings(deadline=None, derandomize=True, max_examples=50)


def amounts(low: int, high: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(low, high)


@st.composite
def containers(draw: st.DrawFn, name: str) -> ContainerModel:
    cpu, memory = draw(st.integers(0, 800)), draw(st.integers(0, 800))
    limits = bounds(draw(amounts(max(1, cpu), 1500)), draw(amounts(max(200, memory), 1500)))
    return container(
        name,
        bounds(cpu, memory),
        limits,
        cpu_base=draw(st.integers(0, 100)),
        cpu_per_unit=draw(st.integers(0, 20)),
        memory_base=draw(st.integers(0, 150)),
        memory_per_unit=draw(st.integers(0, 10)),
        memory_leak=draw(st.sampled_from([0.0, 0.0, 1.0, 3.0])),
    )


pods_own = st.none() | st.builds(
    lambda cpu, memory, limits: ResourceRequirements(
        bounds(cpu, memory), bounds(limits and limits[0] + (cpu or 0), limits and limits[1] + (memory or 0))
    ),
    amounts(0, 1600),
    amounts(0, 1600),
    st.none() | st.tuples(st.integers(1, 800), st.integers(200, 800)),
)
"""Resources of the pod itself. They may be smaller than those of its containers, which the API server would refuse."""

FENCES: st.SearchStrategy[int | str] = st.sampled_from(["25%", 0, 2])
sizes = st.none() | st.integers(800, 4000)
node_models = st.builds(
    NodeModel,
    cpu=sizes,
    memory=sizes,
    headroom=amounts(0, 500),
    count=amounts(1, 4),
    start_up=st.sampled_from([0.0, 45.0]),
)


@st.composite
def workloads(draw: st.DrawFn) -> WorkloadModel:
    return WorkloadModel(
        kind=draw(st.sampled_from(["Deployment", "StatefulSet"])),
        name="app",
        namespace="default",
        replicas=draw(st.integers(0, 6)),
        containers=tuple(draw(containers(name)) for name in draw(st.sampled_from([("a",), ("a", "b")]))),
        start_up=draw(st.sampled_from([0.0, 7.0, 30.0])),
        max_surge=draw(FENCES),
        max_unavailable=draw(FENCES),
        resize=draw(st.sampled_from(["Recreate", "InPlace"])),
        resources=draw(pods_own),
    )


# every 15 s: the load, and what is asked for (a count, a new request, an eviction, nothing)
actions = st.lists(
    st.tuples(
        st.integers(0, 300),
        st.none() | st.tuples(st.sampled_from(["scale", "template", "evict"]), st.integers(0, 6)),
    ),
    max_size=12,
)


def resources(number: int, before: ResourceRequirements) -> ResourceRequirements:
    """Requests by this number; every other one takes the limits away, which can't be done in place."""
    limits = {resource: 100 * number + 120 for resource in before.limits} if number % 2 else {}
    return ResourceRequirements(bounds(100 * number, 50 * (1 + number % 3)), limits)


def act(state: SimWorkload, action: Action, now: float) -> None:
    if action is None:
        return
    what, number = action
    if what == "scale":
        state.scale(number, now)
    elif what == "template":
        state.set_template(
            {name: resources(number, requirements) for name, requirements in state.template.items()}, now
        )
    elif number < len(state.pods):
        state.evict(state.pods[number], now)


def simulated(
    model: WorkloadModel, nodes: NodeModel, script: Script, step: float
) -> tuple[SimWorkload, list[Tick]]:
    """Everything that was done, by a script of 15 s each, in steps of this length."""
    state = SimWorkload(model, nodes)
    ticks = []
    for index, (load, action) in enumerate(script):
        act(state, action, index * 15.0)
        for part in range(round(15.0 / step)):
            ticks.append(state.advance(index * 15.0 + part * step, step, float(load)))
    return state, ticks


@QUIET
@given(workloads(), node_models, actions)
def test_what_is_used_and_what_is_unmet_are_the_demand(
    model: WorkloadModel, nodes: NodeModel, script: Script
) -> None:
    base = sum(container.cpu_base for container in model.containers)
    state, ticks = simulated(model, nodes, script, 15.0)
    for tick in ticks:
        assert tick.used_cpu + tick.unmet == pytest.approx(tick.demand, rel=1e-9, abs=1e-9)
        assert min(tick.used_cpu, tick.unmet) >= 0.0
        assert tick.used_cpu <= (tick.capacity + (2 * len(state.pods) + 20) * base) * (1 + 1e-9)
        assert math.isfinite(tick.capacity)
        assert tick.ready <= tick.pods


@QUIET
@given(workloads(), node_models, actions)
def test_usage_keeps_to_its_bounds(model: WorkloadModel, nodes: NodeModel, script: Script) -> None:
    state = SimWorkload(model, nodes)
    for index, (load, action) in enumerate(script):
        act(state, action, index * 15.0)
        tick, cpu = measured(state, index * 15.0, 15.0, float(load))
        used: dict[int, float] = {}
        for pod in state.pods:
            pod_cpu = sum(cpu[pod.serial, container.name] for container in pod.containers)
            if pod.node is None:
                assert pod_cpu == 0.0
                continue
            used[pod.node] = used.get(pod.node, 0.0) + pod_cpu
            assert pod_cpu <= pod.shape.cpu_limit * (1 + 1e-9)
            assert sum(each.memory for each in pod.containers) <= pod.shape.memory_limit * (1 + 1e-9)
            if nodes.headroom is not None:
                assert pod_cpu <= (pod.cpu_request + nodes.beyond(pod.cpu_request)) * (1 + 1e-9)
            for running, shape in zip(pod.containers, pod.shapes, strict=True):
                assert cpu[pod.serial, running.name] <= shape.cpu_limit * (1 + 1e-9)
                assert running.memory <= shape.memory_limit * (1 + 1e-9)
        if nodes.headroom is None and nodes.cpu is not None:
            assert all(cpu <= nodes.cpu * (1 + 1e-9) for cpu in used.values())
        if nodes.count is not None:
            assert state.node_count <= nodes.count
        placed = [pod for pod in state.pods if pod.node is not None]
        assert tick.requested_cpu == sum(pod.cpu_request for pod in placed)
        for node in {pod.node for pod in placed}:
            own = [pod for pod in placed if pod.node == node]
            assert sum(pod.cpu_request for pod in own) <= (nodes.cpu or math.inf)
            assert sum(pod.memory_request for pod in own) <= (nodes.memory or math.inf)


@QUIET
@given(workloads(), node_models, actions)
def test_the_length_of_a_step_does_not_matter(model: WorkloadModel, nodes: NodeModel, script: Script) -> None:
    coarse, long = simulated(model, nodes, script, 15.0)
    fine, short = simulated(model, nodes, script, 1.0)
    for index in range(4):
        assert 15.0 * sum(tick[index] for tick in long) == pytest.approx(
            sum(tick[index] for tick in short), rel=1e-6, abs=1e-3
        )
    assert [(pod.name, pod.node, pod.ready) for pod in coarse.pods] == [
        (pod.name, pod.node, pod.ready) for pod in fine.pods
    ]
    for coarse_pod, other in zip(coarse.pods, fine.pods, strict=True):
        for mine, theirs in zip(coarse_pod.containers, other.containers, strict=True):
            assert mine.cpu_total == pytest.approx(theirs.cpu_total, rel=1e-6, abs=1e-3)
            assert (mine.running, mine.restarts) == (theirs.running, theirs.restarts)
    assert sum(tick.ooms for tick in long) == sum(tick.ooms for tick in short)
    assert sum(tick.restarts for tick in long) == sum(tick.restarts for tick in short)
    assert coarse.node_seconds == pytest.approx(fine.node_seconds, rel=1e-6)


counts = st.integers(0, 6) | st.sampled_from(["0%", "10%", "25%", "50%", "100%"])


@QUIET
@given(st.integers(1, 12), counts, counts, st.sampled_from([0.0, 5.0, 30.0]), st.integers(0, 40))
def test_a_rollout_keeps_to_its_limits(
    replicas: int, surge: int | str, unavailable: int | str, start_up: float, second: int
) -> None:
    """Also when a second template comes during the first one's rollout; where all pods start well it ends."""
    state = workload(replicas, max_surge=surge, max_unavailable=unavailable, start_up=start_up)
    most, missing = fenceposts(surge, unavailable, replicas)
    for at in range(replicas * 62 + 62):
        if at in {0, second}:
            state.set_template({"app": ResourceRequirements(bounds(100 + at), {})}, float(at))
        tick = state.advance(float(at), 1.0, 0.0)
        assert len(state.pods) == tick.pods <= replicas + most
        assert tick.ready >= replicas - missing
    assert rolled_out(state)


@QUIET
@given(st.integers(1, 6), st.integers(0, 40))
def test_a_stateful_set_never_lacks_more_than_one_pod(replicas: int, second: int) -> None:
    state = workload(replicas, kind="StatefulSet")
    for at in range(replicas * 62 + 62):
        if at in {0, second}:
            state.set_template({"app": ResourceRequirements(bounds(100 + at), {})}, float(at))
        tick = state.advance(float(at), 1.0, 0.0)
        assert tick.pods == replicas
        assert tick.ready >= replicas - 1
    assert rolled_out(state)


@QUIET
@given(workloads(), node_models, actions)
def test_in_place_every_pod_is_to_have_what_was_last_requested(
    model: WorkloadModel, nodes: NodeModel, script: Script
) -> None:
    """As an operator does that resizes all pods to the template's size at each step: none is left behind."""
    state = SimWorkload(replace(model, resize="InPlace"), nodes)
    for index, (load, action) in enumerate([*script, *[(0, None)] * 5]):
        act(state, action, index * 15.0)
        state.advance(index * 15.0, 15.0, float(load))
        resize_all(state, state.pod_resources, index * 15.0 + 15.0)
        for pod in state.pods:
            assert pod.desired_resources == state.pod_resources
            assert pod.resize is None or pod.node is not None
