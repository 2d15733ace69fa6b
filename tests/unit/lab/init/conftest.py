"""Fixtures of the tests of `hvpa init`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
import structlog

from hvpa_lab.init import command, scenario
from tests.unit.cli.support import Doc, Ran, Shell
from tests.unit.lab.init.documents import usage

Init = Callable[..., Ran]
"""Runs `hvpa init` on documents and a CSV history, with further flags."""


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """The command silences its process's logs; other tests want to read theirs."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate in this process, in steps of an hour."""
    monkeypatch.setattr(command, "processors", lambda: 1)
    monkeypatch.setattr(scenario, "STEP", 3600)


@pytest.fixture
def init(shell: Shell) -> Init:
    """Runs it; the folder that it writes is `out`."""

    def run(documents: Sequence[Doc], *flags: str, history: str | None = None, stdin: str = "") -> Ran:
        files = ("-f", shell.file(list(documents), "shop.yaml"))
        csv = () if "--prometheus" in flags else ("--csv", shell.file(history or usage(), "usage.csv"))
        out = () if "--out" in flags else ("--out", str(shell.folder / "out"))
        return shell.run("init", *files, *csv, *out, "--seeds", "1", *flags, stdin=stdin)

    return run
