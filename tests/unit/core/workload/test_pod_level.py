"""Resources of the pod itself (`hvpa.core.workload.pod_level`): they grow and shrink with what its containers need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders import build
from hvpa.api.objects.read_models import Pod, PodSpec, Resources
from hvpa.core import Decision
from hvpa.core.workload.containers import SHARED, amount_of, amounts
from hvpa.recommend.hpa.pods import sidecars
from tests.unit.core.workload.test_governed import FIXED, FULL, active, objects

APP, SIDE = build.container("app", {}), build.container("side", {})
DOWN: Final[dict[str, Any]] = {"scaleDown": {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}}}
EAGER: Final = build.merged(FULL, {"vpa": DOWN})


def pair(requests: Mapping[str, str], limits: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"requests": dict(requests), **({} if limits is None else {"limits": dict(limits)})}


def template(decision: Decision) -> dict[str, Any]:
    """What the decision writes into the pod template."""
    assert decision.workload_patch is not None
    spec: Any = decision.workload_patch.body["spec"]
    written: dict[str, Any] = spec["template"]["spec"]
    return {entry["name"]: entry["resources"] for entry in written["containers"]} | {
        "": written.get("resources")
    }


CASES: Final[dict[str, tuple[dict[str, Any], Sequence[Any], dict[str, Any], dict[str, Any]]]] = {
    "containers without requests: the pod requests the total of their targets": (
        pair({"cpu": "1"}),
        [APP, SIDE],
        {"app": {"cpu": "1200m"}, "side": {"cpu": "300m"}},
        {"": pair({"cpu": "1500m"})},
    ),
    "its limit keeps its ratio": (
        pair({"cpu": "1", "memory": "1G"}, {"cpu": "2", "memory": "1G"}),
        [APP],
        {"app": {"cpu": "500m", "memory": "2G"}},
        {"": pair({"cpu": "500m", "memory": "2G"}, {"cpu": "1", "memory": "2G"})},
    ),
    "a container with a request grows, and the pod by as much": (
        pair({"cpu": "1"}, {"cpu": "2"}),
        [build.container("app", {"cpu": "500m"})],
        {"app": {"cpu": "1500m"}},
        {"app": pair({"cpu": "1500m"}), "": pair({"cpu": "2"}, {"cpu": "4"})},
    ),
    "some with requests, some without": (
        pair({"cpu": "1"}),
        [build.container("app", {"cpu": "600m"}), SIDE],
        {"app": {"cpu": "900m"}, "side": {"cpu": "300m"}},
        {"app": pair({"cpu": "900m"}), "": pair({"cpu": "1200m"})},
    ),
    "what containers without a target share stays": (
        pair({"cpu": "1"}),
        [build.container("app", {"cpu": "600m"}), SIDE],
        {"app": {"cpu": "900m"}},
        {"app": pair({"cpu": "900m"}), "": pair({"cpu": "1300m"})},
    ),
    "a limit alone, of containers without requests": (
        {"limits": {"cpu": "1"}},
        [APP, SIDE],
        {"app": {"cpu": "1200m"}, "side": {"cpu": "300m"}},
        {"": {"limits": {"cpu": "1500m"}}},
    ),
    "a limit alone, beside requests of containers": (
        {"limits": {"cpu": "1"}},
        [build.container("app", {"cpu": "500m"})],
        {"app": {"cpu": "1500m"}},
        {"app": pair({"cpu": "1500m"}), "": {"limits": {"cpu": "3"}}},
    ),
    "only what the pod has is set": (
        pair({"cpu": "1"}),
        [build.container("app", {"memory": "1G"})],
        {"app": {"cpu": "2", "memory": "2G"}},
        {"app": pair({"memory": "2G"}), "": pair({"cpu": "2"})},
    ),
    "a container's limit is at most the pod's": (
        pair({"cpu": "1"}, {"cpu": "1"}),
        [build.container("app", {"cpu": "100m"}, {"cpu": "1"}), build.container("side", {"cpu": "500m"})],
        {"app": {"cpu": "400m"}},
        {"app": pair({"cpu": "400m"}, {"cpu": "1300m"}), "": pair({"cpu": "1300m"}, {"cpu": "1300m"})},
    ),
    "a pod's limit is at least that of a container that nobody changes": (
        pair({"cpu": "1"}, {"cpu": "2"}),
        [build.container("app", {"cpu": "800m"}), build.container("side", {"cpu": "100m"}, {"cpu": "1900m"})],
        {"app": {"cpu": "100m"}},
        {"app": pair({"cpu": "100m"}), "": pair({"cpu": "300m"}, {"cpu": "1900m"})},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_pod_gets_what_its_containers_need(case: str) -> None:
    whole, containers, targets, expected = CASES[case]
    inputs = objects(whole, containers, targets, EAGER)
    decision = build.decided(inputs)
    assert template(decision) == expected
    assert active(decision)[0] in ("Recommending", "UnknownContainer", "MissingRequest")
    assert build.decided(build.apply(inputs, decision), build.at(hours=1)).workload_patch is None


# --- whatever the pods have ------------------------------------------------------------------------------------------
def whole_of(spec: PodSpec) -> Resources:
    """The pod's own resources, as the API server completes them."""
    whole = spec.resources or Resources()
    own = [one.resources.limits | one.resources.requests for one in (*spec.containers, *sidecars(spec))]
    requests = dict(whole.requests)
    for resource in whole.limits:
        taken = [amount_of("cpu", size[resource]) or 0 for size in own if resource in size]
        requests.setdefault(resource, f"{sum(taken)}m" if taken else whole.limits[resource])
    return Resources(requests, whole.limits)


