"""`hvpa simulate`: cost and unmet demand of a workload's load under several policies."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Final, NoReturn

from hvpa.cli import laboratory
from hvpa.cli.arguments import add_output, add_prices, count_from, prices_of
from hvpa.cli.errors import DONE, CommandError, UsageError
from hvpa.cli.output import refuse_unwritable, write_drawing
from hvpa_lab.simulate.engine import quiet
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.parallel import plan, simulate_all
from hvpa_lab.simulate.policy.base import SimulationError
from hvpa_lab.simulate.progress import add_progress, processors, progress_bar
from hvpa_lab.simulate.report.compare import compare
from hvpa_lab.simulate.report.json import to_json
from hvpa_lab.simulate.report.table import to_text
from hvpa_lab.simulate.sweep import reading, swept

MOST_UNMET: Final = 0.1
"""Highest unmet demand, in percent, that the summary of a sweep accepts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    scenarios = "YAML file with load, workload and policies"
    add("scenarios", nargs="+", type=Path, metavar="SCENARIO", help=scenarios)
    add_output(add, "table")
    add("--series", action="store_true", help="with -o json: include the recorded time series")
    page = "write a self-contained HTML page with plots"
    add("--html", type=Path, metavar="FILE", help=page)
    add("--png", type=_removed, metavar="FILE", help=argparse.SUPPRESS)
    policy = "simulate only this policy (repeatable; default: all of the scenario)"
    add("--policy", action="append", default=[], metavar="NAME", help=policy)
    baseline = "the first HPA with a VPA, else the first HPA, VPA, or fixed size"
    add("--baseline", metavar="NAME", help=f"compare with this policy (default: {baseline})")
    add_prices(add)
    sweep = "simulate each policy with several HPA targets, and show the cheapest that serves enough"
    add("--sweep", action="store_true", help=sweep)
    unmet = f"with --sweep: highest unmet demand to accept, in percent (default {MOST_UNMET:g})"
    add("--unmet", type=_percent, metavar="PERCENT", help=unmet)
    seed = "random seed; runs with the same seed are identical (default 0)"
    add("--seed", type=count_from(0), default=0, metavar="NUMBER", help=seed)
    jobs = "maximum concurrent simulations (default: number of processors)"
    add("--jobs", type=count_from(1), default=processors(), metavar="NUMBER", help=jobs)
    add_progress(add)


def _percent(text: str) -> float:
    """A share that is given in percent."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 100: {text!r}")
    return value / 100


def _removed(file: str) -> NoReturn:
    """`--png`, which earlier versions had."""
    raise argparse.ArgumentTypeError("removed; --html writes the plots as a page")


def main(args: argparse.Namespace) -> int:
    """Simulate, print, draw. Raises CommandError."""
    if args.series and args.output != "json":
        raise UsageError("--series requires -o json")
    if args.unmet is not None and not (args.sweep and args.output == "table"):
        raise UsageError("--unmet requires --sweep and -o table")
    if args.html is not None:
        laboratory.require("--html", "jinja2")
        refuse_unwritable("--html", args.html)
    prices = prices_of(args)
    quiet()
    try:
        run = plan(args.scenarios, args.seed, args.policy)
        if args.sweep:
            run = run._replace(scenarios=tuple(map(swept, run.scenarios)))
        if args.baseline is not None and args.baseline not in run.names:
            names = ", ".join(run.names)
            raise UsageError(f"--baseline: no policy {args.baseline!r} is simulated; there are: {names}")
        with progress_bar(args.progress) as progress:
            results = simulate_all(run, args.jobs, progress)
    except (ScenarioError, SimulationError) as error:
        raise CommandError(str(error)) from error
    compared = [compare(result, prices, args.baseline) for result in results]
    if args.html is not None:
        from hvpa_lab.simulate.report.page import to_html  # takes longer to import than the rest

        write_drawing(args.html, to_html(compared).encode())
    print(to_json(compared, series=args.series) if args.output == "json" else to_text(compared))
    if args.sweep and args.output == "table":
        most = MOST_UNMET / 100 if args.unmet is None else args.unmet
        print("", *(reading(comparison, most) for comparison in compared), sep="\n")
    return DONE
