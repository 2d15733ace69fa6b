"""A view of a scenario, and waiting for its states: the workload, the Hvpa, its status, conditions and Events."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.client.audit import Audit, Mark
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import time_of

LAST_APPLIED = "hvpa.autoscaling.k8s.io/last-applied"
TIMEOUT = 90.0
"""Seconds to wait for effects that take milliseconds on an idle machine."""
FIRST_LOOK = 0.01
"""Seconds until the second look."""
Value = TypeVar("Value")


class Version(NamedTuple):
    """A workload's spec at a time: replicas, and the requests of each in millicores and bytes."""

    replicas: int
    cpu: int
    memory: int

    @property
    def total(self) -> int:
        """The millicores of all replicas."""
        return self.replicas * self.cpu


class WorkloadView:
    """A workload and the Hvpa of the same name, as they are now."""

    def __init__(self, api: KubeApi, namespace: str, name: str, kind: str) -> None:
        """`kind` is the workload's kind."""
        self.api = api
        self.namespace = namespace
        self.name = name
        self.kind = kind

    # --- what is to be seen ------------------------------------------------------------------------------------------
    @property
    def target(self) -> Json:
        """The workload as it is now."""
        return self.api.get(self.kind, self.name, self.namespace)

    @property
    def hvpa(self) -> Json:
        """The Hvpa as it is now."""
        return self.api.get("Hvpa", self.name, self.namespace)

    @property
    def hpa(self) -> Json:
        """The HPA of the Hvpa's name."""
        return self.api.get("HorizontalPodAutoscaler", self.name, self.namespace)

    @property
    def vpa(self) -> Json:
        """The VPA of the Hvpa's name."""
        return self.api.get("VerticalPodAutoscaler", self.name, self.namespace)

    @property
    def status(self) -> Json:
        """The Hvpa's status."""
        status: Json = self.hvpa.get("status", {})
        return status

    @property
    def replicas(self) -> int:
        """The workload's replicas."""
        return int(self.target["spec"]["replicas"])

    def resources(self, container: str = "app") -> Json:
        """The resources of a container in the workload's template."""
        containers = self.target["spec"]["template"]["spec"]["containers"]
        resources: Json = next(entry for entry in containers if entry["name"] == container).get(
            "resources", {}
        )
        return resources

    @property
    def requests(self) -> Json:
        """The requests of the container `app`."""
        requests: Json = self.resources().get("requests", {})
        return requests

    @property
    def record(self) -> Json:
        """The annotation that the operator writes to the workload with each step."""
        record: Json = json.loads(self.target["metadata"]["annotations"][LAST_APPLIED])
        return record

    def versions(self, audit: Audit) -> list[Version]:
        """The versions of the workload's spec from its creation to now, an entry for each write, from the API server's
        audit log."""
        resource = f"{self.kind.lower()}s"
        versions = [Version(1, 0, 0)]
        for request in audit.requests(
            resource=resource, namespace=self.namespace, name=self.name, writes=True
        ):
            spec = (request.body or {}).get("spec")
            if not spec or request.subresource or request.code >= 300:
                continue
            containers = spec.get("template", {}).get("spec", {}).get("containers", [{}])
            requests = containers[0].get("resources", {}).get("requests", {})
            before = versions[-1]
            versions.append(
                Version(
                    spec.get("replicas", before.replicas),
                    parse_cpu(requests["cpu"]) if "cpu" in requests else before.cpu,
                    parse_memory(requests["memory"]) if "memory" in requests else before.memory,
                )
            )
        return versions[1:]

    def patches(self, audit: Audit, user: str, since: Mark | None = None) -> list[Json]:
        """The spec in each accepted patch of the workload by this user, in order."""
        plural = f"{self.kind.lower()}s"
        requests = audit.requests(since, user=user, resource=plural, namespace=self.namespace, code=200)
        accepted = [request for request in requests if request.verb == "patch" and request.name == self.name]
        return [(request.body or {}).get("spec", {}) for request in accepted]

    def recommends(self, replicas: int, **requests: str) -> bool:
        """Whether the status recommends these replicas, and for the first container these requests."""
        recommended_size = self.status["recommended"]
        recommended: dict[str, str] = recommended_size["containers"][0]["requests"] if requests else {}
        return bool(recommended_size["replicas"] == replicas and requests.items() <= recommended.items())

    def last_scale_time(self, axis: str) -> dt.datetime:
        """The time of the operator's last change of the workload on this axis."""
        return time_of(self.record[axis]["lastScaleTime"])

    def condition(self, kind: str) -> Json:
        """A condition of the Hvpa; empty if there is none."""
        return next((entry for entry in self.status.get("conditions", []) if entry["type"] == kind), {})

    def events(self, reason: str | None = None) -> list[Json]:
        """The Events on the Hvpa."""
        return [
            event
            for event in self.api.list("Event", self.namespace)
            if event["involvedObject"]["name"] == self.name
            and event["involvedObject"]["kind"] == "Hvpa"
            and reason in (None, event["reason"])
        ]

    # --- waiting -----------------------------------------------------------------------------------------------------
    def soon(self, predicate: Callable[[], Value], expected: str, timeout: float = TIMEOUT) -> Value:
        """Wait until the predicate holds; if it does not, the error contains the state of the Hvpa."""
        return wait_for(
            predicate, timeout, lambda: f"{expected} for {self.name}; {self._described()}", FIRST_LOOK
        )

    def await_replicas(self, count: int, timeout: float = TIMEOUT) -> None:
        """Wait until the workload has this number of replicas."""
        self.soon(lambda: self.replicas == count, f"{count} replicas", timeout)

    def await_requests(self, timeout: float = TIMEOUT, container: str = "app", **requests: str) -> None:
        """Wait until a container has these requests."""
        self.soon(
            lambda: requests.items() <= self.resources(container).get("requests", {}).items(),
            f"requests {requests}",
            timeout,
        )

    def await_condition(self, kind: str, status: str, reason: str, timeout: float = TIMEOUT) -> Json:
        """Wait until a condition has this status and reason."""

        def reported() -> Json | None:
            now = self.condition(kind)
            return now if (now.get("status"), now.get("reason")) == (status, reason) else None

        return self.soon(reported, f"condition {kind}={status}/{reason}", timeout) or {}

    def await_ready(self) -> Json:
        """Wait until `Ready` is True, whatever the reason."""

        def ready() -> Json | None:
            now = self.condition("Ready")
            return now if now.get("status") == "True" else None

        return self.soon(ready, "condition Ready=True") or {}

    def await_reason_gone(self, reason: str) -> None:
        """Wait until `Ready` has another reason."""
        self.soon(lambda: self.condition("Ready").get("reason", reason) != reason, f"Ready without {reason}")

    def await_event(self, reason: str, text: str = "", timeout: float = TIMEOUT) -> Json:
        """Wait for an Event on the Hvpa whose message contains a text."""
        events = self.soon(
            lambda: [event for event in self.events(reason) if text in event["message"]],
            f"event {reason} {text!r}",
            timeout,
        )
        return events[0]

    def blocked(self, reason: str, axis: str | None = None, direction: str | None = None) -> Json | None:
        """The entry of `lastBlockedScaling` with this reason, if there is one."""
        for entry in self.status.get("lastBlockedScaling", []):
            if (
                entry["reason"] == reason
                and axis in (None, entry["axis"])
                and direction in (None, entry["direction"])
            ):
                matching: Json = entry
                return matching
        return None

    def await_blocked(self, reason: str, axis: str, direction: str = "up", timeout: float = TIMEOUT) -> Json:
        """Wait until the status reports that this axis is blocked for this reason."""
        return (
            self.soon(
                lambda: self.blocked(reason, axis, direction), f"{axis} {direction} held by {reason}", timeout
            )
            or {}
        )

    @contextlib.contextmanager
    def held(
        self, operator: Operator, reason: str, axis: str, direction: str = "up", *, idle: bool = True
    ) -> Iterator[None]:
        """Inside this block a requested change is held back, and everything reports it: the status's entry and
        condition, an Event, the metric. With `idle`, the operator does not write to the workload at all."""
        labels = {"reason": reason, "axis": axis, "direction": direction}
        before = operator.metric("hvpa_scalings_blocked_total", **labels)
        generation = self.target["metadata"]["generation"]
        yield
        self.await_blocked(reason, axis, direction)
        reported = self.soon(
            lambda: (now := self.condition("ScalingBlocked"))["status"] == "True" and now, "ScalingBlocked"
        )
        assert f"held by {reason}" in reported["message"]
        self.await_event("ScalingBlocked", f"held by {reason}")
        assert operator.metric("hvpa_scalings_blocked_total", **labels) > before
        if idle:
            assert self.target["metadata"]["generation"] == generation

    def await_unblocked(self) -> None:
        """Wait until nothing is held back."""
        self.await_condition("ScalingBlocked", "False", "NotBlocked")
        assert "lastBlockedScaling" not in self.status

    def settled(self) -> None:
        """Wait until the operator has seen the present spec and reported so."""

        def reported() -> bool:
            now = self.hvpa
            conditions = now["status"]["conditions"]
            return all(entry["observedGeneration"] == now["metadata"]["generation"] for entry in conditions)

        self.soon(reported, "a settled status")

    def _described(self) -> str:
        try:
            return f"status: {json.dumps(self.hvpa.get('status'))}"
        except (ApiError, OSError) as error:
            return str(error)
