"""Pods of 1 core and 1G, of which the kubelets report usage, and the decision about them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from builders.build import LONG_AGO, NOW, container, decided, hvpa, merged, objects, stamp, vpa, workload
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.core.model import Decision, FastUsage, PodUsage
from tests.unit.core.actuation.sized_pods import ended, running

SIZE: Final = {"cpu": "1", "memory": "1G"}
SPEC: Final[dict[str, Any]] = {
    "hpa": {"deploy": False},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
    "updateStrategy": {"type": "InPlace"},
    "fastSignal": {"mode": "Raise"},
}
HALF: Final = {"weightBasedScalingIntervals": [{"vpaWeight": 50}]}
WHOLE: Final = {"weightBasedScalingIntervals": [{"vpaWeight": 100}]}
NONE: Final = {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}
MIB: Final = 2**20


def usage(*millicores: int | None, when: dt.datetime = NOW) -> FastUsage:
    """The pods web-0, web-1, … use so much; all samples arrived at this time."""
    of = {
        (f"web-{index}", "app"): PodUsage(cpu, when, lasting_cpu=cpu) for index, cpu in enumerate(millicores)
    }
    return FastUsage(when, of, nodes=1)


def deciding(
    reported: FastUsage | None,
    change: Mapping[str, Any] | None = None,
    status: HvpaStatus | None = None,
    conditions: Sequence[Mapping[str, Any]] = (),
    limits: Mapping[str, str] | None = None,
    pods: int = 2,
    *,
    now: dt.datetime = NOW,
    target: str = "1",
    memory_target: str = "1G",
    has: int = 1000,
    spec_has: int | None = None,
    restarts: str = "",
    killed: dt.datetime | None = None,
    memory: str = "1G",
    since: dt.datetime | None = None,
) -> Decision:
    """The decision about pods of 1 core and 1G, which is what the VPA recommends."""
    manifest = hvpa(merged(SPEC, change or {}))
    manifest = manifest if status is None else replace(manifest, status=status)
    size = {"cpu": f"{has}m", "memory": memory}
    policy = {"resizePolicy": [{"resourceName": restarts, "restartPolicy": "RestartContainer"}]}
    more = policy if restarts else {}
    app = merged(container(requests=SIZE, limits=limits), more)
    asked = size if spec_has is None else {**size, "cpu": f"{spec_has}m"}
    running_pods = [
        running(
            f"web-{index}",
            asked,
            None if spec_has is None else {"requests": size},
            conditions=conditions,
            limits=limits,
            more=more,
            status=None if killed is None else ended(killed),
        )
        for index in range(pods)
    ]
    recommended = vpa(
        {"app": {"cpu": target, "memory": memory_target}},
        since=LONG_AGO if since is None else stamp(since),
    )
    return decided(
        objects(manifest, workload(pods, [app]), None, recommended, running_pods, usage=reported), now
    )


def cpu(decision: Decision) -> int:
    return decision.containers["app"].requests["cpu"]


def growing(change: Mapping[str, Any]) -> Decision:
    """The raise for memory that grows beyond 90 percent of its limit of 1G."""
    of = {("web-0", "app"): PodUsage(memory=950_000_000, memory_time=NOW, grows=True)}
    return deciding(FastUsage(NOW, of, nodes=1), change, limits={"memory": "1G"})


def memory_of(decision: Decision) -> int:
    return decision.containers["app"].requests["memory"]
