"""The types of the JSON that `hvpa simulate -o json` prints, which is a stable contract.

`python -m hvpa_lab.simulate.report.json` prints its JSON Schema, as in `docs/simulate.schema.json`. The same input and
seed give the same bytes: the JSON contains no time of day and no version, and numbers have six decimals.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from hvpa.api.values.quantity import GIB, Resource
from hvpa.api.values.timestamp import format_timestamp
from hvpa_lab.simulate.model import Amount, Count, PolicyKind, Series, Totals
from hvpa_lab.simulate.report.compare import Comparison, PolicyRank, conclusion
from hvpa_lab.simulate.report.plots import CORE, thin, value_in_unit

Time = Annotated[str, Meta(description="An RFC 3339 timestamp.")]
Phase = Annotated[float | None, Meta(description="Seconds; null if it was not reached before the next rise.")]


_UNITS: Final = {
    "load": 1.0,
    "replicas": 1.0,
    "ready": 1.0,
    "used_memory": GIB,
    "requested_memory": GIB,
    **dict.fromkeys(("demand", "capacity", "unmet", "used_cpu", "requested_cpu"), CORE),
}
"""The divisor for the values of each series."""


class _Part(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Base of all parts."""


P = TypeVar("P", bound=msgspec.Struct)


class Figures(Totals, frozen=True, rename="camel", kw_only=True):
    """A policy's totals over the scenario, without the warm-up. Slack is 1 - used / requested."""

    cost: Annotated[Amount, Meta(description="Requested core-hours and GiB-hours at their prices.")]
    cost_difference: Annotated[
        float | None,
        Meta(
            description="Difference to the baseline's cost, as a share of it: -0.12 is 12 % less. null for the "
            "baseline, and if the baseline costs nothing."
        ),
    ]


class EventReport(_Part, frozen=True):
    """An event of the simulation."""

    time: Time
    kind: Annotated[
        str, Meta(description="Replicas, Requests, Blocked, OOM, Evicted, Unschedulable, Condition or Event.")
    ]
    reason: str
    message: str


class Phases(_Part, frozen=True):
    """The phases of a reaction, in order."""

    tolerance_seconds: Annotated[Phase, Meta(description="Until usage left the tolerance.")]
    metric_age_seconds: Annotated[Phase, Meta(description="Until a metric showed it.")]
    hpa_period_seconds: Annotated[Phase, Meta(description="Until the HPA evaluated its metrics.")]
    gates_seconds: Annotated[
        Phase, Meta(description="Until the change was made: stabilization, minChange, windows.")
    ]
    start_up_seconds: Annotated[Phase, Meta(description="Until the new pods were ready.")]


class ReactionReport(_Part, frozen=True):
    """A rise of the load and the policy's reaction to it."""

    start: Time
    end: Time
    phases: Phases
    total_seconds: Annotated[
        float | None,
        Meta(description="Seconds from the start of the rise to the first change; null without a change."),
    ]
    unmet_seconds: Annotated[
        Amount, Meta(description="Time with unmet demand until the next rise, in seconds.")
    ]
    cover_seconds: Annotated[
        Amount,
        Meta(
            description="Seconds until the ready pods covered the demand: the longest continuous time of unmet "
            "demand from the start of the rise until the next rise."
        ),
    ]
    covered: Annotated[bool, Meta(description="Whether that time had ended when the next rise began.")]


class Points(_Part, frozen=True):
    """A series, reduced to the points that a plot needs; minima and maxima are kept."""

    seconds: Annotated[list[float], Meta(description="Times since the scenario's start, ascending.")]
    values: Annotated[
        list[float | None],
        Meta(description="A value for each time; null if it is not finite."),
    ]


class SeriesReport(_Part, frozen=True):
    """The recorded series. CPU in cores, memory in GiB, the load in its own units."""

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
    """The result of a policy."""

    name: str
    kind: PolicyKind
    figures: Figures
    beaten_by: Annotated[
        list[str],
        Meta(
            description="Names of the policies that cost no more and leave no more demand unmet, and are better "
            "in cost or unmet demand. Differences below a thousandth of the highest cost, and below "
            "0.01 % of the demand, "
            "do not count."
        ),
    ]
    events: list[EventReport]
    dropped_events: Annotated[Count, Meta(description="Number of events that were not kept.")]
    reactions: list[ReactionReport]
    series: Annotated[SeriesReport | None, Meta(description="null without --series.")]


