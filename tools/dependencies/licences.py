"""Under which licences the dependencies come, from the metadata of what is installed, and which of them we accept."""

from __future__ import annotations

import re
from importlib import metadata

ACCEPTED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "MIT",
        "MPL-2.0",
        "PSF-2.0",
        "Unlicense",
        "Zlib",
    }
)
"""SPDX identifiers: permissive ones, and MPL-2.0, which asks for the sources of its own files only, where they are
changed, and we change none."""
CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Trove classifiers to SPDX identifiers."""
_SPDX = re.compile(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+-]+)*")


def licence_of(name: str, version: str) -> str | None:
    """The licence as an SPDX expression; None where this version is not installed or has none."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    if found["Version"] != version:
        return None
    if "License-Expression" in found:
        return found["License-Expression"]
    reported = [
        line.rpartition(" :: ")[2]
        for line in found.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    known = [CLASSIFIERS[one] for one in reported if one in CLASSIFIERS]
    if known:
        return " OR ".join(sorted(set(known)))
    text = found["License"] or ""  # None where there is none
    return text if _SPDX.fullmatch(text) and len(text) < 60 else None


def is_accepted(expression: str) -> bool:
    """Whether we may use it: of alternatives one, of what holds together all. (Parentheses are none that occur.)"""
    return any(
        all(one in ACCEPTED for one in alternative.split(" AND ")) for alternative in expression.split(" OR ")
    )
