"""The log of an operator that ends and starts again. (In a file of its own: no other operator looks at these Hvpas.)"""

from __future__ import annotations

from hvpa.core.report.remedies import REMEDIES
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import Play, Start


def lines(operator: Operator, stage: Stage, kind: str) -> list[tuple[str, str]]:
    """Level and text of the log's lines about one condition of the Hvpa."""
    return [
        (one["level"], one["event"])
        for one in operator.log_lines()
        if (one.get("namespace"), one.get("name")) == (stage.namespace, stage.name)
        and one.get("condition") == kind
    ]


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
