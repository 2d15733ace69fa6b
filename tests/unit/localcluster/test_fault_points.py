"""Fault points: there is one before and after each write that the operator may make, and the product has none."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.transport import Body, Transport
from localcluster.operator.fault_points import (
    POINTS,
    REVIEWS,
    VARIABLE,
    WRITES,
    FaultPointError,
    FaultyTransport,
    parse_point,
    transport_with_faults,
    write_of,
)
from tests.unit.config.folders import CONFIG, Json, objects
from tests.unit.kube.fake_server import LONG, FakeServer, kubeconfig, status

pytestmark = pytest.mark.long

OWNED = ("horizontalpodautoscalers", "verticalpodautoscalers")
"""Written by server-side apply, which needs the right to create and the right to patch."""
NO_WRITES = {write.partition("-")[2] for write in REVIEWS}
BODY = Body(b"{}")
SCRIPT = """
import asyncio, sys
from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.errors import ApiError
from localcluster.operator.fault_points import transport_with_faults
from hvpa.kube.client.transport import Body

async def main():
    credentials = await Credentials.load(sys.argv[1])
    transport = transport_with_faults(credentials, lambda verb, code: None, sys.argv[2])
    await transport.request("GET", "/api/v1/namespaces/ns/events")
    for _ in range(3):
        try:
            await transport.request("POST", "/api/v1/namespaces/ns/events", body=Body(b"{}"), verb="create")
        except ApiError:
            pass

asyncio.run(main())
"""


def bound_rules() -> list[Json]:
    """The rules of all roles that some way of deploying binds to the operator."""
    deployed = [manifest for folder in ("sharded", "secure-metrics") for manifest in objects(folder)]
    bound = {
        (manifest["roleRef"]["kind"], manifest["roleRef"]["name"])
        for manifest in deployed
        if manifest["kind"].endswith("Binding")
        and any((to["kind"], to["name"]) == ("ServiceAccount", "hvpa") for to in manifest.get("subjects", ()))
    }
    return [
        rule
        for manifest in deployed
        if (manifest["kind"], manifest["metadata"]["name"]) in bound
        for rule in manifest["rules"]
    ]


def writes_that_rights_allow() -> set[str]:
    """What the rights are for, as the table names writes."""
    writes: set[str] = set()
    for rule in bound_rules():
        for resource in set(rule["resources"]) - NO_WRITES:
            for verb in set(rule["verbs"]) - {"get", "list", "watch"}:
                reported = "apply" if verb == "create" and resource in OWNED else verb
                writes.add(f"{reported}-{resource.replace('/', '-')}")
    return writes


@asynccontextmanager
async def faulty(server: FakeServer, folder: Path, setting: str | None) -> AsyncIterator[Transport]:
    """The operator's transport with HVPA_FAULT_POINT set so."""
    credentials = await Credentials.load(str(kubeconfig(folder, server.url)))
    transport = transport_with_faults(credentials, lambda verb, code: None, setting)
    try:
        yield transport
    finally:
        await transport.close()


def test_each_write_that_the_operator_has_a_right_to_has_two_points_and_there_are_no_others() -> None:
    assert set(WRITES) == writes_that_rights_allow()
    assert set(POINTS) == {f"{when}-{write}" for write in WRITES for when in ("before", "after")}
    assert len(POINTS) == 2 * len(WRITES) == len(set(POINTS))


@pytest.mark.parametrize(
    ("verb", "path", "write"),
    [
        ("patch", "/apis/apps/v1/namespaces/a/deployments/b", "patch-deployments"),
        ("patch", "/apis/autoscaling.k8s.io/v1alpha1/namespaces/a/hvpas/b", "patch-hvpas"),
        ("patch", "/apis/autoscaling.k8s.io/v1alpha1/namespaces/a/hvpas/b/status", "patch-hvpas-status"),
        (
            "apply",
            "/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers/b",
            "apply-horizontalpodautoscalers",
        ),
        ("create", "/api/v1/namespaces/namespaces/events", "create-events"),
        ("patch", "/api/v1/namespaces/events/events/b", "patch-events"),
        ("update", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "update-leases"),
        ("create", "/apis/authentication.k8s.io/v1/tokenreviews", "create-tokenreviews"),
    ],
)
def test_a_point_is_named_by_the_verb_and_the_path(verb: str, path: str, write: str) -> None:
    assert write_of(verb, path) == write


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("delete", "/api/v1/namespaces/a/pods/b"),
        ("post", "/api/v1/namespaces/a/events"),
        ("delete", "/api/v1/namespaces/a"),
        ("patch", "/"),
    ],
)
def test_a_write_without_a_point_is_refused(verb: str, path: str) -> None:
    with pytest.raises(FaultPointError):
        write_of(verb, path)


