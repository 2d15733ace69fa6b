"""What `python -m benchmarks node` makes of its measurements."""

from __future__ import annotations

import pytest

from benchmarks.node.jumps import GOAL, back
from benchmarks.node.signals import Counter
from benchmarks.node.spread import spread
from localcluster.workloads.traffic import Answers

FAST, SLOW = Answers(0, (GOAL,)), Answers(0, (GOAL + 1,))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ([0.25, 3.0, 1.0], "1.0 s (250 ms to 3.0 s, 3 runs)"),
        ([4.0, 2.0], "2.0 s (2.0 s to 4.0 s, 2 runs)"),
        ([1.0, None, None], "never (1.0 s to never, 3 runs)"),
        ([], "not measured"),
    ],
)
def test_repeats_in_a_line(seconds: list[float | None], said: str) -> None:
    assert spread(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "found"),
    [
        ([FAST] * 10, 0.0),
        ([FAST, SLOW, SLOW, *[FAST] * 5], 3.0),
        ([SLOW, *[FAST] * 4, SLOW, *[FAST] * 5], 6.0),
        ([SLOW, *[FAST] * 4], None),
        ([FAST, Answers(failed=3), *[FAST] * 5], 2.0),
    ],
    ids=["never slow", "once", "slow again", "too short", "failed requests are slow"],
)
def test_requests_are_fast_again(seconds: list[Answers], found: float | None) -> None:
    assert back(dict(enumerate(seconds))) == found


def test_a_counter_gives_the_millicores_between_two_samples() -> None:
    samples = iter([(0.0, 0.0), (10.0, 1.0), (10.0, 1.0), (20.0, 4.0)])
    counter = Counter(lambda: next(samples))
    assert [counter() for _ in range(4)] == [0, 0, 0, 300]
