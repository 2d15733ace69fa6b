"""The how-to pages: their own commands, as a reader types them, on a cluster where the operator runs; and what they
say of the outcome comes true. What a reader must put in (a name, a namespace, an image, a port) is put in here too.

Each page's blocks are named in their order, so a block that is added has to be run or to be named as one that can't be.
tests/unit/test_documents.py has the other pages."""

from __future__ import annotations

import base64
import json
import re
import shutil
import textwrap
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.manifests import CPU_ANNOTATION
from localcluster.operator.operator import NAMESPACE, Operator
from localcluster.process import Process, free_port
from localcluster.programs.build import build, monitoring_crds
from tests.e2e.full import objects
from tests.e2e.full.shells import ROOT, Shells, blocks
from tests.pages import shown

pytestmark = pytest.mark.owned_cluster

SHOP: Final = "shop"
SOON: Final = 90
IMAGE: Final = "example.com/you/hvpa:0.1.0"
"""The image of the pages."""


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def manifests(name: str) -> list[str]:
    """The YAML blocks of a page."""
    return re.findall(r"```yaml\n(.*?)```", page(name), re.DOTALL)


START, ALERTS = page("getting-started.md"), blocks(page("alerts.md"))
_CLONE, REPORT_FIRST, _BUILD, _IMAGE, DEPLOY, _HELM, WATCH, EXPLAIN, WHO, LET_ACT, STOP = blocks(START)
(FIRST_HVPA,) = manifests("getting-started.md")
OLD, NEW = manifests("migrating-from-hpa-and-vpa.md")
(SWITCH,) = map(textwrap.dedent, blocks(page("migrating-from-hpa-and-vpa.md")))
(LOOK,) = blocks(page("troubleshooting.md"))
(REPORT,) = blocks(page("report.md"))
CUSTOM_KINDS, NODE_ROOM, METRICS = blocks(page("operations.md"))
AT_CREATION, ROLLBACK_METRICS, DELETION_COST = blocks(page("in-place.md"))
IN_PLACE, _CANARY, JUDGED, BY_SIZE = map(yaml.safe_load, manifests("in-place.md"))
COLUMNS, STATUS, SIZES = shown(page("in-place.md"))
(POLICY,) = blocks(page("threat-model.md"))
MONITORING, OPERATOR_DOWN = ALERTS
DASHBOARD, DASHBOARD_INSIDE = blocks(page("dashboard.md"))
FROM_WHERE, *_REST_OF_INIT = blocks(page("init.md"))
(LAST_APPLIED,) = blocks(page("gitops.md"))


def lines(block: str) -> list[str]:
    """The commands of a block one by one."""
    return re.split(r"(?<!\\)\n", block.strip())


def reader(plane: ControlPlane, folder: Path, namespace: str = "default") -> Shells:
    """A reader's shells, whose context has this namespace."""
    shells = Shells(folder)
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    programs = build(full=False)["kubectl"].parent, ROOT / ".venv/bin"
    shells.env |= {
        "KUBECONFIG": str(kubeconfig),
        "PATH": ":".join([*map(str, programs), shells.env["PATH"]]),
    }
    return shells


@pytest.fixture(scope="module")
def api(cluster: ControlPlane, operator: Operator) -> Iterator[KubeApi]:
    """Administrator's, of a cluster where the operator runs, and begins to resize the pods of the shop."""
    api = cluster.api
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
    web = objects.deployment("web", SHOP)
    web["spec"]["template"]["metadata"]["annotations"][CPU_ANNOTATION] = "500m"
    api.create(web)
    weights = [{"vpaWeight": 100}]
    hvpa = objects.hvpa("web", SHOP, vpa=objects.vertical(), weightBasedScalingIntervals=weights)
    hvpa["spec"] |= IN_PLACE["spec"]
    api.create(hvpa)
    yield api
    api.delete("Namespace", SHOP)


@pytest.fixture(scope="module")
def shop(cluster: ControlPlane, api: KubeApi, tmp_path_factory: pytest.TempPathFactory) -> Shells:
    """A reader's shells in a namespace where an Hvpa of the strategy that docs/in-place.md begins with has resized
    the pods of its Deployment."""
    wait_for(lambda: resized(api) == 2, SOON, lambda: f"two pods are resized: {status(api)}")
    return reader(cluster, tmp_path_factory.mktemp("shop"), SHOP)