class PricesReport(_Part, frozen=True):
    """The prices of requests, in a currency of the user's choice."""

    cpu_per_core_hour: Amount
    memory_per_gib_hour: Annotated[Amount, Meta(description="Per GiB and hour.")]


class ScenarioReport(_Part, frozen=True):
    """The results of a scenario's policies, in the order of its file."""

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
        str | None, Meta(description="The policy that others are compared with; null without other policies.")
    ]
    unbeaten: Annotated[
        list[str], Meta(description="Policies that no other policy beats on cost and unmet demand together.")
    ]
    conclusion: Annotated[
        list[str], Meta(description="The conclusion in words: for people, not for programs.")
    ]
    policies: list[PolicyReport]


class SimulationReport(_Part, frozen=True):
    """The output of `hvpa simulate -o json`. All keys are always present."""

    scenarios: Annotated[list[ScenarioReport], Meta(description="In the order of the command line.")]


def to_json(comparisons: Sequence[Comparison], *, series: bool = False) -> str:
    """The results as JSON without a final line break: on a single line with `series`, else indented."""
    report = SimulationReport(scenarios=[_scenario(comparison, series) for comparison in comparisons])
    encoded = msgspec.json.encode(report)
    return (encoded if series else msgspec.json.format(encoded, indent=2)).decode()


def _part(contract: type[P], source: object, **others: Any) -> P:
    """The part of the contract: fields from `others`, and the rest from the attributes of `source` with the same name,
    with or without the unit (`total_seconds` is the reaction's `total`). Values are converted by `_plain`."""
    for name in contract.__struct_fields__:
        if name not in others:
            attribute = name if hasattr(source, name) else name.removesuffix("_seconds")
            others[name] = _plain(getattr(source, attribute))
    return contract(**others)


def _plain(value: Any) -> Any:
    """A float rounded to six decimals, or a text with lone surrogates escaped, since UTF-8 can't encode them."""
    if isinstance(value, float):
        return round(value, 6) + 0.0
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _scenario(comparison: Comparison, series: bool) -> ScenarioReport:
    result, prices = comparison.result, comparison.prices
    shown = [_plain(policy.name) for policy in result.policies]
    return _part(
        ScenarioReport,
        result,
        start=format_timestamp(result.start),
        notes=[_plain(note) for note in result.notes],
        prices=PricesReport(cpu_per_core_hour=_plain(prices.cpu), memory_per_gib_hour=_plain(prices.memory)),
        baseline=None if comparison.baseline is None else shown[comparison.baseline],
        unbeaten=[shown[index] for index in comparison.unbeaten],
        conclusion=[_plain(sentence) for sentence in conclusion(comparison)],
        policies=[_policy(standing, shown, result.start, series) for standing in comparison.standings],
    )


def _policy(standing: PolicyRank, names: Sequence[str], start: dt.datetime, series: bool) -> PolicyReport:
    policy = standing.policy
    costs = {"cost": _plain(standing.cost), "cost_difference": _plain(standing.difference)}
    return _part(
        PolicyReport,
        policy,
        figures=_part(Figures, policy.totals, **costs),
        beaten_by=[names[at] for at in standing.beaten_by],
        events=[_part(EventReport, event, time=timestamp_at(start, event.time)) for event in policy.events],
        reactions=[
            _part(
                ReactionReport,
                reaction,
                start=timestamp_at(start, reaction.start),
                end=timestamp_at(start, reaction.end),
                phases=_part(Phases, reaction),
            )
            for reaction in policy.reactions
        ],
        series=_series(policy.series) if series else None,
    )


def _series(series: Series) -> SeriesReport:
    def points(values: Sequence[float], unit: float) -> Points:
        kept = thin(values)
        seconds = [_plain(at * series.step) for at in kept]
        return Points(seconds=seconds, values=[value_in_unit(values[at], unit) for at in kept])

    requests: dict[str, dict[Resource, Points]] = {}
    for (container, resource), values in sorted(series.requests.items()):
        unit = CORE if resource == "cpu" else GIB
        requests.setdefault(_plain(container), {})[resource] = points(values, unit)
    columns = {name: points(getattr(series, name), unit) for name, unit in _UNITS.items()}
    return SeriesReport(**columns, requests=requests)


def timestamp_at(start: dt.datetime, seconds: float) -> str:
    """The RFC 3339 timestamp `seconds` after the start, to the millisecond."""
    return format_timestamp(start + dt.timedelta(milliseconds=round(seconds * 1000)))


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
