"""Random scenarios of the VPA's updater and webhook, each made from a seed: pods of one to three containers, of several
sizes and ages, OOMs, resizes that wait or are refused, pods without a node, any policies and flags. There are at most
12 pods: of more with equal priority, Go's sort leaves the order open."""

from __future__ import annotations

import random

from tests.recorded.replay import Json, by_name
from tests.recorded.updater import build as b
from tests.recorded.vpa.build import NANOSECONDS

_CONTAINERS = ("app", "log", "proxy")
_CPU = ("1m", "50m", "100m", "110m", "330m", "1", "1500m", "7")
_MEMORY = ("1", "100Mi", "104857600", "110Mi", "500M", "1Gi", "1234567890", "64Gi")


def _amounts(chance: random.Random, always: float) -> dict[str, str]:
    made = {"cpu": chance.choice(_CPU), "memory": chance.choice(_MEMORY)}
    return {name: amount for name, amount in made.items() if chance.random() < always}


def _container(chance: random.Random, name: str) -> Json:
    """A container as the API server has them: no request is above its limit, nor missing beside one."""
    requests, limits = _amounts(chance, 0.9), _amounts(chance, 0.4)
    for resource, ascending in (("cpu", _CPU), ("memory", _MEMORY)):
        if resource in limits:
            pair = sorted((limits[resource], requests.get(resource, limits[resource])), key=ascending.index)
            requests[resource], limits[resource] = pair
    return b.container(name, requests, limits)


def _sizes(chance: random.Random, names: tuple[str, ...]) -> list[Json]:
    return [_container(chance, name) for name in names]


def _pod(chance: random.Random, name: str, sizes: list[list[Json]], at: float) -> Json:
    containers = [dict(size) for size in chance.choice(sizes)]
    started = at - chance.choice((30, 400, b.HOUR, 12 * b.HOUR, 30 * b.HOUR))
    for container in containers:
        if chance.random() < 0.15:
            ended = at - chance.choice((10, 599, 600, 5000))
            container["oom"] = [ended - chance.choice((5, 599, 600, 9000)), ended]
    made = b.pod(name, *containers, started=started)
    if chance.random() < 0.15:
        made |= {
            "desired": containers,
            "resize": chance.choice(("Deferred", "Deferred", "Infeasible", "Error")),
        }
    if chance.random() < 0.1:
        made["refused"] = True
    if chance.random() < 0.05:
        made["deleted"] = at - 1
    elif chance.random() < 0.05:
        made |= {"node": "", "started": None}
    return made


def _recommended(chance: random.Random, names: tuple[str, ...]) -> list[Json]:
    recommendations = []
    for name in (*names, "gone"):
        if chance.random() < 0.8:
            target = _amounts(chance, 0.85)
            lower, upper = _amounts(chance, 0.7), _amounts(chance, 0.7)
            recommendations.append(b.recommended(target, lower, upper, name))
    return recommendations


def _policies(chance: random.Random) -> list[Json] | None:
    if chance.random() < 0.3:
        return None
    made = []
    for name in chance.sample((*_CONTAINERS, "*"), chance.choice((0, 1, 2, 3))):
        options: Json = {
            "minAllowed": _amounts(chance, 0.7),
            "maxAllowed": _amounts(chance, 0.7),
            "controlledValues": chance.choice(("RequestsOnly", "RequestsAndLimits")),
            "mode": chance.choice(("Off", "Auto")),
        }
        made.append(b.policy(name, **{field: options[field] for field in chance.sample(sorted(options), 2)}))
    return made


def _flags(chance: random.Random) -> Json:
    options: Json = {
        "MinReplicas": chance.choice((1, 3)),
        "EvictionToleranceFraction": chance.choice((0.0, 0.1, 0.34, 0.9, 1.0)),
        "DefaultUpdateThreshold": chance.choice((0.05, 0.5, 2.0)),
        "PodLifetimeUpdateThreshold": chance.choice((60, b.HOUR, 29 * b.HOUR)) * NANOSECONDS,
        "EvictAfterOOMThreshold": chance.choice((11, b.HOUR)) * NANOSECONDS,
    }
    return {name: options[name] for name in chance.sample(sorted(options), chance.choice((0, 0, 1, 3)))}


def case(seed: int) -> Json:
    """The scenario of a seed."""
    chance = random.Random(seed)
    names = _CONTAINERS[: chance.choice((1, 1, 2, 3))]
    sizes = [_sizes(chance, names) for _ in range(chance.choice((1, 2, 4)))]
    steps: list[Json] = []
    at = 0
    for number in range(chance.choice((1, 3, 8))):
        count = chance.randrange(1, 13)
        pods = [_pod(chance, f"p{index}", sizes, at) for index in range(count)]
        replicas = max(0, count + chance.choice((0, 0, 0, 1, -1, 3, -count)))
        is_new = number == 0 or chance.random() < 0.5
        recommendations = _recommended(chance, names) if is_new else []
        steps.append(b.loop(pods, *recommendations, at=at, replicas=replicas, silent=not is_new))
        at += chance.choice((60, 60, 300, 301))
    return b.scenario(
        f"random-{seed}",
        steps,
        mode=chance.choice(
            ("Recreate", "InPlaceOrRecreate", "InPlaceOrRecreate", "Auto", "Initial", "Off", None)
        ),
        min_replicas=chance.choice((None, None, None, 1, 2, 4)),
        policies=_policies(chance),
        flags=_flags(chance),
        template=sizes[0],
    )


RANDOM = by_name(map(case, range(300)))
