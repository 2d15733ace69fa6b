"""What a row of the table of reasons is, and what several rows do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from localcluster.client.api import Json
from localcluster.workloads.scenario import Scenario

Act = Callable[[Scenario], object]
HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"


class Row(NamedTuple):
    """One reason: how it comes about, what is reported, and how it goes.

    `ready` is the status and the reason of `Ready`, `others` are conditions (type, status, reason) that come with it,
    `gate` is the reason of `ScalingBlocked`: a gate, or why nothing is scaled. `text` stands in the message of one of
    them, `columns` are what `kubectl get` shows beside READY, REASON and BLOCKED. `to_act` has the reasons for which
    a user must act: each is one warning of the log and one of the Events, with its remedy, and one line of the log
    when it is over. `start` and `changes` are of the Hvpa and its workload before the cause.
    """

    name: str
    cause: Act
    ready: tuple[str, str]
    cure: Act
    others: tuple[tuple[str, str, str], ...] = ()
    gate: str = "NotBlocked"
    text: str = ""
    columns: Mapping[str, str] = MappingProxyType({})
    to_act: tuple[str, ...] = ()
    changes: Mapping[str, Any] = MappingProxyType({})
    start: Mapping[str, Any] = MappingProxyType({})

    @property
    def conditions(self) -> tuple[tuple[str, str, str], ...]:
        """All conditions that are expected: type, status, reason."""
        is_blocked = str(self.gate != "NotBlocked")
        return (("Ready", *self.ready), *self.others, ("ScalingBlocked", is_blocked, self.gate))

    @property
    def reasons(self) -> frozenset[str]:
        """The reasons that are seen in this row."""
        return frozenset(reason for _, _, reason in self.conditions)


HEALTHY = (
    ("Ready", "True", "Reconciled"),
    ("HpaActive", "True", "Recommending"),
    ("VpaActive", "True", "Recommending"),
    ("ScalingBlocked", "False", "NotBlocked"),
    ("Paused", "False", "NotPaused"),
    ("Contested", "False", "NotContested"),
)
"""The conditions before each cause and after each cure."""
GATED = ("True", "HeldBack")


def content(scenario: Scenario) -> None:
    """Both recommenders ask for what is set, and then the rollout is complete: in the other order, a step that waited
    for the rollout is made in between."""
    scenario.hpa_wants(scenario.replicas)
    scenario.vpa_recommends(**scenario.requests)
    scenario.rollout_completes()


def content_again(scenario: Scenario) -> None:
    """The same, once the operator has made the HPA and the VPA again."""
    scenario.await_owned()
    content(scenario)


def wants(replicas: int) -> Act:
    """The HPA wants so many replicas."""
    return lambda scenario: scenario.hpa_wants(replicas)


def change(spec: Json) -> Act:
    """The user merges this into the Hvpa's spec."""
    return lambda scenario: scenario.change(spec)


def both(*acts: Act) -> Act:
    """One after the other."""

    def new_scenario(scenario: Scenario) -> None:
        for act in acts:
            act(scenario)

    return new_scenario
