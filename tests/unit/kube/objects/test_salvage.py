"""One strange object is bearable for all others: it is cut down, read without its wrong times, and logged once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import structlog

from hvpa.api.objects.read_models import RawHvpa
from hvpa.core.observing import MOST_CONTAINERS
from hvpa.kube.objects.resources import DEPLOYMENTS, HPAS, HVPA_SIZES, PODS, VPAS
from hvpa.kube.objects.salvage import LARGE, MOST_ENTRIES, without_wrong_times
from hvpa.kube.objects.stored_hvpa import stored
from hvpa.reconcile.ports import Key
from tests.unit.hostile.documents import documents, encoded
from tests.unit.hostile.reading import KEY, Watched

HVPA, DEPLOYMENT, HPA, VPA, POD = range(5)
WRONG = "10000-01-01T00:00:00Z"


def large(**change: Any) -> list[Any]:
    """5000 entries."""
    return [{**change, "name": f"n-{number}", "type": f"t-{number}"} for number in range(5000)]


def test_usual_objects_are_kept_whole() -> None:
    pod = documents("Additive")[POD]
    pod["status"]["conditions"] = [{"type": "Ready", "message": "m" * 5000}]
    assert len(encoded(pod)) < LARGE
    assert PODS.decode(encoded(pod)).status.conditions[0].message == "m" * 5000


def test_large_objects_are_cut_down() -> None:
    docs = documents("Additive")
    docs[DEPLOYMENT]["spec"]["template"]["spec"] = {"containers": large(), "initContainers": large()}
    docs[POD]["spec"] = {"containers": large(), "initContainers": large()}
    docs[POD]["metadata"]["ownerReferences"] = large()
    docs[POD]["status"] = {
        "phase": "Failed",
        "message": "m" * 10**6,
        "conditions": large(),
        "containerStatuses": large(),
    }
    docs[HPA]["status"] = {"conditions": large(message="m" * 5000), "currentMetrics": large()}
    docs[VPA]["status"] = {"conditions": large(), "recommendation": {"containerRecommendations": []}}
    docs[VPA]["status"]["recommendation"]["containerRecommendations"] = [
        {"containerName": f"c-{number}"} for number in range(5000)
    ]
    workload, pod = DEPLOYMENTS.decode(encoded(docs[DEPLOYMENT])), PODS.decode(encoded(docs[POD]))
    hpa, vpa = HPAS.decode(encoded(docs[HPA])), VPAS.decode(encoded(docs[VPA]))
    for spec in (workload.spec.template.spec, pod.spec):
        assert len(spec.containers) == len(spec.init_containers) == MOST_CONTAINERS + 1
    assert len(pod.status.container_statuses) == MOST_CONTAINERS + 1
    assert len(pod.status.message) < 5000
    assert len(hpa.status.current_metrics or []) == MOST_ENTRIES
    assert max(len(condition.message) for condition in hpa.status.conditions or []) < 5000
    assert vpa.status.recommendation is not None
    assert len(vpa.status.recommendation.container_recommendations or []) == MOST_ENTRIES
    for status in (pod.status, hpa.status, vpa.status):
        assert len(status.conditions or []) == MOST_ENTRIES


def test_sizes_of_many_new_pods_are_all_kept() -> None:
    sizes = {f"Deployment.apps/web-{number}": "web; app 1: :" for number in range(5000)}
    assert len(HVPA_SIZES.decode(encoded({"metadata": {"name": "hvpa"}, "sizes": sizes})).sizes) == 5000


def test_a_large_vpa_without_a_recommendation_is_read() -> None:
    vpa = documents("Additive")[VPA]
    vpa["status"] = {"conditions": large()}
    assert VPAS.decode(encoded(vpa)).status.recommendation is None


@pytest.mark.parametrize(
    ("time", "is_wrong"),
    [
        (WRONG, True),
        ("0000-01-01T00:00:00Z", True),
        ("2026-01-01T00:00:00", True),
        ("9999-12-31T23:59:59-12:00", True),
        ("", True),
        ("2026-01-01T00:00:00Z", False),
        (7, False),
    ],
)
def test_wrong_times_are_dropped_wherever_they_are(time: Any, is_wrong: bool) -> None:
    raw = msgspec.json.encode({"a": [{"startTime": time, "b": {"time": time}}], "name": "x", "text": time})
    kept = without_wrong_times(raw)
    assert (kept and msgspec.json.decode(kept)) == (
        {"a": [{"b": {}}], "name": "x", "text": time} if is_wrong else None
    )


@pytest.mark.parametrize("number", [DEPLOYMENT, HPA, VPA, POD])
def test_an_object_with_a_wrong_time_is_there_all_the_same(number: int) -> None:
    watched, docs = Watched(), documents("Additive")
    condition = {"type": "X", "status": "True", "lastTransitionTime": WRONG}
    docs[number]["metadata"]["creationTimestamp"] = WRONG
    if number != DEPLOYMENT:
        docs[number]["status"]["conditions"].append(condition)
    with structlog.testing.capture_logs() as logs:
        for document in docs:
            watched.put(document)
    (line,) = logs
    assert line["log_level"] == "warning"
    assert line["event"] == "a time of an object can't be read"
    assert (line["kind"], line["object"]) == (docs[number]["kind"], docs[number]["metadata"]["name"])
    assert "creationTimestamp" in line["error"]
    objects = watched.local.objects(KEY)
    assert objects is not None
    assert objects.workload is not None
    assert (len(objects.hpas), len(objects.vpas), len(objects.pods)) == (1, 1, 3)


def test_an_object_that_can_t_be_read_is_logged_once_and_counted_each_time() -> None:
    watched, docs = Watched(), documents("Additive")
    for document in docs:
        watched.put(document)
    docs[HPA]["spec"]["maxReplicas"] = "many"
    with structlog.testing.capture_logs() as logs:
        for version in range(8, 58):
            docs[HPA]["metadata"]["resourceVersion"] = str(version)
            watched.put(docs[HPA])
    assert [line["log_level"] for line in logs] == ["warning"] + ["debug"] * 49
    assert "maxReplicas" in logs[0]["error"]
    of_hpas = {"resource": "horizontalpodautoscalers"}
    assert watched.metrics.registry.get_sample_value("hvpa_undecodable_objects_total", of_hpas) == 50
    objects = watched.local.objects(KEY)
    assert objects is not None
    assert objects.hpas == ()


def test_an_hvpa_whose_spec_or_status_can_t_be_read_is_there_and_says_so() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    for spec in (b'{"a":"\xff"}', b'{"a":%s}' % deep, b'{"targetRef":7}'):
        raw = b'{"metadata":{"name":"web","namespace":"default"},"spec":%s,"status":%s}'
        watched = Watched()
        known = msgspec.json.decode(raw % (b"{}", b"{}"), type=RawHvpa)
        hvpa = msgspec.structs.replace(known, spec=msgspec.Raw(spec), status=msgspec.Raw(spec))
        watched.local.hvpas.put(stored(hvpa))
        objects = watched.local.objects(Key("default", "web"))
        assert objects is not None
        assert objects.hvpa.spec is None
        assert objects.hvpa.problems
