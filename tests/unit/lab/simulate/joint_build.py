"""Joint scaling in simulations: an Hvpa with blend Trajectory over the recommenders as they are, and what it did."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import structlog

from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.engine import quiet, simulate
from hvpa_lab.simulate.model import Policy, PolicyResult, WorkloadModel
from tests.unit.lab.simulate import build

HOUR, DAY = 3600.0, 86400.0
GIB = 1024**3
LEAST = {"cpu": "1", "memory": "1Gi"}


def metric(target: int | str, resource: str = "cpu") -> dict[str, Any]:
    """An HPA's metric: percent of the request, or a quantity for each pod."""
    kind = {"type": "Utilization", "averageUtilization": target}
    if isinstance(target, str):
        kind = {"type": "AverageValue", "averageValue": target}
    return {"type": "Resource", "resource": {"name": resource, "target": kind}}


def joint(weight: float = 50, *metrics: dict[str, Any], most: int = 30, **spec: Any) -> dict[str, Any]:
    """An Hvpa with one weight, whose path begins at one pod of 1 core and 1Gi; its HPA keeps CPU at 80 percent. Pods
    are replaced, unless `spec` says otherwise."""
    template = {"minReplicas": 1, "maxReplicas": most, "metrics": list(metrics) or [metric(80)]}
    manifest: dict[str, Any] = build.hvpa(template=template, blend="Trajectory")
    body = manifest["spec"]
    policies = [{"containerName": "*", "minAllowed": LEAST}]
    body["vpa"]["template"]["spec"] = {"resourcePolicy": {"containerPolicies": policies}}
    body["weightBasedScalingIntervals"] = [{"vpaWeight": weight}]
    body["updateStrategy"] = {"type": "Rollout"}
    for name, value in spec.items():
        body[name] = body[name] | value if isinstance(body.get(name), dict) else value
    return manifest


def workload(**changes: Any) -> WorkloadModel:
    """One container, which takes a core for each unit of the load; it is there at once."""
    values = {"requests": {"cpu": 1000, "memory": GIB}, "cpu_base": 0.0, "cpu_per_unit": 1000.0}
    container = build.container(
        limits={}, **values, memory_base=100.0 * build.MIB, memory_per_unit=200.0 * build.MIB
    )
    return build.workload(container, **changes)


class Shape(NamedTuple):
    """Replicas, and the requests of a pod: millicores, bytes."""

    replicas: int
    cpu: int
    memory: int

    @property
    def cores(self) -> float:
        """What they request together."""
        return self.replicas * self.cpu / 1000


ONE = Shape(1, 1000, GIB)


class Run(NamedTuple):
    """What became of it."""

    result: PolicyResult

    @property
    def shapes(self) -> list[tuple[float, Shape]]:
        """From when on pods had which requests in the mean, in seconds."""
        series = self.result.series
        cpu, memory = series.requests["app", "cpu"], series.requests["app", "memory"]
        shapes: list[tuple[float, Shape]] = []
        for index, replicas in enumerate(series.replicas):
            shape = Shape(replicas, round(cpu[index]), round(memory[index]))
            if not shapes or shapes[-1][1] != shape:
                shapes.append((index * series.step, shape))
        return shapes

    @property
    def end(self) -> Shape:
        """Where it ended."""
        return self.shapes[-1][1]

    def at(self, seconds: float) -> Shape:
        """How it was then."""
        return [shape for when, shape in self.shapes if when <= seconds][-1]

    def steps(self, kind: str, since: float = 0.0, until: float = math.inf) -> list[float]:
        """When the operator changed `Replicas` or `Requests`, in seconds."""
        return sorted(
            {event.time for event in self.result.events if event.kind == kind and since <= event.time < until}
        )

    def changes(self, since: float = 0.0) -> list[float]:
        """When it changed anything."""
        return sorted({*self.steps("Replicas", since), *self.steps("Requests", since)})


def run(hvpa: dict[str, Any], load: build.Shape, days: float, begin: Shape = ONE, **changes: Any) -> Run:
    """Simulate it."""
    options: dict[str, Any] = {"workload": workload(), "step": 60.0} | changes
    limits = options["workload"].containers[0].limits
    resources = {"app": ResourceRequirements({"cpu": begin.cpu, "memory": begin.memory}, limits)}
    policy = Policy("joint", "Hvpa", hvpa=hvpa, replicas=begin.replicas, resources=resources)
    logs = structlog.get_config()
    quiet()
    try:
        return Run(simulate(build.scenario(load=load, duration=days * DAY, **options), policy))
    finally:
        structlog.configure(**logs)


def wave(low: float, high: float) -> build.Shape:
    """Low at midnight, high at noon."""
    return build.Shape(lambda at: low + (high - low) * (0.5 - 0.5 * math.cos(2 * math.pi * at / DAY)))
