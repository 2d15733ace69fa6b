"""The value of a metric of the service, of what the metrics APIs say about it."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from builders.build import hvpa
from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.core.model import MetricValue
from hvpa.kube.objects import service_metric
from hvpa.kube.objects.service_metric import read_metric
from tests.unit.kube.fake_server import FakeServer, always, respond, status

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/p99"
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "old", "operator": "DoesNotExist"},
    ],
}
TIME = dt.datetime(2026, 1, 1, 9, 59, tzinfo=dt.UTC)


def read(document: dict[str, Any]) -> RollbackMetric:
    spec = hvpa({"updateStrategy": {"canary": {"rollbackOnMetrics": [document | {"above": "1"}]}}}).spec
    assert spec is not None
    assert spec.strategy.canary is not None
    return spec.strategy.canary.rollback_on_metrics[0]


def external(name: str = "p99", **more: Any) -> RollbackMetric:
    return read({"external": {"metric": {"name": name, **more}}})


def of_object(**described: str) -> RollbackMetric:
    return read({"object": {"metric": {"name": "errors"}, "describedObject": {"name": "web", **described}}})


def item(value: object, **more: Any) -> dict[str, Any]:
    return {"value": value, "timestamp": "2026-01-01T09:59:00Z", **more}


async def test_external_metric_is_the_largest_value_of_its_series(tmp_path: Path) -> None:
    items = [item("250m"), item("1500m"), item("1"), item("much"), {}]
    server = FakeServer(always({"items": items}))
    async with server.connected(tmp_path) as transport:
        assert await read_metric(transport, "shop", external(selector=SELECTOR)) == MetricValue("1500m", TIME)
    assert server.requests == [("GET", EXTERNAL, {"labelSelector": "app=web,!old,tier in (a,b)"})]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (status(403, "Forbidden", "not allowed"), "not allowed"),
        (b"[]", "the metric's values"),
        ({"items": []}, "the metrics API returns no value"),
        ({"items": [item("NaN")]}, "the metrics API returns no value"),
        ({"items": [item("1") | {"timestamp": "soon"}]}, "the metric's values"),
    ],
    ids=["forbidden", "no object", "no series", "no quantity", "no time"],
)
async def test_metric_without_a_value_has_a_problem(tmp_path: Path, answer: object, problem: str) -> None:
    async with FakeServer(always(answer)).connected(tmp_path) as transport:
        value = await read_metric(transport, "shop", external())
    assert (value.value, value.time) == ("", None)
    assert problem in value.problem


async def test_no_request_is_made_for_a_name_that_is_a_path(tmp_path: Path) -> None:
    server = FakeServer()
    async with server.connected(tmp_path) as transport:
        value = await read_metric(transport, "shop", external("../../../api/v1/secrets"))
    assert "is not a valid name" in value.problem
    assert server.requests == []


def served(kind: str, plural: str, custom: dict[str, object]) -> FakeServer:
    """A cluster with one kind, and an adapter with these answers by version."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if "custom.metrics.k8s.io" not in request.path:
            return respond(
                {"resources": [{"name": f"{plural}/status", "kind": kind}, {"name": plural, "kind": kind}]}
            )
        version = request.path.split("/")[3]
        return respond(custom[version])

    return FakeServer(handle)


@pytest.mark.parametrize(
    ("version", "kind", "discovery", "resource"),
    [
        ({}, "Service", "/api/v1", "services"),
        ({"apiVersion": "apps/v1"}, "Deployment", "/apis/apps/v1", "deployments.apps"),
    ],
    ids=["core", "of a group"],
)  # fmt: skip
async def test_object_metric_is_read_at_the_resource_of_its_kind(
    tmp_path: Path, version: dict[str, str], kind: str, discovery: str, resource: str
) -> None:
    server = served(kind, resource.partition(".")[0], {"v1beta2": {"items": [item("3")]}})
    async with server.connected(tmp_path) as transport:
        assert await read_metric(transport, "shop", of_object(kind=kind, **version)) == MetricValue("3", TIME)
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/{resource}/web/errors"
    assert server.paths == [discovery, path]


async def test_object_metric_of_an_older_adapter(tmp_path: Path) -> None:
    answers = {
        "v1beta2": status(404),
        "v1beta1": {"items": [{"value": 3, "timestamp": "2026-01-01T09:59:00"}]},
    }
    async with served("Service", "services", answers).connected(tmp_path) as transport:
        assert await read_metric(transport, "shop", of_object(kind="Service")) == MetricValue("3", TIME)


@pytest.mark.parametrize(
    ("kind", "answer", "problem"),
    [
        ("Servise", {}, "the API server serves no Servise in v1"),
        ("Service", status(500, "", "broken"), "broken"),
    ],
)
async def test_object_metric_that_can_not_be_read(
    tmp_path: Path, kind: str, answer: object, problem: str
) -> None:
    async with served("Service", "services", {"v1beta2": answer}).connected(tmp_path) as transport:
        assert problem in (await read_metric(transport, "shop", of_object(kind=kind))).problem


FIELDS = st.sampled_from(["items", "value", "timestamp", "x"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(FIELDS, part, max_size=3),
    max_leaves=8,
)


@given(ANY_JSON)
def test_any_answer_is_a_value_or_a_problem(answer: object) -> None:
    class Transport:
        async def request(self, *_: object) -> bytes:
            return json.dumps(answer).encode()

    transport: Any = Transport()
    value = asyncio.run(read_metric(transport, "shop", external()))
    assert bool(value.value) != bool(value.problem)
    assert len(value.problem) <= service_metric.MOST_WORDS
