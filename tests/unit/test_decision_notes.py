"""The index of the decisions has every note, and each of its links is a note."""

from __future__ import annotations

import re
from pathlib import Path

NOTES = Path(__file__).parents[2] / "docs" / "decisions"


def test_the_index_has_every_note_once() -> None:
    index = (NOTES / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"^\| \[\d{4}\]\((\S+)\)", index, re.MULTILINE)
    assert sorted(linked) == sorted(path.name for path in NOTES.glob("[0-9]*.md"))
