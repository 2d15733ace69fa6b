"""`hvpa status`, `pause`, `resume`, `history` and `explain` beside an operator that resizes pods. The test is the
kubelet."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hvpa.cli.main import main
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.bare_manifests import ago, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.actuation.test_in_place import in_place
from tests.e2e.bare.actuation.test_undo import BEFORE, step
from tests.e2e.bare.conftest import NewScenario

pytestmark = pytest.mark.usefixtures("operator")
Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(plane: ControlPlane, space: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process on the test's namespace: its output and errors."""

    def run(*argv: str, kubeconfig: Path = plane.kubeconfig) -> tuple[str, str]:
        capsys.readouterr()
        code = main([*argv, "-n", space, "--kubeconfig", str(kubeconfig)])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out, captured.err

    return run


def states(run: Run, scenario: Scenario) -> dict[str, Any]:
    """The state of each pod by `hvpa status`."""
    shown = json.loads(run("status", scenario.name, "-o", "json")[0])
    return {pod["name"]: pod["state"] for pod in shown["pods"]}


def counted(run: Run, scenario: Scenario) -> bool:
    """Whether the operator counts as many pods in each state as `hvpa status` shows."""
    shown = json.loads(run("status", scenario.name, "-o", "json")[0])
    pod_states = [pod["state"] for pod in shown["pods"]]
    names = {"in_progress": "inProgress", "deferred": "deferred", "infeasible": "infeasible"}
    counts = {field: pod_states.count(state) for state, field in names.items() if state in pod_states}
    reported = {field: shown["actuation"].get(field) for field in counts}
    resized = f"{pod_states.count('resized')}/{len(pod_states)}"
    return bool(reported == counts and shown["actuation"]["resized"] == resized)


def test_each_pods_rung_is_shown_as_the_operator_counts_it(new_scenario: NewScenario, run: Run) -> None:
    scenario = new_scenario(changes=in_place())
    pods = Pods(scenario)
    done, full, slow = [pods.start(name) for name in ("done", "full", "slow")]
    scenario.vpa_recommends(cpu="800m", memory="600M")
    for name in (done, full, slow):
        scenario.soon(partial(pods.requests, name, cpu="800m", memory="600M"), f"a resize of {name}")
    pods.resize(done)
    pods.report(full, "PodResizePending", "Deferred", "no room for 800m")
    pods.report(slow, "PodResizeInProgress", "", "at it")
    wanted = {done: "resized", full: "deferred", slow: "in_progress"}
    assert states(run, scenario) == wanted
    scenario.soon(partial(counted, run, scenario), "the operator counts the same")

    text = run("status", scenario.name)[0]
    row = next(line for line in text.splitlines() if line.startswith(full))
    assert "cpu 500m memory 500M  cpu 800m memory 600M  deferred" in row
    assert row.endswith("no room for 800m")
    explained = json.loads(run("explain", scenario.name, "-o", "json")[0])
    assert {pod["name"]: pod["state"] for pod in explained["actuation"]["pods"]} == wanted
    assert explained["resizes"] == []

    entries = json.loads(run("history", scenario.name, "-o", "json")[0])["entries"]
    assert [entry["time"] for entry in entries] == sorted(entry["time"] for entry in entries)
    reasons = {(entry["source"], entry["reason"]) for entry in entries}
    assert ("status", "Desired") in reasons
    scenario.soon(
        lambda: any(
            entry["source"] == "Event" and "cpu 500m -> 800m" in entry["message"]
            for entry in json.loads(run("history", scenario.name, "-o", "json")[0])["entries"]
        ),
        "the Event of the step",
    )

    assert (
        run("pause", scenario.name)[0]
        == f"Hvpa {scenario.namespace}/{scenario.name}: paused (its mode was Apply)\n"
    )
    scenario.await_condition("Paused", "True", "Paused")
    assert run("resume", "--all")[0] == f"Hvpa {scenario.namespace}/{scenario.name}: resumed, in mode Apply\n"
    scenario.await_condition("Paused", "False", "NotPaused")


