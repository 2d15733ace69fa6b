"""Over a whole run of the end-to-end tests, in however many processes: least privilege, from the audit logs of all
control planes. A pytest plugin of the process that has the last word; see `localcluster/client/rights.py` for what is
judged."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from localcluster.client import rights

HERE = Path(__file__).resolve().parent


class WholeRun:
    """Gives the run a folder for the summaries, and judges them at its end."""

    def __init__(self, config: pytest.Config) -> None:
        """The folder is made known to all processes of the run by an environment variable."""
        self._config = config
        self._folder = Path(tempfile.mkdtemp(prefix="hvpa-rights-"))
        self._passed: set[Path] = set()
        self._complaints: list[str] = []
        self._summary = ""
        os.environ[rights.VARIABLE] = str(self._folder)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember which files had a test that passed."""
        if report.when == "call" and report.passed:
            self._passed.add((self._config.rootpath / report.nodeid.partition("::")[0]).resolve())

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Judge; all control planes have stopped by now."""
        totals, allowed = rights.collect(self._folder), rights.granted()
        whole = not session.testsfailed and self._is_whole()
        self._complaints = rights.complaints(totals, allowed, whole=whole)
        if self._complaints and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if totals.used:
            count = len(allowed & set(totals.used))
            total = totals.used.total()
            self._summary = f"rights: {total} requests of the operator used {count} of {len(allowed)} rights"
            self._summary += (
                "" if whole else " (not all end-to-end tests passed, so those not used are not judged)"
            )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print complaints and summary."""
        if self._complaints:
            terminalreporter.section("rights of the operator", red=True, bold=True)
            for line in self._complaints:
                terminalreporter.line(line)
        if self._summary:
            terminalreporter.line(self._summary)

    def pytest_unconfigure(self) -> None:
        """Remove the folder."""
        os.environ.pop(rights.VARIABLE, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_whole(self) -> bool:
        """Whether the tests were not narrowed down, and every file of them had one that passed."""
        option = self._config.option
        narrowed = option.keyword or option.markexpr or option.deselect or getattr(option, "lf", False)
        by_name = any("::" in str(argument) for argument in self._config.args)
        return not narrowed and not by_name and set(HERE.rglob("test_*.py")) <= self._passed


def watch(config: pytest.Config) -> None:
    """Judge this run, unless another process has the last word or no control plane of ours will be started."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(WholeRun(config), "hvpa-whole-run")
