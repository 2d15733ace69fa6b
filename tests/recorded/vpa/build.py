"""Building the scenarios of the VPA recommender: what it measures, when it is asked. The form is what
`controlplane/addons/vpa-replay/scenario.go` reads and `model.py` replays to our model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tests.recorded.replay import Json

MEBI = 2**20
GIBI = 2**30
MINUTE = 60
HOUR = 3600
DAY = 86_400
NANOSECONDS = 10**9
"""The recommender's durations, as `flags` has them, are in nanoseconds."""


def scenario(
    name: str,
    steps: Iterable[Json],
    *,
    policies: Sequence[Json] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Json:
    """A VPA `web`; `flags` are fields of the recommender's configuration. The steps are put in order of time, those of
    the same time stay in theirs."""
    return {
        "name": name,
        "vpa": {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec(policies)},
        "flags": dict(flags or {}),
        "steps": sorted(steps, key=lambda step: float(step["at"])),
    }


def spec(policies: Sequence[Json] | None = None) -> Json:
    """A VPA's spec with these container policies."""
    made: Json = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    if policies is not None:
        made["resourcePolicy"] = {"containerPolicies": list(policies)}
    return made


def sample(
    at: float, cpu: float | None, memory: float | None, *, pod: str = "p0", container: str = "app"
) -> Json:
    """A container's usage: cores and bytes. Both None: the pod is there and not measured."""
    return {"at": at, "sample": {"pod": pod, "container": container, "cpu": cpu, "memory": memory}}


def requesting(steps: Iterable[Json], cpu: float, memory: float) -> Iterator[Json]:
    """Samples of containers that request so much: cores and bytes."""
    for step in steps:
        yield {**step, "sample": {**step["sample"], "cpuRequest": cpu, "memoryRequest": memory}}


def samples(
    span: tuple[float, float, float],
    cpu: Callable[[float], float],
    memory: Callable[[float], float],
    *,
    pods: Iterable[str] = ("p0",),
    container: str = "app",
) -> Iterator[Json]:
    """Usage of pods over a span of seconds: begin, end (which is not in it), step."""
    begin, end, step = span
    for number in range(math.ceil((end - begin) / step)):
        at = begin + number * step
        for pod in pods:
            yield sample(at, cpu(at), math.floor(memory(at)), pod=pod, container=container)


def oom(at: float, memory: float, *, pod: str = "p0", container: str = "app", ago: float = 0) -> Json:
    """It becomes known that a container was killed for want of memory, so many seconds ago, while it requested this
    much."""
    return {"at": at, "oom": {"pod": pod, "container": container, "memory": memory, "ago": ago}}


def gone(at: float, pod: str) -> Json:
    """A pod is no more."""
    return {"at": at, "gone": pod}


def ask(*times: float) -> Iterator[Json]:
    """The recommender's loop comes round at these seconds."""
    return ({"at": at, "recommend": True} for at in times)


def ask_every(seconds: float, end: float) -> Iterator[Json]:
    """It comes round from second 0 to `end`."""
    return ask(*(number * seconds for number in range(math.floor(end / seconds) + 1)))


def restart(at: float) -> Json:
    """The recommender ends, and another begins with its checkpoints."""
    return {"at": at, "restart": True}


def hours(count: int) -> int:
    """A duration as the recommender's flags have it."""
    return count * HOUR * NANOSECONDS


def policy(container: str = "app", **fields: object) -> Json:
    """A container's policy, its fields as in the VPA's spec."""
    return {"containerName": container, **fields}


def wave(low: float, high: float, period: float = DAY) -> Callable[[float], float]:
    """From low to high and back in a period."""
    return lambda at: low + (high - low) * (1 - math.cos(2 * math.pi * at / period)) / 2


def steady(value: float) -> Callable[[float], float]:
    """Always the same."""
    return lambda _: value
