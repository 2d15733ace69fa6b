"""The count never runs past what serves the load, whatever pods have that their template does not, and while pods are
replaced, until the HPA has measured the new ones (DESIGN 5.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import BLENDS, Case, cases, examples, plain
from tests.unit.closed_loop.loads import DAY, HOUR, Load
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import MIB, Shape, Use

pytestmark = pytest.mark.long


def check_count(loop: Loop) -> None:
    """No step out leads further than one replica past what serves the load."""
    past = [
        write
        for write in loop.writes
        if write.replicas[1] > write.replicas[0] and write.replicas[1] > write.serves + 1
    ]
    assert past == [], loop.writes


def ups_and_downs(load: int) -> tuple[Load, ...]:
    return (
        loads.constant(load),
        loads.drift(load),
        loads.wave(load, 30.0),
        loads.step(load, 2 * load, 3 * HOUR, 9 * HOUR),
        loads.noise(load, 5.0),
    )


@pytest.mark.parametrize("blend", BLENDS)
def test_pods_like_their_template_are_never_too_many(blend: str) -> None:
    @examples(3)
    @given(cases(blend, places=("template",)), st.integers(0, 4))
    def check(case: Case, which: int) -> None:
        check_count(case.loop(ups_and_downs(case.load)[which]).run(DAY))

    check()


@pytest.mark.parametrize("blend", BLENDS)
def test_pods_that_differ_from_their_template_are_never_too_many(blend: str) -> None:
    @examples(4)
    @given(cases(blend, places=("native", "injected")), st.integers(0, 4))
    def check(case: Case, which: int) -> None:
        check_count(case.loop(ups_and_downs(case.load)[which]).run(DAY))

    check()


UNLIKE_THEIR_TEMPLATE = {
    "an injected sidecar": Shape((Use(), Use("proxy", 500, share=0.0, base=250, place="injected")), 4),
    "a native sidecar": Shape((Use(), Use("proxy", 500, share=0.0, base=250, place="native")), 4),
    "requests of the pod as a whole": Shape((Use(),), 4, whole={"cpu": "2"}),
    "requests that a LimitRange sets": Shape((Use(cpu=None), Use("proxy", cpu=None, share=0.1)), 4),
}


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("weight", [30, 50, 100])
@pytest.mark.parametrize("which", UNLIKE_THEIR_TEMPLATE)
def test_a_workload_at_its_target_is_not_scaled_out(which: str, weight: float, blend: str) -> None:
    """The HPA alone would leave its four replicas as they are."""
    shape = UNLIKE_THEIR_TEMPLATE[which]
    case = Case(shape, blend, weight, "Utilization", 50, 0)
    loop = case.loop(loads.constant(0))
    (target,) = loop.targets()
    work = target.capacity(loop.deployment.sample()) - target.base(shape)
    loop = case.loop(loads.constant(4 * work / target.share(shape))).run(DAY)
    assert all(write.replicas[1] <= 4 + 1 for write in loop.writes), loop.writes
    check_count(loop)


def one_pod(weight: float) -> Loop:
    """A pod of one core and much memory under half a core of load, of which its HPA wants 60 percent to be used."""
    use = Use("app", 1000, 256 * MIB, memory_base=150 * MIB, memory_share=2048 * MIB)
    case = plain(use, blend="Trajectory", weight=weight, percent=60, load=500, replicas=1)
    return case.loop(loads.constant(500)).run(8 * HOUR)


@pytest.mark.parametrize("weight", [30, 50])
def test_a_pod_that_is_replaced_is_not_scaled_out_until_it_is_measured(weight: float) -> None:
    past = [
        write
        for write in one_pod(weight).writes
        if not write.is_vertical and write.replicas[1] > write.serves + 1
    ]
    assert past == []


def test_pods_that_take_the_place_of_fewer_are_not_measured_by_the_fewer() -> None:
    assert max(write.replicas[1] for write in one_pod(30).writes) <= 6
