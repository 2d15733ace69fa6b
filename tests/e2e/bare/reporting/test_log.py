"""The log of an operator that ends and starts again. (In a file of its own: no other operator looks at these Hvpas.)"""

from __future__ import annotations

from hvpa.core.report.remedies import REMEDIES
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario, Start


def lines(operator: Operator, scenario: Scenario, kind: str) -> list[tuple[str, str]]:
    """Level and text of the log's lines about one condition of the Hvpa."""
    return [
        (line["level"], line["event"])
        for line in operator.log_lines()
        if (line.get("namespace"), line.get("name")) == (scenario.namespace, scenario.name)
        and line.get("condition") == kind
    ]


def test_a_target_that_is_gone_is_one_warning_and_its_return_one_line(
    new_scenario: NewScenario, start: Start, space: str
) -> None:
    operator = start("--namespace", space)
    off = {"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    scenario = new_scenario(changes={**weight(0), **off})
    scenario.vpa_is_content()
    scenario.hpa_wants(6)
    scenario.await_blocked("UpdatePolicy", "horizontal")
    scenario.api.delete(scenario.kind, scenario.name, scenario.namespace)
    condition = scenario.await_condition("Ready", "False", "TargetNotFound")
    remedy = REMEDIES["TargetNotFound"]
    scenario.await_event("TargetNotFound", f"{condition['message']}. {remedy}.")
    warning = ("warning", f"TargetNotFound: {condition['message']}. {remedy}.")
    assert lines(operator, scenario, "Ready") == [warning]
    assert not scenario.events("ScalingUnblocked"), "nothing was unblocked: scaling has stopped"

    operator.kill()  # the next one knows nothing but the status
    operator.start()
    scenario.change({"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Auto"}}}})
    scenario.settled()
    scenario.api.create(scenario.workload)
    scenario.rollout_completes()
    scenario.await_condition("Ready", "True", "Reconciled")

    def over() -> bool:
        return ("info", "TargetNotFound is over: Ready is True, Reconciled") in lines(
            operator, scenario, "Ready"
        )

    scenario.soon(over, "the log's line that it is over")
    assert lines(operator, scenario, "Ready").count(warning) == 1, "not repeated by an operator that starts"
