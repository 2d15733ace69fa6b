"""Joint scaling of pods that hold more than their template shows, and of several containers: in a closed loop with the
recommenders as they are, it comes to rest where the HPA alone would, and sizes follow the VPA (DESIGN 5.4)."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.unit.core.named import named
from tests.unit.core.trajectory.pods_world import Part, PodsWorld, Use, each, shared

pytestmark = pytest.mark.untraced

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
ONLY_CPU = {"containerName": "*", "controlledResources": ["cpu"]}
OFF = {"containerName": "proxy", "mode": "Off"}


def weight(percent: int) -> dict[str, Any]:
    return {"weightBasedScalingIntervals": [{"vpaWeight": percent}]}


def utilization(percent: int, resource: str = "cpu") -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def average_value(amount: str) -> dict[str, Any]:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": amount}},
    }


def world(
    parts: Sequence[Part],
    vertical: int = 0,
    metric: Mapping[str, Any] | None = None,
    policies: Sequence[Mapping[str, Any]] = (),
    **rest: Any,
) -> PodsWorld:
    """A Deployment whose CPU is governed; its HPA keeps half of the requests in use."""
    return PodsWorld(
        parts, weight(vertical), metric or utilization(50), policies=[*policies, ONLY_CPU], **rest
    )


# --- pods that hold more than their template -------------------------------------------------------------------------
APP = Part("app", shared(1000))
"""Uses 1000m in sum, of 500m for each pod."""


def proxy(use: float, kind: str = "injected", request: int | None = 500, default: int | None = None) -> Part:
    return Part("proxy", each(use), request, kind, default, recommended=kind == "injected")


@pytest.mark.parametrize("begin", [1, 12])
@pytest.mark.parametrize("use", [0, 250, 500])
def test_whatever_an_injected_proxy_uses_of_its_request_replicas_come_to_rest(use: float, begin: int) -> None:
    """Where the HPA alone would, or nearer: at 500m it goes out for ever, while 4 pods serve what the app uses."""
    parts = [APP, proxy(use)]
    alone = world(parts, replicas=begin, alone=True).run(HOUR)
    found = world(parts, replicas=begin).run(4 * HOUR)
    assert found.count <= min(alone.count + 1, 6)
    assert found.count >= min(alone.count, 4)
    assert found.templates == []
    assert found.changed_since(2 * HOUR) == []


@pytest.mark.parametrize("begin", [1, 12])
@pytest.mark.parametrize("use", [0, 250])
def test_a_native_sidecar_of_which_the_vpa_knows_nothing_counts_as_the_hpa_counts_it(
    use: float, begin: int
) -> None:
    parts = [APP, proxy(use, "native")]
    alone = world(parts, replicas=begin, alone=True).run(HOUR)
    found = world(parts, replicas=begin).run(4 * HOUR)
    assert found.count - alone.count in (0, 1, 2), "inside the overlap"
    assert found.templates == []
    assert found.changed_since(2 * HOUR) == []


@pytest.mark.parametrize("use", [0, 250, 500])
@pytest.mark.parametrize("kind", ["injected", "native"])
@pytest.mark.parametrize("vertical", [50, 100])
def test_sizes_do_not_run_away_either(vertical: int, kind: str, use: float) -> None:
    """Of what the pods use at first, the app's is 250m each, 1000m in sum: it takes 2 cores of requests. A native
    sidecar is taken to use half of its request, so that an app beside a greedy one may be half as large again."""
    found = world([APP, proxy(use, kind)], vertical, most=6).run(1.5 * DAY)
    known = kind == "injected"
    assert found.count * found.requests["app"] <= (3000 if known else 6100)
    assert len(found.templates) <= (1 if known else 3)
    assert found.changed_since(DAY) == []


def test_requests_of_the_pods_themselves_hold_whatever_the_app_requests() -> None:
    """Pods of 2 cores, half of them in use by an app that requests 500m: nothing is to be done but for its request."""
    found = world([Part("app", shared(4000))], 50, whole=2000).run(DAY)
    assert found.counts == []
    assert [sizes for _, sizes, _ in found.templates] == [{"app": 1168}]  # the VPA's target, at four pods


def test_requests_of_a_limit_range_are_those_of_the_template() -> None:
    """A proxy that nothing governs has 500m of a LimitRange, or of the template: the same comes of it."""
    given = world([APP, proxy(250, "template", None, 500)], 50, policies=[OFF]).run(DAY)
    written = world([APP, proxy(250, "template")], 50, policies=[OFF]).run(DAY)
    assert (given.count, given.requests["app"]) == (written.count, written.requests["app"]) == (4, 677)
    assert given.counts == written.counts == []


def test_an_app_without_a_request_has_that_of_the_limit_range_until_it_needs_another() -> None:
    """Four pods whose app was given 500m serve; with weight 0 there is no other size."""
    found = world([Part("app", shared(1000), None, default=500), proxy(250)]).run(DAY)
    assert found.changed_since(dt.timedelta()) == []


def test_an_average_value_speaks_of_the_whole_pod_as_it_was() -> None:
    """500m are used of each pod, as they are to be. Nothing changes at weight 0; at weight 50 the app's 2 cores are 2
    pods of 1 core on the path, and 3 of them serve what the HPA counts: the proxies' 250m each."""
    fixed_size = world([APP, proxy(250)], 0, average_value("500m")).run(DAY)
    assert fixed_size.changed_since(dt.timedelta()) == []
    half = world([APP, proxy(250)], 50, average_value("500m")).run(DAY)
    assert (half.count, half.requests) == (3, {"app": 1000})
    assert half.changed_since(HOUR) == []


