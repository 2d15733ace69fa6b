"""The admission policies, as far as their text shows; what they refuse is shown end to end."""

from __future__ import annotations

import re

import pytest
from pydantic.alias_generators import to_camel

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import ROLLOUT
from hvpa.api.objects.kinds import KINDS
from hvpa.core.actuation.removal import MARKS
from hvpa.core.model import DELETION_COST, LAST_APPLIED
from tests.unit.config.folders import CONFIG, Json, objects, only

KIND = "ValidatingAdmissionPolicy"
BINDING = "ValidatingAdmissionPolicyBinding"
POLICIES = [document for document in objects("policy") if document["kind"] == KIND]
"""The samples: those on Hvpas."""
OPERATORS = only("operator-policy", KIND, "hvpa-operator")
"""The one on the operator's account."""
OF_PODS = only("deletion-cost", KIND, "hvpa-deletion-cost")
"""The one on the operator's account, for pods."""
IDS = [policy["metadata"]["name"] for policy in POLICIES]


def _compared(name: str) -> set[str]:
    """The fields of the spec whose change makes a policy judge."""
    (condition,) = only("policy", KIND, name)["spec"]["matchConditions"]
    pairs = re.findall(r"object\.spec\.\?(\w+) != oldObject\.spec\.\?(\w+)", condition["expression"])
    assert all(new == old for new, old in pairs)
    return {new for new, _ in pairs}


def test_every_field_but_replicas_needs_the_right_on_the_workload() -> None:
    assert _compared("hvpa-target") == {to_camel(name) for name in HvpaSpec.model_fields} - {"replicas"}


def test_the_bounds_are_judged_where_they_or_what_they_bound_change() -> None:
    assert _compared("hvpa-bounds") == {"targetRef", "hpa", "vpa", "trajectory"}


def test_all_kinds_that_can_be_scaled_are_known() -> None:
    variables = {
        variable["name"]: variable["expression"]
        for variable in only("policy", KIND, "hvpa-target")["spec"]["variables"]
    }
    assert set(re.findall(r"'(\w+)': '", variables["resource"])) == set(KINDS)
    in_apps = re.search(r"kind in \[(.*?)\]", variables["group"])
    assert in_apps is not None
    assert re.findall(r"\w+", in_apps[1]) == [kind.name for kind in KINDS.values() if kind.group == "apps"]


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_neither_deletions_nor_subresources_are_judged_and_faults_let_nothing_pass(policy: Json) -> None:
    spec = policy["spec"]
    assert spec["failurePolicy"] == "Fail"
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert rule == {
        "apiGroups": ["autoscaling.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["hvpas"],
    }


def test_the_operator_s_own_policy_is_on_its_account_and_knows_its_annotations() -> None:
    account = only("manager", "ServiceAccount", "hvpa")["metadata"]
    reference = only("operator-policy", BINDING, "hvpa-operator")["spec"]["paramRef"]
    assert {key: reference[key] for key in ("name", "namespace")} == {
        key: account[key] for key in ("name", "namespace")
    }
    assert OPERATORS["spec"]["paramKind"] == {"apiVersion": "v1", "kind": "ServiceAccount"}
    spec = OPERATORS["spec"]
    variables = {variable["name"]: variable["expression"] for variable in spec["variables"]}
    own = {
        f"'{annotation}'"
        for annotation in (LAST_APPLIED, ROLLOUT, "deprecated.daemonset.template.generation")
    }
    assert set(re.split(r"[\[\],\s]+", variables["own"].strip("[]"))) == own
    rights = only("rbac", "ClusterRole", "hvpa-operator")["rules"]
    for rule in spec["matchConstraints"]["resourceRules"]:
        assert rule["operations"] == ["UPDATE"]
        assert {"apiGroups": rule["apiGroups"], "resources": rule["resources"]} in [
            {key: value for key, value in right.items() if key != "verbs"} for right in rights
        ]


def test_the_right_to_patch_pods_comes_with_a_policy_that_knows_the_operator_s_own_costs() -> None:
    assert objects("deletion-cost")[0]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}
    ]
    variables = {variable["name"]: variable["expression"] for variable in OF_PODS["spec"]["variables"]}
    assert variables["cost"] == f"'{DELETION_COST}'"
    assert variables["own"] == str(list(MARKS))
    (rule,) = OF_PODS["spec"]["matchConstraints"]["resourceRules"]
    assert rule == {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]}
    for key in ("failurePolicy", "paramKind", "matchConditions"):
        assert OF_PODS["spec"][key] == OPERATORS["spec"][key]


@pytest.mark.parametrize(
    ("folder", "name"), [("operator-policy", "hvpa-operator"), ("deletion-cost", "hvpa-deletion-cost")]
)
def test_without_the_account_nobody_is_confined(folder: str, name: str) -> None:
    reference = only(folder, BINDING, name)["spec"]["paramRef"]
    assert reference == {"name": "hvpa", "namespace": "hvpa-system", "parameterNotFoundAction": "Allow"}


@pytest.mark.parametrize(
    "policy", [*POLICIES, OPERATORS, OF_PODS], ids=lambda policy: str(policy["metadata"]["name"])
)
def test_a_policy_denies_and_says_why(policy: Json) -> None:
    name = policy["metadata"]["name"]
    (binding,) = (
        document
        for folder in ("policy", "operator-policy", "deletion-cost")
        for document in objects(folder)
        if (document["kind"], document["metadata"]["name"]) == (BINDING, name)
    )
    assert (binding["spec"]["policyName"], binding["spec"]["validationActions"]) == (name, ["Deny"])
    assert all(
        "message" in validation or "messageExpression" in validation
        for validation in policy["spec"]["validations"]
    )


def test_the_operator_s_own_is_installed_by_default_and_the_samples_are_not() -> None:
    names = [
        document["metadata"]["name"] for document in objects("default") if "Admission" in document["kind"]
    ]
    assert names == ["hvpa-operator", "hvpa-operator"]
    for path in CONFIG.glob("*/kustomization.yaml"):
        assert "../policy" not in path.read_text()
