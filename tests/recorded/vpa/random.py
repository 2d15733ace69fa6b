"""Random scenarios of the VPA recommender, each made from a seed: pods of one to three containers with a daily wave and
noise, memory that grows until it is killed, pods that are replaced, restarts, any policies and flags."""

from __future__ import annotations

import math
import random

from tests.recorded.replay import Json, by_name
from tests.recorded.vpa import build as b

_CONTAINERS = ("app", "log", "proxy")


class _Container:
    """A container of all pods: its usual usage, and the memory that each instance of it has come to."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self.chance = chance
        self.cpu = chance.choice((0.005, 0.1, 0.7, 4))
        self.swing = chance.choice((0, 0.5, 0.95))
        self.memory = chance.choice((2e7, 2e8, 1e9))
        self.leak = chance.choice((0, 0, 0.02, 0.2))
        self.limit = self.memory * chance.choice((1.2, 1.6, 3))
        self.used: dict[str, float] = {}

    def measure(self, at: float, pod: str) -> list[Json]:
        """A sample, or an OOM where the memory has reached the request."""
        used = self.used.get(pod, self.memory) * (1 + self.leak * self.chance.random())
        used = max(used * self.chance.uniform(0.97, 1.02), 1e6)
        if used > self.limit:
            self.used[pod] = self.memory
            return [b.oom(at, math.floor(self.limit), pod=pod, container=self.name)]
        self.used[pod] = used
        day = 1 + self.swing * math.sin(2 * math.pi * at / b.DAY)
        cpu = round(self.cpu * day * self.chance.lognormvariate(0, 0.4), 6)
        return [b.sample(at, cpu, math.floor(used), pod=pod, container=self.name)]


def _flags(chance: random.Random) -> Json:
    options: Json = {
        "SafetyMarginFraction": chance.choice((0.05, 0.3)),
        "TargetCPUPercentile": chance.choice((0.5, 0.95, 0.99)),
        "UpperBoundMemoryPercentile": chance.choice((0.9, 1.0)),
        "CpuHistogramDecayHalfLife": b.hours(chance.choice((6, 48))),
        "MemoryHistogramDecayHalfLife": b.hours(chance.choice((6, 48))),
        "MemoryAggregationInterval": b.hours(chance.choice((6, 12))),
        "ConfidenceIntervalMemory": b.hours(chance.choice((6, 48))),
        "RoundCPUMillicores": chance.choice((5, 100)),
        "RoundMemoryBytes": chance.choice((1000, b.MEBI)),
        "OOMBumpUpRatio": chance.choice((1.05, 2.0)),
        "PodMinMemoryMb": chance.choice((10.0, 100.0)),
        "MaxAllowedMemory": chance.choice(("500M", "2Gi")),
    }
    return {name: options[name] for name in chance.sample(sorted(options), chance.choice((0, 0, 2, 4)))}


def _policies(chance: random.Random) -> list[Json] | None:
    if chance.random() < 0.4:
        return None
    made = []
    for name in chance.sample((*_CONTAINERS, "*"), chance.choice((1, 2, 3))):
        options: Json = {
            "minAllowed": {
                "cpu": chance.choice(("10m", "500m", "1")),
                "memory": chance.choice(("64Mi", "1G")),
            },
            "maxAllowed": {"cpu": chance.choice(("1", "2500m")), "memory": chance.choice(("1200Mi", "3Gi"))},
            "controlledResources": chance.choice((["cpu"], ["memory"], ["cpu", "memory"])),
            "mode": chance.choice(("Off", "Auto")),
        }
        chosen = chance.sample(sorted(options), chance.choice((1, 1, 2)))
        made.append(b.policy(name, **{field: options[field] for field in chosen}))
    return made


def case(seed: int) -> Json:
    """The scenario of a seed."""
    chance = random.Random(seed)
    containers = [_Container(name, chance) for name in _CONTAINERS[: chance.choice((1, 1, 2, 3))]]
    pods = [f"p{number}" for number in range(chance.randrange(1, 5))]
    next_pod = len(pods)
    step = chance.choice((60, 300, 900))
    end = {60: b.DAY, 300: 4 * b.DAY, 900: 10 * b.DAY}[step] * chance.choice((0.5, 1.0))
    steps: list[Json] = []
    for at in range(0, int(end), step):
        for pod in pods:
            for container in containers:
                steps += container.measure(at, pod)
        if chance.random() < 0.01:
            steps.append(b.gone(at, pods.pop(chance.randrange(len(pods)))))
            pods.append(f"p{next_pod}")
            next_pod += 1
        if chance.random() < 0.002:
            steps.append(b.restart(at))
    return b.scenario(
        f"random-{seed}",
        [*steps, *b.ask_every(end / 40, end)],
        policies=_policies(chance),
        flags=_flags(chance),
    )


RANDOM = by_name(map(case, range(20)))
