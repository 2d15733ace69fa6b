"""The writes of the cluster port: what is sent, and what becomes of the responses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Meta
from hvpa.core.model import ADOPTED, OwnedChange, OwnedKind, PodCost, PodResize, WorkloadPatch
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.transport import APPLY_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from hvpa.kube.clock import SystemClock
from hvpa.kube.cluster import NO_RESIZE, KubeCluster
from hvpa.kube.events import EventRecorder
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPAS, PODS, VPAS, ApiResource, custom_resource
from hvpa.reconcile.ports import Conflict, Key, NotServed, Overloaded, Refused, Unavailable, WriteError
from tests.unit.kube.fake_server import FakeServer, respond, status

OWNER = Meta(name="h", namespace="ns", uid="u", resource_version="5")
HVPA = "/apis/autoscaling.k8s.io/v1alpha1/namespaces/ns/hvpas/h"
DEPLOYMENT = "/apis/apps/v1/namespaces/ns/deployments/web"
ROLLOUTS = custom_resource("argoproj.io/v1alpha1", "Rollout", "rollouts")
NOW = "2026-11-20T10:00:00Z"
TARGET = {"spec": {"targetRef": {"kind": "Deployment", "name": "web"}}}
HPA: OwnedKind = "HorizontalPodAutoscaler"
VPA: OwnedKind = "VerticalPodAutoscaler"

Write = Callable[[KubeCluster], Awaitable[object]]


class Harness:
    """A cluster port whose server answers each write with `answer`."""

    def __init__(self, answer: Any = None) -> None:
        self.server = FakeServer(self._handle)
        self.answer = answer
        self.first: list[web.Response] = []
        """What the first requests are answered with; after those, `answer`."""
        self.meanwhile: list[dict[str, Any]] = []
        """Versions of the Hvpa that the watch brings before a request is answered."""
        self.woken: list[Key] = []
        self.local = LocalCluster((ALL_NAMESPACES,), self.woken.append)
        self.may_write = True
        self.asked_about: list[Key] = []

    def put(self, resource: ApiResource[Any], document: dict[str, Any]) -> None:
        self.local.store(resource).put(resource.decode(json.dumps(document).encode()))

    def get(self, resource: ApiResource[Any], name: str) -> Any:
        return self.local.store(resource).get(Key("ns", name))

    def asked(self, key: Key) -> bool:
        self.asked_about.append(key)
        return self.may_write

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        while self.meanwhile:
            self.put(HVPAS, self.meanwhile.pop(0))
        return self.first.pop(0) if self.first else respond(self.answer)

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[KubeCluster]:
        async with self.server.connected(folder) as transport:
            yield KubeCluster(transport, self.local, EventRecorder(transport, SystemClock()), self.asked)

    async def write(self, folder: Path, write: Write) -> None:
        async with self.running(folder) as cluster:
            await write(cluster)

    def sent(self) -> tuple[str, str, dict[str, str], str, Any]:
        method, path, query = self.server.requests[-1]
        return method, path, query, self.server.headers[-1]["Content-Type"], self.server.bodies[-1]


def answer(name: str, version: int, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "resourceVersion": str(version), "uid": "u"}
    return {"metadata": metadata | parts.pop("metadata", {}), **parts}


def hvpa(version: int, replicas: int | None = None) -> dict[str, Any]:
    return answer("h", version, **TARGET, status={} if replicas is None else {"replicas": replicas})


def patch_status(cluster: KubeCluster) -> Awaitable[None]:
    return cluster.patch_status(OWNER, {"replicas": 2}, HvpaStatus(replicas=2))


def patch_replicas(version: int = 7, **options: Any) -> Write:
    body = {"metadata": {"resourceVersion": str(version)}, "spec": {"replicas": 3}}
    patch = WorkloadPatch(options.pop("kind", "Deployment"), "web", str(version), body, **options)
    return lambda cluster: cluster.patch_workload(OWNER, patch)


def patch_annotated(cluster: KubeCluster) -> Awaitable[None]:
    body = {"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 3}}
    return cluster.patch_workload(OWNER, WorkloadPatch("Deployment", "web", "7", body))


SCALED = answer("web", 8, spec={"replicas": 3}, status={"replicas": 3, "selector": "app=web"}, kind="Scale")
ONLY_REPLICAS = {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 3}}
WRITES: dict[str, Any] = {
    "a workload": (
        patch_annotated,
        answer("web", 8, metadata={"generation": 4}, spec={"replicas": 3}),
        (DEPLOYMENT, STRATEGIC_MERGE_PATCH),
        {"metadata": {"annotations": {"a": "b"}, "resourceVersion": "7"}, "spec": {"replicas": 3}},
        (DEPLOYMENTS, 4, 3),
    ),
    "replicas alone go to the scale": (
        patch_replicas(is_scale=True), SCALED, (f"{DEPLOYMENT}/scale", MERGE_PATCH), ONLY_REPLICAS, (DEPLOYMENTS, 5, 3)
    ),
    "replicas of a custom kind go to its scale": (
        patch_replicas(kind="Rollout", is_scale=True, api_version="argoproj.io/v1alpha1"),
        SCALED,
        ("/apis/argoproj.io/v1alpha1/namespaces/ns/rollouts/web/scale", MERGE_PATCH),
        ONLY_REPLICAS,
        (ROLLOUTS, 3, 3),
    ),
    "a status": (
        patch_status,
        hvpa(8, 2),
        (f"{HVPA}/status", MERGE_PATCH),
        {"metadata": {"resourceVersion": "5"}, "status": {"replicas": 2}},
        (HVPAS, None, None),
    ),
    "replicas of the Hvpa, on top of its newest version that is known": (
        lambda cluster: cluster.write_scale_replicas(OWNER, 4),
        hvpa(8),
        (HVPA, MERGE_PATCH),
        {"metadata": {"resourceVersion": "6"}, "spec": {"replicas": 4}},
        (HVPAS, None, None),
    ),
}  # fmt: skip
"""Write, response, path and media type, body; and the resource that is stored as version 8, its generation and
replicas."""


@pytest.mark.parametrize(("write", "found", "where", "body", "stored"), WRITES.values(), ids=WRITES)
async def test_a_patch_is_conditional_and_its_response_is_seen_by_the_next_read(
    tmp_path: Path, write: Write, found: Any, where: tuple[str, str], body: Any, stored: Any
) -> None:
    harness = Harness(found)
    harness.put(HVPAS, answer("r", 1, spec={"targetRef": target("argoproj.io/v1alpha1", "Rollout")}))
    harness.put(HVPAS, hvpa(6))
    harness.local.custom.resources["argoproj.io/v1alpha1", "Rollout"] = ROLLOUTS
    for resource in (DEPLOYMENTS, ROLLOUTS):
        harness.put(resource, answer("web", 7, metadata={"generation": 4}, spec={"replicas": 1}))
    harness.woken.clear()
    await harness.write(tmp_path, write)
    assert harness.sent() == ("PATCH", where[0], {"fieldManager": "hvpa"}, where[1], body)
    resource, generation, replicas = stored
    known = harness.get(resource, "h" if resource is HVPAS else "web")
    assert known.metadata.resource_version == "8"
    if generation is not None:
        assert (known.metadata.generation, known.spec.replicas) == (generation, replicas)


CHECKED = {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 3}}


@pytest.mark.parametrize("is_scale", [True, False])
async def test_a_patch_that_is_only_checked_is_a_dry_run_and_changes_nothing_here(
    tmp_path: Path, is_scale: bool
) -> None:
    harness = Harness(SCALED if is_scale else answer("web", 8, spec={"replicas": 3}))
    harness.put(DEPLOYMENTS, answer("web", 7, spec={"replicas": 1}))
    patch = WorkloadPatch("Deployment", "web", "7", CHECKED, is_scale)
    await harness.write(tmp_path, lambda cluster: cluster.check_workload_patch(OWNER, patch))
    media = MERGE_PATCH if is_scale else STRATEGIC_MERGE_PATCH
    path = f"{DEPLOYMENT}/scale" if is_scale else DEPLOYMENT
    query = {"fieldManager": "hvpa", "dryRun": "All"}
    assert harness.sent() == ("PATCH", path, query, media, CHECKED)
    assert harness.get(DEPLOYMENTS, "web").metadata.resource_version == "7"


@pytest.mark.parametrize(
    ("message", "is_refused"),
    [
        ("ValidatingAdmissionPolicy 'few' denied request", True),
        ('admission webhook "old.example" does not support dry run', False),
    ],
)
async def test_a_webhook_that_knows_no_dry_run_refuses_nothing_yet(
    tmp_path: Path, message: str, is_refused: bool
) -> None:
    harness = Harness({})
    harness.put(DEPLOYMENTS, answer("web", 7, spec={"replicas": 1}))
    harness.first.append(status(400, "BadRequest", message))
    patch = WorkloadPatch("Deployment", "web", "7", CHECKED, is_scale=True)
    with pytest.raises(Refused, match="few") if is_refused else nullcontext():
        await harness.write(tmp_path, lambda cluster: cluster.check_workload_patch(OWNER, patch))


def target(api_version: str, kind: str) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, "name": "web"}


async def test_our_own_status_is_read_and_wakes_no_hvpa(tmp_path: Path) -> None:
    harness = Harness(hvpa(6, 2))
    harness.put(HVPAS, hvpa(5))
    harness.woken.clear()
    await harness.write(tmp_path, patch_status)
    assert harness.woken == []
    objects = harness.local.objects(Key("ns", "h"))
    assert objects is not None
    assert objects.hvpa.status.replicas == 2


@pytest.mark.parametrize(
    ("meanwhile", "found", "woken"),
    [
        pytest.param([hvpa(6, 2)], hvpa(6, 2), 0, id="the watch is faster than the response"),
        pytest.param([hvpa(6, 2), hvpa(7, 2)], hvpa(6, 2), 0, id="and brings the same status again"),
        pytest.param([hvpa(6, 2), hvpa(7, 7)], hvpa(6, 2), 1, id="and brings the status of another client"),
        pytest.param([hvpa(6, 9)], status(409, "Conflict"), 1, id="ours fails"),
    ],
)
async def test_another_status_that_comes_while_ours_is_written_wakes_the_hvpa(
    tmp_path: Path, meanwhile: list[Any], found: Any, woken: int
) -> None:
    harness = Harness(found)
    harness.put(HVPAS, hvpa(5))
    harness.woken.clear()
    harness.meanwhile = list(meanwhile)
    async with harness.running(tmp_path) as cluster:
        if isinstance(found, web.Response):
            with pytest.raises(Conflict):
                await patch_status(cluster)
        else:
            await patch_status(cluster)
    assert harness.woken == [Key("ns", "h")] * woken


async def test_owned_objects_are_applied_released_and_deleted(tmp_path: Path) -> None:
    harness = Harness(answer("h", 3))
    path = "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers/h"
    async with harness.running(tmp_path) as cluster:
        await cluster.change_owned(OWNER, OwnedChange("apply", HPA, "h", manifest={"kind": HPA}))
        query = {"fieldManager": "hvpa"}
        assert harness.sent() == ("PATCH", path, query, APPLY_PATCH, {"kind": HPA})
        assert harness.get(HPAS, "h") is not None
        await cluster.change_owned(OWNER, OwnedChange("apply", HPA, "h", manifest={"kind": HPA}))
        assert harness.sent()[2] == {**query, "force": "true"}  # it is known now
        harness.answer = answer("h", 4)
        patch = {"metadata": {"ownerReferences": None, "resourceVersion": "3"}}
        await cluster.change_owned(OWNER, OwnedChange("release", HPA, "h", patch))
        assert harness.sent() == ("PATCH", path, query, MERGE_PATCH, patch)
        harness.answer = {"kind": "Status"}
        await cluster.change_owned(OWNER, OwnedChange("delete", HPA, "h", uid="u"))
        method, where, _, _, body = harness.sent()
        assert (method, where, body["preconditions"]) == ("DELETE", path, {"uid": "u"})
        assert harness.get(HPAS, "h") is None


WITH_RECOMMENDERS = {"kind": VPA, "spec": {"recommenders": [{"name": "fast"}]}}
PASSED_ON = OwnedChange("apply", VPA, "v", manifest=WITH_RECOMMENDERS, passed_on=(("recommenders",),))
UNDECLARED = "failed to create typed patch object (ns/v; V): .spec.recommenders: field not declared in schema"


async def test_fields_that_hvpa_does_not_know_are_written_after_a_dry_run(tmp_path: Path) -> None:
    harness = Harness(answer("v", 3, **WITH_RECOMMENDERS))
    await harness.write(tmp_path, lambda cluster: cluster.change_owned(OWNER, PASSED_ON))
    tried, written = [query for _, _, query in harness.server.requests]
    assert tried == {"fieldManager": "hvpa", "dryRun": "All", "fieldValidation": "Strict"}
    assert written == {"fieldManager": "hvpa"}
    assert harness.server.bodies == [WITH_RECOMMENDERS] * 2
    assert harness.get(VPAS, "v") is not None


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (
            status(500, "", UNDECLARED),
            f"VerticalPodAutoscaler v is not written, with {{field}}: {UNDECLARED}",
        ),
        (status(422, "", "recommenders: must be one"), "with {field}: recommenders: must be one"),
        (
            respond(answer("v", 3, spec={})),
            "{field}: the API server drops this field, or stores another value",
        ),
        (
            respond(answer("v", 3, spec={"recommenders": []})),
            "{field}: the API server drops this field, or stores",
        ),
        (respond(answer("v", 3, spec="none")), "{field}: the API server drops this field, or stores"),
    ],
)
async def test_a_field_that_the_api_server_does_not_take_is_reported_and_nothing_is_written(
    tmp_path: Path, response: web.Response, why: str
) -> None:
    harness = Harness()
    harness.first = [response]
    with pytest.raises(Refused) as caught:
        await harness.write(tmp_path, lambda cluster: cluster.change_owned(OWNER, PASSED_ON))
    assert why.format(field="spec.vpa.template.spec.recommenders") in str(caught.value)
    assert len(harness.server.requests) == 1
    assert harness.get(VPAS, "v") is None


async def test_what_stays_for_its_finalizers_is_known_until_it_is_gone(tmp_path: Path) -> None:
    harness = Harness(answer("v", 4, kind=VPA, metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}))
    harness.put(VPAS, answer("v", 3))
    await harness.write(
        tmp_path, lambda cluster: cluster.change_owned(OWNER, OwnedChange("delete", VPA, "v", uid="u"))
    )
    assert harness.get(VPAS, "v").metadata.deletion_timestamp is not None


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_a_write_that_the_server_fails_at_is_sent_once_more_at_once(tmp_path: Path, code: int) -> None:
    harness = Harness(answer("web", 8, spec={"replicas": 3}))
    harness.first = [status(code, "", "failed")]
    async with harness.running(tmp_path) as cluster:
        await patch_replicas()(cluster)
        first, second = harness.server.requests
        assert first == second
        harness.first = [status(code, "", message) for message in ("failed", "failed again", "and again")]
        with pytest.raises(Unavailable, match="failed again"):
            await patch_replicas(8)(cluster)
    assert len(harness.server.requests) == 4
    assert harness.asked_about == [Key("ns", "h")] * 4, "who may write is asked before each"


@pytest.mark.parametrize(
    ("write", "codes", "error", "requests"),
    [
        *[pytest.param("patch", [code], Conflict, 1, id=f"a patch of something else: {code}") for code in (409, 404)],
        *[pytest.param("patch", [code], Refused, 1, id=f"a refusal is not sent again: {code}")
          for code in (400, 403, 413, 422)],
        pytest.param("patch", [504, 409], Conflict, 2, id="a write whose response was lost, sent again"),
        pytest.param("apply", [404], WriteError, 1, id="an API that is not there"),
        pytest.param("apply", [409], WriteError, 1, id="an object that another client has made meanwhile"),
        pytest.param("apply to known", [409], Conflict, 1, id="an object that is known, and changed"),
        pytest.param("delete", [404], None, 1, id="what is gone already need not be deleted"),
    ],
)  # fmt: skip
async def test_what_a_failed_write_is(
    tmp_path: Path, write: str, codes: list[int], error: type[WriteError] | None, requests: int
) -> None:
    harness = Harness()
    harness.first = [status(code, "", "because") for code in codes]
    if write == "apply to known":
        harness.put(VPAS, answer("v", 3))
    failure: WriteError | None = None
    try:
        if write == "patch":
            await harness.write(tmp_path, patch_replicas())
        else:
            delete, apply = (
                OwnedChange("delete", VPA, "v", uid="u"),
                OwnedChange("apply", VPA, "v", manifest={}),
            )
            change = delete if write == "delete" else apply
            await harness.write(tmp_path, lambda cluster: cluster.change_owned(OWNER, change))
    except WriteError as caught:
        failure = caught
    assert error is None or str(failure) == "because"
    assert (failure and type(failure)) is error
    assert len(harness.server.requests) == requests


async def test_without_the_lease_nothing_is_sent(tmp_path: Path) -> None:
    harness = Harness()
    harness.may_write = False
    with pytest.raises(WriteError, match="leader"):
        await harness.write(tmp_path, patch_status)
    assert harness.server.requests == []
    assert harness.asked_about == [Key("ns", "h")]


async def test_a_server_that_asked_to_wait_is_sent_nothing_until_then(tmp_path: Path) -> None:
    harness = Harness(web.Response(status=429, text="Too many requests", headers={"Retry-After": "30"}))
    async with harness.running(tmp_path) as cluster:
        with pytest.raises(Overloaded) as first:
            await cluster.write_scale_replicas(OWNER, 1)
        with pytest.raises(Overloaded) as second:
            await patch_status(cluster)
    assert first.value.retry_after.total_seconds() == 30.0
    assert second.value.retry_after.total_seconds() > 29.0
    assert len(harness.server.requests) == 1


async def test_a_webhook_that_asks_to_wait_does_so_for_its_object_alone(tmp_path: Path) -> None:
    harness = Harness(answer("h", 6))
    harness.first = [status(429, "TooManyRequests", "denied", headers={"Retry-After": "30"})]
    async with harness.running(tmp_path) as cluster:
        with pytest.raises(Overloaded):
            await cluster.write_scale_replicas(OWNER, 1)
        await cluster.write_scale_replicas(OWNER, 1)
    assert len(harness.server.requests) == 2


async def test_a_response_that_can_t_be_read_is_left_to_the_watch(tmp_path: Path) -> None:
    harness = Harness({"metadata": 5})
    await harness.write(tmp_path, lambda cluster: cluster.write_scale_replicas(OWNER, 1))
    assert len(harness.local.hvpas) == 0


@pytest.mark.parametrize("found", ["newer", "none", "no Scale"])
async def test_a_scale_does_not_take_the_place_of_what_is_newer(tmp_path: Path, found: str) -> None:
    harness = Harness(b"[]" if found == "no Scale" else answer("web", 8, spec={"replicas": 3}))
    if found != "none":
        harness.put(DEPLOYMENTS, answer("web", 9, spec={"replicas": 5}))
    await harness.write(tmp_path, patch_replicas(is_scale=True))
    stored = harness.get(DEPLOYMENTS, "web")
    assert (stored and stored.spec.replicas) == (None if found == "none" else 5)


# --- pods that are resized in place ---
RESIZES = [
    PodResize(f"web-{number}", f"u{number}", {"metadata": {"uid": f"u{number}"}}) for number in range(40)
]


async def test_pods_are_resized_by_their_subresource(tmp_path: Path) -> None:
    harness = Harness(answer("web-1", 8))
    async with harness.running(tmp_path) as cluster:
        assert await cluster.resize_pods(OWNER, RESIZES) == []
    paths = [f"/api/v1/namespaces/ns/pods/web-{number}/resize" for number in range(40)]
    assert sorted(harness.server.paths) == sorted(paths)
    assert harness.sent()[3] == STRATEGIC_MERGE_PATCH
    assert harness.get(PODS, "web-1") is not None


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
    body = {"kind": "Status", "code": code, "reason": "R", "message": "m", "details": details}
    harness = Harness(web.json_response(body, status=code))
    async with harness.running(tmp_path) as cluster:
        failures = await cluster.resize_pods(OWNER, RESIZES[:1])
    assert [(resize.pod, type(error)) for resize, error in failures] == (
        [("web-0", expected)] if expected else []
    )
    if expected is NotServed:
        assert str(failures[0][1]) == NO_RESIZE


COSTS = [PodCost("web-1", "u1", "7", "-5"), PodCost("web-1", "u1", "7", None)]


@pytest.mark.parametrize("cost", COSTS, ids=["set", "removed"])
async def test_a_deletion_cost_is_written_to_the_version_that_was_read(tmp_path: Path, cost: PodCost) -> None:
    harness = Harness(answer("web-1", 8))
    async with harness.running(tmp_path) as cluster:
        assert await cluster.write_pod_costs(OWNER, [cost]) == []
    annotations = {"controller.kubernetes.io/pod-deletion-cost": cost.cost}
    body = {"metadata": {"uid": "u1", "resourceVersion": "7", "annotations": annotations}}
    path, query = "/api/v1/namespaces/ns/pods/web-1", {"fieldManager": "hvpa"}
    assert harness.sent() == ("PATCH", path, query, MERGE_PATCH, body)
    assert harness.get(PODS, "web-1").metadata.resource_version == "8"
    assert harness.woken == []


@pytest.mark.parametrize(
    ("code", "expected"), [(404, None), (409, None), (403, Refused), (429, Overloaded), (500, Unavailable)]
)
async def test_a_deletion_cost_of_a_pod_that_has_changed_is_no_error(
    tmp_path: Path, code: int, expected: type[WriteError] | None
) -> None:
    body = {"kind": "Status", "code": code, "reason": "R", "message": "m"}
    harness = Harness(web.json_response(body, status=code))
    async with harness.running(tmp_path) as cluster:
        errors = await cluster.write_pod_costs(OWNER, COSTS[:1])
    assert [type(error) for error in errors] == ([expected] if expected else [])


def metrics(name: str, **containers: object) -> dict[str, Any]:
    used = [{"name": key, "usage": value} for key, value in containers.items()]
    return {"metadata": {"name": name}, "containers": used}


USED = [
    metrics("web-1", app={"cpu": "1", "memory": "500Mi"}, log={"memory": "x"}),
    metrics("web-2", app={"cpu": "1"}),
]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param({"items": USED}, {("web-1", "app"): 500 * 2**20}, id="what can be read counts"),
        *[
            pytest.param(response, {}, id=name)
            for response, name in (
                (status(404), "no metrics API"),
                (status(503), "one that fails"),
                (b"[]", "no list"),
                ({"items": 3}, "no items"),
            )
        ],
    ],
)
async def test_memory_in_use_is_read_of_all_pods_at_once(tmp_path: Path, found: Any, expected: Any) -> None:
    harness = Harness(found)
    async with harness.running(tmp_path) as cluster:
        assert await cluster.memory_in_use(OWNER, "app=web") == expected
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods"
    assert harness.server.requests == [("GET", path, {"labelSelector": "app=web"})]


async def test_sizes_of_new_pods_are_written_and_those_of_an_hvpa_that_is_gone_are_removed(
    tmp_path: Path,
) -> None:
    harness = Harness(answer("hvpa", 8, sizes={"Deployment.apps/web": "h"}))
    async with harness.running(tmp_path) as cluster:
        await cluster.write_creation_sizes(OWNER, None)
        assert harness.server.requests == []
        await cluster.write_creation_sizes(OWNER, {"Deployment.apps/web": "h"})
        harness.answer = answer("hvpa", 9, sizes={})
        await cluster.write_creation_sizes(OWNER, None)
        assert harness.sent()[4] == {"sizes": {"Deployment.apps/web": None}}
        await cluster.write_creation_sizes(OWNER, None)
    assert len(harness.server.requests) == 2
    assert harness.woken == []


# --- what an Hvpa that is gone had adopted ---------------------------------------------------------------------------
NOTE = json.dumps(
    {"hvpa": "h", "uid": "u", "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}}
)
LISTED: dict[str, Any] = {"items": [{}]}


def adopted(name: str, version: int = 3) -> dict[str, Any]:
    target = {"scaleTargetRef": {"kind": "Hvpa", "name": "h"}}
    return answer(name, version, metadata={"annotations": {ADOPTED: NOTE}}, spec=target)


@pytest.mark.parametrize("listed", [{"items": []}, status(404, "NotFound")], ids=["no Hvpa", "no CRD"])
async def test_what_an_hvpa_that_does_not_exist_adopted_is_given_back_with_an_event(
    tmp_path: Path, listed: Any
) -> None:
    harness = Harness(answer("a", 4))
    harness.first = [respond(listed)]
    harness.put(HPAS, adopted("a"))
    harness.put(
        HPAS, {**adopted("going"), "metadata": {**adopted("going")["metadata"], "deletionTimestamp": NOW}}
    )
    async with harness.server.connected(tmp_path) as transport:
        recorder = Recorder()
        cluster = KubeCluster(transport, harness.local, recorder, harness.asked)  # type: ignore[arg-type]
        await cluster.give_back(OWNER)
        await cluster.give_back(OWNER)
    (method, path, query), (patch, where, _) = harness.server.requests
    assert (method, path, query) == ("GET", HVPA.rpartition("/")[0], {"fieldSelector": "metadata.name=h"})
    assert (patch, where) == ("PATCH", "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers/a")
    assert harness.server.bodies[-1]["metadata"]["resourceVersion"] == "3"
    assert harness.server.bodies[-1]["spec"]["scaleTargetRef"] == {"kind": "Deployment", "name": "web"}
    (event,) = recorder.events
    assert (event.type, event.reason, event.message) == (
        "Normal",
        "AdoptedReturned",
        "as before Hvpa h adopted it",
    )
    assert (event.involved.api_version, event.involved.kind, event.involved.name) == (
        "autoscaling/v2",
        HPA,
        "a",
    )


class Recorder:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def record(self, hvpa: Meta, event: Any) -> None:
        self.events.append(event)


async def test_while_the_hvpa_exists_nothing_is_given_back(tmp_path: Path) -> None:
    """The local copy is behind, or can't read it."""
    harness = Harness(LISTED)
    harness.put(HPAS, adopted("a"))
    await harness.write(tmp_path, lambda cluster: cluster.give_back(OWNER))
    assert [method for method, _, _ in harness.server.requests] == ["GET"]


