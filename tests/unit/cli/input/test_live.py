"""`hvpa explain NAME`: reads a cluster with GET and LIST only, and says what is wrong when it can't."""

from __future__ import annotations

import pytest
import yaml

from hvpa.kube.client.pages import PAGE
from tests.unit.cli.api_server import Api, config
from tests.unit.cli.support import NOW, Doc, Ran, Shell, changed, of_kind


def explain(shell: Shell, kubeconfig: str, *flags: str) -> Ran:
    """Explain hvpa-sample."""
    return shell.run("explain", "hvpa-sample", "--kubeconfig", kubeconfig, "--now", NOW, "-o", "json", *flags)


def owned(documents: list[Doc]) -> list[Doc]:
    """The documents as they are in a cluster: HPA and VPA are owned."""
    owner = {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "name": "hvpa-sample",
        "uid": "uid-0",
        "controller": True,
    }
    return changed(
        documents,
        HorizontalPodAutoscaler__metadata__ownerReferences=[owner],
        VerticalPodAutoscaler__metadata__ownerReferences=[owner],
    )


def test_the_live_objects_are_explained_as_files_are(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(owned(gardener))
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json == shell.explain(changed(gardener, Deployment__metadata__resourceVersion="1"))
    assert set(api.asked) == {
        ("hvpas", "list"),
        ("horizontalpodautoscalers", "list"),
        ("verticalpodautoscalers", "list"),
        ("deployments", "get"),
        ("pods", "list"),
        ("hvpasizes", "list"),
    }


def test_the_namespace_is_the_contexts_or_the_given_one(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(owned(gardener), "shop")
    assert explain(shell, kubeconfig, "--context", "shop").code == 0
    assert explain(shell, kubeconfig, "-n", "shop").code == 0
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.err) == (1, "hvpa: error: Hvpa default/hvpa-sample does not exist\n")


def test_long_lists_are_read_page_by_page(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    pod = of_kind(gardener, "Pod")
    crowd = [{**pod, "metadata": {**pod["metadata"], "name": f"more-{number}"}} for number in range(PAGE)]
    api.put([*owned(gardener), *crowd])
    assert explain(shell, kubeconfig).code == 0
    assert api.asked.count(("pods", "list")) == 2


def test_a_rival_is_seen(shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]) -> None:
    hvpa = of_kind(gardener, "Hvpa")
    api.put([*owned(gardener), {**hvpa, "metadata": {"name": "rival"}}])
    ran = explain(shell, kubeconfig)
    assert ran.json["conditions"][0]["reason"] == "TargetShared"


def test_a_missing_target_is_a_condition(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put([one for one in gardener if one["kind"] != "Deployment"])
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.json["conditions"][0]["reason"]) == (0, "TargetNotFound")


def test_a_target_of_another_kind_is_a_condition(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(changed(gardener, Hvpa__spec__targetRef__kind="Job"))
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.json["conditions"][0]["reason"]) == (0, "UnsupportedTarget")


def test_a_cluster_without_vpas_is_a_condition(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(owned(gardener))
    api.fail["verticalpodautoscalers"] = 404
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.json["conditions"][2]["reason"]) == (0, "VpaNotServed")


@pytest.mark.parametrize("answer", [403, 404])
def test_whoever_may_not_read_the_sizes_of_new_pods_has_the_rest_explained(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc], answer: int
) -> None:
    api.put(changed(gardener, Hvpa__spec__updateStrategy={"type": "InPlace"}))
    api.fail["hvpasizes"] = answer
    known = b'{"resources": [{"name": "hvpas"}, {"name": "hvpasizes"}]}'
    api.discovered["/apis/autoscaling.k8s.io/v1alpha1"] = (200, known)
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.json["nextStatus"]["actuation"]["sizeAtCreation"]) == (0, answer == 403)


def test_an_invalid_hvpa_is_reported_with_the_field(
    shell: Shell, api: Api, kubeconfig: str, gardener: list[Doc]
) -> None:
    api.put(changed(gardener, Hvpa__spec__mode="Sometimes"))
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("hvpa: error: Hvpa default/hvpa-sample: spec.mode: ")


@pytest.mark.parametrize(
    ("plural", "answer", "code", "reported"),
    [
        ("hvpas", 404, 1, "the cluster does not know Hvpas: the CRD is not installed"),
        ("hvpas", 401, 3, "responds 401: no hvpas for you"),
        ("hvpas", 403, 1, "responds 403: no hvpas for you"),
        ("deployments", 403, 1, "responds 403: no deployments for you"),
        ("pods", 500, 3, "responds 500: no pods for you"),
        ("horizontalpodautoscalers", 503, 3, "responds 503: "),
        ("pods", b"<html>", 3, "/pods can't be read: "),
        (
            "pods",
            b'{"items": [{"metadata": {"name": "odd", "labels": 3}}]}',
            1,
            "Pod default/odd can't be read: ",
        ),
        ("pods", b'{"items": [3]}', 1, "Pod default/? can't be read: "),
    ],
)
def test_what_a_cluster_refuses_is_reported_in_one_line(
    shell: Shell,
    api: Api,
    kubeconfig: str,
    gardener: list[Doc],
    plural: str,
    answer: int | bytes,
    code: int,
    reported: str,
) -> None:
    api.put(owned(gardener))
    if isinstance(answer, int):
        api.fail[plural] = answer
    else:
        api.raw[plural] = answer
    ran = explain(shell, kubeconfig)
    assert (ran.code, ran.out) == (code, "")
    assert reported in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_cluster_that_does_not_answer_can_not_be_reached(shell: Shell) -> None:
    path = shell.file(yaml.safe_dump(config("http://127.0.0.1:1")), "nobody")
    ran = explain(shell, path)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("hvpa: error: can't reach the cluster at http://127.0.0.1:1: ")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "flags"),
    [
        (None, ()),
        ("kind: [", ()),
        ("{}", ()),
        ("current-context: none", ()),
        (yaml.safe_dump(config("http://127.0.0.1:1")), ("--context", "unknown")),
    ],
)
def test_a_kubeconfig_that_can_not_be_used_is_reported(
    shell: Shell, content: str | None, flags: tuple[str, ...]
) -> None:
    path = str(shell.folder / "missing") if content is None else shell.file(content, "broken")
    ran = explain(shell, path, *flags)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("hvpa: error: can't reach the cluster: ")
    assert len(ran.err.splitlines()) == 1


def test_without_any_configuration_there_is_no_cluster(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes_asyncio.config import kube_config

    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(shell.folder / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    ran = shell.run("explain", "web")
    assert (ran.code, "no kubeconfig given or found" in ran.err) == (3, True)
