"""Policies of the cluster that refuse writes to one object (ValidatingAdmissionPolicy)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.workloads.scenario import Scenario

GROUP = "admissionregistration.k8s.io/v1"
KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
IN_FORCE = 60
"""Seconds until the API server has seen a policy; about one on an idle machine."""


class Policy(NamedTuple):
    """A rule for the object `kind` of a scenario's name: `expression` must hold, else `message` is responded. `breach`
    makes a spec into one that breaks the rule. `subresource`: the rule is for writes of this one alone."""

    expression: str
    message: str
    breach: Callable[[Json], object]
    kind: str = "Deployment"
    subresource: str = ""

    def name(self, scenario: Scenario) -> str:
        """The policy's name in the cluster."""
        return f"{self.kind}.{scenario.name}.{scenario.namespace}".lower()

    def impose(self, scenario: Scenario) -> None:
        """Create the policy and wait until it is in force."""
        path = scenario.api.path(self.kind, scenario.namespace, scenario.name)
        version, plural = path.split("/namespaces/")[0].removeprefix("/apis/"), path.split("/")[-2]
        rule = {
            "apiGroups": [version.split("/")[0]],
            "apiVersions": [version.split("/")[1]],
            "operations": ["UPDATE"],
            "resources": [f"{plural}/{self.subresource}".rstrip("/")],
            "resourceNames": [scenario.name],
        }
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": self.expression, "message": self.message}],
        }
        selector = {"matchLabels": {"kubernetes.io/metadata.name": scenario.namespace}}
        binding = {
            "policyName": self.name(scenario),
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        }
        for kind, body in zip(KINDS, (spec, binding), strict=True):
            metadata = {"name": self.name(scenario)}
            scenario.api.create({"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": body})
        wait_for(lambda: self.message in self._refusal(scenario), IN_FORCE, "the policy in force")

    def lift(self, scenario: Scenario) -> None:
        """Delete the policy and wait until it is out of force."""
        for kind in reversed(KINDS):
            scenario.api.delete(f"{GROUP}/{kind}", self.name(scenario))
        wait_for(lambda: self._refusal(scenario) == "", IN_FORCE, "the policy out of force")

    def _refusal(self, scenario: Scenario) -> str:
        """What the breach is refused with; empty where it would be taken. Nothing is stored."""
        path = scenario.api.path(self.kind, scenario.namespace, scenario.name)
        path = f"{path}/{self.subresource}".rstrip("/")
        manifest = scenario.api.raw("GET", path)
        self.breach(manifest["spec"])
        try:
            scenario.api.raw("PUT", f"{path}?dryRun=All", manifest)
        except ApiError as error:
            return self._refusal(scenario) if error.status == 409 else error.message
        return ""


FEW = Policy("object.spec.replicas <= 3", "at most 3 replicas", lambda spec: spec.update(replicas=4))
"""A policy for Deployments."""
FEW_BY_SCALE = Policy(
    "object.spec.replicas <= 3",
    "at most 3 replicas by the scale",
    lambda spec: spec.update(replicas=4),
    subresource="scale",
)
"""The same for the `scale` subresource of Deployments, by which replicas are set where pods are resized in place."""
