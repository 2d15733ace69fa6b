"""Flags of `hvpa run`, and the settings that they become."""

from __future__ import annotations

import argparse
import re
import socket
import uuid
from collections.abc import Callable

from hvpa.cli.arguments import Add, add_cluster, add_recommenders, count_from, decision_settings
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.credentials import own_namespace
from hvpa.kube.client.limits import MAX_IN_FLIGHT
from hvpa.kube.leases.election import Candidate, LeaseTimes
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
    _add_cluster(parser.add_argument)
    _add_work(parser.add_argument)
    _add_leases(parser.add_argument)
    _add_servers(parser.add_argument)
    parser.add_argument("--log-format", choices=LOG_FORMATS, default="json")
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="info")


def _add_cluster(add: Add) -> None:
    add_cluster(add)
    add(
        "--namespace",
        action="append",
        type=_namespace,
        default=[],
        help="repeatable (default: all namespaces)",
    )
    add_recommenders(add)


def _add_work(add: Add) -> None:
    add(
        "--workers",
        type=_positive,
        metavar="N",
        help="Hvpas that are worked on at once (default, and at most: as --max-in-flight)",
    )
    add(
        "--max-in-flight",
        type=_positive,
        default=MAX_IN_FLIGHT,
        metavar="N",
        help=f"writes to the API server at once, the leases aside (default {MAX_IN_FLIGHT})",
    )


def _add_leases(add: Add) -> None:
    add("--leader-elect", action="store_true", help="work only while holding a Lease")
    add(
        "--shards",
        type=_shards,
        default=1,
        metavar="N",
        help="divide the work into N parts that all replicas share (default 1: one replica does all)",
    )
    add(
        "--lease-namespace",
        type=_namespace,
        help="default: the Pod's namespace, or `default` outside of a cluster",
    )
    add("--lease-name", type=_lease_name, default="hvpa", help="default: hvpa")
    add("--lease-duration", type=_positive, default=15, metavar="SECONDS", help="default: 15")


def _add_servers(add: Add) -> None:
    add(
        "--metrics-bind-address",
        type=_address,
        default=":9569",
        metavar="ADDRESS",
        help="default :9569; 0: none",
    )
    add(
        "--health-probe-bind-address",
        type=_address,
        default=":8081",
        metavar="ADDRESS",
        help="default :8081; 0: none",
    )
    add(
        "--metrics-secure",
        action="store_true",
        help="metrics over HTTPS, for bearer tokens that a TokenReview accepts and that may `get` /metrics",
    )
    add(
        "--metrics-cert-dir",
        metavar="DIR",
        help="tls.crt and tls.key for --metrics-secure; read anew when replaced",
    )
    add("--per-object-metrics", action="store_true", help="metrics with a series for each Hvpa and container")


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