def status(api: KubeApi, namespace: str = SHOP) -> Json:
    hvpa_status: Json = api.get("Hvpa", "web", namespace).get("status", {})
    return hvpa_status


def resized(api: KubeApi) -> int:
    """How many pods have more than their template says."""
    pods = api.list("Pod", SHOP, "app=web")
    return sum(parse_cpu(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) > 200 for pod in pods)


def recommended(api: KubeApi) -> int:
    return int(status(api, "default").get("recommended", {}).get("replicas", 0))


def test_getting_started(cluster: ControlPlane, api: KubeApi, tmp_path: Path) -> None:
    """A workload is reported, watched, scaled, and left as it is; and all is stopped at last."""
    shells = reader(cluster, tmp_path)
    web = objects.deployment("web", "default")
    web["spec"]["template"]["metadata"]["annotations"][CPU_ANNOTATION] = "280m"
    api.create(web)
    try:
        assert "Deployment" in shells.run(REPORT_FIRST)
        assert f"image: {IMAGE}\n" in shells.run(DEPLOY)
        deployed = api.get("Deployment", "hvpa", NAMESPACE)["spec"]["template"]["spec"]["containers"][0]
        assert deployed["image"] == IMAGE
        (shells.place / "hvpa.yaml").write_text(FIRST_HVPA)
        shells.run(WATCH)
        wait_for(lambda: recommended(api) > 2, SOON, lambda: f"more is recommended: {status(api, 'default')}")
        assert json.loads(shells.run(WATCH).splitlines()[-1])["replicas"] > 2
        assert "Mode Recommend" in " ".join(shells.run(EXPLAIN).split()).replace("mode", "Mode")
        assert objects.replicas(api, "web", "default") == 2
        recommenders, scaled_objects = lines(WHO)
        output = shells.run(recommenders)
        assert re.search(r"^default +horizontalpodautoscaler\S+/web +Hvpa/web ", output, re.MULTILINE), output
        assert re.search(r"^default +verticalpodautoscaler\S+/web +Off ", output, re.MULTILINE), output
        asked = shells.run(f"{scaled_objects.partition('#')[0]} 2>&1 || true")
        assert 'have a resource type "scaledobject"' in asked or "No resources found" in asked, (
            "by another test"
        )
        with shells.started("let it act", LET_ACT) as events:
            wait_for(lambda: objects.replicas(api, "web", "default") > 2, SOON, events.tail)
            wait_for(lambda: "hvpa/web" in events.tail(20) and "Scaled" in events.tail(20), SOON, events.tail)
        shells.run(STOP)
        assert api.get("Hvpa", "web", "default")["spec"]["mode"] == "Paused"
        assert api.get("Deployment", "hvpa", NAMESPACE)["spec"]["replicas"] == 0
    finally:
        shells.run(f"hvpa resume --all -A; kubectl -n {NAMESPACE} scale deployment/hvpa --replicas=2")
        shells.run("kubectl delete --ignore-not-found hvpa/web deployment/web")


