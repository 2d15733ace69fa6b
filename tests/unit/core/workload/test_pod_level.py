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
from builders.build import GIB
from hvpa.api.objects.read_models import Pod, PodSpec, Resources
from hvpa.core import Decision
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.containers import SHARED, amount_of, amounts
from hvpa.core.workload.pod_level import pod_request, shared_in_template
from hvpa.recommend.hpa.pods import sidecars
from tests.unit.core.actuation.sized_pods import resize_condition
from tests.unit.core.report.test_bounds import policy
from tests.unit.core.trajectory import jointly
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


def test_what_containers_share_is_added_once() -> None:
    target = objects(pair({"cpu": "1"}), [APP], {}).workload
    assert target is not None
    shared = shared_in_template(target)
    assert [one.name for one in shared.spec.template.spec.containers] == ["app", SHARED]
    assert shared_in_template(shared) == shared


# --- whatever the pods have ------------------------------------------------------------------------------------------
def whole_of(spec: PodSpec) -> Resources:
    """The pod's own resources, as the API server completes them."""
    whole = spec.resources or Resources()
    requests = dict(whole.requests)
    for resource in whole.limits:
        requests.setdefault(resource, f"{taken}m" if (taken := requested(spec)) else whole.limits[resource])
    return Resources(requests, whole.limits)


def requested(spec: PodSpec) -> int:
    """What the API server takes for the CPU request of all containers (`AggregateContainerRequests`)."""
    own, first = [
        [amount_of("cpu", (one.resources.limits | one.resources.requests).get("cpu", 0)) or 0 for one in some]
        for some in (
            (*spec.containers, *sidecars(spec)),
            [one for one in spec.init_containers if one.restart_policy != "Always"],
        )
    ]
    beside = sum(own[len(spec.containers) :])
    return max([sum(own), *(beside + size for size in first)])


def is_accepted(spec: PodSpec) -> bool:
    """Whether the API server accepts a pod with this spec (`validatePodResourceConsistency`)."""
    whole = amounts(whole_of(spec).requests), amounts(whole_of(spec).limits)
    own = [one.resources for one in (*spec.containers, *sidecars(spec))]
    limits = [size for one in own if (size := amounts(one.limits).get("cpu")) is not None]
    least, most = whole[0].get("cpu"), whole[1].get("cpu")
    above = least is None or requested(spec) <= least
    fits = most is None or (all(limit <= most for limit in limits) and (least or 0) <= most)
    pairs = [(amounts(one.requests).get("cpu", 0), amounts(one.limits).get("cpu")) for one in own]
    return above and fits and all(limit is None or request <= limit for request, limit in pairs)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any], list[Any], dict[str, Any]]:
    """The pod's own CPU, its containers, sidecars, and the VPA's targets."""
    containers, total, highest = [], 0, 0
    for number in range(draw(st.integers(1, 3))):
        request = draw(st.none() | st.integers(1, 2000))
        limit = None if request is None else draw(st.none() | st.integers(request, 4000))
        resources = {} if request is None else {"cpu": f"{request}m"}
        containers.append(
            build.container(f"c{number}", resources, None if limit is None else {"cpu": f"{limit}m"})
        )
        total, highest = total + (request or 0), max(highest, limit or 0)
    side = draw(st.sampled_from((None, {}, {"cpu": "100m"})))
    beside = [] if side is None else [{**build.container("native", side), "restartPolicy": "Always"}]
    total += 100 if side else 0
    if draw(st.booleans()):
        beside.append(build.container("first", {"cpu": "1500m"}))
        total = max(total, 1600 if side else 1500)
    request = draw(st.none() | st.integers(max(1, total), total + 2000))
    limit = draw(st.none() | st.integers(max(request or total, highest, 1), 8000))
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


