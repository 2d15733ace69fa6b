"""`hvpa pause` and `hvpa resume`.

They set spec.mode of Hvpas in a cluster, each by a conditional write, and name clients that may set the field back.
"""

from __future__ import annotations

import argparse

from hvpa.cli.input.live import Reader
from hvpa.cli.write.hvpas import (
    BEFORE,
    Decide,
    HvpaChange,
    WrittenHvpa,
    add_selection,
    change_selected,
    paused,
)
from hvpa.core.actuation.undo import ANNOTATION as UNDO

add_arguments = add_selection


def main(args: argparse.Namespace) -> int:
    """Pause or resume the selected Hvpas. Raises CommandError."""

    async def decider(_reader: Reader) -> Decide:
        return paused if args.verb == "pause" else _resumed

    return change_selected(args, decider)


def _resumed(hvpa: WrittenHvpa) -> HvpaChange | str:
    if hvpa.spec.mode != "Paused":
        return f"is not paused: its mode is {hvpa.spec.mode}"
    before = hvpa.metadata.annotations.get(BEFORE)
    mode = before if before in ("Apply", "Review", "Recommend") else "Apply"
    return HvpaChange(f"resumed, in mode {mode}", {BEFORE: None, UNDO: None}, mode)
