"""`hvpa init`: drafts an Hvpa for a workload from its history, and simulates its cost. It writes files, and nothing
to the cluster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from hvpa.api.values.duration import DAY
from hvpa.api.values.prices import Prices
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.arguments import (
    add_cluster,
    add_files,
    add_now,
    add_output,
    add_prices,
    checked,
    count_from,
    prices_of,
)
from hvpa.cli.errors import DONE, CommandError, UsageError, report_skipped
from hvpa.cli.input.files import Document, read_documents
from hvpa.cli.input.gather import DEFAULT_NAMESPACE, Filled
from hvpa.kube.clock import SystemClock
from hvpa_lab.init.draft import Draft, drafts
from hvpa_lab.init.files import publish, refuse_taken, workshop
from hvpa_lab.init.json import to_json
from hvpa_lab.init.manifest import manifest
from hvpa_lab.init.result import InitResult
from hvpa_lab.init.scenario import LOAD, MANIFEST, SCENARIO, load_csv, rivals, scenario, span_of, today
from hvpa_lab.init.source.present import SCALED_OBJECT, Present, TargetName, present, target_name
from hvpa_lab.init.text import to_text
from hvpa_lab.init.trial import Trial, TrialOutcome, Work, outcomes
from hvpa_lab.init.verdict import MATCHES, best, judged
from hvpa_lab.prometheus.flags import add_server, require_server
from hvpa_lab.simulate.engine import quiet
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.fit import Fit, fit
from hvpa_lab.simulate.history.pattern import pattern
from hvpa_lab.simulate.history.record import History
from hvpa_lab.simulate.history.table import read_history
from hvpa_lab.simulate.load.series import readable_length
from hvpa_lab.simulate.progress import add_progress, processors
from hvpa_lab.simulate.report.text import seconds
from hvpa_lab.simulate.scenario.documents import read_text

DAYS: Final = 8
"""Number of days that are simulated: a week, and a day before it for the VPA to learn.

On two cores the simulation takes four minutes (docs/init.md).
"""
SEEDS: Final = 3
"""Number of simulation runs, each with other controller start times."""
SINCE: Final = "14d"
STEP: Final = "1m"
LEAST: Final = DAY
"""A shorter history does not contain a whole day."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    text = (
        "deployment/NAME, another kind, or KIND.GROUP/NAME of a custom kind (rollouts.argoproj.io/web); optional with"
        " -f and one workload"
    )
    add("workload", nargs="?", type=target_name, metavar="WORKLOAD", help=text)
    add_files(add, "workload, HPA and VPA", "the workload's namespace")
    add_cluster(add)
    columns = "time, replicas, cpu and memory (of all pods), and load if known"
    add("--csv", type=Path, metavar="FILE", help=f"the history: a CSV file with the columns {columns}")
    add_server(add, "the history", SINCE, STEP)
    text = 'with --prometheus: PromQL of the load, such as sum(rate(http_requests_total{namespace="$namespace"}[5m]))'
    add("--load", metavar="PROMQL", help=text)
    text = "with --prometheus: YAML with PromQL for cpu, memory, replicas or load in place of the standard metrics"
    add("--queries", type=Path, metavar="FILE", help=text)
    add_now(add, "now, as the end of the history from Prometheus")
    text = "the API server's version, such as 1.33, if it is not read from the cluster"
    add("--kubernetes", type=minor_version, metavar="VERSION", help=text)
    for flag, bound in (("--min-replicas", "fewest"), ("--max-replicas", "most")):
        add(flag, type=count_from(1), metavar="NUMBER", help=f"{bound} replicas (default: the HPA's)")
    text = "folder for hvpa.yaml, scenario.yaml and load.csv, which must not exist yet (default: hvpa-NAME)"
    add("--out", type=Path, metavar="DIR", help=text)
    add("--force", action="store_true", help="replace the files in an existing folder")
    text = f"number of days to simulate, ending with the history (default {DAYS})"
    add("--days", type=count_from(1), default=DAYS, metavar="NUMBER", help=text)
    text = f"number of simulation runs, each with other controller start times (default {SEEDS})"
    add("--seeds", type=count_from(1), default=SEEDS, metavar="NUMBER", help=text)
    add_prices(add)
    text = "maximum concurrent simulations (default: number of processors)"
    add("--jobs", type=count_from(1), default=processors(), metavar="NUMBER", help=text)
    add_progress(add)
    add_output(add)