@given(pod=drawn(), drawn_spec=SPECS)
def test_without_room_for_raises_every_resize_is_accepted_and_decreases_come_through(
    pod: tuple[dict[str, Any], list[Any], list[Any], dict[str, Any]], drawn_spec: dict[str, Any]
) -> None:
    whole, containers, init, targets = pod
    inputs = build.in_place(objects(whole, containers, targets, spec_of(drawn_spec), init))
    assert inputs.workload is not None
    created = build.pod("web-1", containers=containers, change={"spec": {"initContainers": init}})
    own = whole_of(inputs.workload.spec.template.spec) if whole else None
    created = structs.replace(created, spec=structs.replace(created.spec, resources=own))
    had, decision = created.spec, None
    for second in range(12):
        inputs = replace(inputs, pods=(created,))
        decision = build.decided(inputs, build.at(seconds=second))
        inputs = replace(inputs, hvpa=build.with_status(inputs.hvpa, decision.status))
        for resize in decision.resizes:
            created = after(created, resize.body)
            assert is_accepted(created.spec), created.spec
        if not any(now > then for now, then in zip(cpus(created.spec), cpus(had), strict=True)):
            had = created.spec
        created = without_room(created, had)
    assert decision is not None
    assert decision.resizes == ()
    assert decision.status.actuation is not None
    # A resize can't remove a request that it has added.
    if all(one["resources"]["requests"] for one in containers) and not decision.status.actuation.infeasible:
        assert all(now >= then for now, then in zip(cpus(created.spec), cpus(had), strict=True))


def cpus(spec: PodSpec) -> list[int]:
    """The CPU requests of the containers, and of the pod."""
    own = [one.resources for one in spec.containers] + ([spec.resources] if spec.resources else [])
    return [amounts(one.requests).get("cpu", 0) for one in own]


def without_room(pod: Pod, had: PodSpec) -> Pod:
    """The pod as the kubelet reports it, if its node has no room for more than it `had`."""
    reported = [
        {"name": one.name, "resources": {"requests": one.resources.requests, "limits": one.resources.limits}}
        for one in had.containers
    ]
    conditions = [resize_condition("Pending", "Deferred", generation=0)] if had != pod.spec else []
    status = build.pod(change={"status": {"containerStatuses": reported, "conditions": conditions}}).status
    return structs.replace(pod, status=structs.replace(status, resources=had.resources))


def after(pod: Pod, body: Mapping[str, Any]) -> Pod:
    """The pod once it has been resized."""
    changed = {one["name"]: one["resources"] for one in body["spec"].get("containers", ())}
    assert changed or "resources" in body["spec"]
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


@pytest.mark.parametrize("in_place", [True, False])
@given(
    request=st.integers(10, 4000),
    limit=st.none() | st.integers(1, 3),
    target=st.integers(10, 8000),
    used=st.integers(1, 200),
    drawn_spec=SPECS,
)
def test_a_pod_whose_only_container_has_no_request_is_scaled_like_that_container(
    in_place: bool, request: int, limit: int | None, target: int, used: int, drawn_spec: dict[str, Any]
) -> None:
    """With `blend: Trajectory`, the HPA's utilization is one of the pod's request."""
    size = pair({"cpu": f"{request}m"}, None if limit is None else {"cpu": f"{request * limit}m"})
    decided = {}
    for own, app in ((size, APP), (None, {**APP, "resources": size})):
        pods = [
            build.pod(f"web-{number}", containers=[app], change={"spec": {"resources": own}})
            for number in range(2)
        ]
        measured = jointly.utilization("cpu", 50, used, f"{request * used // 100}m")
        inputs = build.objects(
            build.hvpa(spec_of(drawn_spec)),
            build.workload(2, [app], {"spec": {"template": {"spec": {"resources": own}}}}),
            jointly.hpa(2, measured),
            build.vpa({"app": {"cpu": f"{target}m"}}),
            pods,
        )
        decision = build.decided(inputs, resizes=in_place)
        decided[own is None] = (
            build.counts(decision).target,
            decision.containers["app" if own is None else SHARED],
            [(entry.reason, entry.wanted, entry.until) for entry in decision.blocked],
        )
    assert decided[True] == decided[False]


# --- memory that a runtime reads when it starts ----------------------------------------------------------------------
JAVA: Final = {"runtimes": [{"container": "app", "kind": "Java"}]}
HEAP: Final = {"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-Xmx512m"}]}


def in_place(
    whole: Mapping[str, Any],
    containers: Sequence[Mapping[str, Any]],
    targets: Mapping[str, Mapping[str, Any]],
    runtimes: Mapping[str, Any],
) -> Decision:
    """The first decision about a running pod with resources of its own."""
    running = build.pod("web-1", containers=containers, change={"spec": {"resources": dict(whole)}})
    spec = build.merged(EAGER, runtimes)
    return build.decided(build.in_place(objects(whole, containers, targets, spec, pods=[running])))


