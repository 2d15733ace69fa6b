"""While pods are replaced, and until the HPA has measured the new ones, the count follows no guess (DESIGN 5.4)."""

from __future__ import annotations

import pytest

from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import plain
from tests.unit.closed_loop.loads import HOUR
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import MIB, Use

pytestmark = pytest.mark.untraced


def one_pod(weight: float) -> Loop:
    """A pod of one core and much memory under half a core of load, of which its HPA wants 60 percent to be used."""
    use = Use("app", 1000, 256 * MIB, memory_base=150 * MIB, memory_share=2048 * MIB)
    case = plain(use, blend="Trajectory", weight=weight, percent=60, load=500, replicas=1)
    return case.loop(loads.constant(500)).run(8 * HOUR)


@pytest.mark.parametrize("weight", [30, 50])
def test_a_pod_that_is_replaced_is_not_scaled_out_until_it_is_measured(weight: float) -> None:
    past = [one for one in one_pod(weight).writes if not one.is_vertical and one.replicas[1] > one.serves + 1]
    assert past == []


def test_pods_that_take_the_place_of_fewer_are_not_measured_by_the_fewer() -> None:
    assert max(one.replicas[1] for one in one_pod(30).writes) <= 6
