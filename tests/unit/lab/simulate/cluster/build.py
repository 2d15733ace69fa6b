"""What the tests of pods, nodes and rollouts build their workloads from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.model import ContainerModel, NodeModel, RuntimeModel, Tick, WorkloadModel

MI = 2**20
ENDLESS = NodeModel()


def bounds(cpu: int | None = None, memory: int | None = None) -> dict[Resource, int]:
    given: dict[Resource, int | None] = {"cpu": cpu, "memory": memory}
    return {name: amount for name, amount in given.items() if amount is not None}


def container(
    name: str = "app",
    requests: Mapping[Resource, int] | None = None,
    limits: Mapping[Resource, int] | None = None,
    runtime: RuntimeModel | None = None,
    **uses: float,
) -> ContainerModel:
    return ContainerModel(name, requests or {}, limits or {}, runtime=runtime, **uses)


def workload(
    replicas: int = 1, *containers: ContainerModel, nodes: NodeModel = ENDLESS, **fields: Any
) -> SimWorkload:
    given = {"kind": "Deployment", "name": "app", "namespace": "default", "start_up": 30.0, **fields}
    model = WorkloadModel(replicas=replicas, containers=containers or (container(),), **given)
    return SimWorkload(model, nodes)


def in_place(replicas: int, *containers: Any, **fields: Any) -> SimWorkload:
    return workload(replicas, *containers, resize="InPlace", **fields)


def template(
    cpu: int | None = None, memory: int | None = None, name: str = "app"
) -> dict[str, ResourceRequirements]:
    return {name: ResourceRequirements(bounds(cpu, memory), {})}


def resize_all(state: SimWorkload, wanted: Mapping[str, ResourceRequirements], now: float) -> None:
    """Request these resources of every pod."""
    state.resize_all([(pod, dict(wanted)) for pod in state.pods], now)


def rolled_out(state: SimWorkload) -> bool:
    """All replicas have the present template and are available, and no others exist (`kubectl rollout status`)."""
    return len(state.pods) == state.replicas == state.updated_replicas == state.ready_replicas


def names(state: SimWorkload) -> list[str]:
    return [pod.name for pod in state.pods]


def cpus(state: SimWorkload) -> list[int]:
    return [pod.cpu_request for pod in state.pods]


def states(state: SimWorkload) -> list[str | None]:
    return [None if pod.resize is None else pod.resize.state for pod in state.pods]


def reasons(state: SimWorkload) -> list[tuple[float, str]]:
    return [(event.time, event.reason) for event in state.events]


def measured(
    state: SimWorkload, now: float, step: float, load: float
) -> tuple[Tick, dict[tuple[int, str], float]]:
    """One step, and the mean CPU of each container in it, by its pod's serial number and its name."""

    def totals() -> dict[tuple[int, str], float]:
        return {
            (pod.serial, container.name): container.cpu_total
            for pod in state.pods
            for container in pod.containers
        }

    before = totals()
    tick = state.advance(now, step, load)
    return tick, {key: (total - before.get(key, 0.0)) / step for key, total in totals().items()}


def run(
    state: SimWorkload, start: float, end: float, load: float = 0.0, step: float = 1.0
) -> list[tuple[int, int]]:
    """Advance from start to end; (pods, ready) after each step."""
    counts = []
    at = start
    while at < end:
        tick = state.advance(at, step, load)
        counts.append((tick.pods, tick.ready))
        at += step
    return counts
