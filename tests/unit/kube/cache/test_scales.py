"""Workloads of custom kinds: found by discovery, read by their `scale` subresource."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.api.objects.read_models import Workload
from hvpa.core.model import Objects
from hvpa.kube.cache.cluster_cache import NOT_YET, LocalCluster
from hvpa.kube.cache.scales import Scales
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.objects.resources import HVPAS, PODS
from hvpa.reconcile.ports import Key
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


def missing(name: str) -> web.Response:
    """A 404 that names an object, as for one that does not exist; empty: of what is not served."""
    details = {"details": {"name": name}} if name else {}
    return web.json_response({"kind": "Status", "code": 404, "message": "not found", **details}, status=404)


class Harness:
    """A cluster with one Hvpa `h` of Rollout `web`."""

    def __init__(self) -> None:
        self.server = FakeServer(self._respond)
        self.woken: list[str] = []
        self.local = LocalCluster((ALL_NAMESPACES,), lambda key: self.woken.append(key.name))
        self.served: Any = SERVED
        self.scale: Any = scale()

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        return respond(self.served if request.path == GROUP else self.scale)

    def hvpa(self, version: int = 1, api_version: str = "argoproj.io/v1alpha1", target: str = "web") -> None:
        spec = {"targetRef": {"apiVersion": api_version, "kind": "Rollout", "name": target}}
        self.local.hvpas.put(HVPAS.decode(encoded(metadata=meta("h", version), spec=spec)))

    def pod(self, name: str, created: str, cpu: str, **metadata: Any) -> None:
        container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
        metadata = meta(name, labels={"app": "web"}, creationTimestamp=created, **metadata)
        self.local.pods.put(PODS.decode(encoded(metadata=metadata, spec={"containers": [container]})))

    def seen(self) -> Objects:
        found = self.local.objects(KEY)
        assert found is not None
        return found

    def workload(self) -> Workload:
        found = self.seen().workload
        assert found is not None
        return found

    async def is_read(self) -> None:
        await until(lambda: self.seen().workload is not None)

    @asynccontextmanager
    async def reading(self, folder: Path, period: float = 0.05) -> AsyncIterator[None]:
        async with self.server.connected(folder) as transport:
            scales = Scales(transport, self.local, period)
            self.local.on_named = lambda target: scales.named()
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
        one = harness.workload()
    assert (one.kind, one.api_version, one.metadata.name) == ("Rollout", "argoproj.io/v1alpha1", "web")
    assert (one.spec.replicas, one.metadata.generation, one.status.observed_generation) == (3, 3, 3)
    assert (one.status.replicas, one.status.ready_replicas, one.status.updated_replicas) == (2, 2, 2)
    assert one.spec.selector.match_labels == {"app": "web"}
    assert [found.resources.requests for found in one.spec.template.spec.containers] == [{"cpu": "2"}]
    assert len(harness.seen().pods) == 3
    assert harness.server.paths == [GROUP, f"{GROUP}/namespaces/shop/rollouts/web/scale"]


async def test_a_newer_pod_of_another_owner_does_not_count(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.reading(tmp_path, period=600):
        await harness.is_read()
        own, job = {"kind": "Rollout", "uid": "web"}, {"kind": "Job", "uid": "j"}
        harness.pod("own", "2026-11-21T10:00:00Z", "1", ownerReferences=[{**own, "controller": True}])
        harness.pod("other", "2026-11-21T11:00:00Z", "2", ownerReferences=[{**job, "controller": True}])
        (found,) = harness.workload().spec.template.spec.containers
    assert found.resources.requests == {"cpu": "1"}


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
        pytest.param([], None, "what the cluster serves of argoproj.io/v1alpha1 can't be read", id="odd discovery"),
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


async def test_a_workload_that_no_hvpa_names_any_more_is_forgotten(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.reading(tmp_path):
        await harness.is_read()
        harness.hvpa(2, target="other")
        assert [target.name for target, _ in harness.local.custom_targets()] == ["other"]
        assert list(harness.local.workloads["Rollout.argoproj.io"]) == []
        (target, _), *_ = harness.local.custom_targets()
        harness.local.hvpas.delete(KEY)
        harness.local.set_custom(target, None)
    assert harness.local.custom_targets() == []
