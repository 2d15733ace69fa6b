"""The text output of `hvpa init`: the input, the simulations, and the conclusion."""

from __future__ import annotations

import datetime as dt
import statistics
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from hvpa.api.values.duration import DAY
from hvpa.api.values.prices import money
from hvpa.api.values.quantity import CPU, MEMORY, Resource
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.output import table
from hvpa_lab.init.lines import shown
from hvpa_lab.init.result import InitResult
from hvpa_lab.init.scenario import MANIFEST, SCENARIO, STEP, span_of
from hvpa_lab.init.trial import TrialOutcome
from hvpa_lab.init.verdict import on_the_target
from hvpa_lab.simulate.history.fit import FittedUsage
from hvpa_lab.simulate.history.regression import FittedLine
from hvpa_lab.simulate.report.text import percent_of_share, plain_text, seconds

_WIDTH: Final = 100
COARSE: Final = 120.0
"""Seconds between two values beyond which the load's peaks are missing: pods and HPAs react within two minutes."""
_JUMP: Final = 2.0
"""A rise to this multiple within COARSE is a jump: the fast signal saves time then (docs/fast-signal.md)."""


def to_text(result: InitResult) -> str:
    """The whole result."""
    parts = [_read(result), _learnt(result), _simulated(result), _conclusion(result), _written(result)]
    return "\n\n".join("\n".join(map(plain_text, part)) for part in parts)


def _read(result: InitResult) -> list[str]:
    history = result.history
    usual = history.record(history.replicas).usual_step
    return [
        f"{result.present.title}, scaled by {result.present.scaled_by}",
        f"History: {seconds(history.length)} from {format_timestamp(history.start)}, a value every {seconds(usual)}"
        f" ({history.source})",
        *_notes((*result.present.notes, *history.notes)),
    ]


def _learnt(result: InitResult) -> list[str]:
    fit, shape = result.fit, result.pattern
    lines = ["Findings"]
    for name, usage in fit.containers.items():
        lines += [f"  {name}: {text}" for text in _usage(usage, is_cpu=fit.is_cpu)]
    for name, start in result.trial.draft.starts.items():
        boost = (
            f"no startup boost, because {start.obstacle}"
            if start.obstacle
            else "the Hvpa has a startup boost"
        )
        lines.append(
            f"  {name}: starts are throttled in {percent_of_share(start.share, 0)} percent of their CPU periods; "
            f"{boost} (docs/startup-boost.md)"
        )
    for name, (runtime, _) in result.trial.draft.shown.items():
        lines.append(
            f"  {name}: {runtime.kind} sizes its heap when it starts, so the Hvpa replaces pods for other memory "
            "(runtimes, docs/runtimes.md)"
        )
    if shape.is_daily:
        lines.append(
            f"  daily load pattern: lowest about {shape.lowest:02}:00 ({shape.hours[shape.lowest]:.3g}), highest "
            f"about {shape.highest:02}:00 UTC ({shape.hours[shape.highest]:.3g}); the hour explains "
            f"{percent_of_share(shape.explained, 0)} percent of it"
        )
    else:
        explained = percent_of_share(max(0.0, shape.explained), 0)
        lines.append(f"  no daily load pattern: the hour explains {explained} percent of the load")
    rise = shape.steepest
    if rise is not None and rise.factor >= _JUMP and rise.seconds <= COARSE:
        when = format_timestamp(dt.datetime.fromtimestamp(rise.time, dt.UTC))
        lines.append(
            f"  load jump: {rise.factor:.1f} times as much within {seconds(rise.seconds)}, at {when}; "
            "spec.fastSignal covers such jumps sooner (docs/fast-signal.md)"
        )
    return lines + _notes(fit.notes)


