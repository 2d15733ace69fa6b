"""What the programs of the local cluster are built from decides where they are kept: their modules, and for those that
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


@pytest.mark.parametrize(
    ("file", "groups"),
    [
        ("core/hpa-replay/main.go", {"hpa-replay"}),
        ("core/hpa-replay/cluster/pods.go", {"hpa-replay"}),
        ("addons/vpa-replay/more.go", {"vpa-replay"}),
        ("addons/updater-replay/main.go", {"updater-replay"}),
        ("core/go.sum", {"core", "hpa-replay", "kubelet"}),
        ("node/load/main.go", {"node"}),
        ("node/web/main.go", {"node"}),
        ("runc/go.mod", {"runc"}),
        ("addons/vpa-webhook/main.go", {"vpa"}),
        ("addons/go.mod", {"addons", "updater-replay", "vpa", "vpa-replay"}),
        ("apiserver-1.30/go.sum", {"apiserver-1.30"}),
        ("crane/go.sum", {"crane"}),
        ("helm/go.mod", {"helm"}),
        ("operator-verify/go.mod", {"operator-verify"}),
        ("prometheus/go.sum", {"prometheus"}),
        ("monitoring-crds/go.mod", {"monitoring-crds"}),
    ],
)
def test_a_changed_file_moves_what_is_built_of_it(modules: Path, file: str, groups: set[str]) -> None:
    before = keys()
    (modules / file).parent.mkdir(exist_ok=True)
    (modules / file).write_text("changed\n")
    assert changed(before) == groups


def test_a_real_node_needs_a_compiler_until_runc_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(build, "find_go", lambda: GO)
    assert build.node_needs_compiler()
    folder = tmp_path / "hvpa" / "controlplane" / keys()["runc"] / "bin"
    folder.mkdir(parents=True)
    (folder / "runc").touch()
    assert not build.node_needs_compiler()


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


def test_each_control_plane_says_its_version() -> None:
    versions = {f"apiserver-{minor}": version for minor, version in build.other_versions().items()}
    assert all(version.startswith(f"v{name.partition('-')[2]}.") for name, version in versions.items())
    for name, version in {**versions, "core": build.kubernetes_version()}.items():
        assert f"gitVersion={version}" in build._flags(build._GROUPS[name])[-1]
    assert "core" not in build.other_versions()


def test_the_staging_modules_of_each_api_server_are_of_its_version() -> None:
    for folder in sorted(MODULES.glob("*/")):
        text = (folder / "go.mod").read_text()
        staged = set(re.findall(r"^\tk8s\.io/\S+ => k8s\.io/\S+ (\S+)", text, re.MULTILINE))
        if staged:
            assert staged == {f"v0{build._version(folder.name).removeprefix('v1')}"}
