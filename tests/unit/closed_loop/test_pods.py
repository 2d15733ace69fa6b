"""Pods that hold more than their template shows (sidecars that a webhook injects, native sidecars, requests of a
LimitRange or of the pods as a whole), and several containers: the count comes to rest where the HPA alone would, and
sizes follow the VPA (DESIGN 5.4)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.closed_loop import hvpas, loads
from tests.unit.closed_loop.loads import DAY, HOUR
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import MIB, Place, Shape, Use

pytestmark = pytest.mark.long

APP = Use(memory_share=0)
"""Requests 500m."""


def proxy(base: int, place: Place = "injected", cpu: int | None = 500, *, governed: bool = True) -> Use:
    """A sidecar that uses so much of each pod, whatever its load is."""
    return Use("proxy", cpu, share=0.0, base=base, memory_share=0, place=place, governed=governed)


def run(*uses: Use, weight: float = 0, replicas: int = 4, until: float = DAY, **rest: Any) -> Loop:
    """The loop over pods whose CPU is scaled jointly, under a constant load (1000m in sum); the HPA keeps half of the
    requests in use."""
    shape = Shape(uses, replicas, rest.pop("whole", None), rest.pop("controlled", ("cpu",)))
    load, metric = rest.pop("load", 1000), rest.pop("metric", hvpas.utilization(50))
    spec = hvpas.spec(shape, "Trajectory", weight, metric, **rest)
    return Loop(spec, shape, loads.constant(load)).run(until)


def written(loop: Loop, since: float = 0.0) -> list[str]:
    return [repr(write) for write in loop.writes if write.at >= since]


# --- pods that hold more than their template -------------------------------------------------------------------------
@pytest.mark.parametrize("begin", [1, 12])
@pytest.mark.parametrize(
    ("place", "base", "least", "most"),
    [
        ("injected", 0, 2, 3),
        ("injected", 250, 4, 6),
        ("injected", 500, 4, 6),
        ("native", 0, 2, 3),
        ("native", 250, 4, 6),
    ],
)
def test_whatever_a_sidecar_uses_of_its_request_replicas_come_to_rest(
    place: Place, base: int, least: int, most: int, begin: int
) -> None:
    """The app uses 1000m of the 2000m that it takes: 4 pods of 500m. At weight 0 there are no more than the HPA has, 2
    beside an idle proxy; but it goes out for ever beside one that uses 500m."""
    loop = run(APP, proxy(base, place), replicas=begin, until=4 * HOUR)
    assert least <= loop.deployment.replicas <= most, loop.writes
    assert loop.vertical() == []
    assert written(loop, 2 * HOUR) == []


@pytest.mark.parametrize("place", ["injected", "native"])
@pytest.mark.parametrize(("weight", "base"), [(50, 250), (100, 500)])
def test_sizes_do_not_run_away_either(weight: int, place: Place, base: int) -> None:
    """Of what the pods use at first, the app's is 250m each, 1000m in sum: it takes 2 cores of requests, and a second
    pod of 2 cores stays inside the overlap. A native
    sidecar is taken to use half of its request, so that an app beside a greedy one may be half as large again."""
    loop = run(APP, proxy(base, place), weight=weight, until=1.5 * DAY, most=6)
    known = place == "injected"
    assert loop.deployment.replicas * loop.request("app") <= (4200 if known else 6300), loop.writes
    assert len(loop.vertical()) <= (2 if known else 3), loop.writes
    assert written(loop, DAY) == []


def test_requests_of_the_pods_themselves_hold_whatever_the_app_requests() -> None:
    """Pods of 2 cores, half of them in use by an app that requests 500m. It grows once, and the pod by as much: the
    rest of the pod's request belongs to nobody that HVPA knows of, and stays."""
    loop = run(APP, weight=50, whole={"cpu": "2"}, load=4000)
    assert [write.replicas for write in loop.writes] == [(4, 4)], loop.writes
    assert loop.request("app") == 1015
    assert loop.deployment.template["resources"]["requests"] == {"cpu": "2515m"}


@pytest.mark.parametrize("cpu", [None, 100])
def test_requests_of_a_limit_range_are_those_of_the_template(cpu: int | None) -> None:
    """A proxy that nothing governs has 100m of a LimitRange, or of the template: the same comes of it. The app takes
    2 cores of requests, which are 2 pods on the path, and a third stays inside the overlap."""
    loop = run(APP, proxy(50, "template", cpu, governed=False), weight=50)
    assert (loop.deployment.replicas, loop.request("app")) == (3, 966), loop.writes


def test_an_app_without_a_request_has_that_of_the_limit_range_until_it_needs_another() -> None:
    """Four pods whose app was given 100m serve; with weight 0 there is no other size."""
    assert written(run(Use(cpu=None, memory_share=0), proxy(50, cpu=100), load=200)) == []


