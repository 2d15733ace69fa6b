"""The room of simulated nodes: which resizes are allocated, in which order, and what the pods' status
reports."""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import replace
from typing import Any, cast

import pytest

from localcluster.client.api import ApiError, Json, KubeApi
from localcluster.controlplane.allocator import Allocator
from localcluster.controlplane.room import Amounts, NodePod, node_pod, room_of, settle

ROOM = Amounts(1000, 1000)
NONE = Amounts(0, 0)
AT = 1_800_000_000.0
"""2027-01-15 08:00 UTC."""


def node_pod_of(name: str, allocated: Amounts, requests: Amounts | None = None, **fields: Any) -> NodePod:
    """A pod whose resize waits if it has `requests`."""
    return NodePod(
        "ns",
        name,
        name,
        "node",
        1,
        requests or allocated,
        allocated,
        waits=requests is not None,
        **fields,
    )


def decided(*pods: NodePod, room: Amounts = ROOM, **since: float) -> dict[str, str]:
    """The message about each resize that waits, in the order of the decisions."""
    return {verdict.pod.name: verdict.shortage for verdict in settle(pods, room, since)}


class TestFit:
    def test_a_resize_fits_beside_the_allocated_requests_of_the_other_pods(self) -> None:
        """600m + 400m = 1000m, whatever the other pod requests."""
        other = replace(node_pod_of("other", Amounts(400, 0)), requests=Amounts(900, 0))
        assert decided(node_pod_of("web", Amounts(100, 0), Amounts(600, 0)), other) == {"web": ""}

    def test_the_message_is_the_kubelet_s(self) -> None:
        web = node_pod_of("web", Amounts(500, 0), Amounts(600, 0))
        room = Amounts(1500, math.inf)
        message = "Node didn't have enough resource: cpu, requested: 600, used: 1250, capacity: 1500"
        assert decided(web, node_pod_of("other", Amounts(1250, 0)), room=room) == {"web": message}

    @pytest.mark.parametrize(
        ("requests", "resource"),
        [
            (Amounts(601, 600), "cpu"),
            (Amounts(600, 601), "memory"),
            (Amounts(601, 601), "cpu"),
            (Amounts(1001, 600), "cpu"),
            (Amounts(600, 600), ""),
        ],
    )
    def test_the_first_short_resource_is_named(self, requests: Amounts, resource: str) -> None:
        shortage = decided(
            node_pod_of("web", Amounts(1, 1), requests), node_pod_of("other", Amounts(400, 400))
        )
        assert resource in shortage["web"]
        assert bool(shortage["web"]) == bool(resource)

    def test_a_pod_without_requests_fits_on_a_full_node(self) -> None:
        assert decided(node_pod_of("web", NONE, NONE), node_pod_of("other", Amounts(2000, 2000))) == {
            "web": ""
        }

    def test_a_node_that_reports_no_size_has_unlimited_room(self) -> None:
        assert room_of({"status": {"allocatable": {"memory": "1Ki"}}}) == (math.inf, 1024)
        assert room_of({"status": {"allocatable": {"cpu": "1500m"}}}) == (1500, math.inf)
        assert room_of({}) == (math.inf, math.inf)


class TestOrder:
    """500m are free, and each pod that waits requests 400m more."""

    LESS, MORE = Amounts(50, 0), Amounts(450, 0)
    FULL = node_pod_of("full", Amounts(350, 0))

    def waiting(self, name: str, **fields: Any) -> NodePod:
        return node_pod_of(name, self.LESS, self.MORE, **fields)

    def test_a_resize_that_raises_no_request_is_first_and_frees_its_room(self) -> None:
        """850m of 1000m are allocated; 600m + 400m fit after one pod has shrunk from 400m to 0."""
        grows = node_pod_of("grows", Amounts(450, 0), Amounts(1000, 0), priority=9)
        shrinks = node_pod_of("shrinks", Amounts(400, 0), NONE)
        assert list(decided(grows, shrinks).items()) == [("shrinks", ""), ("grows", "")]

    def test_the_larger_priority_precedes_the_longer_wait(self) -> None:
        pods = self.waiting("none"), self.waiting("low", priority=10), self.waiting("high", priority=1000)
        shortages = decided(*pods, self.FULL, none=1.0, low=2.0, high=3.0)
        assert list(shortages) == ["high", "low", "none"]
        assert [name for name, shortage in shortages.items() if not shortage] == ["high"]

    def test_guaranteed_pods_precede_others_of_their_priority(self) -> None:
        pods = self.waiting("a"), self.waiting("b", is_guaranteed=True), self.waiting("c", priority=1)
        assert list(decided(*pods, a=1.0, b=2.0)) == ["c", "b", "a"]

    def test_the_longest_wait_precedes_shorter_ones_and_new_requests(self) -> None:
        pods = self.waiting("new"), self.waiting("late"), self.waiting("early")
        assert list(decided(*pods, late=2.0, early=1.0)) == ["early", "late", "new"]

    def test_a_smaller_resize_passes_one_without_room(self) -> None:
        small = node_pod_of("small", NONE, Amounts(100, 0))
        shortages = decided(self.waiting("large", priority=1), small, node_pod_of("full", Amounts(700, 0)))
        assert (bool(shortages["large"]), shortages["small"]) == (True, "")


