"""The load of the demo as a function of time, the text for each phase, and the course of an HPA with a VPA, or of the
demo's Hvpa, under that load: computed by the simulator, whose models of HPA and VPA are exact (`hvpa.recommend`), with
the settings of the demo's control plane."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from demo.snapshot import Resources
from hvpa_lab.simulate.engine import simulate
from hvpa_lab.simulate.model import ResizeMode
from hvpa_lab.simulate.scenario.read import load_scenario
from localcluster.controlplane.flags import AutoscalerSettings

Json = dict[str, Any]
HERE: Final = Path(__file__).resolve().parent
WARM_UP_SECONDS: Final = 60
"""Low load before second 0, as in the demo while it waits for the first recommendations."""
_TARGET_PERCENT: Final = 80
MIB = 2**20
BASE_CPU = 10.0
BASE_MEMORY = 48.0 * MIB
"""Usage of each pod before it serves anything: millicores, bytes."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the load between two instants (seconds since the load began to count)."""

    name: str
    start: float
    end: float
    begin_share: float
    """Its start between the low and the high load (0 to 1)."""
    end_share: float
    """Its end between the low and the high load."""
    story: str
    """The text for the viewer: the events, and the values to watch."""


# Shares of the whole time. The peak lasts until pods have grown, which waits a minute for measurements of all replicas.
# The last phase lasts until both axes have come back.
_PLAN = (
    ("calm", 0.05, 0.0, 0.0, "little load; requests and replicas have no reason to move"),
    ("rise", 0.15, 0.0, 1.0, "the load rises eightfold: look for more pods"),
    (
        "peak",
        0.35,
        1.0,
        1.0,
        "the load stays high, and 6 pods of the first size are too few: look for larger ones",
    ),
    ("fall", 0.10, 1.0, 0.0, "the load falls back: look for fewer pods"),
    ("after", 0.35, 0.0, 0.0, "little load again: pods get smaller; it ends when all is as in the beginning"),
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The whole course of the load over `seconds`. CPU in millicores, memory in bytes, both totals for all pods."""

    seconds: float = 300.0
    low_cpu: float = 300.0
    high_cpu: float = 2400.0
    low_memory: float = 120.0 * MIB
    # Below the limits of two pods together, base included: nothing runs out of memory even if nothing scales.
    high_memory: float = 1200.0 * MIB

    @property
    def phases(self) -> tuple[Phase, ...]:
        """All phases, in order, without gaps."""
        phases: list[Phase] = []
        start = 0.0
        for name, share, begin, end, story in _PLAN:
            length = share * self.seconds
            phases.append(Phase(name, start, start + length, begin, end, story))
            start += length
        return tuple(phases)

    def phase(self, name: str) -> Phase:
        """The phase of that name."""
        return next(phase for phase in self.phases if phase.name == name)

    def phase_at(self, elapsed: float) -> Phase:
        """The phase at an instant; the last phase has no end."""
        return next((phase for phase in self.phases if elapsed < phase.end), self.phases[-1])

    def cpu(self, elapsed: float) -> float:
        """Millicores of load at an instant."""
        return self.low_cpu + (self.high_cpu - self.low_cpu) * self._share(elapsed)

    def memory(self, elapsed: float) -> float:
        """Bytes of load at an instant, without each pod's own base."""
        return self.low_memory + (self.high_memory - self.low_memory) * self._share(elapsed)

    def _share(self, elapsed: float) -> float:
        phase = self.phase_at(elapsed)
        done = min(1.0, max(0.0, (elapsed - phase.start) / (phase.end - phase.start)))
        return phase.begin_share + (phase.end_share - phase.begin_share) * done


# --- an HPA beside a VPA ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class State:
    """The scaled values of the Deployment."""

    replicas: int
    requests: Resources

    def is_as(self, other: State) -> bool:
        """Whether it is the same as another. The operator leaves sizes alone within twice the overlap (`hvpa.yaml`), so
        sizes count as the same up to a tenth: 262m after 250m."""

        def near(mine: int | None, theirs: int | None) -> bool:
            return abs((mine or 0) - (theirs or 0)) * 10 <= (theirs or 0)

        mine, theirs = self.requests, other.requests
        same_size = near(mine.cpu, theirs.cpu) and near(mine.memory, theirs.memory)
        return self.replicas == other.replicas and same_size


Course = Sequence[tuple[float, State]]
"""The states in order, each with the second from which it holds (since the load began to count)."""


@dataclass(frozen=True, slots=True)
class Worth:
    """`requested`: core-seconds of CPU requests. `used`: core-seconds of usage, of which `short` are above the
    requests: a full node would not have given them. `end`: the last state."""

    requested: float
    used: float
    short: float
    end: State


def worth(course: Course, used: Callable[[float, int], float], seconds: int) -> Worth:
    """The totals of a course from second 0 on; `used` returns the millicores in use at a second by that number of
    pods."""
    requested = all_used = short = 0.0
    for (begin, state), (end, _) in itertools.pairwise([*course, (float(seconds), course[-1][1])]):
        total = state.replicas * (state.requests.cpu or 0)
        for second in range(max(0, round(begin)), max(0, round(end))):
            requested += total / 1000
            all_used += used(second, state.replicas) / 1000
            short += max(0.0, used(second, state.replicas) - total) / 1000
    return Worth(requested, all_used, short, course[-1][1])


@dataclass(frozen=True, slots=True)
class Simulated:
    """Replicas and mean requests, second by second, and the number of restarted containers and replaced pods."""

    course: Course
    restarts: int


def hpa_beside_vpa(load: Scenario, seconds: int) -> Simulated:
    """The demo's Deployment under an HPA (AverageValue, which does not change with the requests) and a VPA (mode
    InPlaceOrRecreate) with the demo's bounds, targets and hold before scaling in."""
    return _simulated(load, seconds, _hpa_and_vpa(), "InPlace")


def hvpa_alone(load: Scenario, seconds: int, manifest: Json) -> Simulated:
    """The demo's Deployment under this Hvpa."""
    replaces = manifest["spec"].get("updateStrategy", {}).get("type") == "Rollout"
    own = {**manifest, "metadata": {"name": manifest["metadata"]["name"]}}
    return _simulated(load, seconds, {"name": "Hvpa", "hvpa": own}, "Recreate" if replaces else "InPlace")


def _simulated(load: Scenario, seconds: int, policy: Json, resize: ResizeMode) -> Simulated:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.yaml"
        begin = WARM_UP_SECONDS
        rows = [f"{second},{load.cpu(second - begin) / 1000:.4f}" for second in range(begin + seconds + 1)]
        (Path(folder) / "load.csv").write_text("\n".join(["second,cores", *rows]) + "\n")
        file.write_text(yaml.safe_dump(_scenario(load, begin + seconds, policy, resize)))
        scenario = load_scenario(file, seed=0)
    result = simulate(scenario, scenario.policies[0])
    series = result.series
    cpu, memory = (series.requests["app", resource] for resource in ("cpu", "memory"))
    course = [
        (float(at - begin), State(count, Resources(round(cpu[at]), round(memory[at]))))
        for at, count in enumerate(series.replicas)
    ]
    return Simulated(course, result.totals.restarts)


def _scenario(load: Scenario, seconds: int, policy: Json, resize: ResizeMode) -> Json:
    plane = AutoscalerSettings()
    deployment = yaml.safe_load((HERE / "workload.yaml").read_text())["spec"]
    container = deployment["template"]["spec"]["containers"][0]
    per_core = (load.high_memory - load.low_memory) / (load.high_cpu - load.low_cpu) * 1000
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
            "resize": resize,
            "containers": [
                {
                    "name": "app",
                    **container["resources"],
                    "cpu": {"base": f"{BASE_CPU:g}m", "perUnit": "1"},
                    "memory": {"base": f"{BASE_MEMORY:.0f}", "perUnit": f"{per_core:.0f}"},
                }
            ],
        },
        # The kubelet of the demo reacts at once.
        "metrics": {"resolution": plane.metric_resolution, "delay": "0s"},
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
        "policies": [policy],
    }


