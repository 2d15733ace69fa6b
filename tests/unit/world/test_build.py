"""What the programs of the test world are built from decides where they are kept: their modules, and for those that
replay scenarios our source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.world import build
from tests.e2e.world.toolchain import Go

GO = Go((1, 26, 8), Path("/nowhere/go"))


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folders of modules with a Go file in each of ours."""
    for folder, source in (("core", "hpa-replay"), ("addons", "vpa-replay")):
        (tmp_path / folder / source).mkdir(parents=True)
        (tmp_path / folder / source / "main.go").write_text("package main\n")
        (tmp_path / folder / "go.mod").write_text(f"module {folder}\n")
        (tmp_path / folder / "go.sum").write_text("")
    monkeypatch.setattr(build, "MODULES", tmp_path)
    return tmp_path


def keys() -> dict[str, str]:
    """The cache folder of each group of programs."""
    groups = {**build._CONTROL_PLANE, **build._REPLAYS}
    return {name: build._key(name, group, GO) for name, group in groups.items()}


def changed(before: dict[str, str]) -> set[str]:
    return {name for name, key in keys().items() if key != before[name]}


def test_our_source_moves_its_own_program_only(modules: Path) -> None:
    before = keys()
    (modules / "core" / "hpa-replay" / "main.go").write_text("package main // changed\n")
    assert changed(before) == {"hpa-replay"}
    (modules / "addons" / "vpa-replay" / "more.go").write_text("package main\n")
    assert changed(before) == {"hpa-replay", "vpa-replay"}


def test_versions_of_modules_move_all_that_is_built_of_them(modules: Path) -> None:
    before = keys()
    (modules / "core" / "go.sum").write_text("k8s.io/kubernetes v1.36.4 h1:…\n")
    assert changed(before) == {"core", "hpa-replay"}
    (modules / "addons" / "go.mod").write_text("module addons // changed\n")
    assert changed(before) == {"core", "hpa-replay", "addons", "vpa-replay"}


def test_each_group_has_a_folder_of_its_own(modules: Path) -> None:
    assert len(set(keys().values())) == 4
    assert all(key.startswith(f"{name}-") for name, key in keys().items())
