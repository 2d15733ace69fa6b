"""`hvpa run`: the operator as a process, its flags, and its settings."""

from __future__ import annotations

import argparse
import asyncio
import re
import socket
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog

from hvpa.cli.arguments import add_cluster, add_recommenders, checked, count_from, decision_settings
from hvpa.cli.errors import NOT_REACHED, USAGE
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.credentials import own_namespace
from hvpa.kube.client.errors import ConfigError
from hvpa.kube.client.limits import MAX_IN_FLIGHT
from hvpa.kube.leases.lease_api import Candidate, LeaseTimes
from hvpa.kube.server.endpoints import AddressError, parse_address
from hvpa.operator.log import configure_logs
from hvpa.operator.operator import Parts, StartError, operate
from hvpa.operator.settings import RunSettings

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REAL = Parts()
MOST_SHARDS = 256
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("json", "console")


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    """A type for texts that match the pattern."""
    return lambda text: checked(text, str, re.compile(pattern).fullmatch, what)


_namespace = _matching(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "a namespace")
_lease_name = _matching(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", "a Lease's name of at most 63 characters")
"""Also the value of a label, if the work is divided."""
_positive = count_from(1)


def _shards(text: str) -> int:
    if _positive(text) > MOST_SHARDS:
        raise argparse.ArgumentTypeError(f"{text!r} is above {MOST_SHARDS}")
    return int(text)


def _port(text: str) -> int:
    if _positive(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is above 65535")
    return int(text)


def _address(text: str) -> str:
    try:
        parse_address(text)
    except AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add_cluster(add)
    namespaces = "repeatable (default: all namespaces)"
    add("--namespace", action="append", type=_namespace, default=[], help=namespaces)
    add_recommenders(add)
    workers = "maximum concurrent reconciles (default and upper limit: --max-in-flight)"
    add("--workers", type=_positive, metavar="N", help=workers)
    in_flight = f"maximum concurrent writes to the API server, not counting leases (default {MAX_IN_FLIGHT})"
    add("--max-in-flight", type=_positive, default=MAX_IN_FLIGHT, metavar="N", help=in_flight)
    add("--leader-elect", action="store_true", help="reconcile only while holding a Lease")
    shards = "number of shards, divided among all replicas (default 1: a single replica does all the work)"
    add("--shards", type=_shards, default=1, metavar="N", help=shards)
    lease_namespace = "default: the Pod's namespace, or `default` outside of a cluster"
    add("--lease-namespace", type=_namespace, help=lease_namespace)
    add("--lease-name", type=_lease_name, default="hvpa", help="default: hvpa")
    add("--lease-duration", type=_positive, default=15, metavar="SECONDS", help="default: 15")
    for flag, address in (("--metrics-bind-address", ":9569"), ("--health-probe-bind-address", ":8081")):
        add(flag, type=_address, default=address, metavar="ADDRESS", help=f"default {address}; 0: none")
    secure = "metrics over HTTPS, for clients whose bearer token has the right to `get` /metrics"
    add("--metrics-secure", action="store_true", help=secure)
    certificate = "folder with tls.crt and tls.key for --metrics-secure; reloaded when replaced"
    add("--metrics-cert-dir", metavar="DIR", help=certificate)
    add("--per-object-metrics", action="store_true", help="also serve metrics for each Hvpa and container")
    add(
        "--check-invariants",
        action="store_true",
        help="count decisions that violate an invariant (hvpa_invariant_violations_total)",
    )
    add(
        "--kubelet-port",
        type=_port,
        default=10250,
        metavar="PORT",
        help="for spec.fastSignal (default 10250)",
    )
    account = "ServiceAccount whose token kubelets get, in the lease namespace (default: hvpa-kubelets)"
    add("--kubelet-service-account", type=_lease_name, default="hvpa-kubelets", metavar="NAME", help=account)
    authority = "file with the kubelets' certificate authorities (default: the API server's)"
    add("--kubelet-certificate-authority", metavar="FILE", help=authority)
    insecure = "do not verify the kubelets' certificates: whoever answers at their address gets the token"
    add("--kubelet-insecure-tls", action="store_true", help=insecure)
    policies = "make Hvpas for HvpaPolicies and ClusterHvpaPolicies (config/hvpa-policy)"
    add("--policies", action="store_true", help=policies)
    add("--log-format", choices=LOG_FORMATS, default="json")
    add("--log-level", choices=LOG_LEVELS, default="info")


def run_settings(args: argparse.Namespace) -> RunSettings:
    """The settings from the parsed flags and the environment."""
    duration = float(args.lease_duration)
    return RunSettings(
        decisions=decision_settings(args),
        kubeconfig=args.kubeconfig,
        context=args.context,
        scopes=tuple(dict.fromkeys(args.namespace)) or (ALL_NAMESPACES,),
        workers=min(args.workers or args.max_in_flight, args.max_in_flight),
        max_in_flight=args.max_in_flight,
        leader_elect=args.leader_elect or args.shards > 1,
        shards=args.shards,
        candidate=Candidate(
            namespace=args.lease_namespace or own_namespace("default"),
            name=args.lease_name,
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            # client-go's proportions: 15 s, 10 s, 2 s
            times=LeaseTimes(duration, duration * 2 / 3, duration * 2 / 15),
        ),
        metrics_address=args.metrics_bind_address,
        metrics_secure=args.metrics_secure,
        metrics_cert_dir=args.metrics_cert_dir,
        health_address=args.health_probe_bind_address,
        per_object_metrics=args.per_object_metrics,
        check_invariants=args.check_invariants,
        kubelet_port=args.kubelet_port,
        kubelet_account=args.kubelet_service_account,
        kubelet_authority=args.kubelet_certificate_authority,
        kubelet_insecure=args.kubelet_insecure_tls,
        log_format=args.log_format,
        log_level=args.log_level,
        policies=args.policies,
    )


def main(args: argparse.Namespace, parts: Parts = REAL) -> int:
    """Run the operator.

    Returns 0 after a signal to stop, 1 if the lease was lost or Hvpas are not served, 2 for unusable flags, 3 if the
    cluster can't be reached.
    """
    settings = run_settings(args)
    configure_logs(settings.log_format, settings.log_level)
    try:
        with asyncio.Runner(loop_factory=_event_loop()) as runner:
            return runner.run(operate(settings, parts))
    except (StartError, ConfigError, AddressError) as error:
        with suppress(OSError):
            print(f"hvpa run: {error}", file=sys.stderr)
        if isinstance(error, StartError):
            return error.code
        return NOT_REACHED if isinstance(error, ConfigError) else USAGE


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop, which takes a sixth less CPU per request; asyncio's own without uvloop (Windows)."""
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
    """Log an error of the event loop, at debug level if it is harmless.

    uvloop reports an internal fault if the server resets a connection while it is being opened
    (MagicStack/uvloop#506). It reports a bare ConnectionResetError if that happens during the handshake of an
    abandoned attempt. The request that needed the connection fails anyway.
    """
    error, message = context.get("exception"), context.get("message", "")
    closed = isinstance(error, RuntimeError) and "the handler is closed" in str(error)
    given_up = isinstance(error, ConnectionResetError) and not error.args
    if (closed and "SSL protocol" in message) or (given_up and message.startswith("Future exception")):
        log.debug("a connection was reset while being opened", error=repr(error))
    else:
        loop.default_exception_handler(context)
