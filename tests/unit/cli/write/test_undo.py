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
    explained = shell.explain(trajectory)
    patch, status = explained["patch"], explained["nextStatus"]
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    documents = with_fields(trajectory, "Hvpa", "shop", {"status": status})
    fields = {
        "spec.replicas": patch["spec"]["replicas"],
        "spec.template.spec.containers.0.resources": container["resources"],
        "metadata.annotations": patch["metadata"]["annotations"],
    }
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


def test_resources_of_the_pod_itself_come_back(
    shell: Shell, live: Live, api: Api, trajectory: list[Doc]
) -> None:
    """The app requests memory, and has the CPU of the pod."""
    of_template = "spec.template.spec"
    before = {
        f"{of_template}.resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
        f"{of_template}.containers.0.resources": {"requests": {"memory": "1Gi"}},
    }
    documents = with_fields(trajectory, "Deployment", "shop", before)
    explained = shell.explain(documents)
    patch = explained["patch"]
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    fields = {
        f"{of_template}.resources": patch["spec"]["template"]["spec"]["resources"],
        f"{of_template}.containers.0.resources": container["resources"],
        "metadata.annotations": patch["metadata"]["annotations"],
    }
    documents = with_fields(documents, "Hvpa", "shop", {"status": explained["nextStatus"]})
    api.put(with_fields(documents, "Deployment", "shop", fields))
    ran = live("undo", "shop")
    assert (ran.code, ran.err) == (0, "")
    assert "(shared) cpu request 1200m -> 1" in ran.out
    (restored,) = api.patched
    pod = restored["template"]["spec"]
    assert pod["resources"] == before[f"{of_template}.resources"]
    assert pod["containers"] == [{"name": "app", "resources": {"requests": {"memory": "1Gi"}}}]


def test_replicas_come_back_if_they_were_more(live: Live, api: Api, stepped: list[Doc]) -> None:
    api.put(with_fields(stepped, "Deployment", "shop", {"spec.replicas": 1}))
    assert "replicas 1 -> 2, as before" in live("undo", "shop").out
    assert api.patched == [{**RESTORED, "replicas": 2}]


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
        (
            "Hvpa",
            {"status.desired": {"replicas": 2, "since": "2026-11-21T10:00:00Z"}},
            "its pods are resized in place, which hvpa undo can't take back yet; set minAllowed",
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
        workload, previous, [ResourceKey("app", "cpu"), ResourceKey("app", "memory")]
    )
    (container,) = spec.get("template", {"spec": {"containers": [{"resources": {}}]}})["spec"]["containers"]
    for section in ("requests", "limits"):
        merged = {**present[section], **container["resources"].get(section, {})}
        values = {name: value for name, value in merged.items() if value is not None}
        assert amounts(values) == amounts(had[section])
    assert bool(spec) == bool(words)
    assert spec.get("replicas", now) == (max(before, now) if spec else now)
