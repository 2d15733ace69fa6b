"""Which tests are traced for the coverage gate, how several processes share the tests out (`shares`), and what each
part takes (`parts`).

Tracing makes the decision and the simulator four times as slow. So the rooms that the gate judges must be covered by
their own tests, and only those are traced; and of them, neither those that search, simulate or draw at length (marked
`long`) nor those with examples of Hypothesis, which search: a case that is known to matter has a test of its own.
(pytest-cov has a mark for this, `no_cover`, that has no effect in processes of pytest-xdist.)"""

from __future__ import annotations

import pkgutil
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests import shares
from tests.parts import Parts

_ROOMS = {
    "hvpa.api": "api",
    "hvpa.core": "core",
    "hvpa.recommend": "recommend",
    "hvpa_lab.recommend": "lab/recommend",
    "hvpa_lab.simulate": "lab/simulate",
}
"""The packages of the coverage gate, each with the folder of its tests."""
_TRACERS = pytest.StashKey[tuple[Any, Any]]()
_TRACED = tuple(Path(__file__).parent / "unit" / folder for folder in _ROOMS.values())


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


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Trace the imports of the rooms, and from then on nothing but `_is_traced`: neither the search for tests nor the
    process that shares them out."""
    if sys.gettrace() is None:
        return
    if session.config.getoption("dist", "no") == "no":
        for room in _ROOMS:
            package = import_module(room)
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                import_module(module.name)
    session.stash[_TRACERS] = (sys.gettrace(), threading.gettrace())
    _trace(None, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    tracers = item.session.stash.get(_TRACERS, None)
    if tracers is None or not _is_traced(item):
        return (yield)
    _trace(*tracers)
    try:
        return (yield)
    finally:
        _trace(None, None)


def _trace(here: Any, in_new_threads: Any) -> None:
    sys.settrace(here)
    threading.settrace(in_new_threads)


def _is_traced(item: pytest.Item) -> bool:
    in_a_room = any(item.path.is_relative_to(room) for room in _TRACED)
    return in_a_room and not any(item.get_closest_marker(name) for name in ("long", "hypothesis"))
