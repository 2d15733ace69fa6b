"""Histories in CSV files: what is read, and what is refused with its line and column."""

from __future__ import annotations

import csv
import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.record import History
from hvpa_lab.simulate.history.table import UsageShare, read_history
from tests.unit.lab.simulate.history.build import START

ONE = {"app": UsageShare(1.0, 1.0)}
TWO = {"app": UsageShare(0.75, 0.5), "proxy": UsageShare(0.25, 0.5)}


def read(text: str, shares: dict[str, UsageShare] | None = None) -> History:
    return read_history("usage.csv", text, shares or ONE)


def test_numbers_quantities_and_both_kinds_of_times_are_read() -> None:
    history = read(
        "time,replicas,cpu,memory,load,more\n2026-01-05T00:00:00Z,2,1500m,3Gi,1e2,x\n1767571500,3,2.5,1024,7,\n"
    )
    assert list(history.times) == [START, START + 300]
    assert (list(history.replicas), list(history.load or ())) == ([2, 3], [100, 7])
    assert (list(history.containers["app"].cpu), list(history.containers["app"].memory)) == (
        [1.5, 2.5], [3 * 2**30, 1024],
    )  # fmt: skip
    assert (history.source, history.notes) == ("usage.csv", ())


def test_containers_share_the_pods_usage_or_have_columns_of_their_own() -> None:
    history = read("time,replicas,cpu,memory\n0,2,4,100\n60,2,8,200\n", TWO)
    assert history.load is None
    assert [(list(usage.cpu), list(usage.memory)) for usage in history.containers.values()] == [
        ([3, 6], [50, 100]),
        ([1, 2], [50, 100]),
    ]
    text = "time,replicas,cpu:app,memory:app,cpu:proxy,memory:proxy\n0,2,4,100,1,10\n60,2,8,200,2,20\n"
    assert list(read(text, TWO).containers["proxy"].memory) == [10, 20]


def test_rows_with_an_empty_cell_are_left_out_and_gaps_are_reported() -> None:
    rows = "".join(f"{60 * at},2,1,1,\n" if at == 3 else f"{60 * at},2,1,1,5\n" for at in range(6))
    history = read(f"time,replicas,cpu,memory,load\n{rows}")
    assert history.notes == (
        "usage.csv: 1 rows have an empty cell and were left out",
        "usage.csv:4: no values for 2m from 1970-01-01T00:02:00Z; held at 2",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "1: time: there is no column of this name in the header, which has nothing: the file is empty"),
        (
            "time,cpu,memory\n",
            "1: replicas: there is no column of this name in the header, which has time, cpu, memory",
        ),
        ("time,replicas,memory\n", "1: cpu: there is no column of this name"),
        ("time,replicas,cpu:app\n", "1: memory:app: there is no column of this name"),
        ("time,time,replicas,cpu,memory\n", "1: time: there are several columns of this name"),
        ("time,replicas,cpu,memory\n", "1: replicas: there are no values: a load has two or more"),
        ("time,replicas,cpu,memory\n0,1,1,1\n", "2: replicas: there is only one value"),
        ("time,replicas,cpu,memory\n0,1,1\n", "2: memory: is missing: the row is too short"),
        ("time,replicas,cpu,memory\nnoon,1,1,1\n", "2: time: 'noon' is not a timestamp"),
        ("time,replicas,cpu,memory\n0,1,much,1\n", "2: cpu: 'much' is not a quantity"),
        ("time,replicas,cpu,memory\n0,1,-1,1\n", "2: cpu: -1 is negative"),
        ("time,replicas,cpu,memory\n0,1,1,nan\n", "2: memory: 'nan' is not a quantity"),
        ("time,replicas,cpu,memory\n60,1,1,1\n0,1,1,1\n", "3: time: 1970-01-01T00:00:00Z comes after"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read(text)
    assert str(refused.value).startswith(f"usage.csv:{reason}")


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    refusal = ""
    try:
        read(f"time,replicas,cpu,memory\n{text}")
    except ScenarioError as error:
        refusal = str(error)
    assert refusal == "" or (refusal.startswith("usage.csv:") and refusal.isprintable())


cells = st.one_of(st.text(max_size=8), st.integers(-10, 10**12).map(str), st.floats().map(str))


@given(st.lists(st.lists(cells, min_size=3, max_size=6), max_size=8))
def test_any_rows_are_read_or_refused(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["time", "replicas", "cpu", "memory", "load"], *rows])
    with suppress(ScenarioError):
        history = read(out.getvalue())
        assert list(history.times) == sorted(set(history.times))
        assert len(history.times) == len(history.replicas) == len(history.total("cpu")) >= 2


amounts = st.floats(0, 1e6, allow_nan=False)


@given(st.lists(st.tuples(st.integers(0, 1000), amounts, amounts, amounts), min_size=2, max_size=20))
def test_what_was_written_is_read_back(rows: list[tuple[int, float, float, float]]) -> None:
    lines = [
        f"{START + 60 * at},{count},{cpu:f},{memory:f},{load:f}"
        for at, (count, cpu, memory, load) in enumerate(rows)
    ]
    history = read("time,replicas,cpu,memory,load\n" + "\n".join(lines))
    assert list(history.replicas) == [row[0] for row in rows]
    assert list(history.total("cpu")) == pytest.approx([row[1] for row in rows], abs=1e-6)
    assert list(history.load or ()) == pytest.approx([row[3] for row in rows], abs=1e-6)
