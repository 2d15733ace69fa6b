"""What each part of a test run takes: a table at the run's end, of wall and processor seconds by folder.

A test's processor time is that of its own process and of the programs that ended meanwhile. Programs that several tests
share end with the run; they are a part of their own."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Any, Final

import pytest

SHARED: Final = "programs that tests share"
COLLECTION: Final = "imports and collection"
_OUTPUT: Final = "parts"


class Parts:
    """Measures in each process of a run; the process that has the last word gets the measurements of the others."""

    def __init__(self) -> None:
        self._wall: defaultdict[str, float] = defaultdict(float)
        self._processor: defaultdict[str, float] = defaultdict(float)

    def pytest_collection_finish(self) -> None:
        """All until now was imports, and looking for tests."""
        self._processor[COLLECTION] = _processor_seconds()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure one test."""
        began, before = time.monotonic(), _processor_seconds()
        try:
            return (yield)
        finally:
            part = part_of(item.nodeid)
            self._wall[part] += time.monotonic() - began
            self._processor[part] += _processor_seconds() - before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """What ends with the last test of a process was shared."""
        before = _processor_seconds()
        try:
            return (yield)
        finally:
            if nextitem is None:
                spent = _processor_seconds() - before
                self._processor[SHARED] += spent
                self._processor[part_of(item.nodeid)] -= spent

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the measurements over."""
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output[_OUTPUT] = (dict(self._wall), dict(self._processor))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add another process's measurements."""
        for mine, theirs in zip(
            (self._wall, self._processor), getattr(node, "workeroutput", {}).get(_OUTPUT, ()), strict=False
        ):
            for part, seconds in theirs.items():
                mine[part] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, where there is something to compare."""
        if len(self._wall) > 1:
            terminalreporter.section("seconds by part (wall: of all processes together)")
            terminalreporter.line(f"{'wall':>8} {'processor':>10}")
            for part in sorted(self._processor):
                terminalreporter.line(f"{self._wall[part]:8.0f} {self._processor[part]:10.1f}  {part}")
            terminalreporter.line(
                f"{sum(self._wall.values()):8.0f} {sum(self._processor.values()):10.1f}  all"
            )


def _processor_seconds() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def part_of(nodeid: str) -> str:
    """The part that a test belongs to: `tests/unit/core`, `tests/e2e/bare/faults`, `tests/e2e/test_demo.py`."""
    path = PurePosixPath(nodeid.partition("::")[0])
    return "/".join(path.parts[: 4 if path.parts[:3] == ("tests", "e2e", "bare") else 3])
