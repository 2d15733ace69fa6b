"""One workload with its Hvpa on a bare API server, and the parts that a test plays there by writing statuses: the HPA
controller, the VPA recommender, the Deployment controller and the kubelet."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tests.e2e.world.kube import ApiError, Json, KubeApi, wait_for
from tests.e2e.world.operator import Operator

LAST_APPLIED = "hvpa.autoscaling.k8s.io/last-applied"
PATIENCE = 30.0
"""Seconds to wait for what takes milliseconds on an idle machine."""
LOOK = 0.03
"""Seconds between two looks."""
Value = TypeVar("Value")
_numbers = itertools.count(1)

AT_ONCE: Json = {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1k"}}}
"""Any change of requests is large enough."""


def merged(base: Json, changes: Json) -> Json:
    """`base` with `changes` merged into it as a JSON merge patch would."""
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def new_namespace(api: KubeApi, prefix: str = "stage") -> str:
    """Make a namespace. It is never deleted: the API server takes nothing new in one that is going, and the world
    goes as a whole."""
    name = str(api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{prefix}-"}})[
        "metadata"
    ]["name"])
    return name


def deployment(name: str, namespace: str, replicas: int = 2, kind: str = "Deployment") -> Json:
    """A workload of one container `app` that requests 500m and 500M, with limits of twice as much."""
    resources = {
        "requests": {"cpu": "500m", "memory": "500M"},
        "limits": {"cpu": "1", "memory": "1G"},
    }
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "app", "image": "app", "resources": resources}]},
        },
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def hvpa(name: str, namespace: str, changes: Json | None = None, kind: str = "Deployment") -> Json:
    """An Hvpa that owns HPA (1 to 10 replicas, on CPU) and VPA; without intervals, so all is horizontal. `changes` are
    merged into its spec."""
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    metrics[0]["resource"]["target"]["averageUtilization"] = 100  # type: ignore[index]
    labels = {"hvpa": name}
    spec: Json = {
        "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
        "hpa": {
            "deploy": True,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"minReplicas": 1, "maxReplicas": 10, "metrics": metrics},
            },
        },
        "vpa": {
            "deploy": True,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}},
            "scaleUp": AT_ONCE,
            "scaleDown": AT_ONCE,
        },
    }
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": name, "namespace": namespace},
        "spec": merged(spec, changes or {}),
    }


def weight(percent: float) -> Json:
    """A change of an Hvpa's spec: one interval of this vertical weight for all counts."""
    return {"weightBasedScalingIntervals": [{"vpaWeight": percent}]}


VERTICAL_ONLY: Json = {"hpa": None}
"""A change of an Hvpa's spec: no HPA, so all is vertical."""
HORIZONTAL_ONLY: Json = {"vpa": None}
"""A change of an Hvpa's spec: no VPA."""


