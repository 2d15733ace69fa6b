"""Requests to pods: whom they go to, and what was measured."""

from __future__ import annotations

import math
from typing import Any

import pytest

from localcluster.workloads.traffic import Answers, addresses, is_slow, port_of, read, recovered, together

GOAL = 250.0
GOOD, SLOW, FAILED = Answers(0, (5.0, 6.0)), Answers(0, (5.0, GOAL + 1)), Answers(2, (5.0,))


def pod(address: str, ready: str = "True", **metadata: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": metadata, "status": {"podIP": address, "conditions": conditions}}


def test_requests_go_to_pods_that_are_ready_and_stay() -> None:
    pods = [
        pod("127.101.0.3"),
        pod("127.101.0.2"),
        pod("127.101.0.4", "False"),
        pod("127.101.0.5", deletionTimestamp="2026-01-01T00:00:00Z"),
        {"metadata": {}, "status": {}},
    ]
    assert addresses(pods, 8080) == ["127.101.0.2:8080", "127.101.0.3:8080"]


def test_a_second_without_answers_is_read_and_half_a_line_is_not() -> None:
    text = '{"second": 7, "failed": 2, "milliseconds": null}\n{"second": 8, "failed": 0, "milliseconds": [5.5]}\n{"sec'
    assert read(text) == {7: Answers(2, ()), 8: Answers(0, (5.5,))}


@pytest.mark.parametrize(
    ("answers", "percent", "milliseconds"),
    [
        (Answers(0, (3.0, 1.0, 2.0)), 50, 2.0),
        (Answers(0, tuple(map(float, range(1, 101)))), 99, 99.0),
        (Answers(0, (7.0,)), 99, 7.0),
        (Answers(1, (1.0, 2.0)), 50, 2.0),
        (Answers(1, (1.0, 2.0)), 99, math.inf),
        (Answers(), 50, None),
    ],
)
def test_a_request_that_failed_is_slower_than_any(
    answers: Answers, percent: float, milliseconds: float | None
) -> None:
    assert answers.percentile(percent) == milliseconds


def test_requests_of_several_seconds_are_one_sum() -> None:
    assert together([Answers(1, (5.0,)), Answers(2, (6.0, 7.0))]) == Answers(3, (5.0, 6.0, 7.0))
    assert together([]).sent == 0


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        (Answers(0, (5.4, 6.0)), "2 requests, 0 failed; P50 5 ms, P99 6 ms"),
        (Answers(1, (5.4, 6.0)), "3 requests, 1 failed; P50 6 ms, P99 failed"),
        (Answers(), "0 requests, 0 failed; P50 -, P99 -"),
    ],
)
def test_a_line_has_failures_and_whole_milliseconds(answers: Answers, line: str) -> None:
    assert answers.line == line


def test_the_port_is_the_first_of_the_containers() -> None:
    silent, serving = (
        {"name": "a"},
        {"name": "b", "ports": [{"containerPort": 8080}, {"containerPort": 9090}]},
    )
    assert port_of([{"spec": {"containers": [silent, serving]}}]) == 8080
    assert port_of([{"spec": {"containers": [silent]}}]) is None
    assert port_of([]) is None


@pytest.mark.parametrize(
    ("answers", "slow"),
    [(GOOD, False), (Answers(0, (GOAL,)), False), (SLOW, True), (FAILED, True), (Answers(), False)],
)
def test_a_second_is_slow_if_its_slowest_requests_are(answers: Answers, slow: bool) -> None:
    assert is_slow(answers, GOAL) == slow


@pytest.mark.parametrize(
    ("course", "second"),
    [
        ("gggggggg", 0),
        ("ggssggggggg", 4),
        ("ggsgggsggggg", 7),
        ("ggsggggs", None),
        ("gsssssss", None),
        ("gsgggg", None),
    ],
)
def test_latency_is_back_once_it_stays_within_its_goal(course: str, second: int | None) -> None:
    answers = {at: GOOD if letter == "g" else SLOW for at, letter in enumerate(course)}
    assert recovered(answers, 0, len(course), GOAL) == second


def test_only_the_stretch_counts() -> None:
    assert recovered({0: SLOW, 1: GOOD, 2: SLOW}, 1, 2, GOAL) == 1
