"""The workloads of `python -m benchmarks arena`: what is drawn, and from which spread.

A workload is drawn from the seed and its number alone, so that the first sixty of three hundred are always the same
sixty. Metrics and weights go round by number, each with each other within 36 workloads; all else is drawn. The load
is in requests per second, of which a core does `PER_CORE`.

Owners get requests wrong: if the HPA does not measure a resource, its request is 0.9 to 3 times the use, and the target
of a queue or a `Value` has as little to do with the CPU request. (A utilization is a share of its request, which can't
be wrong.)
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from hvpa.api.values.quantity import MIB

Fields = dict[str, Any]
"""A part of a scenario, as YAML has it."""
Draw = random.Random
METRICS: Final = ("CPU", "memory", "CPU and memory", "container CPU", "queue", "Value")
"""What the HPA scales by. Container CPU is that of the app beside a sidecar."""
WEIGHTS: Final = (None, 0, 30, 50, 80, 100)
"""`vpaWeight`; None: no weights are given."""
PER_CORE: Final = 100
"""Requests per second that a core does."""
SURVIVES: Final = 1.5
"""A pod holds the memory of so many times its usual load: its owner would have raised a limit below that."""
DAY: Final = 86400
HOURS: Final = 36
"""Of which the first day does not count. It is calm: no noise, and another load every ten minutes only, which takes a
fraction of the time to simulate."""
CALM: Final = "(t if t >= day else floor(t / 600) * 600)"


class Container(NamedTuple):
    """A container: requests in millicores and MiB, limits as factors of them (None: none), and the VPA's mode. What it
    uses: `cpu` and `memory` without load, and for each request per second (millicores and MiB)."""

    name: str
    requests: tuple[int, int]
    limits: tuple[float | None, float | None]
    mode: str
    cpu: tuple[float, float]
    memory: tuple[float, float]
    kept: float = 0.0


class Drawn(NamedTuple):
    """A workload with all that scales it. `target` is the share of a request that the HPA lets a pod use, of CPU and
    of memory; `per_pod` is what a queue or a `Value` lets it do (requests per second). `utilization`: the Hvpa's HPA
    has targets of that type."""

    number: int
    metric: str
    weight: int | None
    blend: str
    strategy: str
    shape: str
    load: Fields
    containers: tuple[Container, ...]
    target: float
    per_pod: float
    utilization: bool
    replicas: tuple[int, int, int]
    """At least, at first, at most."""
    most: float
    """`maxAllowed` of the app, as a factor of its requests."""
    least: float
    """`minAllowed` likewise; 0: none."""
    nodes: Fields
    kind_of_nodes: str
    further: Fields
    """Further fields of the scenario's workload."""
    kubelet: str
    follows: bool
    """Most of the memory comes with the load."""

    @property
    def in_place(self) -> bool:
        """Whether running pods are resized."""
        return self.strategy != "Rollout"

    @property
    def measures_memory(self) -> bool:
        """Whether memory is a metric."""
        return "memory" in self.metric

    @property
    def text(self) -> str:
        """It in a line."""
        app = self.containers[0]
        limits = "/".join("no" if one is None else f"{one:g}x" for one in app.limits)
        others = "".join(f" + {one.name} ({one.mode})" for one in self.containers[1:])
        weight = "no weight" if self.weight is None else f"weight {self.weight}"
        least, first, most = self.replicas
        memory = "memory follows the load" if self.follows else "steady memory"
        return (
            f"{self.metric}, {weight}, {self.blend}, {self.strategy}; {self.shape}; {first} pods ({least} to {most}) of"
            f" {app.requests[0]}m/{app.requests[1]}Mi (limits {limits}){others};"
            f" {memory}; {self.kind_of_nodes} nodes{self.kubelet}"
        )


