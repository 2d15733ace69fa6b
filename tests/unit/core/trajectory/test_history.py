"""The memory of a joint decision (DESIGN 5.4): the usual demand."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders import build
from builders.build import GIB, NOW, at, stamp
from hvpa.api.hvpa.status import UsualDemand, VerticalAxis, to_wire
from hvpa.api.objects.read_models import Workload
from hvpa.core import Decision, Objects
from hvpa.core.model import LAST_APPLIED
from tests.unit.core.trajectory.jointly import app, external, one_core, requests, state, value, view

ONE_CPU = {"app": {"cpu": "1"}}
NO_HPA: dict[str, Any] = {
    "hpa": {"deploy": False},
    "weightBasedScalingIntervals": None,
    "trajectory": {"intervals": [{"maxReplicas": 10, "maxResources": {"cpu": "9"}}]},
}
"""A path that is written out: without one and without an HPA, sizes follow the VPA alone."""


def axis(decision: Decision) -> VerticalAxis:
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    return decision.status.axes.vertical


def usual(used: str, before: Decision | None = None, now: dt.datetime = NOW, **rest: Any) -> Decision:
    """A decision on two pods of which each uses `used`, after an earlier one."""
    status = None if before is None else to_wire(before.status)
    rest = {"readings": [value("cpu", "1", used)], "targets": ONE_CPU, **rest}
    return build.decided(state(2, [app("1")], status=status, desired=2, **rest), now)


def demand(decision: Decision) -> UsualDemand:
    (usual_demand,) = axis(decision).usual_demand
    return usual_demand


# --- what is usual ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("created", "mean"),
    [
        (None, 2000),
        (at(days=-20), 2000),
        pytest.param(at(minutes=-30), 1496, id="half an hour of the VPA's, the rest of an hour of now"),
        pytest.param(at(), 1000, id="a VPA that has just been made"),
    ],
)
def test_at_first_sight_the_mean_is_what_the_vpa_has_seen(created: dt.datetime | None, mean: int) -> None:
    metadata = {"creationTimestamp": None if created is None else stamp(created)}
    usual_demand = demand(usual("500m", vpa={"metadata": metadata}))
    assert (usual_demand.container, usual_demand.resource, usual_demand.present, usual_demand.time) == (
        "app",
        "cpu",
        1000,
        NOW,
    )
    assert usual_demand.mean == pytest.approx(mean, abs=3)
    assert usual_demand.weight >= 3600


def test_a_measurement_stands_until_another_differs_by_a_fifth() -> None:
    first = usual("1")
    for used in ("1200m", "800m", "1"):
        again = usual(used, first, at(hours=3))
        assert axis(again).usual_demand == axis(first).usual_demand
    for used, present in (("1201m", 2402), ("799m", 1598)):
        moved = usual(used, first, at(hours=3))
        assert (demand(moved).present, demand(moved).time) == (present, at(hours=3))
        assert demand(moved).mean == 2000  # until then the first one held


def test_and_for_five_minutes_at_least() -> None:
    first = usual("1")
    soon = usual("2", first, at(minutes=4))
    assert demand(soon) == demand(first)
    assert soon.recheck_after == dt.timedelta(minutes=1)
    assert demand(usual("2", first, at(minutes=5))).present == 4000


def test_the_mean_moves_to_what_is_measured_within_days_and_nothing_is_written_meanwhile() -> None:
    first = usual("500m")  # the VPA says 2000m, and 1000m are measured
    means = []
    for days in (0, 1, 2, 20):
        later = usual("500m", first, at(days=days))
        assert demand(later) == demand(first)
        means.append(view(later).items[0].usual)
    assert means == [
        2000,
        pytest.approx(1500, abs=15),
        pytest.approx(1250, abs=13),
        pytest.approx(1000, abs=10),
    ]


@pytest.mark.parametrize(("seconds", "present"), [(-59, 2000), (-60, 4000)])
def test_what_is_measured_of_another_number_of_pods_is_no_sample(seconds: float, present: int) -> None:
    """Soon after a step of ours, or while more than a tenth of the pods are new, the HPA's mean is of other pods."""
    status = to_wire(usual("1").status)
    now = at(hours=3)

    def after(pods: list[Any] | None = None, **axes: Any) -> UsualDemand:
        status_after = build.merged(status, {"axes": axes})
        objects = state(
            2, [app("1")], [value("cpu", "1", "2")], ONE_CPU, status=status_after, desired=2, pods=pods
        )
        return demand(build.decided(objects, now))

    since = stamp(now + dt.timedelta(seconds=seconds))
    assert after(horizontal={"lastScaleTime": since}).present == present
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    young = build.pod("web-1", change={"status": {"conditions": [ready]}}, containers=[app("1")])
    assert after([build.pod("web-0", containers=[app("1")]), young]).present == present


def test_replicas_are_not_counted_where_the_hpa_measures() -> None:
    assert axis(usual("1")).usual_replicas is None


def test_what_only_the_vpa_sees_is_not_remembered() -> None:
    only_vpa = usual("1", spec={**NO_HPA, "trajectory": None})
    assert (axis(only_vpa).usual_demand, axis(only_vpa).usual_replicas) == ((), None)
    queue = usual("1", readings=[external("10", "15")])
    assert axis(queue).usual_demand == ()


def test_it_looks_again_when_the_mean_takes_its_next_step() -> None:
    first = usual("500m")
    assert first.recheck_after is not None
    assert dt.timedelta(minutes=5) < first.recheck_after < dt.timedelta(hours=1)
    assert usual("1").recheck_after is None


def test_what_a_silent_hpa_reported_still_counts() -> None:
    first = usual("500m")
    silent = usual("500m", first, at(days=1), readings=[])
    assert axis(silent).usual_demand == axis(first).usual_demand
    assert view(silent).items[0].usual == pytest.approx(1500, abs=15)


