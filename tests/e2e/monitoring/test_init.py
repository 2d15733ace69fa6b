"""`hvpa init` on a real cluster and two weeks in a real Prometheus: what is made of them, and what it says where
something is missing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import install_crds
from localcluster.programs.build import Programs
from localcluster.prometheus import Prometheus
from localcluster.workloads import history

ROOT = Path(__file__).parents[3]
REQUESTS = 'sum(rate(http_requests_total{namespace="$namespace"}[5m]))'
SHOP = (ROOT / "examples/first-day/shop.yaml").read_text()

Init = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def server(prometheus: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with two weeks of the shop that end ten minutes ago."""
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), programs=prometheus)
    server.backfill(history.lines(int(time.time()) // 120 * 120 - 600))
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

    def run(*flags: str, workload: str = "deployment/web") -> subprocess.CompletedProcess[str]:
        fixed = [workload, "-n", "shop", "--kubeconfig", str(shop.kubeconfig), "--prometheus", server.url]
        command = [sys.executable, "-m", "hvpa", "init", *fixed, "--out", str(tmp_path / "out"), *flags]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)

    return run


def test_two_weeks_become_an_hvpa_and_a_scenario_that_says_the_same(init: Init, tmp_path: Path) -> None:
    ran = init("--load", REQUESTS, "--step", "2m", "--days", "2", "--seeds", "1", "-o", "json")
    assert (ran.returncode, ran.stderr) == (0, "")
    found: Any = json.loads(ran.stdout)
    app = found["fit"]["containers"]["app"]
    assert app["cpu"]["perReplica"] == pytest.approx(history.CPU_BASE, rel=0.05)
    assert app["cpu"]["perUnit"] == pytest.approx(history.CPU_PER_UNIT, rel=0.02)
    assert app["memory"]["perReplica"] == pytest.approx(history.MEMORY_BASE, rel=0.05)
    assert app["memory"]["perUnit"] == pytest.approx(history.MEMORY_PER_UNIT, rel=0.05)
    assert found["history"]["seconds"] > 13.9 * 86400
    assert (found["fit"]["isPoor"], found["history"]["daily"], found["doubts"]) == (False, True, [])
    assert found["workload"]["scaledBy"] == "HPA web"
    scenario = tmp_path / "out" / "scenario.yaml"
    command = [sys.executable, "-m", "hvpa", "simulate", str(scenario), "-o", "json"]
    simulated = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    policies = simulated["scenarios"][0]["policies"]
    chosen = next(one for one in found["tried"] if one["chosen"])
    weeks = (2 - 0.5) / 7
    assert policies[0]["figures"]["cost"] / weeks == pytest.approx(found["today"][0]["costPerWeek"], rel=1e-3)
    assert policies[-1]["figures"]["cost"] / weeks == pytest.approx(
        chosen["outcomes"][0]["costPerWeek"], rel=1e-3
    )


def test_the_manifest_is_what_the_api_server_takes(init: Init, shop: ControlPlane, tmp_path: Path) -> None:
    install_crds(shop)
    queries = tmp_path / "queries.yaml"
    queries.write_text(f"load: {REQUESTS}\ncpu: sum(rate(container_cpu_usage_seconds_total[5m]))\n")
    ran = init("--queries", str(queries), "--since", "2d", "--step", "5m", "--days", "1", "--seeds", "1")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "CPU 150m per replica and 10m per unit of load" in ran.stdout
    shop.kubectl("apply", "--dry-run=server", "-f", str(tmp_path / "out" / "hvpa.yaml"))


@pytest.mark.parametrize(
    ("flags", "workload", "reason"),
    [
        (["--since", "2d"], "deployment/absent", "Deployment shop/absent does not exist"),
        (["--load", "sum("], "deployment/web", "load: Prometheus says: invalid parameter"),
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
