"""The same observations of the kubelet in `hvpa simulate`, as far as that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.resizes import message_of
from hvpa_lab.simulate.cluster.state import SimPod
from hvpa_lab.simulate.model import ContainerModel, NodeModel, WorkloadModel
from localcluster.workloads.pods import MIB

NODE: Final = 1000
"""Millicores of the only node."""
STEP: Final = 0.5


class Trial:
    """Pods of one container, which each use so many MiB, with a clock."""

    def __init__(self, cpu: int, pods: int = 1, memory: int = 60, delay: float = 0.0, unit: int = 0) -> None:
        """`cpu` is what each requests, in millicores; a unit of the load takes `unit` MiB more."""
        requests: dict[Resource, int] = {"cpu": cpu, "memory": 64 * MIB}
        limits: dict[Resource, int] = {"memory": 128 * MIB}
        app = ContainerModel(
            "app", requests, limits, memory_base=float(memory * MIB), memory_per_unit=float(unit * MIB)
        )
        model = WorkloadModel("Deployment", "web", "default", pods, (app,), resize_delay=delay)
        self.state = SimWorkload(model, NodeModel(cpu=NODE, count=1))
        self.now = 0.0
        self.load = 0.0
        self.step()

    def step(self) -> None:
        self.state.advance(self.now, STEP, self.load)
        self.now += STEP

    def until(self, test: Callable[[], bool], seconds: float = 100.0) -> float:
        """Seconds until it is so."""
        began = self.now
        while not test():
            assert self.now - began < seconds
            self.step()
        return self.now - began

    def resize(self, pod: SimPod, cpu: int, limit: int = 128) -> None:
        """Ask for other millicores and another memory limit (MiB)."""
        resources = ResourceRequirements({"cpu": cpu, "memory": 32 * MIB}, {"memory": limit * MIB})
        self.state.resize(pod, {"app": resources}, self.now)


def _reason(pod: SimPod) -> str:
    return pod.resize.state if pod.resize is not None else ""


def course() -> str:
    trial = Trial(50, delay=1.0)
    (pod,) = trial.state.pods
    trial.resize(pod, 100)
    steps: list[str] = []
    while not steps or steps[-1] != "there":
        is_there, told = pod.cpu_request == 100, _reason(pod)
        steps.append("there" if is_there else f"asked for, with `{told}`" if told else "asked for")
        trial.step()
    restarts = pod.most_restarts
    return f"{'; '.join(dict.fromkeys(steps))}; {f'{restarts} restarts' if restarts else 'no restart'}"


def beyond_the_node() -> str:
    trial = Trial(50)
    (pod,) = trial.state.pods
    resources = {"app": ResourceRequirements({"cpu": 2 * NODE, "memory": 64 * MIB}, {"memory": 128 * MIB})}
    if "node didn't have enough allocatable resources: cpu" in trial.state.refusal(pod, resources):
        return "the API server refuses it (403, cause `NodeCapacity`)"
    trial.resize(pod, 2 * NODE)
    return f"`{_reason(pod)}`" if _reason(pod) else "resized"


def no_room() -> str:
    trial = Trial(400, pods=2)
    first, other = trial.state.pods
    trial.resize(first, 700)
    if not _reason(first):
        return "resized all the same: room is not counted"
    reason = _reason(first)
    trial.resize(other, 200)
    trial.until(lambda: first.cpu_request == 700)
    return f"`{reason}`; resized when another pod shrinks"


def order() -> str:
    trial = Trial(100, pods=4)
    *waiting, other = trial.state.pods
    trial.resize(other, 650)
    asked = waiting[::-1]
    for pod in asked:
        trial.step()
        trial.resize(pod, 200)
        if not _reason(pod):
            return "none waits"
    turns: list[SimPod] = []
    for cpu in (600, 500, 400):
        trial.resize(other, cpu)
        trial.step()
        turns += [pod for pod in waiting if pod not in turns and not _reason(pod)]
    return "the longest wait first (all have the same priority)" if turns == asked else "in another order"


def limit_below_usage() -> str:
    trial = Trial(50)
    (pod,) = trial.state.pods
    trial.resize(pod, 50, limit=40)
    if not _reason(pod):
        return "resized"
    reason, message = _reason(pod), message_of(pod.resize) if pod.resize else ""
    names = (
        "names limit and usage" if f"limit ({40 * MIB}) below current usage (" in message else "names none"
    )
    trial.resize(pod, 100, limit=40)
    trial.step()
    if pod.cpu_request == 100:
        return f"`{reason}`; its message {names}; more CPU comes all the same"
    trial.resize(pod, 100)
    trial.until(lambda: pod.cpu_request == 100)
    return f"`{reason}`; its message {names}; more CPU waits until the limit is put back"


def out_of_memory() -> str:
    trial = Trial(50, memory=20, unit=100)
    (pod,) = trial.state.pods
    (container,) = pod.containers
    waits: list[str] = []
    ready = False
    trial.load = 2.0
    for restarts in (1, 2):
        ended = trial.now
        while container.restarts < restarts:
            trial.step()
            if not container.running:
                ready = ready or pod.ready
            elif container.restarts < restarts:
                ended = trial.now
        waits.append(_about(trial.now - ended))
    trial.until(lambda: not container.running)
    trial.resize(pod, 50, limit=512)
    took = trial.until(lambda: container.running)
    by_resize = "a resize ends the wait" if took < 5 else "a resize does not end the wait"
    trial.load = 6.0
    trial.until(lambda: not container.running)
    ended = trial.now
    trial.until(lambda: container.running)
    waits.append(_about(trial.now - ended))
    first, second, third = waits
    told = f"`{trial.state.events[0].reason}`; started {first}, then {second}"
    return f"{told}; {'ready' if ready else 'not ready'} meanwhile; {by_resize}, and the next one is {third}"


def _about(seconds: float) -> str:
    return "at once" if seconds < 5 else "after 10 s" if seconds < 16 else "after 20 s or more"


ANSWERS: Final[Mapping[str, Callable[[], str]]] = {
    "a resize": course,
    "more than the node has": beyond_the_node,
    "no room": no_room,
    "several wait for room": order,
    "a memory limit below usage": limit_below_usage,
    "out of memory": out_of_memory,
}
NOT_OBSERVED: Final = "not observed"


def answer(name: str) -> str:
    """What is seen of a row of the table."""
    return ANSWERS[name]() if name in ANSWERS else NOT_OBSERVED
