"""pyproject.toml, the lock files and the console scripts fit together."""

from __future__ import annotations

import importlib
import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: ; sys_platform != \"win32\")? \\$", re.MULTILINE)


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _pins(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text()
    return {canonicalize_name(name): version for name, version in _PIN.findall(text)}


def _declared(lock: str) -> list[str]:
    project = _project()["project"]
    extras = project["optional-dependencies"]
    declared: dict[str, list[str]] = {
        "requirements.lock": project["dependencies"],
        "requirements-dev.lock": [
            text for part in (project["dependencies"], *extras.values()) for text in part
        ],
        "requirements-build.lock": _project()["build-system"]["requires"],
    }
    return declared[lock]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_what_is_declared(lock: str) -> None:
    pins = _pins(lock)
    for text in _declared(lock):
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_hashes_for_all_and_addresses_for_none(lock: str) -> None:
    lines = (ROOT / lock).read_text().splitlines()
    for before, line in itertools.pairwise(lines):
        if _PIN.match(before + "\n"):
            assert line.startswith("    --hash=sha256:"), before
    assert not [line for line in lines if re.search(r"://|--index|--find|--trusted| @ ", line)]


def test_tests_run_with_what_the_operator_runs_with() -> None:
    assert _pins("requirements.lock").items() <= _pins("requirements-dev.lock").items()
    assert _pins("requirements-build.lock").items() <= _pins("requirements-dev.lock").items()


def test_every_dependency_is_bounded_from_below() -> None:
    for text in _declared("requirements-dev.lock"):
        assert re.search(r"[>=]=", str(Requirement(text).specifier)), text


def test_console_scripts_exist() -> None:
    scripts = _project()["project"]["scripts"]
    assert scripts.keys() == {"hvpa", "kubectl-hvpa"}
    for target in scripts.values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_the_changelog_describes_this_version() -> None:
    version = _project()["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_chart_image_and_pages_have_this_version() -> None:
    version = _project()["project"]["version"]
    chart = yaml.safe_load((ROOT / "charts/hvpa/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)
    places = ["README.md", "config/manager/deployment.yaml", "docs/getting-started.md", "docs/releases.md"]
    pattern = r"(?:\bhvpa[:-]|--version )(\d+\.\d+\.\d+)"
    named = {name: re.findall(pattern, (ROOT / name).read_text()) for name in places}
    assert {name: set(versions) for name, versions in named.items()} == {name: {version} for name in places}


def test_no_documents_link_leads_nowhere() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"
