"""What an on-call engineer reads: events with the why on the Hvpa and its workload; in the log one warning for each
state in which somebody must act, with the remedy, and one line when it is over."""

from __future__ import annotations

import pytest

from hvpa.core.remedies import REMEDIES
from tests.e2e.bare.conftest import Play, Start
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


def test_a_target_that_is_gone_is_one_warning_and_its_return_one_line(
    play: Play, start: Start, space: str
) -> None:
    operator = start("--namespace", space)
    off = {"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    stage = play(changes={**weight(0), **off})
    stage.vpa_is_content()
    stage.hpa_wants(6)
    stage.await_blocked("UpdatePolicy", "horizontal")
    stage.api.delete(stage.kind, stage.name, stage.namespace)
    told = stage.await_condition("Ready", "False", "TargetNotFound")
    remedy = REMEDIES["TargetNotFound"]
    stage.await_event("TargetNotFound", f"{told['message']}. {remedy}.")
    warning = ("warning", f"TargetNotFound: {told['message']}. {remedy}.")
    assert lines(operator, stage, "Ready") == [warning]
    assert not stage.events("ScalingUnblocked"), "nothing was unblocked: scaling has stopped"

    operator.kill()  # the next one knows nothing but the status
    operator.start()
    stage.change({"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Auto"}}}})
    stage.settled()
    stage.api.create(stage.workload)
    stage.rollout_completes()
    stage.await_condition("Ready", "True", "Reconciled")

    def over() -> bool:
        return ("info", "TargetNotFound is over: Ready is True, Reconciled") in lines(
            operator, stage, "Ready"
        )

    stage.soon(over, "the log's line that it is over")
    assert lines(operator, stage, "Ready").count(warning) == 1, "not repeated by an operator that starts"


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
