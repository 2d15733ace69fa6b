"""Results that are remembered by the identity of what they were made of."""

from __future__ import annotations

import gc

import pytest

from hvpa.core import memo
from hvpa.core.memo import remembered


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

    with pytest.raises(AssertionError, match="positional"):
        look(thing=Thing())