def pod(name: str, cpu: str = "100m", **fields: Any) -> Json:
    """A running pod on `node` with one container that has its request."""
    resources = {"requests": {"cpu": cpu}}
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "uid": f"uid of {name}",
            "generation": 1,
            "resourceVersion": "1",
        },
        "spec": {"nodeName": "node", "containers": [{"name": "app", "resources": resources}], **fields},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "app", "ready": True, "resources": resources, "allocatedResources": {"cpu": cpu}}
            ],
        },
    }


class TestNodePod:
    def test_a_pod_without_node_or_that_has_ended_takes_no_room(self) -> None:
        ended = pod("web")
        ended["status"]["phase"] = "Succeeded"
        unscheduled = pod("web")
        del unscheduled["spec"]["nodeName"]
        assert node_pod(ended) is None
        assert node_pod(unscheduled) is None

    def test_a_pod_that_has_not_started_takes_the_requests_of_its_spec(self) -> None:
        starting = pod("web", "250m")
        starting["status"] = {}
        described = node_pod(starting)
        assert described is not None
        assert (described.allocated, described.requests, described.waits) == ((250, 0), (250, 0), False)

    def test_sidecars_count_and_init_containers_that_end_do_not(self) -> None:
        requests = {"resources": {"requests": {"cpu": "1"}}}
        init = [{"name": "sidecar", "restartPolicy": "Always", **requests}, {"name": "init", **requests}]
        described = node_pod(pod("web", initContainers=init))
        assert described is not None
        assert (described.allocated, described.requests) == ((1100, 0), (1100, 0))

    @pytest.mark.parametrize(
        ("part", "key", "value"),
        [
            ("metadata", "annotations", {"hvpa.test/resize": "Silent"}),
            ("metadata", "deletionTimestamp", "2027-01-15T08:00:00Z"),
            ("status", "phase", "Pending"),
            ("status", "conditions", [{"type": "PodResizeInProgress", "observedGeneration": 1}]),
        ],
    )
    def test_these_pods_do_not_wait(self, part: str, key: str, value: object) -> None:
        resized = pod("web")
        resized["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        described = node_pod(resized)
        assert described is not None
        assert described.waits
        resized[part][key] = value
        described = node_pod(resized)
        assert described is not None
        assert not described.waits


class Server:
    """The API server, as far as the allocator needs it: a node with 1000m, and pods by name."""

    def __init__(self, *pods: Json) -> None:
        self.pods = {listed["metadata"]["name"]: listed for listed in pods}
        self.writes: list[str] = []
        """The pods whose status was written."""

    def find(self, kind: str, name: str, namespace: str | None = None) -> Json | None:
        if kind == "Node":
            return {"status": {"allocatable": {"cpu": "1"}}} if name == "node" else None
        return copy.deepcopy(self.pods.get(name))

    def patch(self, kind: str, name: str, namespace: str, body: Json, **options: str) -> Json:
        """A strategic merge patch: conditions are merged by type, statuses of containers are replaced."""
        if name not in self.pods:
            raise ApiError(404, "NotFound", name)
        stored = self.pods[name]
        if body["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", name)
        self.writes.append(name)
        status = body["status"]
        conditions = {entry["type"]: entry for entry in stored["status"].get("conditions", ())}
        for condition in status.pop("conditions"):
            if condition.get("$patch") == "delete":
                conditions.pop(condition["type"], None)
            else:
                merged = conditions.get(condition["type"], {}) | condition
                conditions[condition["type"]] = {
                    key: value for key, value in merged.items() if value is not None
                }
        stored["status"] |= status | {"conditions": list(conditions.values())}
        return self.changed(name)

    def resize(self, name: str, cpu: str) -> Json:
        stored = self.pods[name]
        stored["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
        stored["metadata"]["generation"] += 1
        return self.changed(name)

    def changed(self, name: str) -> Json:
        """The pod, with a new version."""
        metadata = self.pods[name]["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        return copy.deepcopy(self.pods[name])

    def conditions(self, name: str) -> list[tuple[str, str]]:
        """Types and reasons."""
        reported = self.pods[name]["status"].get("conditions", ())
        return [(entry["type"], entry.get("reason", "")) for entry in reported]

    def allocated(self, name: str) -> str:
        (status,) = self.pods[name]["status"]["containerStatuses"]
        assert status["ready"], "the other fields of the status are still there"
        return str(status["allocatedResources"]["cpu"])


DEFERRED = [("PodResizePending", "Deferred")]
ALLOCATED = [("PodResizeInProgress", "")]


def started(server: Server) -> Allocator:
    allocator = Allocator(cast(KubeApi, server), lambda: AT)
    allocator.begin([copy.deepcopy(listed) for listed in server.pods.values()])
    return allocator


def test_a_resize_with_room_is_allocated() -> None:
    server = Server(pod("web"), pod("other", "400m"))
    allocator = started(server)
    allocator.handle("MODIFIED", server.resize("web", "600m"))
    assert (server.conditions("web"), server.allocated("web")) == (ALLOCATED, "600m")
    (condition,) = server.pods["web"]["status"]["conditions"]
    assert (condition["observedGeneration"], condition["lastTransitionTime"]) == (2, "2027-01-15T08:00:00Z")


def test_a_deferred_resize_is_allocated_once_another_pod_is_deleted() -> None:
    server = Server(pod("web"), pod("other", "400m"))
    allocator = started(server)
    allocator.handle("MODIFIED", server.resize("web", "700m"))
    assert (server.conditions("web"), server.allocated("web")) == (DEFERRED, "100m")
    allocator.handle("DELETED", server.pods.pop("other"))
    assert (server.conditions("web"), server.allocated("web")) == (ALLOCATED, "700m")


def test_a_deferred_resize_is_allocated_once_another_pod_shrinks() -> None:
    server = Server(pod("web"), pod("other", "400m"))
    allocator = started(server)
    allocator.handle("MODIFIED", server.resize("web", "700m"))
    allocator.handle("MODIFIED", server.resize("other", "300m"))
    assert server.conditions("web") == server.conditions("other") == ALLOCATED


def test_a_deferred_resize_is_written_once_for_the_same_shortage() -> None:
    server = Server(pod("web"), pod("other", "400m"))
    allocator = started(server)
    allocator.handle("MODIFIED", server.resize("web", "700m"))
    server.pods["other"]["status"]["phase"] = "Pending"
    allocator.handle("MODIFIED", server.changed("other"))
    allocator.begin([copy.deepcopy(listed) for listed in server.pods.values()])
    assert server.writes == ["web"]
    allocator.handle("MODIFIED", server.resize("web", "800m"))
    assert server.writes == ["web", "web"]


def test_the_longest_wait_is_first_even_within_a_second() -> None:
    server = Server(pod("b"), pod("a"), pod("other", "700m"))
    times = itertools.count(AT, 0.01)
    allocator = Allocator(cast(KubeApi, server), lambda: next(times))
    allocator.begin([copy.deepcopy(listed) for listed in server.pods.values()])
    for name in ("a", "b"):
        allocator.handle("MODIFIED", server.resize(name, "400m"))
    allocator.handle("MODIFIED", server.resize("other", "500m"))
    assert (server.conditions("a"), server.conditions("b")) == (ALLOCATED, DEFERRED)


def test_older_events_of_a_pod_change_nothing() -> None:
    server = Server(pod("web"))
    allocator = started(server)
    resized = server.resize("web", "600m")
    allocator.handle("MODIFIED", copy.deepcopy(resized))
    allocator.handle("MODIFIED", resized)
    assert server.writes == ["web"]


def test_a_pod_that_has_changed_meanwhile_is_evaluated_again() -> None:
    server = Server(pod("web"), pod("other", "400m"))
    allocator = started(server)
    resized = server.resize("web", "600m")
    server.resize("web", "700m")
    allocator.handle("MODIFIED", resized)
    assert (server.conditions("web"), server.allocated("web")) == (DEFERRED, "100m")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_pod_that_is_gone_meanwhile_leaves_its_room(replaced: bool) -> None:
    server = Server(pod("web"), pod("other", "400m"))
    allocator = started(server)
    resized = server.resize("web", "500m")
    gone = server.pods.pop("web")
    if replaced:
        server.pods["web"] = pod("web")
        server.pods["web"]["metadata"] |= {"uid": "another", "resourceVersion": "9"}
    allocator.handle("MODIFIED", resized)
    assert server.writes == []
    allocator.handle("DELETED", gone)
    allocator.handle("MODIFIED", server.resize("other", "1"))
    assert server.conditions("other") == ALLOCATED


def test_pods_of_a_node_that_does_not_exist_are_left_alone() -> None:
    server = Server(pod("web", nodeName="gone"))
    allocator = started(server)
    allocator.handle("MODIFIED", server.resize("web", "600m"))
    assert server.writes == []
