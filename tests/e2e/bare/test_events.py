"""What an on-call engineer reads: events with the why on the Hvpa and its workload; in the log one warning for each
state in which somebody must act, with the remedy, and one line when it is over."""

from __future__ import annotations

import pytest

from hvpa.core.remedies import REMEDIES
from tests.e2e.bare.conftest import Play
from tests.e2e.bare.manifests import weight
from tests.e2e.bare.stage import Stage
from tests.e2e.world.kube import Json
from tests.e2e.world.operator import Operator


def events_on(stage: Stage, kind: str, reason: str) -> list[Json]:
    """The Events with a reason on the Hvpa or on its workload."""
    return [
        one
        for one in stage.api.list("Event", stage.namespace)
        if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == (kind, stage.name)
        and one["reason"] == reason
    ]


def lines(operator: Operator, stage: Stage, kind: str) -> list[tuple[str, str]]:
    """Level and text of the log's lines about one condition of the Hvpa."""
    return [
        (one["level"], one["event"])
        for one in operator.log_lines()
        if (one.get("namespace"), one.get("name")) == (stage.namespace, stage.name)
        and one.get("condition") == kind
    ]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_step_is_an_event_with_its_why_on_the_hvpa_and_on_its_workload(
    play: Play, operator: Operator, kind: str
) -> None:
    stage = play(kind=kind, changes=weight(50))
    stage.vpa_is_content()
    stage.hpa_wants(6)
    stage.await_replicas(4)
    message = "replicas 2 -> 4; HPA: cpu at 300 % of its target, using 6; vpaWeight 50"
    assert stage.await_event("ScaledOut")["message"] == message
    [event] = stage.soon(lambda: events_on(stage, kind, "ScaledOut"), f"an Event on the {kind}")
    assert event["message"] == f"Hvpa {stage.name}: {message}"
    assert event["involvedObject"]["uid"] == stage.target["metadata"]["uid"], (
        "`kubectl describe` finds it by that"
    )
    assert event["involvedObject"]["apiVersion"] == "apps/v1"


def test_a_contest_is_one_warning_with_its_remedy_and_one_line_when_it_is_over(
    play: Play, operator: Operator
) -> None:
    stage = play(changes=weight(50))
    stage.vpa_is_content()
    stage.hpa_wants(6)
    stage.await_replicas(4)
    stage.change_workload({"replicas": 2}, "gitops")
    stage.await_replicas(4)
    stage.change_workload({"replicas": 2}, "gitops")
    told = stage.await_condition("Contested", "True", "SetBack")
    stage.await_event("SetBack", REMEDIES["SetBack"])
    [(level, text)] = stage.soon(lambda: lines(operator, stage, "Contested"), "a line of the log")
    assert level == "warning"
    assert text == f"SetBack: {told['message']}. {REMEDIES['SetBack']}."
    stage.change_workload({"replicas": 4}, "gitops")
    stage.await_condition("Contested", "False", "NotContested")
    stage.soon(lambda: len(lines(operator, stage, "Contested")) == 2, "another line of the log")
    assert lines(operator, stage, "Contested")[1] == (
        "info",
        "SetBack is over: Contested is False, NotContested",
    )
