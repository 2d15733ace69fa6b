"""Pods that start, and what is decided about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from builders.build import (
    at,
    container,
    decided,
    hvpa,
    merged,
    objects,
    stamp,
    vpa,
    workload,
)
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Decision
from tests.unit.core.actuation.sized_pods import (
    REQUESTS,
    decision,
    running,
    size_status,
)

SIZE: Final = {"requests": {"cpu": "1", "memory": "1Gi"}}
BOOSTED: Final = {"cpu": "3", "memory": "1Gi"}
BOOST: Final = {"container": "app", "cpu": {"factor": 3}}
UP: Final = {"requests": {"cpu": "3"}}
DOWN: Final = {"requests": {"cpu": "1"}}
KEY: Final = "Deployment.apps/web"
HAD: Final = {"boosts": [{"name": "app", "requests": {"cpu": "3"}}]}
"""The status, if pods of 1 core have or had 3 for their start."""


def starting(
    name: str = "web-1",
    requests: Mapping[str, str] = BOOSTED,
    seconds: float = 20,
    *,
    runs: float | None = None,
    ready: bool = False,
    changed: float | None = None,
    status: Mapping[str, Any] | None = None,
    **more: Any,
) -> Pod:
    """A pod that was created so many seconds ago. It `runs` for that long, and became ready, or not, `changed` seconds
    ago."""
    started = stamp(at(seconds=-seconds))
    since = stamp(at(seconds=-(seconds if changed is None else changed)))
    own = {"state": {"running": {"startedAt": stamp(at(seconds=-(seconds if runs is None else runs)))}}}
    change = {
        "metadata": {"creationTimestamp": started},
        "status": {
            "startTime": started,
            "conditions": [
                {"type": "Ready", "status": str(ready), "lastTransitionTime": since},
                *more.pop("conditions", ()),
            ],
        },
    }
    return running(name, requests, status=merged(own, status or {}), change=change, **more)


def boosted(
    pods: Sequence[Pod],
    boost: Mapping[str, Any] | None = None,
    size: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    """What is decided where pods get three times their CPU for their start."""
    spec = merged({"startupBoost": [merged(BOOST, boost or {})]}, rest.pop("spec", {}))
    since = rest.pop("since", at(hours=-1))
    return decision(pods, size or SIZE, spec=spec, since=since, **rest)


def decided_for(
    pods: Sequence[Pod],
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    template: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    """What is decided where the pods have the template's size, which is the usual state of a new Hvpa."""
    usual = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]}
    own = hvpa({**usual, **(spec or {})}, merged(size_status(len(pods), {}), status or {}))
    target = workload(len(pods), containers=[{**container(requests=REQUESTS), **(template or {})}])
    recommended = rest.pop("vertical", None) or vpa({"app": REQUESTS})
    return decided(objects(own, target, None, recommended, pods, **rest))
