"""Workloads of custom kinds: found by discovery, read by their `scale` subresource."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.api.objects.read_models import Workload
from hvpa.core.model import Objects
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.custom_targets import NOT_YET
from hvpa.kube.cache.scales import AT_ONCE_EACH, Scales
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.objects.resources import HVPAS, PODS, ApiResource
from hvpa.reconcile.ports import Key
from hvpa.reconcile.supervision import Supervisor
from hvpa.reconcile.telemetry import Telemetry
from tests.unit.kube.fake_server import FakeServer, background, respond, status, until

GROUP = "/apis/argoproj.io/v1alpha1"
ROLLOUTS = {"name": "rollouts", "kind": "Rollout"}
SERVED = {"resources": [ROLLOUTS, {"name": "rollouts/scale", "kind": "Scale"}]}
KEY = Key("shop", "h")


def meta(name: str, version: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version), **more}


def scale(version: int = 7, replicas: int = 3, selector: str = "app=web") -> dict[str, Any]:
    status = {"replicas": 2, "selector": selector}
    return {"metadata": meta("web", version), "spec": {"replicas": replicas}, "status": status}


def encoded(**document: Any) -> bytes:
    return json.dumps(document).encode()


def named(document: Any, request: web.Request) -> Any:
    """The object with the name that was requested."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    return {**document, "metadata": {**metadata, "name": request.path.split("/")[-2]}}


def missing(name: str) -> web.Response:
    """A 404 that names an object, as for one that does not exist; empty: of what is not served."""
    details = {"details": {"name": name}} if name else {}
    return web.json_response({"kind": "Status", "code": 404, "message": "not found", **details}, status=404)


