"""Event loops: the workers, who wait for turns and for what is due, have virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from tests.unit.kube.virtual import VirtualLoop

VIRTUAL = {"test_loop.py", "test_supervision.py"}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop that a test runs with."""
    return {"virtual": VirtualLoop} if item.path.name in VIRTUAL else {"asyncio": asyncio.new_event_loop}
