"""Logs that can't be written: the operator works on as if they were."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from tests.e2e.bare.conftest import NewScenario

SMALLEST_PIPE = 4096
"""Bytes that wait in a pipe whose reader doesn't read: less than a second of debugging."""


@contextlib.contextmanager
def unread(fifo: Path) -> Iterator[None]:
    """A named pipe that is open for reading, and is not read."""
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    try:
        yield
    finally:
        os.close(reader)


@pytest.mark.parametrize(
    "redirection",
    ["2>/dev/full", "<&- >&- 2>&-", "2> >(exec true)", "2>fifo"],
    ids=["a full disk", "closed", "a reader that has gone", "a reader that does not read"],
)
def test_logs_that_can_t_be_written_stop_nothing(
    plane: ControlPlane,
    account: Path,
    new_scenario: NewScenario,
    space: str,
    tmp_path: Path,
    redirection: str,
) -> None:
    operator = Operator(plane, account, "--log-level", "debug", "--namespace", space, name="mute")
    fifo, process = tmp_path / "fifo", operator.process
    command = f'exec "$@" {redirection.replace("fifo", str(fifo))}'
    process.argv[:] = ["/bin/bash", "-c", command, "bash", *process.argv]
    with unread(fifo), operator:
        scenario = new_scenario()
        for count in (4, 6, 8):
            scenario.hpa_wants(count)
            scenario.await_replicas(count)
        assert operator.probe("healthz") == 200
        assert operator.terminate() == 0