def test_of_two_metrics_the_one_without_a_value_keeps_its_mean() -> None:
    both = [app("1", "1Gi")]
    targets = {"app": {"cpu": "1", "memory": "1Gi"}}

    def means(memory: str | None, status: Any = None) -> list[tuple[str, float]]:
        readings = [value("cpu", "1", "1"), value("memory", "1Gi", memory)]
        decision = build.decided(state(2, both, readings, targets, status=status, desired=2), at(hours=1))
        statuses.append(to_wire(decision.status))
        return [(demand.resource, demand.mean) for demand in axis(decision).usual_demand]

    statuses: list[Any] = []
    assert means("1Gi") == [("cpu", 2000), ("memory", 2 * GIB)]
    assert means(None, statuses[0]) == [("cpu", 2000), ("memory", 2 * GIB)]


def test_what_the_vpa_omits_for_a_while_is_kept_until_its_container_is_gone() -> None:
    status = to_wire(usual("1").status)

    def kept(container: str, target: str) -> list[tuple[str, str, float]]:
        readings = [value("cpu", "1", "1"), value("memory", "1Gi", "1Gi")]
        made, targets = [app("1", "1Gi", name=container)], {container: {target: "1Gi"}}
        later = build.decided(state(2, made, readings, targets, status=status), at(hours=1))
        return [(demand.container, demand.resource, demand.mean) for demand in axis(later).usual_demand]

    assert kept("app", "memory") == [("app", "cpu", 2000), ("app", "memory", 2 * GIB)]
    assert kept("new", "memory") == [("new", "memory", 2 * GIB)]


def test_where_nothing_is_measured_replicas_are_remembered() -> None:
    vertical_axis = axis(usual("1", spec=NO_HPA))
    assert vertical_axis.usual_demand == ()
    assert vertical_axis.usual_replicas is not None
    assert (
        vertical_axis.usual_replicas.mean,
        vertical_axis.usual_replicas.replicas,
        vertical_axis.usual_replicas.time,
    ) == (
        2,
        2,
        NOW,
    )
    assert vertical_axis.usual_replicas.weight == pytest.approx(2 * 86_400 / 0.6931, rel=0.01)


def test_replicas_count_by_how_long_and_how_many_they_were() -> None:
    first = usual("1", spec=NO_HPA)
    status = to_wire(first.status)
    same = build.decided(state(2, [app("1")], [], ONE_CPU, NO_HPA, status=status), at(days=1))
    assert axis(same).usual_replicas == axis(first).usual_replicas
    more = build.decided(state(6, [app("1")], [], ONE_CPU, NO_HPA, status=status), at(days=1))
    counted = axis(more).usual_replicas
    assert counted is not None
    assert (counted.mean, counted.replicas, counted.time) == (2, 6, at(days=1))
    later = build.decided(state(6, [app("1")], [], ONE_CPU, NO_HPA, status=to_wire(more.status)), at(days=2))
    assert axis(later).usual_replicas == counted
    # a day later the old samples weigh half, and six pods have shown as much in a day as two in three days:
    # (2 x 2 x 0.5 + 6 x 6 x 0.5) / (2 x 0.5 + 6 x 0.5) = 5 replicas in the mean, of 1000m each
    assert view(later).items[0].usual == pytest.approx(5000, rel=0.02)


def test_without_slots_there_is_no_usual_demand_to_remember() -> None:
    decision = build.decided(state(2, [app("1")], [value("cpu", "1", "1")]))
    assert (axis(decision).usual_demand, axis(decision).usual_replicas) == ((), None)


# --- restarts --------------------------------------------------------------------------------------------------------
def changed() -> tuple[Objects, Decision, Objects]:
    """A decision that changes both axes, and the objects before and after it."""
    objects = one_core(1, "5", "5")
    decision = build.decided(objects)
    assert decision.workload_patch is not None
    return objects, decision, build.apply(objects, decision)


def test_what_is_remembered_survives_the_status_and_its_text() -> None:
    _, decision, after = changed()
    assert after.hvpa.status.axes == decision.status.axes
    assert to_wire(after.hvpa.status) == to_wire(decision.status)
    again = build.decided(after, at(seconds=1))
    assert axis(again).base == {"app": {"cpu": "1"}}
    assert axis(again).usual_demand == axis(decision).usual_demand


def test_a_status_that_was_not_written_is_in_the_annotation() -> None:
    objects, decision, after = changed()
    crashed = replace(after, hvpa=objects.hvpa)
    again = build.decided(crashed, at(seconds=1))
    assert axis(again) == axis(build.decided(after, at(seconds=1))) == axis(decision)
    assert requests(again) == {"cpu": 1667}


def test_an_annotation_that_was_lost_is_in_the_status() -> None:
    _, decision, after = changed()
    document = msgspec.to_builtins(after.workload)
    assert json.loads(document["metadata"]["annotations"].pop(LAST_APPLIED))["vertical"]["base"]
    bare = replace(after, workload=msgspec.convert(document, Workload))
    assert axis(build.decided(bare, at(seconds=1))) == axis(decision)


def test_where_both_are_lost_it_is_as_at_first_sight() -> None:
    objects, _, after = changed()
    document = msgspec.to_builtins(after.workload)
    document["metadata"]["annotations"].clear()
    lost = replace(after, hvpa=objects.hvpa, workload=msgspec.convert(document, Workload))
    vertical_axis = axis(build.decided(lost, at(seconds=1)))
    assert vertical_axis.base == {"app": {"cpu": "1667m"}}
    assert vertical_axis.usual_demand[0].time == at(seconds=1)
