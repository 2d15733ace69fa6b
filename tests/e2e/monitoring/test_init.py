"""`hvpa init` on a real cluster and two weeks in a real Prometheus: what is made of them, and what it says where
something is missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import install_crds
from localcluster.programs.build import Programs, keda_crd
from localcluster.prometheus import Prometheus
from localcluster.workloads import history

ROOT = Path(__file__).parents[3]
REQUESTS = 'sum(rate(http_requests_total{namespace="$namespace"}[5m]))'
SHOP = (ROOT / "examples/first-day/shop.yaml").read_text()

GAP: Final = 6
OTHER_LABELS: Final = {name: f"exported_{name}" for name in ("namespace", "pod", "container")}
OTHER_NAMES: Final = f"""
cpu: >-
  sum by (container) (label_replace(
    rate(container_cpu_usage_seconds_total{{exported_namespace="$namespace", exported_pod=~"$name-.*"}}[5m]),
    "container", "$$1", "exported_container", "(.+)"))
memory: sum(container_memory_working_set_bytes{{exported_namespace="$namespace", exported_pod=~"$name-.*"}})
replicas: max(kube_deployment_status_replicas_ready{{exported_namespace="$namespace", deployment="$name"}})
load: {REQUESTS.replace("namespace=", "exported_namespace=")}
"""
RULES: Final = next(
    block
    for block in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/init.md").read_text(), re.DOTALL)
    if ":rate5m" in block
)

PROGRESS: Final = re.compile(r"^simulating: \d+%\n", re.MULTILINE)
"""The lines about progress that a slow machine prints."""

Init = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def server(prometheus: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with two weeks of the shop that end ten minutes ago."""
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), programs=prometheus)
    end = int(time.time()) // 120 * 120 - 600
    server.backfill([*history.lines(end), *history.starts(end)])
    with server:
        yield server


