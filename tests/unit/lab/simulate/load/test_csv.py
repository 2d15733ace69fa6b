"""CSV files as loads: what is read, and what is refused with its line and column."""

from __future__ import annotations

import csv
import datetime as dt
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.load.csv import read_csv
from hvpa_lab.simulate.load.series import RecordedSeries

START = 1_767_571_200.0  # 2026-01-05T00:00:00Z


def read(text: str) -> list[tuple[float, float]]:
    record = read_csv("load.csv", text, "timestamp", "value")
    return list(zip(record.times, record.values, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "timestamp,value\n2026-01-05T00:00:00Z,1\n2026-01-05T00:01:00Z,2\n",
        "timestamp,value\n2026-01-05 00:00:00,1\n2026-01-05 00:01:00,2\n",
        "timestamp,value\n2026-01-05 00:00,1\n2026-01-05 00:01,2",
        "timestamp,value\n2026-01-05T01:00:00.000+01:00,+1.0\n2026-01-04T23:31:00-00:30,2.\n",
        "timestamp,value\n1767571200,1e0\n1767571260.0,.2e1\n",
        "zone,value,timestamp\na,1,1767571200\na,2,1767571260,more\n",
        '"timestamp" , "value"\r\n"1767571200"," 1 "\r\n\r\n 1767571260 ,"2"\r\n'.replace(' , "', ',"'),
    ],
)
def test_timestamps_and_values_are_read_in_every_form(text: str) -> None:
    assert read(text) == [(START, 1.0), (START + 60, 2.0)]


def test_columns_have_the_names_that_are_given() -> None:
    record = read_csv("load.csv", "when,rps,value\n0,5,1\n1,6,1\n", "when", "rps")
    assert list(record.values) == [5, 6]


def test_lines_are_those_of_the_file_with_empty_ones_counted() -> None:
    record = read_csv("load.csv", "timestamp,value\n\n0,5\n\n\n1,6\n", "timestamp", "value")
    assert [record.line(0), record.line(1)] == [3, 6]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "",
            "1: timestamp: there is no column of this name in the header, which has nothing: the file is empty",
        ),
        ("\n\n", "1: timestamp: there is no column of this name in the header, which has nothing"),
        (
            "time,value\n0,1\n",
            "1: timestamp: there is no column of this name in the header, which has time, value",
        ),
        (
            "timestamp,Value\n0,1\n",
            "1: value: there is no column of this name in the header, which has timestamp, Value",
        ),
        ("timestamp,value,value\n", "1: value: there are several columns of this name"),
        ("timestamp,value\n", "1: value: there are no values"),
        ("timestamp,value\n0,1\n", "2: value: there is only one value"),
        ("timestamp,value\n0,1\n0,2\n", "3: timestamp: 1970-01-01T00:00:00Z stands there twice"),
        (
            "timestamp,value\n9,1\n\n0,2\n",
            "4: timestamp: 1970-01-01T00:00:00Z comes after 1970-01-01T00:00:09Z",
        ),
        ("timestamp,value\n0,1\n1\n", "3: value: is missing: the row is too short"),
        ("timestamp,value\n0,1\n1,\n", "3: value: '' is not a number"),
        ("timestamp,value\n0,1\n1,1_000\n", "3: value: '1_000' is not a number"),
        ("timestamp,value\n0,1\n1,12 rps\n", "3: value: '12 rps' is not a number"),
        ("timestamp,value\n0,1\n1,NaN\n", "3: value: nan is not a load"),
        ("timestamp,value\n0,1\n1,-inf\n", "3: value: -inf is not a load"),
        ("timestamp,value\n0,1\n1,1e999\n", "3: value: inf is not a load"),
        ("timestamp,value\n0,1\n1,-0.5\n", "3: value: -0.5 is negative"),
        ("timestamp,value\nsoon,1\n", "2: timestamp: 'soon' is not a timestamp (such as"),
        ("timestamp,value\n,1\n", "2: timestamp: '' is not a timestamp"),
        ("timestamp,value\nnan,1\n", "2: timestamp: 'nan' is not a timestamp"),
        (
            "timestamp,value\n2026-02-30 00:00:00,1\n",
            "2: timestamp: '2026-02-30 00:00:00' is not a timestamp: day is",
        ),
        ("timestamp,value\n0001-01-01T00:00:00+05:00,1\n", "2: timestamp: "),
        ("timestamp,value\n1960-01-01,1\n", "2: timestamp: '1960-01-01' is not a timestamp"),
        (
            "timestamp,value\n1960-01-01 00:00,1\n",
            "2: timestamp: '1960-01-01 00:00' is not a timestamp between 1970",
        ),
        ("timestamp,value\n1767571200000,1\n", "2: timestamp: 1767571200000 is not a time in unix seconds"),
        ("timestamp,value\n-1,1\n", "2: timestamp: -1 is not a time in unix seconds"),
        ("timestamp,value\n0,1\x00\n", ":2: "),
        ('timestamp,value\n0,"' + "x" * 200_000, "not CSV: field larger than field limit"),
    ],
)
def test_what_is_wrong_is_reported_with_line_and_column(text: str, reason: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_csv("load.csv", text, "timestamp", "value")
    message = str(caught.value)
    assert message.startswith("load.csv:")
    assert reason in message
    assert "\n" not in message


_CELLS = st.one_of(
    st.sampled_from(
        ["timestamp", "value", "nan", "inf", "-1", "1", "0", "1e5", "2026-01-05 00:00:00", '"', "1,2"]
    ),
    st.text(max_size=20),
    st.floats().map(repr),
    st.datetimes().map(str),
)


def _outcome(text: str) -> RecordedSeries | str:
    try:
        return read_csv("load.csv", text, "timestamp", "value")
    except ScenarioError as error:
        return str(error)


@given(st.one_of(st.text(), st.lists(st.lists(_CELLS, max_size=4).map(",".join)).map("\n".join)))
def test_any_text_after_a_header_is_a_record_or_refused(text: str) -> None:
    for outcome in (_outcome(text), _outcome(f"timestamp,value\n{text}")):
        if isinstance(outcome, str):
            assert outcome.startswith("load.csv:")
            assert outcome.isprintable()
        else:
            assert len(outcome.times) == len(outcome.values) >= 2
            assert min(outcome.values) >= 0
            assert list(outcome.times) == sorted(set(outcome.times))


_VALUES = st.floats(0, 1e15)
_INSTANTS = st.integers(0, 7 * 10**15).map(
    lambda micros: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)
)


@given(st.dictionaries(_INSTANTS, _VALUES, min_size=2), st.booleans())
def test_values_come_back_as_written(series: dict[dt.datetime, float], with_zone: bool) -> None:
    wanted = sorted(series.items())
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["value", "note", "timestamp"])
    for instant, value in wanted:
        text = instant.isoformat() if with_zone else instant.replace(tzinfo=None).isoformat(sep=" ")
        rows.writerow([repr(value), 'a "note",\nof two lines', text])
    record = read_csv("load.csv", out.getvalue(), "timestamp", "value")
    assert list(record.values) == [value for _, value in wanted]
    assert list(record.times) == [instant.timestamp() for instant, _ in wanted]
