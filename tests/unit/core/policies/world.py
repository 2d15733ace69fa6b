"""A cluster in memory that plans are made for and applied to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import structs

from builders import build
from builders.build import NOW, at
from hvpa.api.hvpa.resource import read_hvpa
from hvpa.api.objects.kinds import kind_key
from hvpa.api.objects.read_models import Hpa, RawHvpa, Vpa, Workload
from hvpa.api.policy.resource import PolicyKey, PolicyKind, PolicyObject, read_policy
from hvpa.core.policies.model import PolicyInput, PolicyPlan, PresentHvpa, Target
from hvpa.core.policies.plan import plan

Json = dict[str, Any]
TEMPLATE: Json = {
    "hpa": {"deploy": True, "template": {"spec": {"minReplicas": 1, "maxReplicas": 5}}},
    "vpa": {"deploy": True},
}
SYSTEM = "hvpa-system"


def policy(
    name: str = "team",
    spec: Mapping[str, Any] | None = None,
    namespace: str = "default",
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> PolicyObject:
    """An HvpaPolicy for all workloads of a namespace; a ClusterHvpaPolicy for all namespaces if that is empty."""
    kind: PolicyKind = "HvpaPolicy" if namespace else "ClusterHvpaPolicy"
    base: Json = {"template": TEMPLATE} | ({} if namespace else {"namespaces": {"all": True}})
    document = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{kind}-{namespace}-{name}",
            "generation": 1,
            **(metadata or {}),
        },
        "spec": {**base, **(spec or {})},
        "status": dict(status or {}),
    }
    return read_policy(kind, build.decoded(RawHvpa, document))


def workload(
    name: str = "web",
    namespace: str = "default",
    kind: str = "Deployment",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    change: Mapping[str, Any] | None = None,
    **requests: str,
) -> Workload:
    """A workload whose rollout is complete."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    containers = [build.container("app", requests or {"cpu": "100m"})]
    return build.workload(
        containers=containers, kind=kind, change=build.merged({"metadata": metadata}, change or {})
    )