@pytest.mark.parametrize(
    ("runtimes", "expected"),
    [
        (JAVA, pair({"cpu": "2"})),
        ({}, pair({"cpu": "2", "memory": "2G"}, {"memory": "4G"})),
    ],
)
def test_the_pod_keeps_the_memory_that_its_container_keeps(
    runtimes: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    size = {"cpu": "1", "memory": "1G"}
    whole, containers = pair(size, {"memory": "2G"}), [build.container("app", size)]
    decision = in_place(whole, containers, {"app": {"cpu": "2", "memory": "2G"}}, runtimes)
    (resize,) = decision.resizes
    body: Any = resize.body["spec"]
    assert body["resources"] == expected
    assert body["containers"][0]["resources"]["requests"] == expected["requests"]


@pytest.mark.parametrize(("kept", "memory"), [("1G", "1512M"), ("2G", "2512M")])
def test_the_pod_grows_by_what_its_other_containers_need(kept: str, memory: str) -> None:
    """The app is to have 2G, and the other container 512M instead of 256M."""
    containers = [build.container("app", {"memory": kept}), build.container("side", {"memory": "256M"})]
    whole = pair({"memory": {"1G": "1256M", "2G": "2256M"}[kept]})
    targets = {"app": {"memory": "2G"}, "side": {"memory": "512M"}}
    (resize,) = in_place(whole, containers, targets, JAVA).resizes
    body: Any = resize.body["spec"]
    assert body["resources"] == pair({"memory": memory})
    assert [entry["name"] for entry in body["containers"]] == ["side"]


def test_what_containers_share_has_room_for_their_heaps() -> None:
    containers = [build.merged(APP, HEAP), SIDE]
    targets = {"app": {"memory": "100M"}, "side": {"memory": "100M"}}
    for runtimes, memory in ((JAVA, "640Mi"), ({}, "200M")):
        spec = build.merged(EAGER, runtimes)
        decision = build.decided(objects(pair({"memory": "1G"}), containers, targets, spec))
        assert template(decision) == {"": pair({"memory": memory})}


def test_a_runtime_that_shares_the_memory_of_its_pod_is_reported() -> None:
    spec = build.merged(EAGER, JAVA)
    for resource, reported in (("memory", True), ("cpu", False)):
        decision = build.decided(objects(pair({resource: "1G"}), [APP], {"app": {resource: "1G"}}, spec))
        reason, message = active(decision)
        assert (reason == "RuntimeMismatch") is reported
        assert ("app shares the pod's memory, which is resized in place" in message) is reported


# --- what is known of the containers that share ----------------------------------------------------------------------
def test_memory_that_one_of_them_ran_out_of_is_raised_for_the_pod_at_once() -> None:
    whole, containers = pair({"memory": "1Gi"}, {"memory": "1Gi"}), [APP, SIDE]
    killed = build.oom_killed(build.at(minutes=-1), of="side", containers=containers)
    killed = structs.replace(killed, spec=structs.replace(killed.spec, resources=Resources(**whole)))
    targets = {"app": {"memory": "700Mi"}, "side": {"memory": "300Mi"}}
    decision = build.decided(objects(whole, containers, targets, pods=[killed]))
    assert template(decision) == {"": pair({"memory": "1288491k"}, {"memory": "1288491k"})}


def test_the_shortest_history_of_them_holds_back_a_smaller_size() -> None:
    spec = build.merged(EAGER, {"vpa": {"scaleDown": {"minHistory": "24h"}}})
    known = build.vpa(
        {"app": {"cpu": "100m"}, "side": {"cpu": "100m"}},
        {"status": {"recommendation": {"containerRecommendations": [
            {"containerName": "app", "target": {"cpu": "100m"}, "upperBound": {"cpu": "110m"}},
            {"containerName": "side", "target": {"cpu": "100m"}, "upperBound": {"cpu": "2500m"}},
        ]}}},
    )  # fmt: skip
    inputs = replace(objects(pair({"cpu": "1"}), [APP, SIDE], {}, spec), vpas=(known,))
    decision = build.decided(inputs)
    assert decision.workload_patch is None
    reason, message = active(decision)
    assert (reason, SHARED in message) == ("LostHistory", True)


def test_their_bounds_are_added() -> None:
    bounds = {"minAllowed": {"cpu": "300m"}, "maxAllowed": {"cpu": "400m"}}
    spec = build.merged(EAGER, policy(containerName="*", **bounds))
    for target, total in (("100m", "600m"), ("350m", "700m"), ("900m", "800m")):
        targets = {"app": {"cpu": target}, "side": {"cpu": target}}
        decision = build.decided(objects(pair({"cpu": "1"}), [APP, SIDE], targets, spec))
        assert template(decision) == {"": pair({"cpu": total})}


def test_the_uncapped_targets_are_added() -> None:
    targets = {"app": {"cpu": "1"}, "side": {"cpu": "500m"}}
    capped = [
        {"containerName": "app", "target": {"cpu": "1"}, "uncappedTarget": {"cpu": "3"}},
        {"containerName": "side", "target": {"cpu": "500m"}, "uncappedTarget": {"cpu": "500m"}},
    ]
    known = build.vpa(targets, {"status": {"recommendation": {"containerRecommendations": capped}}})
    whole = pair({"cpu": "1500m"})
    pods = [build.pod("web-1", containers=[APP, SIDE], change={"spec": {"resources": whole}})]
    inputs = objects(whole, [APP, SIDE], targets, EAGER, pods=pods)
    decision = build.decided(replace(inputs, vpas=(known,)))
    message = build.condition(decision, "Ready").message
    assert "(shared) cpu: needs about 3500m, but the VPA's recommender recommends at most 1500m" in message


@pytest.mark.parametrize(
    ("init", "targets", "named"),
    [
        ([], {"app": {"cpu": "2"}}, "app, side"),
        ([], {"app": {"cpu": "2"}, "side": {"cpu": "0"}}, "app, side"),
        (
            [{**build.container("native", {}), "restartPolicy": "Always"}],
            {"app": {"cpu": "2"}, "side": {"cpu": "1"}},
            "app, side, native",
        ),
    ],
)
def test_without_a_target_for_each_of_them_their_part_stays(
    init: list[Any], targets: dict[str, Any], named: str
) -> None:
    decision = build.decided(objects(pair({"cpu": "1"}), [APP, SIDE], targets, EAGER, init))
    reason, message = active(decision)
    assert reason == "PodLevelResources"
    assert message.startswith(f"cpu: {named} share the pod's request (spec.template.spec.resources)")
    assert decision.containers[SHARED].requests == {"cpu": 1000}


def test_what_the_kubelet_reads_from_a_cgroup_is_the_size_of_the_spec() -> None:
    """Without the feature, the kubelet reports no size of the pod; with it, a rounded one."""
    whole = pair({"cpu": "1", "memory": "1G"}, {"cpu": "2", "memory": "1G"})
    spec = build.merged(EAGER, {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}})
    reports: dict[str, Any] = {
        "1/1": pair({"cpu": "974m", "memory": "1G"}, {"cpu": "2", "memory": "999997440"}),
        "0/1": pair({"cpu": "500m", "memory": "1G"}, {"cpu": "1", "memory": "500M"}),
    }
    for resized, report in reports.items():
        change = {"spec": {"resources": whole}, "status": {"resources": report}}
        pods = [build.pod("web-1", containers=[APP], change=change)]
        targets = {"app": {"cpu": "1", "memory": "1G"}}
        decision = build.decided(objects(whole, [APP], targets, spec, pods=pods))
        assert decision.resizes == ()
        assert decision.status.actuation is not None
        assert decision.status.actuation.resized == resized


