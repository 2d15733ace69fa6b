"""A load of HTTP requests that jumps, on a real node: the time until requests are fast again, with an HPA alone, with
an HPA and a VPA that resizes in place, and with an Hvpa, without and with the fast signal. Workload and objects are
those of the demo (`demo/real`)."""

from __future__ import annotations

import string
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.node.config import IMAGE
from localcluster.process import free_port
from localcluster.programs.build import build_node
from localcluster.vpa import VpaActs
from localcluster.workloads.load import await_pods
from localcluster.workloads.traffic import TIMEOUT_SECONDS, Traffic, is_slow, recovered

HPA, BOTH, HVPA, FAST = "HPA alone", "HPA and VPA", "Hvpa", "fast signal"
POLICIES = (HPA, BOTH, HVPA, FAST)
GOAL: Final = 250.0
"""Highest P99 of a second's requests in milliseconds."""
CALM_RATE: Final = 16.0
"""Requests per second, each of 5 ms of CPU: the load of two pods of 100m at the HPA's target."""
CALM, HIGH = 75.0, 120.0
"""Seconds before and after the jump."""
_MANIFESTS: Final = Path(__file__).resolve().parents[2] / "demo" / "real"
_NAME: Final = "web"
_OBJECTS: Final = {
    HPA: (("rivals.yaml", "HorizontalPodAutoscaler"),),
    BOTH: (("rivals.yaml", "HorizontalPodAutoscaler"), ("rivals.yaml", "VerticalPodAutoscaler")),
    HVPA: (("hvpa.yaml", "Hvpa"),),
    FAST: (("hvpa.yaml", "Hvpa"),),
}


@dataclass(frozen=True)
class Jump:
    """The outcome of a jump."""

    acted: float | None
    """Seconds from the jump until pods were requested to be more or larger; None if never."""
    back: int | None
    """Seconds from the jump until requests were fast again; 0 if they never were slow, None if they stayed slow."""
    above: int
    """Seconds above the goal."""
    failed: int
    sent: int
    cpu: float
    """Core-seconds requested after the jump."""


def jump(plane: ControlPlane, policy: str, factor: float, number: int) -> Jump:
    """Measure a jump of a new workload in a separate namespace."""
    api, namespace = plane.api, f"jump-{number}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    port = free_port()
    rate = [CALM_RATE]
    with ExitStack() as stack:
        if policy == BOTH:
            stack.enter_context(VpaActs(plane, namespace))
        api.create(_object("workload.yaml", "Deployment", namespace, port))
        for file, kind in _OBJECTS[policy]:
            manifest = _object(file, kind, namespace, port)
            if policy == FAST:
                manifest["spec"]["fastSignal"] = {"mode": "Raise"}
            api.create(manifest)
        await_pods(api, namespace, _NAME)
        traffic = Traffic(
            api, namespace, f"app={_NAME}", port, build_node()["traffic"], plane.folder, lambda: rate[0]
        )
        stack.enter_context(traffic)
        time.sleep(CALM)
        before = _requested(plane, namespace)
        at = round(time.time())
        rate[0] = CALM_RATE * factor
        acted, cpu = _watch(plane, namespace, before)
        answers = {second - at: answer for second, answer in traffic.answers().items()}
        time.sleep(TIMEOUT_SECONDS)
    for kind in ("Hvpa", "HorizontalPodAutoscaler", "VerticalPodAutoscaler", "Deployment"):
        api.delete(kind, _NAME, namespace)
    wait_for(lambda: not api.list("Pod", namespace), 60, "no pod is left")
    after = {second: answer for second, answer in answers.items() if second >= 0}
    return Jump(
        acted,
        recovered(after, 0, HIGH, GOAL),
        sum(is_slow(answer, GOAL) for answer in after.values()),
        sum(answer.failed for answer in after.values()),
        sum(answer.sent for answer in after.values()),
        cpu,
    )


def _watch(plane: ControlPlane, namespace: str, before: int) -> tuple[float | None, float]:
    """Watch until the end of the high load; return the time of the first larger request, and the requested
    core-seconds."""
    began = last = time.monotonic()
    acted, cpu = None, 0.0
    while (now := time.monotonic()) - began < HIGH:
        requested = _requested(plane, namespace)
        cpu += requested / 1000 * (now - last)
        last = now
        if acted is None and requested > before:
            acted = now - began
        time.sleep(0.25)
    return acted, cpu


def _requested(plane: ControlPlane, namespace: str) -> int:
    """Return the total requests of all pods in millicores."""
    pods = plane.api.list("Pod", namespace, f"app={_NAME}")
    return sum(parse_cpu(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in pods)


def _object(file: str, kind: str, namespace: str, port: int) -> Json:
    text = string.Template((_MANIFESTS / file).read_text()).safe_substitute(
        NAMESPACE=namespace, IMAGE=IMAGE, PORT=port
    )
    (manifest,) = (document for document in yaml.safe_load_all(text) if document["kind"] == kind)
    return dict(manifest)