def test_the_switch_from_an_hpa_and_a_vpa(
    cluster: ControlPlane, api: KubeApi, namespace: str, tmp_path: Path
) -> None:
    """The workload keeps its replicas and sizes, and is scaled by the Hvpa from then on."""
    shells = reader(cluster, tmp_path, namespace)
    web = objects.deployment("web", namespace)
    web["spec"]["replicas"] = 3
    (container,) = web["spec"]["template"]["spec"]["containers"]
    container["name"] = "web"
    web["spec"]["template"]["metadata"]["annotations"][CPU_ANNOTATION] = "140m"  # what the HPA aims at
    api.create(web)
    for name, text in (("old.yaml", OLD), ("hvpa.yaml", NEW)):
        (shells.place / name).write_text(text)

    def size() -> tuple[object, ...]:
        return objects.replicas(api, "web", namespace), *objects.resources(api, "web", namespace)

    def active(kind: str) -> bool:
        return objects.conditions(api, "web", namespace).get(kind) == ("True", "Used")

    before = size()
    shells.run("kubectl apply -f old.yaml")
    assert "HPA web, VPA web" in shells.run(f"hvpa report -n {namespace}")
    shells.run("kubectl apply -f hvpa.yaml")
    wait_for(lambda: ready(api, namespace)[0] == "True", SOON, lambda: f"{ready(api, namespace)}")
    assert "HPA web" in shells.run("hvpa explain web")
    assert api.get("HorizontalPodAutoscaler", "web", namespace)["spec"]["scaleTargetRef"]["name"] == "web"
    assert size() == before
    shells.run(SWITCH)
    wait_for(lambda: owned(api, namespace) == [("Hvpa", "Off")], SOON, lambda: str(owned(api, namespace)))
    wait_for(lambda: ready(api, namespace)[0] == "True", SOON, lambda: f"{ready(api, namespace)}")
    assert size() == before
    shells.run(f"kubectl annotate pod --all --overwrite {CPU_ANNOTATION}=280m")
    wait_for(lambda: size()[0] != before[0], SOON, lambda: f"more than {before}; {status(api, namespace)}")
    assert objects.replicas(api, "web", namespace) > 3
    writers = api.get("Deployment", "web", namespace)["metadata"]["managedFields"]
    assert "hvpa" in {writer["manager"] for writer in writers}


def ready(api: KubeApi, namespace: str) -> tuple[str, str]:
    return objects.conditions(api, "web", namespace).get("Ready", ("", ""))


def owned(api: KubeApi, namespace: str) -> list[tuple[str, str]]:
    """What the HPAs scale, and the modes of the VPAs."""
    return [
        (hpa["spec"]["scaleTargetRef"]["kind"], vpa["spec"]["updatePolicy"]["updateMode"])
        for hpa in api.list("HorizontalPodAutoscaler", namespace)
        for vpa in api.list("VerticalPodAutoscaler", namespace)
    ]


def test_troubleshooting(shop: Shells) -> None:
    explained, state, past = map(shop.run, lines(re.sub(r"\bNAME\b", "web", LOOK).replace("NAMESPACE", SHOP)))
    assert {"Conditions", "Resizes"} <= set(re.findall(r"^\w+", explained, re.MULTILINE)), explained
    assert re.search(r"^Resized +2/2", state, re.MULTILINE), state
    assert "ScaledUp" in past, past


def test_report(shop: Shells) -> None:
    """Of this namespace, by its name, of all, as CSV, and from a file: each has the same rows of the workload. (A month
    from Prometheus: tests/e2e/monitoring/test_report.py.)"""
    for command in [line for line in lines(REPORT) if "--prometheus" not in line]:
        row = rf"^Deployment {SHOP}/web \(.*VPA web\)\n  now +2 "
        if "csv" in command:
            row = rf"^{SHOP},Deployment,web,"
        text = shop.run(command)
        assert re.search(row, text, re.MULTILINE), text
    assert f"{SHOP}/web" in (shop.place / "report.html").read_text()


def test_init(cluster: ControlPlane, api: KubeApi, namespace: str, tmp_path: Path) -> None:
    """From a cluster and a file. The page's days and seeds take minutes: here it is a day, once. (From Prometheus:
    test_first_day.py; from files alone: tests/unit/lab/init/test_page.py.)"""
    _prometheus, cluster_and_file, *_others = lines(FROM_WHERE.replace("-n shop", f"-n {namespace}"))
    shells = reader(cluster, tmp_path)
    shutil.copy(ROOT / "examples/init/usage.csv", shells.place)
    workload, _hpa = yaml.safe_load_all((ROOT / "examples/init/shop.yaml").read_text())
    workload["metadata"] |= {"name": "web", "namespace": namespace}
    api.create(workload)
    typed = re.sub(r" +#.*", "", cluster_and_file) + " --days 1 --seeds 1 --max-replicas 6"
    assert "Conclusion" in shells.run(typed)
    assert "valid" in shells.run("hvpa validate -f hvpa-web/hvpa.yaml")


