"""docs/export.md: its flags, codes and gates are those of the code, and its YAML can be read."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa_lab.export.command import add_arguments
from hvpa_lab.export.document import HEADER
from hvpa_lab.export.sizes import HOLDS
from hvpa_lab.export.values import ValuePaths
from tests.unit.cli.api_server import Api
from tests.unit.cli.support import Doc
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


# --- the jobs ------------------------------------------------------------------------------------------------------
Job = Callable[[], None]
SHIMS = {
    "hvpa": f'exec {sys.executable} -m hvpa "$@"',
    "pip": "exit 0",
    "gh": 'echo "$@" >> "$GH_LOG"',
}
"""Programs that the jobs run: ours as it is here, and those of the service."""


class Repository:
    """A repository with a copy on a server, and a shell in which the jobs run."""

    def __init__(self, folder: Path, kubeconfig: str) -> None:
        self.origin, self.copy, self.log = folder / "origin.git", folder / "copy", folder / "gh.log"
        (folder / "bin").mkdir()
        for name, script in SHIMS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / "bin" / name).chmod(0o755)
        server = "https://hvpa:token@git.example.com/shop/web.git"
        self.environment = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "SSL_CERT_FILE": os.devnull,
            "RUNNER_TEMP": str(folder),
            "KUBECONFIG_TEXT": Path(kubeconfig).read_text(),
            "GH_LOG": str(self.log),
            "HVPA_KUBECONFIG": kubeconfig,
            "HVPA_WHEEL": "hvpa.whl",
            "WHEEL": "hvpa.whl",
            "HVPA_PUSH_TOKEN": "token",
            "CI_SERVER_HOST": "git.example.com",
            "CI_PROJECT_PATH": "shop/web",
        }
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", self.origin], check=True)
        self.run(
            f"git clone -q {self.origin} {self.copy}; cd {self.copy}; git config user.name me; "
            "git config user.email me@example.com; git switch -q -C main; git commit -q --allow-empty -m first; "
            f"git push -q origin main; git config url.{self.origin}.insteadOf {server}; "
            "git -C ../origin.git config receive.advertisePushOptions true",
            folder,
        )

    def run(self, script: str, folder: Path | None = None) -> str:
        """Run a script as the services do: the first command that fails ends it."""
        argv = ["bash", "-e", "-o", "pipefail", "-c", script]
        done = subprocess.run(
            argv, cwd=folder or self.copy, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def github(self) -> None:
        """Run the steps of the job, from the main branch."""
        self.run("git switch -q main")
        for step in STEPS:
            if "run" in step and "if" not in step:
                self.run(step["run"])

    def gitlab(self) -> None:
        """Run the script of the job, which is one shell, from the main branch."""
        self.run("git switch -q main")
        self.run("\n".join(yaml.safe_load(GITLAB)["sizes"]["script"]))

    def proposed(self) -> list[str]:
        """The files of the branch on the server; none if it does not exist."""
        shown = self.run("git ls-remote --heads origin hvpa-sizes")
        return (
            self.run("git fetch -q origin hvpa-sizes; git ls-tree -r --name-only FETCH_HEAD").split()
            if shown
            else []
        )


@pytest.mark.long
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_a_job_proposes_a_change_once_and_only_a_change(
    tmp_path: Path, kubeconfig: str, api: Api, trajectory: list[Doc], service: str
) -> None:
    owned = [
        {
            "apiVersion": "autoscaling.k8s.io/v1alpha1",
            "kind": "Hvpa",
            "name": "shop",
            "uid": "uid-0",
            "controller": True,
        }
    ]
    for document in trajectory:
        if document["kind"] in ("HorizontalPodAutoscaler", "VerticalPodAutoscaler"):
            document["metadata"]["ownerReferences"] = owned
    api.put(trajectory, "shop")
    repository = Repository(tmp_path, kubeconfig)
    job: Job = getattr(repository, service)
    job()
    assert repository.proposed() == ["sizes/shop/deployment-shop.yaml", "sizes/shop/kustomization.yaml"]
    first = repository.run("git rev-parse FETCH_HEAD")
    if service == "github":
        assert repository.log.read_text() == "pr create --fill --head hvpa-sizes\n"
    repository.run("git switch -q main; git merge -q FETCH_HEAD; git push -q origin main")
    job()
    assert repository.run("git fetch -q origin hvpa-sizes; git rev-parse FETCH_HEAD") == first
