"""`hvpa run`: the operator as a process."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import Any

import structlog

from hvpa.cli.settings import add_run_arguments, run_settings
from hvpa.kube.client.errors import ConfigError
from hvpa.kube.server.endpoints import AddressError
from hvpa.operator.log import configure_logs
from hvpa.operator.operator import Parts, StartError, operate

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

NAME = "run"
HELP = "run the operator"
add_arguments = add_run_arguments


REAL = Parts()


def main(args: argparse.Namespace, parts: Parts = REAL) -> int:
    """Run the operator: 0 after a signal to stop, 1 when the lease was lost or Hvpas are unknown, 2 for flags that
    can't be used, 3 when the cluster can't be reached."""
    settings = run_settings(args)
    configure_logs(settings.log_format, settings.log_level)
    try:
        with asyncio.Runner(loop_factory=_event_loop()) as runner:
            return runner.run(operate(settings, parts))
    except StartError as error:
        return _fail(error.code, error)
    except ConfigError as error:
        return _fail(3, error)
    except AddressError as error:
        return _fail(2, error)


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, which takes a sixth less CPU for a request; asyncio's own where there is no uvloop (Windows)."""
    try:
        import uvloop
    except ImportError:
        return None

    def new() -> asyncio.AbstractEventLoop:
        loop = uvloop.new_event_loop()
        loop.set_exception_handler(on_loop_error)
        return loop

    return new


def on_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what the event loop complains of. uvloop calls it a fault in the program when the server resets a connection
    that just comes about (MagicStack/uvloop#506), and, with a bare ConnectionResetError, when that happens in the
    handshake of a connection whose attempt was given up at the same time. The request that needed the connection
    fails in any case."""
    error, message = context.get("exception"), context.get("message", "")
    closed = isinstance(error, RuntimeError) and "the handler is closed" in str(error)
    given_up = isinstance(error, ConnectionResetError) and not error.args
    if (closed and "SSL protocol" in message) or (given_up and message.startswith("Future exception")):
        log.debug("a connection was reset while it came about", error=repr(error))
    else:
        loop.default_exception_handler(context)


def _fail(code: int, error: Exception) -> int:
    try:
        print(f"hvpa run: {error}", file=sys.stderr)
    except OSError:
        return code
    return code
