"""docs/init.md: its commands do what it shows, its flags are there, and its files can be read."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest
import yaml

from hvpa_lab.init import scenario
from hvpa_lab.init.command import add_arguments
from hvpa_lab.init.scenario import STEP
from hvpa_lab.init.source.prometheus import read_queries
from hvpa_lab.simulate import command as simulate
from tests.unit.cli.support import Shell

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/init.md").read_text()
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
]
EXAMPLE = PAGE.partition("## An example")[2].partition("\n## ")[0]


def parser() -> argparse.ArgumentParser:
    argument_parser = argparse.ArgumentParser(add_help=False)
    add_arguments(argument_parser)
    return argument_parser


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[1] == "init"], ids=" ".join)
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
    (block,) = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if text.startswith("cpu:")]
    (tmp_path / "queries.yaml").write_text(block)
    assert set(read_queries(tmp_path / "queries.yaml")) == {"cpu", "memory", "replicas", "load"}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_example_gives_what_the_page_shows(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what `hvpa simulate` prints: test_command.py holds it against `hvpa init`."""
    monkeypatch.chdir(shell.folder)
    monkeypatch.setattr(scenario, "STEP", STEP)
    (shell.folder / "examples").symlink_to(ROOT / "examples")
    commands = [command for command in COMMANDS if " ".join(command) in " ".join(EXAMPLE.split())]
    assert [command[1] for command in commands] == ["init", "simulate", "simulate", "validate"]
    shown = re.findall(r"```(?:text|yaml)\n(.*?)```", EXAMPLE, re.DOTALL)
    made = shell.run(*commands[0][1:])
    assert (made.code, made.err, made.out) == (0, "", shown[0])
    assert (shell.folder / "hvpa-orders" / "hvpa.yaml").read_text() == shown[1]
    for command in commands[1:3]:
        simulated = argparse.ArgumentParser()
        simulate.add_arguments(simulated)
        assert all(path.exists() for path in simulated.parse_args(command[2:]).scenarios)
    assert shell.run(*commands[3][1:]).code == 0


def test_the_manifest_of_the_page_names_its_workload() -> None:
    manifest = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", EXAMPLE, re.DOTALL)[0])
    assert (manifest["kind"], manifest["spec"]["targetRef"]["name"]) == ("Hvpa", "orders")
