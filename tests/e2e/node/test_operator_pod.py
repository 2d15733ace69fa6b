"""The operator's image as two pods on two real nodes, installed as a user installs it: `make deploy`, or the chart. The
manifests are unchanged; `on_loopback.yaml` adds to the pods what is special about these nodes."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.controlplane.loopback import put_operator_on_loopback
from localcluster.operator.operator import NAMESPACE
from localcluster.process import Process
from localcluster.workloads.load import is_ready
from localcluster.workloads.pods import MIB
from localcluster.workloads.real_pods import RealPods, status
from tests.e2e.chart.command import CHART, succeed
from tests.e2e.conftest import LOGS
from tests.e2e.full.objects import OPERATOR_USER
from tests.e2e.making import make
from tests.e2e.node.in_place import start
from tests.e2e.node.sockets import listening
from tools.image.__main__ import write
from tools.image.build import Content

pytestmark = pytest.mark.owned_cluster

REPOSITORY: Final = "hvpa.test/hvpa"
IMAGE: Final = f"{REPOSITORY}:1"
SELECTOR: Final = "app.kubernetes.io/name=hvpa"
TOKEN: Final = "run/secrets/kubernetes.io/serviceaccount/token"
"""Without /var, where run is a link."""
HEALTH, METRICS = 8081, 9569


@pytest.fixture(scope="module")
def node_cluster(
    request: pytest.FixtureRequest, real_nodes: None, image: Content, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with two real nodes that have the operator's image, and nothing of the operator."""
    file = tmp_path_factory.mktemp("image") / "hvpa.tar"
    write(image, file, IMAGE)
    with ControlPlane(nodes="real", settings=AutoscalerSettings(real_nodes=2), images=[file]) as owned:
        logs: dict[str, Process] = {f"pods' {name}": process for name, process in owned.processes.items()}
        request.config.stash.setdefault(LOGS, {}).update(logs)
        put_operator_on_loopback(owned)
        yield owned


@pytest.fixture(
    scope="module", params=["make deploy", pytest.param("helm install", marks=pytest.mark.at_length)]
)
def operators(request: pytest.FixtureRequest, node_cluster: ControlPlane, helm: Path) -> Iterator[Operators]:
    """The operator, installed; its two replicas are available."""
    if request.param == "make deploy":
        make(node_cluster, "deploy", f"IMG={IMAGE}")
        yield Operators(node_cluster).available()
        make(node_cluster, "undeploy")
        make(node_cluster, "uninstall")
        return
    values = ("--set-string", f"image.repository={REPOSITORY},image.tag=1")
    release = ("hvpa", "--namespace", NAMESPACE)
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": restricted},
    }
    node_cluster.api.create(namespace)
    succeed(helm, "install", *release, CHART, *values, kubeconfig=node_cluster.kubeconfig)
    yield Operators(node_cluster).available()
    Operators(node_cluster).end()
    succeed(helm, "uninstall", *release, kubeconfig=node_cluster.kubeconfig)


class Operators:
    """The pods of the operator."""

    def __init__(self, cluster: ControlPlane) -> None:
        """They need not be there yet."""
        self.cluster, self.api = cluster, cluster.api

    def available(self) -> Operators:
        """Wait until both are Ready, and no third one is left."""
        wait_for(
            lambda: [is_ready(pod) for pod in self.pods()] == [True, True], 60, "both replicas are ready", 0.2
        )
        return self

    def end(self) -> None:
        """Delete the Deployment, and wait until its pods are gone: Helm takes their rights away before."""
        self.api.delete("Deployment", "hvpa", NAMESPACE)
        wait_for(lambda: not self.pods(), 40, "both replicas are gone", 0.2)

    def pods(self) -> list[Json]:
        return self.api.list("Pod", NAMESPACE, SELECTOR)

    def leader(self) -> str:
        """The name of the pod that holds the lease; empty if none does."""
        lease = self.api.find("Lease", "hvpa", NAMESPACE) or {"spec": {}}
        return str(lease["spec"].get("holderIdentity") or "").partition("_")[0]

    def process(self, pod: Json) -> Path:
        """The folder in /proc of the operator in a pod."""
        (node,) = (node for node in self.cluster.nodes if node.name == pod["spec"]["nodeName"])
        return node.first_process(pod)

    def raises_memory_limit(self, pods: RealPods, name: str) -> None:
        """A container that is killed for memory gets a larger limit, which no one else gives it."""
        pods.use(name, 20, 40)
        start(pods, name, {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "96Mi"}})
        pod = pods.only_pod(name)
        pods.use(name, 20, 150)
        wait_for(lambda: pods.cgroup(pod).limit > 170 * MIB, 60, f"the limit of {name} is larger")


