"""What all watches together report: to /readyz, and to the metrics."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.api.objects.read_models import TemplateSpec
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.custom_targets import NOT_YET
from hvpa.kube.cache.reflector import Reflector
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.cache.watches import Watches
from hvpa.kube.client.errors import Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import (
    CLUSTER_POLICIES,
    DEPLOYMENTS,
    HVPA_POLICIES,
    HVPAS,
    NAMESPACES,
    PODS,
    WATCHED,
    WORKLOADS,
)
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import Backoff
from hvpa.reconcile.supervision import Supervisor
from hvpa.reconcile.telemetry import Telemetry
from tests.unit.kube.fake_server import FakeServer, Stream, background, listing, status, until

NOW = dt.datetime(2026, 11, 22, 15, 0, 0, 7, tzinfo=dt.UTC)
RESIZABLE = {"resources": [{"name": "pods"}, {"name": "pods/resize"}]}
"""What an API server serves that can resize pods."""


class Clock:
    """Stands still."""

    def now(self) -> dt.datetime:
        return NOW


def watching(transport: Transport, *scopes: str) -> tuple[Watches, LocalCluster]:
    scopes = scopes or (ALL_NAMESPACES,)
    local = LocalCluster(scopes, lambda key: None)
    return Watches(transport, local, scopes, Telemetry(), Clock()), local


async def test_what_is_missing_is_reported_by_resource_and_some_need_not_be_served(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith(("/verticalpodautoscalers", "/hvpasizes", "/statefulsets")):
            return status(404, "NotFound")
        if request.path.endswith("/verticalpodautoscalercheckpoints"):
            return status(403, "Forbidden")
        if request.path.endswith("/pods"):
            return status(403, "Forbidden", 'User "somebody" cannot list resource "pods"')
        return await Stream().respond(request) if "watch" in request.query else listing([], "1")

    async with FakeServer(answer).connected(tmp_path) as transport:
        watches, _ = watching(transport)
        assert len(watches.problems()) == len(watches.reflectors)
        assert set(watches.last_success().values()) == {0.0}
        async with background(watches.run()):
            await until(lambda: len(watches.problems()) == 2 and len(watches.last_success()) == 5)
            assert watches.problems() == [
                "statefulsets: not served by the cluster",
                "pods: not listed yet: 403 Forbidden",
            ]
            times = watches.last_success()
    optional = {"verticalpodautoscalers", "hvpasizes", "verticalpodautoscalercheckpoints"}
    assert not optional & times.keys()
    assert times["pods"] == times["statefulsets"] == 0.0
    assert all(0 < NOW.timestamp() - times[plural] < 600 for plural in ("hvpas", "deployments"))


async def test_a_resource_that_was_listed_is_out_of_date_since_its_last_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hvpa.kube.cache.reflector.STALE", 0.0)  # at once
    async with FakeServer().transport(tmp_path) as transport:
        watches, _ = watching(transport, "one", "two")
        for reflector in watches.reflectors:
            reflector.state = "synced"
            reflector.freshness.succeeded()
        assert watches.problems() == []
        (pods,) = [
            reflector
            for reflector in watches.reflectors
            if reflector.resource is PODS and reflector.scope == "two"
        ]
        pods.freshness.failed(Unreachable("10.0.0.1"))
        (problem,) = watches.problems()
        since = r"2026-11-22T1\d:\d\d:\d\dZ"
        assert re.fullmatch(f"pods: out of date since {since}: no usable response", problem)


async def test_some_kinds_are_watched_once_an_hvpa_names_them(tmp_path: Path) -> None:
    refused = True

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/daemonsets") and refused:
            return status(403, "Forbidden")
        items = [hvpa("early", "ReplicaSet")] if request.path.endswith("/hvpas") else []
        return await Stream().respond(request) if "watch" in request.query else listing(items, "1")

    def hvpa(name: str, kind: str) -> dict[str, Any]:
        spec = {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"}}
        metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"}
        return {"metadata": metadata, "spec": spec}

    def add(manifest: dict[str, Any]) -> None:
        local.hvpas.put(HVPAS.decode(json.dumps(manifest).encode()))

    def unlisted(name: str) -> str | None:
        objects = local.objects(Key("shop", name))
        assert objects is not None
        return objects.unlisted

    async with FakeServer(answer).connected(tmp_path) as transport:
        watches, local = watching(transport)
        async with background(watches.run()):
            await until(watches.synced)
            await until(lambda: unlisted("early") is None)
            add(hvpa("late", "DaemonSet"))
            add(hvpa("later", "DaemonSet"))
            assert unlisted("late") == NOT_YET
            await until(lambda: unlisted("late") == "the list of daemonsets fails: 403 Forbidden")
            assert watches.synced()
            refused = False
            await until(lambda: unlisted("late") is None)
    plurals = [reflector.resource.plural for reflector in watches.reflectors]
    assert plurals[len(WATCHED) :] == ["replicasets", "daemonsets"]


class Cluster:
    """Lists at a version, and watches that are silent; `conflicts` are not its business."""

    def __init__(self) -> None:
        self.version = 100
        self.lists: list[str] = []
        self.held = asyncio.Event()
        self.held.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1":
            return web.json_response(RESIZABLE)
        if "watch" in request.query:
            return await Stream().respond(request)
        if request.path.endswith(
            ("/hvpasizes", "/verticalpodautoscalers", "/verticalpodautoscalercheckpoints")
        ):
            return status(404, "NotFound")
        if request.query["limit"] == "500":
            await self.held.wait()
            self.lists.append(request.path.rpartition("/")[2])
        return listing([], str(self.version))


async def test_once_one_client_finds_the_cluster_set_back_everything_is_listed_once_and_readyz_says_so(
    tmp_path: Path,
) -> None:
    cluster = Cluster()
    async with FakeServer(cluster.answer).connected(tmp_path) as transport:
        watches, _ = watching(transport)
        async with background(watches.run()):
            await until(lambda: watches.synced() and not watches.problems())
            listed = sorted(cluster.lists)
            assert len(listed) == 5
            cluster.lists.clear()
            cluster.version = 40
            cluster.held.clear()
            for _ in range(3):  # the lease, a custom kind's scale and a reflector may all notice
                watches.set_back()
            assert len(watches.problems()) == 5
            assert all(
                "out of date since" in problem and "set back" in problem for problem in watches.problems()
            )
            cluster.held.set()
            await until(lambda: not watches.problems())
    assert sorted(cluster.lists) == listed


@pytest.mark.parametrize(("version", "lists"), [(40, 5), (100, 0), (400, 0)])
async def test_after_a_conflict_the_server_s_versions_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, lists: int
) -> None:
    monkeypatch.setattr("hvpa.kube.cache.watches.CHECKS", 0.0)
    cluster, server = Cluster(), FakeServer()
    server.handler = cluster.answer
    async with server.connected(tmp_path) as transport:
        watches, _ = watching(transport)
        async with background(watches.run()):
            await until(lambda: watches.synced() and not watches.problems())
            cluster.lists.clear()
            cluster.version = version
            before = len(server.requests)
            watches.conflicted()
            await until(lambda: len(server.requests) >= before + max(5, lists))
            await until(lambda: len(cluster.lists) >= lists and not watches.problems())
    assert len(cluster.lists) == lists


async def test_a_watch_that_crashes_is_begun_again_with_a_list_and_ends_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, crashes = Cluster(), 3
    original = Reflector._watch

    async def watch(self: Reflector[Any], version: str) -> None:
        nonlocal crashes
        if self.resource is PODS and crashes:
            crashes -= 1
            raise KeyError("somebody's pod")
        await original(self, version)

    monkeypatch.setattr(Reflector, "_watch", watch)
    async with FakeServer(cluster.answer).connected(tmp_path) as transport:
        supervisor = Supervisor(backoff=Backoff(0.001, 0.001))
        local = LocalCluster((ALL_NAMESPACES,), lambda key: None)
        watches = Watches(transport, local, (ALL_NAMESPACES,), Telemetry(), Clock(), supervisor)
        async with background(watches.run()):
            await until(lambda: cluster.lists.count("pods") == 4 and not watches.problems())
    assert supervisor.problems() == {"watch pods": "keeps failing: KeyError"}
    assert {plural for plural in cluster.lists if cluster.lists.count(plural) > 1} == {"pods"}


@pytest.mark.parametrize(
    ("code", "core", "resizes"),
    [
        pytest.param(200, RESIZABLE, True, id="from 1.33 on"),
        pytest.param(200, {"resources": [{"name": "pods"}, {"name": "pods/eviction"}]}, False, id="before"),
        pytest.param(200, {"resources": []}, True, id="a list that says nothing"),
        pytest.param(403, {}, True, id="no right to read it"),
    ],
)
async def test_whether_pods_can_be_resized_is_known_before_anything_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, core: dict[str, Any], resizes: bool
) -> None:
    told = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1":
            await told.wait()
            return web.json_response(core, status=code)
        return await Stream().respond(request) if "watch" in request.query else listing([], "1")

    async with FakeServer(answer).connected(tmp_path) as transport:
        watches, local = watching(transport)
        calls: list[bool] = []
        monkeypatch.setattr(local, "set_resizes_pods", calls.append)
        async with background(watches.run()):
            await until(lambda: all(reflector.state == "synced" for reflector in watches.reflectors))
            assert not watches.synced()
            told.set()
            await watches.wait(watches.synced)
    assert calls == ([resizes] if code == 200 else [])


async def test_the_api_server_is_asked_again_after_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hvpa.kube.cache.watches.UPGRADE", 0.001)
    monkeypatch.setattr("hvpa.kube.cache.watches.RETRY", 0.001)
    answers: list[dict[str, Any] | int] = [RESIZABLE, {"resources": [{"name": "pods"}]}, 200, 503]

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path != "/api/v1":
            return await Stream().respond(request) if "watch" in request.query else listing([], "1")
        reply = answers.pop() if len(answers) > 1 else answers[0]
        if isinstance(reply, int):  # while it starts, or a proxy's page
            return web.Response(text="<html>", status=reply)
        return web.json_response(reply)

    async with FakeServer(answer).connected(tmp_path) as transport:
        watches, local = watching(transport)
        calls: list[bool] = []
        monkeypatch.setattr(local, "set_resizes_pods", calls.append)
        async with background(watches.run()):
            await until(lambda: len(calls) > 3)
    assert calls[:3] == [False, True, True]


async def test_nodes_are_watched_in_the_whole_cluster_once_an_hvpa_needs_them(tmp_path: Path) -> None:
    listed: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/nodes"):
            listed.append(request.path)
            return status(403, "Forbidden")
        return await Stream().respond(request) if "watch" in request.query else listing([], "1")

    async with FakeServer(answer).connected(tmp_path) as transport:
        watches, local = watching(transport, "one", "two")
        async with background(watches.run()):
            await until(lambda: not watches.problems())
            assert listed == []
            assert local.nodes.largest(TemplateSpec()).is_awaited
            await until(lambda: not local.nodes.largest(TemplateSpec()).is_awaited)
            assert listed[0] == "/api/v1/nodes"
            assert local.nodes.largest(TemplateSpec()).problem.startswith("the operator may not read nodes")
            assert watches.problems() == []


async def test_policies_are_watched_if_that_is_wanted_and_their_needs_once(tmp_path: Path) -> None:
    async with FakeServer().transport(tmp_path) as transport:
        watches, local = watching(transport)
        assert watches.states(HVPA_POLICIES) == set()
        watches.watch_policies()
        assert watches.states(HVPA_POLICIES) == watches.states(CLUSTER_POLICIES) == {"starting"}
        before = len(watches.reflectors)
        for _ in range(2):
            for resource in (NAMESPACES, DEPLOYMENTS):
                local.policies.on_wanted(resource)
        assert len(watches.reflectors) == before + 1
        scoped, _ = watching(transport, "one", "two")
        scoped.watch_policies()
        watched = [(each.resource.plural, each.scope) for each in scoped.reflectors]
        assert watched[-2:] == [("hvpapolicies", "one"), ("hvpapolicies", "two")]
        assert scoped.states(CLUSTER_POLICIES) == set()


async def test_a_list_without_objects_is_news_for_policies(tmp_path: Path) -> None:
    """An Hvpa whose DaemonSet was deleted while no operator ran may only go once DaemonSets are listed."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await Stream().respond(request) if "watch" in request.query else listing([], "1")

    async with FakeServer(answer).connected(tmp_path) as transport:
        watches, local = watching(transport)
        async with background(watches.run()):
            await until(watches.synced)
            assert not local.policies.changed.is_set()
            metadata = {"name": "team", "namespace": "one", "uid": "u", "resourceVersion": "1"}
            spec = {"template": {"vpa": {"deploy": True}}, "workloads": {"kinds": ["DaemonSet"]}}
            document = json.dumps({"metadata": metadata, "spec": spec, "status": {}}).encode()
            local.store(HVPA_POLICIES).put(HVPA_POLICIES.decode(document))
            local.policies.read()
            local.policies.changed.clear()
            await until(local.policies.changed.is_set)
            assert watches.states(WORKLOADS["DaemonSet"]) == {"synced"}
