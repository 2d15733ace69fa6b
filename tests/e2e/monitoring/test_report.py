"""`hvpa report --prometheus` on two weeks in a real Prometheus: the usage of all workloads is what was made up, also of
pods whose owner changes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import pytest

from localcluster.programs.build import Programs
from localcluster.prometheus import Prometheus
from localcluster.workloads import history

ROOT = Path(__file__).parents[3]
SHOP = ROOT / "examples/first-day/shop.yaml"
BATCH_DAYS: Final = 3
HOUR: Final = 3600
Report = dict[str, Any]


def others(end: int) -> Iterator[str]:
    """Samples of a StatefulSet `batch` of two pods, metric by metric: half a core each, 200 MB, and 900 MB for some
    minutes between two hours. An orphaned pod has no owner. A ReplicaSet and a pod have two owners, as after an
    adoption."""
    times = range(end - BATCH_DAYS * 86400, end, history.EVERY)
    pods = ("batch-0", "batch-1", "orphan")
    for pod in pods:
        labels = f'namespace="shop",pod="{pod}",container="job"'
        for at in times:
            yield f"container_cpu_usage_seconds_total{{{labels}}} {(at - times[0]) / 2:.1f} {at}"
    for pod in pods:
        labels = f'namespace="shop",pod="{pod}",container="job"'
        for at in times:
            memory = 900e6 if HOUR / 2 <= at % HOUR < HOUR / 2 + 300 else 200e6
            yield f"container_memory_working_set_bytes{{{labels}}} {memory:.0f} {at}"
    owner = 'owner_is_controller="true",owner_kind="StatefulSet",owner_name='
    unowned = 'owner_is_controller="<none>",owner_kind="<none>",owner_name="<none>"'
    for labels in (
        f'pod="batch-0",{owner}"batch"',
        f'pod="batch-1",{owner}"batch"',
        f'pod="batch-1",{owner}"former"',
        f'pod="orphan",{unowned}',
    ):
        yield from (f'kube_pod_owner{{namespace="shop",{labels}}} 1 {at}' for at in times)
    for name in ("a", "b"):
        labels = f'namespace="shop",replicaset="twice",owner_kind="Deployment",owner_name="{name}"'
        yield from (f"kube_replicaset_owner{{{labels}}} 1 {at}" for at in times)


def in_order(samples: Iterator[str]) -> Iterator[str]:
    """All samples of a metric in sequence."""
    by_metric: dict[str, list[str]] = {}
    for sample in samples:
        by_metric.setdefault(sample.partition("{")[0], []).append(sample)
    for lines in by_metric.values():
        yield from lines


@pytest.fixture(scope="module")
def end() -> int:
    """The end of the history, ten minutes ago."""
    return int(time.time()) // HOUR * HOUR - 600


@pytest.fixture(scope="module")
def server(prometheus: Programs, end: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with two weeks of the shop, and three days of the other workloads."""
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), programs=prometheus)

    def samples() -> Iterator[str]:
        yield from history.lines(end)
        yield from others(end)

    server.backfill(in_order(samples()))
    with server:
        yield server


def ran(server: Prometheus, end: int, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """The report of the shop with a StatefulSet, at the end of the history."""
    batch = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "batch", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "batch"}}, "template": {
            "metadata": {"labels": {"app": "batch"}},
            "spec": {"containers": [{"name": "job", "image": "job", "resources": {
                "requests": {"cpu": "2", "memory": "2G"}}}]}}},
    }  # fmt: skip
    (folder / "batch.json").write_text(json.dumps(batch))
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    command = [sys.executable, "-m", "hvpa", "report", "-f", str(SHOP), "-f", str(folder / "batch.json")]
    command += ["--prometheus", server.url, "--now", now, *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)


def test_two_weeks_of_all_workloads_are_what_they_used(server: Prometheus, end: int, tmp_path: Path) -> None:
    done = ran(server, end, tmp_path, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    report: Report = json.loads(done.stdout)
    found = {workload["name"]: workload for workload in report["workloads"]}
    web = found["web"]
    times = range(end - 14 * 86400, end, HOUR)
    assert web["usageDays"] == 14
    # Its pods use a fixed part each and a part of the load: on average 6 of them.
    cores = fmean(history.CPU_PER_UNIT * history.load(at) for at in times)
    pods = (web["used"]["cores"] - cores) / history.CPU_BASE
    assert 2 < pods < history.MOST
    units = fmean(history.MEMORY_PER_UNIT * history.load(at) for at in times)
    assert web["used"]["memoryGib"] * 2**30 == pytest.approx(history.MEMORY_BASE * pods + units, rel=0.1)
    batch = found["batch"]
    assert (batch["usageDays"], batch["basis"]) == (BATCH_DAYS, "YoungHistory")
    # Prometheus takes one of the two owners of its second pod.
    assert batch["used"]["cores"] in (pytest.approx(0.5, rel=0.02), pytest.approx(1.0, rel=0.02))
    requests = batch["blends"]["Trajectory"]["recommended"]["containers"]["job"]["requests"]
    assert requests["cpu"] == "575m"
    assert requests["memory"].startswith("1035"), "the peak between two hours, and 15 percent"


def test_a_query_that_prometheus_refuses_is_one_line(server: Prometheus, end: int, tmp_path: Path) -> None:
    done = ran(server, end, tmp_path, "--step", "1s", "--since", "10d", "--timeout", "1s")
    assert done.returncode in (1, 3)
    assert len(done.stderr.splitlines()) == 1
