"""The last screen of the demo."""

from __future__ import annotations

from math import inf

import pytest

from demo.outcome import WIDTH, Rivals, Row, beside_simulated, compared, lines
from demo.scenario import State, Worth
from demo.snapshot import Resources

MIB = 2**20
START = State(2, Resources(200, 192 * MIB))
LARGER = State(4, Resources(400, 256 * MIB))


def words(text: str) -> str:
    return " ".join(text.split())


def test_both_courses_are_compared_by_usage_requests_and_restarts() -> None:
    """The load is one core for 100 s. The Hvpa has 400m for 20 s and 1600m for 80 s; the other side always 750m."""
    other = State(3, Resources(250, 128 * MIB))
    rivals = Rivals([(-60.0, START), (0.0, other)], lambda second, pods: 1000.0, 100, restarts=3)
    text = list(map(words, beside_simulated([(0.0, START), (20.0, LARGER)], 0, rivals)))
    assert text[:5] == [
        "What users felt, and what it cost this Hvpa HPA and VPA",
        "CPU unserved on a full node 12 core-s (12.0 %) 25 core-s (25.0 %) 52 % less",
        "CPU requested 136 core-s 75 core-s 81 % more",
        "restarts 0 3",
        "at the end 4 × 400m, 256Mi 3 × 250m, 128Mi",
    ]
    assert not any("hour" in line for line in text)


def test_the_same_load_over_an_hour_follows() -> None:
    hour = Worth(6284, 4800, 0, START), Worth(6603, 4800, 3.6, START)
    rivals = Rivals([(0.0, START)], lambda second, pods: 0.0, 100, hour=hour)
    lines = list(beside_simulated([(0.0, START)], 0, rivals))
    text = list(map(words, lines))
    at = text.index("The same load over an hour this Hvpa HPA and VPA")
    assert text[at + 1 : at + 3] == [
        "CPU unserved on a full node 0 core-s (0.0 %) 4 core-s (0.1 %)",
        "CPU requested 6284 core-s 6603 core-s 5 % less",
    ]
    assert "CPU unserved on a full node 0 core-s (0 %) 0 core-s (0 %)" in text, "nothing was used"
    assert max(map(len, lines)) <= WIDTH


@pytest.mark.parametrize(
    ("own", "other", "text"),
    [
        (75, 100, "25 % less"),
        (130, 100, "30 % more"),
        (999, 100, "899 % more"),
        (1249, 100, "12 times"),
        (100.4, 100, "the same"),
        (0, 4, ""),
        (4, 0, ""),
        (inf, 5, ""),
        (5, inf, ""),
        (inf, inf, ""),
    ],
)
def test_a_difference_in_words(own: float, other: float, text: str) -> None:
    assert compared(own, other) == text


def test_a_row_without_a_difference_ends_with_its_values() -> None:
    assert [line.endswith("20") for line in lines([Row("restarts", "0", "20")])] == [False, True]
