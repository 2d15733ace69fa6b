"""The configuration and the initial objects of a test control plane: the audit policy, KWOK's behaviour, nodes, and the
access to metrics-server through the API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from localcluster.client.audit import BEGUN, WRITE_VERBS
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.programs.build import Programs

Json = dict[str, Any]

KUBELET = Path(__file__).parent / "kubelet.yaml"

CPU_ANNOTATION = "kwok.x-k8s.io/usage-cpu"
MEMORY_ANNOTATION = "kwok.x-k8s.io/usage-memory"
# Usage of the program `load` in a container of a real node that has it as a file: `cpu=400 memory=50`, in millicores
# and MiB.
USAGE_ANNOTATION = "hvpa.test/usage"
# On a pod (or a pod template): the time from its creation until it is ready (in seconds: `30s`).
START_UP_ANNOTATION = "hvpa.test/start-up"
# Likewise: the time from a resize request until the resize, or a resize that fails (`Deferred`, `Infeasible`, `Error`,
# `Silent`). With `Enforced`, the pod loses containers that use more memory than their limit. See kubelet.yaml.
RESIZE_ANNOTATION = "hvpa.test/resize-delay"
IN_VAIN_ANNOTATION = "hvpa.test/resize"
MEMORY_LIMIT_ANNOTATION = "hvpa.test/memory-limit"
# On a pod: the page cache of each container that counts as usage when its memory limit is lowered.
PAGE_CACHE_ANNOTATION = "hvpa.test/page-cache"
# On a pod: the time from its start in which it has no metrics, in seconds (`10s`).
LATE_METRICS_ANNOTATION = "hvpa.test/late-metrics"

# The users of the control plane's own programs (client certificates of `controlplane.py`).
COMPONENT_USERS = (
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "kwok",
    "metrics-server",
    "vpa-recommender",
)

# The age that each container reports, at every scrape; see `kwok_config`.
_CLAIMED_AGE_SECONDS = 10.9


def audit_policy() -> str:
    """Every request except the reads of the control plane's own programs. For writes also their arrival; with bodies
    for writes to HVPA's kinds of objects, and to Leases."""
    governed = [
        {"group": "apps"},
        {"group": "autoscaling"},
        {"group": "autoscaling.k8s.io"},
        {"group": "coordination.k8s.io"},
    ]
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [
            {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*", "/openapi*"]},
            {
                "level": "None",
                "users": [*COMPONENT_USERS, "system:apiserver"],
                "verbs": ["get", "list", "watch"],
            },
            {
                "level": "None",
                "userGroups": ["system:serviceaccounts:kube-system"],
                "verbs": ["get", "list", "watch"],
            },
            {"level": "Request", "verbs": ["create", "update", "patch"], "resources": governed},
            {"level": "Metadata", "verbs": sorted(WRITE_VERBS)},
            {"level": "Metadata", "omitStages": [BEGUN]},
        ],
    }
    return yaml.safe_dump(policy)


def kwok_config(programs: Programs) -> str:
    """KWOK's stages and metrics as a file, so that none of its CRDs is needed.

    The pod's annotations set a container's usage: `kwok.x-k8s.io/usage-cpu.NAME` for the container NAME, else
    `kwok.x-k8s.io/usage-cpu` (for each container), else 1m; memory likewise, else 1Mi.

    metrics-server calculates CPU usage from two points of a counter. The counters here report at each scrape that the
    container started 10.9 s ago without usage, and metrics-server uses that start as the first point. It does so for
    containers that are 10 s old when it sends the request, which may be some time before the response, but younger than
    its resolution, which is therefore 11 s. So a pod has metrics from its first scrape on, and each scrape shows the
    current usage; KWOK's own counters need three scrapes. The counter is one percent too low, to compensate for the
    time between the scrape's time and this evaluation, a tenth of a second on a busy machine: an HPA that rounds up
    must not see 402m for a usage of 400m. If a pod's annotation delays its metrics, its containers report until then
    that they have just started.
    """
    stages = [
        yaml.safe_load(programs.shared[f"stage-{name}.yaml"].read_text())
        for name in ("node-initialize", "pod-ready", "pod-complete", "pod-delete")
    ]
    ready = next(stage for stage in stages if stage["metadata"]["name"] == "pod-ready")["spec"]
    ready["delay"] = {
        "durationMilliseconds": 0,
        # A time, not a duration: KWOK restarts a duration with each write to the pod, such as a resize.
        "durationFrom": {
            "expressionFrom": f'(.metadata.annotations["{START_UP_ANNOTATION}"] | rtrimstr("s") | tonumber)'
            " + (.metadata.creationTimestamp | fromdate) | todate"
        },
    }
    started = "- image: {{ .image | Quote }}\n"
    template = ready["next"]["statusTemplate"]
    assert template.count(started) == 2, "stage-pod-ready.yaml of KWOK has changed"
    # The container's resources: without them the API server considers the node unable to resize.
    has = (
        "  resources: {{ .resources | default dict | toJson }}\n"
        '  allocatedResources: {{ .resources | default dict | dig "requests" dict | toJson }}\n'
    )
    ready["next"]["statusTemplate"] = template.replace(started, f"{started}{has}")
    resizes = yaml.safe_load_all(KUBELET.read_text())
    return yaml.safe_dump_all([*stages, *resizes, _usage(), _metric()])


