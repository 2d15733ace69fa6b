"""Metrics of policies: how many there are by their condition Ready, their workloads, and which policies need a person.

All is read from the statuses at a scrape; there are few policies beside their Hvpas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hvpa.api.policy.resource import SPECS, PolicyKey
from hvpa.api.policy.status import PolicyStatus
from hvpa.core.policies.report import needs_person, ready_of

STATES: Final = (
    "selected",
    "generated",
    "up_to_date",
    "written_by_others",
    "opted_out",
    "awaiting_adoption",
    "awaiting_removal",
)
"""Counts of a policy's status."""


class PolicyMetrics(Collector):
    """The metrics of the policies that this process works for."""

    def __init__(self, statuses: Callable[[], Mapping[PolicyKey, PolicyStatus]]) -> None:
        """`statuses` is called at each scrape; without the flag `--policies` it returns nothing."""
        self._statuses = statuses

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Only reasons that need a person have a series for each policy."""
        statuses = self._statuses()
        workloads, policies = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
        what = "Workloads of policies, by the counts of their statuses."
        of_workloads = GaugeMetricFamily("hvpa_policy_workloads", what, labels=["kind", "state"])
        number = "Number of policies, by their condition Ready."
        of_policies = GaugeMetricFamily("hvpa_policies", number, labels=["kind", "ready", "reason"])
        needs = "1 for each policy that needs a person, by the reason of its condition Ready."
        labels = ["kind", "namespace", "name", "reason"]
        problem = GaugeMetricFamily("hvpa_policy_problem", needs, labels=labels)
        for key, status in statuses.items():
            for state in STATES:
                workloads[key.kind, state] += getattr(status, state)
            if (ready := ready_of(status)) is None:
                continue
            policies[key.kind, ready.status, ready.reason] += 1
            if needs_person(status):
                problem.add_metric([*key, ready.reason], 1)
        kinds = {key.kind for key in statuses}
        for kind in SPECS:
            for state in STATES if kind in kinds else ():
                of_workloads.add_metric([kind, state], workloads[kind, state])
        for values, count in sorted(policies.items()):
            of_policies.add_metric(values, count)
        return of_policies, of_workloads, problem
