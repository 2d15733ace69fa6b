"""All that `make test` checks, with a `make` that fails as it is asked to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools import run_all

MAKE = """#!/bin/sh
echo "$2" "$3" >> "$CALLS"
case "$* " in
  *" $FAILING "*) exit 3 ;;
esac
"""
CASES = """
import pytest

def test_that_passes(): ...

@pytest.mark.skip(reason="no Chromium")
def test_of_the_page(): ...

def test_that_ends_early():
    pytest.skip("no Chromium")

@pytest.mark.skip(reason="HVPA_E2E_KUBECONFIG is set")
def test_of_a_cluster(): ...

@pytest.mark.xfail(reason="known", strict=True)
def test_that_is_known_to_fail():
    assert False
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


def test_what_was_skipped_is_said_at_the_end_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "make").write_text(
        f"""#!/bin/sh
case "$2" in e2e) exec {sys.executable} -m pytest -q -p no:cacheprovider "--junitxml=${{3##*--junitxml=}}" ;; esac
"""
    )
    (tmp_path / "make").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert run_all.main() == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "not tested: HVPA_E2E_KUBECONFIG is set (1 skipped)",
        "not tested: no Chromium (2 skipped)",
    ]