def test_in_place(shop: Shells, api: KubeApi) -> None:
    """What the page shows of other pods has the same columns and lines here."""
    shop.run(AT_CREATION)
    policies = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
    assert api.find(policies, "hvpa-size-at-creation") is not None
    for command in (ROLLBACK_METRICS, DELETION_COST):
        assert "unchanged" in shop.run(command + command)
    for manifest in (JUDGED, BY_SIZE):
        generation = api.patch("Hvpa", "web", SHOP, manifest)["metadata"]["generation"]
        ready = partial(_is_ready, api, generation)
        wait_for(ready, SOON, lambda: f"the Hvpa is ready: {status(api)}")
        api.patch("Hvpa", "web", SHOP, {"spec": {"updateStrategy": {"canary": None}}})
    command, output = COLUMNS
    rows = shop.run(command).splitlines()
    assert rows[0].split() == output.splitlines()[0].split()
    assert "2/2" in rows[1]
    command, output = STATUS
    with shop.started("status", command.replace("NAME", "web")) as watch:
        wait_for(lambda: "POD " in watch.tail(20), SOON, watch.tail)
        heads = [
            re.findall(r"^(?:POD .*|\w[a-z ]*?(?=  | shop))", text, re.MULTILINE)
            for text in (output, watch.tail(20))
        ]
    assert [" ".join(head.split()) for head in heads[0]] == [" ".join(head.split()) for head in heads[1]]
    command, output = SIZES
    (kept,), (made,) = (json.loads(text).items() for text in (output, shop.run(command)))
    assert kept[0] == made[0]
    for _, size in (kept, made):
        assert re.fullmatch(r"web; app \w+:\w* \w+:\w*", size)


def _is_ready(api: KubeApi, generation: int) -> bool:
    first = status(api)["conditions"][0]
    return (first["type"], first["status"], first["observedGeneration"]) == ("Ready", "True", generation)


def test_gitops(shop: Shells, api: KubeApi) -> None:
    """Fields that are no longer in the manifest are not taken away from the workload."""
    web = objects.deployment("web", SHOP)
    web["metadata"]["name"] = web["spec"]["template"]["metadata"]["labels"]["app"] = "other"
    web["spec"]["selector"]["matchLabels"]["app"] = "other"
    file = shop.place / "deployment.yaml"
    file.write_text(yaml.safe_dump(web))
    shop.run("kubectl apply -f deployment.yaml")
    del web["spec"]["replicas"]
    file.write_text(yaml.safe_dump(web))
    shop.run(LAST_APPLIED + "kubectl apply -f deployment.yaml")
    assert objects.replicas(api, "other", SHOP) == 2


def test_a_policy_of_the_threat_model(shop: Shells, api: KubeApi) -> None:
    """The API server refuses more than the annotation of the namespace allows."""
    try:
        shop.run(POLICY)
        shop.run(f"kubectl annotate namespace {SHOP} hvpa.autoscaling.k8s.io/max-replicas=3")
        many = objects.hvpa("many", SHOP, hpa=objects.horizontal(most=10))

        def refusal() -> str:
            try:
                api.create(many)
            except ApiError as error:
                return str(error)
            api.delete("Hvpa", "many", SHOP)
            return ""

        assert "hvpa-bounds" in wait_for(refusal, SOON, "an Hvpa is refused")
    finally:
        shop.run("kubectl delete --ignore-not-found -k config/policy")


def test_operations(shop: Shells, cluster: ControlPlane) -> None:
    """The operator may scale Rollouts; Prometheus may get the metrics, which are served over HTTPS."""
    certificate(shop, cluster)
    try:
        shop.run(f"{CUSTOM_KINDS}{NODE_ROOM}{METRICS.replace('IMG=…', f'IMG={IMAGE}')}")
        scale = {"apiGroups": ["argoproj.io"], "resources": ["rollouts/scale"], "verbs": ["patch"]}
        cluster.await_right(objects.OPERATOR_USER, scale, SHOP)
        nodes = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["watch"]}
        cluster.await_right(objects.OPERATOR_USER, nodes)
        prometheus = "--as=system:serviceaccount:monitoring:prometheus"
        assert "yes" in shop.run(f"kubectl auth can-i get /metrics {prometheus}")
        pod = cluster.api.get("Deployment", "hvpa", NAMESPACE)["spec"]["template"]["spec"]
        assert "--metrics-secure" in pod["containers"][0]["args"]
        assert "hvpa-metrics-tls" in str(pod["volumes"])
    finally:
        shop.run("kubectl delete --ignore-not-found -k config/custom-kinds")
        shop.run("kubectl delete --ignore-not-found -k config/node-room")
        shop.run(f"kubectl delete --ignore-not-found secret hvpa-metrics-tls -n {NAMESPACE}")
        shop.run("kubectl delete --ignore-not-found clusterrolebinding prometheus-hvpa hvpa-metrics-auth")
        shop.run("kubectl delete --ignore-not-found clusterrole hvpa-metrics-auth hvpa-metrics-reader")


