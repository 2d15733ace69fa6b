"""`hvpa resume`: gives paused Hvpas the mode back that they had."""

from __future__ import annotations

import argparse
from typing import Final

from hvpa.cli.mode.change import BEFORE, Change, PausableHvpa, add_selection, change_mode

NAME = "resume"
HELP = "give paused Hvpas the mode back that `hvpa pause` found, else Apply"
_MODES: Final = ("Apply", "Recommend")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_selection(parser.add_argument, NAME)


def main(args: argparse.Namespace) -> int:
    """Resume the Hvpas that were named. Raises CommandError."""
    return change_mode(args, NAME, _resumed)


def _resumed(hvpa: PausableHvpa) -> Change | str:
    if hvpa.spec.mode != "Paused":
        return f"is not paused: its mode is {hvpa.spec.mode}"
    before = hvpa.metadata.annotations.get(BEFORE)
    mode = before if before in _MODES else "Apply"
    return Change(mode, f"resumed, in mode {mode}")