def test_undo_restores_the_template_and_the_operator_leaves_it_until_it_is_resumed(
    new_scenario: NewScenario, run: Run
) -> None:
    scenario = new_scenario(changes=weight(100))
    name = f"{scenario.namespace}/{scenario.name}"
    scenario.vpa_recommends(cpu="1", memory="1G")
    scenario.await_requests(cpu="1", memory="1G")
    scenario.soon(lambda: "previousSize" in scenario.status, "the status of the step")
    before = scenario.resources()
    change = "app cpu request 1 -> 500m, app memory request 1G -> 500M, app cpu limit 2 -> 1, app memory limit 2G -> 1G"
    assert change in run("undo", scenario.name, "--dry-run")[0]
    assert scenario.resources() == before

    paused, restored = run("undo", scenario.name)[0].splitlines()
    assert paused == f"Hvpa {name}: paused (its mode was Apply)"
    assert restored.startswith(f"{scenario.kind} {name}: {change}, as before ")
    scenario.await_requests(cpu="500m", memory="500M")
    scenario.await_condition("Paused", "True", "Paused")
    scenario.vpa_recommends(cpu="1100m", memory="1G")
    scenario.soon(
        lambda: scenario.status["recommended"]["containers"][0]["requests"]["cpu"] == "1100m",
        "a decision after the undo",
    )
    scenario.await_requests(cpu="500m", memory="500M")
    scenario.rollout_completes()
    run("resume", scenario.name)
    scenario.await_requests(cpu="1100m", memory="1G")


def test_undo_returns_running_and_new_pods_to_their_size_until_it_is_resumed(
    new_scenario: NewScenario, run: Run
) -> None:
    """A paused operator resizes a new pod, too, if no policy gives it the size."""
    scenario = new_scenario(changes=in_place())
    pods, name = Pods(scenario), f"{scenario.namespace}/{scenario.name}"
    names = [pods.start(str(number)) for number in range(2)]
    step(scenario, pods, names)
    change = "app cpu request 800m -> 500m, app memory request 600M -> 500M, app cpu limit 1600m -> 1"
    assert change in run("undo", scenario.name, "--dry-run")[0]

    paused, restored, then = run("undo", scenario.name)[0].splitlines()
    assert paused == f"Hvpa {name}: paused (its mode was Apply)"
    assert restored.startswith(f"{scenario.kind} {name}: {change}, ")
    assert then.startswith("The operator resizes the pods; ")
    for pod in names:
        scenario.soon(partial(pods.requests, pod, **BEFORE), f"the return of {pod}")
        pods.resize(pod)
    scenario.soon(lambda: scenario.status["actuation"]["resized"] == "2/2", "both pods returned")
    message = scenario.await_condition("Paused", "True", "Paused")["message"]
    assert "pods get the sizes before the step of " in message
    scenario.await_event(
        "Undone", "cpu 800m -> 500m of app, memory 600M -> 500M of app: the sizes before the step"
    )
    assert "pods get the sizes before the step of " in run("explain", scenario.name)[0]

    scenario.soon(lambda: "restored" in scenario.status["previousSize"], "the end of the undo")
    first, second = names
    scenario.api.patch_status("Pod", first, scenario.namespace, {"startTime": ago(minutes=10)})
    by_hand = {"cpu": "500m", "memory": "800M"}
    containers = {"spec": {"containers": [{"name": "app", "resources": {"requests": by_hand}}]}}
    scenario.api.patch("Pod", first, scenario.namespace, containers, type="strategic", subresource="resize")
    pods.resize(first)

    scenario.vpa_recommends(cpu="900m", memory="700M")
    recommended = {"cpu": "900m", "memory": "700M"}
    scenario.soon(
        lambda: scenario.status["recommended"]["containers"][0]["requests"] == recommended,
        "a decision after the undo",
    )
    new = pods.start("2")
    scenario.soon(partial(pods.requests, new, **BEFORE), "the former size of a new pod")
    pods.resize(new)
    assert (pods.requests(first, **by_hand), pods.requests(second, **BEFORE)) == (True, True)
    run("resume", scenario.name)
    for pod in (*names, new):
        scenario.soon(partial(pods.requests, pod, **recommended), f"a resize of {pod}")
