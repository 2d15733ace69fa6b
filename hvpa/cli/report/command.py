"""`hvpa report`: what an Hvpa would set for each workload, before anything is installed. Writes nothing."""

from __future__ import annotations

import argparse
from dataclasses import replace

from hvpa.cli.arguments import (
    add_cluster,
    add_files,
    add_prices,
    add_recommenders,
    decision_settings,
    instant,
    percentage,
    prices_of,
)
from hvpa.cli.errors import DONE, CommandError, UsageError
from hvpa.cli.input.files import read_documents
from hvpa.cli.input.gather import DEFAULT_NAMESPACE, Filled
from hvpa.cli.report.drafts import DEFAULT_VPA_WEIGHT
from hvpa.cli.report.inventory import Inventory, inventory
from hvpa.cli.report.json import to_json
from hvpa.cli.report.rows import report
from hvpa.cli.report.table import to_text
from hvpa.kube.clock import SystemClock

NAME = "report"
HELP = "show what an Hvpa would set for each workload, what that costs, and what is risky; write nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add_files(add, "workloads, HPAs, VPAs, Pods and Hvpas")
    add(
        "-n",
        "--namespace",
        help="the namespace (default: the kubeconfig's); with -f, that of documents that name none",
    )
    add("-A", "--all-namespaces", action="store_true", help="all namespaces")
    add_cluster(add)
    add("--now", type=instant, metavar="TIME", help="decide as of this RFC 3339 time (default: now)")
    add("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    add(
        "--vpa-weight",
        type=percentage,
        default=DEFAULT_VPA_WEIGHT,
        metavar="PERCENT",
        help="vertical weight of a workload that has an HPA and a VPA and no Hvpa "
        f"(default {DEFAULT_VPA_WEIGHT}: half of each relative increase of demand is served by larger pods)",
    )
    add_prices(add)
    add_recommenders(add)


def main(args: argparse.Namespace) -> int:
    """Report on all workloads. Raises CommandError."""
    found = _found(args)
    now = args.now if args.now is not None else SystemClock().now()
    made = report(found, now, decision_settings(args), prices_of(args), args.vpa_weight)
    print(to_json(made) if args.output == "json" else to_text(made))
    return DONE


def _found(args: argparse.Namespace) -> Inventory:
    if args.filename:
        if args.kubeconfig is not None or args.context is not None or args.all_namespaces:
            raise UsageError("--kubeconfig, --context and --all-namespaces have no meaning with -f")
        return _in_files(args)
    if args.namespace is not None and args.all_namespaces:
        raise UsageError("name a namespace or say --all-namespaces, not both")
    from hvpa.cli.report.live import fetch  # its client takes longer to import than all the rest

    local, unreadable = fetch(args)
    found = inventory(local, args.vpa_weight)
    return replace(found, left_out=(*found.left_out, *unreadable))


def _in_files(args: argparse.Namespace) -> Inventory:
    paths = list(dict.fromkeys(args.filename))
    documents = [one for path in paths for one in read_documents(path)]
    local = Filled(documents, args.namespace or DEFAULT_NAMESPACE).local
    if not any(len(store) for store in local.workloads.values()):
        raise CommandError(f"no Deployment and no StatefulSet in {', '.join(paths)}")
    return inventory(local, args.vpa_weight)
