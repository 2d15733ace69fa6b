"""`hvpa dashboard`: its flags, and the lifetime of the server.

Locally, it acts with the permissions of the kubeconfig, for the user who started it. In a cluster, it acts with those
of its ServiceAccount, for users whose token may read Hvpas.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Final

from hvpa.cli.arguments import add_cluster, add_operator, add_recommenders, decision_settings
from hvpa.cli.errors import DONE, CommandError, UsageError
from hvpa.cli.input.live import Reader, read_cluster
from hvpa.cli.input.operator import DEFAULT_LEASE
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.credentials import own_namespace
from hvpa.kube.client.errors import ApiError
from hvpa.kube.objects.resources import HVPAS
from hvpa.kube.server.endpoints import AddressError, Guard, parse_address
from hvpa.kube.server.tls import Certificate
from hvpa.operator.log import configure_logs
from hvpa_lab.dashboard.access import OwnToken, token_guard
from hvpa_lab.dashboard.server import Dashboard, Serving
from hvpa_lab.dashboard.table import HvpaTable
from hvpa_lab.dashboard.watched_hvpas import WatchedHvpas

LOOPBACK: Final = "127.0.0.1"
_FORBIDDEN: Final = 403


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add("-n", "--namespace", help="show this namespace (default: the kubeconfig's)")
    add("-A", "--all-namespaces", action="store_true", help="show all namespaces")
    port = f"port at {LOOPBACK} (default 0: any free port; the address is printed)"
    add("--port", type=_port, default=0, metavar="PORT", help=port)
    add("--open", action="store_true", help="open the page in a browser")
    secure = (
        "for a Pod: serve HTTPS at this address instead of HTTP for the local user; clients need a bearer token "
        "that passes a TokenReview and a SubjectAccessReview to list Hvpas"
    )
    add("--secure-bind-address", metavar="ADDRESS", help=secure)
    add(
        "--cert-dir",
        type=Path,
        metavar="DIR",
        help="folder with tls.crt and tls.key for --secure-bind-address",
    )
    add_cluster(add)
    add_recommenders(add)
    add_operator(add)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


def main(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C. Raises CommandError."""
    if (args.secure_bind_address is None) != (args.cert_dir is None):
        raise UsageError(
            "--secure-bind-address and --cert-dir require each other: tokens are never sent unencrypted"
        )
    if args.secure_bind_address is not None and (args.port or args.open):
        raise UsageError("--port and --open can't be used with --secure-bind-address")
    if args.all_namespaces and args.namespace:
        raise UsageError("use either -n or -A, not both")
    if args.secure_bind_address is not None:
        configure_logs("json", "info")
        args.debug = True  # enables the log
    try:
        read_cluster(lambda reader: _serve(reader, args), "hvpa-dashboard", args)
    except (
        KeyboardInterrupt,
        asyncio.CancelledError,
    ):  # Ctrl-C, and SIGTERM in a Pod: the regular end
        return DONE
    raise AssertionError("it ends by an error or an interrupt only")


async def _serve(reader: Reader, args: argparse.Namespace) -> None:
    if args.all_namespaces:
        reader.namespace = None
    await _try(reader)
    own, is_local = OwnToken(), args.secure_bind_address is None
    scope, transport = reader.namespace or ALL_NAMESPACES, reader.transport
    default = DEFAULT_LEASE if is_local else DEFAULT_LEASE._replace(namespace=own_namespace("hvpa-system"))
    lease = args.operator_lease or default
    watched = WatchedHvpas(transport, decision_settings(args), lease)
    table = HvpaTable(transport, scope, watched.changed, lease)
    guard: Guard = own if is_local else token_guard(transport, scope)
    dashboard = Dashboard(transport, table, watched, guard, scope)
    _end_by_sigterm()
    serving = None
    try:
        where, serving = await _listen(dashboard, args)
        if is_local:
            dashboard.hosts = frozenset({where, where.replace(LOOPBACK, "localhost")})
        address = f"http://{where}/#token={own.token}" if is_local else f"HTTPS at {where}, for bearer tokens"
        print(f"{address}\nCtrl-C ends it.", flush=True)
        if args.open:
            webbrowser.open(address)
        await table.run()
    finally:
        if serving is not None:
            await serving.cleanup()
        await watched.close()


def _end_by_sigterm() -> None:
    """Let SIGTERM end the current task: a Pod's first process has no default for it."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError):  # Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def _try(reader: Reader) -> None:
    """List Hvpas once, so that problems are reported here and not only on the page.

    Raises CommandError, ApiError and Unreachable.
    """
    reader.on_unreadable = lambda kind, namespace, name, fault: None
    try:
        if not await reader.list(HVPAS):
            raise CommandError(await reader.why_no_hvpas())
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        if not await reader.is_served(HVPAS):
            raise CommandError(await reader.why_no_hvpas()) from error
        wider = "; -n NAMESPACE shows a single namespace" if reader.namespace is None else ""
        raise CommandError(f"no right to list hvpas: {error}{wider}") from error


async def _listen(dashboard: Dashboard, args: argparse.Namespace) -> tuple[str, Serving]:
    """Listen; returns host and port. Raises CommandError."""
    host, port, tls = LOOPBACK, args.port, None
    try:
        if args.secure_bind_address is not None:
            where = parse_address(args.secure_bind_address)
            if where is None:
                raise AddressError("--secure-bind-address: 0 is not an address")
            host, port = where[0] or "", where[1]
            tls = Certificate(args.cert_dir).context
        serving = await dashboard.listen(host or None, port, tls)
    except AddressError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise CommandError(f"can't listen on {host}:{port}: {error.strerror or error}") from error
    return f"{host}:{serving.port}", serving
