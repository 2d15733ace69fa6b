"""Results that are remembered by the identity of what they were made of."""

from __future__ import annotations

import datetime as dt
import gc
import sys
from typing import Final

import pytest

from builders.build import at
from hvpa.core.values import memo
from hvpa.core.values.clock import Clock
from hvpa.core.values.memo import Basis, Memo, forget_all, remembered, remembered_while


class Thing:
    """Something with an identity; all things are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)

    __hash__ = None  # type: ignore[assignment]


THING: Final = Thing()
NOON: Final = at(hours=2)


# --- by identity alone -----------------------------------------------------------------------------------------------
def test_the_same_objects_are_looked_at_once() -> None:
    calls: list[Thing] = []

    @remembered
    def look(thing: Thing, other: Thing) -> int:
        calls.append(thing)
        return len(calls)

    one, other = Thing(), Thing()
    assert [look(one, other), look(one, other), look(other, one), look(one, other)] == [1, 1, 2, 1]
    with pytest.raises(TypeError, match="keyword"):
        look(thing=one, other=other)  # type: ignore[call-arg]


def test_another_object_never_gets_the_result_of_one_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "REMEMBERED", 64)

    @remembered
    def name(thing: list[str]) -> str:
        return thing[0]

    for number in range(memo.REMEMBERED * 2 + 1):
        assert name([str(number)]) == str(number)
        if number % 25 == 0:
            gc.collect()


def test_it_starts_anew_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "REMEMBERED", 2)
    calls: list[Thing] = []

    @remembered
    def look(thing: Thing) -> int:
        calls.append(thing)
        return len(calls)

    first, second, third = Thing(), Thing(), Thing()
    assert [look(first), look(second), look(first)] == [1, 2, 1]
    assert [look(third), look(third), look(first)] == [3, 3, 4]


def test_all_can_be_forgotten() -> None:
    calls: list[Thing] = []

    @remembered
    def look(thing: Thing) -> int:
        calls.append(thing)
        return len(calls)

    assert [look(THING), look(THING)] == [1, 1]
    forget_all()
    assert look(THING) == 2


# --- for as long as time changes nothing -----------------------------------------------------------------------------
class Probe:
    """A function that is remembered: whether it is past noon, and how often that was asked."""

    def __init__(self) -> None:
        self.calls = 0
        self.stamps = False
        self.memo = Memo()
        self._remembered = remembered_while(lambda thing, count: Basis((thing,), (count,)))(self._ask)

    def _ask(self, clock: Clock, thing: Thing, count: int) -> tuple[bool, int]:
        self.calls += 1
        if self.stamps:
            clock.stamp()
        return clock.is_past(NOON), self.calls

    def ask(self, thing: Thing = THING, count: int = 1, clock: Clock | None = None) -> tuple[bool, int]:
        return self._remembered(clock or self.clock(), thing, count)

    def clock(self, now: dt.datetime = at()) -> Clock:  # noqa: B008
        return Clock(now, memo=self.memo)


def test_it_holds_until_an_answer_of_the_clock_changes() -> None:
    probe = Probe()
    clock = probe.clock()
    assert probe.ask(clock=clock) == (False, 1)
    assert clock.changes_at == NOON
    later = probe.clock(NOON - dt.timedelta(microseconds=1))
    assert probe.ask(clock=later) == (False, 1)
    assert later.changes_at == NOON, "what is made of it changes no later"
    assert probe.ask(clock=probe.clock(NOON)) == (True, 2)
    assert probe.ask(clock=probe.clock(NOON + dt.timedelta(days=1))) == (True, 2)
    assert probe.ask() == (False, 3), "nor before it was made"


def test_another_object_or_value_is_another_question_and_only_the_latest_result_is_kept() -> None:
    probe = Probe()
    asked = [(THING, 1), (THING, 1), (Thing(), 1), (THING, 2), (THING, 2), (THING, 1)]
    assert [probe.ask(*question)[1] for question in asked] == [1, 1, 2, 3, 3, 4]


def test_without_a_memo_nothing_is_kept() -> None:
    probe, clock = Probe(), Clock(at())
    assert [probe.ask(clock=clock)[1] for _ in range(2)] == [1, 2]
    assert clock.changes_at == NOON
    assert not probe.memo


def test_what_holds_the_instant_itself_is_not_kept() -> None:
    probe, thing = Probe(), Thing()
    clock, free = probe.clock(), sys.getrefcount(thing)
    probe.ask(thing)
    assert sys.getrefcount(thing) == free + 1
    probe.stamps = True
    assert [probe.ask(thing, 2, clock)[1] for _ in range(2)] == [2, 3]
    assert clock.is_recorded
    assert sys.getrefcount(thing) == free, "nor what was kept before"


def test_functions_share_a_memo_and_a_memo_that_is_gone_leaves_nothing() -> None:
    first, second, thing = Probe(), Probe(), Thing()
    second.memo = first.memo
    free = sys.getrefcount(thing)
    assert [probe.ask(thing)[1] for probe in (first, second, first, second)] == [1, 1, 1, 1]
    assert len(first.memo) == 2
    first.memo = second.memo = Memo()
    assert sys.getrefcount(thing) == free
