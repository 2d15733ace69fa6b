"""What Java, Node, Python and Go make of their container's limits, at their start and after a resize: the lines of
docs/runtimes.md."""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads import runtimes
from localcluster.workloads.load import is_ready
from localcluster.workloads.pods import MIB, Amounts
from localcluster.workloads.real_pods import RealPods, is_resized, status
from localcluster.workloads.runtimes import limits

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]

REQUESTS: Final = {"cpu": "50m", "memory": "64Mi"}
START: Final = {"cpu": "1000m", "memory": "512Mi"}
LARGER: Final = {"cpu": "2000m", "memory": "2Gi"}
SMALLER: Final = {"cpu": "500m", "memory": "192Mi"}
CORES: Final = len(os.sched_getaffinity(0))
UNLIMITED: Final = 2**63 - 1
"""Go's memory limit if there is none."""
SIZES: Final = (200, 500, 1000, 1500)
"""CPU limits of a JVM's start, in millicores."""
STARTS: Final = 3
NOISE: Final = 1.25
"""Times as long as with less CPU."""
FILLS: Final = {
    "Fills.java": """public class Fills {
        public static void main(String[] arguments) {
            var kept = new java.util.ArrayList<byte[]>();
            while (true) kept.add(new byte[1 << 20]);
        }
    }""",
    "fills.js": "const kept = []; for (;;) kept.push(new Array(1000).fill(kept.length))",
}
"""Programs that fill their heap."""
Container = Callable[[RealPods], Json]


@pytest.fixture(scope="module")
def node_cluster(runtimes_cluster: ControlPlane) -> ControlPlane:
    """A node with the image of the runtimes, instead of that of the folder."""
    return runtimes_cluster


def variable(name: str, value: str) -> Json:
    return {"name": name, "value": value}


def limit_as_variable(name: str) -> Json:
    """An environment variable with the memory limit in bytes."""
    return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}


def last_end(pod: Json) -> Json:
    """How the container ended last; empty if it did not."""
    end: Json = status(pod).get("lastState", {}).get("terminated", {})
    return end


def resized(pods: RealPods, name: str, to: Amounts) -> dict[str, Any]:
    """What a running container makes of other limits."""
    pods.resize(name, None, to)
    pods.until(name, is_resized, "is resized")
    time.sleep(0.5)  # a JVM reads its cgroup again after 20 ms
    pod = pods.get(name)
    assert status(pod)["restartCount"] == 0
    return limits(pod)


@pytest.mark.parametrize(
    "container",
    [runtimes.java, runtimes.node, runtimes.python, lambda _: runtimes.go()],
    ids=["java", "node", "python", "go"],
)
def test_without_limits_a_runtime_has_all_cores_whatever_it_requests(
    pods: RealPods, container: Container
) -> None:
    at_start = limits(pods.create("app", REQUESTS, **container(pods)))
    assert at_start["cpus"] == CORES
    pods.resize("app", {"cpu": "500m", "memory": "128Mi"})
    pods.until("app", is_resized, "is resized")
    assert limits(pods.get("app")) == at_start


@pytest.mark.parametrize(
    ("options", "heap"),
    [((), 128), (("-XX:MaxRAMPercentage=75",), 384), (("-Xmx200m",), 200)],
    ids=["by default", "with a percentage", "with a number"],
)
def test_a_jvm_follows_its_cpu_limit_and_keeps_its_heap(
    pods: RealPods, options: tuple[str, ...], heap: int
) -> None:
    at_start = limits(pods.create("app", REQUESTS, START, **runtimes.java(pods, *options)))
    assert at_start == {"cpus": 1, "memory": at_start["memory"], "collector": "Copy", "collecting": 0}
    assert at_start["memory"] / MIB == pytest.approx(heap, rel=0.05)
    assert resized(pods, "app", LARGER) == at_start | {"cpus": 2}
    assert resized(pods, "app", SMALLER) == at_start