def minor_version(text: str) -> int:
    """The minor number of a version 1.x."""
    return checked(text.removeprefix("v"), _minor, lambda minor: minor >= 0, "a version such as 1.33")


def _minor(text: str) -> int:
    major, _, minor = text.partition(".")
    if major != "1":
        raise ValueError
    return int(minor.partition(".")[0])


def main(args: argparse.Namespace) -> int:
    """Read, fit, simulate, write, print. Raises CommandError."""
    _check_usage(args)
    prices = prices_of(args)
    quiet()
    now = _present(args)
    folder = args.out or Path(f"hvpa-{now.name}")
    refuse_taken(folder, force=args.force)
    history = _history(args, now)
    if history.length < LEAST:
        raise CommandError(
            f"{history.source}: the history is {readable_length(history.length)} long: at least a day is needed"
        )
    result = _tried(args, now, history, folder, prices)
    print(to_json(result) if args.output == "json" else to_text(result))
    return DONE


def _check_usage(args: argparse.Namespace) -> None:
    """Raise UsageError for flags that make no sense together."""
    if (args.csv is None) == (args.prometheus is None):
        raise UsageError("give the history: --csv FILE or --prometheus URL")
    require_server(args, "load", "queries", since=SINCE, step=STEP)
    if args.filename and (args.kubeconfig is not None or args.context is not None):
        raise UsageError("--kubeconfig and --context can't be used with -f")
    if not args.filename and args.workload is None:
        raise UsageError("name a workload, such as deployment/web, or give files with -f")


def _present(args: argparse.Namespace) -> Present:
    if not args.filename:
        from hvpa_lab.init.source.live import (
            fetch_present,  # its client takes longer to import than the rest
        )

        return fetch_present(args, args.workload)
    documents = [
        document
        for path in dict.fromkeys(args.filename)
        for document in read_documents(path, skip=report_skipped)
    ]
    return documents_present(documents, args.workload, args.namespace, args.kubernetes)


def documents_present(
    documents: Sequence[Document], wanted: TargetName | None, given: str | None, minor: int | None
) -> Present:
    """The workload among these documents. Raises CommandError.

    `given` is the namespace of documents without a namespace (default: the namespace of the other documents).
    """
    namespaces = {
        str(document.metadata["namespace"]) for document in documents if document.metadata.get("namespace")
    }
    namespace = given or (namespaces.pop() if len(namespaces) == 1 else DEFAULT_NAMESPACE)
    scaled = [document for document in documents if document.kind == SCALED_OBJECT]
    objects: Sequence[dict[str, Any]] = [
        document.content for document in (*Filled(documents, namespace).read, *scaled)
    ]
    return present(objects, wanted, namespace, minor)


def _history(args: argparse.Namespace, now: Present) -> History:
    if args.prometheus is not None:
        from hvpa_lab.init.source.prometheus import fetch_history

        return fetch_history(args, now, (args.now or SystemClock().now()).timestamp())
    try:
        text = read_text(args.csv)
        return read_history(str(args.csv), text, now.shares())
    except ScenarioError as error:
        raise CommandError(str(error)) from error


