"""The content of a page, as named parts. A follower first gets all parts, then each part that changes.

A slow follower misses intermediate content and gets the newest. Followers cost no memory, because
nothing is stored for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from hvpa.cli.output import Json

SETTLE: Final = 0.2
"""Seconds to wait for further changes before sending a change."""


class Board:
    """Parts by name, each with its newest content: JSON, or None for a removed part."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[int, Any]] = {}
        """Number of the change, and content; the newest change is last."""
        self._changes = 0
        self._followers: set[asyncio.Event] = set()
        self._is_over = False

    @property
    def followers(self) -> int:
        """The number of followers."""
        return len(self._followers)

    def put(self, name: str, content: Any) -> None:
        """Set a part; no effect if the content is unchanged."""
        if content == self.get(name):
            return
        self._changes += 1
        self._parts.pop(name, None)
        if content is not None or self._followers:  # followers must learn that a part was removed
            self._parts[name] = (self._changes, content)
        for event in self._followers:
            event.set()

    def end(self) -> None:
        """End all followers: nothing will change any more."""
        self._is_over = True
        for event in self._followers:
            event.set()

    def get(self, name: str) -> Any:
        """The content of a part; None if it does not exist."""
        return self._parts.get(name, (0, None))[1]

    async def follow(self, wants: Callable[[str], bool] = lambda name: True) -> AsyncGenerator[Json, None]:
        """The parts that `wants` accepts: first all of them, then the changed parts. Ends with the board; close it
        with `aclosing`."""
        event = asyncio.Event()
        self._followers.add(event)
        try:
            parts = self._since(0, wants)
            delivered = self._changes
            yield {name: content for name, content in parts.items() if content is not None}
            while True:
                await event.wait()
                if self._is_over:
                    return
                await asyncio.sleep(SETTLE)
                event.clear()
                parts = self._since(delivered, wants)
                delivered = self._changes
                if parts:
                    yield parts
        finally:
            self._followers.discard(event)

    def _since(self, delivered: int, wants: Callable[[str], bool]) -> Json:
        """The parts that have changed since change number `delivered`, the oldest change first."""
        parts = []
        for name, (change, content) in reversed(self._parts.items()):
            if change <= delivered:
                break
            if wants(name):
                parts.append((name, content))
        return dict(reversed(parts))
