"""`hvpa undo`: the size before the last change of the pod template, and why there may be none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from builders.build import NOW
from hvpa.api.hvpa.status import PreviousSize
from hvpa.cli.write import undo
from hvpa.core.gates.approval import ANNOTATION
from hvpa.core.model import LAST_APPLIED
from hvpa.core.path.path import ResourceKey
from hvpa.core.workload.containers import amounts
from tests.unit.cli.api_server import Api
from tests.unit.cli.support import Doc, Live, Shell, with_fields

STEP = "cpu request 1200m -> 1, app memory request 1800Mi -> 1Gi"
RESTORED = {
    "template": {
        "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    }
}


@pytest.fixture
def stepped(shell: Shell, trajectory: list[Doc]) -> list[Doc]:
    """The objects after a step of the operator: from 2 replicas of 1 core and 1Gi to 4 of 1200m and 1800Mi."""
    return after_step(shell, trajectory)


def after_step(shell: Shell, documents: list[Doc]) -> list[Doc]:
    """The objects after a step of the operator."""
    explained = shell.explain(documents)
    patch, status = explained["patch"], explained["nextStatus"]
    (deployment,) = (document for document in documents if document["kind"] == "Deployment")
    template, patched = deployment["spec"]["template"]["spec"], patch["spec"]["template"]["spec"]
    fields = {
        "spec.replicas": patch["spec"].get("replicas", deployment["spec"]["replicas"]),
        "metadata.annotations": patch["metadata"]["annotations"],
    }
    for number, container in enumerate(template["containers"]):
        for change in patched.get("containers", ()):
            if change["name"] == container["name"]:
                merged = {**container.get("resources", {}), **change["resources"]}
                fields[f"spec.template.spec.containers.{number}.resources"] = merged
    if "resources" in patched:
        fields["spec.template.spec.resources"] = {**template["resources"], **patched["resources"]}
    documents = with_fields(documents, "Hvpa", "shop", {"status": status})
    return with_fields(documents, "Deployment", "shop", fields)


def mode(api: Api) -> Any:
    """The mode of the Hvpa."""
    (hvpa,) = api.found("", "hvpas")
    return hvpa["spec"].get("mode", "Apply")


def test_it_pauses_first_and_restores_the_requests(live: Live, api: Api, stepped: list[Doc]) -> None:
    api.put(stepped)
    ran = live("undo", "shop", "--dry-run")
    line = f"Deployment default/shop: app {STEP}, as before 2026-11-21T10:00:00Z\n"
    assert (ran.code, ran.out, ran.err, api.patched, mode(api)) == (0, line, "", [], "Apply")
    api.asked.clear()
    ran = live("undo", "shop")
    assert (ran.code, ran.out, ran.err) == (0, f"Hvpa default/shop: paused (its mode was Apply)\n{line}", "")
    assert (mode(api), api.patched) == ("Paused", [RESTORED])
    assert [what for what, verb in api.asked if verb == "patch"] == ["hvpas", "deployments"]


@pytest.mark.parametrize(
    ("whole", "app", "restored", "words"),
    [
        (
            {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
            f"app {STEP}, (pod) cpu request 2200m -> 2",
        ),
        (
            {"requests": {"cpu": "2"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            {"requests": {"cpu": "2"}},
            f"app {STEP}, (pod) cpu request 2200m -> 2, as",
        ),
        (
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            {},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            "(pod) cpu",
        ),
        (
            {"limits": {"cpu": "2", "memory": "4Gi"}},
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            {"limits": {"cpu": "2", "memory": "4Gi"}},
            "(pod) cpu limit 2400m -> 2, (pod) memory limit ",
        ),
    ],
    ids=["all", "cpu", "all shared", "limits"],
)
def test_resources_of_the_pod_itself_come_back(
    live: Live,
    shell: Shell,
    api: Api,
    trajectory: list[Doc],
    whole: Doc,
    app: Doc,
    restored: Doc,
    words: str,
) -> None:
    fields = {"spec.template.spec.resources": whole, "spec.template.spec.containers.0.resources": app}
    before = with_fields(trajectory, "Deployment", "shop", fields)
    api.put(after_step(shell, before))
    ran = live("undo", "shop")
    assert (ran.code, ran.err) == (0, "")
    assert words in ran.out
    (patched,) = api.patched
    template = patched["template"]["spec"]
    assert template["resources"] == restored
    assert [one["resources"] for one in template.get("containers", ())] == ([app] if app else [])


def test_replicas_come_back_if_they_were_more(live: Live, api: Api, stepped: list[Doc]) -> None:
    api.put(with_fields(stepped, "Deployment", "shop", {"spec.replicas": 1}))
    assert "replicas 1 -> 2, as before" in live("undo", "shop").out
    assert api.patched == [{**RESTORED, "replicas": 2}]


@pytest.mark.parametrize(
    ("replicas", "hvpa"),
    [(0, {}), (1, {"spec.hpa": {"deploy": False}, "spec.blend": "Additive"})],
    ids=["none at 0", "not without an HPA"],
)
def test_other_replicas_stay(live: Live, api: Api, stepped: list[Doc], replicas: int, hvpa: Doc) -> None:
    """As in place: the workload stays switched off, and HVPA has not changed the replicas."""
    api.put(
        with_fields(
            with_fields(stepped, "Deployment", "shop", {"spec.replicas": replicas}), "Hvpa", "shop", hvpa
        )
    )
    ran = live("undo", "shop")
    assert (ran.code, ran.err, api.patched) == (0, "", [RESTORED])


@pytest.mark.parametrize(
    ("mode_before", "said"),
    [("Review", "paused (its mode was Review), revoked its approval"), ("Paused", "revoked its approval")],
)
def test_the_approval_of_the_size_is_revoked(
    live: Live, api: Api, stepped: list[Doc], mode_before: str, said: str
) -> None:
    """Otherwise the size would come back after `hvpa resume`."""
    approval = {"until": "2026-12-01T00:00:00Z", "sizes": {"app": {"cpu": "1200m"}}}
    fields = {"metadata.annotations": {ANNOTATION: json.dumps(approval)}, "spec.mode": mode_before}
    api.put(with_fields(stepped, "Hvpa", "shop", fields))
    assert live("undo", "shop").out.startswith(
        f"Hvpa default/shop: {said}\nDeployment default/shop: app {STEP}"
    )
    (hvpa,) = api.found("", "hvpas")
    assert ANNOTATION not in hvpa["metadata"]["annotations"]
    assert mode(api) == "Paused"


def test_a_paused_hvpa_is_restored_too(live: Live, api: Api, stepped: list[Doc]) -> None:
    api.put(with_fields(stepped, "Hvpa", "shop", {"spec.mode": "Paused"}))
    assert live("undo", "shop").out.startswith("Hvpa default/shop: is paused already\nDeployment")
    assert api.patched == [RESTORED]


def test_after_a_conflict_it_reads_again(live: Live, api: Api, stepped: list[Doc]) -> None:
    api.put(stepped)
    api.refuse["deployments/shop"] = 409
    assert live("undo", "shop").code == 0
    assert api.patched == [RESTORED]
    api.refuse["deployments/shop"] = 403
    ran = live("undo", "shop")
    assert (ran.code, "no change of shop" in ran.err) == (1, True)


PREVIOUS = "status.previousSize"


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        ("Hvpa", {PREVIOUS: None}, "HVPA has not changed the requests of its workload"),
        ("Hvpa", {"spec.mode": "Never"}, "its spec is invalid, so there is nothing to restore"),
        (
            "Hvpa",
            {
                "spec.targetRef": {"apiVersion": "a.b/v1", "kind": "Rollout", "name": "x"},
                "spec.updateStrategy.type": "InPlace",
            },
            "it changes no pod template, so there is nothing to restore",
        ),
        ("Hvpa", {"status.rollout": {"reason": "Canary"}}, "its rollout is held (Canary)"),
        (
            "Hvpa",
            {f"{PREVIOUS}.time": "2026-11-20T10:00:00Z"},
            "the size before its last change is not recorded",
        ),
        ("Hvpa", {f"{PREVIOUS}.time": None}, "the size before its last change is not recorded"),
        (
            "Deployment",
            {"spec.template.spec.containers.0.resources.requests.cpu": "700m"},
            "another client has changed the cpu request of container app, which HVPA had set to 1200m",
        ),
        ("Deployment", {"spec.template.spec.containers.0.name": "web"}, "another client has changed"),
        (
            "Deployment",
            {"spec.template.spec.containers.0.resources.requests": {"cpu": "1", "memory": "1Gi"}},
            "the workload already has the size before its last change",  # by an earlier hvpa undo
        ),
        ("Hvpa", {f"{PREVIOUS}.containers": []}, "the workload already has the size before its last change"),
        ("Hvpa", {f"{PREVIOUS}.containers.0.name": "gone"}, "the workload already has the size"),
    ],
)
def test_why_nothing_is_restored_and_nothing_is_paused(
    live: Live, api: Api, stepped: list[Doc], kind: str, fields: Doc, why: str
) -> None:
    api.put(with_fields(stepped, kind, "shop", fields))
    ran = live("undo", "shop")
    assert (ran.code, ran.out, api.patched) == (1, "", [])
    assert ran.err.startswith(f"hvpa: error: Hvpa default/shop: {why}"), ran.err
    assert ("hvpas", "patch") not in api.asked


def test_a_crash_before_the_status_was_written_is_noticed(live: Live, api: Api, stepped: list[Doc]) -> None:
    """The annotation has a newer change than the status."""
    deployment = next(document for document in stepped if document["kind"] == "Deployment")
    record = json.loads(deployment["metadata"]["annotations"][LAST_APPLIED])
    record["vertical"]["lastScaleTime"] = "2026-11-21T10:30:00Z"
    annotations = {LAST_APPLIED: json.dumps(record)}
    api.put(with_fields(stepped, "Deployment", "shop", {"metadata.annotations": annotations}))
    assert "the size before its last change is not recorded" in live("undo", "shop").err


def test_what_is_missing_is_reported(live: Live, api: Api, stepped: list[Doc]) -> None:
    assert "not found" in live("undo", "shop").err
    api.put([document for document in stepped if document["kind"] != "Deployment"])
    ran = live("undo", "shop")
    assert (ran.code, "not found" in ran.err, mode(api)) == (1, True, "Apply")
    api.serve_next_version()
    assert live("undo", "shop").code == 1


def test_without_the_crd_it_says_so(live: Live, api: Api) -> None:
    api.raw["hvpas"] = b""
    api.fail["hvpas"] = 404
    api.unserved.add("/apis/autoscaling.k8s.io/v1alpha1")
    assert "does not serve Hvpas" in live("undo", "shop").err


SIZE = st.none() | st.integers(min_value=1, max_value=10**12)


@given(st.lists(SIZE, min_size=8, max_size=8), st.integers(0, 50), st.integers(0, 50))
def test_the_patch_gives_exactly_the_previous_values(sizes: list[int | None], before: int, now: int) -> None:
    """Requests and limits of CPU and memory, now and before; None: there is none."""
    keys = [("requests", "cpu"), ("requests", "memory"), ("limits", "cpu"), ("limits", "memory")]

    def resources(values: list[int | None]) -> Doc:
        made: Doc = {"requests": {}, "limits": {}}
        for (section, resource), value in zip(keys, values, strict=True):
            if value is not None:
                made[section][resource] = f"{value}m" if resource == "cpu" else str(value)
        return made

    present, had = resources(sizes[:4]), resources(sizes[4:])
    workload = build.workload(now, [{"name": "app", "resources": present}])
    previous = PreviousSize.model_validate(
        {"time": NOW, "replicas": before, "containers": [{"name": "app", **had}]}
    )
    spec, words = undo._restored(
        workload, previous, [ResourceKey("app", "cpu"), ResourceKey("app", "memory")], max(before, now)
    )
    (container,) = spec.get("template", {"spec": {"containers": [{"resources": {}}]}})["spec"]["containers"]
    for section in ("requests", "limits"):
        merged = {**present[section], **container["resources"].get(section, {})}
        values = {name: value for name, value in merged.items() if value is not None}
        assert amounts(values) == amounts(had[section])
    assert bool(spec) == bool(words)
    assert spec.get("replicas", now) == (max(before, now) if spec else now)
