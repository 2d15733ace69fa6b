"""The Hvpa `shop`, which solves both axes together, as a cluster holds it: two ready pods of 1 core and 1Gi use 900m
each, and the HPA wants them to use half of their requests."""

from __future__ import annotations

import copy
from typing import Any

from hvpa.api.values.timestamp import parse_timestamp
from hvpa.core import Decision, decide, observe
from hvpa.core.model import Objects, Observation, Settings
from tests.unit.cli.support import NOW, Doc, load

OWNER = {"kind": "Deployment", "name": "shop", "uid": "w", "controller": True, "apiVersion": "apps/v1"}


def documents(**spec: Any) -> list[Doc]:
    """The objects; `spec` replaces fields of the Hvpa's."""
    manifests = copy.deepcopy(load("trajectory.yaml"))
    for manifest in manifests:
        if manifest["kind"] == "Deployment":
            manifest["metadata"]["uid"] = "w"
        if manifest["kind"] == "Pod":
            manifest["metadata"] |= {"ownerReferences": [OWNER], "uid": manifest["metadata"]["name"]}
        if manifest["kind"] == "Hvpa":
            manifest["spec"] |= spec
    return manifests


def metrics(cpu: str = "900m", memory: str = "600Mi", *pods: str) -> list[Doc]:
    """What pods use (default: both), as metrics.k8s.io has it."""
    usage = [{"name": "app", "usage": {"cpu": cpu, "memory": memory}}]
    return [{"metadata": {"name": pod}, "containers": usage} for pod in pods or ("shop-1", "shop-2")]


def decided(objects: Objects) -> tuple[Observation, Decision]:
    """What is seen and decided at ten o'clock."""
    observation = observe(objects, parse_timestamp(NOW), Settings())
    return observation, decide(observation)
