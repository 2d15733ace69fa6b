"""Somebody else sets back what we set (DESIGN 8)."""

from __future__ import annotations

import datetime as dt

import pytest

from builders import build
from builders.build import NOW, at
from hvpa.api.hvpa.status import SetBack
from hvpa.core.gates.contest import judge_contest, wait_of
from hvpa.core.values.clock import Clock
from hvpa.core.workload.managers import manager_of, replicas_set_at


def minutes(count: int) -> dt.timedelta:
    return dt.timedelta(minutes=count)


def test_what_stands_is_not_contested() -> None:
    contest = judge_contest(False, None, at(minutes=-1), Clock(NOW))
    assert contest.until(up=True) is None
    assert contest.after_step(NOW) is None
    before = SetBack(count=1, time=at(minutes=-1))
    assert judge_contest(False, before, at(minutes=-1), Clock(NOW)).after_step(NOW) == before


def test_the_first_time_it_is_made_again_at_once() -> None:
    contest = judge_contest(True, None, at(minutes=-1), Clock(NOW))
    assert contest.since is None
    assert contest.after_step(NOW) == SetBack(count=1, time=NOW)


@pytest.mark.parametrize("later", [0, 1, 4, 6, 59])
def test_a_second_time_within_an_hour_the_axis_waits(later: int) -> None:
    made_again = at(minutes=-later)
    contest = judge_contest(True, SetBack(count=1, time=made_again), made_again, Clock(NOW))
    for up, wait in ((True, 1), (False, 5)):
        until = contest.until(up=up)
        assert until is not None
        assert NOW < until <= at(minutes=wait, milliseconds=1)
    assert contest.record is not None
    assert contest.record.count == 2


def test_after_an_hour_it_is_a_first_time_again() -> None:
    made_again = at(hours=-1)
    contest = judge_contest(True, SetBack(count=3, time=made_again), made_again, Clock(NOW))
    assert contest.since is None
    assert contest.after_step(NOW) == SetBack(count=1, time=NOW)


def test_the_wait_goes_on_to_its_end_and_then_the_change_is_made_again() -> None:
    made_again = at(minutes=-10)
    found = SetBack(count=2, time=at(minutes=-4))
    waiting = judge_contest(True, found, made_again, Clock(NOW))
    assert (waiting.until(up=True), waiting.until(up=False)) == (at(minutes=-3), at(minutes=1))
    assert waiting.record == found
    over = judge_contest(True, found, made_again, Clock(at(minutes=1)))
    assert over.after_step(at(minutes=1)) == SetBack(count=2, time=at(minutes=1))


def test_it_goes_on_when_the_field_stays() -> None:
    found = SetBack(count=2, time=at(minutes=-1))
    assert judge_contest(False, found, at(minutes=-3), Clock(NOW)).since is None


def test_waits_grow_to_an_hour() -> None:
    counts = (2, 3, 4, 5, 6, 7, 8, 99)
    assert [wait_of(count, up=False) for count in counts] == [
        minutes(wait) for wait in (5, 10, 20, 40, 60, 60, 60, 60)
    ]
    assert [wait_of(count, up=True) for count in counts] == [
        minutes(wait) for wait in (1, 2, 4, 8, 16, 32, 60, 60)
    ]


def test_a_record_of_a_wrong_clock_counts_as_none() -> None:
    contest = judge_contest(True, SetBack(count=4, time=at(hours=2)), at(minutes=-1), Clock(NOW))
    assert contest.since is None
    assert contest.count == 1


def test_found_at_the_instant_of_the_step_it_is_still_told_apart() -> None:
    first = judge_contest(True, SetBack(count=1, time=NOW), NOW, Clock(NOW))
    assert first.record is not None
    assert first.record.count == 2
    again = judge_contest(True, first.record, NOW, Clock(NOW))
    assert again.record == first.record
    assert again.since == first.since


def test_the_manager_that_set_the_field_last_is_named() -> None:
    def entry(manager: str, when: str | None, fields: dict[str, object]) -> dict[str, object]:
        return {"manager": manager, **({"time": when} if when else {}), "fieldsV1": {"f:spec": fields}}

    replicas: dict[str, object] = {"f:replicas": {}}
    resources: dict[str, object] = {
        "f:template": {
            "f:spec": {"f:containers": {'k:{"name":"app"}': {"f:resources": {"f:requests": {"f:cpu": {}}}}}}
        }
    }
    image: dict[str, object] = {
        "f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}
    }
    entries = [
        entry("helm", "2026-11-21T09:00:00Z", replicas | resources),
        entry("kubectl-edit", "2026-11-21T09:30:00Z", resources),
        entry("kustomize", None, replicas),
        entry("kubectl-set", "2026-11-21T09:45:00Z", image),
        entry("other", "2026-11-21T09:46:00Z", {}),
        entry("hvpa", "2026-11-21T09:50:00Z", replicas | resources),
    ]
    target = build.workload(change={"metadata": {"managedFields": entries}})
    assert manager_of(target, "horizontal") == "helm"
    assert manager_of(target, "vertical") == "kubectl-edit"
    assert manager_of(build.workload(), "vertical") == "an unknown client"
    assert replicas_set_at(target) == dt.datetime(2026, 11, 21, 9, tzinfo=dt.UTC)
    assert replicas_set_at(build.workload()) is None