def _tried(
    args: argparse.Namespace, now: Present, history: History, folder: Path, prices: Prices
) -> InitResult:
    """Simulate, choose and write."""
    learnt, recent = _fit(now, history), history.last(args.days * DAY)
    candidates = drafts(now, learnt, (args.min_replicas, args.max_replicas), history.throttled_starts)
    work = Work(args.jobs, args.progress, prices)
    past = f"{seconds(history.length)} of history from {format_timestamp(history.start)} ({history.source})"
    heading = f"Written by hvpa init for {now.title} from {past}."
    with workshop(folder) as shop:
        written = {LOAD: load_csv(recent, learnt)}
        named = [(candidate, f"{index}.yaml") for index, candidate in enumerate(candidates)]
        for draft, file in named:
            written[file] = manifest(now, learnt, draft, heading, "")
        written[SCENARIO] = scenario(now, recent, learnt, named)
        _write_files(shop, written)
        first = outcomes(shop / SCENARIO, folder, [0], (), work)
        tried = [_trial(now, candidate, first) for candidate in candidates]
        chosen = best(tried)
        files = {
            LOAD: written[LOAD],
            MANIFEST: manifest(now, learnt, chosen.draft, heading, _why(tried, chosen)),
            SCENARIO: scenario(now, recent, learnt, [(chosen.draft, MANIFEST)]),
        }
        _write_files(shop, files)
        if args.seeds > 1:
            further_outcomes = outcomes(shop / SCENARIO, folder, range(1, args.seeds), (), work)
            chosen = _joined(chosen, _trial(now, chosen.draft, further_outcomes))
        verdict = judged(chosen, _doubts(learnt, recent, chosen))
        publish(shop, folder, files)
    tried = [chosen if trial.draft is chosen.draft else trial for trial in tried]
    shape = pattern(history.times, learnt.load)
    return InitResult(now, history, recent, learnt, shape, tried, chosen, verdict, folder)


def _fit(now: Present, history: History) -> Fit:
    """The fit of the history. Raises CommandError if the history lacks the HPA's metric."""
    names = now.load_metrics
    if len(names) > 1:
        raise CommandError(
            f"the HPA scales by {' and '.join(names)}: a simulation can have only one load metric"
        )
    if names and (history.load is None or not any(history.load)):
        raise CommandError(
            f"the HPA scales by {names[0]}, so the history must have it: as column load of --csv, or by --load with"
            " --prometheus"
        )
    return fit(history, by_load=bool(names))


def _write_files(shop: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (shop / name).write_text(content, encoding="utf-8")


def _trial(now: Present, draft: Draft, outcomes_by_policy: Mapping[str, Sequence[TrialOutcome]]) -> Trial:
    """The outcomes of an Hvpa, and of the policies that it is compared with."""
    rival = outcomes_by_policy.get(today(now, draft.target)["name"], ()) if rivals(now, [draft]) else ()
    return Trial(draft, outcomes_by_policy[today(now)["name"]], outcomes_by_policy[draft.name], rival)


def _joined(first: Trial, further: Trial) -> Trial:
    return Trial(
        first.draft,
        [*first.today, *further.today],
        [*first.hvpa, *further.hvpa],
        [*first.rival, *further.rival],
    )


def _why(tried: Sequence[Trial], chosen: Trial) -> str:
    """The reason for the target."""
    if len(tried) == 1:
        return ""
    costs = ", ".join(f"{trial.draft.target} percent: {trial.hvpa[0].cost:.4g}" for trial in tried)
    return (
        f"{chosen.draft.target} percent of a request in use: the cheapest target that is no worse than today in "
        f"the simulation (cost a week with {costs})"
    )


def _doubts(learnt: Fit, recent: History, chosen: Trial) -> list[str]:
    """Reasons not to rely on the result. Replicas are compared over the simulated time without the warm-up."""
    doubts = ["the fit is poor (see above)"] if learnt.is_poor else []
    begins = recent.times[0] + span_of(recent).warm_up
    had = fmean(count for at, count in zip(recent.times, recent.replicas, strict=True) if at >= begins)
    simulated = fmean(outcome.replicas for outcome in chosen.today)
    if abs(simulated - had) > MATCHES * max(had, 1):
        doubts.append(
            f"today's configuration has {simulated:.1f} replicas in the simulation, and had {had:.1f} in the history"
        )
    return doubts
