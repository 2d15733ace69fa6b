"""Checks how plain the English is: counts phrases that make readers stop, per 1,000 words, with a ceiling for each.

usage: python -m tools.prose [--files N]     --files: also the N worst files of each part

The ceilings are below the frequencies that the docs of VPA, KEDA, karpenter, cert-manager and kopf have, or slightly
above: these have 0.6 to 1.2 "what", 0.2 to 1.3 "where", and 1.3 to 3.7 "one" per 1,000 words.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PHRASES: Final[Mapping[str, re.Pattern[str]]] = {
    "what": re.compile(r"\bwhat\b", re.IGNORECASE),
    "where": re.compile(r"\bwhere\b", re.IGNORECASE),
    "one(s)": re.compile(r"\bones?\b", re.IGNORECASE),
    "is/are to do": re.compile(r"\b(?:is|are|was|were) to (?!(?:the|a|an|this)\b)[a-z]+", re.IGNORECASE),
    "so much": re.compile(r"\bso (?:much|many|often|long as)\b", re.IGNORECASE),
    "old words": re.compile(
        r"\b(?:anew|of late|at last|all the same|as ever|but for|meanwhile|nevertheless|beside|thereof|reckon\w*)\b",
        re.IGNORECASE,
    ),
}
CEILINGS: Final[Mapping[str, tuple[float, ...]]] = {
    "README": (2.5, 2.0, 3.5, 0.5, 0.5, 0.5),
    "docs": (2.0, 1.0, 3.5, 0.5, 0.5, 0.5),
    "docstrings": (1.0, 0.5, 2.5, 0.5, 0.5, 0.5),
    "messages": (1.0, 0.5, 3.0, 0.5, 0.5, 0.5),
}
"""Highest frequencies per 1,000 words of a part, in the order of PHRASES."""
PACKAGES: Final = ("hvpa", "hvpa_lab")
SHORTEST_MESSAGE: Final = 4
"""Words; a shorter string is no sentence."""
_NOT_PROSE: Final = re.compile(r"```.*?```|`[^`]*`|<!--.*?-->|https?://\S+|\]\([^)]*\)", re.DOTALL)


class PhraseCount(NamedTuple):
    """Words of a text, and how often each phrase occurs, in the order of PHRASES."""

    words: int
    phrases: tuple[int, ...]

    def per_thousand(self) -> tuple[float, ...]:
        """Frequencies per 1,000 words."""
        return tuple(1000 * number / max(1, self.words) for number in self.phrases)


def count(text: str) -> PhraseCount:
    """Counts words and phrases of a text, without code, comments and addresses."""
    plain = _NOT_PROSE.sub(" ", text)
    phrases = tuple(len(pattern.findall(plain)) for pattern in PHRASES.values())
    return PhraseCount(len(re.findall(r"[A-Za-z']+", plain)), phrases)


def texts_of_module(source: str) -> tuple[str, str]:
    """Returns the docstrings of a module (of attributes as well), and its strings of four words or more."""
    tree = ast.parse(source)
    standing = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    documented = {id(node) for node in standing}
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and id(node) not in documented and isinstance(node.value, str)
    ]
    docstrings = [node.value for node in standing if isinstance(node.value, str)]
    return "\n".join(docstrings), "\n".join(text for text in strings if len(text.split()) >= SHORTEST_MESSAGE)


def parts(root: Path) -> Iterator[tuple[str, Path, str]]:
    """Yields part, file and text of all prose. The changelog does not count: it is history."""
    for page in (*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("docs/reference/*.md")):
        if page.name != "CHANGELOG.md":
            yield ("README" if page == root / "README.md" else "docs"), page, page.read_text()
    for package in PACKAGES:
        for module in (root / package).rglob("*.py"):
            docstrings, messages = texts_of_module(module.read_text())
            yield "docstrings", module, docstrings
            yield "messages", module, messages


def total(counts: list[PhraseCount]) -> PhraseCount:
    """Adds counts."""
    return PhraseCount(
        sum(counted.words for counted in counts),
        tuple(map(sum, zip(*(counted.phrases for counted in counts), strict=True))),
    )


def above(part: str, counted: PhraseCount) -> list[str]:
    """Returns a line for each phrase that is more frequent than the part's ceiling allows."""
    rates = zip(PHRASES, counted.per_thousand(), CEILINGS[part], strict=True)
    return [
        f"{part}: '{phrase}' occurs {rate:.1f} times per 1,000 words; at most {ceiling} is allowed"
        for phrase, rate, ceiling in rates
        if rate > ceiling
    ]


def main() -> int:
    """Prints the frequencies. Returns 1 if one is above its ceiling."""
    parser = argparse.ArgumentParser(description="Check the English of docs, docstrings and messages.")
    parser.add_argument(
        "--files", type=int, default=0, metavar="N", help="also print the N worst files of each part"
    )
    parser.add_argument("--quiet", action="store_true", help="print only what is above a ceiling")
    args = parser.parse_args()
    counted_files: dict[str, list[tuple[Path, PhraseCount]]] = {part: [] for part in CEILINGS}
    for part, file, text in parts(ROOT):
        counted_files[part].append((file, count(text)))
    problems = []
    lines = [f"{'per 1,000 words':16}{'words':>8}" + "".join(f"{phrase:>14}" for phrase in PHRASES)]
    for part, files in counted_files.items():
        whole = total([counted for _, counted in files])
        problems += above(part, whole)
        lines.append(f"{part:16}{whole.words:8}" + "".join(f"{rate:14.1f}" for rate in whole.per_thousand()))
        worst = sorted(files, key=lambda pair: -sum(pair[1].phrases))[: args.files]
        lines += [f"  {sum(counted.phrases):5} {file.relative_to(ROOT)}" for file, counted in worst]
    if not args.quiet:
        print("\n".join(lines))
    for problem in problems:
        print(f"{problem} (docs/decisions/0068-plain-english.md)", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
