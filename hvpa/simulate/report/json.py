"""The JSON of `hvpa simulate -o json`, a stable contract, as types.

`python -m hvpa.simulate.report.json` prints its JSON Schema, which stands in `docs/simulate.schema.json`. The same
input and seed give the same bytes: no clock, no version, and numbers of six decimals.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hvpa.api.values.prices import Prices
from hvpa.api.values.quantity import Resource
from hvpa.api.values.timestamp import format_timestamp
from hvpa.simulate.model import (
    PolicyKind,
    Reaction,
    Series,
    SimulationEvent,
    Totals,
)
from hvpa.simulate.report.compare import Comparison, Standing
from hvpa.simulate.report.conclusion import conclusion
from hvpa.simulate.report.plots import CORE, GIB, scaled, thin

Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]
Time = Annotated[str, Meta(description="An RFC 3339 timestamp.")]
Phase = Annotated[
    float | None, Meta(description="Seconds; null where it was not reached before the next rise.")
]


class _Part(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Base of all parts."""


class Figures(_Part, frozen=True):
    """One policy's figures over the scenario after its warm-up. Slack is 1 - used / requested."""

    core_hours_requested: Amount
    core_hours_used: Amount
    gib_hours_requested: Amount
    gib_hours_used: Amount
    slack_cpu: float
    slack_memory: float
    unmet_core_seconds: Annotated[Amount, Meta(description="Demand for CPU that no pod served.")]
    unmet_share: Annotated[float, Meta(ge=0, le=1, description="Share of time in which demand went unmet.")]
    ooms: Annotated[Count, Meta(description="Containers killed for want of memory.")]
    restarts: Annotated[
        Count, Meta(description="Containers started again, and pods that took the place of others.")
    ]
    replica_changes: Count
    request_changes: Count
    node_hours: Amount
    reaction_median_seconds: Annotated[
        float | None,
        Meta(description="From a rise of the load to the first change; null where none was made."),
    ]
    reaction_max_seconds: float | None
    demand_core_seconds: Annotated[Amount, Meta(description="All demand for CPU.")]
    unmet_demand_share: Annotated[
        float, Meta(ge=0, description="Share of the demand for CPU that no pod served.")
    ]
    cover_median_seconds: Annotated[
        float | None, Meta(description="The median of the rises' coverSeconds; null without rises.")
    ]
    cover_max_seconds: Annotated[float | None, Meta(description="The longest of them.")]
    cost: Annotated[Amount, Meta(description="Requested core-hours and GiB-hours at their prices.")]
    cost_difference: Annotated[
        float | None,
        Meta(
            description="How much more than the baseline's cost that is, as a share of it: -0.12 is 12 % less. "
            "null for the baseline, and where the baseline costs nothing."
        ),
    ]


class EventReport(_Part, frozen=True):
    """Something that happened."""

    time: Time
    kind: Annotated[
        str,
        Meta(description="Replicas, Requests, Blocked, OOM, Evicted, Unschedulable, Condition or Event."),
    ]
    reason: str
    message: str


class Phases(_Part, frozen=True):
    """The parts of a reaction, in their order."""

    tolerance_seconds: Annotated[Phase, Meta(description="Until usage left the tolerance.")]
    metric_age_seconds: Annotated[Phase, Meta(description="Until a metric showed it.")]
    hpa_period_seconds: Annotated[Phase, Meta(description="Until the HPA looked.")]
    gates_seconds: Annotated[
        Phase, Meta(description="Until the change was made: stabilization, minChange, windows.")
    ]
    start_up_seconds: Annotated[Phase, Meta(description="Until the new pods were ready.")]


class ReactionReport(_Part, frozen=True):
    """A rise of the load and how the policy answered it."""

    start: Time
    end: Time
    phases: Phases
    total_seconds: Annotated[
        float | None,
        Meta(description="From the rise's start to the first change; null where there was none."),
    ]
    unmet_seconds: Annotated[Amount, Meta(description="How long demand went unmet until the next rise.")]
    cover_seconds: Annotated[
        Amount,
        Meta(
            description="Until the pods that were ready covered the demand: the longest time without a break in "
            "which demand went unmet, from the rise's start until the next rise."
        ),
    ]
    covered: Annotated[bool, Meta(description="Whether that time had ended when the next rise began.")]


