"""What the API server refuses to do in place, and the books of nodes whose pods are resized."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa.simulate.cluster.nodes import Nodes
from hvpa.simulate.cluster.resizes import Resizes, is_refused, qos_class
from hvpa.simulate.cluster.state import SimPod
from hvpa.simulate.model import NodeModel, SimulationEvent
from tests.unit.simulate.cluster.build import bounds, template


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
    assert qos_class({f"c{index}": one for index, one in enumerate(containers)}) == expected


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
        assert node.free_cpu == CPU - cpu - sum(one.held_cpu for one in waiting)
        assert node.free_memory == MEMORY - memory - sum(one.held_memory for one in waiting)
        assert cpu <= CPU
        assert memory <= MEMORY
        for pod in own:
            wanted = pod.resize
            if wanted is not None:
                too_large = wanted.cpu_request > CPU or wanted.memory_request > MEMORY
                assert wanted.state == ("Infeasible" if too_large else "Deferred")
                more_cpu, more_memory = (
                    wanted.cpu_request - pod.cpu_request,
                    wanted.memory_request - pod.memory_request,
                )
                assert more_cpu > CPU - cpu or more_memory > MEMORY - memory or too_large


@settings(deadline=None, derandomize=True, max_examples=300)
@given(steps)
def test_nodes_and_pods_agree_whatever_is_asked_for(script: list[tuple[str, int, tuple[int, int]]]) -> None:
    events: list[SimulationEvent] = []
    nodes = Nodes(NodeModel(cpu=CPU, memory=MEMORY))
    resizes, pods = Resizes(nodes, events), list[SimPod]()
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
