"""How a run in several processes (pytest-xdist) shares the tests out: in which order, and which go together.

A file's tests share an operator, so they stay together. What waits longest begins, since a long wait at the end is one
for everybody."""

from __future__ import annotations

import zlib
from typing import Final

from xdist.scheduler.loadscope import LoadScopeScheduling

DEMO: Final = "tests/e2e/test_demo.py"
FIRST_DAY: Final = "tests/e2e/full/test_first_day.py"
PLATFORM_TEAM: Final = "tests/e2e/full/test_platform_team.py"
TUTORIAL: Final = "tests/e2e/full/test_tutorial.py"
WHOLE_DEMO: Final = f"{DEMO}::test_the_workload_is_scaled_out_up_in_and_down_and_is_back_where_it_began"
DEMO_OPTION: Final = f"{DEMO}::test_an_option_that_can_not_be_used_ends_with_2_and_starts_nothing"
SHARES: Final = (
    # A process that has two tests left or fewer gets the next share. What waits for minutes has shorter ones behind it,
    # lest a share waits there too.
    (WHOLE_DEMO, DEMO_OPTION, "tests/e2e/test_localcluster.py::TestNothingStays"),
    # `make deploy` begins, before an operator is installed: so it does where one process has all shares.
    (
        "tests/e2e/full/test_deploy.py::test_make",
        "tests/e2e/full/test_joint_live.py",
        "tests/e2e/full/test_scaling.py",
    ),
    (
        "tests/e2e/full/test_in_place_live.py",
        "tests/e2e/full/test_kubelet_as_simulated.py",
        "tests/e2e/full/test_kubelet_facts.py",
    ),
    # Those that look at the whole machine begin: the others have one real node among them, which ends with the last.
    (
        "tests/e2e/node/test_nothing_left.py",
        "tests/e2e/node/test_operator_pod.py",
        "tests/e2e/node/test_demo.py",
        "tests/e2e/node/",
    ),
    # Have control planes of their own: the pages install and uninstall the CRD.
    tuple(f"{page}::test_the_page_keeps_its_word[real]" for page in (FIRST_DAY, TUTORIAL)),
    (DEMO, TUTORIAL),
    (PLATFORM_TEAM,),
    (FIRST_DAY,),
    ("tests/e2e/full/test_stale_live.py", "tests/e2e/full/", "tests/e2e/test_localcluster.py"),
    ("tests/e2e/bare/test_soak.py",),
)
"""Tests, by the beginnings of their ids, that one process runs one after the other; longest first. Tests with the same
control plane go together, but for no longer than the demo takes: a full one takes twenty seconds of processor time to
start, and more as long as it runs."""
IN_PARTS: Final = {"tests/e2e/bare/conditions/": 3}
"""Files that are divided: their rows do not depend on one another."""
LATER: Final = ("tests/e2e/bare/", "tests/e2e/")
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
