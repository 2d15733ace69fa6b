"""Fixtures of the report's tests."""

from __future__ import annotations

import pytest

from tests.unit.cli.support import Doc, load


@pytest.fixture
def shop() -> list[Doc]:
    """A namespace without an Hvpa."""
    return load("shop.yaml")