def _hpa_and_vpa() -> Json:
    container = yaml.safe_load((HERE / "workload.yaml").read_text())["spec"]["template"]["spec"][
        "containers"
    ][0]
    requests = container["resources"]["requests"]
    spec = yaml.safe_load((HERE / "hvpa.yaml").read_text())["spec"]
    bounds = spec["hpa"]["template"]["spec"]
    hold = int(spec["hpa"]["scaleDown"]["stabilizationDuration"].removesuffix("s"))
    return {
        "name": "HPA and VPA",
        "hpa": {
            "minReplicas": bounds["minReplicas"],
            "maxReplicas": bounds["maxReplicas"],
            "metrics": [_metric(name, requests[name]) for name in ("cpu", "memory")],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": hold}},
        },
        "vpa": {
            "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
            "resourcePolicy": spec["vpa"]["template"]["spec"]["resourcePolicy"],
        },
    }


def _metric(name: str, request: str) -> Json:
    """A metric with the same share of the first request that the Hvpa's HPA lets a pod use."""
    amount = int(request.rstrip("mMi")) * _TARGET_PERCENT // 100
    value = f"{amount}{request.lstrip('0123456789')}"
    return {
        "type": "Resource",
        "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": value}},
    }


def used(load: Scenario) -> Callable[[float, int], float]:
    """Returns the millicores that a number of pods use together at a second of this load."""
    return lambda second, pods: load.cpu(second) + pods * BASE_CPU