def _usage(usage: FittedUsage, *, is_cpu: bool) -> Iterator[str]:
    lines: tuple[tuple[str, Resource, FittedLine], ...] = (
        ("CPU", CPU, usage.cpu),
        ("memory", MEMORY, usage.memory),
    )
    for label, resource, line in lines:
        base, per_unit = shown(resource, line.per_replica), shown(resource, line.per_unit)
        quality = (
            f"explains {percent_of_share(max(0.0, line.explained), 0)} percent, typical error "
            f"{percent_of_share(line.error, 0)} percent"
        )
        of = "core used" if is_cpu else "unit of load"
        if is_cpu and label == "CPU":
            yield f"CPU {percent_of_share(line.per_unit, 0)} percent of the pods'"
        else:
            yield f"{label} {base} per replica and {per_unit} per {of}; {quality}"


def _simulated(result: InitResult) -> list[str]:
    span = span_of(result.recent)
    days = "1 day" if span.seconds == DAY else f"{span.seconds / DAY:.3g} days"
    which = f"the last {days}" if span.seconds < result.history.length - STEP else f"all {days}"
    counted = f"the first {seconds(span.warm_up)} not counted"
    rows: list[tuple[str, ...]] = [
        ("", "cost a week", "unmet %", "OOMs", "restarts a week", "replicas", "seeds")
    ]
    rows.append(_row("today", result.trial.today))
    rows += [
        _row(f"today, at {trial.draft.target} percent", trial.rival) for trial in result.tried if trial.rival
    ]
    rows += [_row(trial.draft.name, trial.hvpa) for trial in result.tried]
    usual = result.recent.record(result.recent.replicas).usual_step
    coarse = f"the history has a value every {seconds(usual)}: shorter peaks are missing from it"
    return [
        f"Simulated: {which}, {counted}, in steps of {STEP}s",
        *table(rows),
        *(_notes([coarse]) if usual > COARSE else []),
    ]


def _row(name: str, outcomes: Sequence[TrialOutcome]) -> tuple[str, ...]:
    def mean(values: Sequence[float]) -> float:
        return statistics.fmean(values)

    return (
        name,
        money(mean([outcome.cost for outcome in outcomes])),
        percent_of_share(mean([outcome.unmet for outcome in outcomes]), 2),
        f"{mean([outcome.ooms for outcome in outcomes]):.3g}",
        f"{mean([outcome.restarts for outcome in outcomes]):.3g}",
        f"{mean([outcome.replicas for outcome in outcomes]):.1f}",
        " ".join(str(outcome.seed) for outcome in outcomes),
    )


def _conclusion(result: InitResult) -> list[str]:
    verdict = result.verdict
    words = f"{verdict.words} {on_the_target(result.trial)}".strip()
    lines = textwrap.wrap(words, _WIDTH - 2, break_on_hyphens=False)
    doubts = [f"Don't rely on it: {doubt}" for doubt in verdict.doubts]
    return ["Conclusion", *(f"  {line}" for line in lines), *_notes(doubts)]


def _written(result: InitResult) -> list[str]:
    folder, present = result.folder, result.present
    first = []
    if present.hpa is not None:
        owner = (
            f"ScaledObject {present.scaled_object}" if present.scaled_object else f"HPA {present.hpa.name}"
        )
        first.append(f"delete {owner}")
    if present.vpa is not None and present.vpa_mode != "Off":
        first.append(f"set updateMode Off in VPA {present.vpa.name}, or delete it")
    return [
        f"Written: {folder / MANIFEST}, {folder / SCENARIO}",
        f"Next: hvpa simulate {folder / SCENARIO} --html page.html; hvpa validate -f {folder / MANIFEST}",
        *([f"Before you apply it: {', and '.join(first)}."] if first else []),
        "Or watch it first: with `mode: Recommend` in its spec, it shows its decisions and changes nothing.",
    ]


def _notes(notes: Sequence[str]) -> list[str]:
    return [
        line
        for note in notes
        for line in textwrap.wrap(
            f"! {note}",
            _WIDTH - 2,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
    ]