def is_accepted(spec: PodSpec) -> bool:
    """Whether the API server accepts a pod with this spec (`validatePodResourceConsistency`)."""
    whole = amounts(whole_of(spec).requests), amounts(whole_of(spec).limits)
    own = [one.resources for one in (*spec.containers, *sidecars(spec))]
    requested = sum(amounts(one.limits | one.requests).get("cpu", 0) for one in own)
    limits = [size for one in own if (size := amounts(one.limits).get("cpu")) is not None]
    least, most = whole[0].get("cpu"), whole[1].get("cpu")
    above = least is None or requested <= least
    fits = most is None or (all(limit <= most for limit in limits) and (least or 0) <= most)
    pairs = [(amounts(one.requests).get("cpu", 0), amounts(one.limits).get("cpu")) for one in own]
    return above and fits and all(limit is None or request <= limit for request, limit in pairs)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any], list[Any], dict[str, Any]]:
    """The pod's own CPU, its containers, sidecars, and the VPA's targets."""
    containers, requested, highest = [], 0, 0
    for number in range(draw(st.integers(1, 3))):
        request = draw(st.none() | st.integers(1, 2000))
        limit = None if request is None else draw(st.none() | st.integers(request, 4000))
        resources = {} if request is None else {"cpu": f"{request}m"}
        containers.append(
            build.container(f"c{number}", resources, None if limit is None else {"cpu": f"{limit}m"})
        )
        requested, highest = requested + (request or 0), max(highest, limit or 0)
    side = draw(st.sampled_from((None, {}, {"cpu": "100m"})))
    beside = [] if side is None else [{**build.container("native", side), "restartPolicy": "Always"}]
    requested += 100 if side else 0
    request = draw(st.none() | st.integers(max(1, requested), requested + 2000))
    limit = draw(st.none() | st.integers(max(request or requested, highest, 1), 8000))
    if request is not None and draw(st.booleans()):
        limit = request = max(request, highest)
    whole: dict[str, Any] = {} if request is None else {"requests": {"cpu": f"{request}m"}}
    whole |= {} if limit is None else {"limits": {"cpu": f"{limit}m"}}
    named = draw(st.sets(st.sampled_from([one["name"] for one in containers])))
    targets = {name: {"cpu": f"{draw(st.integers(1, 3000))}m"} for name in sorted(named)}
    return whole, containers, beside, targets


SPECS: Final = st.fixed_dictionaries(
    {
        "blend": st.sampled_from(("Additive", "Trajectory")),
        "fixed": st.booleans(),
        "weight": st.integers(1, 100),
    }
)


def spec_of(drawn: Mapping[str, Any]) -> dict[str, Any]:
    base = build.merged(FIXED, {"vpa": DOWN}) if drawn["fixed"] else EAGER
    weights = [{"vpaWeight": drawn["weight"]}]
    return {**base, "blend": drawn["blend"], "weightBasedScalingIntervals": weights}


@given(pod=drawn(), drawn_spec=SPECS)
def test_every_template_that_is_written_is_one_that_the_api_server_accepts(
    pod: tuple[dict[str, Any], list[Any], list[Any], dict[str, Any]], drawn_spec: dict[str, Any]
) -> None:
    whole, containers, init, targets = pod
    inputs = objects(whole, containers, targets, spec_of(drawn_spec), init)
    for hour in range(3):
        decision = build.decided(inputs, build.at(hours=hour))
        inputs = build.apply(inputs, decision)
        assert inputs.workload is not None
        spec = inputs.workload.spec.template.spec
        assert is_accepted(spec), spec
        have = (spec.resources or Resources()).requests.keys(), (spec.resources or Resources()).limits.keys()
        assert have == (whole.get("requests", {}).keys(), whole.get("limits", {}).keys())
        assert all(one.name != SHARED for one in spec.containers)


@given(pod=drawn(), drawn_spec=SPECS)
def test_every_resize_is_one_that_the_api_server_accepts(
    pod: tuple[dict[str, Any], list[Any], list[Any], dict[str, Any]], drawn_spec: dict[str, Any]
) -> None:
    whole, containers, init, targets = pod
    inputs = build.in_place(objects(whole, containers, targets, spec_of(drawn_spec), init))
    assert inputs.workload is not None
    whole_spec = inputs.workload.spec.template.spec
    created = build.pod("web-1", containers=containers, change={"spec": {"initContainers": init}})
    own = whole_of(whole_spec) if whole else None
    created = structs.replace(created, spec=structs.replace(created.spec, resources=own))
    decision = None
    for minute in range(6):
        inputs = replace(inputs, pods=(created,))
        decision = build.decided(inputs, build.at(minutes=minute))
        inputs = replace(inputs, hvpa=build.with_status(inputs.hvpa, decision.status))
        for resize in decision.resizes:
            created = after(created, resize.body)
            assert is_accepted(created.spec), created.spec
    assert decision is not None
    assert decision.resizes == ()
    assert decision.status.actuation is not None
    assert decision.status.actuation.resized in ("0/0", "1/1") or decision.status.actuation.infeasible


def after(pod: Pod, body: Mapping[str, Any]) -> Pod:
    """The pod once it has been resized."""
    changed = {one["name"]: one["resources"] for one in body["spec"]["containers"]}
    containers = [
        structs.replace(one, resources=with_changes(one.resources, changed.get(one.name, {})))
        for one in pod.spec.containers
    ]
    assert changed.keys() <= {one.name for one in containers}
    whole = pod.spec.resources
    if "resources" in body["spec"]:
        assert whole is not None
        whole = with_changes(whole, body["spec"]["resources"])
    return structs.replace(pod, spec=structs.replace(pod.spec, containers=containers, resources=whole))


def with_changes(have: Resources, changes: Mapping[str, Any]) -> Resources:
    return Resources(have.requests | changes.get("requests", {}), have.limits | changes.get("limits", {}))