def drawn(seed: int, number: int) -> Drawn:
    """The workload of this number."""
    draw = Draw(f"arena {seed} {number}")
    metric = METRICS[number % len(METRICS)]
    weight = WEIGHTS[(number + number // len(METRICS)) % len(WEIGHTS)]
    strategy = draw.choices(("Rollout", "InPlaceOrRollout", "InPlace"), (5, 4, 1))[0]
    least = draw.choice((1, 1, 2, 2, 3, 5))
    usual = least if weight == 100 else max(least, round(_log(draw, 1.5, 14)))
    target = draw.randint(50, 90) / 100
    cpu, memory = round(_log(draw, 50, 4000)), round(_log(draw, 64, 8192))
    base = cpu * _log(draw, 0.01, 0.2)
    if "CPU" in metric:
        work = cpu * target - base
    elif metric == "memory":
        work = cpu * draw.uniform(0.25, 0.9)
    else:
        work = cpu * _log(draw, 0.33, 1.1)
    per_pod = work * PER_CORE / 1000
    limits = _limits(draw), _limits(draw)
    if "memory" in metric and limits[1] == 1.0:
        limits = limits[0], 1.5
    follows = "memory" in metric or (draw.random() < 0.5 and metric != "queue")
    used = _memory(draw, metric, memory * target, memory, limits[1])
    share = draw.uniform(0.5, 0.85) if metric == "memory" else draw.uniform(0.3, 0.8) if follows else 0.05
    if metric == "queue":  # the simulator offers all that waits at once, which would count as memory
        share = 0.0
    elif limits[1] is not None:
        share = min(share, (limits[1] * memory / used - 1) / (SURVIVES - 1))
    app = Container(
        "app",
        (cpu, memory),
        limits,
        "Auto",
        (base, 1000 / PER_CORE),
        (used * (1 - share), used * share / per_pod),
        draw.choice((0.0, 0.0, 0.0, 0.5)),
    )
    others = _others(draw, per_pod, metric == "container CPU")
    shape, load = _load(draw, usual * per_pod)
    if metric == "queue":
        load["backlog"] = f"{draw.randint(1, 10)}m"
    most = draw.choice((2, 3, 4, 8)) if weight != 100 else draw.choice((4, 8))
    kubelet, kubelet_fields = _kubelet(draw, strategy)
    kind, nodes = _nodes(draw, (app, *others), most)
    return Drawn(
        number=number,
        metric=metric,
        weight=weight,
        blend=draw.choice(("Trajectory", "Trajectory", "Additive")),
        strategy=strategy,
        shape=shape,
        load=load,
        containers=(app, *others),
        target=target,
        per_pod=per_pod,
        utilization=draw.random() < 0.75,
        replicas=(least, usual, min(50, max(5, math.ceil(usual * draw.uniform(1.5, 4))))),
        most=most,
        least=draw.choice((0, 0, 0.2, 0.5, 1)),
        nodes=nodes,
        kind_of_nodes=kind,
        further=_pods(draw) | kubelet_fields,
        kubelet=kubelet,
        follows=follows,
    )


# --- what is drawn --------------------------------------------------------------------------------------------------
def _log(draw: Draw, least: float, most: float) -> float:
    """Evenly over the logarithm."""
    return math.exp(draw.uniform(math.log(least), math.log(most)))


def _limits(draw: Draw) -> float | None:
    """No limit, the request, or 1.5 to 4 times as much."""
    return draw.choice((None, None, 1.0, round(draw.uniform(1.5, 4), 1)))


def _memory(draw: Draw, metric: str, targeted: float, request: int, limit: float | None) -> float:
    """MiB that a pod uses at its usual load: where they are measured they are near the target, else the request is
    wrong. Less than a limit that is no more than the request."""
    if metric == "memory":
        return targeted
    if metric == "CPU and memory":
        return targeted * draw.uniform(0.6, 1.2)
    return request * _log(draw, 0.33, 0.85 if limit == 1.0 else 1.1)


def _others(draw: Draw, per_pod: float, has_sidecar: bool) -> list[Container]:
    """Up to two further containers."""
    count = draw.choices((0, 1, 2), (5, 3, 2))[0]
    return [
        Container(
            name,
            (cpu, memory),
            (None, None),
            "Off" if name == "sidecar" or draw.random() < 0.3 else "Auto",
            (cpu * draw.uniform(0.1, 0.4), cpu * draw.uniform(0.1, 0.5) / per_pod),
            (memory * draw.uniform(0.3, 0.8), 0.0),
        )
        for name in ("sidecar", "agent")[: max(count, has_sidecar)]
        for cpu, memory in ((draw.randint(20, 200), draw.randint(48, 256)),)
    ]


def _pods(draw: Draw) -> Fields:
    found: Fields = {"startUp": f"{draw.randint(5, 60)}s", "resizeDelay": "5s"}
    if draw.random() < 0.5:
        found["terminationGrace"] = "30s"
    if draw.random() < 0.3:
        found["blips"] = {"every": f"{draw.randint(1, 6)}h", "length": f"{draw.randint(10, 60)}s"}
    if draw.random() < 0.3:
        found["spread"] = round(draw.uniform(0.05, 0.2), 2)
    return found


def _kubelet(draw: Draw, strategy: str) -> tuple[str, Fields]:
    """What the kubelet makes of resizes, and its name where it is not the usual one."""
    kind, minutes = draw.choices(("", "defers", "refuses"), (8, 1, 1))[0], draw.randint(2, 15)
    if strategy == "Rollout" or not kind:
        return "", {}
    if kind == "defers":
        return f", kubelet defers for {minutes}m", {"resizeDeferred": f"{minutes}m"}
    return ", kubelet refuses", {"resizeRefused": True}


def _nodes(draw: Draw, containers: tuple[Container, ...], most: float) -> tuple[str, Fields]:
    """Nodes of 32 cores, or such as just hold the largest pod, or two to four of those that there are at first."""
    fields: Fields = {"headroom": "20%", "startUp": "2m"}
    if draw.random() < 0.6:
        return "large", {"cpu": 34, "memory": "256Gi", **fields}
    pods = draw.randint(2, 4)
    cpu, memory = (
        round(
            max(
                one * most + 1.1 * sum(other.requests[at] for other in containers[1:]) * most,
                pods * sum(other.requests[at] for other in containers),
            )
        )
        for at, one in enumerate(containers[0].requests)
    )
    return "just sufficient", {"cpu": f"{cpu}m", "memory": f"{memory}Mi", **fields}


# --- loads ----------------------------------------------------------------------------------------------------------
def _load(draw: Draw, usual: float) -> tuple[str, Fields]:
    """The load's name and field; `usual` in requests per second."""
    shape = draw.choice(list(SHAPES))
    noise = 0.05 if shape == "constant" else round(draw.uniform(0.02, 0.1), 3)
    formula = re.sub(r"\bt\b", CALM, SHAPES[shape](draw))
    return shape, {"formula": f"{usual:.4g} * max(0.05, {formula})", "noise": noise, "noiseFrom": "24h"}


def _constant(draw: Draw) -> str:
    """At rest, but for noise of 5 percent."""
    return "1"


def _wave(draw: Draw) -> str:
    """A daily wave."""
    return f"(1 + {draw.uniform(0.3, 0.8):.2f} * cos(2 * pi * (t / day - {draw.random():.2f})))"


def _steps(draw: Draw) -> str:
    """Two or three times a day it jumps for 1 to 8 hours, to 1.3 to 3 times or to a part."""
    jumps = (_pulse(draw, day, 1, 8) for day in range(2) for _ in range(draw.randint(2, 3)))
    return " + ".join(["1", *jumps])


def _bursts(draw: Draw) -> str:
    """A small wave, and some six bursts a day: 1.5 to 5 times as much for 2 to 40 minutes."""
    pulses = (_pulse(draw, day, 1 / 30, 2 / 3, 0.5, 4) for day in range(2) for _ in range(draw.randint(4, 8)))
    return " + ".join(
        [f"(1 + {draw.uniform(0, 0.3):.2f} * cos(2 * pi * (t / day - {draw.random():.2f})))", *pulses]
    )


def _pulse(
    draw: Draw, day: int, shortest: float, longest: float, least: float = -0.5, most: float = 2.0
) -> str:
    """Somewhere in the first half of this day, which is all there is of the second; lengths in hours. A lower one is
    as likely as its part of the spread."""
    start, length = (day + draw.random() / 2) * DAY, _log(draw, shortest, longest) * 3600
    return f"{draw.uniform(least, most):.2f} * pulse(t, {start:.0f}, {length:.0f})"


SHAPES: Final[Mapping[str, Callable[[Draw], str]]] = {
    "constant": _constant,
    "wave": _wave,
    "steps": _steps,
    "bursts": _bursts,
}


# --- as a scenario --------------------------------------------------------------------------------------------------
def workload_field(one: Drawn) -> Fields:
    """The scenario's field `workload`."""
    return {
        "name": "web",
        "replicas": one.replicas[1],
        **one.further,
        "resize": "InPlace" if one.in_place else "Recreate",
        "containers": [_container(container) for container in one.containers],
    }


def _container(one: Container) -> Fields:
    def amounts(factors: tuple[float | None, float | None]) -> Fields:
        named = zip(("cpu", "memory"), one.requests, factors, ("m", "Mi"), strict=True)
        return {
            name: f"{round(own * factor)}{unit}" for name, own, factor, unit in named if factor is not None
        }

    return {
        "name": one.name,
        "requests": amounts((1.0, 1.0)),
        "limits": amounts(one.limits),
        "cpu": {"base": _fine(one.cpu[0] / 1000), "perUnit": _fine(one.cpu[1] / 1000)},
        "memory": {
            "base": round(one.memory[0] * MIB),
            "perUnit": round(one.memory[1] * MIB),
            "kept": one.kept,
        },
    }


def _fine(cores: float) -> str:
    return f"{cores:.6f}"
