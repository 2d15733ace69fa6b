"""The pages that users read, and the blocks of code in them."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "charts/hvpa/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
COMMAND: Final = re.compile(
    r"^(?:\$ )?(?:kubectl|hvpa|make|helm|git|docker|promtool|pip|python3?)\b(?!/)", re.MULTILINE
)


class Block(NamedTuple):
    """A fenced block."""

    page: str
    language: str
    text: str

    @property
    def first(self) -> str:
        """Its first line, without what is said about it."""
        return re.sub(r"  +#.*", "", self.text.partition("\n")[0])

    @property
    def has_commands(self) -> bool:
        """Whether a reader is to type something of it, however it is tagged."""
        return self.language in ("sh", "bash", "shell", "console") or bool(COMMAND.search(self.text))


def every_block() -> list[Block]:
    """All blocks of all pages, those in lists included."""
    blocks = []
    for page in PAGES:
        for _indent, language, text in re.findall(
            r"^( *)```(\w*)\n(.*?)^\1```$", page.read_text(), re.MULTILINE | re.DOTALL
        ):
            blocks.append(Block(str(page.relative_to(ROOT)), language, textwrap.dedent(text)))
    return blocks


def shown(text: str) -> list[tuple[str, str]]:
    """What a page shows of a terminal: commands after `$ `, and what they print."""
    return re.findall(r"```\n\$ (.*?)\n(.*?)```", text, re.DOTALL)
