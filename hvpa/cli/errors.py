"""What a command that fails ends with: one line and an exit code (DESIGN 9)."""

from __future__ import annotations

import sys

from hvpa.api.values.text import printable

DONE = 0
"""The command has done what it is for."""
WRONG = 1
"""What the command looked at is wrong: an invalid manifest, an Hvpa that does not exist."""
USAGE = 2
"""The command line is wrong (argparse's own code)."""
NOT_REACHED = 3
"""The cluster can't be reached."""


class CommandError(Exception):
    """Ends the command with `code`; the text is the line that the user sees."""

    code = WRONG


class UsageError(CommandError):
    """The command line makes no sense."""

    code = USAGE


class ClusterError(CommandError):
    """The cluster can't be reached, or not with these credentials."""

    code = NOT_REACHED


def report_skipped(error: CommandError) -> None:
    """Print the one line of an object that can't be used, and is skipped: the command goes on without it."""
    print(f"hvpa: skipped: {one_line(error)}", file=sys.stderr)


def one_line(text: object) -> str:
    """The text without line breaks, runs of spaces and what a terminal obeys."""
    return printable(" ".join(str(text).split()))
