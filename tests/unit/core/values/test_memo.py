"""Results that are remembered by the identity of what they were made of."""

from __future__ import annotations

import datetime as dt
import gc
import sys

import pytest

from builders.build import NOW
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


def test_the_same_object_is_looked_at_once() -> None:
    calls: list[Thing] = []

    @remembered
    def look(thing: Thing, other: Thing) -> int:
        calls.append(thing)
        return len(calls)

    one, other = Thing(), Thing()
    assert [look(one, other), look(one, other), look(other, one), look(one, other)] == [1, 1, 2, 1]


def test_another_object_never_gets_the_result_of_one_that_is_gone() -> None:
    @remembered
    def name(thing: list[str]) -> str:
        return thing[0]

    for number in range(memo.REMEMBERED * 2 + 1):
        assert name([str(number)]) == str(number)
        if number % 200 == 0:
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


def test_arguments_are_positional() -> None:
    @remembered
    def look(thing: Thing) -> Thing:
        return thing

    with pytest.raises(TypeError, match="keyword"):
        look(thing=Thing())  # type: ignore[call-arg]


# --- for as long as time changes nothing ------------------------------------------------------------------------------
class Probe:
    """A function that is remembered: says who is past noon and how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0
        self.stamps = False
        remember = remembered_while(lambda who, thing, count: Basis(who, (thing,), (count,)))
        self.ask = remember(self._ask)

    def _ask(self, present: Clock, who: str, thing: Thing, count: int) -> tuple[bool, int]:
        self.calls += 1
        if self.stamps:
            present.stamp()
        return present.is_past(NOON), self.calls


NOON = NOW + dt.timedelta(hours=2)
THING = Thing()


def test_it_holds_until_an_answer_of_the_present_changes() -> None:
    clock = Probe()
    present = Clock(NOW)
    assert clock.ask(present, "a", THING, 1) == (False, 1)
    assert present.changes_at == NOON
    later = Clock(NOON - dt.timedelta(microseconds=1))
    assert clock.ask(later, "a", THING, 1) == (False, 1)
    assert later.changes_at == NOON, "what is made of it changes no later"
    assert clock.ask(Clock(NOON), "a", THING, 1) == (True, 2)
    assert clock.ask(Clock(NOON + dt.timedelta(days=1)), "a", THING, 1) == (True, 2)
    assert clock.ask(Clock(NOW), "a", THING, 1) == (False, 3), "nor before it was made"


def test_another_object_or_value_is_another_question() -> None:
    clock = Probe()
    asked = [("a", THING, 1), ("a", Thing(), 1), ("a", THING, 2), ("b", THING, 2), ("a", THING, 2)]
    assert [clock.ask(Clock(NOW), *one)[1] for one in asked] == [1, 2, 3, 4, 3]


def test_what_holds_the_instant_itself_is_not_kept() -> None:
    calls: list[dt.datetime] = []

    @remembered_while(lambda: Basis("one", ()))
    def stamp(present: Clock) -> dt.datetime:
        calls.append(present.stamp())
        return calls[-1]

    present = Clock(NOW)
    assert [stamp(present), stamp(present)] == [NOW, NOW]
    assert len(calls) == 2
    assert present.is_recorded


def test_the_latest_of_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "HVPAS", 2)
    clock = Probe()
    assert [clock.ask(Clock(NOW), who, THING, 1)[1] for who in "ababcab"] == [1, 2, 1, 2, 3, 4, 4 + 1]


def test_all_can_be_forgotten() -> None:
    clock = Probe()
    clock.ask(Clock(NOW), "a", THING, 1)
    forget_all()
    assert clock.ask(Clock(NOW), "a", THING, 1) == (False, 2)


def test_one_that_is_gone_is_forgotten_with_what_it_was_made_of() -> None:
    clock, thing = Probe(), Thing()
    for who in "ab":
        clock.ask(Clock(NOW), who, thing, 1)
    kept = sys.getrefcount(thing)
    forget("a")
    forget("c")
    assert sys.getrefcount(thing) == kept - 1
    assert [clock.ask(Clock(NOW), who, thing, 1)[1] for who in "ba"] == [2, 3]


@pytest.mark.parametrize(("of_status", "calls"), [(True, ["a", "b", "a"]), (False, ["a", "b"])])
def test_what_was_made_of_a_status_is_forgotten_with_it(of_status: bool, calls: list[str]) -> None:
    made: list[str] = []

    @remembered_while(lambda who: Basis(who, ()), of_status=of_status)
    def judged(present: Clock, who: str) -> str:
        made.append(who)
        return who

    for who in "abab":
        assert judged(Clock(NOW), who) == who
    forget_decision("a")
    forget_decision("c")
    assert [judged(Clock(NOW), who) for who in "ab"] == ["a", "b"]
    assert made == calls


def test_what_is_not_kept_any_more_is_dropped() -> None:
    clock, thing = Probe(), Thing()
    free = sys.getrefcount(thing)
    clock.ask(Clock(NOW), "a", thing, 1)
    assert sys.getrefcount(thing) == free + 1
    clock.stamps = True
    clock.ask(Clock(NOW), "a", thing, 2)
    assert sys.getrefcount(thing) == free


# --- without the present ----------------------------------------------------------------------------------------------
def test_the_latest_result_is_kept_for_each() -> None:
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