def _usage() -> Json:
    def expression(annotation: str, otherwise: str) -> Json:
        there = "pod.metadata.annotations"
        own, shared = f'"{annotation}." + container.name', f'"{annotation}"'
        first = f"{own} in {there} ? Quantity({there}[{own}])"
        second = f"{shared} in {there} ? Quantity({there}[{shared}])"
        return {"expression": f'{first} : {second} : Quantity("{otherwise}")'}

    usage = {"cpu": expression(CPU_ANNOTATION, "1m"), "memory": expression(MEMORY_ANNOTATION, "1Mi")}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterResourceUsage",
        "metadata": {"name": "usage-from-annotation"},
        "spec": {"usages": [{"usage": usage}]},
    }


def _metric() -> Json:
    labels = [
        {"name": "container", "value": "container.name"},
        {"name": "namespace", "value": "pod.metadata.namespace"},
        {"name": "pod", "value": "pod.metadata.name"},
    ]
    factor = _CLAIMED_AGE_SECONDS * 0.99
    annotations, late = "pod.metadata.annotations", f'"{LATE_METRICS_ANNOTATION}"'
    is_late = (
        f"{late} in {annotations} && pod.SinceSecond() < double(duration({annotations}[{late}]).getSeconds())"
    )

    def metric(name: str, dimension: str, kind: str, value: str) -> Json:
        entry = {"name": name, "help": name, "dimension": dimension, "kind": kind, "value": value}
        return entry | ({"labels": labels} if dimension == "container" else {})

    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Metric",
        "metadata": {"name": "metrics-resource"},
        "spec": {
            "path": "/metrics/nodes/{nodeName}/metrics/resource",
            "metrics": [
                metric(
                    "container_start_time_seconds",
                    "container",
                    "gauge",
                    f"UnixSecond(Now()) - ({is_late} ? 1.0 : {_CLAIMED_AGE_SECONDS})",
                ),
                metric(
                    "container_cpu_usage_seconds_total",
                    "container",
                    "gauge",
                    f'pod.Usage("cpu", container.name) * {factor}',
                ),
                metric(
                    "container_memory_working_set_bytes",
                    "container",
                    "gauge",
                    'pod.Usage("memory", container.name)',
                ),
                metric("node_cpu_usage_seconds_total", "node", "counter", 'node.CumulativeUsage("cpu")'),
                metric("node_memory_working_set_bytes", "node", "gauge", 'node.Usage("memory")'),
            ],
        },
    }


def node(name: str, settings: AutoscalerSettings) -> Json:
    """A node on loopback; KWOK makes it ready and adds the port of its kubelet."""
    size = {"cpu": settings.node_cpu, "memory": settings.node_memory, "pods": settings.node_pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": {
                "kwok.x-k8s.io/node": "fake",
                "metrics.k8s.io/resource-metrics-path": f"/metrics/nodes/{name}/metrics/resource",
            },
        },
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "localhost"},
                {"type": "InternalIP", "address": "127.0.0.1"},
            ],
            "allocatable": size,
            "capacity": size,
        },
    }


def metrics_api(port: int) -> list[Json]:
    """The metrics API behind the API server."""
    return aggregated_api("metrics-server", "metrics.k8s.io", "v1beta1", port)


def aggregated_api(name: str, group: str, version: str, port: int) -> list[Json]:
    """An API behind the API server: an ExternalName service leads the aggregator to a port on loopback."""
    service = {"name": name, "namespace": "kube-system"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": service,
            "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{version}.{group}"},
            "spec": {
                "service": service | {"port": port},
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
            },
        },
    ]
