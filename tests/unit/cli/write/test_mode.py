"""`hvpa pause` and `hvpa resume`: spec.mode of Hvpas, and what it was before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hvpa.cli.write.hvpas import BEFORE, TRIES
from hvpa.kube.objects.slim import DROPPED_ANNOTATION
from tests.unit.cli.api_server import NEXT_VERSION, Api
from tests.unit.cli.support import Doc, Live


def hvpa(name: str = "web", mode: str | None = "Apply", **metadata: Any) -> Doc:
    spec = {"targetRef": {"kind": "Deployment", "name": name}} | ({} if mode is None else {"mode": mode})
    meta = {"name": name, **metadata}
    return {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "metadata": meta, "spec": spec}


def managed(manager: str, operation: str = "Update", field: str = "f:mode") -> Doc:
    """An entry of managedFields."""
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {field: {}}}}


def modes(api: Api) -> dict[str, str]:
    """Each Hvpa's mode."""
    return {hvpa["metadata"]["name"]: hvpa["spec"]["mode"] for hvpa in api.found("", "hvpas")}


@pytest.mark.parametrize("mode", ["Apply", "Recommend"])
def test_a_paused_hvpa_gets_the_mode_back_that_it_had(live: Live, api: Api, mode: str) -> None:
    api.put([hvpa(mode=mode, annotations={"team": "a"})])
    ran = live("pause", "web")
    assert (ran.code, ran.out, ran.err) == (0, f"Hvpa default/web: paused (its mode was {mode})\n", "")
    assert modes(api) == {"web": "Paused"}
    assert live("pause", "web").out == "Hvpa default/web: is paused already\n"
    ran = live("resume", "web")
    assert (ran.code, ran.out, ran.err) == (0, f"Hvpa default/web: resumed, in mode {mode}\n", "")
    assert modes(api) == {"web": mode}
    assert api.found("", "hvpas")[0]["metadata"]["annotations"] == {"team": "a"}
    assert live("resume", "web").out == f"Hvpa default/web: is not paused: its mode is {mode}\n"


@pytest.mark.parametrize("annotations", [{}, {BEFORE: "Paused"}, {BEFORE: "x"}])
def test_where_no_mode_is_remembered_it_is_apply(live: Live, api: Api, annotations: Doc) -> None:
    api.put([hvpa(mode="Paused", annotations=annotations)])
    assert live("resume", "web").code == 0
    assert modes(api) == {"web": "Apply"}


def test_a_mode_that_is_missing_is_apply(live: Live, api: Api) -> None:
    api.put([hvpa(mode=None)])
    assert "its mode was Apply" in live("pause", "web").out


def test_all_of_a_namespace_or_of_all(live: Live, api: Api) -> None:
    api.put([hvpa("a"), hvpa("b", "Recommend")])
    api.put([hvpa("c")], "shop")
    assert live("pause", "--all").out.splitlines() == [
        "Hvpa default/a: paused (its mode was Apply)",
        "Hvpa default/b: paused (its mode was Recommend)",
    ]
    assert modes(api) == {"a": "Paused", "b": "Paused", "c": "Apply"}
    assert live("pause", "--all", "-A").code == 0
    assert modes(api)["c"] == "Paused"
    assert live("resume", "--all", "-n", "shop").out == "Hvpa shop/c: resumed, in mode Apply\n"
    assert live("resume", "--all", "-n", "empty").out == "There are no Hvpas.\n"


def test_hvpas_with_labels_of_a_namespace_or_of_all(live: Live, api: Api) -> None:
    api.put([hvpa("a", labels={"team": "pay"}), hvpa("b", labels={"team": "web"})])
    api.put([hvpa("c", labels={"team": "pay"})], "shop")
    assert live("pause", "-l", "team=pay").out == "Hvpa default/a: paused (its mode was Apply)\n"
    assert modes(api) == {"a": "Paused", "b": "Apply", "c": "Apply"}
    assert live("pause", "--selector", "team=pay", "-A").code == 0
    assert modes(api) == {"a": "Paused", "b": "Apply", "c": "Paused"}
    assert live("resume", "-l", "team=none").out == "There are no Hvpas with these labels.\n"


def test_what_another_client_writes_meanwhile_is_read_anew(live: Live, api: Api) -> None:
    api.put([hvpa()])
    api.refuse["web"] = 409
    assert live("pause", "--all").code == 0
    assert api.asked == [("hvpas", "list"), ("hvpas", "patch"), ("hvpas", "get"), ("hvpas", "patch")]
    assert modes(api) == {"web": "Paused"}


