"""Event loops: asyncio's own; uvloop's as well, which the operator runs on, where the difference matters; and one whose
time is virtual, where much of it has to pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from tests.unit.kube.virtual import VirtualLoop

BOTH = {"client/test_connections.py"}
VIRTUAL = {"client/test_limits.py", "leases/test_election_times.py", "leases/test_shard_manager.py"}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loops that a test runs with, one after another."""
    file = "/".join(item.path.parts[-2:])
    if file in VIRTUAL:
        return {"virtual": VirtualLoop}
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    return loops | {"uvloop": uvloop.new_event_loop} if file in BOTH else loops
