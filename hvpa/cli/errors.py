"""The end of a failed command: a line and an exit code (DESIGN 9)."""

from __future__ import annotations

import sys

from hvpa.api.values.text import printable

DONE = 0
"""The command succeeded."""
WRONG = 1
"""The input is wrong: an invalid manifest, an Hvpa that does not exist."""
USAGE = 2
"""The command line is wrong (argparse's own code)."""
NOT_REACHED = 3
"""The cluster can't be reached."""


class CommandError(Exception):
    """Ends the command with `code`; the user sees the text as a line."""

    code = WRONG


class UsageError(CommandError):
    """The command line makes no sense."""

    code = USAGE


class ClusterError(CommandError):
    """The cluster can't be reached, or not with these credentials."""

    code = NOT_REACHED


def report_skipped(error: CommandError) -> None:
    """Print the line of an unusable object that is skipped; the command continues without it."""
    print(f"hvpa: skipped: {plain_line(error)}", file=sys.stderr)


def plain_line(text: object) -> str:
    """The text without line breaks, repeated spaces and terminal control characters."""
    return printable(" ".join(str(text).split()))
