"""docs/init.md: its commands do what it shows, its flags are there, and its files can be read."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hvpa.cli.init.command import add_arguments
from hvpa.cli.init.source.prometheus import read_queries

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/init.md").read_text()
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
]
EXAMPLE = PAGE.partition("## An example")[2].partition("\n## ")[0]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(add_help=False)
    add_arguments(found)
    return found


@pytest.mark.parametrize("command", [one for one in COMMANDS if one[1] == "init"], ids=" ".join)
def test_every_command_can_be_read(command: list[str]) -> None:
    args = parser().parse_args(command[2:])
    assert (args.csv is None) != (args.prometheus is None)


def test_the_flags_on_the_page_are_there() -> None:
    flags = {flag for action in parser()._actions for flag in action.option_strings}
    others = {"--html", "--seed"}  # of hvpa simulate
    named = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", PAGE))
    assert named - others <= flags
    of_its_own = {
        "--csv",
        "--prometheus",
        "--since",
        "--step",
        "--load",
        "--queries",
        "--prometheus-token",
        "--timeout",
    }
    assert {*of_its_own, "--kubernetes", "--max-replicas", "--out", "--force", "--days", "--seeds"} <= named


def test_the_expressions_of_the_page_can_be_read(tmp_path: Path) -> None:
    (block,) = [one for one in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if one.startswith("cpu:")]
    (tmp_path / "queries.yaml").write_text(block)
    assert set(read_queries(tmp_path / "queries.yaml")) == {"cpu", "memory", "replicas", "load"}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_example_gives_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = [one for one in COMMANDS if " ".join(one) in " ".join(EXAMPLE.split())]
    assert [one[1] for one in commands] == ["init", "simulate", "simulate", "validate"]

    def run(command: list[str]) -> str:
        program = [
            sys.executable,
            "-c",
            "from hvpa.cli.main import main; raise SystemExit(main())",
            *command[1:],
        ]
        environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
        done = subprocess.run(
            program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=800
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    shown = re.findall(r"```(?:text|yaml)\n(.*?)```", EXAMPLE, re.DOTALL)
    assert run(commands[0]) == shown[0]
    assert (tmp_path / "hvpa-orders" / "hvpa.yaml").read_text() == shown[1]
    # Of the policies only the one that is quickly simulated; test_command.py holds all of them against `hvpa init`.
    tables = [run([*one, "--policy", "today"]) for one in commands[1:3]]
    costs = [float(re.findall(r"^1  today +([\d.]+) ", table, re.MULTILINE)[0]) for table in tables]
    printed = re.search(r"^today +([\d.]+)", shown[0], re.MULTILINE)
    assert printed is not None
    assert sum(costs) / len(costs) / (1.5 / 7) == pytest.approx(float(printed[1]), rel=0.002)
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    run(commands[3])


def test_the_manifest_of_the_page_names_its_workload() -> None:
    manifest = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", EXAMPLE, re.DOTALL)[0])
    assert (manifest["kind"], manifest["spec"]["targetRef"]["name"]) == ("Hvpa", "orders")
