"""What a remedy must be so that a reader can follow it."""

from __future__ import annotations

import re

from hvpa.api.objects.kinds import KINDS
from tests.unit.api.test_crd import ALL

VERBS = re.compile(r"(add|extend|fit|let|only|raise|remove|set|use) ")
SPELLINGS: dict[str, set[str]] = {"hvpa": {"HVPA", "Hvpa"}, **{kind.lower(): {kind} for kind in KINDS}}
"""The kinds, and the fields and values of the CRD, by their names in small letters."""
for _schema in ALL.values():
    for _name in (*_schema.get("enum", ()), *_schema.get("properties", ())):
        SPELLINGS.setdefault(_name.lower(), set()).add(_name)
for _word in ("in", "raise", "node", "other", "go", "wait", "pass", "review"):
    del SPELLINGS[_word]  # an operator of selectors, a mode of the fast signal, runtimes, rescues: words, too


def faults(remedy: str) -> list[str]:
    """The words that are a field or value of the CRD in another spelling; and the first, unless it says what to do."""
    words = re.findall(r"\w+", remedy)
    misspelt = [word for word in words if word not in SPELLINGS.get(word.lower(), {word})]
    return misspelt if VERBS.match(remedy) else [words[0], *misspelt]
