"""The workloads of `python -m benchmarks arena`, and the distributions they are drawn from.

A workload depends only on the seed and its number, so the first sixty of three hundred are always the same. Metrics and
weights rotate by number, and every combination occurs within 36 workloads; everything else is drawn. The load is in
requests per second; a core handles `PER_CORE`.

Owners set wrong requests: if the HPA does not measure a resource, its request is 0.9 to 3 times the usage, and the
target of a queue or a `Value` is just as unrelated to the CPU request. (A utilization is a share of its request, which
can't be wrong.)
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from hvpa.api.values.quantity import MIB

Fields = dict[str, Any]
"""A part of a scenario, in the form of its YAML."""
Draw = random.Random
METRICS: Final = ("CPU", "memory", "CPU and memory", "container CPU", "queue", "Value")
"""Metrics of the HPA. Container CPU is that of the app next to a sidecar."""
WEIGHTS: Final = (None, 0, 30, 50, 80, 100)
"""`vpaWeight`; None: the Hvpa has no weights."""
PER_CORE: Final = 100
"""Requests per second that a core handles."""
SURVIVES: Final = 1.5
"""A pod has enough memory for this multiple of its usual load: its owner would have raised a lower limit."""
DAY: Final = 86400
HOURS: Final = 36
"""Hours of a run. The first day does not count. It is calm: no noise, and a new load only every ten minutes, which
reduces the simulation time."""
CALM: Final = "(t if t >= day else floor(t / 600) * 600)"


class Container(NamedTuple):
    """A container."""

    name: str
    requests: tuple[int, int]
    """CPU in millicores, memory in MiB."""
    limits: tuple[float | None, float | None]
    """Limits as factors of the requests; None: no limit."""
    mode: str
    """The VPA's mode."""
    cpu: tuple[float, float]
    """Usage in millicores: without load, and for each request per second."""
    memory: tuple[float, float]
    """Usage in MiB: without load, and for each request per second."""
    kept: float = 0.0


class Drawn(NamedTuple):
    """A workload and its scaling."""

    number: int
    metric: str
    weight: int | None
    blend: str
    strategy: str
    shape: str
    load: Fields
    containers: tuple[Container, ...]
    target: float
    """Share of a request that the HPA lets a pod use, for CPU and for memory."""
    per_pod: float
    """Requests per second of a pod at the target of a queue or a `Value`."""
    utilization: bool
    """Whether the Hvpa's HPA has targets of that type."""
    replicas: tuple[int, int, int]
    """Replicas: minimum, initial, maximum."""
    most: float
    """`maxAllowed` of the app, as a factor of its requests."""
    least: float
    """`minAllowed` of the app, as a factor of its requests; 0: none."""
    nodes: Fields
    kind_of_nodes: str
    further: Fields
    """Further fields of the scenario's workload."""
    kubelet: str
    follows: bool
    """Whether most of the memory follows the load."""

    @property
    def in_place(self) -> bool:
        """Whether running pods are resized."""
        return self.strategy != "Rollout"

    @property
    def text(self) -> str:
        """A description in a line."""
        app = self.containers[0]
        limits = "/".join("no" if factor is None else f"{factor:g}x" for factor in app.limits)
        others = "".join(f" + {container.name} ({container.mode})" for container in self.containers[1:])
        weight = "no weight" if self.weight is None else f"weight {self.weight}"
        least, first, most = self.replicas
        memory = "memory follows the load" if self.follows else "steady memory"
        return (
            f"{self.metric}, {weight}, {self.blend}, {self.strategy}; {self.shape}; {first} pods ({least} to {most}) of"
            f" {app.requests[0]}m/{app.requests[1]}Mi (limits {limits}){others};"
            f" {memory}; {self.kind_of_nodes} nodes{self.kubelet}"
        )


def drawn(seed: int, number: int) -> Drawn:
    """Return the workload of this number."""
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
    if metric == "queue":  # the simulator offers the whole backlog at once, which would count as memory
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


# --- random values --------------------------------------------------------------------------------------------------
def _log(draw: Draw, least: float, most: float) -> float:
    """Draw evenly over the logarithm."""
    return math.exp(draw.uniform(math.log(least), math.log(most)))


def _limits(draw: Draw) -> float | None:
    """Draw no limit, the request, or 1.5 to 4 times the request."""
    return draw.choice((None, None, 1.0, round(draw.uniform(1.5, 4), 1)))


def _memory(draw: Draw, metric: str, targeted: float, request: int, limit: float | None) -> float:
    """Return the memory in MiB of a pod at its usual load. If the HPA measures memory it is near the target, else the
    request is wrong. It is below a limit that equals the request."""
    if metric == "memory":
        return targeted
    if metric == "CPU and memory":
        return targeted * draw.uniform(0.6, 1.2)
    return request * _log(draw, 0.33, 0.85 if limit == 1.0 else 1.1)


def _others(draw: Draw, per_pod: float, has_sidecar: bool) -> list[Container]:
    """Return up to two further containers."""
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
    fields: Fields = {"startUp": f"{draw.randint(5, 60)}s", "resizeDelay": "5s"}
    if draw.random() < 0.5:
        fields["terminationGrace"] = "30s"
    if draw.random() < 0.3:
        fields["blips"] = {"every": f"{draw.randint(1, 6)}h", "length": f"{draw.randint(10, 60)}s"}
    if draw.random() < 0.3:
        fields["spread"] = round(draw.uniform(0.05, 0.2), 2)
    return fields


