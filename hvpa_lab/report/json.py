"""A report as JSON: a stable contract with its types and words in `docs/report.schema.json`. All keys are always
present."""

from __future__ import annotations

import datetime as dt

from hvpa.api.objects.read_models import Workload
from hvpa.api.values.prices import Prices
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.output import Json, containers, indented
from hvpa_lab.prometheus.past import Past
from hvpa_lab.report.groups import Group, Sums, groups, sums
from hvpa_lab.report.inventory import BLENDS
from hvpa_lab.report.rows import HOURS_PER_MONTH, Amount, Option, Report, Row, Size, Used

DIGITS = 3
CENTS = 2


def to_json(report: Report) -> str:
    """The report as indented JSON, without a final line break."""
    prices, now = report.prices, report.now
    return indented(
        {
            "time": format_timestamp(report.at),
            "vpaWeight": report.inventory.vpa_weight,
            "prices": {
                "coreHour": prices.cpu,
                "gibHour": prices.memory,
                "hoursPerMonth": HOURS_PER_MONTH,
                "currency": prices.currency,
            },
            "past": _past(report.inventory.around.past),
            "notes": list(report.inventory.around.notes),
            "by": list(report.by),
            "groups": [_group(group, prices) for group in groups(report)],
            "summary": _sums(sums(report.rows), prices),
            "workloads": [_workload(row, report) for row in report.rows],
            "totals": {
                "current": _total(now, prices),
                "blends": {blend: _total(now.plus(report.difference(blend)), prices) for blend in BLENDS},
            },
            "withoutRecommender": [_name(workload) for workload in report.inventory.without],
            "leftOut": [left_out._asdict() for left_out in report.inventory.left_out],
        }
    )


def _group(group: Group, prices: Prices) -> Json:
    return {"values": list(group.values), **_sums(group.sums, prices)}


def _sums(figures: Sums, prices: Prices) -> Json:
    cpu, memory = figures.shares()
    return {
        "workloads": figures.workloads,
        "requested": _total(figures.requested, prices),
        "used": {
            "cores": round(figures.used.cores, DIGITS),
            "memoryGib": round(figures.used.gib, DIGITS),
            "cpuPercent": cpu,
            "memoryPercent": memory,
        },
        "recommended": _total(figures.recommended, prices),
        "savingPerMonth": round(figures.saving(prices), CENTS),
        "sureSavingPerMonth": round(figures.sure_saving(prices), CENTS),
        "restarts": figures.restarts,
        "withRisks": figures.with_risks,
        "risks": dict(figures.risks),
        "bases": dict(figures.bases),
    }


def hours(history: dt.timedelta | None) -> float | None:
    """A length of time in hours."""
    return None if history is None else round(history / dt.timedelta(hours=1), 1)


def mean(size: Size) -> float | None:
    """The mean replicas of a size."""
    return None if size.mean is None else round(size.mean, 2)


def _past(past: Past | None) -> Json | None:
    return None if past is None else {"source": past.source, "days": past.days, "workloads": len(past.usage)}


def _workload(row: Row, report: Report) -> Json:
    subject, prices = row.subject, report.prices
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
        "values": dict(zip(report.by, row.values, strict=True)),
        "used": _used(row.used),
        "restarts": row.restarts,
        "basis": row.basis,
        "vpaHistoryHours": hours(row.history),
        "usageDays": 0 if subject.past is None else subject.past.days,
        "chosen": row.chosen.blend,
        "savingPerMonth": round(0.0 - row.change.cost(prices), CENTS),
        "risks": [risk._asdict() for risk in row.risks],
    }


def _used(used: Used) -> Json:
    amount = Amount(used.cpu or 0, used.memory or 0)
    return {
        "cores": None if used.cpu is None else round(amount.cores, DIGITS),
        "memoryGib": None if used.memory is None else round(amount.gib, DIGITS),
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
        "meanReplicas": mean(size),
        "containers": containers(size.containers),
        "total": _total(size.total, prices),
    }


def _total(amount: Amount, prices: Prices) -> Json:
    return {
        "cores": round(amount.cores, DIGITS),
        "memoryGib": round(amount.gib, DIGITS),
        "costPerMonth": round(amount.cost(prices), CENTS),
    }


def _name(workload: Workload) -> Json:
    meta = workload.metadata
    return {"kind": workload.kind, "namespace": meta.namespace, "name": meta.name}
