"""`hvpa report`: the values that an Hvpa would set for each workload, before installation. Writes nothing."""

from __future__ import annotations

import argparse

from hvpa.cli.arguments import (
    add_cluster,
    add_files,
    add_now,
    add_output,
    add_prices,
    add_recommenders,
    decision_settings,
    percentage,
    prices_of,
)
from hvpa.cli.errors import DONE, CommandError, UsageError, report_skipped
from hvpa.cli.input.files import read_documents
from hvpa.cli.input.gather import DEFAULT_NAMESPACE, Filled
from hvpa.kube.clock import SystemClock
from hvpa_lab.report.inventory import DEFAULT_VPA_WEIGHT, Inventory, inventory
from hvpa_lab.report.json import to_json
from hvpa_lab.report.rows import report
from hvpa_lab.report.table import to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add_files(add, "workloads, HPAs, VPAs, Pods and Hvpas", "the namespace")
    add("-A", "--all-namespaces", action="store_true", help="all namespaces")
    add_cluster(add)
    add_now(add, "now")
    add_output(add)
    weight = (
        "vertical weight of a workload with an HPA and a VPA but no Hvpa "
        f"(default {DEFAULT_VPA_WEIGHT}: half of each relative increase of demand is served by larger pods)"
    )
    add("--vpa-weight", type=percentage, default=DEFAULT_VPA_WEIGHT, metavar="PERCENT", help=weight)
    add_prices(add)
    add_recommenders(add)


def main(args: argparse.Namespace) -> int:
    """Report on all workloads. Raises CommandError."""
    now = args.now or SystemClock().now()
    made = report(_read_inventory(args), now, decision_settings(args), prices_of(args), args.vpa_weight)
    print(to_json(made) if args.output == "json" else to_text(made))
    return DONE


def _read_inventory(args: argparse.Namespace) -> Inventory:
    if args.filename:
        if args.kubeconfig is not None or args.context is not None or args.all_namespaces:
            raise UsageError("--kubeconfig, --context and --all-namespaces can't be used with -f")
        return _in_files(args)
    if args.namespace is not None and args.all_namespaces:
        raise UsageError("use either --namespace or --all-namespaces, not both")
    from hvpa_lab.report.live import fetch  # its client takes longer to import than the rest

    found = fetch(args)
    return inventory(found.local, args.vpa_weight, found.unreadable, found.unread)


def _in_files(args: argparse.Namespace) -> Inventory:
    paths = list(dict.fromkeys(args.filename))
    documents = [document for path in paths for document in read_documents(path, skip=report_skipped)]
    local = Filled(documents, args.namespace or DEFAULT_NAMESPACE).local
    if not any(len(store) for store in local.workloads.values()):
        raise CommandError(f"no workload in {', '.join(paths)}")
    return inventory(local, args.vpa_weight)
