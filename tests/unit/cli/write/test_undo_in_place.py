"""`hvpa undo` of pods that are resized in place: the annotation for the operator, and why there may be none."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from hvpa.core.actuation.undo import ANNOTATION
from hvpa.core.gates.approval import ANNOTATION as APPROVAL
from tests.unit.cli.api_server import Api
from tests.unit.cli.resizing import SMALL, deployment, hvpa, pod, vpa
from tests.unit.cli.support import Doc, Live, Shell, with_fields

STEP = "2026-11-21T09:57:00.123456Z"
PREVIOUS = {"time": STEP, "replicas": 4, "containers": [{"name": "app", "requests": SMALL}]}
LINE = (
    "Deployment default/web: app cpu request 800m -> 500m, app memory request 600M -> 500M, as before"
    " 2026-11-21T09:57:01Z\n"
)
THEN = (
    "The operator resizes the pods; hvpa status web -n default --watch shows how far they are. Until hvpa resume web -n"
    " default, HVPA changes nothing else: memory that runs out is not raised.\n"
)


def stepped(**previous: Any) -> Doc:
    """An Hvpa after a step from SMALL to LARGE."""
    return hvpa(status={"previousSize": {**PREVIOUS, **previous}}, hpa={"name": "web"})


def carry_out(document: Doc) -> None:
    """What the operator writes at first."""
    assert document["spec"]["mode"] == "Paused"
    document["status"]["desired"]["containers"] = copy.deepcopy(
        document["status"]["previousSize"]["containers"]
    )


def stored(api: Api) -> Doc:
    (document,) = api.found("", "hvpas")
    return document


def test_it_pauses_and_names_the_step_in_one_write(live: Live, api: Api) -> None:
    api.put([stepped()])
    ran = live("undo", "web", "--dry-run")
    assert (ran.code, ran.out, ran.err, stored(api)["spec"]["mode"]) == (0, LINE, "", "Apply")
    api.operator = carry_out
    ran = live("undo", "web")
    assert (ran.code, ran.out, ran.err) == (
        0,
        f"Hvpa default/web: paused (its mode was Apply)\n{LINE}{THEN}",
        "",
    )
    assert stored(api)["spec"]["mode"] == "Paused"
    undo = json.loads(stored(api)["metadata"]["annotations"][ANNOTATION])
    assert undo == {"by": "ann@example.com", "step": STEP}
    assert [what for what, verb in api.asked if verb == "patch"] == ["hvpas"]
    again = live("undo", "web")
    assert (again.code, again.out) == (1, "")
    assert "Hvpa default/web: the pods already have the size before HVPA's last change" in again.err


def test_the_operator_reads_what_it_writes(live: Live, api: Api, shell: Shell) -> None:
    api.put([stepped()])
    assert live("undo", "web", "--timeout", "0s").code == 1
    document = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", **stored(api)}
    objects = [
        document,
        deployment(),
        vpa(),
        pod("web-0"),
        *[pod(f"web-{number}", SMALL) for number in (1, 2, 3)],
    ]
    explained = shell.explain(objects)
    assert [one["requests"] for one in explained["nextStatus"]["desired"]["containers"]] == [SMALL]
    text = "the sizes before the step of 2026-11-21T09:57:01Z, by hvpa undo (ann@example.com)"
    assert shell.section(objects, "Result") == [
        f"mode Paused: pods get {text}",
        "pod web-0 is resized to app requests cpu 500m memory 500M",
    ]
    resizes = shell.section(objects, "Resizes")
    assert (
        "web-0: waiting: is resized next (app requests cpu 800m -> 500m, app requests memory 600M -> 500M)"
        in resizes
    )


def test_replicas_are_shown_if_they_come_back(live: Live, api: Api) -> None:
    api.put([stepped(replicas=10)])
    assert (
        "app memory request 600M -> 500M, replicas 4 -> 10, as before" in live("undo", "web", "--dry-run").out
    )


@pytest.mark.parametrize(
    ("mode", "said"),
    [("Review", "paused (its mode was Review), revoked its approval"), ("Paused", "revoked its approval")],
)
def test_an_approval_is_revoked(live: Live, api: Api, mode: str, said: str) -> None:
    fields = {"spec.mode": mode, "metadata.annotations": {APPROVAL: "{}"}}
    api.put(with_fields([stepped()], "Hvpa", "web", fields))
    api.operator = carry_out
    assert live("undo", "web").out == f"Hvpa default/web: {said}\n{LINE}{THEN}"
    assert APPROVAL not in stored(api)["metadata"]["annotations"]


def test_a_paused_hvpa_is_undone_too(live: Live, api: Api) -> None:
    api.put(with_fields([stepped()], "Hvpa", "web", {"spec.mode": "Paused"}))
    api.operator = carry_out
    assert live("undo", "web").out.startswith("Hvpa default/web: is paused already\nDeployment")
    assert ANNOTATION in stored(api)["metadata"]["annotations"]


def test_without_an_operator_it_ends_with_an_error_and_the_request_stays(live: Live, api: Api) -> None:
    api.put([stepped()])
    ran = live("undo", "web", "--timeout", "1s")
    assert (ran.code, ran.out) == (1, "Hvpa default/web: paused (its mode was Apply)\n")
    assert ran.err == (
        "hvpa: error: Hvpa default/web: is paused, but the operator has not returned to the former sizes within 1s: is"
        " it running, and is it as new as this command? It returns to them once it is. hvpa status web -n default shows"
        " more\n"
    )
    assert ANNOTATION in stored(api)["metadata"]["annotations"]


def test_if_the_operator_undoes_nothing_its_reason_is_the_error(live: Live, api: Api) -> None:
    why = "another Hvpa in mode Apply sizes this workload"

    def refuse(document: Doc) -> None:
        message = f"spec.mode is Paused: the workload is not changed; nothing is undone: {why}"
        paused = {"type": "Paused", "status": "True", "reason": "Paused", "message": message}
        document["status"]["conditions"] = [paused]

    api.put([stepped()])
    api.operator = refuse
    ran = live("undo", "web", "--timeout", "1s")
    assert (ran.code, ran.err) == (
        1,
        f"hvpa: error: Hvpa default/web: is paused, but nothing is undone: {why}\n",
    )


def test_a_step_that_was_made_meanwhile_is_not_taken_back(live: Live, api: Api) -> None:
    def step(document: Doc) -> None:
        document["status"]["previousSize"]["time"] = "2026-11-21T09:58:00Z"

    api.put([stepped()])
    api.refuse["web"] = 409
    api.refused = step
    ran = live("undo", "web")
    assert (ran.code, ran.out) == (1, "")
    assert "HVPA has just made another step; look at it with --dry-run" in ran.err
    assert stored(api)["spec"]["mode"] == "Apply"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status.previousSize": None}, "the size before HVPA's last change is not recorded"),
        ({"status.previousSize.time": None}, "the size before HVPA's last change is not recorded"),
        ({"status.previousSize.containers": []}, "the pods already have the size before HVPA's last change"),
        ({"spec.mode": "Never"}, "its spec is invalid, so there is nothing to restore"),
    ],
)
def test_why_nothing_is_undone_and_nothing_is_paused(live: Live, api: Api, fields: Doc, why: str) -> None:
    api.put(with_fields([stepped()], "Hvpa", "web", fields))
    ran = live("undo", "web")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"hvpa: error: Hvpa default/web: {why}"), ran.err
    assert ("hvpas", "patch") not in api.asked


@pytest.mark.parametrize("timeout", ["-1s", "2h", "soon"])
def test_an_unusable_timeout_is_refused(live: Live, timeout: str) -> None:
    ran = live("undo", "web", f"--timeout={timeout}")
    assert (ran.code, "is not a duration of at most 1h" in ran.err) == (2, True)


def test_resume_removes_the_request(live: Live, api: Api) -> None:
    api.put([stepped()])
    api.operator = carry_out
    live("undo", "web")
    api.operator = lambda document: None
    assert live("resume", "web").out == "Hvpa default/web: resumed, in mode Apply\n"
    assert not stored(api)["metadata"]["annotations"]
