"""A workload with its Hvpa on a bare API server, and the components whose statuses a test writes there: the HPA
controller, the VPA recommender, the Deployment controller and the kubelet."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import json
import math
import time
from functools import partial
from typing import Any

from hvpa.api.values.quantity import parse_cpu, parse_memory
from hvpa.api.values.timestamp import format_timestamp
from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.workloads.bare_manifests import ago, condition, deployment, entry, hvpa, merged, time_of
from localcluster.workloads.view import LAST_APPLIED, WorkloadView

_numbers = itertools.count(1)
SEEN = 0.15
"""Seconds in which the operator has seen a write."""


def new_namespace(api: KubeApi, prefix: str = "test") -> str:
    """Create a namespace. It is never deleted: the API server accepts nothing new in a namespace that is being deleted,
    and the cluster is deleted as a whole."""
    made = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{prefix}-"}})
    return str(made["metadata"]["name"])


class Scenario(WorkloadView):
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
        super().__init__(api, namespace, name or f"app-{next(_numbers)}", kind)
        self.workload = deployment(self.name, namespace, replicas, kind)
        self.manifest = hvpa(self.name, namespace, changes, kind)
        self.has_pods = False
        self.nodes = replicas

    # --- what the user does ------------------------------------------------------------------------------------------
    def create(self, *, wait: bool = True) -> Scenario:
        """Create workload and Hvpa; wait until the operator has created the HPA and VPA that the Hvpa deploys."""
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
                self.soon(partial(self.api.find, kind, self.name, self.namespace), f"a {kind}")

    def await_gone(self, kind: str) -> None:
        """Wait until there is no HPA or VPA of the Hvpa's name."""
        self.soon(lambda: self.api.find(kind, self.name, self.namespace) is None, f"no {kind}")

    def change(self, spec: Json) -> None:
        """Merge into the Hvpa's spec."""
        self.api.patch("Hvpa", self.name, self.namespace, {"spec": spec})

    def change_workload(self, spec: Json, manager: str = "another-client") -> Json:
        """Merge into the workload's spec, as another client (containers by name)."""
        body = {"spec": spec}
        return self.api.patch(self.kind, self.name, self.namespace, body, type="strategic", manager=manager)

    def set_requests(self, manager: str = "another-client", **requests: str) -> Json:
        """Set requests of the container `app`, as another client."""
        container = {"name": "app", "resources": {"requests": requests}}
        return self.change_workload({"template": {"spec": {"containers": [container]}}}, manager)

    def delete(self) -> None:
        """Delete the Hvpa."""
        self.api.delete("Hvpa", self.name, self.namespace)

    # --- what controllers do -----------------------------------------------------------------------------------------
    def hpa_wants(self, replicas: int, *, name: str | None = None, **status: Any) -> None:
        """The HPA controller: measure a load that requires this number of replicas, write that count to the Hvpa by its
        scale subresource, and report it in the HPA's status. `status` is merged into that."""
        reported = merged(self.hpa_status(replicas), status)
        if self.hvpa["spec"].get("replicas") != replicas:
            body = {"spec": {"replicas": replicas}}
            self.api.patch("Hvpa", self.name, self.namespace, body, subresource="scale", manager="hpa")
        self.api.patch_status("HorizontalPodAutoscaler", name or self.name, self.namespace, reported)

    def hpa_status(self, replicas: int) -> Json:
        """The status of an HPA whose measurement requires this number of replicas."""
        workload = self.target
        present = workload["spec"]["replicas"]
        counted = workload.get("status", {}).get("readyReplicas") or present or 1
        measured = 100 if replicas == present else 100 * replicas // counted
        current = {"averageUtilization": measured, "averageValue": f"{5 * measured}m"}
        return {
            "currentReplicas": present,
            "desiredReplicas": replicas,
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
            "conditions": [condition("ScalingActive", "True", "ValidMetricFound")],
        }

    def under(self, cpu: int, memory: int = 0) -> None:
        """Both recommenders under this load on all pods together (millicores, bytes)."""
        self.hpa_measures(cpu, memory)
        self.vpa_sees(cpu, memory)

    def hpa_measures(self, cpu: int, memory: int = 0) -> None:
        """The HPA controller under this load on the number of pods in the workload's spec (millicores, bytes): it
        measures the utilization of their requests, and writes the resulting count, without stabilization."""
        spec = self.manifest["spec"]["hpa"]["template"]["spec"]
        workload, loads = self.target, {"cpu": cpu, "memory": memory}
        pods, requests = workload["spec"]["replicas"], _requests(workload)
        present = self.hvpa["spec"].get("replicas") or pods
        desired_counts, reported = [], []
        for metric in spec["metrics"]:
            name = metric["resource"]["name"]
            percent = loads[name] * 100 // (pods * requests[name])
            target = metric["resource"]["target"]["averageUtilization"]
            is_tolerated = abs(percent - target) * 10 <= target
            desired_counts.append(present if is_tolerated else math.ceil(percent * pods / target))
            average = f"{loads[name] // pods}{'m' if name == 'cpu' else ''}"
            current = {"averageUtilization": percent, "averageValue": average}
            reported.append({"type": "Resource", "resource": {"name": name, "current": current}})
        desired = min(max(*desired_counts, spec["minReplicas"]), spec["maxReplicas"])
        self.hpa_wants(desired, currentMetrics=reported)

    def vpa_sees(self, cpu: int, memory: int = 0) -> None:
        """The VPA recommender under this load on all pods together (millicores, bytes): the usage of each pod."""
        ready = self.target["status"]["readyReplicas"]
        target: Json = {"cpu": f"{math.ceil(cpu / ready)}m"}
        if memory:
            target["memory"] = str(math.ceil(memory / ready))
        self.vpa_recommends(**target)

    def request(self, resource: str) -> int:
        """The request of each pod, in millicores or bytes."""
        return _requests(self.target)[resource]

    def vpa_recommends(
        self,
        *,
        container: str = "app",
        name: str | None = None,
        since: str | None = None,
        others: Json | None = None,
        **target: str,
    ) -> None:
        """The VPA recommender: recommend for a container (and `others`: container to target), as it has done since
        `since` (two hours ago)."""
        reported = [entry(name, wanted) for name, wanted in {container: target, **(others or {})}.items()]
        provided = condition("RecommendationProvided", "True", "", since or ago(hours=2))
        status = {"conditions": [provided], "recommendation": {"containerRecommendations": reported}}
        self.api.patch_status("VerticalPodAutoscaler", name or self.name, self.namespace, status)

    def scales(self) -> None:
        """The operator works: the HPA requests two more replicas, and the operator sets them."""
        wanted = self.replicas + 2
        self.hpa_wants(wanted)
        self.await_replicas(wanted)

    def vpa_is_content(self) -> None:
        """The VPA recommends the present requests, and the operator has seen that: an axis that can't be used would not
        hold back the other axis."""
        self.vpa_recommends(**self.requests)
        self.await_condition("VpaActive", "True", "Recommending")

    def rollout_completes(self) -> None:
        """The workload's controller: all pods have the present template and are available."""
        self.rollout(complete=True)

    def rollout(self, *, complete: bool) -> None:
        """The workload's controller has seen the present template; the pods are updated and available, or not yet (and
        the operator has seen that they are not, before the next rollout is requested)."""
        workload = self.target
        if self.kind == "DaemonSet":
            self._daemons(workload, complete)
            return
        count = workload["spec"]["replicas"]
        status: Json = {
            "observedGeneration": workload["metadata"]["generation"],
            "replicas": count,
            "updatedReplicas": count if complete else 0,
            "readyReplicas": count,
            "availableReplicas": count,
        }
        self.api.patch_status(self.kind, self.name, self.namespace, status)
        if not complete:
            time.sleep(SEEN)

    def _daemons(self, workload: Json, complete: bool) -> None:
        """A DaemonSet's controller, with a pod on each of `nodes` nodes."""
        names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable")
        status: Json = {
            **dict.fromkeys(names, self.nodes),
            "numberMisscheduled": 0,
            "updatedNumberScheduled": self.nodes if complete else 0,
            "observedGeneration": workload["metadata"]["generation"],
        }
        self.api.patch_status(self.kind, self.name, self.namespace, status)

    def pod(self, name: str, *, container_status: Json | None = None, **status: Any) -> str:
        """The kubelet: a pod that runs the present template, with this status of its container `app`."""
        target = self.target
        template = target["spec"]["template"]
        owner = {name: target[name] for name in ("apiVersion", "kind")}
        owner |= {name: target["metadata"][name] for name in ("name", "uid")}
        metadata: Json = {"name": f"{self.name}-{name}", "namespace": self.namespace}
        metadata["labels"] = template["metadata"]["labels"]
        metadata["ownerReferences"] = [owner | {"controller": True}]
        spec = merged(template["spec"], {"nodeName": "node"})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made = str(self.api.create(pod)["metadata"]["name"])
        reported: Json = {"phase": "Running", "startTime": ago(), **status}
        if container_status is not None:
            reported["containerStatuses"] = [_container_status(container_status)]
        self.api.patch_status("Pod", made, self.namespace, reported)
        return made

    # --- what time does ----------------------------------------------------------------------------------------------
    def later(self, **age: float) -> None:
        """As if time had passed, such as `later(days=10)`: all recorded times of the operator are that much older."""
        self._age(frozenset({"lastScaleTime", "since", "time"}), dt.timedelta(**age))

    def minutes_under(self, cpu: int, memory: int = 0) -> None:
        """Some minutes under this load on all pods together: a rollout completes, the HPA measures, and changes have
        settled; the VPA does not learn that fast. The Hvpa is paused in that time: minutes of real time take none here,
        so the operator would take a mean over the old pods for a mean over the new pods."""
        self.change({"mode": "Paused"})
        self.settled()
        if self.has_pods:
            self.replace_pods()
        self.rollout_completes()
        self.hpa_measures(cpu, memory)
        self._age(frozenset({"lastScaleTime"}), dt.timedelta(minutes=2))
        time.sleep(SEEN)
        self.change({"mode": "Apply"})
        self.settled()

    def _age(self, times: frozenset[str], age: dt.timedelta) -> None:
        if LAST_APPLIED in self.target["metadata"].get("annotations", {}):
            body = {"metadata": {"annotations": {LAST_APPLIED: json.dumps(_aged(self.record, times, age))}}}
            generation = self.api.patch(self.kind, self.name, self.namespace, body)["metadata"]["generation"]
            observed = {"observedGeneration": generation}  # it counts annotations as well
            self.api.patch_status(self.kind, self.name, self.namespace, observed)
        axes = _aged(self.status["axes"], times, age)
        self.api.patch_status("Hvpa", self.name, self.namespace, {"axes": axes})

    def arrives(self, replicas: int, cpu: int, load: int) -> None:
        """Under this load (millicores) the workload reaches this number of replicas of this CPU, minute by minute, and
        stays there. Usual demand is reported to one percent."""

        def is_there() -> bool:
            return self.replicas == replicas and abs(self.request("cpu") - cpu) <= cpu / 50

        def next_step() -> bool:
            before = self.target["spec"]
            self.minutes_under(load)
            with contextlib.suppress(TimeoutError):
                wait_for(lambda: self.target["spec"] != before, SEEN)
            return is_there()

        if not is_there():
            self.soon(next_step, f"{replicas} x {cpu}m")
        self.minutes_under(load)

    def replace_pods(self) -> None:
        """The workload's controller has replaced all pods by the same number of pods of the present template, ready for
        a minute. From now on there are pods, which `minutes_under` replaces as well."""
        self.has_pods = True
        selector = f"app={self.name}"
        for pod in self.api.list("Pod", self.namespace, selector):
            self.api.delete("Pod", pod["metadata"]["name"], self.namespace)
        for _ in range(self.replicas):
            self.pod(str(next(_numbers)), conditions=[condition("Ready", "True", "", ago(minutes=1))])


