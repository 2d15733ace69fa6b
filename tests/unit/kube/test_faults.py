"""Fault points: where they are, and that nothing happens without them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from hvpa.kube.faults import POINTS, FaultPointError, FaultyCluster, parse_point, with_faults
from tests.unit.reconcile.fakes import FakeCluster

SCRIPT = """
import asyncio, sys
from hvpa.api.objects import Meta
from hvpa.kube.faults import with_faults
from tests.unit.reconcile.fakes import FakeCluster

async def main():
    cluster = with_faults(FakeCluster(None), sys.argv[1])
    for step in range(3):
        print(step, flush=True)
        await cluster.write_mailbox(Meta(), 1)

asyncio.run(main())
"""


def test_without_a_setting_the_port_is_the_real_one() -> None:
    cluster = FakeCluster(None)
    assert with_faults(cluster, None) is cluster
    assert with_faults(cluster, "") is cluster
    assert isinstance(with_faults(cluster, "after-status:2"), FaultyCluster)


@pytest.mark.parametrize("setting", ["status", "after-lunch", "after-status:x", "after-status:-1"])
def test_a_point_that_there_is_not_is_refused(setting: str) -> None:
    with pytest.raises(FaultPointError):
        parse_point(setting)


def test_every_write_has_two_points() -> None:
    assert len(POINTS) == 10
    assert parse_point("before-owned") == ("before-owned", 1)


def test_the_process_dies_at_its_point() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "before-mailbox:2"],
        capture_output=True,
        text=True,
        timeout=30,
        env=dict(os.environ),
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1"]
