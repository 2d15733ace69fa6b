"""The value of a metric of the service, of what the metrics APIs say about it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from builders.build import NOW, at, hvpa, stamp
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
TIME = at(minutes=-1)


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
    return {"value": value, "timestamp": stamp(TIME), **more}


async def test_external_metric_is_the_largest_value_of_its_series(tmp_path: Path) -> None:
    items = [
        item("250m"),
        item("1500m"),
        item(1),
        item(0.5),
        item("3") | {"timestamp": stamp(at(minutes=-3))},
    ]
    server = FakeServer(always({"items": items}))
    async with server.connected(tmp_path) as transport:
        assert await read_metric(transport, "shop", external(selector=SELECTOR), NOW, {}) == MetricValue(
            "1500m", TIME
        )
    assert server.requests == [("GET", EXTERNAL, {"labelSelector": "app=web,!old,tier in (a,b)"})]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (status(403, "Forbidden", "not allowed"), "not allowed"),
        (b"[]", "the metric's values"),
        ({"items": []}, "the metrics API returns no value"),
        ({"items": [item("1"), item("NaN")]}, "'NaN' is not a quantity"),
        ({"items": [item("1"), item(1e100)]}, "is not a quantity"),
        ({"items": [item(-(10**64 - 1))]}, "is not a quantity"),
        ({"items": [item("1") | {"timestamp": stamp(at(minutes=-3))}]}, "the newest value is of 2026-"),
        ({"items": [item("1") for _ in range(2000)]}, "the response has more than 65536 bytes"),
        ({"items": [item("1") | {"timestamp": "soon"}]}, "the metric's values"),
    ],
    ids=["forbidden", "no object", "no series", "NaN", "huge", "long", "old", "many series", "no time"],
)
async def test_metric_without_a_value_has_a_problem(tmp_path: Path, answer: object, problem: str) -> None:
    async with FakeServer(always(answer)).connected(tmp_path) as transport:
        value = await read_metric(transport, "shop", external(), NOW, {})
    assert (value.value, value.time) == ("", None)
    assert problem in value.problem


async def test_no_request_is_made_for_a_name_that_is_a_path(tmp_path: Path) -> None:
    server = FakeServer()
    async with server.connected(tmp_path) as transport:
        value = await read_metric(transport, "shop", external("../../../api/v1/secrets"), NOW, {})
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
        assert await read_metric(transport, "shop", of_object(kind=kind, **version), NOW, {}) == MetricValue(
            "3", TIME
        )
    path = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/{resource}/web/errors"
    assert server.paths == [discovery, path]


async def test_the_resource_of_a_kind_is_found_once(tmp_path: Path) -> None:
    server = served("Service", "services", {"v1beta2": {"items": [item("3")]}})
    plurals: dict[tuple[str, str], str] = {}
    async with server.connected(tmp_path) as transport:
        for _ in range(2):
            await read_metric(transport, "shop", of_object(kind="Service"), NOW, plurals)
    assert plurals == {("v1", "Service"): "services"}
    assert server.paths.count("/api/v1") == 1


async def test_value_without_a_time_or_of_a_clock_that_is_ahead_is_of_now(tmp_path: Path) -> None:
    items = [{"value": "2"}, item("3") | {"timestamp": stamp(at(hours=1))}]
    async with FakeServer(always({"items": items})).connected(tmp_path) as transport:
        assert await read_metric(transport, "shop", external(), NOW, {}) == MetricValue("3", NOW)


async def test_object_metric_of_an_older_adapter(tmp_path: Path) -> None:
    answers = {
        "v1beta2": status(404),
        "v1beta1": {"items": [{"value": 3, "timestamp": stamp(TIME).rstrip("Z")}]},
    }
    async with served("Service", "services", answers).connected(tmp_path) as transport:
        assert await read_metric(transport, "shop", of_object(kind="Service"), NOW, {}) == MetricValue(
            "3", TIME
        )


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
        assert problem in (await read_metric(transport, "shop", of_object(kind=kind), NOW, {})).problem


FIELDS = st.sampled_from(["items", "value", "timestamp", "x"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(FIELDS, part, max_size=3),
    max_leaves=8,
)


@given(ANY_JSON)
def test_any_answer_is_a_value_or_a_problem(answer: object) -> None:
    class Transport:
        async def page(self, *_: object) -> bytes:
            return json.dumps(answer).encode()

    transport: Any = Transport()
    value = asyncio.run(read_metric(transport, "shop", external(), NOW, {}))
    assert bool(value.value) != bool(value.problem)
    assert len(value.problem) <= service_metric.MOST_WORDS
