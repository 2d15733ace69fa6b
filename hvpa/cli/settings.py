"""Flags of `hvpa run`, and the settings that they become."""

from __future__ import annotations

import argparse
import os
import re
import socket
import uuid
from dataclasses import dataclass

from hvpa.cli.arguments import tolerance
from hvpa.core.model import Settings
from hvpa.kube.cache import ALL_NAMESPACES
from hvpa.kube.config import own_namespace
from hvpa.kube.lease import Candidate, LeaseTimes
from hvpa.kube.serve import AddressError, parse_address

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("json", "console")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """All that `hvpa run` was told. `scopes`: the namespaces that are watched, or ALL_NAMESPACES alone."""

    decisions: Settings
    kubeconfig: str | None
    context: str | None
    scopes: tuple[str, ...]
    workers: int
    leader_elect: bool
    candidate: Candidate
    metrics_address: str
    health_address: str
    per_object_metrics: bool
    log_format: str
    log_level: str
    fault_point: str | None


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add(
        "--kubeconfig",
        metavar="FILE",
        help="default: $KUBECONFIG, ~/.kube/config, or the Pod's ServiceAccount",
    )
    add("--context", help="context of the kubeconfig (default: its current one)")
    add(
        "--namespace",
        action="append",
        type=_namespace,
        default=[],
        help="repeatable (default: all namespaces)",
    )
    add("--workers", type=_positive, default=8, help="Hvpas that are worked on at once (default 8)")
    add("--leader-elect", action="store_true", help="work only while holding a Lease")
    add(
        "--lease-namespace",
        type=_namespace,
        help="default: the Pod's namespace, or `default` outside of a cluster",
    )
    add("--lease-name", default="hvpa", help="default: hvpa")
    add("--lease-duration", type=_positive, default=15, metavar="SECONDS", help="default: 15")
    add(
        "--hpa-tolerance",
        type=tolerance,
        default=100_000,
        metavar="FRACTION",
        help="kube-controller-manager's --horizontal-pod-autoscaler-tolerance (default 0.1)",
    )
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
    add("--per-object-metrics", action="store_true", help="metrics with a series for each Hvpa and container")
    add("--log-format", choices=LOG_FORMATS, default="json")
    add("--log-level", choices=LOG_LEVELS, default="info")


def run_settings(args: argparse.Namespace) -> RunSettings:
    """The settings that the parsed flags and the environment mean."""
    duration = float(args.lease_duration)
    return RunSettings(
        decisions=Settings(hpa_tolerance_ppm=args.hpa_tolerance),
        kubeconfig=args.kubeconfig,
        context=args.context,
        scopes=tuple(dict.fromkeys(args.namespace)) or (ALL_NAMESPACES,),
        workers=args.workers,
        leader_elect=args.leader_elect,
        candidate=Candidate(
            namespace=args.lease_namespace or own_namespace("default"),
            name=args.lease_name,
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            # client-go's proportions: 15 s, 10 s, 2 s
            times=LeaseTimes(duration, duration * 2 / 3, duration * 2 / 15),
        ),
        metrics_address=args.metrics_bind_address,
        health_address=args.health_probe_bind_address,
        per_object_metrics=args.per_object_metrics,
        log_format=args.log_format,
        log_level=args.log_level,
        fault_point=os.environ.get("HVPA_FAULT_POINT"),
    )


def _namespace(text: str) -> str:
    if not _NAMESPACE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a namespace")
    return text


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _address(text: str) -> str:
    try:
        parse_address(text)
    except AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text
