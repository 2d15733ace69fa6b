"""Lists whose pages are bounded by bytes as well as by count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.kube.client import pages
from hvpa.kube.client.errors import TooLarge, Unreachable
from hvpa.kube.client.pages import ListPage, read_list
from tests.unit.kube.fake_server import FakeServer, always

PAGE_BYTES, MOST_BYTES = 2**16, 2**18


class Objects(FakeServer):
    """Serves objects of these sizes in pages, as an API server does: `limit` of them at most, each named by its
    number."""

    def __init__(self, *sizes: int) -> None:
        super().__init__(self._list)
        self._sizes = sizes

    async def _list(self, request: web.Request) -> web.StreamResponse:
        start = int(request.query.get("continue", "0"))
        end = min(start + int(request.query["limit"]), len(self._sizes))
        items = [
            {"metadata": {"name": str(number)}, "x": "x" * self._sizes[number]}
            for number in range(start, end)
        ]
        token = str(end) if end < len(self._sizes) else ""
        return web.json_response({"metadata": {"resourceVersion": "7", "continue": token}, "items": items})

    @property
    def limits(self) -> list[int]:
        """What was asked for, request by request."""
        return [int(query["limit"]) for _, _, query in self.requests]

    async def read(self, folder: Path, **query: str) -> list[str]:
        """The names of all objects, in order."""
        names: list[str] = []

        def take(page: ListPage) -> None:
            items: list[dict[str, Any]] = [json.loads(bytes(item)) for item in page.items or ()]
            names.extend(item["metadata"]["name"] for item in items)

        async with self.connected(folder) as transport:
            await read_list(transport, "/list", take, query)
        return names


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and responses of some kilobytes do for tests."""
    monkeypatch.setattr(pages, "PAGE_BYTES", PAGE_BYTES)
    monkeypatch.setattr(pages, "MOST_BYTES", MOST_BYTES)


@pytest.mark.parametrize(
    ("sizes", "limits"),
    [
        pytest.param([10] * 501, [500, 500], id="small objects come in pages of the usual count"),
        pytest.param(
            [PAGE_BYTES // 4] * 10,
            [500, 250, 125, 62, 31, 15, 7, 3, 3, 3, 3],
            id="a page that is too large is halved until it fits",
        ),
        pytest.param(
            [PAGE_BYTES + 1, 1],
            [500, 250, 125, 62, 31, 15, 7, 3, 1, 1],
            id="an object that is larger than a page comes alone",
        ),
        pytest.param(
            [PAGE_BYTES // 2] * 2 + [0] * 500,
            [500, 250, 125, 62, 31, 15, 7, 3, 1, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256],
            id="behind large objects pages grow again",
        ),
    ],
)
async def test_pages_have_as_many_objects_as_fit(tmp_path: Path, sizes: list[int], limits: list[int]) -> None:
    server = Objects(*sizes)
    assert await server.read(tmp_path, labelSelector="a=b") == [str(number) for number in range(len(sizes))]
    assert server.limits == limits
    assert {query["labelSelector"] for _, _, query in server.requests} == {"a=b"}


async def test_an_object_without_end_is_an_error(tmp_path: Path) -> None:
    server = Objects(MOST_BYTES)
    with pytest.raises(TooLarge):
        await server.read(tmp_path)
    assert server.limits[-1] == 1
    assert server.counted[-1] == ("list", "200")


async def test_what_is_no_list_is_reported_with_its_path(tmp_path: Path) -> None:
    server = Objects()
    server.handler = always(b"<html>")
    with pytest.raises(Unreachable, match="the list /list can't be read"):
        await server.read(tmp_path)