def test_a_canary_s_memory_that_rose_may_run_out_again() -> None:
    """A container that shares the pod's memory has no size of its own."""
    strategy = {"type": "InPlace", "canary": {"pods": 1, "duration": "5m"}}
    spec = build.merged(EAGER, {"updateStrategy": strategy, "hpa": {"deploy": False}})
    whole = pair({"memory": "1G"})
    inputs = objects(whole, [APP], {"app": {"memory": "2G"}}, spec)
    decision = build.decided(inputs)
    size = pair({"memory": "2G"})
    killed = build.oom_killed(build.at(seconds=30), containers=[APP])
    killed = structs.replace(killed, spec=structs.replace(killed.spec, resources=Resources(**size)))
    tried = replace(inputs, hvpa=build.with_status(inputs.hvpa, decision.status), pods=(killed,))
    later = build.decided(tried, build.at(minutes=1))
    assert later.status.rolled_back is None


def test_new_pods_and_running_ones_get_the_pods_own_amounts() -> None:
    whole = pair({"cpu": "1", "memory": "1G"}, {"cpu": "2", "memory": "1G"})
    containers = [build.container("app", {"cpu": "300m"}), SIDE]
    pods = [build.pod("web-1", containers=containers, change={"spec": {"resources": whole}})]
    targets = {"app": {"cpu": "900m", "memory": "2G"}, "side": {"cpu": "100m", "memory": "500M"}}
    inputs = objects(whole, containers, targets, EAGER, pods=pods, creation_sizes=())
    decision = build.decided(inputs, resizes=True)
    tried = replace(inputs, hvpa=build.with_status(inputs.hvpa, decision.status))
    later = build.decided(tried, build.at(seconds=10), resizes=True)
    assert later.creation_sizes == {"Deployment.apps/web": "web; (pod) 1: 2500M:2500M; app 900m: :"}
    (resize,) = later.resizes
    assert resize.body["spec"] == {
        "containers": [{"name": "app", "resources": {"requests": {"cpu": "900m"}}}],
        "resources": {"requests": {"memory": "2500M"}, "limits": {"memory": "2500M"}},
    }


