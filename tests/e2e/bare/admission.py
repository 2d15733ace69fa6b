"""Policies of the cluster that refuse writes to one object (ValidatingAdmissionPolicy)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.workloads.stage import Stage

GROUP = "admissionregistration.k8s.io/v1"
KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
IN_FORCE = 60
"""Seconds until the API server has seen a policy; about one on an idle machine."""


class Policy(NamedTuple):
    """A rule for the object `kind` of a stage's name: `expression` must hold, else `message` is responded. `breach`
    makes a spec into one that breaks the rule."""

    expression: str
    message: str
    breach: Callable[[Json], object]
    kind: str = "Deployment"

    def name(self, stage: Stage) -> str:
        """The policy's name in the cluster."""
        return f"{self.kind}.{stage.name}.{stage.namespace}".lower()

    def impose(self, stage: Stage) -> None:
        """Create the policy and wait until it is in force."""
        path = stage.api.path(self.kind, stage.namespace, stage.name)
        version, plural = path.split("/namespaces/")[0].removeprefix("/apis/"), path.split("/")[-2]
        rule = {
            "apiGroups": [version.split("/")[0]],
            "apiVersions": [version.split("/")[1]],
            "operations": ["UPDATE"],
            "resources": [plural],
            "resourceNames": [stage.name],
        }
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": self.expression, "message": self.message}],
        }
        selector = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
        binding = {
            "policyName": self.name(stage),
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        }
        for kind, body in zip(KINDS, (spec, binding), strict=True):
            metadata = {"name": self.name(stage)}
            stage.api.create({"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": body})
        wait_for(lambda: self.message in self._refusal(stage), IN_FORCE, "the policy in force")

    def lift(self, stage: Stage) -> None:
        """Delete the policy and wait until it is out of force."""
        for kind in reversed(KINDS):
            stage.api.delete(f"{GROUP}/{kind}", self.name(stage))
        wait_for(lambda: self._refusal(stage) == "", IN_FORCE, "the policy out of force")

    @contextlib.contextmanager
    def imposed(self, stage: Stage) -> Iterator[str]:
        """The policy is in force in this block; gives its name."""
        self.impose(stage)
        try:
            yield self.name(stage)
        finally:
            self.lift(stage)

    def _refusal(self, stage: Stage) -> str:
        """What the breach is refused with; empty where it would be taken. Nothing is stored."""
        path = stage.api.path(self.kind, stage.namespace, stage.name)
        found = stage.api.get(self.kind, stage.name, stage.namespace)
        self.breach(found["spec"])
        try:
            stage.api.raw("PUT", f"{path}?dryRun=All", found)
        except ApiError as error:
            return self._refusal(stage) if error.status == 409 else error.message
        return ""


FEW = Policy("object.spec.replicas <= 3", "at most 3 replicas", lambda spec: spec.update(replicas=4))
"""A policy for Deployments."""
