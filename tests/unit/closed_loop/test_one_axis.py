"""Where one axis may not move, the other one serves the load (DESIGN 5.4)."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import Case, cases, examples
from tests.unit.closed_loop.loads import DAY, HOUR

pytestmark = pytest.mark.untraced

OFF = {"updatePolicy": {"updateMode": "Off"}}


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
def test_replicas_serve_what_pods_may_not_grow_for(blend: str) -> None:
    @examples(2)
    @given(cases(blend, weights=(0, 50)))
    def check(case: Case) -> None:
        held = dataclasses.replace(case, vpa=(("scaleUp", OFF), ("scaleDown", OFF)))
        loop = held.loop(loads.step(case.load, 2 * case.load, 6 * HOUR)).run(12 * HOUR)
        assert loop.vertical() == []
        assert loop.is_served(), loop.writes

    check()


def test_larger_pods_serve_what_there_may_be_no_more_of() -> None:
    @examples(2)
    @given(cases("Trajectory", targets=("Utilization",), places=("template",), weights=(30, 50, 80)))
    def check(case: Case) -> None:
        held = dataclasses.replace(case, hpa=(("scaleUp", OFF),))
        loop = held.loop(loads.step(case.load, 2 * case.load, 6 * HOUR)).run(DAY)
        assert not [one for one in loop.writes if one.replicas[1] > one.replicas[0]]
        assert loop.is_served(), loop.writes

    check()
