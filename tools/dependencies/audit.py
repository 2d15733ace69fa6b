"""Audits the dependencies: the lock files and the installed packages, and, if a service can be reached, known
vulnerabilities and withdrawn releases.

The exit code is 1 for findings. It is 0 if a service can't be reached, which is reported: `could not be done`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.dependencies import audit_services
from tools.dependencies.licences import is_accepted, licence_of
from tools.dependencies.lockfile import (
    BUILD_LOCK,
    DEV_LOCK,
    DOCS,
    DOCS_LOCK,
    LOCK,
    PROJECT,
    ROOT,
    LockError,
    Pin,
    read_lock,
    read_project,
)

LOCKS = (LOCK, DEV_LOCK, BUILD_LOCK, DOCS_LOCK)


def main() -> int:
    """Run the audit; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--offline", action="store_true", help="ask no service")
    parser.add_argument(
        "--quick", action="store_true", help="don't look for withdrawn releases (half a minute)"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="ID", help="a vulnerability that is known"
    )
    args = parser.parse_args()
    findings = check(ROOT)
    report("the lock files fit what is asked for; all is pinned with hashes; licences are accepted", findings)
    if not args.offline:
        findings += _ask("known vulnerabilities", audit_services.vulnerabilities(ROOT / LOCK, args.ignore))
        if not args.quick:
            findings += _ask("withdrawn releases", audit_services.withdrawn(ROOT / LOCK))
    return 1 if findings else 0


def report(good: str, findings: list[str]) -> None:
    """Print the findings, or `good` if there are none."""
    for line in findings or [f"audit: {good}"]:
        print(line if line.startswith("audit: ") else f"audit: {line}")


def _ask(subject: str, response: audit_services.Answer) -> list[str]:
    """Print and return a service's findings; none if it can't be reached."""
    if response.reason:
        print(f"audit: {subject}: could not be done: {response.reason}")
    elif not response.findings:
        print(f"audit: no {subject} ({response.source})")
    if response.findings:
        report("", list(response.findings))
    return list(response.findings)


def check(root: Path) -> list[str]:
    """Return the findings of the offline checks, a line each."""
    try:
        locks = {name: read_lock(root / name) for name in LOCKS}
    except LockError as error:
        return [str(error)]
    lines = (root / DOCS).read_text().splitlines()
    docs = tuple(line for line in lines if not line.startswith("#"))
    declared = {**read_project(root / "pyproject.toml").requirements, DOCS_LOCK: docs}
    findings = []
    for name, pins in locks.items():
        findings += [
            f"{name}: {line}" for line in (*_pinned(pins), *_declared(pins, declared[name]), *_wanted(pins))
        ]
    findings += [
        f"{LOCK}: {name} {pin.version} is not what {DEV_LOCK} has, so not what is tested"
        for name, pin in locks[LOCK].items()
        if name not in locks[DEV_LOCK] or locks[DEV_LOCK][name].version != pin.version
    ]
    return findings + [f"{LOCK}: {line}" for line in _licences(locks[LOCK])]


def _pinned(pins: dict[str, Pin]) -> list[str]:
    lines = [f"{pin.name} has no hash" for pin in pins.values() if not pin.hashes]
    return lines + [
        f"{pin.name} {pin.version} is no final release"
        for pin in pins.values()
        if Version(pin.version).is_prerelease
    ]


def _declared(pins: dict[str, Pin], requirements: tuple[str, ...]) -> list[str]:
    """Return the declared requirements that the lock does not pin, or not within their bounds."""
    lines = []
    for text in requirements:
        requirement = Requirement(text)
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None:
            lines.append(f"{requirement.name} is missing: run `make lock`")
        elif not requirement.specifier.contains(pin.version):
            lines.append(f"{pin.name} {pin.version} is not {requirement.specifier}: run `make lock`")
    return lines


def _wanted(pins: dict[str, Pin]) -> list[str]:
    """Return the pins that no package requires any more."""
    known = pins.keys() | {PROJECT, canonicalize_name(DOCS)}
    return [
        f"{pin.name} is required by no package: run `make lock`"
        for pin in pins.values()
        if not pin.wanted_by & known
    ]


def _licences(pins: dict[str, Pin]) -> list[str]:
    lines = []
    for pin in pins.values():
        licence = licence_of(pin.name, pin.version)
        if licence is None:
            lines.append(f"{pin.name} {pin.version}: licence not known (is it installed?)")
        elif not is_accepted(licence):
            lines.append(
                f"{pin.name} {pin.version}: licence {licence} is not in tools/dependencies/licences.py"
            )
    return lines


if __name__ == "__main__":
    sys.exit(main())
