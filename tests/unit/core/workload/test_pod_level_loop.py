"""A workload under a constant load comes to rest, also if its pods request much that belongs to no governed container:
the rest of the pod's own request, room for an init container, or a container without a recommendation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs

from builders import build
from hvpa.api.objects.read_models import Workload
from hvpa.core import Objects
from hvpa.core.workload.pod_level import own_resources
from tests.unit.core.workload.test_governed import objects
from tests.unit.core.workload.test_pod_level import EAGER, whole_of

TARGET: Final = 50
"""Percent of the request that pods should use."""
STEPS: Final = 90
MINUTES: Final = 20
"""Between two decisions."""
OWN: Final = {"requests": {"cpu": "1500m"}, "limits": {"cpu": "4"}}
APP: Final = build.container("app", {"cpu": "300m"})
MESH: Final = build.container("mesh", {"cpu": "1200m"})
SIDE: Final = build.container("side", {})
FIRST: Final = build.container("first", {"cpu": "1500m"})
LIMIT: Final = {"limits": {"cpu": "4"}}


def counts(
    whole: Mapping[str, Any], containers: Sequence[Any], init: Sequence[Any], used: int
) -> tuple[list[int], list[Any]]:
    """The replicas and the template's containers after each decision, for pods that use this much CPU together."""
    spec = {**EAGER, "blend": "Trajectory", "weightBasedScalingIntervals": [{"vpaWeight": 80}]}
    inputs = objects(whole, containers, {"app": {"cpu": "50m"}}, spec, init)
    replicas, templates = [], []
    for step in range(STEPS):
        assert inputs.workload is not None
        inputs = measured(inputs, inputs.workload, containers, init, used)
        decision = build.decided(inputs, build.at(minutes=step * MINUTES))
        inputs = build.apply(inputs, decision)
        assert inputs.workload is not None
        replicas.append(inputs.workload.spec.replicas)
        templates.append(inputs.workload.spec.template.spec)
    return replicas, templates


def measured(
    inputs: Objects, workload: Workload, containers: Sequence[Any], init: Sequence[Any], used: int
) -> Objects:
    """The same with pods of the present template, and the HPA's measurement of them."""
    template, count = workload.spec.template.spec, workload.spec.replicas
    made = build.pod("web", containers=containers, change={"spec": {"initContainers": list(init)}})
    sized = [
        structs.replace(one, resources=now.resources)
        for one, now in zip(made.spec.containers, template.containers, strict=True)
    ]
    spec = structs.replace(made.spec, containers=sized, resources=template.resources)
    spec = structs.replace(spec, resources=whole_of(spec))
    pods = [
        structs.replace(
            made, metadata=structs.replace(made.metadata, name=f"web-{index}", uid=f"web-{index}"), spec=spec
        )
        for index in range(count)
    ]
    request = own_resources(spec).requests["cpu"]
    utilization = round(100 * used / count / request)
    is_near = abs(utilization - TARGET) * 10 <= TARGET
    current = {"averageUtilization": utilization, "averageValue": f"{used // count}m"}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
    hpa = build.hpa(
        count if is_near else max(1, math.ceil(count * utilization / TARGET)),
        utilization,
        {"status": {"currentMetrics": metrics}},
        count,
    )
    return replace(inputs, pods=tuple(pods), hpas=(hpa,))


@pytest.mark.parametrize(
    ("whole", "containers", "init"),
    [
        (OWN, [APP], []),
        (OWN, [APP, SIDE], []),
        (OWN, [APP, MESH], []),
        (LIMIT, [APP], [FIRST]),
        (LIMIT, [APP, SIDE], [FIRST]),
    ],
    ids=["the rest of the pod", "what a container shares", "a container", "an init container", "both"],
)
@pytest.mark.parametrize("used", [1500, 3000, 6000])
def test_what_pods_request_beside_the_app_does_not_make_replicas_alternate(
    whole: Mapping[str, Any], containers: Sequence[Any], init: Sequence[Any], used: int
) -> None:
    replicas, templates = counts(whole, containers, init, used)
    settled = STEPS - 30
    assert len(set(replicas[settled:])) == 1, replicas
    assert all(template == templates[-1] for template in templates[settled:])
    needed = used * 100 / TARGET / 1500
    assert replicas[-1] in (math.ceil(needed), math.ceil(needed) + 1)
