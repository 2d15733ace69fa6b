"""How a run in several processes (pytest-xdist) shares the tests out: in which order, and which go together.

A file's tests share an operator, so they stay together. What waits longest begins, since a long wait at the end is one
for everybody; the unit tests, which only need the processor, fill what is left."""

from __future__ import annotations

import zlib
from typing import Final

from xdist.scheduler.loadscope import LoadScopeScheduling

SHARES: Final = (
    # The demo's whole run waits for six minutes; short tests beside it keep another file from waiting behind it.
    ("tests/e2e/test_demo.py::test_the_workload", "tests/e2e/test_demo.py::test_an_option"),
    (
        "tests/e2e/full/test_scaling.py",
        "tests/e2e/full/test_joint_live.py",
        "tests/e2e/full/test_gardener.py",
    ),
    ("tests/e2e/full/",),
    ("tests/e2e/test_demo.py",),
    ("tests/e2e/bare/test_soak.py::test_a_short_soak_ends_well[1]",),
    ("tests/e2e/bare/test_soak.py",),
)
"""Tests, by the beginnings of their ids, that one process runs one after the other; longest first. Tests with the same
control plane go together: a full one takes twenty seconds of processor time to start."""
IN_PARTS: Final = {"tests/e2e/bare/conditions/": 3}
"""Files that are divided: their rows do not depend on one another."""
LATER: Final = ("tests/e2e/bare/", "tests/e2e/", "tests/unit/")
"""The order of what no share names."""


def share(nodeid: str) -> str:
    """What a test goes together with: the number of its share, or its file (or a part of that)."""
    for number, beginnings in enumerate(SHARES):
        if nodeid.startswith(beginnings):
            return f"share {number}"
    file = nodeid.partition("::")[0]
    parts = next((parts for folder, parts in IN_PARTS.items() if nodeid.startswith(folder)), 1)
    return f"{file} {zlib.crc32(nodeid.encode()) % parts}"


def rank(nodeid: str) -> tuple[int, int]:
    """By this the tests are sorted: shares, then files in the order of `LATER`, parts of one file side by side."""
    for number, beginnings in enumerate(SHARES):
        for place, beginning in enumerate(beginnings):
            if nodeid.startswith(beginning):
                return number, place
    later = next((place for place, folder in enumerate(LATER) if nodeid.startswith(folder)), len(LATER))
    return len(SHARES) + later, 0


class ByShare(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist is not typed
    """A share of the tests goes to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return share(nodeid)
