"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.support import Doc, Shell, load


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    """Runs commands."""
    return Shell(capsys, monkeypatch, tmp_path)


@pytest.fixture
def gardener() -> list[Doc]:
    """The first example of gardener's README with its objects."""
    return load("gardener.yaml")