class Points(_Part, frozen=True):
    """A series, thinned out to what a plot shows: minima and maxima stay."""

    seconds: Annotated[list[float], Meta(description="Times since the scenario's start, ascending.")]
    values: Annotated[
        list[float | None],
        Meta(description="As many as there are times; null where there is no finite number."),
    ]


class SeriesReport(_Part, frozen=True):
    """What was recorded. CPU in cores, memory in GiB, the load in its own units."""

    load: Points
    demand: Points
    capacity: Points
    unmet: Points
    used_cpu: Points
    used_memory: Points
    requested_cpu: Points
    requested_memory: Points
    replicas: Points
    ready: Points
    requests: Annotated[
        dict[str, dict[Resource, Points]],
        Meta(description="Requests by container and resource, the mean over the pods."),
    ]


class PolicyReport(_Part, frozen=True):
    """All that one policy did."""

    name: str
    kind: PolicyKind
    figures: Figures
    beaten_by: Annotated[
        list[str],
        Meta(
            description="Names of the policies that cost no more and leave no more demand unmet, and are better in "
            "one of both. Differences below a thousandth of the highest cost, and below 0.01 % of the demand, "
            "do not count."
        ),
    ]
    events: list[EventReport]
    dropped_events: Annotated[Count, Meta(description="Events beyond those that are kept.")]
    reactions: list[ReactionReport]
    series: Annotated[SeriesReport | None, Meta(description="null without --series.")]


class PricesReport(_Part, frozen=True):
    """The prices of what is requested, in one currency of the user's choice."""

    cpu_per_core_hour: Amount
    memory_per_gib_hour: Annotated[Amount, Meta(description="Per GiB and hour.")]


class ScenarioReport(_Part, frozen=True):
    """A scenario under all its policies, in the order of its file."""

    name: str
    description: str
    start: Time
    duration_seconds: Amount
    step_seconds: Amount
    warm_up_seconds: Annotated[Amount, Meta(description="Simulated, and not part of the figures.")]
    seed: int
    notes: list[str]
    prices: PricesReport
    baseline: Annotated[
        str | None, Meta(description="The policy that others are compared with; null without another one.")
    ]
    unbeaten: Annotated[
        list[str], Meta(description="Policies that nothing beats on cost and unmet demand together.")
    ]
    conclusion: Annotated[
        list[str], Meta(description="What follows, in words: for people, not for programs.")
    ]
    policies: list[PolicyReport]


class SimulationReport(_Part, frozen=True):
    """What `hvpa simulate -o json` prints. All keys are always there."""

    scenarios: Annotated[list[ScenarioReport], Meta(description="In the order of the command line.")]


def to_json(comparisons: Sequence[Comparison], *, series: bool = False) -> str:
    """The results as JSON, without a line break at the end: indented, on one line where `series` are asked for."""
    report = SimulationReport(scenarios=[_scenario(one, series) for one in comparisons])
    encoded = msgspec.json.encode(report)
    return (encoded if series else msgspec.json.format(encoded, indent=2)).decode()


def _scenario(comparison: Comparison, series: bool) -> ScenarioReport:
    result, at = comparison.result, comparison.baseline
    shown = [_text(one.name) for one in result.policies]
    return ScenarioReport(
        name=_text(result.name),
        description=_text(result.description),
        start=format_timestamp(result.start),
        duration_seconds=_number(result.duration),
        step_seconds=_number(result.step),
        warm_up_seconds=_number(result.warm_up),
        seed=result.seed,
        notes=[_text(note) for note in result.notes],
        prices=_prices(comparison.prices),
        baseline=None if at is None else shown[at],
        unbeaten=[shown[one] for one in comparison.unbeaten],
        conclusion=[_text(one) for one in conclusion(comparison)],
        policies=[_policy(one, shown, result.start, series) for one in comparison.standings],
    )


def _prices(prices: Prices) -> PricesReport:
    return PricesReport(cpu_per_core_hour=_number(prices.cpu), memory_per_gib_hour=_number(prices.memory))


def _policy(standing: Standing, names: Sequence[str], start: dt.datetime, series: bool) -> PolicyReport:
    policy = standing.policy
    return PolicyReport(
        name=_text(policy.name),
        kind=policy.kind,
        figures=_figures(standing, policy.totals),
        beaten_by=[names[at] for at in standing.beaten_by],
        events=[_event(one, start) for one in policy.events],
        dropped_events=policy.dropped_events,
        reactions=[_reaction(one, start) for one in policy.reactions],
        series=_series(policy.series) if series else None,
    )


