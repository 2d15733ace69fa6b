"""The writes for policies: what is sent, and what the API server's answers mean."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.api.policy.status import PolicyStatus
from hvpa.core.policies.model import PolicyChange
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.client.limits import Limiter
from hvpa.kube.policies import PolicyWriter
from hvpa.reconcile.ports import Conflict, Key, Refused, WriteError
from tests.unit.core.policies.world import policy
from tests.unit.kube.fake_server import FakeServer, always, status

Json = dict[str, Any]
HVPA: Json = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "5"},
    "spec": {"targetRef": {"kind": "Deployment", "name": "web"}},
}
BASE = "/apis/autoscaling.k8s.io/v1alpha1"
PATH = f"{BASE}/namespaces/shop/hvpas"
CREATE = PolicyChange("create", "shop", "web", HVPA)
PATCH = PolicyChange("patch", "shop", "web", {"spec": {"mode": "Apply"}})
DELETE = PolicyChange("delete", "shop", "web", uid="u", resource_version="5")


class Sent:
    """A writer, its server and its local copy."""

    def __init__(self, answer: object) -> None:
        self.server = FakeServer(always(answer))
        self.local = LocalCluster((ALL_NAMESPACES,), lambda key: None)
        self.may_write = True
        self.writer: PolicyWriter

    @property
    def last(self) -> tuple[str, str, Any]:
        method, path, _ = self.server.requests[-1]
        return method, path, self.server.bodies[-1]


@asynccontextmanager
async def writing(tmp_path: Path, answer: object) -> AsyncIterator[Sent]:
    sent = Sent(answer)
    async with sent.server.connected(tmp_path) as transport:
        sent.writer = PolicyWriter(transport, sent.local, Limiter(), lambda: sent.may_write)
        yield sent


@pytest.mark.parametrize(
    ("change", "method", "path"), [(CREATE, "POST", PATH), (PATCH, "PATCH", f"{PATH}/web")]
)
async def test_a_created_or_patched_hvpa_is_in_the_local_copy(
    tmp_path: Path, change: PolicyChange, method: str, path: str
) -> None:
    async with writing(tmp_path, HVPA) as sent:
        await sent.writer.write(change)
        assert sent.last == (method, path, change.body)
        assert sent.server.requests[-1][2] == {"fieldManager": "hvpa"}
        assert sent.local.hvpas.get(Key("shop", "web")) is not None


async def test_only_the_hvpa_that_was_seen_is_deleted_and_one_that_is_gone_is_fine(tmp_path: Path) -> None:
    async with writing(tmp_path, {}) as sent:
        await sent.writer.write(DELETE)
        method, path, body = sent.last
        assert (method, path) == ("DELETE", f"{PATH}/web")
        assert body["preconditions"] == {"uid": "u", "resourceVersion": "5"}
        sent.server.handler = always(status(404, "NotFound"))
        await sent.writer.write(DELETE)
        sent.server.handler = always(status(409, "Conflict"))
        with pytest.raises(Conflict):
            await sent.writer.write(DELETE)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(409, "AlreadyExists"), Conflict),
        (status(403, "Forbidden", "exceeded quota"), Refused),
        (web.Response(text="no JSON"), WriteError),
    ],
)
async def test_failures_are_write_errors(tmp_path: Path, answer: object, error: type[WriteError]) -> None:
    async with writing(tmp_path, answer) as sent:
        with pytest.raises(error):
            await sent.writer.write(CREATE)


async def test_a_name_that_no_object_can_have_is_not_requested(tmp_path: Path) -> None:
    async with writing(tmp_path, HVPA) as sent:
        with pytest.raises(WriteError, match="not a valid name"):
            await sent.writer.write(PolicyChange("delete", "shop", "a/b"))
        assert sent.server.requests == []


async def test_who_may_not_write_any_more_writes_nothing(tmp_path: Path) -> None:
    async with writing(tmp_path, HVPA) as sent:
        sent.may_write = False
        with pytest.raises(WriteError, match="not the leader"):
            await sent.writer.write(CREATE)
        assert sent.server.requests == []


@pytest.mark.parametrize(
    ("namespace", "path"),
    [
        ("shop", f"{BASE}/namespaces/shop/hvpapolicies/team/status"),
        ("", f"{BASE}/clusterhvpapolicies/team/status"),
    ],
)
async def test_the_status_of_a_policy_is_patched(tmp_path: Path, namespace: str, path: str) -> None:
    metadata = {"name": "team", "namespace": namespace, "uid": "u", "resourceVersion": "7"}
    async with writing(tmp_path, {"metadata": metadata, "spec": {}}) as sent:
        made = policy(namespace=namespace, metadata={"resourceVersion": "6", "uid": "u"})
        await sent.writer.write_status(made, PolicyStatus(selected=3))
        method, sent_path, body = sent.last
        assert (method, sent_path) == ("PATCH", path)
        assert body["metadata"] == {"uid": "u", "resourceVersion": "6"}
        assert body["status"]["selected"] == 3
        assert len(sent.local.policies.read()) == 1