@pytest.mark.parametrize("less", [{"cpu": "1000m"}, {"memory": "1791Mi"}], ids=["one CPU", "less memory"])
def test_a_jvm_chooses_its_collector_and_its_threads_at_its_start(
    pods: RealPods, less: dict[str, str]
) -> None:
    """A limit is rounded up to two CPUs."""
    enough = {"cpu": "1100m", "memory": "1792Mi"}
    large = limits(pods.create("large", REQUESTS, enough, **runtimes.java(pods)))
    assert (large["cpus"], large["collector"], large["collecting"]) == (2, "G1 Young Generation", 2)
    assert resized(pods, "large", enough | less) == large | {"cpus": 1 if "cpu" in less else 2}
    pods.delete("large")
    small = limits(pods.create("small", REQUESTS, enough | less, **runtimes.java(pods)))
    assert small["collector"] == "Copy"
    assert resized(pods, "small", enough) == small | {"cpus": 2}


def test_a_jvm_with_a_number_of_processors_has_them_with_any_limit(pods: RealPods) -> None:
    options = ("-XX:ActiveProcessorCount=2", "-XX:+UseG1GC")
    at_start = limits(pods.create("app", REQUESTS, START, **runtimes.java(pods, *options)))
    assert (at_start["cpus"], at_start["collecting"]) == (2, 2)
    assert resized(pods, "app", SMALLER) == at_start


def test_a_jvm_takes_half_of_a_small_memory_limit_whatever_the_percentage(pods: RealPods) -> None:
    java = runtimes.java(pods, "-XX:MaxRAMPercentage=75")
    at_start = limits(pods.create("app", REQUESTS, {"cpu": "1", "memory": "192Mi"}, **java))
    assert at_start["memory"] / MIB == pytest.approx(96, rel=0.05)


@pytest.mark.parametrize(
    ("memory", "env", "heap"),
    [
        ("2Gi", (), 1024),
        ("128Mi", (), 256),
        ("8Gi", (), 2048),
        ("512Mi", (variable("NODE_OPTIONS", "--max-old-space-size=400"),), 400),
    ],
    ids=["half of the limit", "but at least 256 MiB", "and at most 2 GiB", "or what is set"],
)
def test_node_keeps_its_heap_and_ignores_cpu_limits(
    pods: RealPods, memory: str, env: tuple[Json, ...], heap: int
) -> None:
    at_start = limits(
        pods.create("app", REQUESTS, START | {"memory": memory}, **runtimes.node(pods, env=env))
    )
    assert at_start == {"cpus": CORES, "listed": os.cpu_count(), "memory": at_start["memory"]}
    assert at_start["memory"] / MIB == pytest.approx(heap, rel=0.05)
    assert resized(pods, "app", LARGER) == at_start
    assert resized(pods, "app", SMALLER) == at_start


def test_python_has_no_limit_of_its_own_and_ignores_cpu_limits(pods: RealPods) -> None:
    at_start = limits(pods.create("app", REQUESTS, START, **runtimes.python(pods)))
    assert at_start == {"cpus": CORES, "listed": os.cpu_count(), "memory": -1}
    assert resized(pods, "app", LARGER) == at_start
    assert resized(pods, "app", SMALLER) == at_start


@pytest.mark.parametrize(("to", "cpus"), [(SMALLER, 2), (LARGER | {"cpu": str(CORES)}, CORES)])
def test_go_follows_its_cpu_limit_from_two_cpus_on(pods: RealPods, to: Amounts, cpus: int) -> None:
    """With two cores, it has two in any case."""
    at_start = limits(pods.create("app", REQUESTS, START, **runtimes.go()))
    assert at_start == {"cpus": 2, "memory": UNLIMITED}
    pods.resize("app", None, to)
    pods.until("app", is_resized, "is resized")
    expected = {"cpus": cpus, "memory": UNLIMITED}
    wait_for(lambda: limits(pods.get("app")) == expected, 60, f"Go has {cpus} CPUs")


def test_go_keeps_a_number_of_cpus_and_a_memory_limit_of_its_environment(pods: RealPods) -> None:
    env = (variable("GOMAXPROCS", "1"), limit_as_variable("GOMEMLIMIT"))
    at_start = limits(pods.create("app", REQUESTS, START, **runtimes.go(env)))
    assert at_start == {"cpus": 1, "memory": 512 * MIB}
    assert resized(pods, "app", LARGER) == at_start
    assert resized(pods, "app", SMALLER) == at_start


