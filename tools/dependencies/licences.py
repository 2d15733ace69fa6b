"""The licences of the dependencies, from the metadata of installed packages, and the licences that we accept."""

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
"""SPDX identifiers: permissive licences, and MPL-2.0, which only requires the sources of its own files if they are
changed. We change none."""
CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""By trove classifier: the SPDX identifier."""
_SPDX = re.compile(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+-]+)*")


def licence_of(name: str, version: str) -> str | None:
    """Return the licence as an SPDX expression; None if this version is not installed or states none."""
    try:
        fields = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    if fields["Version"] != version:
        return None
    if "License-Expression" in fields:
        return fields["License-Expression"]
    reported = [
        line.rpartition(" :: ")[2]
        for line in fields.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    known = [CLASSIFIERS[classifier] for classifier in reported if classifier in CLASSIFIERS]
    if known:
        return " OR ".join(sorted(set(known)))
    text = fields["License"] or ""  # None if missing
    return text if _SPDX.fullmatch(text) and len(text) < 60 else None


def is_accepted(expression: str) -> bool:
    """Whether we accept the licence: any of alternatives (OR), all of a combination (AND). Parentheses do not occur."""
    return any(
        all(licence in ACCEPTED for licence in alternative.split(" AND "))
        for alternative in expression.split(" OR ")
    )
