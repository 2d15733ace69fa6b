"""An adapter for the metrics that are neither CPU nor memory, of which a test sets the values: a real API server behind
the control plane's, for external.metrics.k8s.io/v1beta1 and custom.metrics.k8s.io/v1beta2.

    with MetricsAdapter(cluster) as adapter:
        adapter.external[(namespace, "queue")] = [({"name": "orders"}, 30)]
        adapter.objects[(namespace, "services/web", "hits")] = 250
        adapter.pods[(namespace, "hits")] = 250     # shared by the pods that are asked about
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import socket
import ssl
import threading
from typing import Any, Final

from aiohttp import web

from localcluster.client.api import ApiError, wait_for
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.manifests import aggregated_api
from localcluster.process import free_port
from localcluster.proxy.listening import end_connections, stop_accepting

Json = dict[str, Any]
Labels = dict[str, str]
EXTERNAL: Final = ("external.metrics.k8s.io", "v1beta1")
CUSTOM: Final = ("custom.metrics.k8s.io", "v1beta2")
_ROOTS: Final = tuple(f"/apis/{group}/{version}" for group, version in (EXTERNAL, CUSTOM))


class MetricsAdapter:
    """A context manager, registered at the API server inside the block. Values may be set while it runs; a metric
    without value is not found."""

    def __init__(self, cluster: Cluster) -> None:
        """Nothing is started yet."""
        self.external: dict[tuple[str, str], list[tuple[Labels, int]]] = {}
        """By namespace and metric: the values, with their labels."""
        self.objects: dict[tuple[str, str, str], int] = {}
        """By namespace, `services/web` or `deployments.apps/web`, and metric."""
        self.pods: dict[tuple[str, str], int] = {}
        """By namespace and metric: the total, which all pods share equally."""
        self._api, self._cluster = cluster.api, cluster
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(*cluster.server_certificate)
        self._port = free_port()
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._registered: list[Json] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="metrics adapter", daemon=True)

    def __enter__(self) -> MetricsAdapter:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(30)
        try:
            for api in (EXTERNAL, CUSTOM):
                for manifest in aggregated_api(f"{api[0].partition('.')[0]}-metrics", *api, self._port):
                    self._registered.append(self._api.create(manifest))
            wait_for(lambda: all(map(self._is_served, _ROOTS)), 60, "the metrics adapter is served")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove it from the API server, and end it."""
        self._cluster.delete_all(self._registered)
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _is_served(self, root: str) -> bool:
        with contextlib.suppress(ApiError):  # 503 until the API server has checked it
            return bool(self._api.raw("GET", root)["resources"] is not None)
        return False

    async def _open(self) -> None:
        app, (external, custom) = web.Application(), _ROOTS
        for root in _ROOTS:
            app.router.add_get(root, _resources)
        app.router.add_get(external + "/namespaces/{namespace}/{metric}", self._of_external)
        app.router.add_get(custom + "/namespaces/{namespace}/pods/*/{metric}", self._of_pods)
        app.router.add_get(custom + "/namespaces/{namespace}/{resource}/{name}/{metric}", self._of_object)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.SockSite(self._runner, self._listener, ssl_context=self._tls).start()

    async def _close(self) -> None:
        await stop_accepting([self._listener])
        await self._runner.cleanup()
        await end_connections()

    async def _of_external(self, request: web.Request) -> web.Response:
        namespace, metric = request.match_info["namespace"], request.match_info["metric"]
        wanted = _labels(request.query.get("labelSelector", ""))
        items = [
            {"metricName": metric, "metricLabels": labels, "timestamp": _now(), "value": str(value)}
            for labels, value in self.external.get((namespace, metric), ())
            if wanted.items() <= labels.items()
        ]
        return _list("ExternalMetricValueList", EXTERNAL, items)

    async def _of_object(self, request: web.Request) -> web.Response:
        namespace, metric = request.match_info["namespace"], request.match_info["metric"]
        name = request.match_info["name"]
        value = self.objects.get((namespace, f"{request.match_info['resource']}/{name}", metric))
        if value is None:
            return _not_found(f"{request.path} has no value")
        return _list(
            "MetricValueList", CUSTOM, [_value({"namespace": namespace, "name": name}, metric, value)]
        )

    async def _of_pods(self, request: web.Request) -> web.Response:
        namespace, metric = request.match_info["namespace"], request.match_info["metric"]
        total = self.pods.get((namespace, metric))
        if total is None:
            return _not_found(f"{request.path} has no value")
        selector = request.query.get("labelSelector", "")
        pods_listed = await asyncio.to_thread(self._api.list, "Pod", namespace, selector)
        names = [pod["metadata"]["name"] for pod in pods_listed if "deletionTimestamp" not in pod["metadata"]]
        pods = [{"kind": "Pod", "apiVersion": "v1", "namespace": namespace, "name": name} for name in names]
        share = f"{1000 * total // max(1, len(names))}m"
        return _list("MetricValueList", CUSTOM, [_value(pod, metric, share) for pod in pods])


async def _resources(request: web.Request) -> web.Response:
    """The response to discovery: an empty list, as metrics come and go."""
    version = request.path.removeprefix("/apis/")
    body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": []}
    return web.json_response(body)


def _labels(selector: str) -> Labels:
    """The labels of a selector such as `a=b,c=d`, the form of `matchLabels`. Raises `HTTPBadRequest`."""
    pairs = [pair.partition("=") for pair in selector.split(",") if pair]
    if any(not separator or "!" in key or " " in key for key, separator, _ in pairs):
        raise web.HTTPBadRequest(text=f"labelSelector {selector!r}: only NAME=VALUE is served")
    return {key: value.removeprefix("=") for key, _, value in pairs}


def _value(described: Json, metric: str, value: object) -> Json:
    return {
        "describedObject": described,
        "metric": {"name": metric},
        "timestamp": _now(),
        "value": str(value),
    }


def _list(kind: str, api: tuple[str, str], items: list[Json]) -> web.Response:
    return web.json_response({"kind": kind, "apiVersion": "/".join(api), "metadata": {}, "items": items})


def _not_found(message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    return web.json_response({**status, "message": message}, status=404)


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
