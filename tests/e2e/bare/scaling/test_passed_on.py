"""Fields of the templates that HVPA does not know, on a real API server with the CRD of the VPA (decision note 92)."""

from __future__ import annotations

import pytest

from localcluster.client.api import Json
from localcluster.operator.operator import Operator
from tests.e2e.bare.conftest import NewScenario

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"
FIELDS = "spec.vpa.template.spec"
RECOMMENDERS = [{"name": "percentile-95"}]


def template(axis: str, **spec: object) -> Json:
    return {axis: {"template": {"spec": spec}}}


def test_fields_that_the_crd_of_the_vpa_has_are_passed_on_and_kept(
    new_scenario: NewScenario, operator: Operator
) -> None:
    policies = {
        "containerPolicies": [{"containerName": "app", "oomBumpUpRatio": "1.5", "maxAllowed": {"cpu": "2"}}]
    }
    scenario = new_scenario(changes=template("vpa", recommenders=RECOMMENDERS, resourcePolicy=policies))
    spec = scenario.vpa["spec"]
    assert (spec["recommenders"], spec["resourcePolicy"]) == (RECOMMENDERS, policies)
    scenario.api.patch(VPA, scenario.name, scenario.namespace, {"spec": {"recommenders": None}})
    scenario.soon(lambda: scenario.vpa["spec"].get("recommenders") == RECOMMENDERS, "the repair")
    scenario.change(template("vpa", recommenders=None))
    scenario.soon(lambda: "recommenders" not in scenario.vpa["spec"], "the removal")


@pytest.mark.parametrize(("axis", "kind"), [("hpa", HPA), ("vpa", VPA)])
def test_a_field_that_the_api_server_does_not_know_is_named_and_nothing_is_written(
    new_scenario: NewScenario, operator: Operator, axis: str, kind: str
) -> None:
    scenario = new_scenario()
    before = scenario.api.get(kind, scenario.name, scenario.namespace)["spec"]
    scenario.change(template(axis, later={"a": 1}))
    message = scenario.await_condition("Ready", "False", "WriteFailed")["message"]
    assert f"spec.{axis}.template.spec.later" in message
    assert ".spec.later: field not declared in schema" in message
    assert scenario.api.get(kind, scenario.name, scenario.namespace)["spec"] == before
    scenario.change(template(axis, later=None))
    scenario.soon(lambda: scenario.condition("Ready")["reason"] != "WriteFailed", "the end of the error")


def test_a_value_that_the_crd_of_the_vpa_refuses_is_reported_and_no_vpa_is_made(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(create=False, changes=template("vpa", recommenders=[{"name": 5}]))
    scenario.create(wait=False)
    message = scenario.await_condition("Ready", "False", "WriteFailed")["message"]
    assert f"with {FIELDS}.recommenders: " in message
    assert scenario.api.find(VPA, scenario.name, scenario.namespace) is None
    scenario.change(template("vpa", recommenders=RECOMMENDERS))
    scenario.soon(lambda: scenario.api.find(VPA, scenario.name, scenario.namespace) is not None, "the VPA")
