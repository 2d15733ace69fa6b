"""Which tests are traced for the coverage gate, how several processes share the tests out (`shares`), and what each
part takes (`parts`).

Tracing makes the decision and the simulator four times as slow. So the rooms that the gate judges must be covered by
their own tests, and only those are traced; and of them, not those that search or simulate at length: they are marked
`long`. (pytest-cov has a mark for this, `no_cover`, that has no effect in processes of pytest-xdist.)"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import shares
from tests.parts import Parts

_UNIT = Path(__file__).parent / "unit"
_TRACED = tuple(_UNIT / room for room in ("api", "core", "recommend", "simulate"))


def pytest_configure(config: pytest.Config) -> None:
    """Measure what each part takes."""
    config.pluginmanager.register(Parts(), "parts")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> shares.ByShare:
    """Tests that share something stay in one process."""
    return shares.ByShare(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits longest begins. (pytest forgets the order of its arguments where one holds another.)"""
    items.sort(key=lambda item: shares.rank(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if _is_traced(item):
        return (yield)
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


def _is_traced(item: pytest.Item) -> bool:
    in_a_room = any(item.path.is_relative_to(room) for room in _TRACED)
    return in_a_room and item.get_closest_marker("long") is None
