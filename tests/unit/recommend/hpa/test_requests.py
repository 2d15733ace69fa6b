"""What pods request, as the HPA adds it up."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hvpa.api.objects.read_models import Pod
from hvpa.recommend.hpa.controller import MetricsError
from hvpa.recommend.hpa.requests import requests_of


def container(name: str, policy: str = "", **requests: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}, "restartPolicy": policy}


def pod(containers: list[Any], inits: list[Any] | None = None, whole: dict[str, str] | None = None) -> Pod:
    spec: dict[str, Any] = {"containers": containers, "initContainers": inits or []}
    if whole is not None:
        spec["resources"] = {"requests": whole}
    return msgspec.convert({"metadata": {"name": "web"}, "spec": spec}, Pod)


def request(one: Pod, container_name: str = "", resource: str = "cpu") -> int:
    return requests_of([one], container_name, resource)["web"]


APP = container("app", cpu="100m", memory="1Gi")
PROXY = container("proxy", "Always", cpu="50m")
SETUP = container("setup", cpu="1")


def test_sidecars_count_and_other_init_containers_do_not() -> None:
    assert request(pod([APP], [PROXY, SETUP])) == 150
    assert request(pod([APP], [PROXY]), "proxy") == 50
    with pytest.raises(MetricsError, match="memory in container proxy of Pod web"):
        request(pod([APP], [PROXY]), resource="memory")
    with pytest.raises(MetricsError, match="container setup not found"):
        request(pod([APP], [SETUP]), "setup")


def test_what_the_pod_as_a_whole_requests_comes_first() -> None:
    whole = pod([APP], [PROXY], {"cpu": "400m"})
    assert request(whole) == 400
    assert request(whole, "app") == 100, "one container's own request still counts for that container"


@pytest.mark.parametrize(
    ("inits", "expected"),
    [([], 100), ([PROXY], 150), ([SETUP], 1000), ([PROXY, SETUP], 1050), ([SETUP, PROXY], 1000)],
)
def test_what_the_pod_as_a_whole_leaves_out_is_added_up(inits: list[Any], expected: int) -> None:
    assert request(pod([APP], inits, {"memory": "2Gi"})) == expected


def test_a_pod_whose_parts_all_lack_the_request_has_none() -> None:
    with pytest.raises(MetricsError, match="missing pod-level request for cpu in Pod web"):
        request(pod([container("app")], [], {"memory": "2Gi"}))
