"""The fast signal for what containers share of their pod's own resources (`hvpa.core.workload.pod_level`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import LONG_AGO, NOW, at, container, decided, hvpa, merged, objects, pod, vpa, workload
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.core.model import Decision, FastUsage, PodUsage
from hvpa.core.workload.containers import SHARED
from tests.unit.core.fast.pods import HALF, SPEC

OWN: Final = {"requests": {"cpu": "1", "memory": "1G"}, "limits": {"cpu": "2", "memory": "1G"}}
APP: Final = container("app", {"cpu": "300m"})
SIDE: Final = container("side", {})
TARGETS: Final = {"app": {"cpu": "300m", "memory": "500M"}, "side": {"cpu": "700m", "memory": "500M"}}
READY: Final = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def deciding(
    used: Mapping[str, PodUsage],
    containers: Sequence[Mapping[str, Any]] = (APP, SIDE),
    own: Mapping[str, Any] | None = OWN,
    targets: Mapping[str, Any] = TARGETS,
    change: Mapping[str, Any] | None = None,
    init: Sequence[Mapping[str, Any]] = (),
    status: HvpaStatus | None = None,
    now: dt.datetime = NOW,
    has: Mapping[str, Any] | None = None,
) -> Decision:
    """The decision about a pod of 1 core and 1G whose containers use so much; `has`: its own resources by now."""
    whole: Any = {} if own is None else {"resources": dict(own)}
    inner = {"spec": {**whole, "initContainers": list(init)}}
    manifest = hvpa(merged(SPEC, change or {}))
    manifest = manifest if status is None else replace(manifest, status=status)
    sized = merged(inner, {"spec": {"resources": dict(has)}} if has else {})
    running = pod("web-0", containers=containers, change=merged(sized, READY))
    reported = FastUsage(now, {("web-0", name): usage for name, usage in used.items()}, nodes=1)
    target = workload(1, containers, {"spec": {"template": inner}})
    recommended = vpa(targets, since=LONG_AGO)
    return decided(objects(manifest, target, None, recommended, [running], usage=reported), now)


def cpu(*millicores: int | None, now: dt.datetime = NOW) -> dict[str, PodUsage]:
    """The usage of app, side and mesh."""
    names = ("app", "side", "mesh")
    return {
        name: PodUsage(used, now, lasting_cpu=used) for name, used in zip(names, millicores, strict=False)
    }


def sizes(decision: Decision, resource: Any = "cpu") -> list[int | None]:
    return [decision.containers[name].requests.get(resource) for name in ("app", SHARED)]


@pytest.mark.parametrize(
    ("app", "side", "wanted"),
    [
        (100, 850, [300, 1058]),  # the pod needs 950m / 0.7, 358m more than 1 core
        (0, 900, [300, 700]),  # the pod has 1 core
        (700, 250, [600, 700]),  # side has enough
        (300, 1700, [429, 1700]),  # the pod has at most twice as much
        (250, 651, [300, 930]),  # side needs 651m / 0.7
        (None, 2000, [300, 700]),
        (2000, None, [600, 700]),
    ],
)
def test_what_containers_share_grows_if_the_pod_needs_more_than_it_has(
    app: int | None, side: int | None, wanted: list[int]
) -> None:
    assert sizes(deciding(cpu(app, side))) == wanted


def test_the_pod_has_what_its_containers_get() -> None:
    decision = deciding(cpu(100, 850))
    (resize,) = decision.resizes
    assert resize.body["spec"] == {"resources": {"requests": {"cpu": "1358m"}, "limits": {"cpu": "2716m"}}}
    assert "(shared) cpu: 700m now" in decision.steps[1]
    assert "raised because the kubelets report 850m" in decision.steps[1]


def test_sidecars_use_a_part_of_the_pods_resources() -> None:
    mesh = {**container("mesh", {"cpu": "100m"}), "restartPolicy": "Always"}
    inputs: dict[str, Any] = {"init": [mesh], "containers": [APP, SIDE]}
    assert sizes(deciding(cpu(0, 850, 20), **inputs)) == [300, 600]
    assert sizes(deciding(cpu(0, 850, 100), **inputs)) == [300, 958]
    assert sizes(deciding(cpu(0, 850), **inputs)) == [300, 600]


def test_containers_grow_from_nothing_if_the_others_leave_nothing() -> None:
    full = container("app", {"cpu": "1"})
    targets = {"app": {"cpu": "1"}, "side": {"cpu": "10m"}}
    assert sizes(deciding(cpu(500, 450), [full, SIDE], targets=targets)) == [1000, 358]


def test_a_raise_ends_once_the_pod_needs_it_no_more() -> None:
    raised = deciding(cpu(100, 850), change=HALF)
    has = {"requests": {"cpu": "1358m", "memory": "1G"}, "limits": {"cpu": "2716m", "memory": "1G"}}

    def later(app: int, side: int) -> Decision:
        now = at(minutes=3)
        return deciding(cpu(app, side, now=now), change=HALF, status=raised.status, now=now, has=has)

    assert sizes(later(100, 850)) == [300, 1058]
    assert sizes(later(0, 880)) == [300, 700]  # 1 core serves it
    assert sizes(later(500, 600)) == [600, 700]  # 700m serve side


def test_a_usage_that_the_last_raise_served_calls_for_no_other() -> None:
    """The size of 1358m was taken back, because 880m fit 1 core; 950m fit it, too, if 1358m do."""
    raised, now = deciding(cpu(100, 850), change=HALF), at(minutes=3)
    back = deciding(cpu(0, 880, now=now), change=HALF, status=raised.status, now=now)
    again = at(minutes=5)
    same = deciding(cpu(100, 850, now=again), change=HALF, status=back.status, now=again)
    assert sizes(same) == [300, 700]
    more = deciding(cpu(100, 1150, now=again), change=HALF, status=back.status, now=again)
    assert sizes(more) == [300, 1486]


def memory(app: float, side: float, *, grows: bool = True) -> dict[str, PodUsage]:
    """The memory of app, which grows, and of side, in M."""
    return {
        "app": PodUsage(memory=int(app * 10**6), memory_time=NOW, grows=grows),
        "side": PodUsage(memory=int(side * 10**6), memory_time=NOW),
    }


def test_memory_of_the_pod_that_grows_towards_its_limit_is_raised() -> None:
    assert sizes(deciding(memory(500, 401)), "memory") == [None, 1_200_000_000]
    assert sizes(deciding(memory(500, 400)), "memory") == [None, 1_000_000_000]
    assert sizes(deciding(memory(500, 401, grows=False)), "memory") == [None, 1_000_000_000]
    assert sizes(deciding({"app": memory(950, 0)["app"]}), "memory") == [None, 1_000_000_000]
    fixed = container("app", {"cpu": "300m", "memory": "600M"})
    outcome = deciding(memory(500, 401), [fixed, SIDE])
    assert sizes(outcome, "memory") == [600_000_000, 600_000_000]
    (resize,) = outcome.resizes
    whole: Any = resize.body["spec"]
    assert whole["resources"] == {"requests": {"memory": "1200M"}, "limits": {"memory": "1200M"}}


@given(
    used=st.integers(0, 5000),
    size=st.integers(100, 3000),
    lasting=st.integers(0, 5000),
    later=st.integers(0, 5000),
    weight=st.sampled_from([50, 100]),
)
def test_a_pod_whose_only_container_has_no_request_is_raised_as_if_it_had_the_pods(
    used: int, size: int, lasting: int, later: int, weight: int
) -> None:
    amounts = {
        "requests": {"cpu": f"{size}m", "memory": "1G"},
        "limits": {"cpu": f"{2 * size}m", "memory": "1G"},
    }
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    targets = {"app": {"cpu": f"{size}m", "memory": "1G"}}
    apart: list[Any] = [container("app", amounts["requests"], amounts["limits"])]
    results = []
    for containers, own, name in ((apart, None, "app"), ([container("app", {})], amounts, SHARED)):
        first = deciding({"app": PodUsage(used, NOW, lasting_cpu=used)}, containers, own, targets, spec)
        now, has = at(minutes=3), first.containers[name]
        sized = {
            section: {"cpu": f"{part['cpu']}m", "memory": "1G"}
            for section, part in (("requests", has.requests), ("limits", has.limits))
        }
        runs = [container("app", sized["requests"], sized["limits"])] if own is None else containers
        reported = {"app": PodUsage(later, now, lasting_cpu=lasting)}
        second = again(reported, containers, runs, own, sized, targets, spec, first.status, now)
        results.append([one.containers[name].requests["cpu"] for one in (first, second)])
    assert results[0] == results[1]


def again(
    used: Mapping[str, PodUsage],
    template: Sequence[Any],
    containers: Sequence[Any],
    own: Mapping[str, Any] | None,
    has: Mapping[str, Any],
    targets: Mapping[str, Any],
    spec: Mapping[str, Any],
    status: HvpaStatus,
    now: dt.datetime,
) -> Decision:
    """The next decision about a pod that has been resized to `has`."""
    manifest = replace(hvpa(merged(SPEC, spec)), status=status)
    inner: Any = {} if own is None else {"resources": dict(own)}
    target = workload(1, template, {"spec": {"template": {"spec": inner}}})
    change = merged({"spec": {} if own is None else {"resources": dict(has)}}, READY)
    running = pod("web-0", containers=containers, change=change)
    reported = FastUsage(now, {("web-0", name): usage for name, usage in used.items()}, nodes=1)
    return decided(
        objects(manifest, target, None, vpa(targets, since=LONG_AGO), [running], usage=reported), now
    )
