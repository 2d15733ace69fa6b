"""The rooms are as docs/architecture.md says, and none of them is a long row of files."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
MOST = 12
NAMED = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", PAGE)))


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_is_there(name: str) -> None:
    assert (ROOT / "hvpa" / name).exists() or (ROOT / name).exists()


def test_the_picture_shows_every_room() -> None:
    picture = PAGE.partition("```\nhvpa/")[2].partition("```")[0]
    rooms = {path.parent.name for path in (ROOT / "hvpa").glob("*/__init__.py")}
    rooms |= {path.parent.name for path in (ROOT / "hvpa" / "core").glob("*/__init__.py")}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", picture)} == set()


@pytest.mark.parametrize("part", ["hvpa", "localcluster", "benchmarks"])
def test_no_folder_has_more_than_a_dozen_modules(part: str) -> None:
    modules = Counter(path.parent for path in (ROOT / part).rglob("*.py") if path.name != "__init__.py")
    assert {str(folder.relative_to(ROOT)): count for folder, count in modules.items() if count > MOST} == {}
