"""Queries services about our dependencies: vulnerabilities by pip-audit, withdrawn ("yanked") releases by pip. Both
services may be unreachable."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVICES = ("osv", "pypi")
"""pip-audit's sources; the first source that knows our dependencies counts."""
SECONDS = 60.0
"""Timeout of a source in seconds."""
PIP_SECONDS = 300.0
"""Timeout of pip in seconds: it downloads the packages."""

PIP_AUDIT = [
    "--require-hashes",
    "--disable-pip",
    "--format",
    "json",
    "--progress-spinner",
    "off",
    "--timeout",
    "5",
]
PIP_INSTALL = [
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
    "--dry-run",
    "--ignore-installed",
    "--no-deps",
    "--require-hashes",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """The findings, a line each, and their source; or the `reason` if not all dependencies could be checked."""

    findings: tuple[str, ...] = ()
    source: str = ""
    reason: str = ""


def vulnerabilities(lock: Path, ignored: list[str]) -> Answer:
    """Return known vulnerabilities of the pins in a lock file."""
    reasons = []
    for service in SERVICES:
        flags = [flag for identifier in ignored for flag in ("--ignore-vuln", identifier)]
        options = [*PIP_AUDIT, "--requirement", str(lock), "--vulnerability-service", service]
        done = _run([sys.executable, "-m", "pip_audit", *options, *flags], SECONDS)
        response = read_audit(service, done)
        if response.findings or not response.reason:
            return response
        reasons.append(response.reason)
    return Answer(reason="; ".join(reasons))


def read_audit(service: str, done: subprocess.CompletedProcess[str] | str) -> Answer:
    """Read pip-audit's report. pip-audit succeeds even if it could check nothing; that is no answer here."""
    if isinstance(done, str):
        return Answer(reason=f"{service}: {done}")
    try:
        entries: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Answer(reason=f"{service}: {_last_line(done.stderr)}")
    findings = tuple(
        f"{entry['name']} {entry['version']}: {advisory['id']}, mended in "
        f"{', '.join(advisory['fix_versions']) or 'no release'}"
        for entry in entries
        for advisory in entry.get("vulns", ())
    )
    unknown = [entry["name"] for entry in entries if "skip_reason" in entry]
    if unknown or not entries:
        return Answer(
            findings, service, f"{service}: knows nothing of {len(unknown)} of {len(entries)} dependencies"
        )
    return Answer(findings, service)


def withdrawn(lock: Path) -> Answer:
    """Return the releases in a lock file that their authors have withdrawn since, according to pip's package index."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        options = [*PIP_INSTALL, "--requirement", str(lock), "--report", report.name]
        done = _run([sys.executable, "-m", "pip", "install", *options], PIP_SECONDS)
        return read_report(done, Path(report.name).read_text())


def read_report(done: subprocess.CompletedProcess[str] | str, report: str) -> Answer:
    """Read pip's output and its report."""
    if isinstance(done, str):
        return Answer(reason=done)
    if done.returncode != 0:
        return Answer(reason=_last_line(done.stderr))
    entries: list[dict[str, Any]] = json.loads(report)["install"]
    findings = tuple(
        f"{entry['metadata']['name']} {entry['metadata']['version']} was withdrawn by its authors"
        for entry in entries
        if entry.get("is_yanked")
    )
    return Answer(findings, "the package index")


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str] | str:
    """Return the finished process, or the reason why it did not finish."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s"


def _last_line(text: str) -> str:
    """Return a program's last line of output without addresses; usually it is the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].partition(" (Caused by")[0][:200] if lines else "it printed nothing"
