"""What is said of a cluster that serves Hvpas in another version than ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.kube.objects.versions import GROUP, other_version
from tests.unit.kube.fake_server import FakeServer, respond, status

NOT_FOUND = status(404, "NotFound", "no such thing")
VPAS, HVPAS = ({"resources": [{"name": name}]} for name in ("verticalpodautoscalers", "hvpas"))


def group(*versions: str) -> Any:
    return {"versions": [{"version": version} for version in versions]}


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        pytest.param({"": group("v1", "v1beta1"), "/v1": VPAS, "/v1beta1": HVPAS},
                     "the cluster serves Hvpas as v1beta1 only, but this hvpa supports v1alpha1: use an hvpa of that"
                     " version", id="the next one"),
        pytest.param({"": group("v1", "v1beta1"), "/v1": HVPAS, "/v1beta1": HVPAS},
                     "the cluster serves Hvpas as v1 and v1beta1 only, but this hvpa supports v1alpha1: use an hvpa of"
                     " one of these versions", id="two"),
        pytest.param({"": group("v1"), "/v1": VPAS}, None, id="VPAs alone"),
        pytest.param({"": group("v1alpha1"), "/v1alpha1": HVPAS}, None, id="ours, by now"),
        pytest.param({}, None, id="no such group"),
        pytest.param({"": group("v1beta1")}, None, id="a version that is gone again"),
        pytest.param({"": b"<html>"}, None, id="no JSON"),
        pytest.param({"": {"versions": 3}}, None, id="no group"),
    ],
)  # fmt: skip
async def test_what_is_said_where_ours_is_not_served(
    tmp_path: Path, answers: dict[str, Any], said: str | None
) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return respond(answers.get(request.path.removeprefix(GROUP), NOT_FOUND))

    server = FakeServer(handle)
    async with server.connected(tmp_path) as transport:
        assert await other_version(transport) == said
    assert server.paths.count(GROUP) == 1


async def test_a_server_that_is_gone_says_nothing(tmp_path: Path) -> None:
    server = FakeServer()
    async with server.running():
        pass
    async with server.transport(tmp_path) as transport:
        assert await other_version(transport) is None
