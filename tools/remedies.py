"""Prints docs/remedies.md: remedies for each reason of a condition, from the table in `hvpa.core.report.remedies`."""

from __future__ import annotations

import sys

from hvpa.core.report.remedies import FAMILIES, REMEDIES

_BEFORE = """# What to do about a reason

Each reason of a condition that needs a user to act. Events and the operator's log end with the same sentence, and
`hvpa explain` shows it. [Troubleshooting](troubleshooting.md) says more about most of them. (`make generate` writes
this page.)

| reason | what to do |
| --- | --- |
"""


def page() -> str:
    """Return the page."""
    rows = {**REMEDIES, **{f"{prefix}…": text for prefix, text in FAMILIES.items()}}
    return _BEFORE + "".join(f"| `{reason}` | {text} |\n" for reason, text in rows.items())


if __name__ == "__main__":
    sys.stdout.write(page())
