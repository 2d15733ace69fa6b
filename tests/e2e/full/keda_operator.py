"""`make keda`: the manifest of docs/keda.md with KEDA itself, whose trigger asks a real Prometheus, which scrapes a
queue of the test. To zero and back. Not among the tests of `make test`, as KEDA takes long to build
(docs/decisions/0045)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.keda import USER, Keda
from localcluster.operator.operator import Operator
from localcluster.prometheus import Prometheus, scraping
from localcluster.workloads.load import await_pods
from tests.e2e.full import objects, recommended
from tests.e2e.full.objects import HPA_CONTROLLER, OPERATOR_USER
from tests.e2e.full.test_metrics import MANIFEST, TIMEOUT, WEB

pytestmark = pytest.mark.owned_cluster


class Queue:
    """A queue whose length Prometheus scrapes."""

    length = 10

    def __init__(self) -> None:
        queue = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = f'queue_length{{queue="web"}} {queue.length}\n'.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Nothing is logged."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def queue() -> Iterator[Queue]:
    made = Queue()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join(10)


def test_keda_itself_scales_an_hvpa_to_zero_and_back(
    cluster: ControlPlane, operator: Operator, namespace: str, queue: Queue, tmp_path: Path
) -> None:
    api = cluster.api

    def replicas() -> int:
        return objects.replicas(api, "web", namespace)

    def switched() -> list[int]:
        """The counts that KEDA has written past its HPA."""
        asked = cluster.audit.requests(
            user=USER, resource="hvpas", writes=True, namespace=namespace, code=200
        )
        assert all(request.subresource == "scale" for request in asked)
        return [request.body["spec"].get("replicas", 0) for request in asked]

    def is_at(condition: str, reason: str) -> bool:
        return objects.conditions(api, "web", namespace).get(condition, ("", ""))[1] == reason

    with (
        Prometheus(tmp_path, scraping({"queue": queue.address})) as prometheus,
        Keda(cluster, tmp_path / "keda") as keda,
    ):
        # KEDA asks for the last full second, and takes an empty answer for an empty queue.
        sample = 'queue_length{queue="web"} offset 2s'
        wait_for(lambda: prometheus.query(sample), TIMEOUT, "the queue has been scraped for two seconds")
        api.create(objects.deployment("web", namespace))
        recommended.vpa(api, namespace, "web", WEB)
        recommended.recommend(api, namespace, "web", 128)
        await_pods(api, namespace, "web")
        scaled_object, hvpa = _manifest(prometheus.url)
        for manifest in (scaled_object, hvpa):  # in this order, as the page says that either may be first
            api.create({**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}})
        try:
            wait_for(lambda: is_at("HpaActive", "Recommending"), TIMEOUT, "KEDA's HPA is used")
            queue.length = 30
            wait_for(lambda: replicas() >= 4, TIMEOUT, "30 messages call for 6 pods, by half more pods")
            assert switched() == [], "KEDA leaves it to its HPA"
            queue.length = 0
            wait_for(lambda: replicas() == 0, TIMEOUT, "KEDA scales to 0")
            wait_for(lambda: is_at("HpaActive", "NoPods"), TIMEOUT, "the Hvpa says so")
            assert objects.conditions(api, "web", namespace)["Ready"] == ("True", "Reconciled")
            queue.length = 30
            wait_for(lambda: replicas() >= 4, TIMEOUT, "KEDA takes it from 0, and its HPA out")
            assert switched() == [0, 1]
        except BaseException:
            print("\n".join(f"--- {process.name}\n{process.tail()}" for process in keda.processes))
            raise
        api.delete("keda.sh/v1alpha1/ScaledObject", "web", namespace)
        gone = "keda.sh/v1alpha1/ScaledObject"
        wait_for(lambda: not api.list(gone, namespace), TIMEOUT, "KEDA has taken its finalizer away")
    written = cluster.audit.writers("deployments", "web", namespace)
    assert written[OPERATOR_USER] >= 3
    assert written[HPA_CONTROLLER] == 0
    assert written[USER] == 0, "KEDA writes to the Hvpa alone"
    refused = [request for request in cluster.audit.requests(user=USER) if request.is_forbidden]
    assert not refused, "KEDA's own roles suffice"


def _manifest(url: str) -> tuple[Json, Json]:
    """Those of the page, with this Prometheus, and waits of seconds."""
    scaled_object, hvpa = yaml.safe_load_all(MANIFEST)
    scaled_object["spec"] |= {"pollingInterval": 2, "cooldownPeriod": 3}
    scaled_object["spec"]["triggers"][0]["metadata"]["serverAddress"] = url
    hvpa["spec"]["vpa"] = {"name": "web"}
    hvpa["spec"]["hpa"]["scaleDown"]["stabilizationDuration"] = "1s"
    return scaled_object, hvpa
