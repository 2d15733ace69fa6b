"""At constant load the loop comes to rest, each container has what it needs, and a load that comes back takes the
workload back (DESIGN 5.4, 7.3, 7.5, 8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import BLENDS, Case, cases, examples, plain
from tests.unit.closed_loop.loads import DAY, HOUR
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import MIB, Use

pytestmark = pytest.mark.long

SETTLED = {"Additive": 2 * HOUR, "Trajectory": 2 * DAY}
"""Additive follows the VPA's target, which stands still once `minHistory` is over. Trajectory follows the usual demand,
of which the VPA forgets half in a day."""
FEW = 8
"""Changes of requests on the way from an arbitrary start to where the load is served."""


def _written(loop: Loop, since: float) -> list[str]:
    writes = [repr(one) for one in loop.writes if one.at >= since]
    return writes + [
        f"{at / HOUR:.2f}h: desired replicas" for at in loop.desired_replicas_writes if at >= since
    ]


@pytest.mark.parametrize("blend", BLENDS)
def test_at_constant_load_nothing_is_written_after_it_has_settled(blend: str) -> None:
    @examples(3)
    @given(cases(blend, controlled=("cpu",)))
    def check(case: Case) -> None:
        loop = case.loop(loads.constant(case.load)).run(SETTLED[blend] + 2 * DAY)
        assert _written(loop, SETTLED[blend]) == [], loop.writes

    check()


@pytest.mark.parametrize("blend", BLENDS)
def test_at_constant_load_only_memory_that_was_once_needed_is_still_given_back(blend: str) -> None:
    """The VPA remembers peaks of memory for days, and what other pods used before: it is given back bit by bit."""

    @examples(2)
    @given(cases(blend))
    def check(case: Case) -> None:
        loop = case.loop(loads.constant(case.load)).run(5 * DAY)
        assert len(loop.vertical()) <= FEW, loop.writes
        assert len(loop.vertical(since=DAY)) <= 3, loop.writes
        assert len(loop.vertical(since=3 * DAY)) <= 1, loop.writes

    check()


def test_the_blend_may_be_switched_and_back() -> None:
    """Trajectory begins its path at what Additive has left. Where Additive is back, it moves requests at most once, by
    its weight."""
    case = plain(Use(cpu=1000), blend="Additive", load=4000, replicas=1, controlled=("cpu",))
    loop = case.loop(loads.constant(case.load)).run(HOUR)
    assert (loop.deployment.replicas, loop.request("app")) == (7, 1000)
    for blend, least, most in (("Trajectory", 1, FEW), ("Additive", 0, 1)):
        assert loop.hvpa.spec is not None
        switched = build.hvpa({**loop.spec, "blend": blend, "replicas": loop.hvpa.spec.replicas})
        loop.hvpa = build.with_status(switched, loop.hvpa.status)
        since = loop.now
        loop.run(since + 3 * DAY)
        assert least <= len(loop.vertical(since)) <= most, loop.writes
        assert _written(loop, since + 2 * DAY) == [], loop.writes
        assert loop.deployment.replicas == 4
        axes = loop.hvpa.status.axes
        assert axes is not None
        assert axes.vertical is not None
        assert axes.vertical.base["app"]["cpu"] == "1"
    assert loop.errors == []


UNLIKE = (
    Use("app", 500, 512 * MIB, share=0.95),
    Use("proxy", 500, 512 * MIB, share=0.05, memory_base=50 * MIB, memory_share=0),
)
"""An application that uses twenty times what its proxy does, and both request the same."""


def three(*requests: int) -> tuple[Use, ...]:
    """Containers that use a hundred times as much, or three times as much, as another, whatever they request."""
    uses = zip(("app", "tiny", "large"), requests, (0.3, 0.01, 1.0), strict=True)
    return tuple(Use(name, request, share=share, memory_share=0) for name, request, share in uses)


@pytest.mark.parametrize(
    ("blend", "weight", "uses"),
    [
        ("Additive", 100, UNLIKE),
        ("Trajectory", 50, UNLIKE),
        ("Trajectory", 80, UNLIKE),
        ("Trajectory", 50, three(600, 20, 2000)),
        ("Trajectory", 50, three(500, 500, 500)),
    ],
)
def test_containers_of_unlike_use_get_requests_that_are_as_unlike(
    blend: str, weight: float, uses: tuple[Use, ...]
) -> None:
    loop = plain(*uses, blend=blend, weight=weight, percent=50, load=2850).loop(loads.constant(2850))
    loop.run(3 * DAY)
    relative = [loop.request(one.name) / loop.recommended(one.name) for one in uses]
    assert max(relative) / min(relative) <= 1.6, loop.writes
    assert len(loop.vertical()) <= FEW, loop.writes


BEGIN = 2 * DAY
"""Until then it settles."""


@pytest.mark.parametrize("places", [("template",), ("native", "injected")], ids=["like template", "sidecars"])
def test_trajectory_ends_where_it_began(places: tuple[str, ...]) -> None:
    """One replica more or less may stay, inside the overlap. Requests may differ by as much as pods are not replaced
    for, which is twice the overlap either way, and by what the VPA still remembers of the peak.
    Memory is left out: pods have a part of it whatever their load is (the recommender's minimum is one), so that it is
    no demand that more pods share."""

    @examples(2)
    @given(
        cases("Trajectory", places=places, weights=(30, 50, 80), controlled=("cpu",)),
        st.sampled_from([1.5, 2.0]),
        st.sampled_from([1, 6]),
    )
    def check(case: Case, factor: float, hours: int) -> None:
        peak = loads.step(case.load, factor * case.load, BEGIN, BEGIN + hours * HOUR)
        loop = case.loop(peak).run(BEGIN - HOUR)
        replicas, sizes = loop.deployment.replicas, {name: loop.request(name) for name in loop.requests()}
        loop.run(BEGIN + 3 * DAY)
        assert abs(loop.deployment.replicas - replicas) <= 1, loop.writes
        for name, size in sizes.items():
            assert abs(loop.request(name) - size) <= 0.4 * size + 40, loop.writes

    check()
