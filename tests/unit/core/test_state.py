"""What earlier decisions left behind (DESIGN 8, the end of 9)."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any, Final

import pytest

from builders.build import NOW, at
from hvpa.api.hvpa.status import (
    AppliedReplicas,
    HorizontalAxis,
    HvpaStatus,
    Pending,
    ScaleReplicasCorrection,
    VerticalAxis,
)
from hvpa.core.state import annotation_text, held_until, recorded_axes, step_time
from hvpa.core.values.clock import Clock

OLD, NEW = at(minutes=-20), at(minutes=-10)


def axes(horizontal: dt.datetime | None, vertical: dt.datetime | None, replicas: int) -> dict[str, Any]:
    times = [{"lastScaleTime": time.isoformat() if time else None} for time in (horizontal, vertical)]
    applied_from = {"replicas": replicas, "desired": 9, "weight": 50}
    return {"horizontal": {**times[0], "appliedFrom": applied_from}, "vertical": times[1]}


def read(known: HvpaStatus, annotation: str | None) -> tuple[HorizontalAxis, VerticalAxis]:
    return recorded_axes(known, annotation, Clock(NOW))


def status(**fields: Any) -> HvpaStatus:
    return HvpaStatus.model_validate(fields)


def test_nothing_recorded_is_nothing() -> None:
    assert read(HvpaStatus(), None) == (HorizontalAxis(), VerticalAxis())


NEWER: Final = {
    "the annotation is newer: the status was never written": (OLD, NEW, "annotation"),
    "the status is newer: the annotation was set back": (NEW, OLD, "status"),
    "the same: the status, which knows more": (NEW, NEW, "status"),
    "the status knows no time": (None, OLD, "annotation"),
    "the annotation knows no time": (OLD, None, "status"),
    "the status is from a wrong clock": (at(hours=1), OLD, "annotation"),
    "the annotation is from a wrong clock": (OLD, at(hours=1), "status"),
    "both are, and the annotation is newer": (at(hours=1), at(hours=2), "annotation"),
    "both are, and the status is newer": (at(hours=2), at(hours=1), "status"),
    "a wrong clock's time is newer than none": (None, at(hours=1), "annotation"),
}


@pytest.mark.parametrize(("in_status", "in_annotation", "expected"), NEWER.values(), ids=NEWER)
def test_the_newer_of_annotation_and_status_counts(
    in_status: dt.datetime | None, in_annotation: dt.datetime | None, expected: str
) -> None:
    known = status(axes=axes(in_status, in_status, 1))
    horizontal, vertical = read(known, json.dumps(axes(in_annotation, in_annotation, 2)))
    assert horizontal.applied_from is not None
    assert horizontal.applied_from.replicas == {"status": 1, "annotation": 2}[expected]
    assert vertical.last_scale_time == {"status": in_status, "annotation": in_annotation}[expected]


def test_each_axis_is_judged_by_itself() -> None:
    judged_axes = read(status(axes=axes(NEW, OLD, 1)), json.dumps(axes(OLD, NEW, 2)))
    assert [axis.last_scale_time for axis in judged_axes] == [NEW, NEW]


def test_only_one_of_them_is_enough() -> None:
    assert read(status(axes=axes(OLD, OLD, 1)), None)[0].last_scale_time == OLD
    assert read(HvpaStatus(), json.dumps(axes(OLD, OLD, 2)))[1].last_scale_time == OLD
    assert read(status(axes=axes(OLD, OLD, 1)), "{}")[0].last_scale_time == OLD


@pytest.mark.parametrize("text", ["", "nonsense", "[1]", '{"horizontal": 7}'])
def test_an_annotation_that_cannot_be_read_counts_as_absent(text: str) -> None:
    assert read(status(axes=axes(OLD, OLD, 1)), text)[0].last_scale_time == OLD


def test_gardeners_time_counts_for_all_directions_where_nothing_else_is_known() -> None:
    legacy = status(lastScaling={"lastScaleTime": OLD.isoformat()})
    assert [axis.last_scale_time for axis in read(legacy, None)] == [OLD, OLD]
    assert read(legacy, "nonsense")[0].last_scale_time == OLD
    both = status(lastScaling={"lastScaleTime": OLD.isoformat()}, axes={})
    assert [axis.last_scale_time for axis in read(both, None)] == [None, None]
    assert read(legacy, json.dumps(axes(NEW, None, 2)))[1].last_scale_time is None


def test_the_annotation_holds_what_must_survive_and_nothing_else() -> None:
    horizontal = HorizontalAxis(
        last_scale_time=NOW,
        applied_from=AppliedReplicas(replicas=5, desired=6, weight=60),
        correction=ScaleReplicasCorrection(hpa_status="7", count=1),
    )
    waits = Pending(container="app", resource="cpu", direction="up", since=NOW)
    vertical = VerticalAxis(last_scale_time=OLD, pending=(waits,))
    text = annotation_text(horizontal, vertical)
    assert json.loads(text) == {
        "horizontal": {
            "lastScaleTime": "2026-11-21T10:00:00Z",
            "appliedFrom": {"replicas": 5, "weight": 60.0, "desired": 6},
        },
        "vertical": {"lastScaleTime": "2026-11-21T09:40:00Z"},
    }
    known = status(axes={"horizontal": {"correction": {"hpaStatus": "8", "count": 2}}})
    back = read(known, text)
    assert back[0] == horizontal.model_copy(
        update={"correction": ScaleReplicasCorrection(hpa_status="8", count=2)}
    )
    assert back[1] == vertical.model_copy(update={"pending": ()})


def test_stabilization_window_holds_the_next_step_for_the_duration() -> None:
    assert held_until(None, dt.timedelta(hours=1), NOW) is None
    assert held_until(at(minutes=-59), dt.timedelta(hours=1), NOW) == at(minutes=1)
    assert held_until(at(hours=-1), dt.timedelta(hours=1), NOW) is None
    assert held_until(at(minutes=2), dt.timedelta(hours=1), NOW) is None


def test_a_later_step_has_a_later_time_whatever_the_clocks_say() -> None:
    assert step_time(None, Clock(NOW)) == NOW
    assert step_time(at(minutes=-1), Clock(NOW)) == NOW
    assert step_time(at(seconds=30), Clock(NOW)) == at(seconds=30, microseconds=1)
    assert step_time(at(hours=1), Clock(NOW)) == NOW, "a clock that was wrong does not count"
