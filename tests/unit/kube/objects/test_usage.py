"""What containers use, of what an API server says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.objects.usage import read_usage
from tests.unit.kube.fake_server import FakeServer, always, status

ONE = {
    "metadata": {"name": "web-0"},
    "containers": [{"name": "app", "usage": {"cpu": "250m", "memory": "1Mi"}}],
}
ODD = {
    "metadata": {"name": "web-1"},
    "containers": [{"name": "app", "usage": {"cpu": "much", "memory": "2Mi"}}, {}],
}


async def test_cpu_and_memory_by_pod_and_container_without_what_makes_no_sense(tmp_path: Path) -> None:
    server = FakeServer(always({"items": [ONE, ODD]}))
    async with server.connected(tmp_path) as transport:
        usage = await read_usage(transport, "shop", "app=web")
    assert usage == {
        ("web-0", "app"): {"cpu": 250, "memory": 2**20},
        ("web-1", "app"): {"memory": 2**21},
        ("web-1", ""): {},
    }
    assert server.requests == [
        ("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods", {"labelSelector": "app=web"})
    ]


@pytest.mark.parametrize(("answer", "error"), [(status(403), ApiError), (b"[]", Unreachable)])
async def test_what_can_not_be_read_is_an_error(
    tmp_path: Path, answer: object, error: type[Exception]
) -> None:
    async with FakeServer(always(answer)).connected(tmp_path) as transport:
        with pytest.raises(error):
            await read_usage(transport, "shop", "app=web")
