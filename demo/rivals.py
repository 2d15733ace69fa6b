"""What an HPA beside a VPA would have had under the demo's load: computed by the simulator, whose models of both are
exact (`hvpa.recommend`), with the settings of the demo's control plane. And what a course of replicas and requests is
worth.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from demo.scenario import BASE_CPU, BASE_MEMORY, Scenario
from demo.snapshot import Resources
from hvpa.simulate.engine import simulate
from hvpa.simulate.scenario.read import load_scenario
from localcluster.controlplane.flags import Settings

Json = dict[str, Any]
HERE: Final = Path(__file__).resolve().parent
WARM_UP_SECONDS: Final = 60
"""Low load before second 0, as the demo has while it waits for the first recommendations."""
_TARGET_PERCENT: Final = 80
KILOBYTE: Final = 1000
"""Bytes."""


@dataclass(frozen=True, slots=True)
class State:
    """What is scaled of the Deployment."""

    replicas: int
    requests: Resources

    def is_as(self, other: State) -> bool:
        """Whether it is the same as another. Memory is set in whole kilobytes: 192Mi (201326592) as 201327k."""
        mine, others = self.requests, other.requests
        apart = abs((mine.memory or 0) - (others.memory or 0))
        return (self.replicas, mine.cpu) == (other.replicas, others.cpu) and apart < KILOBYTE


Course = Sequence[tuple[float, State]]
"""The state from each second on (since the load began to count), in order."""


@dataclass(frozen=True, slots=True)
class Worth:
    """`requested`: core-seconds of CPU requests. `short`: core-seconds of usage above the requests, which a full node
    would not have given. `end`: the last state."""

    requested: float
    short: float
    end: State


def worth(course: Course, used: Callable[[float, int], float], seconds: int) -> Worth:
    """What a course is worth from second 0 on; `used` are the millicores in use at a second by so many pods."""
    requested = short = 0.0
    for (begin, state), (end, _) in itertools.pairwise([*course, (float(seconds), course[-1][1])]):
        total = state.replicas * (state.requests.cpu or 0)
        for second in range(max(0, round(begin)), max(0, round(end))):
            requested += total / 1000
            short += max(0.0, used(second, state.replicas) - total) / 1000
    return Worth(requested, short, course[-1][1])


def hpa_beside_vpa(load: Scenario, seconds: int) -> Course:
    """Replicas and mean requests, second by second, of the demo's Deployment under an HPA (AverageValue, which does not
    move with the requests) and a VPA (mode Recreate) with the demo's bounds, targets and hold before scaling in."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.yaml"
        begin = WARM_UP_SECONDS
        rows = [f"{second},{load.cpu(second - begin) / 1000:.4f}" for second in range(begin + seconds + 1)]
        (Path(folder) / "load.csv").write_text("\n".join(["second,cores", *rows]) + "\n")
        file.write_text(yaml.safe_dump(_scenario(load, begin + seconds)))
        scenario = load_scenario(file, seed=0)
    series = simulate(scenario, scenario.policies[0]).series
    cpu, memory = (series.requests["app", resource] for resource in ("cpu", "memory"))
    return [
        (float(at - begin), State(count, Resources(round(cpu[at]), round(memory[at]))))
        for at, count in enumerate(series.replicas)
    ]


def _scenario(load: Scenario, seconds: int) -> Json:
    plane = Settings()
    deployment = yaml.safe_load((HERE / "workload.yaml").read_text())["spec"]
    spec = yaml.safe_load((HERE / "hvpa.yaml").read_text())["spec"]
    bounds = spec["hpa"]["template"]["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    per_core = (load.high_memory - load.low_memory) / (load.high_cpu - load.low_cpu) * 1000
    requests = container["resources"]["requests"]
    hold = int(spec["hpa"]["scaleDown"]["stabilizationDuration"].removesuffix("s"))
    return {
        "name": "demo",
        "duration": f"{seconds}s",
        "step": "1s",
        "load": {"csv": {"file": "load.csv", "timestamp": "second", "value": "cores"}},
        "workload": {
            "name": "web",
            "replicas": deployment["replicas"],
            "startUp": "1s",
            "maxSurge": deployment["strategy"]["rollingUpdate"]["maxSurge"],
            "maxUnavailable": 0,
            "containers": [
                {
                    "name": "app",
                    **container["resources"],
                    "cpu": {"base": f"{BASE_CPU:g}m", "perUnit": "1"},
                    "memory": {"base": f"{BASE_MEMORY:.0f}", "perUnit": f"{per_core:.0f}"},
                }
            ],
        },
        "metrics": {"resolution": plane.metric_resolution},
        "controllers": {
            "hpa": {
                "syncPeriod": plane.hpa_sync_period,
                "cpuInitializationPeriod": plane.hpa_cpu_initialization_period,
                "initialReadinessDelay": plane.hpa_initial_readiness_delay,
            },
            "vpa": {
                "period": plane.recommender_interval,
                "updaterPeriod": "10s",
                "cpuHalfLife": plane.cpu_half_life,
                "memoryHalfLife": plane.memory_half_life,
                "memoryAggregationInterval": plane.memory_aggregation_interval,
                "memoryAggregationIntervalCount": plane.memory_aggregation_count,
            },
        },
        "policies": [
            {
                "name": "HPA and VPA",
                "hpa": {
                    "minReplicas": bounds["minReplicas"],
                    "maxReplicas": bounds["maxReplicas"],
                    "metrics": [_metric(name, requests[name]) for name in ("cpu", "memory")],
                    "behavior": {"scaleDown": {"stabilizationWindowSeconds": hold}},
                },
                "vpa": {"resourcePolicy": spec["vpa"]["template"]["spec"]["resourcePolicy"]},
            }
        ],
    }


def _metric(name: str, request: str) -> Json:
    """As much of the first request as the Hvpa's HPA lets a pod use."""
    amount = int(request.rstrip("mMi")) * _TARGET_PERCENT // 100
    value = f"{amount}{request.lstrip('0123456789')}"
    return {
        "type": "Resource",
        "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": value}},
    }


def used(load: Scenario) -> Callable[[float, int], float]:
    """Millicores that so many pods use together at a second of this load."""
    return lambda second, pods: load.cpu(second) + pods * BASE_CPU
