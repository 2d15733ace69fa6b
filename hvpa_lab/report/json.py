"""A report as JSON: a stable contract with its types and words in `docs/report.schema.json`. All keys are always
present."""

from __future__ import annotations

from hvpa.api.objects.read_models import Workload
from hvpa.api.values.prices import Prices
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.output import Json, containers, indented
from hvpa_lab.report.inventory import BLENDS
from hvpa_lab.report.rows import HOURS_PER_MONTH, Amount, Option, Report, Row, Size

_DIGITS = 3
_CENTS = 2


def to_json(report: Report) -> str:
    """The report as indented JSON, without a final line break."""
    prices, now = report.prices, report.now
    return indented(
        {
            "time": format_timestamp(report.at),
            "vpaWeight": report.vpa_weight,
            "prices": {
                "coreHour": prices.cpu,
                "gibHour": prices.memory,
                "hoursPerMonth": HOURS_PER_MONTH,
            },
            "workloads": [_workload(row, prices) for row in report.rows],
            "totals": {
                "current": _total(now, prices),
                "blends": {blend: _total(now.plus(report.difference(blend)), prices) for blend in BLENDS},
            },
            "withoutRecommender": [_name(workload) for workload in report.inventory.without],
            "leftOut": [left_out._asdict() for left_out in report.inventory.left_out],
        }
    )


def _workload(row: Row, prices: Prices) -> Json:
    subject = row.subject
    return {
        **_name(subject.workload),
        "hvpas": [
            {"name": hvpa.metadata.name, "mode": None if hvpa.spec is None else hvpa.spec.mode}
            for hvpa in subject.hvpas
        ],
        "hpas": [hpa.metadata.name for hpa in subject.hpas],
        "vpas": [vpa.metadata.name for vpa in subject.vpas],
        "current": _sized(row.now, prices),
        "blends": {option.blend: _blend(row, option, prices) for option in row.options},
        "risks": [risk._asdict() for risk in row.risks],
    }


def _blend(row: Row, option: Option, prices: Prices) -> Json:
    size = option.size
    return {
        "own": option.is_own,
        "recommended": None if size is None else _sized(size, prices),
        "difference": None if size is None else _total(row.difference(option), prices),
        "why": option.why,
    }


def _sized(size: Size, prices: Prices) -> Json:
    return {
        "replicas": size.replicas,
        "containers": containers(size.containers),
        "total": _total(size.total, prices),
    }


def _total(amount: Amount, prices: Prices) -> Json:
    return {
        "cores": round(amount.cores, _DIGITS),
        "memoryGib": round(amount.gib, _DIGITS),
        "costPerMonth": round(amount.cost(prices), _CENTS),
    }


def _name(workload: Workload) -> Json:
    meta = workload.metadata
    return {"kind": workload.kind, "namespace": meta.namespace, "name": meta.name}
