"""Lists whose pages are bounded by bytes as well as by count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.kube.client.errors import TooLarge, Unreachable
from hvpa.kube.client.pages import PAGE, PAGE_BYTES, Page, read_list
from hvpa.kube.client.transport import MOST_BYTES
from tests.unit.kube.fake_server import FakeServer

pytestmark = pytest.mark.asyncio


class Objects(FakeServer):
    """Serves objects of these sizes in pages, as an API server does: `limit` of them at most, each named by its
    number."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self._sizes = sizes
        self.handler = self._list

    async def _list(self, request: web.Request) -> web.StreamResponse:
        start = int(request.query.get("continue", "0"))
        end = min(start + int(request.query["limit"]), len(self._sizes))
        items = [{"metadata": {"name": str(one)}, "x": "x" * self._sizes[one]} for one in range(start, end)]
        token = str(end) if end < len(self._sizes) else ""
        return web.json_response({"metadata": {"resourceVersion": "7", "continue": token}, "items": items})

    @property
    def limits(self) -> list[int]:
        """What was asked for, request by request."""
        return [int(query["limit"]) for _, _, query in self.requests]

    async def read(self, folder: Path, **query: str) -> list[str]:
        """The names of all objects, in order."""
        names: list[str] = []

        def take(page: Page) -> None:
            items: list[dict[str, Any]] = [json.loads(bytes(item)) for item in page.items or ()]
            names.extend(one["metadata"]["name"] for one in items)

        async with self.running(), self.transport(folder) as transport:
            await read_list(transport, "/list", take, query)
        return names


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


async def test_small_objects_come_in_pages_of_the_usual_count(tmp_path: Path) -> None:
    server = Objects(*[10] * (PAGE + 1))
    assert await server.read(tmp_path, labelSelector="a=b") == numbers(PAGE + 1)
    assert server.limits == [PAGE, PAGE]
    assert {query["labelSelector"] for _, _, query in server.requests} == {"a=b"}


async def test_a_page_that_is_too_large_is_halved_until_it_fits(tmp_path: Path) -> None:
    server = Objects(*[PAGE_BYTES // 4] * 10)
    assert await server.read(tmp_path) == numbers(10)
    assert server.limits == [500, 250, 125, 62, 31, 15, 7, 3, 3, 3, 3]


async def test_an_object_that_is_larger_than_a_page_comes_alone(tmp_path: Path) -> None:
    server = Objects(PAGE_BYTES + 1, 1)
    assert await server.read(tmp_path) == numbers(2)
    assert server.limits[-3:] == [3, 1, 1]


async def test_behind_large_objects_pages_grow_again(tmp_path: Path) -> None:
    server = Objects(*[PAGE_BYTES // 2] * 2, *[10] * 2000)
    assert await server.read(tmp_path) == numbers(2002)
    start = server.limits.index(1)
    assert server.limits[start:] == [1, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500, 500]


async def test_an_object_without_end_is_an_error(tmp_path: Path) -> None:
    server = Objects(MOST_BYTES)
    with pytest.raises(TooLarge):
        await server.read(tmp_path)
    assert server.limits[-1] == 1
    assert server.counted[-1] == ("list", "200")


async def test_what_is_no_list_is_told_with_its_path(tmp_path: Path) -> None:
    server = Objects()

    async def page(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"<html>")

    server.handler = page
    with pytest.raises(Unreachable, match="the list /list can't be read"):
        await server.read(tmp_path)
