"""The result as a PNG."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache

import matplotlib as mpl
import pytest

from hvpa_lab.simulate.report.picture import DPI, WIDTH, to_png
from tests.unit.lab.simulate.report.results import policy, result


@cache
def plain() -> bytes:
    """The picture of the usual result."""
    return to_png([result()])


def chunks(png: bytes) -> list[str]:
    """The kinds of a PNG's parts."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    found, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        found.append(png[at + 4 : at + 8].decode())
        at += length + 12
    return found


def size(png: bytes) -> tuple[int, int]:
    """Width and height in pixels."""
    wide, high = struct.unpack(">II", png[16:24])
    return wide, high


def test_the_same_result_gives_the_same_bytes() -> None:
    with mpl.rc_context({"axes.facecolor": "red", "figure.dpi": 31, "lines.linewidth": 9}):
        assert to_png([result()]) == plain()
    assert {"tEXt", "tIME", "iTXt", "zTXt"} & set(chunks(plain())) == set()


@pytest.mark.long
def test_scenarios_stand_side_by_side() -> None:
    one, two = size(plain()), size(to_png([result(), result()]))
    assert (two[0], two[1]) == (2 * one[0], one[1])
    assert one[0] == WIDTH * DPI


@pytest.mark.long
def test_a_long_legend_gets_room_above_the_panels() -> None:
    few = size(to_png([result(*(policy(f"p{at}") for at in range(12)))]))
    many = size(to_png([result(*(policy(f"p{at}") for at in range(13)))]))
    long = size(to_png([result(*(policy("x" * 29 + str(at)) for at in range(12)))]))
    assert size(plain()) == few
    assert few[0] == many[0] == long[0]
    assert few[1] < many[1] < long[1]


def test_the_warm_up_is_shown() -> None:
    assert to_png([result(warm_up=30.0)]) != plain()


def test_odd_names_can_be_drawn() -> None:
    names = ("$\\frac$", "\ud800", "_hidden", "<b>", "負荷", "a\x00\x1b", "", "x" * 300)
    assert chunks(to_png([result(*map(policy, names), name=" ".join(names))]))[-1] == "IEND"


def test_nothing_is_drawn_without_policies() -> None:
    assert chunks(to_png([replace(result(), policies=())]))[-1] == "IEND"
    assert chunks(to_png([]))[-1] == "IEND"


@pytest.mark.long
def test_what_is_not_finite_leaves_a_gap() -> None:
    whole = policy()
    endless = replace(whole.series, capacity=whole.series.capacity * 1)
    endless.capacity[1] = float("inf")
    assert to_png([result(replace(whole, series=endless))]) != to_png([result(whole)])