def test_each_replica_is_on_a_node_of_its_own_as_a_user_without_rights(operators: Operators) -> None:
    pods = operators.pods()
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["127.0.0.1", "127.0.0.2"]
    for pod in pods:
        assert status(pod)["restartCount"] == 0
        process = operators.process(pod)
        fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        assert fields["Uid"].split() == ["65532"] * 4
        assert (int(fields["CapEff"], 16), fields["NoNewPrivs"].strip()) == (0, "1")
        mounts = [line.split() for line in (process / "mounts").read_text().splitlines()]
        (options,) = (options for _, place, _, options, *_ in mounts if place == "/")
        assert "ro" in options.split(",")


def test_it_listens_at_its_own_address_on_loopback(operators: Operators) -> None:
    for pod in operators.pods():
        address = pod["status"]["podIP"]
        assert address.startswith("127.")
        assert listening(operators.process(pod)) == {(address, HEALTH), (address, METRICS)}


def test_its_token_is_one_of_its_service_account_for_this_pod(operators: Operators) -> None:
    for pod in operators.pods():
        payload = (operators.process(pod) / "root" / TOKEN).read_text().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        assert claims["sub"] == f"system:serviceaccount:{NAMESPACE}:hvpa"
        assert claims["kubernetes.io"]["pod"]["name"] == pod["metadata"]["name"]


def test_a_deleted_leader_hands_over_and_the_next_one_resizes(operators: Operators, pods: RealPods) -> None:
    operators.available()
    operators.raises_memory_limit(pods, "first")
    leader = operators.leader()
    (other,) = {pod["metadata"]["name"] for pod in operators.pods()} - {leader}
    operators.api.delete("Pod", leader, NAMESPACE)
    wait_for(
        lambda: operators.leader() == other, 14, "the other replica leads, before the lease has run out", 0.1
    )
    operators.raises_memory_limit(pods, "second")
    operators.available()


@pytest.mark.parametrize("operators", ["make deploy"], indirect=True)
def test_a_killed_leader_is_started_again_and_the_other_one_leads(operators: Operators) -> None:
    operators.available()
    leader = operators.leader()
    (pod,) = (pod for pod in operators.pods() if pod["metadata"]["name"] == leader)
    os.kill(int(operators.process(pod).name), signal.SIGKILL)
    wait_for(lambda: operators.leader() not in ("", leader), 45, "the other replica leads", 0.2)
    operators.available()
    (pod,) = (pod for pod in operators.pods() if pod["metadata"]["name"] == leader)
    assert status(pod)["restartCount"] == 1


@pytest.mark.parametrize("operators", ["make deploy"], indirect=True)
def test_make_undeploy_ends_the_operator_while_it_may_give_its_lease_back(operators: Operators) -> None:
    operators.available()
    audit = operators.cluster.audit
    mark = audit.mark()
    make(operators.cluster, "undeploy")
    assert [str(request) for request in audit.requests(mark, user=OPERATOR_USER, code=403)] == []
    written = audit.requests(mark, user=OPERATOR_USER, writes=True, code=200)
    assert [
        request
        for request in written
        if request.resource == "leases" and not request.body["spec"]["holderIdentity"]
    ]
