"""What `hvpa explain` says of pods that are resized in place: the desired size, and what each pod waits for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

from hvpa.cli.explain.pods import STATES
from hvpa.core.actuation.pod import State
from tests.unit.cli.api_server import Api
from tests.unit.cli.resizing import LARGE, SMALL, deployment, hvpa, pod, resizing, vpa
from tests.unit.cli.support import NOW, Doc, Shell

DEFERRED = resizing("PodResizePending", "Deferred", "no room")
RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def test_every_state_has_its_meaning_here_and_on_the_page() -> None:
    assert set(get_args(State)) <= STATES.keys()
    page = (Path(__file__).parents[4] / "docs" / "in-place.md").read_text()
    table = page.partition("| STATE |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert {name.replace(" ", "_") for name in re.findall(r"`([a-z ]+)`", "".join(cells))} == STATES.keys()


def section(text: str, heading: str = "Resizes") -> list[str]:
    """The lines below a heading; none where it is not there."""
    blocks = [block.splitlines() for block in text.split("\n\n")]
    return next(([line.strip() for line in lines[1:]] for lines in blocks if lines[0] == heading), [])


def text_of(shell: Shell, documents: list[Doc]) -> str:
    ran = shell.run("explain", "-f", shell.file(documents), "--now", NOW)
    assert (ran.code, ran.err) == (0, ""), ran.err
    return ran.out


def test_the_desired_size_and_what_each_pod_waits_for(shell: Shell) -> None:
    pods = [pod("done"), pod("full", has=SMALL, condition=DEFERRED), pod("small", SMALL)]
    assert section(text_of(shell, [hvpa(), deployment(), vpa(), *pods])) == [
        "InPlace, timeout 5m, maxUnavailable 25%",
        "desired since 2026-11-21T09:57:00Z: 4 replicas, app requests cpu 800m memory 600M",
        "1 of 3 pods have it",
        "full: deferred: no room (app requests cpu 500m -> 800m, app requests memory 500M -> 600M)",
        "small: waiting: is resized next (app requests cpu 500m -> 800m, app requests memory 500M -> 600M)",
    ]


def test_the_json_has_what_is_resized_and_how_far_the_pods_are(shell: Shell) -> None:
    pods = [pod("a", SMALL, resizePolicy=RESTARTS), pod("b", SMALL, resizePolicy=RESTARTS), pod("c")]
    told = shell.explain([hvpa(), deployment(3), vpa(), *pods])
    assert told["resizes"] == [{"pod": "a", "containers": {"app": {"requests": LARGE, "limits": {}}}}]
    counts = {"pods": 3, "resized": 1, "inProgress": 0, "deferred": 0, "infeasible": 0, "waiting": 2}
    assert told["actuation"]["counts"] == counts
    waits = {one["name"]: one["why"] for one in told["actuation"]["pods"]}
    assert waits["a"] == "is resized next"
    assert "maxUnavailable 25%" in waits["b"]


def test_a_decision_of_now_is_what_the_pods_are_compared_with(shell: Shell) -> None:
    """Before anything was decided: the VPA's recommendation becomes the desired size at once."""
    new: dict[str, Any] = {"desired": None, "actuation": None, "conditions": []}
    one = hvpa(status=new, weightBasedScalingIntervals=[{"vpaWeight": 100}])
    told = shell.explain([one, deployment(1), vpa(), pod("a", SMALL)])
    assert told["actuation"]["desired"]["since"] == NOW
    assert [one["pod"] for one in told["resizes"]] == ["a"]


def test_in_other_modes_the_resizes_of_apply_are_shown(shell: Shell) -> None:
    documents = [hvpa(mode="Paused"), deployment(4), vpa(), pod("a", SMALL)]
    text = text_of(shell, documents)
    assert "pod a is resized to app requests cpu 800m memory 600M" in section(
        text, "What mode Apply would do now"
    )
    assert any(line.startswith("a: waiting: mode Paused: no pod is resized") for line in section(text))
    told = shell.explain(documents)
    assert told["resizes"] == []
    assert [one["pod"] for one in told["inModeApply"]["resizes"]] == ["a"]


def test_with_rollouts_there_is_no_such_section(shell: Shell) -> None:
    documents = [hvpa("Rollout"), deployment(1), vpa(), pod("a", SMALL)]
    assert "Resizes" not in text_of(shell, documents).split("\n")
    told = shell.explain(documents)
    assert (told["resizes"], told["actuation"]) == ([], None)


def test_replicas_are_set_through_the_scale(shell: Shell) -> None:
    text = text_of(shell, [hvpa(), deployment(2), vpa()])
    assert section(text, "Patch of the workload")[0] == "# merge patch of the scale of Deployment web"


def test_where_no_size_is_decided_that_is_said(shell: Shell) -> None:
    one = hvpa(status={"desired": None}, targetRef={"kind": "Deployment", "name": "gone"})
    assert section(text_of(shell, [one])) == [
        "InPlace, timeout 5m, maxUnavailable 25%",
        "no size has been decided yet",
        "0 of 0 pods have it",
    ]


def test_a_limit_that_falls_step_by_step_is_shown(shell: Shell) -> None:
    size = {"name": "app", "requests": SMALL, "limits": {"memory": "1G"}}
    desired = {"replicas": 1, "containers": [size], "since": "2026-11-21T09:57:00Z", "generation": 1}
    limited = pod("a", SMALL)
    for resources in (limited["spec"]["containers"][0], limited["status"]["containerStatuses"][0]):
        resources["resources"] = {"requests": SMALL, "limits": {"memory": "2G"}}
    lines = section(text_of(shell, [hvpa(status={"desired": desired}), deployment(1), vpa(SMALL), limited]))
    assert lines[1].endswith("1 replica, app requests cpu 500m memory 500M limits memory 1G")
    assert lines[-1] == "a: waiting: is resized next (app limits memory 2G -> 1G)"


def test_live_objects_are_explained_the_same(shell: Shell, api: Api, kubeconfig: str) -> None:
    api.put([hvpa(), deployment(2), vpa(), pod("a", SMALL), pod("b", has=SMALL, condition=DEFERRED)])
    ran = shell.run("explain", "web", "--kubeconfig", kubeconfig, "--now", NOW)
    assert ran.code == 0
    assert section(ran.out)[2:] == [
        "0 of 2 pods have it",
        "a: waiting: is resized next (app requests cpu 500m -> 800m, app requests memory 500M -> 600M)",
        "b: deferred: no room (app requests cpu 500m -> 800m, app requests memory 500M -> 600M)",
    ]
