"""All that `make test` checks, with a `make` that fails as it is asked to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import run_all

MAKE = """#!/bin/sh
echo "$2" "$3" >> "$CALLS"
case "$* " in
  *" $FAILING "*) exit 3 ;;
esac
"""


@pytest.mark.parametrize(
    ("failing", "code", "runs_of_unit"),
    [
        pytest.param("nothing", 0, 1, id="all is well"),
        pytest.param("lint", 1, 1, id="lint fails, and the rest runs all the same"),
        pytest.param(
            "coverage PYTEST_ARGS=-o cache_dir=.pytest_cache/coverage  ",
            0,
            2,
            id="tests pass at the second time",
        ),
        pytest.param("coverage", 1, 2, id="tests fail twice"),
    ],
)
def test_what_fails_of_the_tests_runs_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, code: int, runs_of_unit: int
) -> None:
    (tmp_path / "make").write_text(MAKE)
    (tmp_path / "make").chmod(0o755)
    calls = tmp_path / "calls"
    for name, value in {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "CALLS": str(calls),
        "FAILING": failing,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTEST_ARGS", raising=False)
    monkeypatch.setattr(run_all, "GATE", ("true",))
    assert run_all.main() == code
    parts = [line.split()[0] for line in calls.read_text().splitlines()]
    assert parts.count(run_all.UNIT) == runs_of_unit
    assert set(parts) == {run_all.E2E, *run_all.BESIDE}
