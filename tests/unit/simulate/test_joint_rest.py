"""Joint scaling over days with the recommenders' own dynamics: it comes to rest, at one place, and stays there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

from tests.unit.simulate import build
from tests.unit.simulate.joint_build import DAY, GIB, HOUR, Run, Shape, joint, metric, run

pytestmark = pytest.mark.untraced

FIVE = build.constant(5.0)
STARTS = (Shape(1, 1000, GIB), Shape(10, 500, GIB), Shape(2, 4000, GIB), Shape(20, 1000, GIB))
CALLED_FOR = 6.25
"""Cores that the HPA calls for: 5, of which pods are to use no more than 80 percent."""


@dataclass(frozen=True)
class End:
    """Where 5 cores of load end: on the path at `replicas` x `cpu`, or one replica more where it comes from above and
    the demand is inside the overlap."""

    replicas: int
    cpu: int

    def is_at(self, found: Shape) -> bool:
        return found.replicas - self.replicas in (0, 1) and abs(found.cpu - self.cpu) <= found.cpu // 10


ENDS = {30: End(4, 1563), 50: End(3, 2084), 80: End(2, 3125)}


@cache
def found() -> dict[tuple[int, Shape], Run]:
    return {
        (weight, start): run(joint(weight), FIVE, days=3, begin=start) for weight in ENDS for start in STARTS
    }


@pytest.mark.parametrize("weight", ENDS)
def test_a_constant_load_ends_at_one_place_from_wherever_it_began(weight: int) -> None:
    """6.25 cores are called for: 4 x 1.56 at weight 30, 3 x 2.08 at 50, 2 x 3.13 at 80."""
    for start in STARTS:
        end = found()[weight, start].end
        assert ENDS[weight].is_at(end), (start, end)
        assert CALLED_FOR / 1.1 <= end.cores <= CALLED_FOR / 0.9 + end.cpu / 1000


def test_after_it_has_settled_nothing_changes() -> None:
    """It settles in the first hours. What other pods used at first makes memory too large for those that there are: it
    is taken back once, six hours after the first rollout, or when the recommender has begun its second day or third,
    and with it goes a replica that the demand no longer takes."""
    for (weight, start), one in found().items():
        key = weight, start
        assert len(one.steps("Replicas")) <= 3, key
        assert len(one.steps("Requests")) <= 4, key
        assert one.steps("Requests", 2 * HOUR, 6 * HOUR) == [], key
        assert one.steps("Replicas", 2 * HOUR, 6 * HOUR) == [], key
        late = one.changes(6 * HOUR)
        assert len(late) <= 1, key
        assert one.steps("Requests", 6 * HOUR) == late, key
        assert one.changes(49 * HOUR) == [], key
        assert one.result.totals.unmet_core_seconds == 0, key
        assert one.result.totals.ooms == 0, key


def test_sizes_do_not_feed_on_themselves() -> None:
    """No pod is ever larger than its share of the demand takes, whatever the VPA makes of what was before."""
    for (weight, start), one in found().items():
        largest = max(shape.cpu for when, shape in [*one.shapes, (DAY, one.end)] if when > 2 * HOUR)
        assert largest <= ENDS[weight].cpu * 1.1, (weight, start)


@pytest.mark.parametrize("target", [80, "800m"], ids=["Utilization", "AverageValue"])
def test_it_does_not_matter_how_the_hpas_target_is_written(target: int | str) -> None:
    one = run(joint(50, metric(target)), FIVE, days=2)
    assert ENDS[50].is_at(one.end)
    assert one.steps("Replicas", 2 * HOUR) == []


def test_a_vertical_stretch_does_not_grow_on_what_the_hpa_has_yet_to_measure() -> None:
    """While pods are replaced the HPA has no metrics, or those of other pods: not a word of that is demand. Replicas
    that are kept for it must not be made up for by larger pods, which would be measured next."""
    for target in (80, "800m"):
        for start in STARTS:
            one = run(joint(100, metric(target)), FIVE, days=0.2, begin=start)
            # With an absolute target, the pods that are found say what it is meant for.
            most = 25_000 if (target, start.cpu) == ("800m", 4000) else 10_001
            assert max(shape.cpu for _, shape in one.shapes) <= most, (target, start)


def test_a_step_of_load_settles_in_a_few_changes() -> None:
    """Replicas come at once, sizes within the days that the usual demand takes to follow: in two rollouts."""
    one = run(joint(50), build.step(5.0, DAY, 10.0), days=6, begin=Shape(4, 1500, GIB))
    assert one.steps("Replicas", DAY)[0] <= DAY + 120
    assert len(one.steps("Replicas", DAY)) <= 3
    assert len(one.steps("Requests", DAY)) == 2
    assert one.changes(5 * DAY) == []
    assert one.end.cpu > one.at(DAY).cpu
    assert one.end.replicas > one.at(DAY).replicas
    assert one.result.totals.unmet_core_seconds == 0


@pytest.mark.parametrize("weight", [30, 50, 80])
def test_a_load_that_comes_back_takes_the_workload_back(weight: int) -> None:
    """Two hours of twice the load are a matter of replicas; then it is where it was."""
    load = build.Shape(lambda at: 10.0 if DAY <= at < DAY + 2 * HOUR else 5.0)
    one = run(joint(weight), load, days=2, begin=Shape(4, 1500, GIB))
    before, peak = one.at(DAY - 60), one.at(DAY + HOUR)
    assert peak.replicas > before.replicas
    assert abs(peak.cpu - before.cpu) <= before.cpu // 10
    assert one.end.replicas - before.replicas in (0, 1)
    assert abs(one.end.cpu - before.cpu) <= before.cpu // 10
    assert len(one.steps("Replicas", DAY)) <= 3
    # Two or three large pods share all of the memory: what the VPA remembers of a peak is much for each of them.
    assert len(one.steps("Requests", DAY)) <= (4 if weight == 80 else 0)
