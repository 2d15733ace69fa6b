"""`hvpa pause`: sets spec.mode of Hvpas to Paused, so that their workloads are left as they are."""

from __future__ import annotations

import argparse

from hvpa.cli.mode.change import Change, PausableHvpa, add_selection, change_mode

NAME = "pause"
HELP = "set spec.mode of Hvpas to Paused: their workloads are left as they are"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_selection(parser.add_argument, NAME)


def main(args: argparse.Namespace) -> int:
    """Pause the Hvpas that were named. Raises CommandError."""
    return change_mode(args, NAME, _paused)


def _paused(hvpa: PausableHvpa) -> Change | str:
    if hvpa.spec.mode == "Paused":
        return "is paused already"
    return Change("Paused", f"paused (its mode was {hvpa.spec.mode})", before=hvpa.spec.mode)