def _kubelet(draw: Draw, strategy: str) -> tuple[str, Fields]:
    """Return the kubelet's reaction to resizes: its name (empty for a usual kubelet), and its fields."""
    kind, minutes = draw.choices(("", "defers", "refuses"), (8, 1, 1))[0], draw.randint(2, 15)
    if strategy == "Rollout" or not kind:
        return "", {}
    if kind == "defers":
        return f", kubelet defers for {minutes}m", {"resizeDeferred": f"{minutes}m"}
    return ", kubelet refuses", {"resizeRefused": True}


def _nodes(draw: Draw, containers: tuple[Container, ...], most: float) -> tuple[str, Fields]:
    """Return nodes of 34 cores, or nodes just large enough for the largest pod, or for two to four initial pods."""
    fields: Fields = {"headroom": "20%", "startUp": "2m"}
    if draw.random() < 0.6:
        return "large", {"cpu": 34, "memory": "256Gi", **fields}
    pods = draw.randint(2, 4)
    cpu, memory = (
        round(
            max(
                request * most + 1.1 * sum(other.requests[at] for other in containers[1:]) * most,
                pods * sum(other.requests[at] for other in containers),
            )
        )
        for at, request in enumerate(containers[0].requests)
    )
    return "just sufficient", {"cpu": f"{cpu}m", "memory": f"{memory}Mi", **fields}


# --- loads ----------------------------------------------------------------------------------------------------------
def _load(draw: Draw, usual: float) -> tuple[str, Fields]:
    """Return the load's name and field; `usual` in requests per second."""
    shape = draw.choice(list(SHAPES))
    noise = 0.05 if shape == "constant" else round(draw.uniform(0.02, 0.1), 3)
    formula = re.sub(r"\bt\b", CALM, SHAPES[shape](draw))
    return shape, {"formula": f"{usual:.4g} * max(0.05, {formula})", "noise": noise, "noiseFrom": "24h"}


def _constant(draw: Draw) -> str:
    """Return a constant load (with noise of 5 percent)."""
    return "1"


def _wave(draw: Draw) -> str:
    """Return a daily wave."""
    return f"(1 + {draw.uniform(0.3, 0.8):.2f} * cos(2 * pi * (t / day - {draw.random():.2f})))"


def _steps(draw: Draw) -> str:
    """Return jumps for 1 to 8 hours, two or three a day, by -50 to +200 percent."""
    jumps = (_pulse(draw, day, 1, 8) for day in range(2) for _ in range(draw.randint(2, 3)))
    return " + ".join(["1", *jumps])


def _bursts(draw: Draw) -> str:
    """Return a small wave with four to eight bursts a day: 1.5 to 5 times the load for 2 to 40 minutes."""
    pulses = (_pulse(draw, day, 1 / 30, 2 / 3, 0.5, 4) for day in range(2) for _ in range(draw.randint(4, 8)))
    return " + ".join(
        [f"(1 + {draw.uniform(0, 0.3):.2f} * cos(2 * pi * (t / day - {draw.random():.2f})))", *pulses]
    )


def _pulse(
    draw: Draw, day: int, shortest: float, longest: float, least: float = -0.5, most: float = 2.0
) -> str:
    """Return a pulse that begins in the first half of this day (the second day has no other half); lengths in hours.
    Heights are uniform, so a lower load is as likely as its share of the range."""
    start, length = (day + draw.random() / 2) * DAY, _log(draw, shortest, longest) * 3600
    return f"{draw.uniform(least, most):.2f} * pulse(t, {start:.0f}, {length:.0f})"


SHAPES: Final[Mapping[str, Callable[[Draw], str]]] = {
    "constant": _constant,
    "wave": _wave,
    "steps": _steps,
    "bursts": _bursts,
}


# --- as a scenario --------------------------------------------------------------------------------------------------
def workload_field(workload: Drawn) -> Fields:
    """Return the scenario's field `workload`."""
    return {
        "name": "web",
        "replicas": workload.replicas[1],
        **workload.further,
        "resize": "InPlace" if workload.in_place else "Recreate",
        "containers": [_container(container) for container in workload.containers],
    }


def _container(container: Container) -> Fields:
    def amounts(factors: tuple[float | None, float | None]) -> Fields:
        named = zip(("cpu", "memory"), container.requests, factors, ("m", "Mi"), strict=True)
        return {
            name: f"{round(request * factor)}{unit}"
            for name, request, factor, unit in named
            if factor is not None
        }

    return {
        "name": container.name,
        "requests": amounts((1.0, 1.0)),
        "limits": amounts(container.limits),
        "cpu": {"base": _fine(container.cpu[0] / 1000), "perUnit": _fine(container.cpu[1] / 1000)},
        "memory": {
            "base": round(container.memory[0] * MIB),
            "perUnit": round(container.memory[1] * MIB),
            "kept": container.kept,
        },
    }


def _fine(cores: float) -> str:
    return f"{cores:.6f}"
