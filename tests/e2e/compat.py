"""`python -m tests.e2e.compat`: what users install, on API servers of other versions than that of all other test runs.
Per version, a bare control plane (etcd and that API server; no controllers) and the end-to-end tests in `COLUMNS`.
Prints a table; `--write` puts it into the page as well. Exit code: 0 all passed, 1 something failed."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path

from localcluster.programs.build import build, build_apiserver, other_versions, to_stderr

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/compatibility.md"
BEGIN, END = "<!-- written by make compat: begin -->\n", "<!-- written by make compat: end -->\n"

_MANIFESTS, _INSTALLED = "tests/e2e/test_manifests.py", "tests/e2e/bare/installed/test_installed.py"
COLUMNS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "good manifests taken": ((_MANIFESTS,), "test_a_good_manifest"),
    "bad manifests refused": ((_MANIFESTS,), "test_a_bad_manifest"),
    "CRD: costs, explain, scale, status": ((_MANIFESTS,), "test_"),
    "samples": ((_INSTALLED,), "test_a_sample"),
    "overlays of `config`": ((_INSTALLED,), "test_an_overlay"),
    "a step of the operator": ((_INSTALLED,), "test_a_step"),
    "policies of `config/policy`": (
        ("tests/e2e/bare/installed/test_policy.py", "tests/e2e/bare/installed/test_policy_operator.py"),
        "test_",
    ),
}
"""A column of the table: files, and how the names of the tests begin that count; a test counts once, where it first
fits."""


def main(arguments: list[str]) -> int:
    """Run, and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.compat", description=__doc__)
    known = other_versions()
    parser.add_argument("minors", nargs="*", metavar="MINOR", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--write", action="store_true", help=f"write the rows into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if unknown := set(options.minors) - set(known):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    print(table({}), end="", flush=True)
    rows: dict[str, str] = {}
    well = True
    for minor in options.minors or known:
        code, cells = _run(minor)
        well = well and code == 0
        rows[known[minor]] = row(known[minor], cells, dt.datetime.now(dt.UTC).date())
        print(rows[known[minor]], flush=True)
        if options.write:
            write(rows)
    return 0 if well else 1


def row(version: str, cells: Mapping[str, str], day: dt.date) -> str:
    """A version's line of the table."""
    return _line([version.removeprefix("v"), *(cells[column] for column in COLUMNS), str(day)])


def table(rows: Mapping[str, str]) -> str:
    """The table in Markdown, of the versions that are pinned."""
    heads = ["Kubernetes", *COLUMNS, "run on"]
    present = [rows[version] for version in other_versions().values() if version in rows]
    return "".join(f"{line}\n" for line in (_line(heads), _line(["---"] * len(heads)), *present))


def written() -> dict[str, str]:
    """The rows on the page, by version."""
    _, _, text = PAGE.read_text().partition(BEGIN)
    lines = text.partition(END)[0].splitlines()
    return {f"v{line.split()[1]}": line for line in lines if line.startswith("| 1.")}


def write(rows: Mapping[str, str]) -> None:
    """Put rows into the table on the page; those of other versions stay."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table(written() | dict(rows)) + END + rest.partition(END)[2])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def counted(report: ET.Element) -> dict[str, str]:
    """Of each column how many tests passed; where not all did, of how many."""
    passed, all_ = dict.fromkeys(COLUMNS, 0), dict.fromkeys(COLUMNS, 0)
    for case in report.iter("testcase"):
        module, name = case.get("classname", ""), case.get("name", "")
        column = next(
            column
            for column, (files, prefix) in COLUMNS.items()
            if name.startswith(prefix) and f"{module.replace('.', '/')}.py" in files
        )
        all_[column] += 1
        passed[column] += len(case) == 0  # a failure, an error or a skip stands inside
    return {
        column: str(passed[column])
        if 0 < all_[column] == passed[column]
        else f"**{passed[column]} of {all_[column]}**"
        for column in COLUMNS
    }


def _run(minor: str) -> tuple[int, dict[str, str]]:
    """Run the tests on the API server of a minor version."""
    programs, server = build(full=True), build_apiserver(minor)
    version = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    to_stderr(f"compat: {version}")
    if version != f"Kubernetes {other_versions()[minor]}":
        raise RuntimeError(f"{server} reports version {version}")
    files = dict.fromkeys(file for files, _ in COLUMNS.values() for file in files)
    with tempfile.TemporaryDirectory(prefix="hvpa-compat-") as name:
        assets, report = Path(name) / "assets", Path(name) / "report.xml"
        assets.mkdir()
        for program, path in {
            "etcd": programs["etcd"],
            "kubectl": programs["kubectl"],
            "kube-apiserver": server,
        }.items():
            (assets / program).symlink_to(path)
        environment = {**os.environ, "KUBEBUILDER_ASSETS": str(assets)}
        environment.pop("HVPA_E2E_KUBECONFIG", None)
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            *files,
        ]
        code = subprocess.run(argv, cwd=ROOT, env=environment, check=False, stdout=sys.stderr).returncode
        return code, counted(ET.parse(report).getroot())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
