"""A closed loop around joint decisions, with nothing in it but demand: what all pods call for now, and what they
usually do. It keeps the status, applies the patches, and lets a rollout proceed.

The HPA is the algorithm for CPU over ready pods, with its tolerance and without any memory; the VPA recommends what the
usual demand says. Usual demand stands still: it is the status's own record, with more weight than any history can move.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from builders import build
from hvpa.api.hvpa.status import HvpaStatus, read_status
from hvpa.api.objects.read_models import Pod, Workload
from hvpa.api.values.quantity import Resource
from hvpa.core import Decision, Objects
from hvpa.core.path.path import ResourceKey

PERIOD = dt.timedelta(minutes=10)
"""From one decision to the next: longer than what comes and goes is waited for."""
HEAVY = 10**12
"""The weight of the usual demand, in seconds."""
PODS = 4
"""The count that the VPA's targets speak of."""
Sizes = Mapping[str, Mapping[Resource, int]]
"""Requests by container: millicores and bytes."""


@dataclass(frozen=True)
class Setup:
    """What stays the same: the Hvpa's spec (a change of the usual one), the usual demand in sum (millicores, bytes),
    the sizes at first sight, and the HPA's target: percent of the request, or (`absolute`) millicores for each pod of
    `first`. `base` is a pod's base usage of CPU (millicores, percent of its size), as the spec has it: containers share
    the former as they share `first`."""

    spec: Mapping[str, Any]
    usual: Sizes
    first: Sizes
    target: int = 80
    absolute: bool = False
    base: tuple[int, int] = (0, 0)

    @property
    def bounds(self) -> tuple[int, int]:
        """minReplicas and maxReplicas."""
        template = self.spec["hpa"]["template"]["spec"]
        return template["minReplicas"], template["maxReplicas"]

    @property
    def first_cpu(self) -> int:
        """The CPU of a pod at first sight, in millicores."""
        return sum(size["cpu"] for size in self.first.values())

    def work(self, sizes: Sizes) -> int:
        """What a pod of these sizes has left for work, in millicores."""
        value, percentage = self.base
        total = 0
        for name, size in sizes.items():
            share = math.ceil(value * self.first[name]["cpu"] / self.first_cpu)
            base = max(share, math.ceil(size["cpu"] * percentage / 100))
            total += max(size["cpu"] - base, math.ceil(size["cpu"] / 10))
        return total


