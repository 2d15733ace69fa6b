"""In a cluster: whose token may read what. (The real API server: end to end.)"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hvpa.kube.server import auth
from hvpa_lab.dashboard import server as serving_module
from hvpa_lab.dashboard.access import token_guard
from tests.unit.cli.api_server import Api
from tests.unit.cli.support import Doc
from tests.unit.kube.fake_server import FakeServer
from tests.unit.lab.dashboard import shop
from tests.unit.lab.dashboard.harness import Client, Watched, serving

SHOP = "/api/hvpas/default/shop"
ALLOWED: Doc = {"allowed": True}


@pytest.fixture
def cluster() -> Watched:
    api = Api()
    api.put(shop.documents())
    known = {"good": {"authenticated": True, "user": {"username": "ann"}}}
    rights = {"ann list": ALLOWED, "ann get": ALLOWED}
    return Watched(api, shop.metrics(), {**known, **rights})


async def guarded(
    cluster: Watched, folder: Path, path: str, token: str = "good"
) -> tuple[int, str, list[Doc]]:
    """Status and text for a token, and what the API server was asked about it."""
    reviewer = FakeServer(cluster.handle)
    async with (
        reviewer.connected(folder) as transport,
        serving(cluster, folder, token_guard(transport, "")) as (client, _),
        client.session.get(client.base + path, headers={"Authorization": f"Bearer {token}"}) as response,
    ):
        text = "" if response.status == 200 else await response.text()
        return response.status, text, [review["spec"] for review in reviewer.bodies if review]


@pytest.mark.parametrize(
    ("path", "rights"),
    [
        pytest.param("/api/hvpas", [("list", "hvpas", "", None)], id="all"),
        pytest.param("/api/hvpas?namespace=default", [("list", "hvpas", "default", None)], id="a namespace"),
        pytest.param(
            SHOP, [("get", "hvpas", "default", "shop"), ("list", "pods", "default", None)], id="one"
        ),
    ],
)
async def test_the_rights_that_a_page_needs(
    cluster: Watched, tmp_path: Path, path: str, rights: list[tuple[str, str, str, str | None]]
) -> None:
    status, _, asked = await guarded(cluster, tmp_path, path)
    assert status == 200
    token, *reviews = asked
    assert token == {"token": "good"}
    accesses = [review["resourceAttributes"] for review in reviews]
    assert [
        (access["verb"], access["resource"], access["namespace"], access.get("name")) for access in accesses
    ] == rights
    assert {review["user"] for review in reviews} == {"ann"}


async def test_without_a_right_the_refusal_names_it(cluster: Watched, tmp_path: Path) -> None:
    cluster.reviews["ann list"] = {}
    status, text, _ = await guarded(cluster, tmp_path, "/api/hvpas")
    assert status == 403
    assert (
        text == "authorization denied for user 'ann', who lacks the right to list hvpas in all namespaces\n"
    )
    status, text, _ = await guarded(cluster, tmp_path, SHOP)
    assert (status, "lacks the right to list pods in namespace default" in text) == (403, True)


async def test_a_token_that_is_unknown_gets_nothing(cluster: Watched, tmp_path: Path) -> None:
    assert (await guarded(cluster, tmp_path, "/api/hvpas", "stolen"))[:2] == (401, "unauthorized\n")


async def test_a_stream_ends_with_the_right(
    cluster: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_module, "ALIVE", 0.02)
    monkeypatch.setattr(auth, "ALLOWED_SECONDS", 0.0)
    reviewer = FakeServer(cluster.handle)
    async with (
        reviewer.connected(tmp_path) as transport,
        serving(cluster, tmp_path, token_guard(transport, "")) as (client, _),
    ):
        await _until_refused(cluster, client)


async def _until_refused(cluster: Watched, client: Client) -> None:
    client.headers = {"Authorization": "Bearer good"}
    async with client.stream("/api/hvpas") as rows:
        await rows.until(lambda parts: "default/shop" in parts)
        assert (await rows.next()).startswith(": alive")
        cluster.reviews["ann list"] = {}
        async with asyncio.timeout(30):
            while await rows.next():
                pass
    assert (await client.ask("/api/hvpas"))[0] == 403
