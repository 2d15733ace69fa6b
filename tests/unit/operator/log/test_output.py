"""Log lines whose reader is slow, gone or was never there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hvpa.operator.log.output import LineOutput

LINES = 2000
LINE = "x" * 100
PROMPT = 120.0
"""Seconds: far more than writing takes, far less than for ever."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Read and write end of a pipe; the test may close either."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def everything(reader: int) -> list[str]:
    """All lines up to the end of the pipe."""
    with os.fdopen(os.dup(reader)) as file:
        return file.read().splitlines()


def test_lines_for_a_reader_who_comes_late_wait_for_it_in_order(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    output = LineOutput(writer)
    for number in range(LINES):
        output.msg(f"{number} {LINE}")
    output.msg("y" * 300_000)
    with os.fdopen(os.dup(reader), "rb") as file:
        for number in range(LINES):
            assert file.readline() == f"{number} {LINE}\n".encode()
        assert file.readline() == b"y" * 300_000 + b"\n"
    output.flush(PROMPT)
    output.msg("and on")
    os.close(writer)
    assert everything(reader) == ["and on"]


def test_a_pipe_that_nobody_reads_takes_no_more_than_the_backlog_and_the_lost_lines_are_counted(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    output = LineOutput(writer, backlog=10_000)
    for number in range(LINES):
        output.msg(f"{number} {LINE}")
    at = lost = 0
    with os.fdopen(os.dup(reader)) as file:
        while at < LINES:  # each line is there, or counted where it is missing
            line = file.readline().rstrip("\n")
            if line.startswith("{"):
                lost += json.loads(line)["count"]
                at += json.loads(line)["count"]
            else:
                assert line == f"{at} {LINE}"
                at += 1
    assert 0 < lost < LINES


def test_a_reader_who_has_gone_and_a_descriptor_that_is_closed_lose_lines_and_nothing_else(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    output = LineOutput(writer)
    os.close(reader)
    output.msg(LINE)
    os.close(writer)
    output.msg(LINE)
    output.flush(PROMPT)


def test_a_descriptor_that_does_not_block_loses_no_line(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    output = LineOutput(writer)
    for number in range(LINES):
        output.msg(f"{number} {LINE}")
    with os.fdopen(os.dup(reader), "rb") as file:
        assert [file.readline()[:4].split()[0] for _ in range(LINES)][-1] == b"1999"


def test_where_stderr_is_closed_no_other_file_gets_the_lines(tmp_path: Path) -> None:
    script = """
import os, sys
from hvpa.operator.log.setup import configure_logs
import structlog
configure_logs("json", "info")
opened = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
structlog.get_logger().error("secret")
os.write(opened, b"mine")
"""
    file = tmp_path / "file"
    command = [sys.executable, "-c", script, str(file)]
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command]
    assert subprocess.run(closed, timeout=PROMPT, check=False).returncode == 0
    assert file.read_bytes() == b"mine"


def test_what_waits_at_the_end_is_still_read(pipe: tuple[int, int]) -> None:
    script = """
import structlog
from hvpa.operator.log.output import LineOutput
from hvpa.operator.log.setup import configure_logs
LineOutput.flush.__defaults__ = (120.0,)  # the reader may have no time for a second
configure_logs("json", "info")
for number in range(3000):
    structlog.get_logger().info("x" * 100, number=number)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, timeout=PROMPT, check=True, text=True
    )
    assert [json.loads(line)["number"] for line in ended.stderr.splitlines()] == list(range(3000))
