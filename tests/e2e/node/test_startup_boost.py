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
from tests.e2e.full.creation import created_now

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]
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
    recommended.vpa(api, namespace, "jvm", target("jvm"))
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
            await_size_at_creation(pods, "jvm", BOOSTED)
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


MESH: Final = {"requests": {"cpu": "50m"}, "limits": {"cpu": "100m"}}
MESH_BOOSTED: Final = {"requests": {"cpu": "200m"}, "limits": {"cpu": "400m"}}
MIGRATION_BOOSTED: Final = {"requests": {"cpu": "50m"}, "limits": {"cpu": "400m"}}


def test_sidecars_and_init_containers_have_more_cpu_for_the_start(
    node_cluster: ControlPlane, pods: RealPods
) -> None:
    api, namespace = pods.api, pods.namespace
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    recommended.vpa(api, namespace, "py", target("py"))
    recommended.recommend_target(api, namespace, "py", cpu="100m")
    pods.use("mesh")
    inside = pods.spec("mesh", {})["containers"][0]
    app = runtimes.python(pods)
    app["readinessProbe"]["initialDelaySeconds"] = 5
    ends = {**inside, "image": app["image"], "command": ["python3.11", "-c", "import time; time.sleep(3)"]}
    first = [
        {**ends, "name": "migrate", "resources": MESH},
        {**inside, "name": "mesh", "resources": MESH, "restartPolicy": "Always"},
    ]
    with Versions(node_cluster.kubeconfig, namespace) as seen:
        spec = {**pods.spec("py", REQUESTS, LIMITS, **app), "initContainers": first}
        pods.deploy("py", REQUESTS, LIMITS, 0)
        api.patch("Deployment", "py", namespace, {"spec": {"replicas": 1, "template": {"spec": spec}}})
        await_pods(api, namespace, "py")
        old = pods.only_pod("py")
        with Operator(node_cluster, kubeconfig):
            boosts = [{"container": one, "cpu": {"factor": 4}} for one in ("migrate", "mesh")]
            strategy = {"type": "InPlace"}
            own = {"hpa": {"deploy": False}, "vpa": {"name": "py"}, "updateStrategy": strategy}
            api.create(objects.hvpa("py", namespace, **own, startupBoost=boosts))
            await_size_at_creation(pods, "py", MESH_BOOSTED, ("initContainers", 1))
            api.patch("Deployment", "py", namespace, {"spec": {"replicas": 2}})
            await_pods(api, namespace, "py")
            (new,) = {name(pod) for pod in listed(pods, "py")} - {old}
            wait_for(
                lambda: reported(pods.get(new), "mesh") == MESH, TIMEOUT, "the usual size of the sidecar"
            )
            ended = pods.get(new)
        versions = [version for _, version in seen.of(new)]
    api.delete("Hvpa", "py", namespace)
    running = [version for version in versions if version.get("status", {}).get("initContainerStatuses")]
    assert MESH_BOOSTED in [reported(version, "mesh") for version in running]
    assert MIGRATION_BOOSTED in [reported(version, "migrate") for version in running]
    assert ended["metadata"]["generation"] == 2  # one resize
    assert [one["resources"] for one in ended["spec"]["initContainers"]] == [MIGRATION_BOOSTED, MESH]
    assert {one["restartCount"] for one in ended["status"]["initContainerStatuses"]} == {0}


def reported(pod: Json, container: str) -> Json:
    """The resources that the kubelet reports of an init container."""
    statuses = pod["status"]["initContainerStatuses"]
    resources: Json = next(one for one in statuses if one["name"] == container).get("resources", {})
    return resources


def await_size_at_creation(
    pods: RealPods, app: str, size: Json, place: tuple[str, int] = ("containers", 0)
) -> None:
    """Wait until new pods are created with this size of a container."""
    section, index = place

    def is_created() -> bool:
        created = created_now(pods.api, pods.namespace, app)
        return bool(created["spec"][section][index]["resources"] == size)

    wait_for(is_created, TIMEOUT, "the size of new pods")


def target(deployment: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment}


def name(pod: Json) -> str:
    return str(pod["metadata"]["name"])


def listed(pods: RealPods, app: str = "jvm") -> list[Json]:
    found = pods.api.list("Pod", pods.namespace, f"app={app}")
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
