"""Containers that ran out of memory: which OOMs and evictions count, and for how long (DESIGN 6.4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at, stamp
from hvpa.api.hvpa.status import MemoryOverride, VerticalAxis
from hvpa.api.objects.read_models import Pod
from hvpa.core.values.clock import Clock
from hvpa.core.workload.starving import raised_at, starving_containers


def starving(
    pods: Sequence[Pod],
    container: Mapping[str, Any] | None = None,
    since: Mapping[str, dt.datetime] | None = None,
) -> dict[str, dt.datetime]:
    template = build.workload(containers=None if container is None else [container]).spec.template.spec
    return starving_containers(Clock(NOW), pods, template.containers, since or {})


def terminated(reason: str, when: str | None) -> dict[str, Any]:
    return {"terminated": {"reason": reason, **({"finishedAt": when} if when else {})}}


def pod(status: Mapping[str, Any], containers: list[dict[str, Any]] | None = None) -> Pod:
    return build.pod(change={"status": status}, containers=containers)


def killed(
    reason: str = "OOMKilled",
    when: str | None = "2026-11-21T09:50:00Z",
    field: str = "lastState",
    of: str = "app",
) -> Any:
    return {"containerStatuses": [{"name": of, field: terminated(reason, when)}]}


def evicted(message: str, **more: Any) -> dict[str, Any]:
    return {"phase": "Failed", "reason": "Evicted", "message": message, **more}


LOW = "The node was low on resource: memory. "
USING = "Threshold quantity: 100Mi, available: 9Mi. Container app was using 900Mi, request is 1Gi, has larger usage."
SMALLER = [build.container(requests={"cpu": "1", "memory": "512Mi"})]
STARVING: dict[str, tuple[dict[str, Any], Any, set[str]]] = {
    "killed before its restart": (killed(), None, {"app"}),
    "killed and not restarted yet": (killed(field="state"), None, {"app"}),
    "ended for another reason": (killed(reason="Error"), None, set()),
    "before the last vertical scaling": (killed(when="2026-11-21T09:30:00Z"), None, set()),
    "at that instant is before": (killed(when="2026-11-21T09:40:00Z"), None, set()),
    "at an unknown time: when the pod started, long ago": (killed(when=None), None, set()),
    "a pod with less memory than the template's": (killed(), SMALLER, set()),
    "running since ever": ({"containerStatuses": [{"name": "app"}]}, None, set()),
    "a container that the template does not have": (killed(when=None, of="istio"), None, set()),
    "evicted, and named as the one above its request": (evicted(LOW + USING), None, {"app"}),
    "evicted, none named: all of the pod": (evicted(LOW), None, {"app"}),
    "the message of old kubelets": (
        evicted("The node was low on resource: [MemoryPressure]. "),
        None,
        {"app"},
    ),
    "evicted for its disk": (evicted("The node was low on resource: ephemeral-storage. "), None, set()),
    "failed for another reason": ({**evicted(LOW), "reason": "NodeLost"}, None, set()),
    "not evicted at all": ({**evicted(LOW), "phase": "Running"}, None, set()),
    "evicted with less memory": (evicted(LOW), SMALLER, set()),
}


@pytest.mark.parametrize(("status", "containers", "expected"), STARVING.values(), ids=STARVING)
def test_containers_that_starve(status: dict[str, Any], containers: Any, expected: set[str]) -> None:
    disrupted = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-11-21T09:55:00Z"}
    candidate = pod({"conditions": [disrupted], **status}, containers)
    assert set(starving([candidate], since={"app": at(minutes=-20)})) == expected


def test_when_it_was_is_the_latest_that_is_known() -> None:
    early, late = pod(killed(when="2026-11-21T09:50:00Z")), pod(killed(when="2026-11-21T09:55:00Z"))
    assert starving([early, late]) == starving([late, early]) == {"app": at(minutes=-5)}


def evicted_at(started: dt.datetime | None, created: dt.datetime | None = None, *containers: Any) -> Any:
    """When an evicted pod without conditions ended."""
    status = evicted(
        LOW, conditions=[], containerStatuses=[{"name": "app", **container} for container in containers]
    )
    metadata = {"creationTimestamp": None if created is None else stamp(created)}
    status["startTime"] = None if started is None else stamp(started)
    return starving([build.pod(change={"metadata": metadata, "status": status})]).get("app")


def test_an_evicted_pod_ended_when_its_containers_did_or_else_when_it_started() -> None:
    early, late = at(hours=-3), at(hours=-2)
    assert evicted_at(early, early, {"state": terminated("Error", stamp(at()))}) == at()
    assert evicted_at(late, early, {}) == late
    assert evicted_at(late, early) == late
    assert evicted_at(None, early) == early
    assert evicted_at(None) is None


GI = {"memory": "1Gi"}
SAME: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "the same, written otherwise": ({"requests": GI}, {"requests": {"memory": "1024Mi"}}, True),
    "a limit that a LimitRange filled in": (
        {"requests": GI},
        {"requests": GI, "limits": {"memory": "2Gi"}},
        True,
    ),
    "a request that follows from the limit": ({"limits": GI}, {"requests": GI, "limits": GI}, True),
    "another limit": ({"requests": GI, "limits": {"memory": "2Gi"}}, {"requests": GI, "limits": GI}, False),
    "more CPU, as ready pods have until others are": (
        {"requests": {"cpu": "1", **GI}},
        {"requests": {"cpu": "1200m", **GI}},
        True,
    ),
    "more memory": ({"requests": GI}, {"requests": {"memory": "2Gi"}}, True),
    "a larger limit, which falls in steps": (
        {"requests": GI, "limits": {"memory": "2Gi"}},
        {"requests": GI, "limits": {"memory": "3Gi"}},
        True,
    ),
    "no limit": ({"requests": GI, "limits": GI}, {"requests": GI}, True),
    "less memory": ({"requests": GI}, {"requests": {"memory": "1023Mi"}}, False),
    "nothing at all": ({"requests": GI}, {}, False),
    "a template that asks for nothing": ({}, {"requests": GI}, True),
}


@pytest.mark.parametrize(("template", "own", "expected"), SAME.values(), ids=SAME)
def test_whether_a_pod_has_at_least_the_templates_memory(
    template: dict[str, Any], own: dict[str, Any], expected: bool
) -> None:
    times = starving(
        [pod(killed(), [{"name": "app", "resources": own}])], {"name": "app", "resources": template}
    )
    assert ("app" in times) is expected


# --- once, and for a day ---------------------------------------------------------------------------------------------
def test_out_of_memory_counts_for_a_day() -> None:
    clock, template = Clock(NOW), build.workload().spec.template.spec.containers
    young = pod(killed(when=stamp(at(hours=-23))))
    assert starving_containers(clock, [young], template, {}) == {"app": at(hours=-23)}
    assert clock.changes_at == at(hours=1)
    assert starving([pod(killed(when=stamp(at(hours=-24))))]) == {}
    assert starving([pod(evicted(LOW, startTime=stamp(at(days=-18)), conditions=[]))]) == {}


def test_out_of_memory_dated_in_the_future_does_not_count_yet() -> None:
    assert starving([pod(killed(when=stamp(at(hours=1))))]) == {}


def test_a_pod_that_can_t_get_the_raised_memory_does_not_run_out_of_it() -> None:
    """The pod's spec names the raised 1Gi; its node has no room, and the container still has 512Mi."""
    status = killed()["containerStatuses"][0] | {"resources": {"requests": {"memory": "512Mi"}}}
    assert starving([pod({"containerStatuses": [status]})]) == {}


@pytest.mark.parametrize(
    ("axis", "in_place", "expected"),
    [
        ({}, True, {}),
        ({"last_scale_up_time": at(hours=-1)}, False, {"app": at(hours=-1), "proxy": at(hours=-1)}),
        ({"last_scale_up_time": at(hours=1)}, False, {}),
        ({"overrides": (MemoryOverride(container="app", time=at(hours=-1)),)}, False, {}),
        ({"overrides": (MemoryOverride(container="app", time=at(hours=1)),)}, True, {}),
        (
            {
                "last_scale_up_time": at(hours=-1),
                "overrides": (MemoryOverride(container="app", time=at(hours=-1)),),
            },
            True,
            {"app": at(hours=-1, seconds=30), "proxy": at(hours=-1)},
        ),
    ],
)
def test_out_of_memory_before_the_last_raise_does_not_count_again(
    axis: dict[str, Any], in_place: bool, expected: dict[str, dt.datetime]
) -> None:
    containers = build.workload(containers=[build.container(), build.container("proxy")])
    times = raised_at(
        Clock(NOW), VerticalAxis(**axis), containers.spec.template.spec.containers, in_place=in_place
    )
    assert times == expected