class Busy(dict[str, int]):
    """A conflict at each write."""

    def pop(self, key: str, default: Any = None) -> Any:
        return 409


def test_a_conflict_that_does_not_end_is_an_error(live: Live, api: Api) -> None:
    api.put([hvpa()])
    api.refuse = Busy()
    ran = live("pause", "web")
    error = "hvpa: error: not changed: default/web\n"
    assert (ran.code, ran.err) == (1, f"Hvpa default/web: no change of web\n{error}")
    assert api.asked.count(("hvpas", "patch")) == TRIES


def test_one_that_can_not_be_changed_does_not_keep_the_others_from_it(live: Live, api: Api) -> None:
    api.put([hvpa("a"), hvpa("b")])
    api.refuse["a"] = 403
    ran = live("pause", "a", "gone", "b", "b")
    assert ran.code == 1
    assert ran.out == "Hvpa default/b: paused (its mode was Apply)\n"
    assert ran.err == (
        "Hvpa default/a: no change of a\n"
        "Hvpa default/gone: not found\n"
        "hvpa: error: not changed: default/a, default/gone\n"
    )


BY_FILE = managed("kubectl-client-side-apply")
APPLIED = {"annotations": {DROPPED_ANNOTATION: json.dumps(hvpa())}}
WITHOUT_MODE = {"annotations": {DROPPED_ANNOTATION: json.dumps(hvpa(mode=None))}}


@pytest.mark.parametrize(
    ("fields", "metadata", "owner"),
    [
        (managed("argocd-controller", "Apply"), {}, "argocd-controller (Apply)"),
        (managed("helm"), {}, "helm (Update)"),
        (BY_FILE, APPLIED, "kubectl-client-side-apply (Update)"),
        (BY_FILE, WITHOUT_MODE, None),
        (BY_FILE, {"annotations": {DROPPED_ANNOTATION: "no JSON"}}, None),
        (managed("kubectl-edit"), {}, None),
        (managed("argocd-controller", "Apply", "f:targetRef"), {}, None),
        ({"manager": "hvpa", "fieldsV1": {"f:status": {}}}, {}, None),
    ],
)
def test_a_tool_that_sets_the_mode_too_is_named(
    live: Live, api: Api, fields: Doc, metadata: Doc, owner: str | None
) -> None:
    api.put([hvpa(managedFields=[fields], **metadata)])
    ran = live("pause", "web")
    assert ran.code == 0
    warning = (
        f"warning: Hvpa default/web: spec.mode is also set by {owner}, which may set it back: change it to Paused"
        " there too\n"
    )
    assert ran.err == ("" if owner is None else warning)


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        ([], "name Hvpas, or use --all or --selector"),
        (["web", "--all"], "name Hvpas, or use --all or --selector"),
        (["-l", ""], "name Hvpas, or use --all or --selector"),  # as of an empty variable of a script
        (["web", "-l", "a=b"], "name Hvpas, or use --all or --selector"),
        (["--all", "-l", "a=b"], "name Hvpas, or use --all or --selector"),
        (["web", "-A"], "--all-namespaces requires --all or --selector"),
        (["--all", "-A", "-n", "shop"], "use either --namespace or --all-namespaces, not both"),
    ],
)
def test_a_wrong_selection_changes_nothing(live: Live, api: Api, argv: list[str], error: str) -> None:
    ran = live("pause", *argv)
    assert (ran.code, ran.err) == (2, f"hvpa: error: {error}\n")
    assert api.asked == []


@pytest.mark.parametrize("argv", [["web"], ["--all"]])
def test_without_the_crd_that_is_reported(live: Live, api: Api, argv: list[str]) -> None:
    api.fail["hvpas"] = 404
    ran = live("pause", *argv)
    assert ran.code == 1
    assert "the cluster does not serve Hvpas: the CRD is not installed" in ran.err


@pytest.mark.parametrize("argv", [["web"], ["--all"]])
def test_hvpas_of_another_version_are_named_and_not_changed(live: Live, api: Api, argv: list[str]) -> None:
    api.put([hvpa()])
    api.serve_next_version()
    ran = live("pause", *argv)
    assert (ran.code, NEXT_VERSION in ran.err) == (1, True), ran.err
    assert modes(api) == {"web": "Apply"}


def test_a_failing_api_server_ends_it(live: Live, api: Api) -> None:
    api.fail["hvpas"] = 503
    assert live("pause", "web").code == 3
    assert live("pause", "--all").code == 3