def _container_status(changes: Json) -> Json:
    return merged({"name": "app", "image": "app", "imageID": "", "ready": True, "restartCount": 1}, changes)


def _requests(workload: Json) -> dict[str, int]:
    """The requests of each pod of a workload, all containers together, in millicores and bytes."""
    totals: dict[str, int] = {"cpu": 0, "memory": 0}
    for container in workload["spec"]["template"]["spec"]["containers"]:
        requests = container["resources"].get("requests", {})
        totals["cpu"] += parse_cpu(requests.get("cpu", 0))
        totals["memory"] += parse_memory(requests.get("memory", 0))
    return totals


def _aged(record: Any, times: frozenset[str], age: dt.timedelta) -> Any:
    """The same record with these of its times moved back by `age`."""
    if isinstance(record, list):
        return [_aged(entry, times, age) for entry in record]
    if not isinstance(record, dict):
        return record
    return {
        key: format_timestamp(time_of(value) - age) if key in times else _aged(value, times, age)
        for key, value in record.items()
    }


def parallel(scenarios: list[Scenario]) -> list[Scenario]:
    """Create several scenarios, and only then wait for their HPAs and VPAs."""
    for scenario in scenarios:
        scenario.create(wait=False)
    for scenario in scenarios:
        scenario.await_owned()
    return scenarios
