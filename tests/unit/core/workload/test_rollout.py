"""Rollouts, and what is seen of the pods (DESIGN 6.2)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec import structs

from builders import build
from builders.build import LONG_AGO, NOW, at, stamp
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import PodsSeen, PodTotal
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import LAST_INSTANT, Clock
from hvpa.core.workload.pod_owner import PodsByOwner
from hvpa.core.workload.rollout import rollout_complete, rollout_goes_on, see_pods
from hvpa.recommend.hpa.inputs import PodReading
from hvpa.recommend.hpa.pods import TargetPods


def updating(strategy: Mapping[str, Any], updated: int) -> dict[str, Any]:
    return {"spec": {"updateStrategy": strategy}, "status": {"updatedReplicas": updated}}


COMPLETE: dict[str, Mapping[str, Any]] = {
    "all updated and available": {},
    "a StatefulSet without partition": {"spec": {"updateStrategy": {"type": "RollingUpdate"}}},
    "pods below a partition stay as they are": updating({"rollingUpdate": {"partition": 2}}, 1),
    "a partition beyond all pods": updating({"rollingUpdate": {"partition": 9}}, 0),
    "OnDelete replaces no pod by itself": updating({"type": "OnDelete"}, 0),
}
INCOMPLETE: dict[str, Mapping[str, Any]] = {
    "observedGeneration behind": {"metadata": {"generation": 2}},
    "not all updated": {"status": {"updatedReplicas": 2}},
    "not all available": {"status": {"availableReplicas": 2}},
    "old pods still there": {"status": {"replicas": 4}},
    "a pod not yet created": {"status": {"replicas": 2}},
    "pods above a partition do not stay": updating({"rollingUpdate": {"partition": 1}}, 1),
    "an empty rolling update has no partition": updating({"rollingUpdate": {}}, 2),
}


@pytest.mark.parametrize("change", COMPLETE.values(), ids=COMPLETE)
def test_a_rollout_is_complete_when_all_is_observed_updated_and_available(change: Mapping[str, Any]) -> None:
    assert rollout_complete(build.workload(3, change=change))


@pytest.mark.parametrize("change", INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_rollout_is_not_complete_where_something_of_it_is_missing(change: Mapping[str, Any]) -> None:
    assert not rollout_complete(build.workload(3, change=change))


UNREADY, OLD, YOUNG = {"status": {"availableReplicas": 2}}, at(hours=-3), at(minutes=-4)


@pytest.mark.parametrize(
    ("change", "pods", "goes_on_until"),
    [
        pytest.param({}, [(True, YOUNG)], None, id="it is complete"),
        pytest.param(UNREADY, [(True, YOUNG), (False, OLD)], None, id="an old pod is not ready"),
        pytest.param(UNREADY, [(True, OLD), (False, YOUNG)], at(minutes=6), id="a new pod starts"),
        pytest.param(
            {"status": {"updatedReplicas": 2}},
            [(True, YOUNG), (False, OLD)],
            at(minutes=6),
            id="pods are replaced",
        ),
        pytest.param(
            {"status": {"updatedReplicas": 2, "availableReplicas": 1}},
            [(True, OLD), (False, OLD)],
            None,
            id="no pod has been replaced for 10 minutes",
        ),
        pytest.param({"status": {"replicas": 2}}, [(True, OLD)], None, id="no pod can be created"),
        pytest.param(UNREADY, [(True, OLD)], LAST_INSTANT, id="ready pods become available by themselves"),
        pytest.param(
            UNREADY | {"metadata": {"generation": 2}},
            [(False, OLD)],
            LAST_INSTANT,
            id="a new spec is not seen yet",
        ),
        pytest.param(
            UNREADY | {"spec": {"progressDeadlineSeconds": 300}},
            [(False, YOUNG)],
            at(minutes=1),
            id="a deadline of its own",
        ),
        pytest.param(
            UNREADY | {"spec": {"progressDeadlineSeconds": 2**31 - 1}},
            [(False, OLD)],
            LAST_INSTANT,
            id="no deadline",
        ),
    ],
)
def test_a_rollout_goes_on_while_pods_are_created(
    change: Mapping[str, Any], pods: list[tuple[bool, dt.datetime]], goes_on_until: dt.datetime | None
) -> None:
    own = [
        build.pod(f"web-{number}", ready=ready, change={"metadata": {"creationTimestamp": stamp(created)}})
        for number, (ready, created) in enumerate(pods)
    ]
    workload = build.workload(3, change=change)
    assert rollout_goes_on(workload, own, Clock(NOW)) == (goes_on_until is not None)
    if goes_on_until is not None and goes_on_until != LAST_INSTANT:
        assert rollout_goes_on(workload, own, Clock(goes_on_until - dt.timedelta(seconds=1)))
        assert not rollout_goes_on(workload, own, Clock(goes_on_until))


def seen(*pods: Pod, sized: bool = False) -> PodsSeen:
    return see_pods(Clock(NOW), PodsByOwner(pods), build.workload(), {}, sized=sized)


def became_ready(name: str, when: dt.datetime | None, ready: bool = True) -> Pod:
    since = {} if when is None else {"lastTransitionTime": stamp(when)}
    conditions = [{"type": "Ready", "status": str(ready), **since}]
    return build.pod(name, change={"status": {"conditions": conditions}})


def test_pods_are_counted_by_state() -> None:
    pods = [
        build.pod("a"),
        became_ready("b", None),
        build.pod("c", ready=False),
        build.pod("d", ready=False, change={"status": {"phase": "Pending", "conditions": []}}),
        build.pod("e", change={"metadata": {"deletionTimestamp": LONG_AGO}}),
        became_ready("f", at()),
    ]
    pods_seen = seen(*pods)
    assert (pods_seen.ready, pods_seen.running, pods_seen.terminating) == (3, 4, 1)
    assert pods_seen.last_ready_at == at()
    assert seen().last_ready_at is None


# --- what joint decisions ask for as well ----------------------------------------------------------------------------
CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")


def sized(name: str, cpu: str | None, ready: bool = True, change: Mapping[str, Any] | None = None) -> Pod:
    requests = {} if cpu is None else {"cpu": cpu}
    return build.pod(name, ready, change, [build.container(requests=requests)])


def sizes(*pods: Pod) -> dict[ResourceKey, int]:
    return dict(seen(*pods, sized=True).sizes)


def test_what_the_ready_pods_request_in_the_mean_rounded_up() -> None:
    assert sizes(sized("a", "1"), sized("b", "2"), sized("c", "2")) == {CPU: 1667}
    assert sizes(sized("a", "1", ready=False), sized("b", "3"), sized("c", "2")) == {CPU: 2500}
    assert sizes(sized("a", "1", ready=False), sized("b", "2", ready=False)) == {CPU: 1500}
    no_condition = sized("b", "2", change={"status": {"conditions": []}})
    assert sizes(sized("a", "1"), no_condition) == {CPU: 1000}


def test_pods_that_are_gone_or_request_nothing_have_no_size() -> None:
    going = {"metadata": {"deletionTimestamp": LONG_AGO}}
    pods = [
        sized("a", "1"),
        sized("b", "500m", change=going),
        sized("c", "400m", change={"status": {"phase": "Failed"}}),
        sized("d", "300m", change={"status": {"phase": "Succeeded"}}),
        sized("e", None),
        sized("f", "a lot"),
    ]
    assert sizes(*pods) == {CPU: 1000}


def test_a_missing_request_is_the_limit_and_each_container_counts_for_itself() -> None:
    containers = [
        build.container("app", {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}),
        build.container("side", {"cpu": "100m"}),
    ]
    assert sizes(build.pod(containers=containers)) == {
        CPU: 1000,
        MEMORY: build.GIB,
        ResourceKey("side", "cpu"): 100,
    }


def test_since_when_pods_are_ready_in_order() -> None:
    times = {"a": (-5, True), "b": (-60, True), "c": (-30, False), "d": (-20, True)}
    pods = [became_ready(name, at(seconds=when), ready) for name, (when, ready) in times.items()]
    pods_seen = seen(*pods, became_ready("e", None), sized=True)
    assert pods_seen.ready_since == (at(seconds=-60), at(seconds=-20), at(seconds=-5))
    assert pods_seen.last_ready_at == at(seconds=-5)


def test_other_decisions_do_without() -> None:
    pods_seen = seen(sized("a", "1"))
    assert (pods_seen.ready, pods_seen.sizes, pods_seen.shapes, pods_seen.ready_since) == (1, {}, (), ())


# --- what pods have, by the kubelet or by their spec, whichever is less -------------------------------------------
def given(name: str, cpu: str, resources: Mapping[str, Any] | None, *conditions: Mapping[str, Any]) -> Pod:
    """A pod that requests so much CPU, and what its kubelet says of what the container has."""
    said = {} if resources is None else {"resources": resources}
    ready = {"type": "Ready", "status": "True"}
    status = {"containerStatuses": [{"name": "app", **said}], "conditions": [ready, *conditions]}
    return sized(name, cpu, change={"status": status})


def shapes(*pods: Pod) -> list[tuple[int, int, bool]]:
    """CPU of the app, number, and whether the resize is refused."""
    return [
        (shape.sizes["app"]["cpu"], shape.count, shape.refuses) for shape in seen(*pods, sized=True).shapes
    ]


TWO: dict[str, tuple[Mapping[str, Any] | None, int]] = {
    "the kubelet is too old": (None, 2000),
    "as requested": ({"requests": {"cpu": "2"}}, 2000),
    "as requested, written otherwise": ({"requests": {"cpu": "2000m"}}, 2000),
    "a rise that is under way": ({"requests": {"cpu": "1"}}, 1000),
    "a fall that is under way": ({"requests": {"cpu": "3"}}, 2000),
    "a limit alone": ({"limits": {"cpu": "1500m"}}, 1500),
    "nothing yet": ({}, 2000),
}


@pytest.mark.parametrize(("resources", "expected"), TWO.values(), ids=TWO)
def test_a_pod_has_no_more_than_the_kubelet_gave_it(
    resources: Mapping[str, Any] | None, expected: int
) -> None:
    assert shapes(given("a", "2", resources)) == [(expected, 1, False)]


def test_a_container_that_the_spec_does_not_have_counts_for_nothing() -> None:
    gone = [{"name": "gone", "resources": {"requests": {"cpu": "1"}}}]
    (shape,) = seen(sized("a", "2", change={"status": {"containerStatuses": gone}}), sized=True).shapes
    assert shape.sizes == {"app": {"cpu": 2000}}


def test_pods_that_have_the_same_are_counted_together() -> None:
    pod = given("a", "2", None)
    rises = [structs.replace(given(name, "2", {"requests": {"cpu": "1"}}), spec=pod.spec) for name in "cd"]
    like = structs.replace(given("b", "2", {"requests": {"cpu": "2"}}), spec=pod.spec)
    assert shapes(pod, like, *rises) == [(2000, 2, False), (1000, 2, False)]
    gone = sized("e", "2", change={"status": {"phase": "Failed"}})
    assert shapes(gone) == []


@pytest.mark.parametrize(
    ("resize", "expected"),
    [
        ({"type": "PodResizePending", "status": "True", "reason": "Deferred"}, True),
        ({"type": "PodResizePending", "status": "True", "reason": "Infeasible"}, True),
        ({"type": "PodResizePending", "status": "False"}, False),
        ({"type": "PodResizeInProgress", "status": "True"}, False),
    ],
)
def test_a_pod_whose_resize_is_pending_refuses_it(resize: Mapping[str, Any], expected: bool) -> None:
    small = {"requests": {"cpu": "1"}}
    pods = [given("a", "2", small, resize), given("b", "2", small)]
    assert sorted(shapes(*pods)) == ([(1000, 1, False), (1000, 1, True)] if expected else [(1000, 2, False)])


# --- which pods the HPA counts ----------------------------------------------------------------------------------------
def pod_with(
    started: float | None, status: str | None, changed: float | None = None, phase: str = "Running"
) -> Pod:
    """A pod that started, and whose readiness has been `status` since, so many seconds ago (None: not said)."""
    condition: dict[str, Any] = {"type": "Ready", "status": status}
    if changed is not None:
        condition["lastTransitionTime"] = stamp(at(seconds=-changed))
    start = None if started is None else stamp(at(seconds=-started))
    conditions = [] if status is None else [condition]
    return build.pod(change={"status": {"phase": phase, "startTime": start, "conditions": conditions}})


ALWAYS = dt.datetime.min.replace(tzinfo=dt.UTC)
COUNTED: dict[str, tuple[Pod, dt.datetime | None]] = {
    "30 s after it became ready": (pod_with(60, "True", 10), at(seconds=20)),
    "but 5 min after it started at the latest": (pod_with(295, "True", 10), at(seconds=5)),
    "an unknown readiness counts as one": (pod_with(60, "Unknown", 10), at(seconds=20)),
    "without a start, 30 s after it became ready": (pod_with(None, "True", 10), at(seconds=20)),
    "without a time, always": (pod_with(60, "True"), ALWAYS),
    "without any time, always": (pod_with(None, "True"), ALWAYS),
    "one that lost its readiness, 5 min after it started": (pod_with(3600, "False", 10), at(seconds=-3300)),
    "that lost it 30 s after it started": (pod_with(3600, "False", 3570), at(seconds=-3300)),
    "never one that was never ready": (pod_with(3600, "False", 3571), None),
    "nor one that is not known to have been": (pod_with(3600, "False"), None),
    "nor one without a start": (pod_with(None, "False", 10), None),
    "nor one without readiness": (pod_with(60, None), None),
    "nor one that does not run": (pod_with(60, "True", 10, "Pending"), None),
}


@pytest.mark.parametrize(("pod", "expected"), COUNTED.values(), ids=COUNTED)
def test_from_when_on_the_hpa_counts_the_cpu_of_a_pod(pod: Pod, expected: dt.datetime | None) -> None:
    assert seen(pod).counted_from == (() if expected is None else (expected,))


@hypothesis.given(st.sampled_from(["True", "False", "Unknown"]), st.integers(0, 700), st.integers(0, 700))
def test_the_pods_that_count_are_those_of_the_exact_model(status: str, age: int, since: int) -> None:
    """For a pod that started `age` seconds ago and whose readiness is from `since` seconds ago, measured now."""
    ready = {"type": "Ready", "status": status, "lastTransitionTime": stamp(at(seconds=-min(age, since)))}
    pod = build.pod(change={"status": {"startTime": stamp(at(seconds=-age)), "conditions": [ready]}})
    window = dt.timedelta(seconds=30)
    readings = {name: PodReading(1, NOW, window) for name in ("web-1", "another")}
    another = build.pod("another")
    groups = TargetPods([pod, another], NOW - dt.timedelta(minutes=5), window).group(readings, "cpu")
    assert Clock(NOW).count_past(seen(pod).counted_from) == ("web-1" in groups.ready)


def test_from_when_on_pods_are_counted_in_order() -> None:
    going = build.pod("c", change={"metadata": {"deletionTimestamp": LONG_AGO}})
    pods_seen = seen(pod_with(60, "True", 10), pod_with(60, "True", 20), pod_with(60, "False", 55), going)
    assert pods_seen.counted_from == (at(seconds=10), at(seconds=20))


def ended(seconds: float | None, reason: str = "Error", field: str = "lastState") -> Pod:
    """A pod whose container ended so many seconds ago (None: it is not said when)."""
    end = {"reason": reason} | ({} if seconds is None else {"finishedAt": stamp(at(seconds=-seconds))})
    status = {"name": "app", field: {"terminated": end}}
    return build.pod(change={"status": {"containerStatuses": [status]}})


def created(seconds: float, ready: float | bool) -> Pod:
    """A pod that was created so many seconds ago; ready since so many (False: not)."""
    pod = build.pod(ready=False) if ready is False else pod_with(seconds, "True", ready)
    metadata = structs.replace(pod.metadata, creation_timestamp=at(seconds=-seconds))
    return structs.replace(pod, metadata=metadata)


@pytest.mark.parametrize(
    ("pod", "failed", "unproven"),
    [
        (build.pod(), 0, 0),
        (ended(1), 1, 1),
        (ended(599, "OOMKilled"), 1, 1),
        (ended(1, field="state"), 1, 1),
        (ended(600), 0, 0),
        (ended(None), 0, 0),
        (ended(1, "Completed"), 0, 0),
        (created(60, ready=29), 0, 1),
        (created(60, ready=30), 0, 0),
        (build.pod(ready=False), 0, 0),
        (created(599, ready=False), 0, 1),
        (created(600, ready=False), 0, 0),
        (build.pod(change={"status": {"phase": "Failed"}}), 0, 0),
    ],
)
def test_pods_whose_use_is_no_measure_of_demand(pod: Pod, failed: int, unproven: int) -> None:
    pods_seen = seen(pod, build.pod("another"))
    ends = pods_seen.unproven_until
    assert (pods_seen.failed, len(ends) - Clock(NOW).count_past(ends)) == (failed, unproven)


# --- what pods request as a whole, as the HPA counts it ---------------------------------------------------------------
def totals(*specs: Mapping[str, Any]) -> tuple[PodTotal, PodTotal]:
    pods = [build.pod(f"web-{index}", change={"spec": spec}) for index, spec in enumerate(specs)]
    pod_totals = seen(*pods, sized=True).totals
    return pod_totals["cpu"], pod_totals["memory"]


SIDECAR = {**build.container("proxy", {"cpu": "100m", "memory": "1Gi"}), "restartPolicy": "Always"}
SETUP = build.container("setup", {"cpu": "8", "memory": "8Gi"})
CORE, OWN_3, GIB = PodTotal(1000), PodTotal(3000, True), PodTotal(build.GIB)
TOTALS: dict[str, tuple[dict[str, Any], PodTotal, PodTotal]] = {
    "its containers": ({}, CORE, GIB),
    "and native sidecars": ({"initContainers": [SIDECAR]}, PodTotal(1100), PodTotal(2 * build.GIB)),
    "no init container": ({"initContainers": [SETUP]}, CORE, GIB),
    "the pod's own request, where it has one": ({"resources": {"requests": {"cpu": "3"}}}, OWN_3, GIB),
    "with it, a resource that it leaves out is at least that of the greediest init container": (
        {"resources": {"requests": {"cpu": "3"}}, "initContainers": [SETUP]}, OWN_3, PodTotal(8 * build.GIB)),
    "no limit of it": ({"resources": {"limits": {"cpu": "3"}}}, CORE, GIB),
    "one without a request, for which the HPA has no utilization": (
        {"containers": [build.container(), build.container("other", {"memory": "1Gi"})]},
        CORE, PodTotal(2 * build.GIB)),
    "one that can't be read": (
        {"containers": [build.container(requests={"cpu": "a lot", "memory": "1Gi"})]}, PodTotal(0), GIB),
    "parts of a byte, rounded up": (
        {"containers": [build.container(requests={"cpu": "1", "memory": "1100m"})]}, CORE, PodTotal(2)),
    "no ephemeral container": ({"ephemeralContainers": [{"name": "debugger"}]}, CORE, GIB),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "cpu", "memory"), TOTALS.values(), ids=TOTALS)
def test_what_a_pod_requests_as_the_hpa_counts_it(
    spec: dict[str, Any], cpu: PodTotal, memory: PodTotal
) -> None:
    assert totals(spec) == (cpu, memory)


def test_while_pods_differ_their_mean_counts() -> None:
    with_sidecar = {"initContainers": [SIDECAR]}
    assert totals({}, {}, with_sidecar)[0] == PodTotal(1034)
    assert totals({}, {"resources": {"requests": {"cpu": "3"}}})[0] == PodTotal(2000, True)


def test_equal_pods_share_a_spec_and_count_each_for_itself() -> None:
    """As the local copy holds them."""
    pod, other = build.pod("a"), build.pod("b", ready=False)
    other = structs.replace(other, spec=pod.spec)
    pods_seen = seen(pod, other, pod, sized=True)
    assert pods_seen.sizes[CPU] == 1000
    assert pods_seen.totals["cpu"] == PodTotal(1000)


def test_names_of_containers_and_native_sidecars() -> None:
    spec = {"initContainers": [SIDECAR, SETUP], "containers": [build.container(requests={})]}
    pods_seen = seen(build.pod(change={"spec": spec}), sized=True)
    assert pods_seen.containers == {"app", "proxy"}
    assert pods_seen.sizes.keys() == {ResourceKey("proxy", "cpu"), ResourceKey("proxy", "memory")}


def test_pods_are_compared_with_the_template_by_amounts_however_they_are_written() -> None:
    template = [build.container(requests={"cpu": "1", "memory": "1Gi"})]
    written = [
        {"cpu": "1", "memory": "1Gi"},
        {"cpu": "1000m", "memory": "1024Mi"},
        {"cpu": "2", "memory": "1Gi"},
    ]
    pods = [
        build.pod(f"web-{n}", containers=[build.container(requests=requests)])
        for n, requests in enumerate(written)
    ]
    pods.append(build.pod("web-3", containers=[build.container("other")]))
    pods_seen = see_pods(Clock(NOW), PodsByOwner(tuple(pods)), build.workload(4, template), {})
    cpu, memory = ResourceKey("app", "cpu"), ResourceKey("app", "memory")
    assert pods_seen.living == 4
    assert pods_seen.unlike == {frozenset({cpu}): 1, frozenset({cpu, memory}): 1}
