"""What `python -m benchmarks node` makes of its measurements."""

from __future__ import annotations

import pytest

from benchmarks.node.signals import Counter
from benchmarks.node.spread import spread


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


def test_a_counter_gives_the_millicores_between_two_samples() -> None:
    samples = iter([(0.0, 0.0), (10.0, 1.0), (10.0, 1.0), (20.0, 4.0)])
    counter = Counter(lambda: next(samples))
    assert [counter() for _ in range(4)] == [0, 0, 0, 300]
