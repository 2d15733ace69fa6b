"""The command line as a whole: names, codes, and one line for whatever goes wrong."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa.api.crd import render_crd
from hvpa.cli import crd, main
from tests.unit.cli.support import DATA, Shell

ROOT = Path(__file__).parents[3]


def run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python as a process."""
    argv = [sys.executable, *command]
    return subprocess.run(argv, cwd=ROOT, stderr=subprocess.PIPE, encoding="utf-8", timeout=60, **options)


def test_the_version_is_the_packages(shell: Shell) -> None:
    assert shell.run("--version").out == f"hvpa {metadata.version('hvpa')}\n"


def test_the_version_is_known_to_be_unknown(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert shell.run("--version").out == "hvpa (not installed)\n"


def test_the_crd_is_printed_as_yaml(shell: Shell) -> None:
    ran = shell.run("crd")
    assert (ran.code, ran.err) == (0, "")
    assert yaml.load(ran.out, yaml.CSafeLoader) == render_crd()


@pytest.mark.parametrize(
    "argv",
    ["", "fly", "--fly", "crd --fly", "crd fly", "explain", "explain -f", "validate -f"],
)
def test_a_wrong_command_line_is_reported_in_one_line(shell: Shell, argv: str) -> None:
    error = shell.refuses(*argv.split(), code=2)
    assert error.startswith("hvpa")
    assert "error: " in error


def test_help_names_every_command(shell: Shell) -> None:
    ran = shell.run("--help")
    assert ran.code == 0
    assert re.findall(r"^ {4}(\w+)\b", ran.out, re.MULTILINE) == list(main.COMMANDS)
    assert "--hpa-tolerance" in shell.run("explain", "--help").out


def test_kubectl_is_part_of_the_name_where_it_called(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-hvpa", "crd", "--fly"])
    assert main.main() == 2
    assert shell.run("explain", "-f", "none.yaml").err.startswith(
        "kubectl hvpa: error: none.yaml: can't be read"
    )


@pytest.mark.parametrize(("debug", "lines"), [((), 1), (("--debug",), 3)])
def test_an_error_of_ours_is_one_line_without_debug(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, debug: tuple[str, ...], lines: int
) -> None:
    def broken() -> None:
        raise ValueError("first\nsecond")

    monkeypatch.setattr(crd, "render_crd", broken)
    for argv in (("crd", *debug), (*debug, "crd")):
        ran = shell.run(*argv)
        assert ran.code == 1
        assert "hvpa: error: internal error: ValueError: first second" in ran.err.splitlines()[-1]
        assert ("Traceback" in ran.err) == bool(debug)
        assert len(ran.err.splitlines()) >= lines


def test_ctrl_c_is_quiet(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(crd, "render_crd", interrupted)
    ran = shell.run("crd")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        ran = run("-m", "hvpa", "crd", stdout=pipe)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("command", ["simulate", "init", "report", "dashboard"])
def test_a_command_of_the_laboratory_says_how_to_get_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """In the operator's image there is no `hvpa_lab`."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "hvpa_lab" else find(name, *rest)
    )
    needs = f"hvpa: error: {command} needs hvpa_lab, which is not installed: pip install 'hvpa[lab]'\n"
    assert shell.refuses(command, "--help") == needs
    assert f"\n    {command}" in shell.run("--help").out


def test_a_terminal_that_knows_few_characters_is_no_reason_to_fail() -> None:
    manifest = """
        {apiVersion: autoscaling.k8s.io/v1alpha1, kind: Hvpa, metadata: {name: a},
        spec: {targetRef: {kind: Deployment, name: ü}}}"""
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = run("-m", "hvpa", "explain", "-f", "-", env=env, input=manifest, stdout=subprocess.PIPE)
    assert ran.returncode == 1
    assert "spec.targetRef.name" in ran.stderr
    assert "\\xfc" in ran.stderr


def test_offline_commands_do_not_load_the_client() -> None:
    program = (
        "import sys; from hvpa.cli.main import main; path = sys.argv[1]; "
        "code = main(['validate', '-f', path]) or main(['explain', '-f', path]); "
        "sys.exit(code or any(name in sys.modules for name in ('kubernetes_asyncio', 'aiohttp', 'jinja2')))"
    )
    ran = run("-c", program, str(DATA / "gardener.yaml"), stdout=subprocess.DEVNULL)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stderr.splitlines()
    assert len(lines) == 4, "the warnings of validate"
    assert all(": warning: Hvpa hvpa-sample: spec." in line for line in lines)
