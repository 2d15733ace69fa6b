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
from hvpa.core.values.memo import (
    Basis,
    forget,
    forget_all,
    forget_decision,
    latest,
    remembered,
    remembered_while,
)


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


# --- for as long as time changes nothing -----------------------------------------------------------------------------
class Probe:
    """A function that is remembered: whether it is past noon, and how often that was asked."""

    def __init__(self, of_status: bool = False) -> None:
        self.calls = 0
        self.stamps = False
        remember = remembered_while(lambda who, thing, count: Basis(who, (thing,), (count,)), of_status)
        self._remembered = remember(self._ask)

    def _ask(self, clock: Clock, who: str, thing: Thing, count: int) -> tuple[bool, int]:
        self.calls += 1
        if self.stamps:
            clock.stamp()
        return clock.is_past(NOON), self.calls

    def ask(
        self, who: str = "a", thing: Thing = THING, count: int = 1, now: Clock | None = None
    ) -> tuple[bool, int]:
        return self._remembered(now or Clock(at()), who, thing, count)


def test_it_holds_until_an_answer_of_the_clock_changes() -> None:
    probe, clock = Probe(), Clock(at())
    assert probe.ask(now=clock) == (False, 1)
    assert clock.changes_at == NOON
    later = Clock(NOON - dt.timedelta(microseconds=1))
    assert probe.ask(now=later) == (False, 1)
    assert later.changes_at == NOON, "what is made of it changes no later"
    assert probe.ask(now=Clock(NOON)) == (True, 2)
    assert probe.ask(now=Clock(NOON + dt.timedelta(days=1))) == (True, 2)
    assert probe.ask() == (False, 3), "nor before it was made"


def test_another_object_or_value_is_another_question() -> None:
    probe = Probe()
    asked = [("a", THING, 1), ("a", Thing(), 1), ("a", THING, 2), ("b", THING, 2), ("a", THING, 2)]
    assert [probe.ask(*one)[1] for one in asked] == [1, 2, 3, 4, 3]


def test_what_holds_the_instant_itself_is_not_kept() -> None:
    probe, clock, thing = Probe(), Clock(at()), Thing()
    free = sys.getrefcount(thing)
    probe.ask(thing=thing)
    assert sys.getrefcount(thing) == free + 1
    probe.stamps = True
    assert [probe.ask(thing=thing, count=2, now=clock)[1] for _ in range(2)] == [2, 3]
    assert clock.is_recorded
    assert sys.getrefcount(thing) == free, "nor what was kept before"


def test_the_latest_of_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "HVPAS", 2)
    probe = Probe()
    assert [probe.ask(who)[1] for who in "ababcab"] == [1, 2, 1, 2, 3, 4, 5]


def test_all_can_be_forgotten() -> None:
    probe = Probe()
    probe.ask()
    forget_all()
    assert probe.ask() == (False, 2)


def test_one_that_is_gone_is_forgotten_with_what_it_was_made_of() -> None:
    probe, thing = Probe(), Thing()
    for who in "ab":
        probe.ask(who, thing)
    kept = sys.getrefcount(thing)
    forget("a")
    forget("c")
    assert sys.getrefcount(thing) == kept - 1
    assert [probe.ask(who, thing)[1] for who in "ba"] == [2, 3]


@pytest.mark.parametrize(("of_status", "calls"), [(True, [3, 2]), (False, [1, 2])])
def test_what_was_made_of_a_status_is_forgotten_with_it(of_status: bool, calls: list[int]) -> None:
    probe = Probe(of_status)
    assert [probe.ask(who)[1] for who in "abab"] == [1, 2, 1, 2]
    forget_decision("a")
    forget_decision("c")
    assert [probe.ask(who)[1] for who in "ab"] == calls


def test_without_the_time_the_latest_result_is_kept_for_each() -> None:
    calls: list[str] = []

    @latest(lambda who, thing, count: Basis(who, (thing,), (count,)))
    def look(who: str, thing: Thing, count: int) -> int:
        calls.append(who)
        return len(calls)

    other = Thing()
    asked = [
        ("a", THING, 1),
        ("b", THING, 1),
        ("a", THING, 1),
        ("a", other, 1),
        ("a", other, 2),
        ("b", THING, 1),
    ]
    assert [look(*one) for one in asked] == [1, 2, 1, 3, 4, 2]
    assert look("a", THING, 1) == 5, "only the latest"
