"""Rollouts and starving containers (DESIGN 6.2, 6.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from builders import build
from builders.build import LONG_AGO, at, stamp
from hvpa.api.objects.read_models import Meta, Pod
from hvpa.core.model import PodSize, PodTotal
from hvpa.core.path.path import ResourceKey
from hvpa.core.workload.rollout import rollout_complete, see_pods

HVPA = Meta(name="web", namespace="default")


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


def test_pods_are_counted_by_state() -> None:
    going = {"metadata": {"deletionTimestamp": LONG_AGO}}
    pods = [
        build.pod("a"),
        build.pod("b", change={"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        build.pod("c", ready=False),
        build.pod("d", ready=False, change={"status": {"phase": "Pending", "conditions": []}}),
        build.pod("e", change=going),
        build.pod(
            "f",
            change={
                "status": {
                    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(at())}]
                }
            },
        ),
    ]
    seen = see_pods(HVPA, pods, build.workload(), None)
    assert (seen.ready, seen.running) == (3, 4)
    assert seen.last_ready_at == at()
    assert see_pods(HVPA, [], build.workload(), None).last_ready_at is None


def terminated(reason: str, at_: str | None) -> dict[str, Any]:
    return {"terminated": {"reason": reason, **({"finishedAt": at_} if at_ else {})}}


def pod(status: Mapping[str, Any], containers: list[dict[str, Any]] | None = None) -> Pod:
    return build.pod(change={"status": status}, containers=containers)


def killed(
    reason: str = "OOMKilled", when: str | None = "2026-11-21T09:50:00Z", field: str = "lastState"
) -> Any:
    return {"containerStatuses": [{"name": "app", field: terminated(reason, when)}]}


def evicted(message: str, **more: Any) -> dict[str, Any]:
    return {"phase": "Failed", "reason": "Evicted", "message": message, **more}


LOW = "The node was low on resource: memory. "
USING = "Threshold quantity: 100Mi, available: 9Mi. Container app was using 900Mi, request is 1Gi, has larger usage."
SMALLER = [build.container(requests={"cpu": "1", "memory": "512Mi"})]


@pytest.mark.parametrize(
    ("status", "containers", "expected"),
    [
        pytest.param(killed(), None, {"app"}, id="killed before its restart"),
        pytest.param(killed(field="state"), None, {"app"}, id="killed and not restarted yet"),
        pytest.param(killed(reason="Error"), None, set(), id="ended for another reason"),
        pytest.param(killed(when="2026-11-21T09:30:00Z"), None, set(), id="before the last vertical scaling"),
        pytest.param(killed(when="2026-11-21T09:40:00Z"), None, set(), id="at that instant is before"),
        pytest.param(killed(when=None), None, set(), id="at an unknown time: when the pod started, long ago"),
        pytest.param(killed(), SMALLER, set(), id="a pod that runs other resources than the template's"),
        pytest.param({"containerStatuses": [{"name": "app"}]}, None, set(), id="running since ever"),
        pytest.param(
            {"containerStatuses": [{"name": "istio", "lastState": terminated("OOMKilled", None)}]},
            None,
            set(),
            id="a container that the template does not have",
        ),
        pytest.param(
            evicted(LOW + USING), None, {"app"}, id="evicted, and named as the one above its request"
        ),
        pytest.param(evicted(LOW), None, {"app"}, id="evicted, none named: all of the pod"),
        pytest.param(
            evicted("The node was low on resource: [MemoryPressure]. "),
            None,
            {"app"},
            id="the message of old kubelets",
        ),
        pytest.param(
            evicted("The node was low on resource: ephemeral-storage. "),
            None,
            set(),
            id="evicted for its disk",
        ),
        pytest.param({**evicted(LOW), "reason": "NodeLost"}, None, set(), id="failed for another reason"),
        pytest.param({**evicted(LOW), "phase": "Running"}, None, set(), id="not evicted at all"),
        pytest.param(evicted(LOW), SMALLER, set(), id="evicted with other resources"),
    ],
)
def test_containers_that_starve(
    status: Mapping[str, Any], containers: list[dict[str, Any]] | None, expected: set[str]
) -> None:
    ended = {
        "conditions": [
            {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2026-11-21T09:55:00Z"}
        ]
    }
    found = see_pods(HVPA, [pod({**ended, **status}, containers)], build.workload(), since=at(minutes=-20))
    assert set(found.starving) == expected


def test_when_it_was_is_the_latest_that_is_known() -> None:
    early, late = killed(when="2026-11-21T09:50:00Z"), killed(when="2026-11-21T09:55:00Z")
    for pods in ([pod(early), pod(late)], [pod(late), pod(early)]):
        assert see_pods(HVPA, pods, build.workload(), None).starving == {"app": at(minutes=-5)}


def test_an_evicted_pod_ended_when_its_containers_did_or_else_when_it_started() -> None:
    status = evicted(
        LOW, conditions=[], containerStatuses=[{"name": "app", "state": terminated("Error", stamp(at()))}]
    )
    assert see_pods(HVPA, [pod(status)], build.workload(), None).starving == {"app": at()}
    running = evicted(LOW, conditions=[], containerStatuses=[{"name": "app"}], startTime=stamp(at(hours=-3)))
    assert see_pods(HVPA, [pod(running)], build.workload(), None).starving == {"app": at(hours=-3)}
    started = evicted(LOW, conditions=[], startTime=stamp(at(hours=-1)))
    assert see_pods(HVPA, [pod(started)], build.workload(), None).starving == {"app": at(hours=-1)}
    created = build.pod(
        change={
            "metadata": {"creationTimestamp": stamp(at(hours=-2))},
            "status": {**evicted(LOW, conditions=[]), "startTime": None},
        }
    )
    assert see_pods(HVPA, [created], build.workload(), None).starving == {"app": at(hours=-2)}
    unknown = build.pod(change={"status": {**evicted(LOW, conditions=[]), "startTime": None}})
    assert see_pods(HVPA, [unknown], build.workload(), None).starving == {}


@pytest.mark.parametrize(
    ("template", "own", "expected"),
    [
        pytest.param(
            {"requests": {"memory": "1Gi"}},
            {"requests": {"memory": "1024Mi"}},
            True,
            id="the same, written otherwise",
        ),
        pytest.param(
            {"requests": {"memory": "1Gi"}},
            {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}},
            True,
            id="a limit that a LimitRange filled in",
        ),
        pytest.param(
            {"limits": {"memory": "1Gi"}},
            {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}},
            True,
            id="a request that follows from the limit",
        ),
        pytest.param(
            {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}},
            {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}},
            False,
            id="another limit",
        ),
        pytest.param(
            {"requests": {"cpu": "2", "memory": "1Gi"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            False,
            id="other CPU",
        ),
        pytest.param({"requests": {"memory": "1Gi"}}, {}, False, id="nothing at all"),
        pytest.param({}, {"requests": {"memory": "1Gi"}}, True, id="a template that asks for nothing"),
    ],
)
def test_whether_a_pod_runs_the_templates_resources(
    template: dict[str, Any], own: dict[str, Any], expected: bool
) -> None:
    workload = build.workload(containers=[{"name": "app", "resources": template}])
    found = see_pods(HVPA, [pod(killed(), [{"name": "app", "resources": own}])], workload, None)
    assert ("app" in found.starving) is expected


# --- what joint decisions ask for as well ----------------------------------------------------------------------------
CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")


def sized(name: str, cpu: str | None, ready: bool = True, change: Mapping[str, Any] | None = None) -> Pod:
    requests = {} if cpu is None else {"cpu": cpu}
    return build.pod(name, ready, change, [build.container(requests=requests)])


def sizes(*pods: Pod) -> dict[ResourceKey, PodSize]:
    return dict(see_pods(HVPA, pods, build.workload(), None, sized=True).sizes)


def test_the_least_that_pods_request_and_the_mean_of_the_ready_ones() -> None:
    assert sizes(sized("a", "1"), sized("b", "2"), sized("c", "2")) == {CPU: PodSize(1000, 1667)}
    assert sizes(sized("a", "1", ready=False), sized("b", "3"), sized("c", "2")) == {CPU: PodSize(1000, 2500)}
    assert sizes(sized("a", "1", ready=False), sized("b", "2", ready=False)) == {CPU: PodSize(1000, 1500)}
    no_condition = sized("b", "2", change={"status": {"conditions": []}})
    assert sizes(sized("a", "1"), no_condition) == {CPU: PodSize(1000, 1000)}


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
    assert sizes(*pods) == {CPU: PodSize(1000, 1000)}


def test_a_missing_request_is_the_limit_and_each_container_counts_for_itself() -> None:
    containers = [
        build.container("app", {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}),
        build.container("side", {"cpu": "100m"}),
    ]
    assert sizes(build.pod(containers=containers)) == {
        CPU: PodSize(1000, 1000),
        MEMORY: PodSize(build.GIB, build.GIB),
        ResourceKey("side", "cpu"): PodSize(100, 100),
    }


def test_since_when_pods_are_ready_in_order() -> None:
    def since(name: str, seconds: float, ready: bool = True) -> Pod:
        told = {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(at(seconds=seconds))}
        return build.pod(name, change={"status": {"conditions": [told]}})

    unknown = build.pod("e", change={"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    pods = [since("a", -5), since("b", -60), since("c", -30, ready=False), since("d", -20), unknown]
    found = see_pods(HVPA, pods, build.workload(), None, sized=True)
    assert found.ready_since == (at(seconds=-60), at(seconds=-20), at(seconds=-5))
    assert found.last_ready_at == at(seconds=-5)


def test_other_decisions_are_not_told() -> None:
    found = see_pods(HVPA, [sized("a", "1")], build.workload(), None)
    assert (found.ready, found.sizes, found.ready_since) == (1, {}, ())


# --- what pods request as a whole, as the HPA counts it ---------------------------------------------------------------
def totals(*specs: Mapping[str, Any]) -> tuple[PodTotal, PodTotal]:
    pods = [build.pod(f"web-{index}", change={"spec": spec}) for index, spec in enumerate(specs)]
    found = see_pods(HVPA, pods, build.workload(), None, sized=True).totals
    return found["cpu"], found["memory"]


SIDECAR = {**build.container("proxy", {"cpu": "100m", "memory": "1Gi"}), "restartPolicy": "Always"}
SETUP = build.container("setup", {"cpu": "8", "memory": "8Gi"})


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        pytest.param({}, PodTotal(1000), PodTotal(build.GIB), id="its containers"),
        pytest.param(
            {"initContainers": [SIDECAR]}, PodTotal(1100), PodTotal(2 * build.GIB), id="and native sidecars"
        ),
        pytest.param(
            {"initContainers": [SETUP]}, PodTotal(1000), PodTotal(build.GIB), id="no init container"
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "3"}}},
            PodTotal(3000, True),
            PodTotal(build.GIB),
            id="the pod's own request, where it has one",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "3"}}, "initContainers": [SETUP]},
            PodTotal(3000, True),
            PodTotal(8 * build.GIB),
            id="with it, a resource that it leaves out is at least that of the greediest init container",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "3"}}}, PodTotal(1000), PodTotal(build.GIB), id="no limit of it"
        ),
        pytest.param(
            {"containers": [build.container(), build.container("other", {"memory": "1Gi"})]},
            PodTotal(1000),
            PodTotal(2 * build.GIB),
            id="one without a request, for which the HPA has no utilization",
        ),
        pytest.param(
            {"containers": [build.container(requests={"cpu": "a lot", "memory": "1Gi"})]},
            PodTotal(0),
            PodTotal(build.GIB),
            id="one that can't be read",
        ),
        pytest.param(
            {"containers": [build.container(requests={"cpu": "1", "memory": "1100m"})]},
            PodTotal(1000),
            PodTotal(2),
            id="parts of a byte, rounded up",
        ),
        pytest.param(
            {"ephemeralContainers": [{"name": "debugger"}]},
            PodTotal(1000),
            PodTotal(build.GIB),
            id="no ephemeral container",
        ),
    ],
)
def test_what_a_pod_requests_as_the_hpa_counts_it(
    spec: Mapping[str, Any], cpu: PodTotal, memory: PodTotal
) -> None:
    assert totals(spec) == (cpu, memory)


def test_while_pods_differ_their_mean_counts() -> None:
    with_sidecar = {"initContainers": [SIDECAR]}
    assert totals({}, {}, with_sidecar)[0] == PodTotal(1034)
    assert totals({}, {"resources": {"requests": {"cpu": "3"}}})[0] == PodTotal(2000, True)


def test_equal_pods_share_a_spec_and_count_each_for_itself() -> None:
    """As the local copy holds them."""
    one, other = build.pod("a"), build.pod("b", ready=False)
    other = structs.replace(other, spec=one.spec)
    found = see_pods(HVPA, [one, other, one], build.workload(), None, sized=True)
    assert found.sizes[CPU] == PodSize(1000, 1000)
    assert found.totals["cpu"] == PodTotal(1000)


def test_names_of_containers_and_native_sidecars() -> None:
    spec = {"initContainers": [SIDECAR, SETUP], "containers": [build.container(requests={})]}
    found = see_pods(HVPA, [build.pod(change={"spec": spec})], build.workload(), None, sized=True)
    assert found.containers == {"app", "proxy"}
    assert found.sizes.keys() == {ResourceKey("proxy", "cpu"), ResourceKey("proxy", "memory")}
