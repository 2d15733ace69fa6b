"""`hvpa explain NAME`: reads a cluster with GET and LIST only, and says what is wrong when it can't."""

from __future__ import annotations

import pytest
import yaml

from hvpa.kube.client.pages import PAGE
from tests.unit.cli.api_server import NEXT_VERSION, Api, config
from tests.unit.cli.support import NOW, Doc, Live, Shell, changed, of_kind, without

OWNER = {
    "apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "hvpa-sample", "uid": "uid-0",
    "controller": True,
}  # fmt: skip
MISSING = "hvpa: error: Hvpa default/hvpa-sample does not exist\n"


@pytest.fixture
def explain(live: Live) -> Live:
    """Explains hvpa-sample."""
    return lambda *flags: live("explain", "hvpa-sample", "--now", NOW, "-o", "json", *flags)


@pytest.fixture
def owned(gardener: list[Doc]) -> list[Doc]:
    """The example as it is in a cluster: HPA and VPA are owned."""
    references = {"HPA__metadata__ownerReferences": [OWNER], "VPA__metadata__ownerReferences": [OWNER]}
    return changed(gardener, **references)


def test_the_live_objects_are_explained_as_files_are(
    shell: Shell, explain: Live, api: Api, owned: list[Doc], gardener: list[Doc]
) -> None:
    api.put(owned)
    ran = explain()
    assert (ran.code, ran.err) == (0, "")
    live = ran.json
    assert live.pop("operator")["state"] == "alive"
    from_files = shell.explain(changed(gardener, Deployment__metadata__resourceVersion="1"))
    assert from_files.pop("operator") is None
    assert live == from_files
    lists = ("hvpas", "horizontalpodautoscalers", "verticalpodautoscalers", "pods", "hvpasizes")
    checkpoints = ("verticalpodautoscalercheckpoints", "list")
    gets = {("deployments", "get"), ("leases", "get")}
    assert set(api.asked) == {*gets, checkpoints, *((plural, "list") for plural in lists)}


