"""What services know of our dependencies: vulnerabilities by pip-audit, withdrawn ("yanked") releases by pip. Neither
need be reachable."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVICES = ("osv", "pypi")
"""pip-audit's sources, the first that knows our dependencies is believed."""
SECONDS = 60.0
"""How long one may take."""
PIP_SECONDS = 300.0
"""How long pip may take: it downloads what it is asked about."""

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
    """What was found, a line each, and by whom; or the `reason` for which nothing, or not all, could be asked."""

    found: tuple[str, ...] = ()
    source: str = ""
    reason: str = ""


def vulnerabilities(lock: Path, ignored: list[str]) -> Answer:
    """Known vulnerabilities of what a lock file pins."""
    reasons = []
    for service in SERVICES:
        flags = [flag for one in ignored for flag in ("--ignore-vuln", one)]
        options = [*PIP_AUDIT, "--requirement", str(lock), "--vulnerability-service", service]
        done = _run([sys.executable, "-m", "pip_audit", *options, *flags], SECONDS)
        response = read_audit(service, done)
        if response.found or not response.reason:
            return response
        reasons.append(response.reason)
    return Answer(reason="; ".join(reasons))


def read_audit(service: str, done: subprocess.CompletedProcess[str] | str) -> Answer:
    """What pip-audit reported. It calls it success when it could ask about nothing at all: that is no answer here."""
    if isinstance(done, str):
        return Answer(reason=f"{service}: {done}")
    try:
        entries: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Answer(reason=f"{service}: {_last_line(done.stderr)}")
    found = tuple(
        f"{entry['name']} {entry['version']}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'no release'}"
        for entry in entries
        for one in entry.get("vulns", ())
    )
    unknown = [entry["name"] for entry in entries if "skip_reason" in entry]
    if unknown or not entries:
        return Answer(
            found, service, f"{service}: knows nothing of {len(unknown)} of {len(entries)} dependencies"
        )
    return Answer(found, service)


def withdrawn(lock: Path) -> Answer:
    """Releases in a lock file that their authors have withdrawn since, by the package index that pip uses."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        options = [*PIP_INSTALL, "--requirement", str(lock), "--report", report.name]
        done = _run([sys.executable, "-m", "pip", "install", *options], PIP_SECONDS)
        return read_report(done, Path(report.name).read_text())


def read_report(done: subprocess.CompletedProcess[str] | str, report: str) -> Answer:
    """What pip printed and reported."""
    if isinstance(done, str):
        return Answer(reason=done)
    if done.returncode != 0:
        return Answer(reason=_last_line(done.stderr))
    entries: list[dict[str, Any]] = json.loads(report)["install"]
    found = tuple(
        f"{entry['metadata']['name']} {entry['metadata']['version']} was withdrawn by its authors"
        for entry in entries
        if entry.get("is_yanked")
    )
    return Answer(found, "the package index")


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str] | str:
    """The finished process, or why there is none."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:g} s"


def _last_line(text: str) -> str:
    """What a program printed last, without addresses: the reason, as a rule."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].partition(" (Caused by")[0][:200] if lines else "it printed nothing"
