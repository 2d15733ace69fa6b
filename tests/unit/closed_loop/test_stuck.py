"""Where one axis may not move, the other one serves the load; what is broken about pods or refused by a policy freezes
neither for good (DESIGN 5.2, 5.4, 6.2, 8)."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import BLENDS, Case, cases, examples, plain
from tests.unit.closed_loop.loads import DAY, HOUR
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import MIB, Use

pytestmark = pytest.mark.long


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("weight", [0, 30, 50])
def test_a_pod_that_never_becomes_ready_does_not_freeze_the_count(blend: str, weight: float) -> None:
    """One of the pods that the first scale-out makes never gets ready; an hour later the load doubles."""
    case = plain(blend=blend, weight=weight, load=1800, replicas=4)
    loop = case.loop_with(loads.step(1800, 3600, HOUR), lambda number, _: number != 5)
    loop.run(3 * HOUR)
    assert loop.is_served(), loop.writes


@pytest.mark.parametrize("blend", BLENDS)
def test_a_rollout_that_never_ends_does_not_freeze_requests(blend: str) -> None:
    """New pods never get ready until they have half as much again, as one that is killed for its slow start."""
    case = plain(blend=blend, weight=100, load=3000, replicas=3)
    loop = case.loop(loads.step(3000, 6000, 2 * HOUR))
    deployment = loop.deployment
    loop.run(2 * HOUR)
    before = loop.request("app")
    deployment.fate = lambda _number, _now: loop.request("app") > 1.5 * before
    loop.run(8 * HOUR)
    assert len(deployment.ready(loop.now)) == deployment.replicas, loop.writes


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("weight", [30, 50])
def test_refused_requests_do_not_starve_the_replicas(blend: str, weight: float) -> None:
    """The VPA wants far more memory from the first minutes on, and no webhook lets it."""
    case = plain(Use(memory_base=900 * MIB), blend=blend, weight=weight, load=2000, replicas=2)
    spec = case.loop(loads.constant(0)).spec
    loop = Loop(spec, case.shape, loads.step(2000, 4000, 2 * HOUR), refuses=True).run(6 * HOUR)
    assert any("denied the request" in text for text in loop.errors), loop.errors
    assert loop.vertical() == []
    assert loop.is_served(), loop.writes


OFF = {"updatePolicy": {"updateMode": "Off"}}


@pytest.mark.parametrize("blend", BLENDS)
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
        assert not [write for write in loop.writes if write.replicas[1] > write.replicas[0]]
        assert loop.is_served(), loop.writes

    check()