def test_where_a_request_is_missing_the_hpa_has_no_value_and_nothing_changes() -> None:
    found = world([APP, proxy(250, request=None)], 0).run(2 * HOUR)
    assert found.changed_since(dt.timedelta()) == []


# --- several governed containers -------------------------------------------------------------------------------------
DAYS = 2 * DAY


def near(found: int, expected: float) -> bool:
    """Within the overlap."""
    return abs(found - expected) <= expected / 10


def test_two_containers_of_one_request_go_where_their_vpa_targets_are_and_stay_there() -> None:
    """The app uses 900m of each pod, the proxy 50m; both request 500m at first. 70 percent are to be in use."""
    parts = [Part("app", shared(3600)), Part("proxy", shared(200))]
    found = world(parts, 50, utilization(70)).run(DAYS)
    assert found.count == 4
    # Lower requests come six hours later; nothing follows.
    assert [sizes for _, sizes, _ in found.templates] == [
        {"app": 1280, "proxy": 500},
        {"app": 1280, "proxy": 78},
    ]
    assert near(found.requests["app"], 900 / 0.7)
    assert near(found.requests["proxy"], 50 / 0.7 + 7)
    assert found.changed_since(7 * HOUR) == []


@pytest.mark.parametrize("requests", [(500, 10, 4000), (500, 500, 500)], ids=["alike", "the same"])
def test_three_containers_of_very_unlike_sizes_each_have_what_they_use(
    requests: tuple[int, int, int],
) -> None:
    """900m, 8m and 3 cores for each of four pods; whatever their requests were at first."""
    uses = {"app": 3600, "tiny": 32, "large": 12_000}
    parts = [
        Part(name, shared(use), request) for (name, use), request in zip(uses.items(), requests, strict=True)
    ]
    found = world(parts, 50, utilization(70)).run(DAYS)
    for name, use in uses.items():
        assert near(found.requests[name], use / found.count / 0.7) or found.requests[name] <= 15, name
    assert len(found.templates) <= 2
    assert found.changed_since(7 * HOUR) == []


def test_one_container_of_three_is_governed() -> None:
    """The others have no target: they are taken to use their requests as the HPA has it, 70 percent of them."""
    parts = [Part("app", shared(3600)), Part("proxy", shared(28), 10), Part("large", shared(11_200), 4000)]
    off = [OFF, {"containerName": "large", "mode": "Off"}]
    found = world(parts, 50, utilization(70), off).run(DAYS)
    assert (found.count, found.requests["large"]) == (4, 4000)
    assert near(found.requests["app"], 900 / 0.7)
    assert len(found.templates) == 1


def test_memory_is_shared_by_targets_as_well() -> None:
    """1250 MiB and 100 MiB of each of four pods; both request 1000 MiB at first."""
    parts = [
        Part("app", each(100), memory=1000, fills=shared(5000)),
        Part("proxy", each(10), memory=1000, fills=shared(400)),
    ]
    only = {"containerName": "*", "controlledResources": ["memory"]}
    found = PodsWorld(parts, weight(50), utilization(70, "memory"), policies=[only]).run(DAYS)
    assert near(found.memory["app"], 5000 / found.count / 0.7)
    assert (
        found.memory["proxy"] <= 1.5 * 400 / found.count / 0.7
    )  # the recommender has a least target of 125 MiB
    assert len(found.templates) <= 2
    assert found.changed_since(7 * HOUR) == []


def noisy(total: float, share: float, seed: int) -> Use:
    """A load with noise from minute to minute."""
    numbers = random.Random(seed)
    known: dict[int, float] = {}

    def use(since: dt.timedelta, pods: int) -> float:
        minute = since // dt.timedelta(minutes=1)
        if minute not in known:
            known[minute] = total * (1 + share * numbers.uniform(-1, 1))
        return known[minute] / pods

    return use


def drifting(total: float, daily: float) -> Use:
    """A load that grows by a share of itself each day."""
    return lambda since, pods: total * math.exp(daily * (since / DAY)) / pods


def waves(total: float, share: float) -> Use:
    """A load with a daily wave."""
    return lambda since, pods: total * (1 + share * math.sin(2 * math.pi * (since / DAY))) / pods


@pytest.mark.parametrize(
    ("app", "other"),
    named(
        {
            "a small container with much noise": (noisy(3600, 0.1, 1), noisy(200, 0.9, 2)),
            "targets that drift apart": (drifting(2000, 0.01), drifting(1800, -0.01)),
            "waves against each other": (waves(2000, 0.1), waves(1800, -0.1)),
        }
    ),
)
def test_targets_that_move_do_not_restart_pods(app: Use, other: Use) -> None:
    found = world([Part("app", app), Part("proxy", other)], 50, utilization(70)).run(DAYS)
    assert len(found.templates) <= 2
    assert [when for when, *_ in found.templates if when > 7 * HOUR] == []
