"""Files appear together or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hvpa.cli.errors import CommandError
from hvpa_lab.init.files import publish, refuse_taken, workshop

FILES = {"a": "1", "b": "2"}


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_new_folder_has_all_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    with workshop(tmp_path / "out") as made:
        publish(made, tmp_path / "out", FILES)
    assert content(tmp_path / "out") == FILES
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def test_files_of_a_folder_that_is_there_are_replaced_and_others_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a").write_text("old")
    (out / "other").write_text("mine")
    with workshop(out) as made:
        publish(made, out, FILES)
    assert content(out) == {**FILES, "other": "mine"}


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with workshop(tmp_path / "out") as made:
            (made / "ready").mkdir()  # what publish makes
            publish(made, tmp_path / "out", FILES)

    with pytest.raises(CommandError, match="out can't be written: File exists"):
        fail()
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_taken_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refuse_taken(tmp_path / "new", force=False)
    refuse_taken(tmp_path, force=True)
    for folder, force, reason in (
        (tmp_path / "file", True, "file is not a folder"),
        (tmp_path, False, "already exists; --force"),
        (tmp_path / "absent" / "out", False, "absent is not a writable folder"),
    ):
        with pytest.raises(CommandError, match=reason):
            refuse_taken(folder, force=force)
    with pytest.raises(CommandError, match="absent: No such file"), workshop(tmp_path / "absent" / "out"):
        pass