def test_a_silent_operator_is_reported_on_top(
    explain: Live, api: Api, owned: list[Doc], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hvpa.cli.input.operator.CONFIRM", 0.0)
    api.put(owned)
    api.put_lease("hvpa", "me", seconds=150, duration=15)
    ran = explain("-o", "text")
    assert ran.out.splitlines()[1].startswith("Note: operator silent for 2m 3")
    assert explain("--operator-lease", "other/hvpa").json["operator"]["state"] == "unknown"
    assert explain("--operator-lease", "hvpa").code == 2


def test_the_namespace_is_the_contexts_or_the_given_one(explain: Live, api: Api, owned: list[Doc]) -> None:
    api.put(owned, "shop")
    assert explain("--context", "shop").code == explain("-n", "shop").code == 0
    ran = explain()
    assert (ran.code, ran.err) == (1, MISSING)


@pytest.mark.parametrize(("resizes", "strategy"), [(True, "InPlaceOrRollout"), (False, "Rollout")])
def test_the_default_update_strategy_is_that_of_the_api_server(
    explain: Live, api: Api, owned: list[Doc], resizes: bool, strategy: str
) -> None:
    api.resizes_pods = resizes
    api.put(changed(owned, Hvpa__spec__blend="Trajectory"))
    assert explain().json["nextStatus"]["updateStrategy"] == strategy
    assert ("/api/v1", "discovery") in api.asked


def test_long_lists_are_read_page_by_page(explain: Live, api: Api, owned: list[Doc]) -> None:
    pod = of_kind(owned, "Pod")
    crowd = [{**pod, "metadata": {**pod["metadata"], "name": f"more-{number}"}} for number in range(PAGE)]
    api.put([*owned, *crowd])
    assert explain().code == 0
    assert api.asked.count(("pods", "list")) == 2


@pytest.mark.parametrize("namespace", ["../x", "a%2fb", ".."])
def test_a_namespace_that_can_not_be_one_is_not_requested(explain: Live, api: Api, namespace: str) -> None:
    ran = explain("-n", namespace)
    assert (ran.code, ran.err) == (
        1,
        f"hvpa: error: {namespace!r} is not a valid name in a cluster\n",
    )
    assert api.paths == []


RIVAL = {"metadata": {"name": "rival"}}


@pytest.mark.parametrize("reason", ["TargetShared", "TargetNotFound", "UnsupportedTarget", "VpaNotServed"])
def test_what_a_cluster_lacks_is_a_condition(explain: Live, api: Api, owned: list[Doc], reason: str) -> None:
    api.put(
        {
            "TargetShared": [*owned, of_kind(owned, "Hvpa") | RIVAL],
            "TargetNotFound": without(owned, "Deployment"),
            "UnsupportedTarget": changed(owned, Hvpa__spec__targetRef__kind="Job"),
            "VpaNotServed": owned,
        }[reason]
    )
    api.fail = {"verticalpodautoscalers": 404} if reason == "VpaNotServed" else {}
    ran = explain()
    assert (ran.code, ran.json["conditions"][2 if api.fail else 0]["reason"]) == (0, reason)


@pytest.mark.parametrize("answer", [403, 404])
def test_whoever_may_not_read_the_sizes_of_new_pods_has_the_rest_explained(
    explain: Live, api: Api, gardener: list[Doc], answer: int
) -> None:
    api.put(changed(gardener, Hvpa__spec__updateStrategy={"type": "InPlace"}))
    api.fail["hvpasizes"] = answer
    known = b'{"resources": [{"name": "hvpas"}, {"name": "hvpasizes"}]}'
    api.discovered["/apis/autoscaling.k8s.io/v1alpha1"] = (200, known)
    ran = explain()
    assert (ran.code, ran.json["nextStatus"]["actuation"]["sizeAtCreation"]) == (0, answer == 403)


def test_the_largest_node_is_read_only_for_an_hvpa_that_asks_for_it(
    explain: Live, api: Api, owned: list[Doc], shell: Shell
) -> None:
    size = {"status": {"allocatable": {"cpu": "4", "memory": "8Gi"}}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, **size}
    bounded = changed(owned, Hvpa__spec__vpa__maxAllowed="LargestNode")
    api.put([*bounded, node])
    line = "largest node that the pods may use: "
    assert f"{line}4 and 8Gi" in explain("-o", "text").out
    assert ("nodes", "list") in api.asked
    api.fail["nodes"] = 403
    assert f"{line}you may not list nodes" in explain("-o", "text").out
    assert f"{line}4 and 8Gi" in shell.text([*bounded, node])
    assert f"{line}the files have no Node" in shell.text(bounded)


def test_an_invalid_hvpa_is_reported_with_the_field(explain: Live, api: Api, gardener: list[Doc]) -> None:
    api.put(changed(gardener, Hvpa__spec__mode="Sometimes"))
    ran = explain()
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("hvpa: error: Hvpa default/hvpa-sample: spec.mode: ")


ODD = b'{"items": [{"metadata": {"name": "odd", "labels": 3}}]}'


@pytest.mark.parametrize(
    ("plural", "answer", "code", "reported"),
    [
        ("hvpas", 404, 1, "the cluster does not serve Hvpas: the CRD is not installed"),
        ("hvpas", 401, 3, "responds 401: no hvpas for you"),
        ("hvpas", 403, 1, "responds 403: no hvpas for you"),
        ("deployments", 403, 1, "responds 403: no deployments for you"),
        ("pods", 500, 3, "responds 500: no pods for you"),
        ("horizontalpodautoscalers", 503, 3, "responds 503: "),
        ("pods", b"<html>", 3, "/pods can't be read: "),
        ("pods", ODD, 1, "Pod default/odd can't be read: "),
        ("pods", b'{"items": [3]}', 1, "Pod default/? can't be read: "),
    ],
)
def test_what_a_cluster_refuses_is_reported_in_one_line(
    explain: Live, api: Api, owned: list[Doc], plural: str, answer: int | bytes, code: int, reported: str
) -> None:
    api.put(owned)
    if isinstance(answer, int):
        api.fail[plural] = answer
    else:
        api.raw[plural] = answer
    ran = explain()
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1)
    assert reported in ran.err


def test_hvpas_of_another_version_are_named(explain: Live, api: Api, owned: list[Doc]) -> None:
    api.put(owned)
    api.serve_next_version()
    ran = explain()
    assert (ran.code, ran.out, NEXT_VERSION in ran.err, len(ran.err.splitlines())) == (1, "", True, 1), (
        ran.err
    )


NOBODY = yaml.safe_dump(config("http://127.0.0.1:1"))


@pytest.mark.parametrize(
    ("content", "flags", "error"),
    [
        (NOBODY, (), " at http://127.0.0.1:1: "),
        (None, (), ": "),
        ("kind: [", (), ": "),
        ("{}", (), ": "),
        ("current-context: none", (), ": "),
        (NOBODY, ("--context", "unknown"), ": "),
    ],
)
def test_a_cluster_or_a_kubeconfig_that_can_not_be_used_is_reported(
    shell: Shell, content: str | None, flags: tuple[str, ...], error: str
) -> None:
    path = str(shell.folder / "missing") if content is None else shell.file(content, "config")
    reported = shell.refuses("explain", "web", "--kubeconfig", path, *flags, code=3)
    assert reported.startswith(f"hvpa: error: can't reach the cluster{error}")


def test_without_any_configuration_there_is_no_cluster(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes_asyncio.config import kube_config

    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(shell.folder / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    ran = shell.run("explain", "web")
    assert (ran.code, "no kubeconfig given or found" in ran.err) == (3, True)
