"""Measures the time from the request of a resize to the container's cgroup and to the pod's status, and from a
container's OOM to a larger limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.load import is_ready
from localcluster.workloads.pods import MIB
from localcluster.workloads.real_pods import RealPods, Versions, applied, is_resized, status

SIZES: Final = ({"cpu": "300m", "memory": "96Mi"}, {"cpu": "100m", "memory": "64Mi"})
_LIMITS: Final = ({"cpu": "600m", "memory": "192Mi"}, {"cpu": "200m", "memory": "128Mi"})
_PAUSE: Final = 1.0
_LOOK: Final = 0.001
_WITHIN: Final = 60.0
_SMALL: Final = {"cpu": {"value": "20m"}, "memory": {"value": "5M"}}


@dataclass
class Resizes:
    """Seconds since just before the request."""

    answered: list[float] = field(default_factory=list)
    cgroup: list[float] = field(default_factory=list)
    status: list[float] = field(default_factory=list)


@dataclass
class OutOfMemory:
    """Seconds since the first version of the pod that reports the container's OOM."""

    limit: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    operator_cpu: float = 0.0
    """The operator's CPU usage meanwhile, in cores."""
    operator_memory: float = 0.0
    """The operator's memory in MB."""


def resizes(plane: ControlPlane, pods: RealPods, runs: int) -> Resizes:
    """Resize a pod up and down in turn."""
    measured = Resizes()
    pods.create("resized", SIZES[1], _LIMITS[1])
    with Versions(plane.kubeconfig, pods.namespace) as versions:
        for turn in range(runs):
            requests, limits = SIZES[turn % 2], _LIMITS[turn % 2]
            quota = 200 * int(
                requests["cpu"].removesuffix("m")
            )  # microseconds in 100 ms: the limit is twice the request
            changed = _when(partial(_has_quota, pods, pods.get("resized"), quota))
            began = time.time()
            pods.resize("resized", requests, limits)
            measured.answered.append(time.time() - began)

            def there(began: float = began, requests: Json = requests) -> float:
                """Return when the status had it."""
                times = [
                    at
                    for at, pod in versions.of("resized", began)
                    if is_resized(pod) and applied(pod)["requests"]["cpu"] == requests["cpu"]
                ]
                return times[0] if times else 0.0

            measured.status.append(wait_for(there, _WITHIN, "the status has the size", 0.02) - began)
            measured.cgroup.append(changed() - began)
            time.sleep(_PAUSE)
    pods.delete("resized")
    return measured


def out_of_memory(plane: ControlPlane, pods: RealPods, operator: Operator, runs: int) -> OutOfMemory:
    """Let containers with a limit of 96 MiB use 150 MiB, one after the other. Only the operator changes limits."""
    measured = OutOfMemory()
    cpu, began = cpu_seconds(operator.process.pid), time.monotonic()
    with Versions(plane.kubeconfig, pods.namespace) as versions:
        for turn in range(runs):
            app = f"leak-{turn}"
            name = _leaky(pods, app)
            grown = _when(partial(_is_beyond, pods, pods.get(name), 97 * MIB))
            since = time.time()
            pods.use(app, 20, 150)

            def ended(name: str = name, since: float = since) -> float:
                times = [at for at, pod in versions.of(name, since) if status(pod).get("restartCount")]
                return times[0] if times else 0.0

            killed = wait_for(ended, _WITHIN, "the container is killed", 0.02)
            measured.limit.append(grown() - killed)

            def again(name: str = name, killed: float = killed) -> float:
                times = [at for at, pod in versions.of(name, killed) if is_ready(pod)]
                return times[-1] if times and is_ready(pods.get(name)) else 0.0

            measured.ready.append(wait_for(again, _WITHIN, "the container is ready", 0.1) - killed)
            measured.restarts.append(status(pods.get(name))["restartCount"])
            for kind in ("Hvpa", "Deployment"):
                pods.api.delete(kind, app, pods.namespace)
    measured.operator_cpu = (cpu_seconds(operator.process.pid) - cpu) / (time.monotonic() - began)
    measured.operator_memory = resident(operator.process.pid) / 1e6
    return measured


def _leaky(pods: RealPods, app: str) -> str:
    """Create a Deployment with a single pod and an Hvpa that resizes it in place; wait until the Hvpa has read
    everything, and return the pod's name."""
    pods.use(app, 20, 40)
    workload = pods.deploy(app, {"cpu": "50m", "memory": "64Mi"}, {"memory": "96Mi"})
    vertical = {
        "deploy": True,
        "selector": {"matchLabels": {"role": "vpa"}},
        "template": {"metadata": {"labels": {"role": "vpa"}}},
        "scaleUp": {"minChange": _SMALL},
    }
    hvpa = {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": app, "namespace": pods.namespace},
        "spec": {
            "targetRef": samples.target_of(workload),
            "updateStrategy": {"type": "InPlace"},
            "vpa": vertical,
        },
    }
    pods.api.create(hvpa)

    def is_read() -> bool:
        conditions = pods.api.get("Hvpa", app, pods.namespace)["status"]["conditions"]
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    wait_for(is_read, _WITHIN, f"the Hvpa {app} is ready")
    return pods.only_pod(app)


def _has_quota(pods: RealPods, pod: Json, quota: int) -> bool:
    return pods.node_of(pod).granted(pod).quota == quota


def _is_beyond(pods: RealPods, pod: Json, limit: int) -> bool:
    """Whether the pod may use more than this: the pod's cgroup stays when its container restarts."""
    return pods.node_of(pod).granted(pod, of_pod=True).limit > limit


def _when(test: Callable[[], bool]) -> Callable[[], float]:
    """Test a thousand times a second from now on. The returned function waits, and returns the time at which the test
    held."""
    times: list[float] = []

    def look() -> None:
        end = time.monotonic() + 2 * _WITHIN
        while time.monotonic() < end:
            if test():
                times.append(time.time())
                return
            time.sleep(_LOOK)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()

    def result() -> float:
        thread.join()
        if not times:
            raise TimeoutError(f"the cgroup did not change within {2 * _WITHIN:g} s")
        return times[0]

    return result


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process."""
    fields = _proc(pid, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    (line,) = (field for field in _proc(pid, "status").splitlines() if field.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def _proc(pid: int, file: str) -> str:
    with open(f"/proc/{pid}/{file}") as opened:
        return opened.read()
