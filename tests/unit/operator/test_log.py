"""What others wrote can't forge a line of the log, obey a terminal or fill a disk; and lines whose reader is slow, gone
or was never there."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.operator.log import (
    MOST_ENTRIES,
    MOST_TEXT,
    MOST_TRACEBACK,
    LineOutput,
    bounded,
    entry_line,
    to_json,
)

LINES = 2000
LINE = "x" * 100
PROMPT = 120.0
"""Seconds: far more than writing takes, far less than for ever."""
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=30)
ANY_VALUE = st.recursive(
    ANY_TEXT | st.integers() | st.floats() | st.none() | st.binary(max_size=5) | st.timedeltas(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
ENTRIES = st.dictionaries(ANY_TEXT, ANY_VALUE, max_size=5)
LONGEST = (MOST_ENTRIES + 1) ** 3 * 20

_FORGING = """
import logging, sys, structlog
from hvpa.operator.log import configure_logs
configure_logs(sys.argv[1], "debug")
log = structlog.get_logger()
bad = "x\\n2026-11-21T10:00:00Z [error    ] forged\\x1b[2J\\u202e\\x00\\x85\\u2028\\ud800"
log.info(bad, object=bad, inside={bad: [bad]}, long="y" * 10**6, many=["z" * 100] * 10**4, number=10**5000)
logging.getLogger("library").error("%s", bad)
try:
    raise ValueError(bad + "w" * 10**6)
except ValueError:
    log.exception("crashed")
"""


def run(style: str) -> str:
    command = [sys.executable, "-c", _FORGING, style]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    return done.stderr.decode()


def test_console_lines_can_t_be_forged() -> None:
    lines = run("console").split("\n")
    assert all(line.isprintable() for line in lines)
    begun = [line for line in lines if line and not line.startswith("    ")]
    assert len(begun) == 3
    assert not [line for line in lines if line.startswith("2026-11-21T10:00:00Z")]
    assert sum(map(len, lines)) < 60_000


def test_json_lines_can_t_be_forged() -> None:
    output = run("json")
    assert output.replace("\n", "").isprintable()
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["level"] for line in lines] == ["info", "error", "error"]
    assert "forged" in lines[0]["event"]
    assert lines[2]["exception"].endswith("w")
    assert max(map(len, output.splitlines())) < 60_000


@given(ENTRIES)
def test_any_entry_is_one_line_of_json(entry: dict[str, Any]) -> None:
    line = to_json(bounded(None, "info", dict(entry))).decode()
    assert line.isprintable()
    assert isinstance(json.loads(line), dict)


@given(ENTRIES, ANY_TEXT)
def test_any_entry_is_text_without_commands(entry: dict[str, Any], traceback: str) -> None:
    fields = entry_line(None, "info", bounded(None, "info", {**entry, "exception": traceback}))
    assert all(
        key.isprintable() and str(value).isprintable() for key, value in fields.items() if key != "exception"
    )
    assert all(line.startswith("    ") and line.isprintable() for line in fields["exception"].split("\n"))


def test_usual_values_stay_as_they_are() -> None:
    until = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    entry: dict[str, Any] = {
        "event": "scaled",
        "until": until,
        "wait": dt.timedelta(1),
        "of": {"app": ["1", 2.5]},
    }
    assert bounded(None, "info", dict(entry)) == entry
    assert to_json({"name": "é"}) == '{"name":"é"}'.encode()


def test_what_is_long_is_cut() -> None:
    deep: Any = "bottom"
    for _ in range(100):
        deep = {"x" * 5000: [deep] * 2}
        if len(str(deep)) > 10**6:
            break
    entry = {"text": "x" * 10**6, "list": list(range(10**5)), "deep": deep, "exception": "line\n" * 10**5}
    fields = bounded(None, "info", entry)
    assert len(fields["text"]) == MOST_TEXT
    assert len(fields["list"]) == MOST_ENTRIES
    assert len(fields["exception"]) == MOST_TRACEBACK
    assert len(to_json(fields)) < LONGEST


@pytest.mark.parametrize("value", [10**5000, -(10**5000), 2**64], ids=["long", "negative", "65 bits"])
def test_a_number_of_thousands_of_digits_is_not_written_out(value: int) -> None:
    assert to_json(bounded(None, "info", {"n": value})) == b'{"n":"a huge number"}'


# --- output ---
@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Read and write end of a pipe; the test may close either."""
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):
            os.close(end)


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
from hvpa.operator.log import configure_logs
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
from hvpa.operator.log import LineOutput, configure_logs
LineOutput.flush.__defaults__ = (120.0,)  # the reader may have no time for a second
configure_logs("json", "info")
for number in range(3000):
    structlog.get_logger().info("x" * 100, number=number)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, timeout=PROMPT, check=True, text=True
    )
    assert [json.loads(line)["number"] for line in ended.stderr.splitlines()] == list(range(3000))


def test_a_process_ends_though_its_log_is_not_read(pipe: tuple[int, int]) -> None:
    script = """
import structlog
from hvpa.operator.log import configure_logs
configure_logs("json", "info")
for number in range(3000):
    structlog.get_logger().info("x" * 100, number=number)
"""
    subprocess.run([sys.executable, "-c", script], stderr=pipe[1], timeout=PROMPT, check=True)
