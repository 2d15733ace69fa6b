"""The JSON of `hvpa report -o json`, a stable contract, as types.

`python -m hvpa.cli.report.contract` prints its JSON Schema, which stands in `docs/report.schema.json`.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hvpa.api.hvpa.spec import Blend, Mode
from hvpa.api.objects.read_models import Workload
from hvpa.api.values.prices import Prices
from hvpa.api.values.text import printable_json
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.explain.contract.decision import Containers, containers_view
from hvpa.cli.explain.contract.path import Count, Part
from hvpa.cli.report.costs import HOURS_PER_MONTH, Amount, Size
from hvpa.cli.report.drafts import BLENDS
from hvpa.cli.report.inventory import LeftOut
from hvpa.cli.report.rows import Option, Report, Row

_DIGITS = 3
_CENTS = 2


class PricesUsed(Part, frozen=True):
    """What money is reckoned with, in the user's currency."""

    core_hour: float
    gib_hour: float
    hours_per_month: Count


class Total(Part, frozen=True):
    """Requests of all replicas, or a difference of such requests."""

    cores: float
    memory_gib: Annotated[float, Meta(description="Memory in GiB.")]
    cost_per_month: float


class Sized(Part, frozen=True):
    """Replicas, the requests and limits of each one's containers, and what all of them request."""

    replicas: Count
    containers: Containers
    total: Total


class BlendView(Part, frozen=True):
    """What one blend would set if nothing were held back."""

    own: Annotated[bool, Meta(description="Whether an Hvpa that exists has this blend.")]
    recommended: Annotated[Sized | None, Meta(description="null where nothing can be decided.")]
    difference: Annotated[
        Total | None, Meta(description="To what is there now; null where nothing can be decided.")
    ]
    why: Annotated[str, Meta(description="What the decision rests on, or why there is none, in words.")]


class RiskView(Part, frozen=True):
    """What is risky, why, and what mends it."""

    reason: str
    message: str


class HvpaName(Part, frozen=True):
    """An Hvpa of the workload."""

    name: str
    mode: Annotated[Mode | None, Meta(description="null where its spec is invalid.")]


class WorkloadName(Part, frozen=True):
    """A Deployment or StatefulSet."""

    kind: str
    namespace: str
    name: str


class WorkloadView(Part, frozen=True):
    """A workload that something recommends for."""

    kind: str
    namespace: str
    name: str
    hvpas: list[HvpaName]
    hpas: Annotated[list[str], Meta(description="HPAs that point at the workload itself.")]
    vpas: Annotated[list[str], Meta(description="VPAs that point at the workload.")]
    current: Sized
    blends: Annotated[
        dict[Blend, BlendView],
        Meta(description="By blend, Additive and Trajectory; of an invalid Hvpa its own alone."),
    ]
    risks: list[RiskView]


class Totals(Part, frozen=True):
    """Requests of all workloads that something recommends for."""

    current: Total
    blends: dict[Blend, Total]


class LeftOutView(Part, frozen=True):
    """An HPA, VPA or Hvpa that points at nothing that an Hvpa can scale, or an object that can't be read."""

    kind: str
    namespace: str
    name: str
    why: str


class ReportView(Part, frozen=True):
    """What `hvpa report -o json` prints. All keys are always there."""

    time: Annotated[str, Meta(description="The time that it is decided for, an RFC 3339 timestamp.")]
    vpa_weight: Annotated[
        Count,
        Meta(description="Vertical weight, in percent, of workloads with an HPA and a VPA and no Hvpa."),
    ]
    prices: PricesUsed
    workloads: Annotated[
        list[WorkloadView], Meta(description="The largest difference in money, up or down, comes first.")
    ]
    totals: Totals
    without_recommender: Annotated[
        list[WorkloadName], Meta(description="Workloads with neither an HPA nor a VPA nor an Hvpa.")
    ]
    left_out: list[LeftOutView]


def report_view(report: Report) -> ReportView:
    """The report in the contract's form."""
    prices = report.prices
    return ReportView(
        time=format_timestamp(report.at),
        vpa_weight=report.vpa_weight,
        prices=PricesUsed(core_hour=prices.cpu, gib_hour=prices.memory, hours_per_month=HOURS_PER_MONTH),
        workloads=[_workload(row, prices) for row in report.rows],
        totals=Totals(
            current=_total(report.now, prices),
            blends={blend: _total(report.with_blend(blend), prices) for blend in BLENDS},
        ),
        without_recommender=[_name(one) for one in report.inventory.without],
        left_out=[_left_out(one) for one in report.inventory.left_out],
    )


def to_json(report: Report) -> str:
    """The report as indented JSON, without a line break at the end."""
    return printable_json(msgspec.json.format(msgspec.json.encode(report_view(report)), indent=2).decode())


def _workload(row: Row, prices: Prices) -> WorkloadView:
    subject, name = row.subject, _name(row.subject.workload)
    return WorkloadView(
        kind=name.kind,
        namespace=name.namespace,
        name=name.name,
        hvpas=[
            HvpaName(name=one.metadata.name, mode=None if one.spec is None else one.spec.mode)
            for one in subject.hvpas
        ],
        hpas=[one.metadata.name for one in subject.hpas],
        vpas=[one.metadata.name for one in subject.vpas],
        current=_sized(row.now, prices),
        blends={one.blend: _blend(row, one, prices) for one in row.options},
        risks=[RiskView(reason=one.reason, message=one.message) for one in row.risks],
    )


def _blend(row: Row, option: Option, prices: Prices) -> BlendView:
    size = option.size
    return BlendView(
        own=option.is_own,
        recommended=None if size is None else _sized(size, prices),
        difference=None if size is None else _total(size.total - row.now.total, prices),
        why=option.why,
    )


def _sized(size: Size, prices: Prices) -> Sized:
    return Sized(
        replicas=size.replicas,
        containers=containers_view(size.containers),
        total=_total(size.total, prices),
    )


def _total(amount: Amount, prices: Prices) -> Total:
    return Total(
        cores=round(amount.cores, _DIGITS),
        memory_gib=round(amount.gib, _DIGITS),
        cost_per_month=round(amount.cost(prices), _CENTS),
    )


def _name(workload: Workload) -> WorkloadName:
    meta = workload.metadata
    return WorkloadName(kind=workload.kind, namespace=meta.namespace, name=meta.name)


def _left_out(one: LeftOut) -> LeftOutView:
    return LeftOutView(kind=one.kind, namespace=one.namespace, name=one.name, why=one.why)


def schema() -> dict[str, Any]:
    """The JSON Schema of the contract."""
    (_,), definitions = msgspec.json.schema_components([ReportView], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hvpa report -o json",
        "$ref": "#/$defs/ReportView",
        "$defs": dict(sorted(definitions.items())),
    }


def main() -> None:
    """Print the schema."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n")


if __name__ == "__main__":
    main()