def _figures(standing: Standing, totals: Totals) -> Figures:
    return Figures(
        core_hours_requested=_number(totals.core_hours_requested),
        core_hours_used=_number(totals.core_hours_used),
        gib_hours_requested=_number(totals.gib_hours_requested),
        gib_hours_used=_number(totals.gib_hours_used),
        slack_cpu=_number(totals.slack_cpu),
        slack_memory=_number(totals.slack_memory),
        unmet_core_seconds=_number(totals.unmet_core_seconds),
        unmet_share=_number(totals.unmet_share),
        ooms=totals.ooms,
        restarts=totals.restarts,
        replica_changes=totals.replica_changes,
        request_changes=totals.request_changes,
        node_hours=_number(totals.node_hours),
        reaction_median_seconds=_perhaps(totals.reaction_median),
        reaction_max_seconds=_perhaps(totals.reaction_max),
        demand_core_seconds=_number(totals.demand_core_seconds),
        unmet_demand_share=_number(totals.unmet_demand_share),
        cover_median_seconds=_perhaps(totals.cover_median),
        cover_max_seconds=_perhaps(totals.cover_max),
        cost=_number(standing.cost),
        cost_difference=_perhaps(standing.difference),
    )


def _event(event: SimulationEvent, start: dt.datetime) -> EventReport:
    return EventReport(
        time=when(start, event.time),
        kind=_text(event.kind),
        reason=_text(event.reason),
        message=_text(event.message),
    )


def _reaction(reaction: Reaction, start: dt.datetime) -> ReactionReport:
    return ReactionReport(
        start=when(start, reaction.start),
        end=when(start, reaction.end),
        phases=Phases(
            tolerance_seconds=_perhaps(reaction.tolerance),
            metric_age_seconds=_perhaps(reaction.metric_age),
            hpa_period_seconds=_perhaps(reaction.hpa_period),
            gates_seconds=_perhaps(reaction.gates),
            start_up_seconds=_perhaps(reaction.start_up),
        ),
        total_seconds=_perhaps(reaction.total),
        unmet_seconds=_number(reaction.unmet_seconds),
        cover_seconds=_number(reaction.cover_seconds),
        covered=reaction.covered,
    )


def _series(series: Series) -> SeriesReport:
    def points(values: Sequence[float], unit: float = 1.0) -> Points:
        kept = thin(values)
        return Points(
            seconds=[_number(at * series.step) for at in kept],
            values=[scaled(values[at], unit) for at in kept],
        )

    requests: dict[str, dict[Resource, Points]] = {}
    for (container, resource), values in sorted(series.requests.items()):
        unit = CORE if resource == "cpu" else GIB
        requests.setdefault(_text(container), {})[resource] = points(values, unit)
    return SeriesReport(
        load=points(series.load),
        demand=points(series.demand, CORE),
        capacity=points(series.capacity, CORE),
        unmet=points(series.unmet, CORE),
        used_cpu=points(series.used_cpu, CORE),
        used_memory=points(series.used_memory, GIB),
        requested_cpu=points(series.requested_cpu, CORE),
        requested_memory=points(series.requested_memory, GIB),
        replicas=points(series.replicas),
        ready=points(series.ready),
        requests=requests,
    )


def when(start: dt.datetime, seconds: float) -> str:
    """The instant that many seconds after the start, to the millisecond."""
    return format_timestamp(start + dt.timedelta(milliseconds=round(seconds * 1000)))


def _number(value: float) -> float:
    return round(float(value), 6) + 0.0


def _perhaps(value: float | None) -> float | None:
    return None if value is None else _number(value)


def _text(text: str) -> str:
    """The text; half a surrogate pair, which can't be written, as an escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def schema() -> dict[str, Any]:
    """The JSON Schema of the contract."""
    (_,), definitions = msgspec.json.schema_components([SimulationReport], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hvpa simulate -o json",
        "$ref": "#/$defs/SimulationReport",
        "$defs": dict(sorted(definitions.items())),
    }


def main() -> None:
    """Print the schema."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n")


if __name__ == "__main__":
    main()