@dataclass
class World:
    """Objects by their keys. `step` plans and applies."""

    policies: list[PolicyObject] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    namespaces: dict[str, dict[str, str]] | None = field(default_factory=dict)
    hvpas: dict[tuple[str, str], Json] = field(default_factory=dict)
    hpas: list[Hpa] = field(default_factory=list)
    vpas: list[Vpa] = field(default_factory=list)
    kinds: frozenset[str] = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    terminating: frozenset[str] = frozenset()
    removed: dict[PolicyKey, int] = field(default_factory=dict)
    version: int = 0

    def plan(self, now: dt.datetime = NOW) -> PolicyPlan:
        """The plan for the present objects."""
        return plan(self.input(), now)

    def input(self) -> PolicyInput:
        """The present objects."""
        return PolicyInput(
            self.policies,
            self.namespaces,
            self.workloads,
            self.kinds,
            [self._present(document) for document in self.hvpas.values()],
            self.hpas,
            self.vpas,
            SYSTEM,
            self.failures,
            self.terminating,
            dict(self.removed),
        )

    def step(self, now: dt.datetime = NOW) -> PolicyPlan:
        """Plan, write, and let the operator decide."""
        made = self.plan(now)
        self.apply(made)
        self.decide()
        return made

    def settle(self, now: dt.datetime = NOW) -> list[PolicyPlan]:
        """Plan and write until there is nothing to write."""
        plans = []
        for _ in range(100):
            plans.append(self.step(now))
            if not plans[-1].changes and not plans[-1].statuses:
                return plans
        raise AssertionError(f"does not come to rest: {plans[-1]}")

    def apply(self, made: PolicyPlan) -> None:
        """Apply a plan as the API server does."""
        counted = dict(self.removed)
        for change in made.changes:
            key = (change.namespace, change.name)
            if change.removed_by is not None:
                self.removed[change.removed_by] = self.removed.get(change.removed_by, 0) + 1
            self.version += 1
            stamps = {"resourceVersion": str(self.version), "uid": f"uid-{self.version}", "generation": 1}
            if change.action == "create":
                assert key not in self.hvpas
                body = change.body
                self.hvpas[key] = {**body, "metadata": {**body["metadata"], **stamps}}
                continue
            present = self.hvpas[key]["metadata"]
            if change.action == "delete":
                assert (change.uid, change.resource_version) == (present["uid"], present["resourceVersion"])
                del self.hvpas[key]
                continue
            known = change.body["metadata"]
            assert (known["uid"], known["resourceVersion"]) == (present["uid"], present["resourceVersion"])
            patched = build.merged(self.hvpas[key], change.body)
            generation = present["generation"] + (patched["spec"] != self.hvpas[key]["spec"])
            patched["metadata"] |= {"resourceVersion": str(self.version), "generation": generation}
            self.hvpas[key] = patched
        for policy_key, status in made.statuses.items():
            self._write_status(policy_key, status.model_dump(by_alias=True, mode="json"))
            self.removed[policy_key] = self.removed.get(policy_key, 0) - counted.get(policy_key, 0)

    def decide(self) -> None:
        """The operator decides about every Hvpa with its present spec."""
        for document in self.hvpas.values():
            ready = {"type": "Ready", "status": "True"}
            generation = document["metadata"].get("generation", 1)
            document["status"] = {"conditions": [{**ready, "observedGeneration": generation}]}

    def edit(self, name: str, change: Json, namespace: str = "default") -> None:
        """Somebody changes an Hvpa."""
        self.version += 1
        changed = build.merged(self.hvpas[namespace, name], change)
        changed["metadata"]["resourceVersion"] = str(self.version)
        self.hvpas[namespace, name] = changed

    def write(self, name: str, target: str, namespace: str = "default", kind: str = "Deployment") -> None:
        """Somebody writes an Hvpa."""
        self.version += 1
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{self.version}",
            "resourceVersion": str(self.version),
        }
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": target}
        self.hvpas[namespace, name] = {"metadata": metadata, "spec": {"targetRef": reference}}

    def replace(self, changed: PolicyObject) -> None:
        """Somebody changes a policy; its status stays, and its generation grows."""
        old = next(each for each in self.policies if each.key == changed.key)
        metadata = structs.replace(changed.metadata, generation=old.metadata.generation + 1)
        others = [each for each in self.policies if each.key != changed.key]
        self.policies = [
            *others,
            PolicyObject(changed.kind, metadata, changed.spec, changed.problems, old.status),
        ]

    def condition(self, kind: str = "Ready", name: str = "team") -> tuple[str, str, str]:
        """Status, reason and message of a policy's condition."""
        (found,) = [
            condition
            for each in self.policies
            if each.metadata.name == name
            for condition in each.status.conditions
            if condition.type == kind
        ]
        return found.status, found.reason, found.message

    def modes(self) -> dict[str, str]:
        """The mode of each Hvpa that a policy made, by namespace and name."""
        return {
            f"{namespace}/{name}": document["spec"]["mode"]
            for (namespace, name), document in sorted(self.hvpas.items())
            if document["metadata"].get("ownerReferences")
        }

    def _write_status(self, key: PolicyKey, status: Json) -> None:
        for index, each in enumerate(self.policies):
            if each.key == key:
                raw = RawHvpa(each.metadata, msgspec.Raw(b"{}"), msgspec.Raw(msgspec.json.encode(status)))
                self.policies[index] = PolicyObject(
                    each.kind, each.metadata, each.spec, each.problems, read_policy(each.kind, raw).status
                )

    def _present(self, document: Json) -> PresentHvpa:
        raw = build.decoded(RawHvpa, document)
        reference = document["spec"]["targetRef"]
        target = Target(
            raw.metadata.namespace, kind_key(reference["apiVersion"], reference["kind"]), reference["name"]
        )
        return PresentHvpa(raw.metadata, target, lambda: read_hvpa(raw))


def later(**offset: float) -> dt.datetime:
    """NOW plus an offset."""
    return at(**offset)
