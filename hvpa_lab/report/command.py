"""`hvpa report`: the values that an Hvpa would set for each workload, before installation. Writes nothing."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from typing import Final

from hvpa.api.values.duration import DAY
from hvpa.cli import laboratory
from hvpa.cli.arguments import (
    add_cluster,
    add_files,
    add_now,
    add_output,
    add_prices,
    add_recommenders,
    count_from,
    decision_settings,
    html_file,
    percentage,
    prices_of,
)
from hvpa.cli.errors import DONE, CommandError, UsageError, report_skipped
from hvpa.cli.input.files import read_documents
from hvpa.cli.input.gather import DEFAULT_NAMESPACE, Filled
from hvpa.cli.output import refuse_unwritable, write_drawing
from hvpa.kube.clock import SystemClock
from hvpa_lab.prometheus.flags import add_server, require_server
from hvpa_lab.report.csv import to_csv
from hvpa_lab.report.inventory import DEFAULT_VPA_WEIGHT, Inventory, inventory
from hvpa_lab.report.json import to_json
from hvpa_lab.report.rows import FIXED, Report, report
from hvpa_lab.report.surroundings import Surroundings, in_documents
from hvpa_lab.report.table import to_text

SINCE: Final = "30d"
STEP: Final = "1h"
TOP: Final = 20
"""Number of workloads in the text: a few screens."""
_LEVEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,315}[A-Za-z0-9])?")
"""A key of a label is at most 253 + 1 + 63 characters long."""
_FORMATS: Final[Mapping[str, Callable[[Report], str]]] = {"json": to_json, "csv": to_csv}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add_files(add, "workloads, HPAs, VPAs, Pods and Hvpas", "the namespace")
    add("-A", "--all-namespaces", action="store_true", help="all namespaces")
    add_cluster(add)
    add_now(add, "now")
    add_output(add, "text", "csv")
    text = (
        "level of the groups: namespace, kind, or the key of a label of the workload or its namespace; repeat it, or "
        "separate levels by commas (default with -A: namespace)"
    )
    add("--by", action="append", type=_levels, default=[], metavar="LEVEL", help=text)
    text = f"number of workloads in the text and the page, largest difference first; or all (default {TOP})"
    add("--top", type=_top, default=TOP, metavar="NUMBER", help=text)
    add("--html", type=html_file, metavar="FILE", help="also write a page for managers to this HTML file")
    weight = (
        "vertical weight of a workload with an HPA and a VPA but no Hvpa "
        f"(default {DEFAULT_VPA_WEIGHT}: half of each relative increase of demand is served by larger pods)"
    )
    add("--vpa-weight", type=percentage, default=DEFAULT_VPA_WEIGHT, metavar="PERCENT", help=weight)
    text = "past usage of all workloads, in place of the usage of now"
    add_server(add, text, SINCE, STEP)
    add_prices(add)
    add_recommenders(add)


def _levels(text: str) -> list[str]:
    levels = text.split(",")
    for level in levels:
        if not _LEVEL.fullmatch(level):
            raise argparse.ArgumentTypeError(f"{level!r} is not namespace, kind, or the key of a label")
    return levels


def _top(text: str) -> int | None:
    return None if text == "all" else count_from(0)(text)


def main(args: argparse.Namespace) -> int:
    """Report on all workloads. Raises CommandError."""
    if args.html is not None:
        laboratory.require("--html", "jinja2")
        refuse_unwritable("--html", args.html)
    now, prices = args.now or SystemClock().now(), prices_of(args)
    by = list(dict.fromkeys(level for levels in args.by for level in levels))
    if not by and args.all_namespaces:
        by = ["namespace"]
    found = _read_inventory(args, now.timestamp(), with_labels=any(level not in FIXED for level in by))
    made = report(found, now, decision_settings(args), prices, by)
    if args.html is not None:
        from hvpa_lab.report.page import to_html  # takes longer to import than the rest

        write_drawing(args.html, to_html(made, args.top).encode())
    print(to_text(made, args.top) if args.output == "text" else _FORMATS[args.output](made))
    return DONE


def _read_inventory(args: argparse.Namespace, now: float, *, with_labels: bool) -> Inventory:
    require_server(args, since=SINCE, step=STEP)
    if args.prometheus is not None and not (args.step <= DAY <= args.since):
        raise UsageError("--since must be a day or longer, and --step a day or shorter")
    if args.filename:
        if args.kubeconfig is not None or args.context is not None or args.all_namespaces:
            raise UsageError("--kubeconfig, --context and --all-namespaces can't be used with -f")
        return _in_files(args, now)
    if args.namespace is not None and args.all_namespaces:
        raise UsageError("use either --namespace or --all-namespaces, not both")
    from hvpa_lab.report.live import fetch  # its client takes longer to import than the rest

    found = fetch(args, with_labels=with_labels)
    around = _with_past(args, found.around, found.namespace, now)
    return inventory(found.local, args.vpa_weight, found.unreadable, found.unread, around)


def _in_files(args: argparse.Namespace, now: float) -> Inventory:
    paths = list(dict.fromkeys(args.filename))
    documents = [document for path in paths for document in read_documents(path, skip=report_skipped)]
    namespace = args.namespace or DEFAULT_NAMESPACE
    local = Filled(documents, namespace).local
    if not any(len(store) for store in local.workloads.values()):
        raise CommandError(f"no workload in {', '.join(paths)}")
    around = _with_past(args, in_documents(documents, namespace), None, now)
    return inventory(local, args.vpa_weight, around=around)


def _with_past(
    args: argparse.Namespace, around: Surroundings, namespace: str | None, now: float
) -> Surroundings:
    if args.prometheus is None:
        return around
    from hvpa_lab.prometheus.usage import fetch_past

    return around._replace(past=fetch_past(args, namespace, now))
