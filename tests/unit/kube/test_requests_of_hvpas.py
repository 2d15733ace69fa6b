"""Whatever an Hvpa says, what is requested for it is in its own namespace and of its own kinds."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any, cast

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hvpa.core import Settings
from hvpa.kube.cache.scales import Scales
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.paths import valid_path
from hvpa.kube.client.transport import Transport
from hvpa.kube.clock import SystemClock
from hvpa.kube.cluster import KubeCluster
from hvpa.kube.events import EventRecorder
from hvpa.reconcile.reconciler import Reconciler
from hvpa.reconcile.telemetry import Silent
from tests.unit.hostile.documents import NAME, NAMESPACE, Json, documents
from tests.unit.hostile.reading import KEY, Watched
from tests.unit.hostile.values import TEXTS

KINDS = {
    *("things", "deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers"),
    *("hvpas", "hvpasizes", "events", "horizontalpodautoscalers", "verticalpodautoscalers", "pods"),
}
API = "argoproj.io/v1alpha1"
hostile = st.one_of(
    st.text(max_size=10),
    st.text("a./%?#&=-\n\x00", max_size=8),
    st.sampled_from([*TEXTS, "..", "../../../kube-system/deployments", "v1/namespaces/kube-system/secrets"]),
)
usual = st.sampled_from([API, f"{API}?x0=", f"{API}/../../..", "Rollout", "web", "Deployment", "apps/v1"])
texts = st.one_of(hostile, usual)


class Recorder:
    """In place of a transport: serves whatever kind is looked for, as `things`; every write but a dry run fails."""

    def __init__(self, kind: object) -> None:
        self.paths: list[str] = []
        self._kind = kind

    async def request(
        self, method: str, path: str, query: Json | None = None, *rest: Any, **more: Any
    ) -> bytes:
        self.paths.append(valid_path(path))
        *_, name, last = path.split("/")
        if method != "GET" and "dryRun" not in (query or {}):
            raise Unreachable("no writes here")
        if last == "scale":
            metadata = {"name": name, "namespace": NAMESPACE, "uid": "s", "resourceVersion": "7"}
            spec, status = {"replicas": 3}, {"replicas": 3, "selector": "app=web"}
            return json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode()
        if "namespaces" in path:
            raise ApiError(404, "NotFound", "no such thing")
        served = [{"name": "things", "kind": self._kind}, {"name": "things/scale", "kind": "Scale"}]
        return json.dumps({"resources": served}).encode()


async def requested(documents: list[Json]) -> list[str]:
    """The paths of all requests that reading the targets and reconciling the Hvpa makes."""
    watched = Watched(documents)
    recorder = Recorder(documents[0]["spec"]["targetRef"].get("kind"))
    transport = cast("Transport", recorder)
    scales = Scales(transport, watched.local)
    for target in watched.local.custom.of(NAMESPACE):
        await scales._read(target)
    events = EventRecorder(transport, SystemClock())
    writer = asyncio.ensure_future(events.run())
    cluster = KubeCluster(transport, watched.local, events)
    result = await Reconciler(cluster, SystemClock(), Settings(), Silent()).reconcile(KEY)
    assert result.outcome != "crashed"
    await asyncio.sleep(0)
    writer.cancel()
    return recorder.paths


def is_own(path: str) -> bool:
    """Whether a request is about the Hvpa's namespace and kinds, or what the cluster serves of a group's version."""
    _, root, *rest = path.split("/")
    if root == "apis" and len(rest) == 2:
        return True
    version, below = (rest[:2], rest[2:]) if root == "apis" else (rest[:1], rest[1:])
    return all(version) and below[:2] == ["namespaces", NAMESPACE] and below[2] in KINDS and len(below) <= 5


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=150)
@given(
    st.fixed_dictionaries({"kind": texts, "name": texts}, optional={"apiVersion": texts}),
    st.none() | texts,
    st.none() | texts,
    st.booleans(),
)
@example({"apiVersion": f"{API}?x0=", "kind": "Rollout", "name": "web"}, None, None, True)
@example({"apiVersion": f"{API}/../../..", "kind": "Rollout", "name": "web"}, None, None, True)
@example({"apiVersion": API, "kind": "Rollout", "name": "a\x00b"}, "a/b", "..", True)
def test_no_text_of_a_spec_leads_out_of_the_namespace(
    target: Json, hpa: str | None, vpa: str | None, in_place: bool
) -> None:
    manifests = copy.deepcopy(documents("Additive"))
    spec = manifests[0]["spec"]
    spec["targetRef"] = target
    for axis, name in (("hpa", hpa), ("vpa", vpa)):
        if name is not None:
            spec[axis] = {**spec[axis], "deploy": False, "name": name}
    if in_place:
        spec["updateStrategy"] = {"type": "InPlace"}
    paths = asyncio.run(requested(manifests))
    assert [path for path in paths if not is_own(path) or "%" in path] == []


def test_a_rollout_is_discovered_and_read() -> None:
    """So that the test above looks at something."""
    manifests = copy.deepcopy(documents("Additive"))
    manifests[0]["spec"]["targetRef"] = {"apiVersion": API, "kind": "Rollout", "name": "web"}
    manifests[0]["spec"]["updateStrategy"] = {"type": "InPlace"}
    paths = asyncio.run(requested(manifests))
    assert paths[:2] == [f"/apis/{API}", f"/apis/{API}/namespaces/{NAMESPACE}/things/web/scale"]
    assert f"/apis/autoscaling.k8s.io/v1alpha1/namespaces/{NAMESPACE}/hvpas/{NAME}/status" in paths
