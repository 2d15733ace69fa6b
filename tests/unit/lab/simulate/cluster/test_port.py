"""The cluster port in memory: writes are seen by the next read, and what wakes the operator."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hvpa.api.hvpa.resource import parse_spec
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import (
    Condition,
    ContainerRecommendation,
    HpaStatusRead,
    Meta,
    Recommendation,
    VpaStatusRead,
)
from hvpa.api.values.quantity import Resource
from hvpa.core.actuation.kubelet import used_at_least
from hvpa.core.gates.verdict import rollback_metrics
from hvpa.core.model import (
    DELETION_COST,
    Event,
    Involved,
    LargestNode,
    OwnedChange,
    PodCost,
    PodResize,
    ResourceRequirements,
    WorkloadPatch,
)
from hvpa.core.workload.pod_level import POD
from hvpa.core.workload.pod_owner import owns
from hvpa.reconcile.ports import Key, NodeTooSmall, WriteError
from hvpa_lab.simulate.cluster.objects import PodObjects
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.port import SimulatedCluster, VirtualClock
from hvpa_lab.simulate.model import NodeModel, WorkloadModel
from hvpa_lab.simulate.policy.hvpa import run_to_end
from tests.unit.lab.simulate import build


class Fixture:
    def __init__(
        self, model: WorkloadModel | None = None, nodes: NodeModel | None = None, **changes: Any
    ) -> None:
        document: Any = build.hvpa(**changes)["spec"]
        spec, problems = parse_spec(document)
        assert spec is not None, problems
        self.state = SimWorkload(model or build.workload(), nodes or NodeModel())
        self.events: list[Event] = []
        meta = Meta(name="web", namespace="default")
        self.cluster = SimulatedCluster(spec, meta, self.state, build.START, self.events.append)

    def do(self, coroutine: Any) -> Any:
        return run_to_end(coroutine)

    def looked(self) -> Any:
        """As the operator looks: all objects, and awake no longer."""
        self.cluster.awake = False
        objects = self.cluster.objects(self.cluster.key)
        assert objects is not None
        return objects

    def woken(self) -> bool:
        return self.cluster.changed()

    def apply(self, kind: Any) -> None:
        spec: dict[str, object] = {"maxReplicas": 5} if kind == "HorizontalPodAutoscaler" else {}
        manifest = {"kind": kind, "metadata": {"name": "web", "labels": {"a": "b"}}, "spec": spec}
        change = OwnedChange("apply", kind, "web", manifest=manifest)
        self.do(self.cluster.change_owned(Meta(), change))


def patch(**spec: object) -> WorkloadPatch:
    body = {"metadata": {"annotations": {"message": "so"}}, "spec": spec}
    return WorkloadPatch("Deployment", "web", "1", body)


def test_the_same_objects_are_read_until_something_changes() -> None:
    fixture = Fixture()
    first, second = fixture.looked(), fixture.looked()
    assert first.workload is second.workload
    assert first.pods is second.pods
    assert first.hvpa is second.hvpa
    fixture.state.scale(4, 0.0)
    third = fixture.looked()
    assert len(third.pods) == 4
    assert third.workload.spec.replicas == 4


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (NodeModel(cpu=4000, memory=2**30), LargestNode({"cpu": 4000, "memory": 2**30})),
        (NodeModel(cpu=4000), LargestNode({"cpu": 4000})),
        (NodeModel(), LargestNode(problem="the scenario's nodes have no size")),
    ],
)
def test_the_largest_node_is_that_of_the_scenario(nodes: NodeModel, expected: LargestNode) -> None:
    assert Fixture(nodes=nodes).looked().largest_node is None
    assert Fixture(nodes=nodes, vpa={"maxAllowed": "LargestNode"}).looked().largest_node == expected


def test_a_patch_of_the_workload_is_seen_at_once() -> None:
    fixture = Fixture()
    before = fixture.looked().workload
    resources = {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}}
    template = {"spec": {"containers": [{"name": "app", "resources": resources}]}}
    assert not fixture.cluster.changed()
    fixture.do(fixture.cluster.patch_workload(Meta(), patch(replicas=5, template=template)))
    assert fixture.woken()
    after = fixture.looked().workload
    assert after.spec.replicas == 5
    own = after.spec.template.spec.containers[0].resources
    assert own.requests == {"cpu": "1", "memory": "512Mi"}, "what the patch leaves out stays"
    assert own.limits == {"memory": "2Gi"}
    assert after.metadata.annotations == {"message": "so"}
    assert after.metadata.generation > before.metadata.generation
    assert after.metadata.resource_version != before.metadata.resource_version
    assert fixture.state.template["app"] == ResourceRequirements(
        {"cpu": 1000, "memory": 512 * build.MIB}, {"memory": 2048 * build.MIB}
    )


def test_patches_and_resizes_change_the_resources_of_the_pod_itself() -> None:
    own = ResourceRequirements({"cpu": 1000}, {"cpu": 2000})
    fixture = Fixture(build.workload(resources=own, replicas=1))
    wanted = {"requests": {"cpu": "1500m"}, "limits": {"cpu": "3"}}
    before = fixture.state.pods[0].resources
    fixture.do(
        fixture.cluster.resize_pods(Meta(), [PodResize("web-1", "web-1.1", {"spec": {"resources": wanted}})])
    )
    requests: dict[Resource, int] = {"cpu": 1500, "memory": 512 * build.MIB}
    after = {**before, POD: ResourceRequirements(requests, {"cpu": 3000})}
    assert fixture.state.pods[0].resources == after, "the API server sets a missing request of memory"
    fixture.do(fixture.cluster.patch_workload(Meta(), patch(template={"spec": {"resources": wanted}})))
    assert fixture.state.template[POD] == ResourceRequirements({"cpu": 1500}, {"cpu": 3000})
    seen = fixture.looked().workload.spec.template.spec
    assert (seen.resources.requests, seen.containers[0].resources.requests["cpu"]) == (
        {"cpu": "1500m"},
        "500m",
    )


def larger() -> dict[str, object]:
    resources = {"requests": {"cpu": "1"}}
    return {"spec": {"containers": [{"name": "app", "resources": resources}]}}


def cpu_of_pods(fixture: Fixture) -> list[object]:
    return [pod.spec.containers[0].resources.requests["cpu"] for pod in fixture.looked().pods]


def test_a_deployment_that_is_paused_replaces_no_pods_until_it_goes_on() -> None:
    fixture = Fixture(build.workload(replicas=4))
    fixture.do(fixture.cluster.patch_workload(Meta(), patch(paused=True)))
    fixture.do(fixture.cluster.patch_workload(Meta(), patch(template=larger())))
    before = fixture.looked().workload
    assert (before.spec.paused, before.status.updated_replicas, cpu_of_pods(fixture)) == (
        True,
        0,
        ["500m"] * 4,
    )
    fixture.do(fixture.cluster.patch_workload(Meta(), patch()))
    assert fixture.looked().workload.metadata.generation == before.metadata.generation
    fixture.do(fixture.cluster.patch_workload(Meta(), patch(paused=None)))
    after = fixture.looked().workload
    assert (after.spec.paused, after.metadata.generation) == (False, before.metadata.generation + 1)
    assert "1" in cpu_of_pods(fixture)


def test_a_stateful_set_replaces_pods_down_to_its_partition() -> None:
    fixture = Fixture(build.workload(kind="StatefulSet", replicas=4, start_up=0.0))
    strategy = {"rollingUpdate": {"partition": 3}}
    fixture.do(fixture.cluster.patch_workload(Meta(), patch(template=larger(), updateStrategy=strategy)))
    fixture.state.advance(0.0, 60.0, 0.0)
    assert sorted(cpu_of_pods(fixture), key=str) == ["1", "500m", "500m", "500m"]
    strategy = {"rollingUpdate": {"partition": 0}}
    fixture.do(fixture.cluster.patch_workload(Meta(), patch(updateStrategy=strategy)))
    fixture.state.advance(60.0, 60.0, 0.0)
    assert cpu_of_pods(fixture) == ["1"] * 4


def resize(pod: Any, **requests: str) -> PodResize:
    body = {"spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]}}
    return PodResize(pod.metadata.name, pod.metadata.uid, body)


def test_pods_are_resized_and_show_how_far_they_are() -> None:
    """One has room on the node, the next one waits, the third would never fit: the API server refuses it."""
    fixture = Fixture(build.workload(resize="InPlace", replicas=3), NodeModel(cpu=1700, count=1))
    first, second, third = fixture.looked().pods
    gone = resize(first)
    gone = PodResize(gone.pod, "another", gone.body)
    resizes = (resize(first, cpu="600m"), resize(second, cpu="800m"), resize(third, cpu="5"), gone)
    failures = fixture.do(fixture.cluster.resize_pods(Meta(), resizes))
    (failed,) = [(pod_resize.pod, type(error), str(error)) for pod_resize, error in failures]
    why = "node didn't have enough allocatable resources: cpu"
    assert failed == (resizes[2].pod, NodeTooSmall, f'pods "{resizes[2].pod}" is forbidden: {why}')
    assert fixture.woken()
    pods = fixture.looked().pods
    assert [pod.spec.containers[0].resources.requests["cpu"] for pod in pods] == ["600m", "800m", "500m"]
    has = [pod.status.container_statuses[0].resources for pod in pods]
    assert [resources and resources.requests["cpu"] for resources in has] == [None, "500m", None]
    reported = [
        [(condition.type, condition.reason) for condition in pod.status.conditions[1:]] for pod in pods
    ]
    assert reported == [[], [("PodResizePending", "Deferred")], []]
    assert all(owns(fixture.looked().workload, pod) for pod in pods)


def test_a_pod_with_a_lower_deletion_cost_goes_first() -> None:
    fixture = Fixture(build.workload(replicas=4))
    second, third = fixture.looked().pods[1:3]
    costs = [
        PodCost(pod.metadata.name, pod.metadata.uid, "", cost) for pod, cost in ((second, "-5"), (third, "7"))
    ]
    fixture.do(fixture.cluster.write_pod_costs(Meta(), costs))
    notes = [pod.metadata.annotations.get(DELETION_COST) for pod in fixture.looked().pods]
    assert notes == [None, "-5", "7", None]
    fixture.do(fixture.cluster.patch_workload(Meta(), patch(replicas=3)))
    assert [pod.metadata.annotations for pod in fixture.looked().pods] == [{}, {DELETION_COST: "7"}, {}]
    fixture.do(fixture.cluster.write_pod_costs(Meta(), [msgspec.structs.replace(costs[1], cost=None)]))
    assert [pod.metadata.annotations for pod in fixture.looked().pods] == [{}, {}, {}]


def test_a_memory_limit_that_waits_is_in_progress() -> None:
    limited = build.container(limits={"memory": 512 * build.MIB}, memory_base=400.0 * build.MIB)
    fixture = Fixture(build.workload(limited, resize="InPlace", replicas=1))
    fixture.state.advance(0.0, 15.0, 0.0)
    (pod,) = fixture.looked().pods
    lower = {"spec": {"containers": [{"name": "app", "resources": {"limits": {"memory": "300Mi"}}}]}}
    pod_resize = PodResize(pod.metadata.name, pod.metadata.uid, lower)
    fixture.do(fixture.cluster.resize_pods(Meta(), (pod_resize,)))
    (waiting,) = fixture.looked().pods
    assert [(condition.type, condition.reason) for condition in waiting.status.conditions[1:]] == [
        ("PodResizeInProgress", "Error")
    ]
    used = {"app": 400 * build.MIB}
    assert used_at_least(waiting.status.conditions[1].message, {"app": 300 * build.MIB}) == used


def test_what_running_containers_use_of_memory_is_reported() -> None:
    fixture = Fixture(build.workload(replicas=2))
    fixture.state.advance(0.0, 15.0, 0.0)
    usage = run_to_end(fixture.cluster.memory_in_use(Meta(), ""))
    assert usage == {(pod.name, "app"): 100 * build.MIB for pod in fixture.state.pods}
    dead, alive = fixture.state.pods
    dead.end(dead.containers[0], 15.0, of_heap=False)
    assert set(run_to_end(fixture.cluster.memory_in_use(Meta(), ""))) == {(alive.name, "app")}


def test_rollback_metrics_of_a_simulated_canary_stay_at_their_thresholds() -> None:
    p99 = {"external": {"metric": {"name": "p99"}}, "above": "500m"}
    spec, _ = parse_spec(
        {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updateStrategy": {"type": "InPlace", "canary": {"rollbackOnMetrics": [p99]}},
        }
    )
    (metric,) = rollback_metrics(spec)
    (value,) = Fixture().cluster.canary_values(Key("default", "web"), (metric,), often=True)
    assert (value.value, metric.is_exceeded(value.value)) == ("500m", False)
    assert value.time is not None


def test_a_status_and_desired_replicas_that_are_written_are_read_back() -> None:
    fixture = Fixture()
    first = fixture.looked().hvpa
    fixture.do(fixture.cluster.patch_status(first.metadata, {}, HvpaStatus(replicas=3)))
    assert not fixture.woken(), "its own status wakes no operator"
    second = fixture.looked().hvpa
    assert second.status.replicas == 3
    assert second.metadata.resource_version != first.metadata.resource_version
    fixture.do(fixture.cluster.write_scale_replicas(second.metadata, 7))
    assert fixture.woken()
    third = fixture.looked().hvpa
    assert third.spec.replicas == 7
    assert third.metadata.generation == second.metadata.generation + 1
    fixture.cluster.scale_hvpa(7)
    assert not fixture.woken(), "the same count again is no change"


def test_owned_objects_are_stored_with_what_the_api_server_adds() -> None:
    fixture = Fixture()
    fixture.apply("HorizontalPodAutoscaler")
    fixture.apply("VerticalPodAutoscaler")
    objects = fixture.looked()
    (hpa,), (vpa,) = objects.hpas, objects.vpas
    assert hpa.spec.max_replicas == 5
    assert hpa.metadata.labels == vpa.metadata.labels == {"a": "b"}
    assert hpa.metadata.uid != vpa.metadata.uid
    assert hpa.metadata.creation_timestamp == build.START


@pytest.mark.parametrize("action", ["delete", "release", "return"])
def test_owned_objects_are_never_taken_away_in_a_simulation(action: Any) -> None:
    fixture = Fixture()
    change = OwnedChange(action, "HorizontalPodAutoscaler", "web")
    with pytest.raises(WriteError, match=f"{action} of HorizontalPodAutoscaler web"):
        fixture.do(fixture.cluster.change_owned(Meta(), change))


def test_the_recommenders_statuses_wake_the_operator_where_it_reads_them() -> None:
    fixture = Fixture()
    fixture.cluster.set_hpa_status(HpaStatusRead(desired_replicas=4))
    fixture.cluster.set_vpa_status(VpaStatusRead())
    assert fixture.looked().hpas == (), "there is nothing to write to yet"
    fixture.apply("HorizontalPodAutoscaler")
    fixture.apply("VerticalPodAutoscaler")
    fixture.looked()
    fixture.cluster.set_hpa_status(HpaStatusRead(desired_replicas=4))
    assert fixture.woken()
    fixture.looked()
    fixture.cluster.set_hpa_status(HpaStatusRead(desired_replicas=4))
    assert not fixture.woken()


def recommended(cpu: str, upper: str) -> VpaStatusRead:
    recommendation = ContainerRecommendation("app", target={"cpu": cpu}, upper_bound={"cpu": upper})
    return VpaStatusRead(
        recommendation=Recommendation([recommendation]), conditions=[Condition("RecommendationProvided")]
    )


def test_bounds_of_a_recommendation_that_move_do_not_wake_the_operator() -> None:
    fixture = Fixture()
    fixture.apply("VerticalPodAutoscaler")
    fixture.cluster.set_vpa_status(recommended("100m", "1"))
    assert fixture.woken()
    fixture.looked()
    moved = recommended("100m", "960m")
    fixture.cluster.set_vpa_status(moved)
    assert not fixture.woken()
    assert fixture.looked().vpas[0].status is moved
    fixture.cluster.set_vpa_status(moved)
    assert not fixture.woken()
    fixture.cluster.set_vpa_status(msgspec.structs.replace(moved, conditions=[]))
    assert fixture.woken()


def test_events_are_handed_on() -> None:
    fixture = Fixture()
    event = Event("Normal", "ScaledOut", "replicas 2 to 3")
    on_workload = msgspec.structs.replace(event, involved=Involved("apps/v1", "Deployment", "w", "w", "1"))
    for given_event in (event, on_workload):
        fixture.do(fixture.cluster.record_event(Meta(), given_event))
    assert fixture.events == [event], "the workload's repeats the Hvpa's"


def test_a_virtual_clock_stands_still_until_it_is_set() -> None:
    clock = VirtualClock(build.START)
    assert clock.now() == clock.now() == build.START


def test_a_pods_spec_says_what_a_resize_that_waits_asks_for() -> None:
    state = SimWorkload(build.workload(replicas=2, resize="InPlace"), NodeModel(cpu=1000))
    pods = PodObjects(state, build.START)
    assert cpus(pods) == ["500m", "500m"]
    grown = ResourceRequirements({"cpu": 600, "memory": 512 * build.MIB}, {})
    state.resize(state.pods[0], {"app": grown}, 0.0)
    assert state.pods[0].resources["app"].requests["cpu"] == 500
    assert cpus(pods) == ["600m", "500m"]


def cpus(pods: PodObjects) -> list[object]:
    return [pod.spec.containers[0].resources.requests["cpu"] for pod in pods.read()]