@pytest.fixture(scope="module")
def other_server(prometheus: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with two days of the shop under other labels, and as recording rules have it; GAP hours of them are
    missing."""
    server = Prometheus(tmp_path_factory.mktemp("other"), programs=prometheus)
    end = int(time.time()) // 120 * 120 - 600
    samples = [*history.renamed(history.lines(end, 2), OTHER_LABELS), *history.recorded(end, 2)]
    middle = end - 86400
    server.backfill(history.without(samples, middle, middle + GAP * 3600))
    with server:
        yield server


@pytest.fixture(scope="module")
def shop(bare_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """The shop on a cluster."""
    documents = list(yaml.safe_load_all(SHOP))
    bare_cluster.apply_all(documents)
    yield bare_cluster
    bare_cluster.kubectl("delete", "namespace", "shop", "--wait=false")


@pytest.fixture
def init(shop: ControlPlane, server: Prometheus, tmp_path: Path) -> Init:
    """Runs it as a user does; what it writes is in `out`."""

    def run(
        *flags: str, workload: str = "deployment/web", at: str = server.url
    ) -> subprocess.CompletedProcess[str]:
        fixed = [workload, "-n", "shop", "--kubeconfig", str(shop.kubeconfig), "--prometheus", at]
        command = [sys.executable, "-m", "hvpa", "init", *fixed, "--out", str(tmp_path / "out"), *flags]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
        ran.stderr = PROGRESS.sub("", ran.stderr)
        return ran

    return run


def test_two_weeks_become_an_hvpa_and_a_scenario_that_says_the_same(init: Init, tmp_path: Path) -> None:
    ran = init("--load", REQUESTS, "--step", "2m", "--days", "2", "--seeds", "1", "-o", "json")
    assert (ran.returncode, ran.stderr) == (0, "")
    report: Any = json.loads(ran.stdout)
    app = report["fit"]["containers"]["app"]
    assert app["cpu"]["perReplica"] == pytest.approx(history.CPU_BASE, rel=0.05)
    assert app["cpu"]["perUnit"] == pytest.approx(history.CPU_PER_UNIT, rel=0.02)
    assert app["memory"]["perReplica"] == pytest.approx(history.MEMORY_BASE, rel=0.05)
    assert app["memory"]["perUnit"] == pytest.approx(history.MEMORY_PER_UNIT, rel=0.05)
    assert report["history"]["seconds"] > 13.9 * 86400
    assert (report["fit"]["isPoor"], report["history"]["daily"], report["doubts"]) == (False, True, [])
    assert report["workload"]["scaledBy"] == "HPA web"
    assert report["history"]["throttledStarts"] == {"app": pytest.approx(history.THROTTLED)}
    scenario = tmp_path / "out" / "scenario.yaml"
    command = [sys.executable, "-m", "hvpa", "simulate", str(scenario), "-o", "json"]
    simulated = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    policies = simulated["scenarios"][0]["policies"]
    chosen = next(trial for trial in report["tried"] if trial["chosen"])
    weeks = (2 - 0.5) / 7
    assert policies[0]["figures"]["cost"] / weeks == pytest.approx(
        report["today"][0]["costPerWeek"], rel=1e-3
    )
    assert policies[-1]["figures"]["cost"] / weeks == pytest.approx(
        chosen["outcomes"][0]["costPerWeek"], rel=1e-3
    )


def test_the_manifest_is_what_the_api_server_takes(init: Init, shop: ControlPlane, tmp_path: Path) -> None:
    install_crds(shop)
    queries = tmp_path / "queries.yaml"
    queries.write_text(f"load: {REQUESTS}\ncpu: sum(rate(container_cpu_usage_seconds_total[5m]))\n")
    ran = init("--queries", str(queries), "--since", "2d", "--step", "5m", "--days", "1", "--seeds", "1")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "CPU 15m per replica and 1m per unit of load" in ran.stdout
    shop.kubectl("apply", "--dry-run=server", "-f", str(tmp_path / "out" / "hvpa.yaml"))


@pytest.mark.parametrize(
    ("flags", "workload", "reason"),
    [
        (["--since", "2d"], "deployment/absent", "Deployment shop/absent does not exist"),
        (["--load", "sum("], "deployment/web", "load: Prometheus responded with an error: invalid parameter"),
        (["--load", "sum(rate(absent[5m]))"], "deployment/web", "load: the expression sum(rate(absent[5m])) has"),
        (["--load", "http_requests_total", "--since", "1h"], "deployment/web", "at least a day is needed"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_and_nothing_is_written(
    init: Init, tmp_path: Path, flags: list[str], workload: str, reason: str
) -> None:
    ran = init("--step", "5m", *flags, workload=workload)
    assert (ran.returncode, ran.stdout, reason in ran.stderr) == (1, "", True), ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "queries",
    [pytest.param(OTHER_NAMES, id="other labels"), pytest.param(RULES, id="recording rules")],
)
def test_other_names_can_be_given_and_gaps_are_told(
    init: Init, other_server: Prometheus, tmp_path: Path, queries: str
) -> None:
    path = tmp_path / "queries.yaml"
    path.write_text(queries)
    flags = ("--since", "2d", "--step", "5m", "--days", "1", "--seeds", "1", "-o", "json")
    ran = init("--queries", str(path), *flags, at=other_server.url)
    assert (ran.returncode, ran.stderr) == (0, "")
    report: Any = json.loads(ran.stdout)
    cpu = report["fit"]["containers"]["app"]["cpu"]
    assert cpu["perReplica"] == pytest.approx(history.CPU_BASE, rel=0.05)
    assert cpu["perUnit"] == pytest.approx(history.CPU_PER_UNIT, rel=0.05)
    [note] = report["history"]["notes"]
    assert re.search(r": no values for (5h5\d|6h\d?)m?.* from 20.*; held at \d+$", note), note


def test_other_label_names_are_named_and_nothing_is_written(
    init: Init, other_server: Prometheus, tmp_path: Path
) -> None:
    ran = init("--since", "2d", "--step", "5m", at=other_server.url)
    assert (ran.returncode, ran.stdout) == (1, "")
    cpu = "container_cpu_usage_seconds_total"
    labels = "exported_container, exported_namespace, exported_pod, image"
    assert f'it has no {cpu}{{namespace="shop"}}, but {cpu} with the labels {labels}' in ran.stderr, (
        ran.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_a_scaled_object_is_found(init: Init, shop: ControlPlane) -> None:
    """With KEDA's own CRD, as `kubectl` has it: KEDA names the HPA after the ScaledObject, which owns it."""
    hpa = next(
        document for document in yaml.safe_load_all(SHOP) if document["kind"] == "HorizontalPodAutoscaler"
    )
    hpa["metadata"]["name"] = "keda-hpa-web"
    trigger = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "70"}}
    spec = {
        "scaleTargetRef": {"name": "web"},
        "minReplicaCount": 2,
        "maxReplicaCount": 12,
        "triggers": [trigger],
    }
    meta = {"name": "web", "namespace": "shop"}
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": meta, "spec": spec}
    crd = yaml.safe_load(keda_crd().read_text())
    shop.api.delete("HorizontalPodAutoscaler", "web", "shop")
    try:
        shop.apply_all([crd, scaled, hpa])
        ran = init("--since", "2d", "--step", "5m", "--days", "1", "--seeds", "1")
    finally:
        shop.api.delete("CustomResourceDefinition", crd["metadata"]["name"])
        shop.api.delete("HorizontalPodAutoscaler", "keda-hpa-web", "shop")
        shop.apply_all([document for document in yaml.safe_load_all(SHOP) if document["kind"] == hpa["kind"]])
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Deployment shop/web, scaled by KEDA's ScaledObject web" in ran.stdout
    assert "Before you apply it: delete ScaledObject web" in ran.stdout


def test_other_label_names_are_shown(init: Init, shop: ControlPlane, tmp_path: Path) -> None:
    market = SHOP.replace("namespace: shop", "namespace: market").replace("{name: shop}", "{name: market}")
    shop.apply_all(list(yaml.safe_load_all(market)))
    ran = init("-n", "market", "--step", "5m")
    shop.kubectl("delete", "namespace", "market", "--wait=false")
    assert ran.returncode == 1
    cpu = "container_cpu_usage_seconds_total"
    reason = (
        f'it has no {cpu}{{namespace="market"}}, but {cpu} with the labels container, image, namespace, pod'
    )
    assert reason in ran.stderr, ran.stderr
