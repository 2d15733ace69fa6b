"""What all watches together report: to /readyz, and to the metrics."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.custom_targets import NOT_YET
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.cache.watches import Watches
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.resources import HVPAS, PODS, WATCHED
from hvpa.reconcile.ports import Key
from hvpa.reconcile.telemetry import Telemetry
from tests.unit.kube.fake_server import FakeServer, Stream, background, listing, status, until

NOW = dt.datetime(2026, 11, 22, 15, 0, 0, 7, tzinfo=dt.UTC)


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
            found = watches.last_success()
    optional = {"verticalpodautoscalers", "hvpasizes", "verticalpodautoscalercheckpoints"}
    assert not optional & found.keys()
    assert found["pods"] == found["statefulsets"] == 0.0
    assert all(0 < NOW.timestamp() - found[one] < 600 for one in ("hvpas", "deployments"))


async def test_a_resource_that_was_listed_is_out_of_date_since_its_last_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hvpa.kube.cache.reflector.STALE", 0.0)  # at once
    async with FakeServer().transport(tmp_path) as transport:
        watches, _ = watching(transport, "one", "two")
        for one in watches.reflectors:
            one.state = "synced"
            one.freshness.succeeded()
        assert watches.problems() == []
        (pods,) = [one for one in watches.reflectors if one.resource is PODS and one.scope == "two"]
        pods.freshness.failed(Exception("10.0.0.1"))
        (problem,) = watches.problems()
        since = r"2026-11-22T1\d:\d\d:\d\dZ"
        assert re.fullmatch(f"pods: out of date since {since}: no response that can be used", problem)


async def test_some_kinds_are_watched_once_an_hvpa_names_them(tmp_path: Path) -> None:
    refused = True

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/daemonsets") and refused:
            return status(403, "Forbidden")
        found = [hvpa("early", "ReplicaSet")] if request.path.endswith("/hvpas") else []
        return await Stream().respond(request) if "watch" in request.query else listing(found, "1")

    def hvpa(name: str, kind: str) -> dict[str, Any]:
        spec = {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"}}
        metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"}
        return {"metadata": metadata, "spec": spec}

    def add(one: dict[str, Any]) -> None:
        local.hvpas.put(HVPAS.decode(json.dumps(one).encode()))

    def unlisted(name: str) -> str | None:
        found = local.objects(Key("shop", name))
        assert found is not None
        return found.unlisted

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
    plurals = [one.resource.plural for one in watches.reflectors]
    assert plurals[len(WATCHED) :] == ["replicasets", "daemonsets"]
