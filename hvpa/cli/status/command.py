"""`hvpa status`: the state of one Hvpa at a glance, and where each of its pods stands. Writes nothing."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Final

from hvpa.cli.arguments import add_cluster
from hvpa.cli.errors import DONE, one_line
from hvpa.cli.input.live import Reader, is_of_the_server, read_cluster
from hvpa.cli.status.json import to_json
from hvpa.cli.status.text import to_text
from hvpa.cli.status.view import View, view_of
from hvpa.core import observe
from hvpa.core.model import Settings
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.clock import SystemClock

NAME = "status"
HELP = "show the state of an Hvpa and of each of its pods: its size, the desired one, and what it waits for"
PERIOD: Final = 2.0
"""Seconds between looks of `--watch`."""
_CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"
"""Empties a terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add("name", metavar="NAME", help="the Hvpa")
    add("-n", "--namespace", help="the Hvpa's namespace (default: the kubeconfig's)")
    add("-w", "--watch", action="store_true", help="show it again when something changes, until Ctrl-C")
    add("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    add_cluster(add)


def main(args: argparse.Namespace) -> int:
    """Show one Hvpa. Raises CommandError."""
    if not args.watch:
        print(_drawn(read_cluster(lambda reader: _look(reader, args.name), "hvpa-status", args), args))
        return DONE
    try:
        read_cluster(lambda reader: _watch(reader, args), "hvpa-status", args)
    except KeyboardInterrupt:  # how a watch is meant to end
        return DONE
    raise AssertionError("a watch ends by an error or an interrupt only")


async def _look(reader: Reader, name: str) -> View:
    objects = await reader.objects(name)
    return view_of(objects, observe(objects, SystemClock().now(), Settings()))


async def _watch(reader: Reader, args: argparse.Namespace) -> None:
    """Show the Hvpa whenever its state is another. On a terminal ages go on as well. Where the API server does not
    respond, the last state stays until it does."""
    is_terminal = sys.stdout.isatty()
    shown: object = None
    fault = ""
    while True:
        try:
            view = await _look(reader.again(), args.name)
        except (Unreachable, ApiError) as error:
            if shown is None or (isinstance(error, ApiError) and not is_of_the_server(error)):
                raise
            if str(error) != fault:
                print(f"no response from the cluster; trying again: {one_line(error)}", file=sys.stderr)
            fault = str(error)
        else:
            fault, text = "", _drawn(view, args)
            state: object = text if is_terminal else view
            if state != shown:
                print(f"{_CLEAR}{text}" if is_terminal else f"{text}\n", flush=True)
            shown = state
        await asyncio.sleep(PERIOD)


def _drawn(view: View, args: argparse.Namespace) -> str:
    return to_json(view) if args.output == "json" else to_text(view, SystemClock().now())
