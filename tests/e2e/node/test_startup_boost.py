"""A real JVM has more CPU for its start (`spec.startupBoost`): it is ready sooner, and then has its usual size."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, install_operator_rbac
from localcluster.workloads import runtimes
from localcluster.workloads.load import await_pods, is_ready
from localcluster.workloads.real_pods import RealPods, Versions, asked, condition, status
from tests.e2e.full import objects, recommended

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "jvm"}
REQUESTS: Final = {"cpu": "100m", "memory": "256Mi"}
LIMITS: Final = {"cpu": "200m", "memory": "512Mi"}
SIZE: Final = {"requests": REQUESTS, "limits": LIMITS}
BOOSTED: Final = {"requests": {**REQUESTS, "cpu": "500m"}, "limits": {**LIMITS, "cpu": "1"}}
WORK: Final = 1.0
"""Seconds of CPU of the start, beside the JVM's own."""
NEVER: Final = 3600.0
LOOK: Final = 20
"""Seconds from a pod's creation in which its answers are counted."""
TIMEOUT: Final = 120


@pytest.fixture(scope="module")
def node_cluster(runtimes_cluster: ControlPlane) -> ControlPlane:
    return runtimes_cluster


def test_a_jvm_starts_faster_and_then_has_its_size(
    node_cluster: ControlPlane, pods: RealPods, capsys: pytest.CaptureFixture[str]
) -> None:
    api, namespace = pods.api, pods.namespace
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    recommended.vpa(api, namespace, "jvm", TARGET)
    recommended.recommend_target(api, namespace, "jvm", cpu="100m")
    with Versions(node_cluster.kubeconfig, namespace) as seen, answers(pods) as answered:
        pods.deploy("jvm", REQUESTS, LIMITS, **runtimes.java(pods, cpu_seconds=WORK))
        await_pods(api, namespace, "jvm")
        first = pods.only_pod("jvm")
        with Operator(node_cluster, kubeconfig):
            api.create(
                objects.hvpa(
                    "jvm",
                    namespace,
                    hpa={"deploy": False},
                    vpa={"name": "jvm"},
                    updateStrategy={"type": "InPlace"},
                    startupBoost=[{"container": "app", "cpu": {"factor": 5}, "atMost": "30s"}],
                )
            )
            wait_for(lambda: api.find("HvpaSizes", "hvpa", namespace), TIMEOUT, "an entry for new pods")
            time.sleep(1)  # the API server's policies look at a copy
            api.patch("Deployment", "jvm", namespace, {"spec": {"replicas": 2}})
            await_pods(api, namespace, "jvm")
            wait_for(lambda: sizes(pods) == [SIZE, SIZE], TIMEOUT, "two pods of their size")
            (second,) = {name(pod) for pod in listed(pods)} - {first}
            wait_for(lambda: pods.in_force(second).cpu == 200, TIMEOUT, "the limit in force")
            assert status(pods.get(second))["restartCount"] == 0
            time.sleep(LOOK)

            # A JVM that is never ready.
            spec = pods.spec("jvm", REQUESTS, LIMITS, **runtimes.java(pods, cpu_seconds=NEVER))
            api.patch("Deployment", "jvm", namespace, {"spec": {"template": {"spec": spec}}})
            wait_for(lambda: BOOSTED in sizes(pods), TIMEOUT, "a new pod with the boost")
            wait_for(lambda: all(size == SIZE for size in sizes(pods)), TIMEOUT, "and then without it")
            assert not all(map(is_ready, listed(pods)))
        versions = {pod: [version for _, version in seen.of(pod)] for pod in (first, second)}
    api.delete("Hvpa", "jvm", namespace)
    starts = {pod: seconds_to_ready(versions[pod]) for pod in (first, second)}
    counts = {pod: answered_early(versions[pod], answered[pod]) for pod in (first, second)}
    with capsys.disabled():
        print(f"\nseconds to ready, and answers within {LOOK} s of the pod's creation:")
        print(
            f"without a boost {starts[first]:.0f}, {counts[first]}; with it {starts[second]:.0f}, {counts[second]}"
        )
    assert starts[second] < starts[first]
    assert counts[second] > counts[first]
    requested = [asked(version) for version in versions[second]]
    assert requested[0] == BOOSTED
    assert versions[second][-1]["metadata"]["generation"] == 2  # one resize


def name(pod: Json) -> str:
    return str(pod["metadata"]["name"])


def listed(pods: RealPods) -> list[Json]:
    found = pods.api.list("Pod", pods.namespace, "app=jvm")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def sizes(pods: RealPods) -> list[Json]:
    return [asked(pod) for pod in listed(pods)]


@contextmanager
def answers(pods: RealPods) -> Iterator[dict[str, list[float]]]:
    """The times at which each pod has answered, asked ten times a second."""
    times: dict[str, list[float]] = {}
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.1):
            for pod in listed(pods):
                answered = times.setdefault(name(pod), [])
                if pod.get("status", {}).get("podIP"):
                    try:
                        runtimes.limits(pod)
                        answered.append(time.time())
                    except OSError:
                        pass  # it does not serve yet

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join(60)


def seconds_of(stamp: str) -> float:
    return dt.datetime.fromisoformat(stamp).timestamp()


def seconds_to_ready(versions: list[Json]) -> float:
    """From the start of the process to the readiness of the pod, in whole seconds."""
    ready = next(version for version in versions if is_ready(version))
    became = condition(ready, "Ready")
    assert became is not None
    return seconds_of(became["lastTransitionTime"]) - seconds_of(
        status(ready)["state"]["running"]["startedAt"]
    )


def answered_early(versions: list[Json], times: list[float]) -> int:
    created = seconds_of(versions[0]["metadata"]["creationTimestamp"])
    return sum(at < created + LOOK for at in times)
