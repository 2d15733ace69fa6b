"""What the programs of the test world are built from decides where they are kept: their modules, and for those that
replay scenarios our source."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcluster.programs import build
from localcluster.programs.toolchain import MODULES, Go

GO = Go((1, 26, 8), Path("/nowhere/go"))


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folders of modules with a Go file in each of ours."""
    for folder in {group.modules for group in build._GROUPS.values()}:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "go.mod").write_text(f"module {folder}\n")
        (tmp_path / folder / "go.sum").write_text("")
    for folder, source in (("core", "hpa-replay"), ("addons", "vpa-replay")):
        (tmp_path / folder / source).mkdir()
        (tmp_path / folder / source / "main.go").write_text("package main\n")
    monkeypatch.setattr(build, "MODULES", tmp_path)
    return tmp_path


def keys() -> dict[str, str]:
    """The cache folder of each group of programs."""
    return {name: build._key(name, GO) for name in build._GROUPS}


def changed(before: dict[str, str]) -> set[str]:
    return {name for name, key in keys().items() if key != before[name]}


def test_our_source_moves_its_own_program_only(modules: Path) -> None:
    before = keys()
    (modules / "core" / "hpa-replay" / "main.go").write_text("package main // changed\n")
    assert changed(before) == {"hpa-replay"}
    (modules / "addons" / "vpa-replay" / "more.go").write_text("package main\n")
    assert changed(before) == {"hpa-replay", "vpa-replay"}


def test_so_does_source_in_a_folder_below(modules: Path) -> None:
    before = keys()
    (modules / "core" / "hpa-replay" / "world").mkdir()
    (modules / "core" / "hpa-replay" / "world" / "pods.go").write_text("package world\n")
    assert changed(before) == {"hpa-replay"}


def test_versions_of_modules_move_all_that_is_built_of_them(modules: Path) -> None:
    before = keys()
    (modules / "core" / "go.sum").write_text("k8s.io/kubernetes v1.36.4 h1:…\n")
    assert changed(before) == {"core", "hpa-replay"}
    (modules / "addons" / "go.mod").write_text("module addons // changed\n")
    assert changed(before) == {"core", "hpa-replay", "addons", "vpa-replay"}


@pytest.mark.parametrize(
    "other",
    [
        {"packages": {"kwok": "sigs.k8s.io/kwok/cmd/another"}},
        {"shared": {"vpa-crd.yaml": ("k8s.io/autoscaler/vertical-pod-autoscaler", "deploy/another.yaml")}},
    ],
)
def test_another_package_or_another_file_of_a_module_moves_its_group(
    modules: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    before = keys()
    monkeypatch.setitem(build._GROUPS, "addons", replace(build._GROUPS["addons"], **other))
    assert changed(before) == {"addons"}


def test_a_go_of_another_minor_version_moves_all(modules: Path) -> None:
    old, fixed, new = (
        {build._key(name, Go(version, None)) for name in build._GROUPS}
        for version in ((1, 26, 8), (1, 26, 9), (1, 27, 0))
    )
    assert old == fixed
    assert not old & new


def test_each_group_has_a_folder_of_its_own(modules: Path) -> None:
    assert len(set(keys().values())) == len(build._GROUPS)
    assert all(key.startswith(f"{name}-") for name, key in keys().items())


def test_an_api_server_of_another_version_is_a_group_of_its_own_and_says_its_version(modules: Path) -> None:
    before = keys()
    (modules / "apiserver-1.30" / "go.sum").write_text("k8s.io/kubernetes v1.30.15 h1:…\n")
    assert changed(before) == {"apiserver-1.30"}
    for minor, version in build.other_versions().items():
        assert version.startswith(f"v{minor}.")
        assert f"gitVersion={version}" in build._flags(build._GROUPS[f"apiserver-{minor}"])[-1]


def test_the_control_plane_says_its_version() -> None:
    version = build.kubernetes_version()
    assert f"gitVersion={version}" in build._flags(build._GROUPS["core"])[-1]
    assert "core" not in build.other_versions()


def test_the_staging_modules_of_each_api_server_are_of_its_version() -> None:
    for folder in sorted(MODULES.glob("*/")):
        text = (folder / "go.mod").read_text()
        staged = set(re.findall(r"^\tk8s\.io/\S+ => k8s\.io/\S+ (\S+)", text, re.MULTILINE))
        if staged:
            assert staged == {f"v0{build._version(folder.name).removeprefix('v1')}"}
