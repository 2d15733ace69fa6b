"""The local cluster itself: that the control plane is real and whole, that its audit log and its faults can be
relied on, and that nothing of it stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.client.exec_plugin import ExecPlugin
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.manifests import HOLD_ANNOTATION
from localcluster.process import Process
from localcluster.programs.build import kubernetes_version
from localcluster.workloads import samples
from localcluster.workloads.load import Load, await_pods
from tests.e2e.bare.accounts import new_account

pytestmark = pytest.mark.owned_cluster

MEBI = 2**20
TIMEOUT = 120
"""Seconds to wait for what metrics-server, the HPA controller and the VPA recommender have to do."""


def container_usage(cluster: ControlPlane, namespace: str, app: str) -> list[Json]:
    found = cluster.api.list("PodMetrics", namespace, f"app={app}")
    return [pod["containers"][0]["usage"] for pod in found]


def under_load(cluster: ControlPlane, namespace: str, app: str) -> list[Json]:
    """The pods whose measurement shows the load of 500m already; an earlier one may be of the time before. (It is one
    percent short, and rises with the time that a scrape takes.)"""
    return [
        usage for usage in container_usage(cluster, namespace, app) if 490 < millicores(usage["cpu"]) < 550
    ]


def vpa_target(cluster: ControlPlane, namespace: str, name: str) -> Json:
    status = cluster.api.get("VerticalPodAutoscaler", name, namespace)["status"]
    target: Json = status["recommendation"]["containerRecommendations"][0]["target"]
    return target


def millicores(cpu: str) -> float:
    return (
        float(cpu[:-1]) / 1e6
        if cpu.endswith("n")
        else float(cpu[:-1])
        if cpu.endswith("m")
        else float(cpu) * 1000
    )


def timed(what: str, began: float) -> None:
    """Printed at the end of a run with `-rP`."""
    print(f"{what}: {time.monotonic() - began:.1f} s")


def test_load_reaches_hpa_and_vpa_and_both_follow_it_up_and_down(
    cluster: ControlPlane, namespace: str
) -> None:
    api = cluster.api
    web, db = (
        samples.deployment("web", namespace, replicas=2),
        samples.deployment("db", namespace, replicas=2),
    )
    for workload in (web, db):
        api.create(workload)
    api.create(samples.hpa("web", namespace, samples.target_of(web), utilization=100))
    api.create(samples.vpa("db", namespace, samples.target_of(db)))
    for name in ("web", "db"):
        await_pods(api, namespace, name)
    began = time.monotonic()
    with (
        Load(api, namespace, "app=web", cpu=780) as on_web,
        Load(api, namespace, "app=db", cpu=1000, memory=200 * MEBI, base_memory=100 * MEBI) as on_db,
    ):
        wait_for(lambda: len(under_load(cluster, namespace, "db")) == 2, TIMEOUT, "metrics of the load")
        timed("first metrics", began)
        for usage in under_load(cluster, namespace, "db"):
            assert usage["memory"] == "200Mi"
        wait_for(
            lambda: api.get("Deployment", "web", namespace)["spec"]["replicas"] == 4,
            TIMEOUT,
            "the HPA scales out",
        )
        timed("HPA scaling out", began)
        # 500m and 15 % margin, rounded up to the end of a histogram's bucket.
        wait_for(
            lambda: 575 <= millicores(vpa_target(cluster, namespace, "db")["cpu"]) <= 640,
            TIMEOUT,
            "VPA's target",
        )
        timed("VPA's target", began)

        began = time.monotonic()
        on_web.cpu, on_db.cpu, on_db.memory = 100, 200, 0
        wait_for(
            lambda: api.get("Deployment", "web", namespace)["spec"]["replicas"] == 1,
            TIMEOUT,
            "the HPA scales in",
        )
        timed("HPA scaling in", began)
        wait_for(
            lambda: millicores(vpa_target(cluster, namespace, "db")["cpu"]) < 130,
            TIMEOUT,
            "VPA's target falls",
        )
        wait_for(
            lambda: int(vpa_target(cluster, namespace, "db")["memory"]) < 150 * MEBI, TIMEOUT, "memory falls"
        )
        timed("VPA's target fallen", began)
    assert on_web.error is None
    assert on_db.error is None


def test_the_total_load_is_shared_by_the_ready_pods(cluster: ControlPlane, namespace: str) -> None:
    api = cluster.api
    api.create(samples.deployment("web", namespace, replicas=2))
    await_pods(api, namespace, "web")
    with Load(
        api, namespace, "app=web", cpu=900, memory=300 * MEBI, base_memory=50 * MEBI, most_cpu=400
    ) as load:
        assert (load.usage.cpu, load.usage.memory, load.usage.pods) == (400, 200 * MEBI, 2)
        api.patch("Deployment", "web", namespace, {"spec": {"replicas": 3}})
        wait_for(lambda: load.usage.pods == 3 and load.usage.cpu == 300, 60, "three share it")
        assert load.usage.memory == 150 * MEBI


def test_a_pod_that_is_held_does_not_become_ready(cluster: ControlPlane, namespace: str) -> None:
    cluster.api.create(samples.deployment("web", namespace, annotations={HOLD_ANNOTATION: "true"}))
    wait_for(lambda: cluster.api.list("Pod", namespace), 60, "the pod is there")
    time.sleep(1)
    assert ready_pods(cluster.api, namespace) == 0
    pod = cluster.api.list("Pod", namespace)[0]["metadata"]["name"]
    cluster.api.patch("Pod", pod, namespace, {"metadata": {"annotations": {HOLD_ANNOTATION: None}}})
    wait_for(lambda: ready_pods(cluster.api, namespace) == 1, 60, "it is ready")


def ready_pods(api: KubeApi, namespace: str) -> int:
    return sum(1 for pod in api.list("Pod", namespace) if pod["status"]["phase"] == "Running")


def config_map(namespace: str, name: str = "a") -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


ON_CONFIG_MAPS = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "patch"]}
]


def test_the_audit_log_names_the_service_account_that_wrote(
    bare_cluster: ControlPlane, bare_namespace: str
) -> None:
    namespace = bare_namespace
    new_account(bare_cluster, namespace, "writer", *ON_CONFIG_MAPS)
    writer = KubeApi(bare_cluster.service_account_kubeconfig(namespace, "writer"))
    mark = bare_cluster.audit.mark()
    writer.create(config_map(namespace))
    with pytest.raises(ApiError, match=r"403 Forbidden.*cannot delete"):
        writer.delete("ConfigMap", "a", namespace)
    user = f"system:serviceaccount:{namespace}:writer"
    assert bare_cluster.audit.writers("configmaps", "a", namespace, mark) == {user: 1}
    assert bare_cluster.audit.count(f"{namespace}:writer", mark) == len(["discovery", "create", "delete"])
    refused = bare_cluster.audit.requests(mark, user=user, code=403)
    assert [(request.verb, request.resource) for request in refused] == [("delete", "configmaps")]


def test_kubectl_reports_the_same_version_of_itself_and_of_the_server(bare_cluster: ControlPlane) -> None:
    version = kubernetes_version()
    printed = bare_cluster.kubectl("version").stdout
    assert f"Client Version: {version}\n" in printed
    assert f"Server Version: {version}\n" in printed


def test_a_restarted_api_server_has_the_same_address_and_data(
    bare_cluster: ControlPlane, bare_namespace: str
) -> None:
    bare_cluster.api.create(config_map(bare_namespace))
    server = bare_cluster.server
    bare_cluster.restart_apiserver()
    assert bare_cluster.server == server
    assert bare_cluster.api.get("ConfigMap", "a", bare_namespace)["metadata"]["name"] == "a"


class TestProxy:
    """Faults in front of the API server."""

    @pytest.fixture
    def token(self, bare_cluster: ControlPlane, bare_namespace: str) -> str:
        new_account(bare_cluster, bare_namespace, "caller", *ON_CONFIG_MAPS)
        return bare_cluster.service_account_token(bare_namespace, "caller")

    def test_it_passes_requests_on_as_who_sent_them(
        self, bare_cluster: ControlPlane, bare_namespace: str, token: str
    ) -> None:
        with bare_cluster.proxy() as proxy:
            api = KubeApi(proxy.kubeconfig_for(token))
            api.create(config_map(bare_namespace))
            writers = bare_cluster.audit.writers("configmaps", "a", bare_namespace)
            assert writers == {f"system:serviceaccount:{bare_namespace}:caller": 1}
            assert [(seen.verb, seen.code) for seen in proxy.seen] == [("get", 200), ("create", 201)]

    @pytest.mark.parametrize("code", [409, 410, 429, 500, 503])
    def test_it_answers_a_code_as_often_as_asked(
        self, bare_cluster: ControlPlane, bare_namespace: str, token: str, code: int
    ) -> None:
        with bare_cluster.proxy() as proxy:
            api = KubeApi(proxy.kubeconfig_for(token))
            fault = proxy.fail(code, times=2, verb="list", path="/configmaps", retry_after=3)
            for _ in range(2):
                with pytest.raises(ApiError) as refused:
                    api.list("ConfigMap", bare_namespace)
                assert refused.value.status == code
            assert api.list("ConfigMap", bare_namespace) == []
            assert fault.hits == 2

    def test_a_request_is_held_before_it_is_carried_out_or_after(
        self, bare_cluster: ControlPlane, bare_namespace: str, token: str
    ) -> None:
        with bare_cluster.proxy() as proxy:
            api = KubeApi(proxy.kubeconfig_for(token))
            for name, answered in (("before", False), ("after", True)):
                hold = proxy.hold(verb="create", path="/configmaps", answered=answered)
                thread = threading.Thread(target=create_quietly, args=(api, config_map(bare_namespace, name)))
                thread.start()
                assert hold.wait().startswith("POST /api/v1/namespaces/")
                assert (bare_cluster.api.find("ConfigMap", name, bare_namespace) is not None) == answered
                hold.release() if answered else hold.drop()
                thread.join(60)
            assert bare_cluster.api.find("ConfigMap", "before", bare_namespace) is None

    def test_watches_are_cut_or_expired(
        self, bare_cluster: ControlPlane, bare_namespace: str, token: str
    ) -> None:
        path = f"/api/v1/namespaces/{bare_namespace}/configmaps?watch=true"
        with bare_cluster.proxy() as proxy:
            for end, sent in ((proxy.expire_watches, '"code": 410'), (proxy.cut_watches, "")):
                kubeconfig = proxy.kubeconfig_for(token)
                argv = [
                    str(bare_cluster.programs["kubectl"]),
                    f"--kubeconfig={kubeconfig}",
                    "get",
                    "--raw",
                    path,
                ]
                with subprocess.Popen(
                    argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                ) as watch:
                    wait_for(lambda: len(proxy.open_watches) == 1, 60, "the watch is open")
                    assert end() == 1
                    assert sent in watch.communicate(timeout=60)[0]

    def test_connections_are_refused_for_a_while(
        self, bare_cluster: ControlPlane, bare_namespace: str, token: str
    ) -> None:
        with bare_cluster.proxy() as proxy:
            api = KubeApi(proxy.kubeconfig_for(token))
            with proxy.refused(), pytest.raises(OSError, match=r"refused|reset|closed"):
                api.list("ConfigMap", bare_namespace)
            assert api.list("ConfigMap", bare_namespace) == []

    def test_an_exec_plugin_gives_a_new_token_after_the_old_one_was_rejected(
        self, bare_cluster: ControlPlane, bare_namespace: str, token: str, tmp_path: Path
    ) -> None:
        with bare_cluster.proxy() as proxy:
            plugin = ExecPlugin(tmp_path, token)
            kubeconfig = proxy.kubeconfig_with(plugin.user())
            argv = [bare_cluster.programs["kubectl"], f"--kubeconfig={kubeconfig}", "get", "configmaps"]
            command = [*map(str, argv), f"--namespace={bare_namespace}"]
            assert subprocess.run(command, capture_output=True).returncode == 0
            assert plugin.calls == 1
            proxy.reject_token(token)
            assert b"fault 401" in subprocess.run(command, capture_output=True).stderr
            plugin.answer(bare_cluster.service_account_token(bare_namespace, "caller", 1200))
            assert subprocess.run(command, capture_output=True).returncode == 0


def create_quietly(api: KubeApi, manifest: Json) -> None:
    with contextlib.suppress(ApiError, OSError):
        api.create(manifest)


class TestNothingStays:
    """No program outlives what started it."""

    def test_a_stopped_control_plane_leaves_no_process_and_no_folder(self) -> None:
        with ControlPlane(full=False) as plane:
            groups = [process.pid for process in plane.processes.values()]
            assert all(exists(group) for group in groups)
        assert not any(exists(group) for group in groups)
        assert not plane.folder.exists()

    def test_a_program_dies_with_a_starter_that_is_killed(self, tmp_path: Path) -> None:
        script = (
            "import pathlib, sys, time\n"
            "from localcluster.process import Process\n"
            f"process = Process('sleep', ['/bin/sleep', '600'], pathlib.Path({str(tmp_path / 'log')!r}))\n"
            "process.start()\n"
            "print(process.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        root = str(Path(__file__).resolve().parents[2])
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root
        ) as starter:
            assert starter.stdout is not None
            group = int(starter.stdout.readline())
            assert exists(group)
            starter.send_signal(signal.SIGKILL)
        wait_for(lambda: not exists(group), 60, "it died too")

    def test_a_program_started_from_a_short_lived_thread_lives_on(self, tmp_path: Path) -> None:
        process = Process("sleep", ["/bin/sleep", "600"], tmp_path / "log")
        thread = threading.Thread(target=process.start)
        thread.start()
        thread.join()
        try:
            time.sleep(0.3)
            assert process.alive
        finally:
            process.kill()


def exists(group: int) -> bool:
    """Whether any process of this group runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
