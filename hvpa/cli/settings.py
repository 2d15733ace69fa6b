"""Flags of `hvpa run`, and the settings that they become."""

from __future__ import annotations

import argparse
import re
import socket
import uuid
from collections.abc import Callable

from hvpa.cli.arguments import add_cluster, add_recommenders, count_from, decision_settings
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.credentials import own_namespace
from hvpa.kube.client.limits import MAX_IN_FLIGHT
from hvpa.kube.leases.lease import Candidate, LeaseTimes
from hvpa.kube.server.endpoints import AddressError, parse_address
from hvpa.operator.settings import RunSettings

MOST_SHARDS = 256
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("json", "console")


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    """A type for texts of this form."""

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return text

    return checked


_namespace = _matching(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "a namespace")
_lease_name = _matching(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", "a Lease's name of at most 63 characters")
"""Also the value of a label, where the work is divided."""
_positive = count_from(1)


def _shards(text: str) -> int:
    if _positive(text) > MOST_SHARDS:
        raise argparse.ArgumentTypeError(f"{text!r} is above {MOST_SHARDS}")
    return int(text)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add_cluster(add)
    namespaces = "repeatable (default: all namespaces)"
    add("--namespace", action="append", type=_namespace, default=[], help=namespaces)
    add_recommenders(add)
    workers = "Hvpas that are worked on at once (default, and at most: as --max-in-flight)"
    add("--workers", type=_positive, metavar="N", help=workers)
    in_flight = f"writes to the API server at once, the leases aside (default {MAX_IN_FLIGHT})"
    add("--max-in-flight", type=_positive, default=MAX_IN_FLIGHT, metavar="N", help=in_flight)
    add("--leader-elect", action="store_true", help="work only while holding a Lease")
    shards = "divide the work into N parts that all replicas share (default 1: one replica does all)"
    add("--shards", type=_shards, default=1, metavar="N", help=shards)
    lease_namespace = "default: the Pod's namespace, or `default` outside of a cluster"
    add("--lease-namespace", type=_namespace, help=lease_namespace)
    add("--lease-name", type=_lease_name, default="hvpa", help="default: hvpa")
    add("--lease-duration", type=_positive, default=15, metavar="SECONDS", help="default: 15")
    for flag, address in (("--metrics-bind-address", ":9569"), ("--health-probe-bind-address", ":8081")):
        add(flag, type=_address, default=address, metavar="ADDRESS", help=f"default {address}; 0: none")
    secure = "metrics over HTTPS, for bearer tokens that a TokenReview accepts and that may `get` /metrics"
    add("--metrics-secure", action="store_true", help=secure)
    certificate = "tls.crt and tls.key for --metrics-secure; read anew when replaced"
    add("--metrics-cert-dir", metavar="DIR", help=certificate)
    add("--per-object-metrics", action="store_true", help="metrics with a series for each Hvpa and container")
    add("--log-format", choices=LOG_FORMATS, default="json")
    add("--log-level", choices=LOG_LEVELS, default="info")


def run_settings(args: argparse.Namespace) -> RunSettings:
    """The settings that the parsed flags and the environment mean."""
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
        log_format=args.log_format,
        log_level=args.log_level,
    )


def _address(text: str) -> str:
    try:
        parse_address(text)
    except AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text
