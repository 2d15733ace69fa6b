"""The writes of the cluster port: what is sent, and what becomes of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import CreationSize, Meta
from hvpa.core.model import Event, OwnedChange, OwnedKind, PodResize, WorkloadPatch
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.cluster import NO_RESIZE, KubeCluster
from hvpa.kube.events import EventRecorder
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPAS, PODS, VPAS, custom
from hvpa.reconcile.ports import Conflict, Key, NotServed, Overloaded, Refused, Unavailable, WriteError
from tests.unit.kube.fake_server import FakeServer, status

pytestmark = pytest.mark.asyncio
OWNER = Meta(name="h", namespace="ns", uid="u", resource_version="5")


class Recorder(EventRecorder):
    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, hvpa: Meta, event: Event) -> None:
        self.events.append(event)


class World:
    """A cluster port whose server answers each write with `answer`."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.server.handler = self._handle
        self.answer: Any = None
        self.first: list[web.Response] = []
        """What the first requests are answered with; after those, `answer`."""
        self.woken: list[Key] = []
        self.local = LocalCluster((ALL_NAMESPACES,), self.woken.append)
        self.recorder = Recorder()
        self.may_write = True
        self.asked_about: list[Key] = []

    def asked(self, key: Key) -> bool:
        self.asked_about.append(key)
        return self.may_write

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self.first:
            return self.first.pop(0)
        if isinstance(self.answer, web.Response):
            return self.answer
        return web.Response(body=_encoded(self.answer))

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[KubeCluster]:
        async with self.server.running(), self.server.transport(folder) as transport:
            yield KubeCluster(transport, self.local, self.recorder, self.asked)

    def sent(self) -> tuple[str, str, dict[str, str], str, Any]:
        method, path, query = self.server.requests[-1]
        return method, path, query, self.server.headers[-1]["Content-Type"], self.server.bodies[-1]


def answer(name: str, version: int, **parts: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version), "uid": "u"},
        **parts,
    }


