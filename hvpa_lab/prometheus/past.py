"""The past usage of workloads, as read from the answers to the queries of `usage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Final, NamedTuple

from hvpa.api.values.quantity import Resource
from hvpa_lab.simulate.history.answers import CONTAINER, PrometheusSeries

NAMESPACE: Final = "namespace"
KIND: Final = "owner_kind"
NAME: Final = "owner_name"
"""Labels of a series, by kube-state-metrics' names."""
WorkloadKey = tuple[str, str, str]
"""Namespace, kind and name."""


class PastUsage(NamedTuple):
    """The past usage of a workload. Hours without a pod are left out."""

    days: int = 0
    """Number of days with usage."""
    replicas: float | None = None
    """Mean number of pods that ran."""
    used: Mapping[Resource, int] = MappingProxyType({})
    """Mean usage of all pods, in millicores and bytes."""
    busiest: Mapping[str, Mapping[Resource, int]] = MappingProxyType({})
    """By container: the usage of the pod that used most. CPU: the 90th percentile of the day on which that is highest;
    memory: the highest value."""


class Past(NamedTuple):
    """The known past usage of workloads."""

    source: str
    days: int
    """Number of days that were queried."""
    usage: Mapping[WorkloadKey, PastUsage]


def past_usage(answers: Mapping[str, Sequence[PrometheusSeries]]) -> dict[WorkloadKey, PastUsage]:
    """The usage by workload, from the answers to the queries; series without a workload are left out."""
    found: dict[WorkloadKey, PastUsage] = {}
    for name, series_list in answers.items():
        for series in series_list:
            labels = series.labels
            key = (labels.get(NAMESPACE, ""), labels.get(KIND, ""), labels.get(NAME, ""))
            if all(key) and series.values:
                found[key] = _with(found.get(key, PastUsage()), name, series)
    return {key: usage for key, usage in found.items() if usage.days}


def _with(usage: PastUsage, name: str, series: PrometheusSeries) -> PastUsage:
    """The usage with the values of a series."""
    values = series.values.values()
    if name == "replicas":
        return usage._replace(replicas=fmean(values))
    what, resource = ("", name) if " " not in name else name.split()
    key: Resource = "cpu" if resource == "cpu" else "memory"
    if not what:
        days = len(series.values) if not usage.days else min(usage.days, len(series.values))
        return usage._replace(used={**usage.used, key: _amount(key, fmean(values))}, days=days)
    container = series.labels.get(CONTAINER)
    if container is None:
        return usage
    known = usage.busiest.get(container, {})
    return usage._replace(busiest={**usage.busiest, container: {**known, key: _amount(key, max(values))}})


def _amount(resource: Resource, value: float) -> int:
    """Cores or bytes as millicores or bytes."""
    return round(value * 1000) if resource == "cpu" else round(value)