class Harness(Telemetry):
    """A cluster with one Hvpa `h` of Rollout `web`."""

    def __init__(self) -> None:
        self.server = FakeServer(self._respond)
        self.woken: list[str] = []
        self.local = LocalCluster((ALL_NAMESPACES,), lambda key: self.woken.append(key.name))
        self.set_back = asyncio.Event()
        self.failed: list[str] = []
        self.arrived = self.at_once = 0
        """Reads that have arrived, and how many of them are answered together."""
        self.served: Any = SERVED
        self.scale: Any = scale()

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        if request.path == GROUP:
            return respond(self.served)
        self.arrived += 1
        await until(lambda: self.arrived >= self.at_once)
        return respond(self.scale if isinstance(self.scale, web.Response) else named(self.scale, request))

    def task_failed(self, task: str) -> None:
        self.failed.append(task)

    def hvpa_of(self, name: str) -> None:
        """Another Hvpa, of a Rollout with its name."""
        spec = {"targetRef": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": name}}
        self.local.hvpas.put(HVPAS.decode(encoded(metadata=meta(name), spec=spec)))

    def hvpa(self, version: int = 1, api_version: str = "argoproj.io/v1alpha1", target: str = "web") -> None:
        spec = {"targetRef": {"apiVersion": api_version, "kind": "Rollout", "name": target}}
        self.local.hvpas.put(HVPAS.decode(encoded(metadata=meta("h", version), spec=spec)))

    def other_hvpa(self, namespace: str, name: str, target: dict[str, str]) -> None:
        """An Hvpa in another namespace, or of another version."""
        metadata = meta(name, 1) | {"namespace": namespace}
        self.local.hvpas.put(HVPAS.decode(encoded(metadata=metadata, spec={"targetRef": target})))

    def pod(self, name: str, created: str, cpu: str, **metadata: Any) -> None:
        container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
        metadata = meta(name, labels={"app": "web"}, creationTimestamp=created, **metadata)
        self.local.pods.put(PODS.decode(encoded(metadata=metadata, spec={"containers": [container]})))

    def seen(self, name: str = "h") -> Objects:
        objects = self.local.objects(Key("shop", name))
        assert objects is not None
        return objects

    def workload(self) -> Workload:
        workload = self.seen().workload
        assert workload is not None
        return workload

    async def is_read(self) -> None:
        await until(lambda: self.seen().workload is not None)

    @asynccontextmanager
    async def reading(self, folder: Path, period: float = 0.05) -> AsyncIterator[None]:
        async with self.server.connected(folder) as transport:
            scales = Scales(transport, self.local, period, Supervisor(self), self.set_back.set)
            self.local.on_named = lambda target: scales.named(target.namespace)
            async with background(scales.run()):
                self.hvpa()
                yield


async def test_a_scale_is_a_workload_with_the_containers_of_its_newest_pod(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.reading(tmp_path, period=600):
        assert harness.seen().unlisted == NOT_YET
        harness.woken.clear()
        await until(lambda: harness.seen().unlisted is None)
        assert harness.woken
        assert harness.workload().spec.template.spec.containers == []
        harness.pod("old", "2026-11-21T10:00:00Z", "1")
        harness.pod("new", "2026-11-21T11:00:00Z", "2")
        harness.pod("going", "2026-11-21T12:00:00Z", "3", deletionTimestamp="2026-11-21T13:00:00Z")
        workload = harness.workload()
    assert (workload.kind, workload.api_version, workload.metadata.name) == (
        "Rollout",
        "argoproj.io/v1alpha1",
        "web",
    )
    assert (workload.spec.replicas, workload.metadata.generation, workload.status.observed_generation) == (
        3,
        3,
        3,
    )
    assert (workload.status.replicas, workload.status.ready_replicas, workload.status.updated_replicas) == (
        2,
        2,
        2,
    )
    assert workload.spec.selector.match_labels == {"app": "web"}
    assert [container.resources.requests for container in workload.spec.template.spec.containers] == [
        {"cpu": "2"}
    ]
    assert len(harness.seen().pods) == 3
    assert harness.server.paths == [GROUP, f"{GROUP}/namespaces/shop/rollouts/web/scale"]


async def test_a_newer_pod_of_another_owner_does_not_count(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.reading(tmp_path, period=600):
        await harness.is_read()
        own, job = {"kind": "Rollout", "uid": "web"}, {"kind": "Job", "uid": "j"}
        harness.pod("own", "2026-11-21T10:00:00Z", "1", ownerReferences=[{**own, "controller": True}])
        harness.pod("other", "2026-11-21T11:00:00Z", "2", ownerReferences=[{**job, "controller": True}])
        (container,) = harness.workload().spec.template.spec.containers
    assert container.resources.requests == {"cpu": "1"}


async def test_a_change_by_another_client_is_seen_at_the_next_read(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.reading(tmp_path):
        await harness.is_read()
        harness.scale = scale(8, 5)
        await until(lambda: harness.workload().spec.replicas == 5)
        harness.scale = missing("web")
        await until(lambda: harness.seen().workload is None)
        assert harness.seen().unlisted is None
        harness.scale = scale(9, 4)
        await harness.is_read()


@pytest.mark.parametrize(
    ("served", "found", "reason"),
    [
        pytest.param(missing(""), None, "the cluster does not serve argoproj.io/v1alpha1", id="no group"),
        pytest.param({"resources": []}, None, "the cluster serves no Rollout of argoproj.io/v1alpha1", id="no kind"),
        pytest.param(
            {"resources": [ROLLOUTS]}, None, "rollouts of argoproj.io/v1alpha1 have no scale subresource", id="no scale"
        ),
        pytest.param([], None, "the API resource list at /apis/argoproj.io/v1alpha1", id="odd discovery"),
        pytest.param(status(503), None, "", id="overload"),
        pytest.param(SERVED, status(403, "Forbidden", "no right"), "no right", id="no right"),
        pytest.param(SERVED, {"metadata": []}, "the scale of Rollout.argoproj.io web can't be read", id="odd scale"),
        pytest.param(
            SERVED,
            scale(selector="a b"),
            "the scale of Rollout.argoproj.io web can't be read: no label selector: 'a b'",
            id="odd selector",
        ),
    ],
)  # fmt: skip
async def test_a_workload_that_can_t_be_read_has_a_reason(
    tmp_path: Path, served: Any, found: Any, reason: str
) -> None:
    harness = Harness()
    harness.served, harness.scale = served, found
    async with harness.reading(tmp_path, period=600):
        await until(lambda: bool(harness.seen().unlisted))
    assert reason in (harness.seen().unlisted or "")
    assert harness.seen().workload is None


async def test_a_kind_that_is_served_elsewhere_is_found_again(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.reading(tmp_path):
        await harness.is_read()
        harness.scale = harness.served = missing("")
        await until(lambda: bool(harness.seen().unlisted))
        harness.served, harness.scale = SERVED, scale(9)
        await until(lambda: harness.seen().unlisted is None)
        harness.hvpa(2, "argoproj.io/v1")
        await until(lambda: "/apis/argoproj.io/v1" in harness.server.paths)


ROLLOUT = {"kind": "Rollout", "name": "web", "apiVersion": "argoproj.io/v1alpha1"}


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({**ROLLOUT, "apiVersion": "argoproj.io/v1alpha1?x0="}, id="a query in the version"),
        pytest.param({**ROLLOUT, "apiVersion": "argoproj.io/v1alpha1/namespaces/x"}, id="a longer version"),
        pytest.param({**ROLLOUT, "apiVersion": "../../api/v1"}, id="another API"),
        pytest.param({**ROLLOUT, "kind": "Rollout?"}, id="a query in the kind"),
        pytest.param({**ROLLOUT, "name": "../web"}, id="a path in the name"),
        pytest.param({**ROLLOUT, "name": "a\x00b"}, id="a control character"),
    ],
)
async def test_nothing_is_requested_for_a_name_that_is_none(tmp_path: Path, target: dict[str, str]) -> None:
    harness = Harness()
    for number in range(6):
        harness.other_hvpa("hostile", f"x{number}", target)
    async with harness.reading(tmp_path, period=0.02):
        await harness.is_read()
        await until(lambda: harness.server.paths.count(f"{GROUP}/namespaces/shop/rollouts/web/scale") > 3)
    assert set(harness.server.paths) == {GROUP, f"{GROUP}/namespaces/shop/rollouts/web/scale"}
    assert list(harness.local.custom.resources) == [("argoproj.io/v1alpha1", "Rollout")]


@pytest.mark.parametrize("namespace", ["shop", "other"])
async def test_two_versions_of_a_kind_do_not_disturb_each_other(tmp_path: Path, namespace: str) -> None:
    """Also where both are of the same workload: what can't be read in one version can be read in the other."""
    harness = Harness()

    async def respond_by_version(request: web.Request) -> web.StreamResponse:
        if "v1beta1" in request.path:
            return missing("")
        document = scale()
        document["metadata"]["namespace"] = "shop"
        return respond(SERVED if request.path == GROUP else document)

    harness.server.handler = respond_by_version
    for number in range(3):
        harness.other_hvpa(namespace, f"x{number}", {**ROLLOUT, "apiVersion": "argoproj.io/v1beta1"})
    async with harness.reading(tmp_path, period=0.02):
        await harness.is_read()
        for _ in range(4):
            before = len(harness.server.paths)
            await until(lambda: len(harness.server.paths) > before + 8)  # noqa: B023
            assert harness.seen().workload is not None
            assert harness.seen().unlisted is None
        other = harness.local.objects(Key(namespace, "x0"))
        assert other is not None
        assert other.unlisted == "the cluster does not serve argoproj.io/v1beta1"
        for number in range(3):
            harness.local.hvpas.delete(Key(namespace, f"x{number}"))
        assert harness.workload().spec.replicas == 3
    assert harness.server.paths.count(GROUP) == 1, "a kind that was found is not looked for again"


async def test_a_version_that_is_served_no_longer_leaves_the_other_version_s_workload_alone(
    tmp_path: Path,
) -> None:
    harness = Harness()
    gone = False

    async def respond_by_version(request: web.Request) -> web.StreamResponse:
        if "v1beta1" in request.path and gone:
            return missing("")
        return respond(scale() if request.path.endswith("/scale") else SERVED)

    harness.server.handler = respond_by_version
    harness.other_hvpa("shop", "x", {**ROLLOUT, "apiVersion": "argoproj.io/v1beta1"})
    async with harness.reading(tmp_path, period=0.02):
        await until(lambda: len(harness.local.custom.resources) == 2 and harness.seen().unlisted is None)
        gone = True
        workloads: list[Workload | None] = []

        def has_read(reads: int) -> bool:
            workloads.append(harness.seen().workload)
            return len(harness.server.paths) > reads and len(harness.local.custom.resources) == 1

        await until(lambda: has_read(0))
        reads = len(harness.server.paths)
        await until(lambda: has_read(reads + 6))
    assert None not in workloads


async def test_a_scale_of_another_object_is_not_taken(tmp_path: Path) -> None:
    harness = Harness()
    harness.scale["metadata"]["namespace"] = "kube-system"
    async with harness.reading(tmp_path, period=600):
        await until(lambda: bool(harness.seen().unlisted))
    assert "it is another object's" in (harness.seen().unlisted or "")


async def test_a_namespace_with_many_slow_targets_does_not_keep_another_one_waiting(tmp_path: Path) -> None:
    harness = Harness()
    slow = asyncio.Event()
    waiting: list[str] = []

    async def respond_slowly(request: web.Request) -> web.StreamResponse:
        if "slow.example" in request.path:
            waiting.append(request.path)
            await slow.wait()
            return missing("")
        return respond(SERVED if request.path == GROUP else scale())

    harness.server.handler = respond_slowly
    for number in range(50):
        harness.other_hvpa("hostile", f"x{number}", {**ROLLOUT, "apiVersion": f"slow.example/v{number}"})
    async with harness.reading(tmp_path, period=0.02):
        await until(lambda: harness.server.paths.count(f"{GROUP}/namespaces/shop/rollouts/web/scale") > 5)
        assert len(waiting) == AT_ONCE_EACH
        slow.set()
        await until(lambda: len(set(waiting)) == 50)


async def test_a_workload_that_no_hvpa_names_any_more_is_forgotten(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.reading(tmp_path):
        await harness.is_read()
        harness.hvpa(2, target="other")
        (other,) = harness.local.custom.of("shop")
        assert other.target.name == "other"
        assert list(harness.local.workloads["Rollout.argoproj.io"]) == []
        harness.local.hvpas.delete(KEY)
        harness.local.set_custom(other, None)
    assert not harness.local.custom.namespaces


async def test_a_crd_that_is_deleted_while_several_reads_are_under_way_ends_nothing(tmp_path: Path) -> None:
    """Both reads know the kind, and both get 404."""
    harness = Harness()
    async with harness.reading(tmp_path):
        for name in ("second", "third"):
            harness.hvpa_of(name)
        await until(lambda: all(harness.seen(name).workload is not None for name in ("h", "second", "third")))
        harness.arrived, harness.at_once = 0, 3
        harness.scale = harness.served = missing("")
        await until(lambda: bool(harness.seen("third").unlisted))
        harness.at_once = 0
        harness.served, harness.scale = SERVED, scale(99)
        await until(lambda: harness.seen("third").unlisted is None and harness.seen().unlisted is None)
    assert harness.failed == []


async def test_a_fault_of_one_read_ends_no_other_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = Harness()
    original = ApiResource.path

    def path(
        self: ApiResource[Any], namespace: str | None, name: str | None = None, sub: str | None = None
    ) -> str:
        if name == "second":
            raise KeyError("second")
        return original(self, namespace, name, sub)

    monkeypatch.setattr(ApiResource, "path", path)
    async with harness.reading(tmp_path):
        harness.hvpa_of("second")
        await until(lambda: harness.seen("second").unlisted == "internal error: KeyError")
        await harness.is_read()
        harness.scale = scale(8, 5)
        await until(lambda: harness.workload().spec.replicas == 5)
    assert set(harness.failed) == {"read a workload of a custom kind"}


async def test_a_workload_of_an_earlier_state_of_the_cluster_is_believed_and_reported(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.reading(tmp_path):
        harness.scale = scale(700, 9)
        await until(lambda: harness.seen().workload is not None and harness.workload().spec.replicas == 9)
        harness.scale = scale(20, 2)
        await until(lambda: harness.workload().spec.replicas == 2)
    assert harness.set_back.is_set()