async def test_a_workload_patch_is_strategic_and_conditional(tmp_path: Path) -> None:
    world = World()
    world.answer = answer("web", 8, spec={"replicas": 3})
    async with world.running(tmp_path) as cluster:
        body = {"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 3}}
        await cluster.patch_workload(OWNER, WorkloadPatch("Deployment", "web", "7", body))
    assert world.sent() == (
        "PATCH",
        "/apis/apps/v1/namespaces/ns/deployments/web",
        {"fieldManager": "hvpa"},
        "application/strategic-merge-patch+json",
        {"metadata": {"annotations": {"a": "b"}, "resourceVersion": "7"}, "spec": {"replicas": 3}},
    )
    stored = world.local.workloads[DEPLOYMENTS.kind].get(Key("ns", "web"))
    assert stored is not None
    assert stored.spec.replicas == 3
    assert stored.kind == "Deployment"


async def test_a_status_patch_is_conditional_and_wakes_nobody(tmp_path: Path) -> None:
    world = World()
    first = answer("h", 5, spec={"targetRef": {"kind": "Deployment", "name": "web"}})
    world.local.hvpas.put(HVPAS.decode(_encoded(first)))
    world.woken.clear()
    world.answer = {**first, **answer("h", 6, status={"replicas": 2})}
    async with world.running(tmp_path) as cluster:
        await cluster.patch_status(OWNER, {"replicas": 2}, HvpaStatus(replicas=2))
    assert world.sent() == (
        "PATCH",
        "/apis/autoscaling.k8s.io/v1alpha1/namespaces/ns/hvpas/h/status",
        {"fieldManager": "hvpa"},
        "application/merge-patch+json",
        {"metadata": {"resourceVersion": "5"}, "status": {"replicas": 2}},
    )
    assert world.woken == []
    seen = world.local.objects(Key("ns", "h"))
    assert seen is not None
    assert seen.hvpa.status.replicas == 2


@pytest.mark.parametrize(("theirs", "woken"), [(None, 0), (2, 0), (7, 1)])
async def test_a_status_of_somebody_else_that_comes_while_ours_is_written_wakes_the_hvpa(
    tmp_path: Path, theirs: int | None, woken: int
) -> None:
    """The watch is faster than the answer: it brings our status, and then perhaps another one."""
    world = World()
    first = answer("h", 5, spec={"targetRef": {"kind": "Deployment", "name": "web"}})
    ours = {**first, **answer("h", 6, status={"replicas": 2})}

    async def handle(request: web.Request) -> web.StreamResponse:
        world.local.hvpas.put(HVPAS.decode(_encoded(ours)))
        if theirs is not None:
            changed = {**first, **answer("h", 7, status={"replicas": theirs})}
            world.local.hvpas.put(HVPAS.decode(_encoded(changed)))
        return web.Response(body=_encoded(ours))

    world.server.handler = handle
    world.local.hvpas.put(HVPAS.decode(_encoded(first)))
    world.woken.clear()
    async with world.running(tmp_path) as cluster:
        await cluster.patch_status(OWNER, {"replicas": 2}, HvpaStatus(replicas=2))
    assert world.woken == [Key("ns", "h")] * woken


async def test_a_status_that_comes_while_ours_fails_wakes_the_hvpa(tmp_path: Path) -> None:
    world = World()
    first = answer("h", 5, spec={"targetRef": {"kind": "Deployment", "name": "web"}})

    async def handle(request: web.Request) -> web.StreamResponse:
        world.local.hvpas.put(HVPAS.decode(_encoded({**first, **answer("h", 6, status={"replicas": 9})})))
        return status(409, "Conflict")

    world.server.handler = handle
    world.local.hvpas.put(HVPAS.decode(_encoded(first)))
    world.woken.clear()
    async with world.running(tmp_path) as cluster:
        with pytest.raises(Conflict):
            await cluster.patch_status(OWNER, {"replicas": 2}, HvpaStatus(replicas=2))
    assert world.woken == [Key("ns", "h")]


async def test_spec_replicas_is_set_right_is_written_on_top_of_the_newest_version_that_is_known(
    tmp_path: Path,
) -> None:
    world = World()
    world.local.hvpas.put(HVPAS.decode(_encoded(answer("h", 9))))
    world.answer = answer("h", 10)
    async with world.running(tmp_path) as cluster:
        await cluster.write_scale_replicas(OWNER, 4)
    assert world.sent()[1:] == (
        "/apis/autoscaling.k8s.io/v1alpha1/namespaces/ns/hvpas/h",
        {"fieldManager": "hvpa"},
        "application/merge-patch+json",
        {"metadata": {"resourceVersion": "9"}, "spec": {"replicas": 4}},
    )


async def test_owned_objects_are_applied_released_and_deleted(tmp_path: Path) -> None:
    world = World()
    path = "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers/h"
    kind: OwnedKind = "HorizontalPodAutoscaler"
    async with world.running(tmp_path) as cluster:
        world.answer = answer("h", 3)
        await cluster.change_owned(OWNER, OwnedChange("apply", kind, "h", manifest={"kind": kind}))
        query = {"fieldManager": "hvpa"}
        assert world.sent() == ("PATCH", path, query, "application/apply-patch+yaml", {"kind": kind})
        assert world.local.hpas.get(Key("ns", "h")) is not None
        await cluster.change_owned(OWNER, OwnedChange("apply", kind, "h", manifest={"kind": kind}))
        assert world.sent()[2] == {**query, "force": "true"}  # it is known now
        world.answer = answer("h", 4)
        await cluster.change_owned(OWNER, OwnedChange("release", kind, "h", resource_version="3"))
        assert world.sent()[4] == {"metadata": {"ownerReferences": None, "resourceVersion": "3"}}
        world.answer = {"kind": "Status"}
        await cluster.change_owned(OWNER, OwnedChange("delete", kind, "h", uid="u"))
        method, where, _, _, body = world.sent()
        assert (method, where, body["preconditions"]) == ("DELETE", path, {"uid": "u"})
        assert world.local.hpas.get(Key("ns", "h")) is None


async def test_what_stays_for_its_finalizers_is_known_until_it_is_gone(tmp_path: Path) -> None:
    world = World()
    world.local.vpas.put(VPAS.decode(_encoded(answer("v", 3))))
    going = answer("v", 4, kind="VerticalPodAutoscaler")
    going["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    world.answer = going
    async with world.running(tmp_path) as cluster:
        await cluster.change_owned(OWNER, OwnedChange("delete", "VerticalPodAutoscaler", "v", uid="u"))
    known = world.local.vpas.get(Key("ns", "v"))
    assert known is not None
    assert known.metadata.deletion_timestamp is not None


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_a_write_that_the_server_fails_at_is_sent_once_more_at_once(tmp_path: Path, code: int) -> None:
    world = World()
    world.answer = answer("web", 8, spec={"replicas": 3})
    world.first = [status(code, "", "failed")]
    async with world.running(tmp_path) as cluster:
        await cluster.patch_workload(
            OWNER, WorkloadPatch("Deployment", "web", "7", {"spec": {"replicas": 3}})
        )
        first, second = world.server.requests
        assert first == second
        world.first = [
            status(code, "", "failed"),
            status(code, "", "failed again"),
            status(code, "", "and again"),
        ]
        with pytest.raises(Unavailable, match="failed again"):
            await cluster.patch_workload(OWNER, WorkloadPatch("Deployment", "web", "8", {}))
    assert len(world.server.requests) == 4
    assert world.asked_about == [Key("ns", "h")] * 4, "who may write is asked before each"


@pytest.mark.parametrize(
    ("write", "codes", "error", "requests"),
    [
        *[pytest.param("patch", [code], Conflict, 1, id=f"a patch of something else: {code}") for code in (409, 404)],
        *[pytest.param("patch", [code], Refused, 1, id=f"a refusal is not sent again: {code}")
          for code in (400, 403, 413, 422)],
        pytest.param("patch", [504, 409], Conflict, 2, id="a write whose response was lost, sent again"),
        pytest.param("apply", [404], WriteError, 1, id="an API that is not there"),
        pytest.param("apply", [409], WriteError, 1, id="an object that somebody else has made meanwhile"),
        pytest.param("apply to known", [409], Conflict, 1, id="an object that is known, and changed"),
        pytest.param("delete", [404], None, 1, id="what is gone already need not be deleted"),
    ],
)  # fmt: skip
async def test_what_a_failed_write_is(
    tmp_path: Path, write: str, codes: list[int], error: type[WriteError] | None, requests: int
) -> None:
    world = World()
    world.first = [status(code, "", "because") for code in codes]
    kind: OwnedKind = "VerticalPodAutoscaler"
    if write == "apply to known":
        world.local.vpas.put(VPAS.decode(_encoded(answer("v", 3))))
    async with world.running(tmp_path) as cluster:
        found: WriteError | None = None
        try:
            if write == "patch":
                await cluster.patch_workload(OWNER, WorkloadPatch("Deployment", "web", "7", {}))
            elif write == "delete":
                await cluster.change_owned(OWNER, OwnedChange("delete", kind, "v", uid="u"))
            else:
                await cluster.change_owned(OWNER, OwnedChange("apply", kind, "v", manifest={}))
        except WriteError as caught:
            found = caught
    assert error is None or str(found) == "because"
    assert (found and type(found)) is error
    assert len(world.server.requests) == requests


async def test_without_the_lease_nothing_is_sent(tmp_path: Path) -> None:
    world = World()
    world.may_write = False
    async with world.running(tmp_path) as cluster:
        with pytest.raises(WriteError, match="leader"):
            await cluster.patch_status(OWNER, {}, HvpaStatus())
    assert world.server.requests == []
    assert world.asked_about == [Key("ns", "h")]


async def test_a_server_that_asked_to_wait_is_sent_nothing_until_then(tmp_path: Path) -> None:
    world = World()
    world.answer = web.Response(status=429, text="Too many requests", headers={"Retry-After": "30"})
    async with world.running(tmp_path) as cluster:
        with pytest.raises(Overloaded) as caught:
            await cluster.write_scale_replicas(OWNER, 1)
        assert caught.value.retry_after.total_seconds() == 30.0
        with pytest.raises(Overloaded) as caught:
            await cluster.patch_status(OWNER, {}, HvpaStatus())
        assert caught.value.retry_after.total_seconds() > 29.0
    assert len(world.server.requests) == 1


async def test_a_webhook_that_asks_to_wait_does_so_for_its_object_alone(tmp_path: Path) -> None:
    world = World()
    async with world.running(tmp_path) as cluster:
        world.answer = status(429, "TooManyRequests", "denied", headers={"Retry-After": "30"})
        with pytest.raises(Overloaded):
            await cluster.write_scale_replicas(OWNER, 1)
        world.answer = answer("h", 6)
        await cluster.write_scale_replicas(OWNER, 1)
    assert len(world.server.requests) == 2


async def test_an_answer_that_can_t_be_read_is_left_to_the_watch(tmp_path: Path) -> None:
    world = World()
    world.answer = {"metadata": 5}
    async with world.running(tmp_path) as cluster:
        await cluster.write_scale_replicas(OWNER, 1)
    assert len(world.local.hvpas) == 0


async def test_events_are_handed_to_the_recorder(tmp_path: Path) -> None:
    world = World()
    async with world.running(tmp_path) as cluster:
        await cluster.record_event(OWNER, Event("Normal", "Scaled", "up"))
        await asyncio.sleep(0)
    assert [event.reason for event in world.recorder.events] == ["Scaled"]
    assert HPAS.path("ns", "a", "b").endswith("/namespaces/ns/horizontalpodautoscalers/a/b")


def _encoded(document: dict[str, Any]) -> bytes:
    return msgspec.json.encode(document)


# --- pods that are resized in place ---
RESIZES = [
    PodResize(f"web-{number}", f"u{number}", {"metadata": {"uid": f"u{number}"}}) for number in range(40)
]


async def test_replicas_alone_go_to_the_scale(tmp_path: Path) -> None:
    world = World()
    workload = answer("web", 7, spec={"replicas": 1})
    workload["metadata"]["generation"] = 4
    world.local.workloads[DEPLOYMENTS.kind].put(DEPLOYMENTS.decode(_encoded(workload)))
    world.answer = answer("web", 8, spec={"replicas": 3}, kind="Scale")
    body = {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 3}}
    async with world.running(tmp_path) as cluster:
        await cluster.patch_workload(OWNER, WorkloadPatch("Deployment", "web", "7", body, is_scale=True))
    assert world.sent() == (
        "PATCH",
        "/apis/apps/v1/namespaces/ns/deployments/web/scale",
        {"fieldManager": "hvpa"},
        "application/merge-patch+json",
        body,
    )
    stored = world.local.workloads[DEPLOYMENTS.kind].get(Key("ns", "web"))
    assert stored is not None
    assert (stored.spec.replicas, stored.metadata.generation, stored.metadata.resource_version) == (3, 5, "8")


@pytest.mark.parametrize("found", ["newer", "none", "no Scale"])
async def test_a_scale_does_not_take_the_place_of_what_is_newer(tmp_path: Path, found: str) -> None:
    world = World()
    store = world.local.workloads[DEPLOYMENTS.kind]
    if found != "none":
        store.put(DEPLOYMENTS.decode(_encoded(answer("web", 9, spec={"replicas": 5}))))
    world.answer = web.Response(body=b"[]") if found == "no Scale" else answer("web", 8, spec={"replicas": 3})
    async with world.running(tmp_path) as cluster:
        await cluster.patch_workload(OWNER, WorkloadPatch("Deployment", "web", "7", {}, is_scale=True))
    stored = store.get(Key("ns", "web"))
    assert (None if stored is None else stored.spec.replicas) == (None if found == "none" else 5)


async def test_pods_are_resized_by_their_subresource(tmp_path: Path) -> None:
    world = World()
    world.answer = answer("web-1", 8)
    async with world.running(tmp_path) as cluster:
        assert await cluster.resize_pods(OWNER, RESIZES) == []
    assert len(world.server.requests) == len(RESIZES)
    assert {path for _, path, _ in world.server.requests} == {
        f"/api/v1/namespaces/ns/pods/web-{number}/resize" for number in range(40)
    }
    assert world.sent()[3] == "application/strategic-merge-patch+json"
    assert world.local.store(PODS).get(Key("ns", "web-1")) is not None


@pytest.mark.parametrize(
    ("code", "details", "expected"),
    [
        (404, {"name": "web-0", "kind": "pods"}, None),
        (404, None, NotServed),
        (409, None, Conflict),
        (422, None, Refused),
        (429, None, Overloaded),
    ],
)
async def test_what_becomes_of_a_resize_that_fails(
    tmp_path: Path, code: int, details: dict[str, str] | None, expected: type[WriteError] | None
) -> None:
    world = World()
    body = {"kind": "Status", "code": code, "reason": "R", "message": "m", "details": details}
    world.answer = web.Response(status=code, body=_encoded(body))
    async with world.running(tmp_path) as cluster:
        failures = await cluster.resize_pods(OWNER, RESIZES[:1])
    assert [(one.pod, type(error)) for one, error in failures] == ([("web-0", expected)] if expected else [])
    if expected is NotServed:
        assert str(failures[0][1]) == NO_RESIZE


def metrics(name: str, **containers: object) -> dict[str, Any]:
    used = [{"name": key, "usage": value} for key, value in containers.items()]
    return {"metadata": {"name": name}, "containers": used}


async def test_what_pods_use_of_memory_is_read_of_all_of_them_at_once(tmp_path: Path) -> None:
    world = World()
    items = [
        metrics("web-1", app={"cpu": "1", "memory": "500Mi"}, log={"memory": "x"}),
        metrics("web-2", app={"cpu": "1"}),
    ]
    world.answer = {"items": items}
    async with world.running(tmp_path) as cluster:
        assert await cluster.memory_in_use(OWNER, "app=web") == {("web-1", "app"): 500 * 2**20}
    assert world.server.requests[-1] == (
        "GET",
        "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods",
        {"labelSelector": "app=web"},
    )


@pytest.mark.parametrize(
    "found", [web.Response(status=404), web.Response(status=503), web.Response(body=b"[]"), {"items": 3}]
)
async def test_where_nobody_measures_nothing_is_known(tmp_path: Path, found: object) -> None:
    world = World()
    world.answer = found
    async with world.running(tmp_path) as cluster:
        assert await cluster.memory_in_use(OWNER, "app=web") == {}


async def test_sizes_of_new_pods_are_written_and_those_of_an_hvpa_that_is_gone_are_removed(
    tmp_path: Path,
) -> None:
    world = World()
    size = {"hvpa": "h", "containers": []}
    world.answer = answer("hvpa", 8, sizes={"Deployment.apps/web": size})
    async with world.running(tmp_path) as cluster:
        await cluster.write_creation_sizes(OWNER, None)
        assert world.server.requests == []
        await cluster.write_creation_sizes(OWNER, {"Deployment.apps/web": CreationSize("h")})
        world.answer = answer("hvpa", 9, sizes={})
        await cluster.write_creation_sizes(OWNER, None)
        assert world.sent()[4] == {"sizes": {"Deployment.apps/web": None}}
        await cluster.write_creation_sizes(OWNER, None)
    assert len(world.server.requests) == 2
    assert world.woken == []


async def test_replicas_of_a_custom_kind_go_to_its_scale(tmp_path: Path) -> None:
    world = World()
    rollouts = custom("argoproj.io/v1alpha1", "Rollout", "rollouts")
    target = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"}
    world.local.hvpas.put(HVPAS.decode(_encoded(answer("h", 1, spec={"targetRef": target}))))
    world.local.custom[rollouts.kind] = rollouts
    store = world.local.store(rollouts)
    store.put(rollouts.decode(_encoded(answer("web", 7, spec={"replicas": 3}))))
    world.answer = answer("web", 8, spec={"replicas": 5}, status={"replicas": 3, "selector": "app=web"})
    body = {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 5}}
    patch = WorkloadPatch("Rollout", "web", "7", body, is_scale=True, api_version="argoproj.io/v1alpha1")
    async with world.running(tmp_path) as cluster:
        await cluster.patch_workload(OWNER, patch)
    path = "/apis/argoproj.io/v1alpha1/namespaces/ns/rollouts/web/scale"
    assert world.sent() == ("PATCH", path, {"fieldManager": "hvpa"}, "application/merge-patch+json", body)
    stored = store.get(Key("ns", "web"))
    assert stored is not None
    assert (stored.spec.replicas, stored.metadata.generation) == (5, 5)
