"""The flags of a Prometheus server, and the time that they choose."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from hvpa.cli.arguments import checked
from hvpa.cli.errors import UsageError
from hvpa_lab.simulate.scenario.fields import seconds_of

TIMEOUT: Final = "1m"


class Window(NamedTuple):
    """The time that the queries cover."""

    since: float
    """Length in seconds."""
    until: float
    """End in Unix seconds."""
    step: float
    """Query resolution in seconds."""


def window_of(args: argparse.Namespace, until: float) -> Window:
    """The time from the command line, in whole steps."""
    return Window(args.since // args.step * args.step, until // args.step * args.step, args.step)


def add_server(add: Callable[..., Any], text: str, since: str, step: str) -> None:
    """Declares the flags; `text` is the help of the first. `require_server` sets the defaults."""
    add(
        "--prometheus",
        metavar="URL",
        help=f"{text}: URL of a Prometheus server, such as http://localhost:9090",
    )
    text = f"with --prometheus: how far back to query (default {since})"
    add("--since", type=length, metavar="DURATION", help=text)
    text = f"with --prometheus: query resolution (default {step})"
    add("--step", type=length, metavar="DURATION", help=text)
    text = "with --prometheus: file with a bearer token"
    add("--prometheus-token", type=Path, metavar="FILE", help=text)
    text = f"with --prometheus: query timeout (default {TIMEOUT})"
    add("--timeout", type=length, metavar="DURATION", help=text)


def require_server(args: argparse.Namespace, *more: str, since: str, step: str) -> None:
    """Raise UsageError if a flag of the server, or a flag in `more`, is given without a server. Sets the defaults."""
    for flag in (*more, "since", "step", "prometheus_token", "timeout"):
        if args.prometheus is None and getattr(args, flag) is not None:
            raise UsageError(f"--{flag.replace('_', '-')} requires --prometheus")
    for flag, default in (("since", since), ("step", step), ("timeout", TIMEOUT)):
        if getattr(args, flag) is None:
            setattr(args, flag, length(default))


def length(text: str) -> float:
    """A duration of a second or more, in seconds."""
    return checked(
        text,
        seconds_of,
        lambda duration: duration >= 1,
        "a duration of a second or more (such as 1m, 6h, 14d)",
    )