def test_an_average_value_is_meant_for_the_whole_pod_as_it_was() -> None:
    """500m are used of each pod, as they are to be. Nothing changes at weight 0; at weight 50 the app's 2 cores are 2
    pods of 1 core on the path, and 3 of them serve what the HPA counts: the proxies' 250m each."""
    metric = hvpas.average_value(500)
    assert written(run(APP, proxy(250), metric=metric)) == []
    half = run(APP, proxy(250), metric=metric, weight=50)
    assert (half.deployment.replicas, half.request("app")) == (3, 966), half.writes
    assert written(half, HOUR) == []


# --- several governed containers -------------------------------------------------------------------------------------
SEVENTY = hvpas.utilization(70)


def test_one_container_of_three_is_governed() -> None:
    """The others have no target: they keep their requests, and 5 pods are what the HPA alone would have. The app grows
    in steps, as its share of what pods request does."""
    others = [
        Use(name, cpu, share=cpu / 0.9 * 0.7 / 1000, memory_share=0, governed=False)
        for name, cpu in (("proxy", 10), ("large", 4000))
    ]
    loop = run(APP, *others, weight=50, metric=SEVENTY, load=3600, until=2 * DAY)
    assert (loop.deployment.replicas, loop.request("large")) == (5, 4000), loop.writes
    assert loop.request("app") == pytest.approx(900 / 0.7, rel=0.2), loop.writes
    assert len(loop.vertical()) <= 5, loop.writes
    assert written(loop, 5 * HOUR) == []


def test_an_app_beside_an_idle_container_of_mode_off_is_not_cut_below_its_use() -> None:
    """The other requests 2 cores and uses 50m, so that pods are far below the HPA's target together. The HPA goes down
    to 2 pods, and the app of 500m, which then uses 900m, follows the VPA up."""
    other = Use("large", 2000, share=0.0, base=50, memory_share=0, governed=False)
    loop = run(APP, other, weight=50, load=1800, until=3 * DAY)
    assert loop.deployment.replicas * loop.request("app") >= 1800, loop.writes


def test_memory_is_shared_by_targets_as_well() -> None:
    """1250 MiB and 100 MiB of each of four pods; both request 1000 MiB at first. The HPA leaves four pods, because
    1350 of 2000 MiB are less than 70 percent. HVPA keeps a fifth, for the overlap."""
    uses = [
        Use(name, 500, 1000 * MIB, memory_base=0, memory_share=share * MIB)
        for name, share in (("app", 1250), ("proxy", 100))
    ]
    metric = hvpas.utilization(70, resource="memory")
    loop = run(*uses, weight=50, metric=metric, controlled=("memory",), load=4000, until=2 * DAY)
    each = MIB / loop.deployment.replicas / 0.7
    assert loop.deployment.replicas == 5, loop.writes
    assert loop.request("app", "memory") == pytest.approx(5000 * each, rel=0.25), loop.writes
    assert loop.request("proxy", "memory") <= 1.5 * 400 * each, (
        "the least target of the recommender is 125 MiB"
    )
    assert len(loop.vertical()) <= 2, loop.writes
    assert written(loop, 7 * HOUR) == []


@pytest.mark.parametrize("strategy", ["Rollout", "InPlace"])
@pytest.mark.parametrize("weight", [30, 50, 100])
def test_memory_that_is_each_pods_own_makes_no_pods_fewer(weight: int, strategy: str) -> None:
    """16 pods use 380m of 500m and 378 MiB of 600 MiB each, however many there are; the HPA measures memory alone, and
    would leave them alone. Fewer pods would use less memory, and look like less demand with each that goes."""
    heap = Use(cpu=500, memory=600 * MIB, memory_base=378 * MIB, memory_share=0)
    shape = Shape((heap,), 16)
    spec = hvpas.spec(shape, "Trajectory", weight, hvpas.utilization(70, resource="memory"), most=40)
    loop = Loop({**spec, "updateStrategy": {"type": strategy}}, shape, loads.constant(6080)).run(16 * HOUR)
    assert written(loop) == []


def noise(percent: float) -> Any:
    return loads.noise(1.0, percent).at


def drift(percent: float) -> Any:
    return lambda now: math.exp(percent / 100 * now / DAY)


def wave(percent: float) -> Any:
    return loads.wave(1.0, percent).at


@pytest.mark.parametrize(
    ("app", "other"),
    [
        pytest.param((3600, noise(10)), (200, noise(90)), id="a small container with much noise"),
        pytest.param((2000, drift(1)), (1800, drift(-1)), id="targets that drift apart"),
        pytest.param((2000, wave(10)), (1800, wave(-10)), id="waves against each other"),
    ],
)
def test_targets_that_move_do_not_restart_pods(app: tuple[int, Any], other: tuple[int, Any]) -> None:
    uses = [
        Use(name, share=part / 4000, sway=sway, memory_share=0)
        for name, (part, sway) in (("app", app), ("proxy", other))
    ]
    shape = Shape(tuple(uses), 4, controlled=("cpu",))
    spec = hvpas.spec(shape, "Trajectory", 50, SEVENTY)
    loop = Loop(spec, shape, loads.noise(4000, 0.0)).run(1.5 * DAY)
    assert len(loop.vertical()) <= 3, loop.writes
    assert loop.vertical(since=13 * HOUR) == [], loop.writes
