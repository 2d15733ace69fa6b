"""Workloads of one pod that an Hvpa resizes in place."""

from __future__ import annotations

from typing import Final

from localcluster.client.api import Json
from localcluster.node.pods import RealPods
from tests.e2e.full import objects

SMALL: Final = {"cpu": {"value": "20m"}, "memory": {"value": "5M"}}
AT_ONCE: Final = {"minChange": SMALL, "minHistory": "5s", "stabilizationDuration": "0s"}


def start(pods: RealPods, name: str, resources: Json, **spec: object) -> None:
    """A Deployment of one pod that uses what the file `name` says, and an Hvpa that resizes it in place."""
    pods.deploy(name, resources["requests"], resources["limits"])
    strategy = {"type": "InPlace", "timeout": "90s"}
    vertical = objects.vertical(scaleUp={"minChange": SMALL}, scaleDown=AT_ONCE)
    pods.api.create(objects.hvpa(name, pods.namespace, updateStrategy=strategy, vpa=vertical, **spec))
