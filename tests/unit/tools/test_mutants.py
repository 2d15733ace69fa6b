"""Which mutants are drawn, and how their results are counted. `make mutants` itself takes long."""

from __future__ import annotations

import pytest

from tools import mutants

OUTPUT = """
    hvpa.core.gates.backoff.x_with_waiting__mutmut_1: no tests
    hvpa.core.gates.backoff.xǁContestǁuntil__mutmut_2: killed
"""


def test_results_are_read_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "mutmut", lambda *arguments: OUTPUT)
    assert mutants.results() == {
        "hvpa.core.gates.backoff.x_with_waiting__mutmut_1": "no tests",
        "hvpa.core.gates.backoff.xǁContestǁuntil__mutmut_2": "killed",
    }


def test_a_draw_depends_on_names_and_seed_alone() -> None:
    names = [f"m{number}" for number in range(50)]
    assert mutants.sample(names, 5, 1) == mutants.sample(names[::-1], 5, 1) != mutants.sample(names, 5, 2)
    assert mutants.sample(names[:3], 5, 1) == ["m0", "m1", "m2"]


def test_mutants_without_tests_count_as_missed() -> None:
    statuses = {"a": "killed", "b": "timeout", "c": "survived", "d": "no tests"}
    assert mutants.summary(statuses) == "2 of 4 mutants are noticed (50.0 percent)"
