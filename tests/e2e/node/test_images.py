"""A real node pulls no image: the server of every registry is a port of loopback where nothing listens."""

from __future__ import annotations

import pytest

from localcluster.client.api import wait_for
from localcluster.workloads.real_pods import RealPods, status

pytestmark = pytest.mark.owned_cluster


@pytest.mark.parametrize("image", ["registry.invalid/x:1", "x:1"])
def test_an_image_that_the_node_lacks_is_requested_from_loopback(pods: RealPods, image: str) -> None:
    pods.begin("foreign", {"cpu": "10m"}, None, "", {"image": image, "imagePullPolicy": "IfNotPresent"})

    def refusal() -> str:
        waiting = status(pods.get("foreign")).get("state", {}).get("waiting", {})
        is_refused = waiting.get("reason") in ("ErrImagePull", "ImagePullBackOff")
        return str(waiting.get("message", "")) if is_refused else ""

    wait_for(lambda: "127.0.0.1:1: connect: connection refused" in refusal(), 60, refusal)