@dataclass
class JointLoop:
    """One Deployment. `pods` are the sizes that its pods have, `sizes` those of its template. Demands are millicores
    that the pods should request together, without their base usage."""

    setup: Setup
    replicas: int
    sizes: dict[str, dict[Resource, int]]
    now: dt.datetime = build.NOW
    seen: Objects = field(init=False)
    decisions: list[Decision] = field(default_factory=list)
    rollouts: int = 0
    scale_replicas: int = 0
    reports_hpa: bool = True
    reports_vpa: bool = True

    def __post_init__(self) -> None:
        self.scale_replicas = self._inside(self.replicas)
        spec = {**self.setup.spec, "replicas": self.scale_replicas}
        status = {"axes": {"vertical": self._remembered()}}
        self.pods = self.sizes
        self.seen = build.objects(build.hvpa(spec, status), self._workload(), pods=())

    # --- what is asked of it -----------------------------------------------------------------------------------------
    @property
    def request(self) -> int:
        """What one pod of the template requests of CPU, in millicores."""
        return sum(size["cpu"] for size in self.sizes.values())

    @property
    def capacity(self) -> int:
        """What demand the pods are enough for."""
        return self.replicas * self.setup.work(self.sizes)

    @property
    def state(self) -> tuple[int, Sizes]:
        """Where it is."""
        return self.replicas, self.sizes

    def rest(self, demand: int, most: int = 40) -> JointLoop:
        """Decide under this demand until nothing changes, and no clock lets anything change any more."""
        quiet = 0
        for _ in range(most):
            quiet = 0 if self.step(demand) else quiet + 1
            if quiet == 3:
                held = [hold.until for hold in self.decisions[-1].blocked if hold.until is not None]
                if not held:
                    return self
                quiet, self.now = 0, max(self.now, min(held))
        raise AssertionError(f"it does not come to rest at {demand}: {self.state}")

    def step(self, demand: int) -> bool:
        """One measurement, one decision and what becomes of it; whether it changed anything. A rollout is through at
        the next step."""
        self.measure(demand)
        decision = self.decide()
        self.now += PERIOD
        return self.take(decision)

    def measure(self, demand: int) -> None:
        """The recommenders' part of a step. Rollouts that were going on are complete."""
        self.pods = self.sizes
        workload = self._workload()
        self.seen = replace(self.seen, workload=workload, pods=self._pods())
        if self.reports_hpa:
            self.seen = replace(self.seen, hpas=(self._hpa(demand),))
        if self.reports_vpa:
            self.seen = replace(self.seen, vpas=(self._vpa(),))
        hvpa = self.seen.hvpa
        assert hvpa.spec is not None
        spec = hvpa.spec.model_copy(update={"replicas": self.scale_replicas})
        self.seen = replace(self.seen, hvpa=replace(hvpa, spec=spec))

    def begin_rollout(self) -> None:
        """The workload's controller has seen another template, and replaced no pod yet."""
        rolling = {"status": {"updatedReplicas": 0}}
        self.seen = replace(self.seen, workload=self._workload(rolling))

    def decide(self) -> Decision:
        """What is decided about it as it stands."""
        return build.decided(self.seen, self.now)

    def take(self, decision: Decision) -> bool:
        """The writes of a decision. Pods that are replaced have their old sizes until the next step."""
        self.decisions.append(decision)
        self.seen = build.apply(self.seen, decision)
        if decision.scale_replicas is not None:
            self.scale_replicas = decision.scale_replicas
        assert decision.replicas is not None
        sizes = {name: dict(container.requests) for name, container in decision.containers.items()}
        is_changed = decision.replicas.target != self.replicas or sizes != self.sizes
        self.rollouts += sizes != self.sizes
        self.replicas, self.sizes = decision.replicas.target, sizes
        return is_changed

    def keep(self, status: HvpaStatus | bytes) -> None:
        """Have it remember this status, as the API server stored it."""
        stored_status = read_status(status)[0] if isinstance(status, bytes) else status
        self.seen = replace(self.seen, hvpa=replace(self.seen.hvpa, status=stored_status))

    # --- what a decision reads ---------------------------------------------------------------------------------------
    def _inside(self, count: int) -> int:
        lower, upper = self.setup.bounds
        return min(max(count, lower), upper)

    def _remembered(self) -> dict[str, Any]:
        since = build.stamp(self.now)
        demands = [
            {"container": name, "resource": "cpu", "mean": demand["cpu"], "weight": HEAVY, "time": since}
            | {"present": demand["cpu"]}
            for name, demand in self.setup.usual.items()
        ]
        base = {name: amounts(size) for name, size in self.setup.first.items()}
        return {"base": base, "usualDemand": demands}

    def _containers(self, sizes: Sizes) -> list[dict[str, Any]]:
        return [build.container(name, amounts(size)) for name, size in sizes.items()]

    def _workload(self, change: Mapping[str, Any] | None = None) -> Workload:
        workload = build.workload(self.replicas, self._containers(self.sizes), change)
        before = getattr(self, "seen", None)
        if before is not None and before.workload is not None:
            annotations = before.workload.metadata.annotations
            workload = msgspec.structs.replace(
                workload, metadata=msgspec.structs.replace(workload.metadata, annotations=annotations)
            )
        return workload

    def _pods(self) -> tuple[Pod, ...]:
        return (build.pod(containers=self._containers(self.pods)),) * self.replicas

    def _hpa(self, demand: int) -> Any:
        """The HPA: usage is the target's share of what is called for."""
        setup, target = self.setup, self.setup.target
        whole = setup.first_cpu if setup.absolute else 100
        busy = demand + self.replicas * (self.request - setup.work(self.sizes))
        used = math.ceil(busy * target / (whole * self.replicas))
        ratio = used / target if setup.absolute else used * 100 // self.request / target
        tolerated = abs(ratio - 1) <= 0.1
        desired = self.scale_replicas if tolerated else self._inside(math.ceil(ratio * self.replicas))
        self.scale_replicas = desired
        wanted: dict[str, Any] = {"averageUtilization": target}
        current: dict[str, Any] = {
            "averageUtilization": used * 100 // self.request,
            "averageValue": f"{used}m",
        }
        if setup.absolute:
            wanted, current = {"averageValue": f"{target}m"}, {"averageValue": f"{used}m"}
        lower, upper = setup.bounds
        change = {
            "spec": {
                "minReplicas": lower,
                "maxReplicas": upper,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": wanted}}],
            },
            "status": {
                "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
            },
        }
        return build.hpa(desired, change=change, replicas=self.replicas)

    def _vpa(self) -> Any:
        """What one of its pods usually does; of memory, which no metric measures, what it has."""
        targets = {
            name: amounts({"cpu": math.ceil(demand["cpu"] / PODS), "memory": self.sizes[name]["memory"]})
            for name, demand in self.setup.usual.items()
        }
        return build.vpa(targets)


def amounts(sizes: Mapping[Resource, int]) -> dict[str, str]:
    """A resource list."""
    return {name: f"{size}m" if name == "cpu" else str(size) for name, size in sizes.items()}


def requests(sizes: Mapping[ResourceKey, int]) -> dict[str, dict[Resource, int]]:
    """Sizes of a point, by container."""
    containers: dict[str, dict[Resource, int]] = {}
    for key, size in sizes.items():
        containers.setdefault(key.container, {})[key.resource] = size
    return containers


def twin(loop: JointLoop, replicas: int, sizes: Sizes) -> JointLoop:
    """The same workload, left as something else."""
    return JointLoop(loop.setup, replicas, {name: dict(size) for name, size in sizes.items()})


def twin_of(loop: JointLoop) -> JointLoop:
    """Another one like it, with all that it remembers."""
    twin_loop = twin(loop, loop.replicas, loop.sizes)
    twin_loop.seen, twin_loop.now, twin_loop.scale_replicas, twin_loop.pods = (
        loop.seen,
        loop.now,
        loop.scale_replicas,
        loop.pods,
    )
    return twin_loop