@pytest.mark.parametrize(
    "setting",
    ["patch-hvpas", "after-lunch", "after-patch-hvpas:x", "after-patch-hvpas:-1", "after-patch-hvpas:0"],
)
def test_a_point_that_there_is_not_is_refused(setting: str) -> None:
    with pytest.raises(FaultPointError):
        parse_point(setting)


def test_a_point_that_there_is_not_ends_the_operator_of_the_tests_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "localcluster.operator.with_faults", "run"],
        env={**os.environ, VARIABLE: "nowhere"},
        capture_output=True,
        text=True,
        timeout=4 * LONG,
    )
    assert done.returncode == 2
    assert VARIABLE in done.stderr


def test_the_product_has_no_hooks_for_tests() -> None:
    files = list((CONFIG.parent / "hvpa").rglob("*.py"))
    assert files
    assert [file.name for file in files if re.search("[\"']HVPA_", file.read_text())] == []


def test_a_point_is_passed_by_the_first_time_or_as_often_as_is_asked() -> None:
    assert parse_point("before-create-leases") == ("before-create-leases", 1)
    assert parse_point("after-patch-hvpas:12") == ("after-patch-hvpas", 12)


@pytest.mark.asyncio
async def test_without_a_setting_the_transport_is_the_plain_one(tmp_path: Path) -> None:
    async with FakeServer().running() as server:
        for setting in (None, ""):
            async with faulty(server, tmp_path, setting) as transport:
                assert type(transport) is Transport
        async with faulty(server, tmp_path, "after-create-events") as transport:
            assert type(transport) is FaultyTransport


@pytest.mark.asyncio
async def test_with_a_setting_reads_and_questions_go_through_and_a_write_without_a_point_is_not_sent(
    tmp_path: Path,
) -> None:
    async with FakeServer().running() as server, faulty(server, tmp_path, "after-create-events") as transport:
        for method, path, verb in (
            ("GET", "/api/v1/pods", "list"),
            ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "create"),
            ("PATCH", "/api/v1/namespaces/ns/events/name", "patch"),
        ):
            with pytest.raises(ApiError):  # as the server answers it
                await transport.request(method, path, body=BODY, verb=verb)
        with pytest.raises(FaultPointError):
            await transport.request("DELETE", "/api/v1/namespaces/ns/pods/name", body=BODY, verb="delete")
        assert [method for method, *_ in server.requests] == ["GET", "POST", "PATCH"]


class DiedError(Exception):
    """In place of the end of the process."""


@pytest.mark.parametrize(
    ("setting", "reached"),
    [("before-create-events", 0), ("before-create-events:3", 2), ("after-create-events", 1)],
)
@pytest.mark.asyncio
async def test_before_a_write_it_is_not_sent_and_after_it_it_is(
    tmp_path: Path, setting: str, reached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(process: int, signal: int) -> None:
        raise DiedError

    async def response(request: web.Request) -> web.StreamResponse:
        return status(200)

    monkeypatch.setattr(os, "kill", kill)
    async with FakeServer(response).running() as server, faulty(server, tmp_path, setting) as transport:
        for _ in range(reached - setting.startswith("after")):
            await transport.request("POST", "/api/v1/namespaces/ns/events", body=BODY, verb="create")
        with pytest.raises(DiedError):
            await transport.request("POST", "/api/v1/namespaces/ns/events", body=BODY, verb="create")
        assert [method for method, *_ in server.requests] == ["POST"] * reached


@pytest.mark.asyncio
async def test_the_process_dies_at_its_point(tmp_path: Path) -> None:
    """One that is refused changed nothing: it does not count."""

    async def response(request: web.Request) -> web.StreamResponse:
        posts = sum(method == "POST" for method, *_ in server.requests)
        return status(409) if posts == 1 else status(200)

    server = FakeServer()
    server.handler = response
    async with server.running():
        argv = [
            sys.executable,
            "-c",
            SCRIPT,
            str(kubeconfig(tmp_path, server.url)),
            "after-create-events:2",
        ]
        child = await asyncio.create_subprocess_exec(*argv, env=dict(os.environ), stderr=subprocess.PIPE)
        _, reported = await asyncio.wait_for(child.communicate(), 4 * LONG)
    assert child.returncode == -signal.SIGKILL, reported.decode()
    assert [method for method, *_ in server.requests] == ["GET", *["POST"] * 3]
