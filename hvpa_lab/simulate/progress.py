"""Resources and progress of a simulation: its number of processors, and a bar or lines on standard error."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hvpa.cli import laboratory
from hvpa.cli.arguments import Add
from hvpa_lab.simulate.parallel import Progress

QUIET_FOR: Final = 1.5
"""Seconds that a run may take before it shows its progress."""
LINE_EVERY: Final = 30.0
"""Seconds between two lines, if standard error is no terminal."""


def add_progress(add: Add) -> None:
    """Declare `--progress`."""
    text = (
        "progress bar on standard error; auto: if the command takes long, and as lines if it is no terminal (default:"
        " auto)"
    )
    add("--progress", choices=("auto", "always", "never"), default="auto", help=text)


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def progress_bar(wanted: str) -> Iterator[Progress]:
    """A function that shows the progress: by a temporary bar, by lines, or not at all. Raises CommandError if `wanted`
    is `always` and the library for bars is not installed."""
    if wanted == "always":
        laboratory.require("--progress always", "tqdm")
    if wanted == "never":
        yield lambda done, total: None
        return
    if wanted == "auto" and not (sys.stderr.isatty() and importlib.util.find_spec("tqdm")):
        yield _lines()
        return
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # without a separate thread
    bar = tqdm(
        total=1.0,
        desc="simulating",
        delay=0 if wanted == "always" else QUIET_FOR,
        leave=False,
        file=sys.stderr,
        bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
    )
    with bar:

        def show(done: float, total: float) -> None:
            bar.update(max(0.0, done / total - bar.n))

        yield show


def _lines() -> Progress:
    """A function that prints the progress as a line from time to time."""
    last = time.monotonic()

    def show(done: float, total: float) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= LINE_EVERY:
            last = now
            print(f"simulating: {done / total:.0%}", file=sys.stderr, flush=True)

    return show
