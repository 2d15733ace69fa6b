"""A small cluster for `spec.runtimes`: a decision per tick, whose resizes succeed at once, and whose
template patches replace all pods at once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

from builders.build import NOW, container, decided, hvpa, merged, objects, stamp, vpa, with_status, workload
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Decision
from tests.unit.core.actuation.sized_pods import running

JAVA: Final = {"runtimes": [{"container": "app", "kind": "Java"}]}


class Cluster:
    """Pods of one container `app`, whose Hvpa has a VPA alone."""

    def __init__(
        self,
        pods: int,
        spec: Mapping[str, Any],
        target: Mapping[str, str],
        present: Mapping[str, Any] | None = None,
        status: Mapping[str, Any] | None = None,
        creates: bool = True,
    ) -> None:
        usual = {"hpa": {"deploy": False}, "weightBasedScalingIntervals": [{"vpaWeight": 100}]}
        self.hvpa = hvpa(merged(usual, spec), status or {})
        self.target = target
        self.template: dict[str, Any] = dict(present or container())
        self.generation, self.rollouts, self.now = 1, 0, NOW
        self.creates = creates
        """Whether new pods get the size of the policy (their entry)."""
        self.entry = ""
        self.pods: dict[str, dict[str, Any]] = {}
        self.serial = 0
        self.last: Decision | None = None
        for _ in range(pods):
            self.create()

    def create(self) -> str:
        self.serial += 1
        name = f"web-{self.serial}"
        self.pods[name] = {"resources": self.template["resources"], "status": {}}
        return name

    def oom(self, name: str, restart: bool = True) -> None:
        end = {"reason": "OOMKilled", "finishedAt": stamp(self.now)}
        self.pods[name]["status"] = {"lastState": {"terminated": end}}

    def memory(self, name: str) -> str:
        memory: str = self.pods[name]["resources"]["requests"]["memory"]
        return memory

    def observed(self) -> list[Pod]:
        return [
            running(
                name,
                known["resources"]["requests"],
                limits=known["resources"].get("limits"),
                status=known["status"],
                more={key: value for key, value in self.template.items() if key == "resizePolicy"},
            )
            for name, known in self.pods.items()
        ]

    def tick(self, minutes: float = 1.0, **rest: Any) -> Decision:
        self.now += dt.timedelta(minutes=minutes)
        target = workload(
            len(self.pods),
            [self.template],
            {"metadata": {"generation": self.generation}, "status": {"observedGeneration": self.generation}},
        )
        found = objects(self.hvpa, target, None, vpa({"app": self.target}), self.observed(), **rest)
        decision = decided(found, self.now)
        self.hvpa = with_status(self.hvpa, decision.status)
        for resize in decision.resizes:
            body: Any = resize.body
            (entry,) = body["spec"]["containers"]
            known = self.pods[resize.pod]
            known["resources"] = merged(known["resources"], entry["resources"])
        if decision.workload_patch is not None:
            spec: Any = decision.workload_patch.body["spec"]
            self.generation += 1
            if "template" in spec:
                (entry,) = spec["template"]["spec"]["containers"]
                self.template = merged(self.template, {"resources": entry["resources"]})
                self.rollout()
        self.last = decision
        return decision

    def rollout(self) -> None:
        self.rollouts += 1
        for name in list(self.pods):
            del self.pods[name]
            self.create()

    def desired(self) -> Mapping[str, Mapping[str, str]]:
        desired = self.hvpa.status.desired
        (entry,) = () if desired is None else desired.containers
        return {"requests": dict(entry.requests), "limits": dict(entry.limits)}


def many(cluster: Cluster, ticks: int, minutes: float = 1.0) -> Sequence[Decision]:
    return [cluster.tick(minutes) for _ in range(ticks)]
