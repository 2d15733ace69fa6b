"""What `python -m benchmarks node` makes of its measurements."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.node import command, resizes
from benchmarks.node.jumps import POLICIES, Jump
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


def test_only_jumps_that_the_file_lacks_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[str, float, int]] = []

    def jump(_: object, policy: str, factor: float, number: int) -> Jump:
        measured.append((policy, factor, number))
        return Jump(1.0, 0, 0, 0, 1, 1.0)

    monkeypatch.setattr(command, "jump", jump)
    monkeypatch.setattr(resizes, "cpu_seconds", lambda _: 0.0)
    monkeypatch.setattr(resizes, "resident", lambda _: 0)
    plane: Any = None
    operator: Any = SimpleNamespace(process=SimpleNamespace(pid=0))
    results: list[dict[str, Any]] = []
    cases = list(itertools.product(range(2), (2.0, 5.0), POLICIES))
    steps = command._jumps(plane, operator, cases, results)
    for _ in range(len(POLICIES) + 1):
        next(steps)
    assert [(policy, factor) for policy, factor, _ in measured] == [
        *((policy, 2.0) for policy in POLICIES),
        (POLICIES[0], 5.0),
    ]
    del results[1]
    measured.clear()
    assert len(list(command._jumps(plane, operator, cases, results))) == len(cases) - len(POLICIES)
    assert measured[0] == (POLICIES[1], 2.0, len(POLICIES))
    keys = {(result["run"], result["factor"], result["policy"]) for result in results}
    assert keys == {(run, factor, policy) for run in (0, 1) for factor in (2.0, 5.0) for policy in POLICIES}