async def test_without_anything_adopted_nothing_is_requested(tmp_path: Path) -> None:
    harness = Harness(LISTED)
    other = json.dumps({**json.loads(NOTE), "hvpa": "other"})
    harness.put(
        HPAS, {**adopted("a"), "metadata": {**adopted("a")["metadata"], "annotations": {ADOPTED: other}}}
    )
    harness.put(HPAS, {**adopted("b"), "metadata": answer("b", 3)["metadata"]})
    await harness.write(tmp_path, lambda cluster: cluster.give_back(OWNER))
    assert harness.server.requests == []


@pytest.mark.parametrize(
    ("listed", "error"),
    [(status(503), Unavailable), (status(403, "Forbidden"), Refused), (b"[]", Unavailable)],
)
async def test_if_it_is_not_known_whether_the_hvpa_exists_nothing_is_given_back(
    tmp_path: Path, listed: Any, error: type[WriteError]
) -> None:
    harness = Harness(listed)
    harness.put(HPAS, adopted("a"))
    with pytest.raises(error):
        await harness.write(tmp_path, lambda cluster: cluster.give_back(OWNER))
    assert {method for method, _, _ in harness.server.requests} == {"GET"}


async def test_a_refused_return_keeps_no_other_from_being_returned_and_its_error_has_the_remedy(
    tmp_path: Path,
) -> None:
    harness = Harness(answer("b", 4))
    harness.first = [respond({"items": []}), respond(status(422, "Invalid", "spec.maxReplicas"))]
    for name in ("a", "b"):
        harness.put(HPAS, adopted(name))
    with pytest.raises(
        Refused, match=f"spec.maxReplicas; to leave it as it is, remove its annotation {ADOPTED}"
    ):
        await harness.write(tmp_path, lambda cluster: cluster.give_back(OWNER))
    assert [path.rpartition("/")[2] for _, path, _ in harness.server.requests] == ["hvpas", "a", "b"]