def test_the_pod_requests_what_its_init_containers_need() -> None:
    init = [
        {**build.container("native", {"cpu": "200m"}), "restartPolicy": "Always"},
        build.container("first", {"cpu": "600m"}),
    ]
    for containers in ([APP], [build.container("app", {"cpu": "1"})]):
        decision = build.decided(
            objects(pair({"cpu": "2"}), containers, {"app": {"cpu": "10m"}}, EAGER, init)
        )
        assert template(decision)[""] == pair({"cpu": "800m" if containers == [APP] else "1010m"})


def test_a_guaranteed_pod_stays_guaranteed_while_its_memory_limit_falls_in_steps() -> None:
    whole = pair({"cpu": "1", "memory": "1G"}, {"cpu": "1", "memory": "1G"})
    containers = [build.container("app", {"memory": "900M"}, {"memory": "1G"})]
    pods = [build.pod("web-1", containers=containers, change={"spec": {"resources": whole}})]
    targets = {"app": {"memory": "100M"}}
    inputs = objects(whole, containers, targets, EAGER, pods=pods)
    decision = build.decided(inputs, resizes=True)
    tried = replace(inputs, hvpa=build.with_status(inputs.hvpa, decision.status))
    sizes, later = [], decision
    for second in range(1, 12):
        later = build.decided(tried, build.at(seconds=second), resizes=True)
        for resize in later.resizes:
            tried = replace(tried, pods=(after(tried.pods[0], resize.body),))
        own = tried.pods[0].spec.resources
        assert own is not None
        assert own.requests["memory"] == own.limits["memory"]
        sizes.append(amount_of("memory", own.limits["memory"]))
    assert later.resizes == ()
    assert sizes[:2] == [800 * 10**6, 640 * 10**6]
    assert sizes[-1] == 200 * 10**6


def test_saturated_pods_are_those_at_the_pods_own_limit() -> None:
    """With `blend: Trajectory`: pods that use their whole limit need more than they use."""
    size = pair({"cpu": "1"}, {"cpu": "1"})
    replicas = []
    for used in (90, 100):
        pods = [
            build.pod(f"web-{number}", containers=[APP], change={"spec": {"resources": size}})
            for number in range(2)
        ]
        measured = jointly.utilization("cpu", 100, used, f"{10 * used}m")
        inputs = build.objects(
            build.hvpa({**EAGER, "blend": "Trajectory", "weightBasedScalingIntervals": [{"vpaWeight": 0}]}),
            build.workload(2, [APP], {"spec": {"template": {"spec": {"resources": size}}}}),
            jointly.hpa(2, measured),
            build.vpa({"app": {"cpu": "1"}}),
            pods,
        )
        replicas.append(build.counts(build.decided(inputs)).recommended)
    assert replicas == [2, 3]


@pytest.mark.parametrize(
    ("shared", "cpu"),
    [
        ({}, 1000),  # the pod's own request
        ({SHARED: ResourceRequirements({"cpu": 700}, {})}, 700 + 300 + 200 + 50),
    ],
)
def test_a_pod_requests_its_own_amount_or_the_sum_of_its_containers_and_sidecars(
    shared: dict[str, ResourceRequirements], cpu: int
) -> None:
    sidecar = build.container("proxy", {"cpu": "50m", "memory": "1Gi"}) | {"restartPolicy": "Always"}
    template = {"resources": {"requests": {"cpu": "1"}}, "initContainers": [build.container("init"), sidecar]}
    spec = build.workload(1, change={"spec": {"template": {"spec": template}}}).spec.template.spec
    sizes = {"app": ResourceRequirements({"cpu": 300}, {}), "job": ResourceRequirements({}, {"cpu": 200})}
    assert pod_request(spec, "cpu", {**sizes, **shared}) == cpu
    assert pod_request(spec, "memory", sizes) == 0 + GIB
