"""A board: whoever follows it gets all of it, then what changes, and never what is out of date."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.dashboard import board as module
from hvpa_lab.dashboard.board import Board


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE", 0)


async def test_a_follower_gets_all_and_then_each_change() -> None:
    board = Board()
    board.put("a", 1)
    board.put("b", 2)
    async with aclosing(board.follow()) as changes:
        assert await anext(changes) == {"a": 1, "b": 2}
        assert board.followers == 1
        board.put("a", 3)
        board.put("c", 4)
        assert await anext(changes) == {"a": 3, "c": 4}
        board.put("c", None)
        assert await anext(changes) == {"c": None}
    assert board.followers == 0


async def test_what_stays_the_same_is_no_change() -> None:
    board = Board()
    board.put("a", {"x": 1})
    async with aclosing(board.follow()) as changes:
        await anext(changes)
        board.put("a", {"x": 1})
        board.put("gone", None)
        board.put("b", 1)
        assert await anext(changes) == {"b": 1}


async def test_a_slow_follower_gets_the_newest_content_once() -> None:
    board = Board()
    async with aclosing(board.follow()) as changes:
        assert await anext(changes) == {}
        for number in range(5):
            board.put("a", number)
        assert await anext(changes) == {"a": 4}


async def test_what_is_gone_is_not_shown_to_a_new_follower() -> None:
    board = Board()
    board.put("a", 1)
    async with aclosing(board.follow()) as changes:
        await anext(changes)
        board.put("a", None)
        async with aclosing(board.follow()) as others:
            assert await anext(others) == {}
    assert board.get("a") is None


async def test_a_follower_that_wants_some_parts_gets_these() -> None:
    board = Board()
    board.put("x/a", 1)
    board.put("y/a", 2)
    async with aclosing(board.follow(lambda name: name.startswith("x/"))) as changes:
        assert await anext(changes) == {"x/a": 1}
        board.put("y/a", 3)
        board.put("x/a", 4)
        assert await anext(changes) == {"x/a": 4}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 3), st.booleans())))
def test_what_a_follower_has_put_together_is_the_board(steps: list[tuple[str, int | None, bool]]) -> None:
    """Whenever it reads (the third of each step), and whatever was put before."""

    async def run() -> None:
        board, known = Board(), dict[str, int | None]()

        async def read(changes: AsyncIterator[dict[str, int | None]]) -> None:
            known.update(await anext(changes))
            assert [known.get(name) for name in "abc"] == [board.get(name) for name in "abc"]

        async with aclosing(board.follow()) as changes:
            await read(changes)
            for number, (name, content, reads) in enumerate(steps):
                board.put(name, content)
                if reads:
                    board.put("always another", number)
                    await read(changes)

    asyncio.run(run())