def rfc3339(when: dt.datetime) -> str:
    """A time as Kubernetes writes it."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(**age: float) -> str:
    """A time in the past, such as `ago(hours=2)`."""
    return rfc3339(dt.datetime.now(dt.UTC) - dt.timedelta(**age))


def time_of(text: str) -> dt.datetime:
    """What a Kubernetes timestamp means."""
    return dt.datetime.fromisoformat(text)


class Stage:
    """A workload and an Hvpa of the same name."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        name: str | None = None,
        *,
        kind: str = "Deployment",
        replicas: int = 2,
        changes: Json | None = None,
    ) -> None:
        """Nothing is created yet; `workload` and `manifest` may be changed before `create`."""
        self.api = api
        self.namespace = namespace
        self.name = name or f"app-{next(_numbers)}"
        self.kind = kind
        self.workload = deployment(self.name, namespace, replicas, kind)
        self.manifest = hvpa(self.name, namespace, changes, kind)

    # --- what the user does ------------------------------------------------------------------------------------------
    def create(self, *, wait: bool = True) -> Stage:
        """Create workload and Hvpa; wait until the operator has made the HPA and VPA that the Hvpa deploys."""
        self.api.create(self.workload)
        self.rollout_completes()
        self.api.create(self.manifest)
        if wait:
            self.await_owned()
        return self

    def await_owned(self) -> None:
        """Wait for the HPA and VPA that the Hvpa deploys."""
        for part, kind in (("hpa", "HorizontalPodAutoscaler"), ("vpa", "VerticalPodAutoscaler")):
            if self.manifest["spec"].get(part, {}).get("deploy"):
                self.soon(lambda kind=kind: self.api.find(kind, self.name, self.namespace), f"a {kind}")

    def change(self, spec: Json) -> None:
        """Merge into the Hvpa's spec."""
        self.api.patch("Hvpa", self.name, self.namespace, {"spec": spec})

    def change_workload(self, spec: Json, manager: str = "somebody") -> Json:
        """Merge into the workload's spec, as somebody else (containers by name)."""
        body = {"spec": spec}
        return self.api.patch(self.kind, self.name, self.namespace, body, type="strategic", manager=manager)

    def set_requests(self, manager: str = "somebody", **requests: str) -> Json:
        """Set requests of the container `app`, as somebody else."""
        container = {"name": "app", "resources": {"requests": requests}}
        return self.change_workload({"template": {"spec": {"containers": [container]}}}, manager)

    def delete(self) -> None:
        """Delete the Hvpa."""
        self.api.delete("Hvpa", self.name, self.namespace)

    # --- what controllers do -----------------------------------------------------------------------------------------
    def hpa_wants(self, replicas: int, *, name: str | None = None, **status: Any) -> None:
        """The HPA controller: measure what calls for so many replicas, put the wish into the Hvpa by its scale
        subresource, and tell it in the HPA's status. Ends further fields of the status."""
        workload = self.target
        present = workload["spec"]["replicas"]
        counted = workload.get("status", {}).get("readyReplicas") or present
        measured = 100 if replicas == present else 100 * replicas // counted
        current = {"averageUtilization": measured, "averageValue": f"{5 * measured}m"}
        if self.hvpa["spec"].get("replicas") != replicas:
            body = {"spec": {"replicas": replicas}}
            self.api.patch("Hvpa", self.name, self.namespace, body, subresource="scale", manager="hpa")
        told: Json = {
            "currentReplicas": present,
            "desiredReplicas": replicas,
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
            "conditions": [condition("ScalingActive", "True", "ValidMetricFound")],
        }
        self.api.patch_status(
            "HorizontalPodAutoscaler", name or self.name, self.namespace, merged(told, status)
        )

    def vpa_recommends(
        self,
        *,
        container: str = "app",
        name: str | None = None,
        since: str | None = None,
        others: Json | None = None,
        **target: str,
    ) -> None:
        """The VPA recommender: recommend for one container (and `others`: container to target), as it has done
        `since` (two hours ago)."""
        told = [entry(one, wanted) for one, wanted in {container: target, **(others or {})}.items()]
        provided = condition("RecommendationProvided", "True", "", since or ago(hours=2))
        status = {"conditions": [provided], "recommendation": {"containerRecommendations": told}}
        self.api.patch_status("VerticalPodAutoscaler", name or self.name, self.namespace, status)

    def rollout_completes(self) -> None:
        """The workload's controller: all pods are of the present template and available."""
        self.rollout(complete=True)

    def rollout(self, *, complete: bool) -> None:
        """The workload's controller has seen the present template; the pods are updated and available, or not yet."""
        workload = self.target
        count = workload["spec"]["replicas"]
        status: Json = {
            "observedGeneration": workload["metadata"]["generation"],
            "replicas": count,
            "updatedReplicas": count if complete else 0,
            "readyReplicas": count,
            "availableReplicas": count,
        }
        self.api.patch_status(self.kind, self.name, self.namespace, status)

    def pod(self, name: str, *, container_status: Json | None = None, **status: Any) -> str:
        """The kubelet: a pod that runs the template as it is now, with this status of its container `app`."""
        template = self.target["spec"]["template"]
        metadata = {"name": f"{self.name}-{name}", "namespace": self.namespace}
        metadata["labels"] = template["metadata"]["labels"]
        spec = merged(template["spec"], {"nodeName": "node"})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made = str(self.api.create(pod)["metadata"]["name"])
        told: Json = {"phase": "Running", "startTime": ago(), **status}
        if container_status is not None:
            base = {"name": "app", "image": "app", "imageID": "", "ready": True, "restartCount": 1}
            told["containerStatuses"] = [merged(base, container_status)]
        self.api.patch_status("Pod", made, self.namespace, told)
        return made

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
        """The resources of one container in the workload's template."""
        containers = self.target["spec"]["template"]["spec"]["containers"]
        found: Json = next(one for one in containers if one["name"] == container).get("resources", {})
        return found

    @property
    def requests(self) -> Json:
        """The requests of the container `app`."""
        requests: Json = self.resources().get("requests", {})
        return requests

    @property
    def record(self) -> Json:
        """The annotation that the operator leaves on the workload with each step."""
        record: Json = json.loads(self.target["metadata"]["annotations"][LAST_APPLIED])
        return record

    def last_scale_time(self, axis: str) -> dt.datetime:
        """When the operator last changed the workload on this axis."""
        return time_of(self.record[axis]["lastScaleTime"])

    def condition(self, kind: str) -> Json:
        """One condition of the Hvpa; empty where there is none."""
        return next((one for one in self.status.get("conditions", []) if one["type"] == kind), {})

    def events(self, reason: str | None = None) -> list[Json]:
        """The Events on the Hvpa."""
        return [
            one
            for one in self.api.list("Event", self.namespace)
            if one["involvedObject"]["name"] == self.name
            and one["involvedObject"]["kind"] == "Hvpa"
            and reason in (None, one["reason"])
        ]

    # --- waiting -----------------------------------------------------------------------------------------------------
    def soon(self, predicate: Callable[[], Value], what: str, timeout: float = PATIENCE) -> Value:
        """Wait until something is so; says how the Hvpa stands where it does not come."""
        return wait_for(predicate, timeout, lambda: f"{what} for {self.name}; {self._told()}", LOOK)

    def await_replicas(self, count: int, timeout: float = PATIENCE) -> None:
        """Wait until the workload has so many replicas."""
        self.soon(lambda: self.replicas == count, f"{count} replicas", timeout)

    def await_requests(self, timeout: float = PATIENCE, container: str = "app", **requests: str) -> None:
        """Wait until a container has these requests."""
        self.soon(
            lambda: requests.items() <= self.resources(container).get("requests", {}).items(),
            f"requests {requests}",
            timeout,
        )

    def await_condition(self, kind: str, status: str, reason: str, timeout: float = PATIENCE) -> Json:
        """Wait until a condition has this status and reason."""

        def told() -> Json | None:
            now = self.condition(kind)
            return now if (now.get("status"), now.get("reason")) == (status, reason) else None

        return self.soon(told, f"condition {kind}={status}/{reason}", timeout) or {}

    def await_event(self, reason: str, text: str = "", timeout: float = PATIENCE) -> Json:
        """Wait for an Event on the Hvpa whose message holds a text."""
        found = self.soon(
            lambda: [one for one in self.events(reason) if text in one["message"]],
            f"event {reason} {text!r}",
            timeout,
        )
        return found[0]

    def blocked(self, reason: str, axis: str | None = None, direction: str | None = None) -> Json | None:
        """The entry of `lastBlockedScaling` with this reason, if there is one."""
        for one in self.status.get("lastBlockedScaling", []):
            if (
                one["reason"] == reason
                and axis in (None, one["axis"])
                and direction in (None, one["direction"])
            ):
                found: Json = one
                return found
        return None

    def await_blocked(self, reason: str, axis: str, direction: str = "up", timeout: float = PATIENCE) -> Json:
        """Wait until the status tells that this axis is blocked so."""
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
        """What is wanted in this block is held back, and everything tells so: the status's entry and condition, an
        Event, the metric. With `idle`, the workload is not touched at all."""
        labels = {"reason": reason, "axis": axis, "direction": direction}
        before = operator.metric("hvpa_scalings_blocked_total", **labels)
        generation = self.target["metadata"]["generation"]
        yield
        self.await_blocked(reason, axis, direction)
        told = self.soon(
            lambda: (now := self.condition("ScalingBlocked"))["status"] == "True" and now, "ScalingBlocked"
        )
        assert f"held by {reason}" in told["message"]
        self.await_event("ScalingBlocked", f"held by {reason}")
        assert operator.metric("hvpa_scalings_blocked_total", **labels) > before
        if idle:
            assert self.target["metadata"]["generation"] == generation

    def await_unblocked(self) -> None:
        """Wait until nothing is held back."""
        self.await_condition("ScalingBlocked", "False", "NotBlocked")
        assert "lastBlockedScaling" not in self.status

    def settled(self) -> None:
        """Wait until the operator has seen the present spec and told so."""

        def told() -> bool:
            now = self.hvpa
            conditions = now["status"]["conditions"]
            return all(one["observedGeneration"] == now["metadata"]["generation"] for one in conditions)

        self.soon(told, "a settled status")

    def _told(self) -> str:
        try:
            return f"status: {json.dumps(self.hvpa.get('status'))}"
        except (ApiError, OSError) as error:
            return str(error)


def condition(kind: str, status: str, reason: str, since: str | None = None) -> Json:
    """A condition as controllers write it."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": since or ago(minutes=1),
    }


def entry(container: str, target: Json) -> Json:
    """A container's entry of a VPA recommendation."""
    return {
        "containerName": container,
        "target": target,
        "lowerBound": target,
        "upperBound": target,
        "uncappedTarget": target,
    }


def parallel(stages: list[Stage]) -> list[Stage]:
    """Create several stages, and only then wait for their HPAs and VPAs."""
    for one in stages:
        one.create(wait=False)
    for one in stages:
        one.await_owned()
    return stages
