"""A load that comes back takes the workload back (DESIGN 7.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import Case, cases, examples
from tests.unit.closed_loop.loads import DAY, HOUR

pytestmark = pytest.mark.untraced

BEGIN = 2 * DAY
"""Until then it settles."""


@pytest.mark.parametrize("places", [("template",), ("native", "injected")], ids=["like template", "sidecars"])
def test_trajectory_ends_where_it_began(places: tuple[str, ...]) -> None:
    """One replica more or less may stay, inside the overlap. Requests may differ by as much as pods are not replaced
    for, which is twice the overlap either way, and by what the VPA still remembers of the peak.
    Memory is left out: pods have a part of it whatever their load is (the recommender's minimum is one), so that it is
    no demand that more pods share."""

    @examples(3)
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
