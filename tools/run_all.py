"""`python -m tools.run_all`: runs all parts of `make test` and prints a table of their times. The end-to-end tests
mostly wait, so all other parts run at the same time with lower priority. The output of each part is printed when it
ends.

Failed tests run again, alone, because real programs on a busy machine can miss a deadline. A test that fails again has
failed. The exit code is 1 if a part failed. Skipped tests are listed at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

E2E: Final = "e2e"
UNIT: Final = "coverage"
BESIDE: Final = ("lint", "verify", "audit", UNIT)
TESTS: Final = (E2E, UNIT)
"""Targets of the Makefile that run pytest."""
NICE: Final = 10
"""Niceness (0 to 19) of the parts that run during the end-to-end tests."""
GATE: Final = (sys.executable, "-m", "coverage", "report", "--fail-under=100", "--skip-covered")
"""Checks the coverage of the first run, which a second run of some tests does not measure."""
_printing = threading.Lock()


class Ended(NamedTuple):
    """A finished part, its exit code and its seconds."""

    part: str
    code: int
    wall: float
    processor: float
    skipped: Counter[str]
    """Number of skipped tests by reason."""

    def __str__(self) -> str:
        verdict = f"exit code {self.code}" if self.code else "ok"
        return f"{self.part:<8} {self.wall:6.0f} {self.processor:10.0f}  {verdict}"


def main() -> int:
    """Run all parts; return the exit code."""
    began = time.monotonic()
    with ThreadPoolExecutor(1) as beside:
        others = beside.submit(lambda: [run(part) for part in BESIDE])
        ended = [run(E2E), *others.result()]
    wall, processor = time.monotonic() - began, sum(part.processor for part in ended)
    print(f"\n{'part':<8} {'wall s':>6} {'processor s':>10}")
    print("\n".join(map(str, ended)))
    print(f"{'all':<8} {wall:6.0f} {processor:10.0f}", flush=True)
    for reason, count in sorted(sum((part.skipped for part in ended), Counter[str]()).items()):
        print(f"not tested: {reason} ({count} skipped)", flush=True)
    return int(any(part.code for part in ended))


def run(part: str) -> Ended:
    """Run a part, and its failed tests again."""
    ended = _run(part)
    if not ended.code or part not in TESTS:
        return ended
    _print(f"make test: what failed of {part} runs once more (a test that passes now is a race: mend it)")
    again = _run(part, "--last-failed --last-failed-no-failures=none --no-cov -n 0")
    code = again.code or (subprocess.run(GATE).returncode if part == UNIT else 0)
    return Ended(part, code, ended.wall + again.wall, ended.processor + again.processor, ended.skipped)


def _run(part: str, pytest_args: str = "") -> Ended:
    arguments = ["make", "--no-print-directory", part]
    report = Path(f".pytest_cache/{part}.xml").absolute()
    if part in TESTS:
        report.unlink(missing_ok=True)
        given = os.environ.get("PYTEST_ARGS", "")
        # Separate caches, or the part that ends last would delete the failures of the other part.
        arguments.append(
            f"PYTEST_ARGS=-o cache_dir=.pytest_cache/{part} {given} {pytest_args} --junitxml={report}"
        )
    if part != E2E:
        arguments = ["nice", "-n", str(NICE), *arguments]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            arguments, stdout=None if part == E2E else output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        _print(output.read())
    processor = usage.ru_utime + usage.ru_stime
    return Ended(part, process.returncode, time.monotonic() - began, processor, skipped(report))


def skipped(report: Path) -> Counter[str]:
    """Count skipped tests by reason in pytest's report (JUnit XML); empty without such a file."""
    if not report.exists():
        return Counter()
    tests = ElementTree.parse(report).iter("skipped")
    return Counter(test.get("message", "") for test in tests if test.get("type") == "pytest.skip")


def _print(text: str) -> None:
    with _printing:
        print(text, end="" if text.endswith("\n") or not text else "\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
