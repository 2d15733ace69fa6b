"""What pods use: from the metrics API, or else the HPA; and the estimate for workloads without a VPA."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import (
    PodTemplate,
    TemplateContainer,
    TemplateSpec,
    Workload,
    WorkloadMeta,
    WorkloadSpec,
)
from hvpa.api.values.quantity import MIB, parse_resource
from hvpa_lab.report.estimate import estimated_vpa
from tests.unit.cli.api_server import Api
from tests.unit.cli.support import NOW, Doc, Live, Shell, with_fields, without
from tests.unit.lab.report.documents import of, reported

GIB = 2**30


def pod(name: str, app: str, restarts: int = 0, owner: str = "") -> Doc:
    """A ready pod of an app of the shop, or of another Deployment or a StatefulSet (`owner`) with the same label."""
    statuses = [{"name": "app", "restartCount": restarts, "ready": True}]
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": statuses,
    }
    kind = "StatefulSet" if app == "worker" else "ReplicaSet"
    controller = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": owner or (app if app == "worker" else f"{app}-1"),
    }
    meta = {
        "name": name,
        "namespace": "shop",
        "labels": {"app": app, "pod-template-hash": "1"},
        "ownerReferences": [{**controller, "uid": "", "controller": True}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "app"}]},
            "status": status}  # fmt: skip


def usage(name: str, containers: Any) -> Doc:
    """The usage of a pod of the shop."""
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": name, "namespace": "shop"},
        "containers": [{"name": container, "usage": used} for container, used in containers.items()],
    }


def measured(app: str, *used: tuple[str, str]) -> list[Doc]:
    """Pods of an app that use CPU and memory."""
    documents: list[Doc] = []
    for number, (cpu, memory) in enumerate(used):
        name = f"{app}-{number}"
        documents += [pod(name, app), usage(name, {"app": {"cpu": cpu, "memory": memory}})]
    return documents


def test_usage_is_of_all_pods(shell: Shell, shop: list[Doc]) -> None:
    report = reported(shell, [*shop, *measured("web", ("200m", "512Mi"), ("300m", "1Gi"))])
    assert of(report, "web")["used"] == {"cores": 0.5, "memoryGib": 1.5}
    assert report["summary"]["used"] == {
        "cores": 0.5, "memoryGib": 1.5, "cpuPercent": 17, "memoryPercent": 25,
    }  # fmt: skip


def test_usage_may_lack_a_resource(shell: Shell, shop: list[Doc]) -> None:
    documents = [
        *shop,
        pod("worker-0", "worker"),
        usage("worker-0", {"app": {"cpu": "2"}, "exporter": {"cpu": "x"}}),
    ]
    assert of(reported(shell, documents), "worker")["used"] == {"cores": 2.0, "memoryGib": None}


def test_without_the_metrics_api_usage_is_what_the_hpa_measures(shell: Shell, shop: list[Doc]) -> None:
    report = reported(shell, shop)
    assert of(report, "web")["used"] == {"cores": 3.6, "memoryGib": None}
    assert of(report, "worker")["used"] == {"cores": None, "memoryGib": None}
    odd = {"status.currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 120}}},
        {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "-1"}}},
        {"type": "External", "external": {"metric": {"name": "queue"}}},
    ]}  # fmt: skip
    assert of(reported(shell, with_fields(shop, "HPA", "web", odd)), "web")["used"]["cores"] is None


def test_restarts_are_those_of_the_present_pods(shell: Shell, shop: list[Doc]) -> None:
    report = reported(
        shell, [*shop, pod("web-0", "web", 3), pod("web-1", "web", 1), pod("worker-0", "worker")]
    )
    assert (of(report, "web")["restarts"], report["summary"]["restarts"]) == (4, 4)


def test_pods_of_other_owners_count_for_nothing(shell: Shell, shop: list[Doc]) -> None:
    """Labels alone match them: the pods of a Job of the same Helm chart, for example."""
    foreign = [
        pod(f"{app}-job", app, 40, owner="job") for app in ("web", "cache")
    ] + [usage(f"{app}-job", {"app": {"cpu": "8", "memory": "16Gi"}}) for app in ("web", "cache")]  # fmt: skip
    documents = [*shop, *measured("web", ("200m", "512Mi")), *measured("cache", ("40m", "300Mi")), *foreign]
    report = reported(shell, documents)
    web, cache = of(report, "web"), of(report, "cache")
    assert (web["used"], web["restarts"]) == ({"cores": 0.2, "memoryGib": 0.5}, 0)
    assert cache["blends"]["Trajectory"]["recommended"]["containers"]["app"]["requests"] == {
        "cpu": "46m", "memory": "361759k",
    }  # fmt: skip


# --- the estimate ----------------------------------------------------------------------------------------------------
def test_a_workload_with_an_hpa_alone_counts_by_its_usage(shell: Shell, shop: list[Doc]) -> None:
    documents = with_fields(shop, "HPA", "web", {"status.currentMetrics.0.resource.current": {
        "averageUtilization": 40, "averageValue": "200m"}})  # fmt: skip
    alone = without(documents, "VPA")
    assert of(reported(shell, alone), "web")["blends"]["Trajectory"]["recommended"]["containers"]["app"][
        "requests"
    ] == {"cpu": "500m", "memory": "1Gi"}
    web = of(reported(shell, [*alone, *measured("web", *[("200m", "512Mi")] * 6)]), "web")
    assert (web["vpas"], web["basis"], web["vpaHistoryHours"]) == ([], "Snapshot", None)
    assert web["savingPerMonth"] > 10
    assert "YoungRecommendation" not in {risk["reason"] for risk in web["risks"]}


def test_a_workload_without_a_recommender_counts_by_its_usage(shell: Shell, shop: list[Doc]) -> None:
    documents = [*shop, *measured("cache", ("20m", "300Mi"), ("40m", "200Mi"))]
    report = reported(shell, documents)
    cache = of(report, "cache")
    # The largest pod and 15 percent: 46m and 345Mi, which HVPA rounds up.
    assert cache["blends"]["Trajectory"]["recommended"]["containers"]["app"]["requests"] == {
        "cpu": "46m", "memory": "361759k",
    }  # fmt: skip
    assert cache["basis"] == "Snapshot"
    assert report["withoutRecommender"] == []
    text = shell.run("report", "-f", shell.file(documents), "--now", NOW).out
    assert "Deployment shop/cache (no VPA: requests estimated from the usage of now)" in text


def test_usage_of_other_containers_estimates_nothing(shell: Shell, shop: list[Doc]) -> None:
    documents = [*shop, pod("cache-0", "cache"), usage("cache-0", {"debug": {"cpu": "1", "memory": "1Gi"}})]
    (without_recommender,) = reported(shell, documents)["withoutRecommender"]
    assert without_recommender["name"] == "cache"


def test_usage_that_can_not_be_read_is_skipped(shell: Shell, shop: list[Doc]) -> None:
    bad = {**usage("web-0", {}), "containers": 3}
    namespace: Doc = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": 3}}
    ran = shell.run("report", "-f", shell.file([*shop, bad, namespace]), "--now", NOW)
    assert ran.code == 0
    assert [line.split(": ")[1] for line in ran.err.splitlines()] == ["skipped", "skipped"]


containers = st.lists(st.sampled_from(("app", "log")), min_size=1, unique=True)
amounts = st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 10**7), "memory": st.integers(0, 2**45)})
usages: Any = st.lists(st.dictionaries(st.sampled_from(("app", "log", "debug")), amounts), max_size=4)


@given(containers, usages)
def test_an_estimate_covers_the_largest_pod_with_its_margin(names: list[str], used: list[Any]) -> None:
    spec = TemplateSpec(containers=[TemplateContainer(name) for name in names])
    workload = Workload(
        WorkloadMeta(name="web", namespace="shop"),
        "Deployment",
        spec=WorkloadSpec(template=PodTemplate(spec=spec)),
    )
    vpa = estimated_vpa(workload, used)
    known = {name for name in names if any(pod.get(name) for pod in used)}
    if vpa is None:
        assert not known
        return
    recommendation = vpa.status.recommendation
    assert recommendation is not None
    entries = recommendation.container_recommendations or ()
    assert {entry.container_name for entry in entries} == known
    for entry in entries:
        for resource, least in (("cpu", 25), ("memory", 250 * MIB)):
            values = [pod[entry.container_name][resource] for pod in used
                      if resource in pod.get(entry.container_name, {})]  # fmt: skip
            if values:
                target = parse_resource(resource, entry.target[resource])  # type: ignore[arg-type]
                assert max(values) * 1.15 - 1 <= target <= max(max(values) * 1.15 + 1, least)
            else:
                assert resource not in entry.target


# --- a cluster -------------------------------------------------------------------------------------------------------
@pytest.fixture
def report(live: Live) -> Live:
    """Reports on what the server has."""
    return lambda *flags: live("report", "--now", NOW, "-o", "json", *flags)


NAMESPACE: Doc = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "labels": {"team": "blue"}},
}


@pytest.mark.parametrize("flags", [("-n", "shop"), ("-A",)])
def test_usage_and_labels_are_read_once(
    report: Live, api: Api, shop: list[Doc], flags: tuple[str, ...]
) -> None:
    api.put([*shop, *measured("cache", ("20m", "300Mi")), NAMESPACE], "shop")
    answer = report(*flags, "--by", "team").json
    assert [group["values"] for group in answer["groups"]] == [["blue"]]
    assert of(answer, "cache")["used"] == {"cores": 0.02, "memoryGib": 0.293}
    for plural in ("pods", "podmetrics", "namespaces"):
        assert len([asked for asked, _ in api.asked if asked == plural]) == 1
    assert answer["notes"] == []
    api.asked.clear()
    assert report(*flags, "--by", "kind").code == 0
    assert "namespaces" not in {asked for asked, _ in api.asked}


def test_with_all_namespaces_the_groups_are_namespaces(report: Live, api: Api, shop: list[Doc]) -> None:
    api.put(shop, "shop")
    assert (report("-A").json["by"], report("-n", "shop").json["by"]) == (["namespace"], [])


@pytest.mark.parametrize("code", [403, 404, 503])
def test_a_cluster_without_usage_or_labels_is_reported_with_a_note(
    report: Live, live: Live, api: Api, shop: list[Doc], code: int
) -> None:
    api.put(shop, "shop")
    api.fail = {"podmetrics": code, "namespaces": code}
    ran = report("-A", "--by", "team")
    assert (ran.code, ran.err) == (0, "")
    usages, labels = ran.json["notes"]
    assert usages.startswith("The usage of pods can't be read (no podmetrics for you)")
    assert labels.startswith("The labels of namespaces can't be read (no namespaces for you)")
    assert "The usage of pods can't be read" in live("report", "-A").out


def test_usage_that_is_no_usage_is_a_note(report: Live, api: Api, shop: list[Doc]) -> None:
    api.put(shop, "shop")
    api.raw["podmetrics"] = b'{"items": [{"metadata": 3}]}'
    assert "Expected `object`" in report("-A").json["notes"][0]