def address_of(dashboard: Process) -> str:
    match = re.search(r"http://127\S+/#token=\S+", dashboard.tail(5))
    return match[0] if match else ""


def is_printed(process: Process, text: str) -> bool:
    return text in process.tail(5)


def certificate(shells: Shells, cluster: ControlPlane) -> None:
    """tls.crt and tls.key, where the reader stands."""
    for name, path in zip(("tls.crt", "tls.key"), cluster.server_certificate, strict=True):
        shutil.copy(path, shells.place / name)


def test_alerts(shop: Shells, cluster: ControlPlane) -> None:
    """Where the Prometheus operator's CRDs are, its objects are taken. No kubelet serves the logs of simulated pods."""
    for path in monitoring_crds():
        cluster.kubectl("apply", "--server-side", "-f", path)
    for kind in ("podmonitors", "prometheusrules"):
        cluster.await_crd(f"{kind}.monitoring.coreos.com")
    shop.run(MONITORING)
    rules = cluster.api.get("monitoring.coreos.com/v1/PrometheusRule", "hvpa", NAMESPACE)
    assert "HvpaStarving" in str(rules)
    shop.run("kubectl delete -k config/monitoring")
    pods, logs = lines(OPERATOR_DOWN)
    output = shop.run(pods)
    assert len(re.findall(r"^pod/hvpa-\S+ +1/1 +Running", output, re.MULTILINE)) == 2, output
    assert re.search(r"^lease\S+/hvpa +\S", output, re.MULTILINE), output
    assert logs.startswith("kubectl -n hvpa-system logs -l app.kubernetes.io/name=hvpa ")


def test_the_dashboard(shop: Shells, cluster: ControlPlane) -> None:
    """Each command serves the page; the second opens it, and the third is always at the same address."""
    port = str(free_port())
    shop.env["BROWSER"] = "echo opened %s"
    addresses = []
    for number, command in enumerate(lines(DASHBOARD.replace("8080", port))):
        with shop.started(f"dashboard {number}", command) as server:
            addresses.append(wait_for(partial(address_of, server), SOON, server.tail))
            with urllib.request.urlopen(addresses[-1].partition("#")[0], timeout=20) as response:
                assert b"<title>" in response.read()
            if number == 1:
                wait_for(partial(is_printed, server, f"opened {addresses[-1]}"), SOON, server.tail)
    assert f":{port}/" in addresses[2]
    certificate(shop, cluster)
    secret, deploy, _forward, token = lines(DASHBOARD_INSIDE)  # no kubelet forwards a port of a simulated pod
    try:
        shop.run(f"{secret}\n{deploy.replace('IMG=…', f'IMG={IMAGE}')}")
        pod = cluster.api.get("Deployment", "hvpa-dashboard", NAMESPACE)["spec"]["template"]["spec"]
        assert pod["containers"][0]["image"] == IMAGE
        assert "hvpa-dashboard-tls" in str(pod["volumes"])
        assert cluster.api.find("Service", "hvpa-dashboard", NAMESPACE) is not None
        shop.run("kubectl create serviceaccount reader")
        given = shop.run(token.replace("NAMESPACE", SHOP).replace("NAME", "reader")).split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
        assert claims["sub"] == f"system:serviceaccount:{SHOP}:reader"
    finally:
        shop.run(f"kubectl delete --ignore-not-found secret hvpa-dashboard-tls -n {NAMESPACE}")
        shop.run("kubectl delete --ignore-not-found -k config/dashboard")
