"""What others wrote can't forge a line of the log, obey a terminal, or fill a disk."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.operator.log.text import MOST_ENTRIES, MOST_TEXT, MOST_TRACEBACK, bounded, one_line, to_json

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
from hvpa.operator.log.setup import configure_logs
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
    told = run("json")
    assert told.replace("\n", "").isprintable()
    lines = [json.loads(line) for line in told.splitlines()]
    assert [line["level"] for line in lines] == ["info", "error", "error"]
    assert "forged" in lines[0]["event"]
    assert lines[2]["exception"].endswith("w")
    assert max(map(len, told.splitlines())) < 60_000


@given(ENTRIES)
def test_any_entry_is_one_line_of_json(entry: dict[str, Any]) -> None:
    line = to_json(bounded(None, "info", dict(entry))).decode()
    assert line.isprintable()
    assert isinstance(json.loads(line), dict)


@given(ENTRIES, ANY_TEXT)
def test_any_entry_is_text_without_commands(entry: dict[str, Any], traceback: str) -> None:
    told = one_line(None, "info", bounded(None, "info", {**entry, "exception": traceback}))
    assert all(
        key.isprintable() and str(value).isprintable() for key, value in told.items() if key != "exception"
    )
    assert all(line.startswith("    ") and line.isprintable() for line in told["exception"].split("\n"))


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
    told = bounded(None, "info", entry)
    assert len(told["text"]) == MOST_TEXT
    assert len(told["list"]) == MOST_ENTRIES
    assert len(told["exception"]) == MOST_TRACEBACK
    assert len(to_json(told)) < LONGEST


@pytest.mark.parametrize("value", [10**5000, -(10**5000), 2**64], ids=["long", "negative", "65 bits"])
def test_a_number_of_thousands_of_digits_is_not_written_out(value: int) -> None:
    assert to_json(bounded(None, "info", {"n": value})) == b'{"n":"a huge number"}'
