"""`hvpa init` on a cluster: what is read, with which rights, and what it says where one is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.cli.api_server import NEXT_VERSION, Api
from tests.unit.cli.support import Doc, Live, Ran, Shell
from tests.unit.lab.init.conftest import Init
from tests.unit.lab.init.documents import CPU_70, hpa, keda, rollout, usage, vpa, workload

KEDA_API, VPA_API = "/apis/keda.sh/v1alpha1", "/apis/autoscaling.k8s.io/v1"
VERSION = "/version"


@pytest.fixture
def on_cluster(live: Live, shell: Shell) -> Callable[..., Ran]:
    """Runs it on what the server has; the folder that it writes is `out`."""

    def run(*flags: str) -> Ran:
        csv = shell.file(usage(), "usage.csv")
        out = str(shell.folder / "out")
        return live(
            "init", "deployment/web", "-n", "shop", "--csv", csv, "--out", out, "--seeds", "1", *flags
        )

    return run


@pytest.fixture
def served(api: Api) -> Api:
    """A server with a workload, its HPA and its VPA."""
    api.put([workload(), hpa(CPU_70), vpa("Off")], "shop")
    api.discovered[VERSION] = (200, b'{"major": "1", "minor": "36+"}')
    api.unserved = {KEDA_API}
    api.fail = {"scaledobjects": 404}
    return api


def test_the_cluster_gives_what_files_give(on_cluster: Callable[..., Ran], init: Init, served: Api) -> None:
    lived = on_cluster("-o", "json")
    assert (lived.code, lived.err) == (0, "")
    from_files = init([workload(), hpa(CPU_70), vpa("Off")], "--kubernetes", "1.36", "--force", "-o", "json")
    assert lived.json == from_files.json
    assert ("deployments", "get") in served.asked
    assert {what for _, what in served.asked} == {"get", "list", "discovery"}


ROLLOUTS = {"resources": [
    {"name": "rollouts/scale", "kind": "Scale"}, {"name": "rollouts", "kind": "Rollout"},
]}  # fmt: skip
ARGO = {
    "/apis/argoproj.io": {"preferredVersion": {"groupVersion": "argoproj.io/v1alpha1"}},
    "/apis/argoproj.io/v1alpha1": ROLLOUTS,
}


def scaled(scaler: Doc) -> Doc:
    """The HPA of the Rollout."""
    target = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"}
    return {**scaler, "spec": {**scaler["spec"], "scaleTargetRef": target}}


def test_a_rollout_gets_an_hvpa_that_resizes_its_pods(
    live: Live, shell: Shell, served: Api, init: Init
) -> None:
    served.put([rollout(), scaled(hpa(CPU_70, name="rollout"))], "shop")
    served.discovered |= {path: (200, json.dumps(content).encode()) for path, content in ARGO.items()}
    flags = ("-n", "shop", "--csv", shell.file(usage(), "usage.csv"), "--out", str(shell.folder / "out"))
    lived = live("init", "rollouts.argoproj.io/web", *flags, "--seeds", "1", "-o", "json")
    assert (lived.code, lived.err) == (0, "")
    files = [rollout(), scaled(hpa(CPU_70, name="rollout"))]
    assert init(files, "--kubernetes", "1.36", "--force", "-o", "json").json == lived.json
    written = (shell.folder / "out" / "hvpa.yaml").read_text()
    assert "targetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}" in written
    assert "updateStrategy: {type: InPlace}\n" in written
    assert "# an Hvpa does not change the pod template of a Rollout: it resizes running pods" in written


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("things.argoproj.io/web", "the cluster serves no things of argoproj.io/v1alpha1"),
        ("things.example.com/web", "the cluster does not serve example.com"),
        ("rollouts.argoproj.io/none", "rollouts.argoproj.io shop/none does not exist"),
    ],
)
def test_a_custom_kind_that_is_not_there_is_named(
    live: Live, shell: Shell, served: Api, name: str, reason: str
) -> None:
    served.discovered |= {path: (200, json.dumps(content).encode()) for path, content in ARGO.items()}
    served.unserved |= {"/apis/example.com"}
    ran = live("init", name, "-n", "shop", "--csv", shell.file(usage(), "usage.csv"))
    assert (ran.code, reason in ran.err) == (1, True), ran.err


def test_the_version_is_the_servers_or_the_users(
    on_cluster: Callable[..., Ran], served: Api, shell: Shell
) -> None:
    def strategy(*flags: str) -> str:
        on_cluster("--force", *flags)
        lines = (shell.folder / "out" / "hvpa.yaml").read_text().splitlines()
        return next(line for line in lines if "updateStrategy" in line)

    assert "InPlaceOrRollout" in strategy()
    assert "type: Rollout" in strategy("--kubernetes", "1.30")
    for answer in ((403, b'{"message": "no"}'), (200, b"["), (200, b'{"minor": ""}')):
        served.discovered[VERSION] = answer
        assert "type: Rollout" in strategy()


@pytest.mark.parametrize("code", [403, 404])
def test_without_crds_it_works_whatever_rights_there_are(
    on_cluster: Callable[..., Ran], served: Api, code: int
) -> None:
    served.fail = {"verticalpodautoscalers": code, "scaledobjects": code, "pods": 403}
    served.unserved = {KEDA_API, VPA_API}
    ran = on_cluster("-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["workload"]["scaledBy"] == "HPA web"


@pytest.mark.parametrize(
    ("fail", "code", "reason"),
    [
        ({"deployments": 404}, 1, "Deployment shop/web does not exist"),
        ({"deployments": 403}, 1, "no right to get deployments: no deployments for you"),
        ({"horizontalpodautoscalers": 403}, 1, "no right to list horizontalpodautoscalers: no"),
        ({"deployments": 500}, 3, "responds 500: no deployments for you"),
        ({"hvpas": 500}, 3, "responds 500: no hvpas for you"),
    ],
)
def test_what_can_not_be_read_is_one_line(
    on_cluster: Callable[..., Ran], served: Api, fail: dict[str, int], code: int, reason: str
) -> None:
    served.fail = {**served.fail, **fail}
    ran = on_cluster()
    assert (ran.code, ran.out, reason in ran.err, len(ran.err.splitlines())) == (code, "", True, 1), ran.err


def test_hvpas_of_another_version_are_not_taken_for_absent(
    on_cluster: Callable[..., Ran], served: Api, shell: Shell
) -> None:
    served.serve_next_version()
    for code in (404, 403):
        served.fail["hvpas"] = code
        ran = on_cluster()
        assert (ran.code, ran.out, NEXT_VERSION in ran.err) == (1, "", True), ran.err
        assert not (shell.folder / "out").exists()


def test_a_scaled_object_is_read_from_the_cluster(on_cluster: Callable[..., Ran], api: Api) -> None:
    api.put([workload(), hpa(CPU_70, name="keda-hpa-web"), keda(minReplicaCount=2)], "shop")
    api.discovered[VERSION] = (200, b'{"minor": "36"}')
    ran = on_cluster("-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["workload"]["scaledBy"] == "KEDA's ScaledObject web"
    assert f"{KEDA_API}/namespaces/shop/scaledobjects" in api.paths


def test_an_object_that_is_none_is_refused(on_cluster: Callable[..., Ran], served: Api) -> None:
    served.raw["deployments"] = b"[]"
    ran = on_cluster()
    assert (ran.code, "Deployment can't be read: Expected `object`" in ran.err) == (1, True), ran.err


def test_a_cluster_that_is_not_there_is_code_3(shell: Shell, tmp_path: Any) -> None:
    ran = shell.run(
        "init",
        "deployment/web",
        "--csv",
        shell.file(usage(), "u.csv"),
        "--kubeconfig",
        str(tmp_path / "none"),
    )
    assert (ran.code, "can't reach the cluster" in ran.err) == (3, True)
