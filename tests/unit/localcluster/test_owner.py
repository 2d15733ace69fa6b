"""Which folders and cgroups of killed runs can be removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localcluster import owner
from localcluster.owner import left_in, name_of, owned

GONE = 2**22 + 1
"""The number of no process: larger than the kernel's largest."""


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """A folder with a folder of this process, and with names that `owned` does not make."""
    elsewhere = name_of("other", GONE, "1")
    for name in (f"{owned('hvpa-node')}-a", "hvpa-node-mine", "hvpa-node-1-2", f"{elsewhere}-a"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_folders_of_a_running_process_and_of_others_stay(names: Path) -> None:
    assert left_in(names, "hvpa-node") == []


@pytest.mark.parametrize("process", [GONE, 10**30])
def test_folders_of_a_process_that_has_ended_are_left(names: Path, process: int) -> None:
    left = names / f"{name_of('hvpa-node', process, '1')}-a"
    left.mkdir()
    assert left_in(names, "hvpa-node") == [left]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs the start times of Linux")
def test_a_process_with_the_same_id_is_not_their_owner(names: Path) -> None:
    left = names / f"{name_of('hvpa-node', os.getpid(), '1')}-a"
    left.mkdir()
    assert left_in(names, "hvpa-node") == [left]


def test_a_process_whose_start_is_unknown_keeps_its_folders(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "_start", lambda process: "0")
    (names / f"{owned('hvpa-node')}-b").mkdir()
    assert left_in(names, "hvpa-node") == []


def test_a_process_of_another_user_keeps_its_folders(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(process: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert left_in(names, "hvpa-node") == []


def test_a_process_of_another_namespace_keeps_its_folders(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (names / f"{name_of('hvpa-node', GONE, '1')}-a").mkdir()
    monkeypatch.setattr(owner, "_space", lambda: "2")
    assert left_in(names, "hvpa-node") == []
