"""docs/export.md: its flags, codes and gates are those of the code, and its YAML can be read."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa_lab.export.command import add_arguments
from hvpa_lab.export.document import HEADER
from hvpa_lab.export.sizes import HOLDS
from hvpa_lab.export.values import ValuePaths
from tests.unit.lab.export.test_values import SIZES, WEB

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/export.md").read_text()
OVERLAY, PATHS, GITHUB, GITLAB = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
STEPS: list[Any] = yaml.safe_load(GITHUB)["jobs"]["export"]["steps"]
SCRIPTS = [step["run"] for step in STEPS if "run" in step] + yaml.safe_load(GITLAB)["sizes"]["script"]
COMMANDS = re.findall(
    r"hvpa (?:export|diff) -.*", "\n".join([*re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL), *SCRIPTS])
)


def parser(verb: str) -> argparse.ArgumentParser:
    """The flags of a command."""
    made = argparse.ArgumentParser(prog=f"hvpa {verb}", add_help=False)
    add_arguments(made)
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_read(command: str) -> None:
    _, verb, *flags = shlex.split(command.partition(" ||")[0], comments=True)
    assert parser(verb).parse_args(flags).verb == verb


def test_there_are_commands_in_all_examples() -> None:
    assert len(COMMANDS) == 7


def test_the_paths_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "paths.yaml"
    path.write_text(PATHS)
    document = ValuePaths(str(path)).document(WEB, SIZES)
    assert set(document["workloads"]["web"]) == {"web", "log"}


def test_the_overlay_names_a_component() -> None:
    assert yaml.safe_load(OVERLAY)["components"] == ["../../sizes/shop"]


def test_the_gates_and_the_header_are_named() -> None:
    listed = PAGE.partition("- **Gates.**")[2].partition("\n- ")[0]
    named = set(re.findall(r"`([A-Z]\w+)`", listed))
    assert named == HOLDS - {"UpdatePolicy"}
    assert HEADER.partition(",")[0] in PAGE


def test_the_role_has_the_rights_of_the_page() -> None:
    role = yaml.safe_load((ROOT / "config/export/role.yaml").read_text())
    granted = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list"}
    table = PAGE.partition("| list | for |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == granted