@pytest.mark.parametrize(
    ("container", "before", "after"),
    [
        (runtimes.java, 128, 512),
        (runtimes.node, 256, 1024),
        (lambda _: runtimes.go([limit_as_variable("GOMEMLIMIT")]), 512, 2048),
    ],
    ids=["java", "node", "go"],
)
def test_a_restart_for_memory_brings_the_new_limit(
    pods: RealPods, container: Container, before: int, after: int
) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    pod = pods.create("app", REQUESTS, START, resizePolicy=policy, **container(pods))
    assert limits(pod)["memory"] / MIB == pytest.approx(before, rel=0.05)
    pods.resize("app", None, {"memory": "2Gi"})
    pod = pods.until("app", lambda pod: status(pod)["restartCount"] == 1 and is_ready(pod), "is restarted")
    assert limits(pod)["memory"] / MIB == pytest.approx(after, rel=0.05)


@pytest.mark.parametrize(
    ("container", "code"),
    [
        (lambda pods: runtimes.java(pods, "-Xmx64m", "-XX:+ExitOnOutOfMemoryError", "/ctl/Fills.java"), 3),
        (lambda pods: runtimes.node(pods, "--max-old-space-size=20", "/ctl/fills.js"), 139),
    ],
    ids=["java", "node"],
)
def test_a_runtime_whose_heap_is_full_ends_with_its_exit_code(
    pods: RealPods, container: Container, code: int
) -> None:
    for name, program in FILLS.items():
        (pods.control / name).write_text(program)
    spec = pods.spec("app", REQUESTS, START, **container(pods))
    metadata = {"name": "app", "namespace": pods.namespace}
    pods.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    pod = pods.until("app", lambda pod: bool(last_end(pod)), "has ended")
    assert (last_end(pod)["reason"], last_end(pod)["exitCode"]) == ("Error", code)


def test_a_limit_in_the_environment_stays_and_in_a_volume_it_follows(pods: RealPods) -> None:
    spec = pods.spec("app", REQUESTS, START, **runtimes.go([limit_as_variable("LIMIT")]))
    reference = {"containerName": "app", "resource": "limits.memory"}
    volume = {"items": [{"path": "limit", "resourceFieldRef": reference}]}
    spec["volumes"].append({"name": "limits", "downwardAPI": volume})
    spec["containers"][0]["volumeMounts"].append({"name": "limits", "mountPath": "/limits"})
    metadata = {"name": "app", "namespace": pods.namespace}
    pods.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    pod = pods.until("app", is_ready, "is ready")
    process = pods.node_of(pod).first_process(pod)
    file, environment = process / "root/limits/limit", process / "environ"
    assert file.read_text() == str(512 * MIB)
    resized(pods, "app", LARGER)
    wait_for(lambda: file.read_text() == str(2048 * MIB), 150, "the file has the new limit")
    assert f"LIMIT={512 * MIB}".encode() in environment.read_bytes().split(b"\0")


def test_a_jvm_with_more_cpu_starts_no_later(pods: RealPods, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the table of docs/runtimes.md: medians."""
    starts = {size: [start_of_a_jvm(pods, size) for _ in range(STARTS)] for size in SIZES}
    seconds = {size: statistics.median(start.seconds for start in starts[size]) for size in SIZES}
    cpu = {size: statistics.median(start.cpu for start in starts[size]) for size in SIZES}
    rows = [f"| {size}m | {seconds[size]:.1f} | {cpu[size]:.1f} |" for size in SIZES]
    with capsys.disabled():
        print(
            "\n| CPU limit | seconds until it serves | seconds of CPU |\n| --- | --- | --- |", *rows, sep="\n"
        )
    for less, more in itertools.pairwise(SIZES):
        assert seconds[more] < seconds[less] * NOISE


class Start(NamedTuple):
    """From the start of the container's process to its first answer: time, and its CPU time."""

    seconds: float
    cpu: float


def start_of_a_jvm(pods: RealPods, millicores: int) -> Start:
    size = {"cpu": f"{millicores}m", "memory": "512Mi"}
    pods.begin("app", REQUESTS, size, "", runtimes.java(pods))
    pod = pods.until("app", lambda pod: status(pod).get("state", {}).get("running"), "runs")
    node = pods.node_of(pod)
    # starttime, proc_pid_stat(5): the 20th field after the name
    ticks = int((node.first_process(pod) / "stat").read_text().rpartition(")")[2].split()[19])

    def is_serving() -> bool:
        try:
            return bool(limits(pod))
        except OSError:
            return False

    wait_for(is_serving, 60, "it serves", 0.02)
    seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    start = Start(seconds, node.cpu_seconds(pod))
    pods.delete("app")
    return start
