"""Random scenarios of the HPA, each made from a seed: pods that come, go, fail and flap, changing readings, any
behaviour. They mean nothing; they go where no written case goes."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.recorded.hpa import build as b
from tests.recorded.replay import Json, by_name

MEBI = 2**20
_REQUESTS = ("50m", "100m", "250m", "1")
_MEMORY = ("64Mi", "128Mi", "200M", "1Gi")


class _Pod:
    """A pod whose state wanders."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self.chance = chance
        self.cpu, self.memory = chance.choice(_REQUESTS), chance.choice(_MEMORY)
        self.started = float(-chance.choice((7200, 7200, 400, 100, 0)))
        self.ready = chance.random() < 0.85
        self.since = self.started + chance.randrange(1, 60)
        self.phase = "Running"
        self.deleted: float | None = None

    def wander(self, now: float) -> None:
        """Perhaps something happens to it."""
        luck = self.chance.random()
        if luck < 0.04:
            self.started, self.since = now, now + 1
            self.ready, self.phase, self.deleted = False, "Pending", None
        elif luck < 0.16:
            if self.phase == "Pending":
                self.phase = "Running"
            self.ready, self.since = not self.ready, now
        elif luck < 0.18:
            self.phase, self.ready, self.since = "Failed", False, now
        elif luck < 0.20:
            self.deleted = now

    def manifest(self) -> Json:
        """It as the API server has it now."""
        return b.pod(
            self.name,
            cpu=self.cpu,
            memory=self.memory,
            phase=self.phase,
            ready=self.ready,
            started=self.started,
            since=self.since,
            deleted=self.deleted,
        )


def _rules(chance: random.Random) -> Json | None:
    if chance.random() < 0.2:
        return None
    policies = [
        (
            chance.choice(("Pods", "Percent")),
            chance.choice((1, 2, 4, 10, 50, 100, 150)),
            chance.choice((1, 15, 30, 60, 90, 300)),
        )
        for _ in range(chance.randrange(4))
    ]
    return b.rules(
        *policies,
        window=chance.choice((None, 0, 0, 15, 30, 60, 120, 300)),
        select=chance.choice((None, "Max", "Min", "Min", "Disabled") if policies else (None, "Max", "Min")),
        tolerance=chance.choice((None, None, "0", "0.05", "200m")),
    )


def _behavior(chance: random.Random) -> Json | None:
    if chance.random() < 0.3:
        return None
    return b.behavior(up=_rules(chance), down=_rules(chance))


def _metrics(chance: random.Random) -> list[Json]:
    makers: list[Callable[[], Json]] = [
        lambda: b.resource(utilization=chance.choice((30, 50, 80, 100, 120))),
        lambda: b.resource(average=chance.choice(("50m", "100m", "333m"))),
        lambda: b.resource("memory", utilization=chance.choice((40, 75, 110))),
        lambda: b.resource("memory", average=chance.choice(("64Mi", "100M"))),
        lambda: b.resource(utilization=chance.choice((60, 90)), container="app"),
        lambda: b.pods_metric("requests", chance.choice(("5", "12500m"))),
        lambda: b.object_metric("hits", value=chance.choice(("20", "33"))),
        lambda: b.object_metric("hits", average=chance.choice(("4", "7500m"))),
        lambda: b.external("queue", value=chance.choice(("20", "41"))),
        lambda: b.external("queue", average=chance.choice(("4", "6100m"))),
    ]
    return [maker() for maker in chance.sample(makers, chance.choice((1, 1, 2, 3)))]


def _readings(chance: random.Random, pods: list[_Pod], load: float) -> Json:
    """Readings around a load of 1 (about the target); some pods and some metrics are missing."""

    def of_pods(name: str, usual: float, container: str = "") -> Json:
        if chance.random() < 0.04:
            return b.failing(name, "the metrics server is away", container=container)
        values = {
            pod.name: int(usual * load * chance.uniform(0.7, 1.3)) for pod in pods if chance.random() < 0.93
        }
        return b.measured(
            name,
            values,
            container=container,
            age=chance.choice((1, 5, 12, 30)),
            window=chance.choice((10, 15, 30)),
        )

    def total(usual: float) -> int:
        return int(usual * load * len(pods) * chance.uniform(0.7, 1.3))

    return b.readings(
        resource=[
            of_pods("cpu", 90),
            of_pods("cpu", 85, container="app"),
            of_pods("memory", 90 * MEBI * 1000),
        ],
        pods=[of_pods("requests", 9000)],
        object=[{"name": "hits", "selector": "", "described": "Service/front", "value": total(5000)}],
        external=[{"name": "queue", "selector": "", "values": [total(2000), total(3000)]}],
    )


def case(seed: int) -> Json:
    """The scenario of a seed."""
    chance = random.Random(seed)
    follow = chance.random() < 0.6
    pods = [_Pod(f"p{number}", chance) for number in range(chance.randrange(2, 16))]
    replicas = chance.randrange(1, len(pods) + 1)
    period = chance.choice((15, 15, 15, 5, 30))
    syncs = chance.randrange(20, 61)
    steps: list[Json] = []
    load = 1.0
    now = 0
    while now < syncs * period:
        load = min(max(load * chance.choice((0.5, 0.8, 1, 1, 1.1, 1.3, 2)), 0.05), 6)
        for pod in pods:
            pod.wander(now)
        steps.append(
            b.step(now, pods=[pod.manifest() for pod in pods], readings=_readings(chance, pods, load))
        )
        if chance.random() < 0.05:
            steps.append(b.step(now, replicas=chance.randrange(0, 20)))
        now += period * chance.randrange(1, 5)
    steps[0] |= b.begin(replicas, steps[0]["pods"], steps[0]["readings"], follow=follow)
    return b.scenario(
        f"random-{seed}",
        _metrics(chance),
        steps,
        syncs=syncs,
        behavior=_behavior(chance),
        least=chance.choice((None, 1, 2, 3)),
        most=chance.choice((6, 10, 40)),
        settings={
            "syncPeriod": period,
            "tolerance": chance.choice((0.1, 0.1, 0.02, 0.3)),
            "downscaleStabilization": chance.choice((300, 300, 60, 0)),
            "cpuInitializationPeriod": chance.choice((300, 300, 60)),
            "initialReadinessDelay": chance.choice((30, 30, 10)),
        },
    )


RANDOM = by_name(map(case, range(40)))
