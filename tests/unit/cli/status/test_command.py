"""`hvpa status`: one Hvpa at a glance, and one row for each of its pods."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hvpa.api.values.timestamp import parse_timestamp
from hvpa.cli import status as command
from hvpa.kube.clock import SystemClock
from tests.unit.cli.api_server import Api
from tests.unit.cli.explain.contract.test_decision import faults
from tests.unit.cli.resizing import LARGE, SMALL, deployment, hvpa, pod, resizing, vpa
from tests.unit.cli.support import NOW, Doc, Ran, Shell

SCHEMA_FILE = Path(__file__).parents[4] / "docs" / "status.schema.json"
RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


@pytest.fixture(autouse=True)
def at_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ten o'clock, three minutes after the size was decided."""
    now = parse_timestamp(NOW)

    def fixed(self: SystemClock) -> dt.datetime:
        return now

    monkeypatch.setattr(SystemClock, "now", fixed)


def status(shell: Shell, kubeconfig: str, *flags: str) -> Ran:
    return shell.run("status", "web", "--kubeconfig", kubeconfig, *flags)


def rows(ran: Ran) -> dict[str, Any]:
    """The pods of the JSON, which follows its schema, by name."""
    assert (ran.code, ran.err) == (0, "")
    schema = json.loads(SCHEMA_FILE.read_text())
    assert faults(ran.json, schema, schema) == []
    return {one["name"]: one for one in ran.json["pods"]}


def rungs(shell: Shell, api: Api, kubeconfig: str, documents: list[Doc]) -> dict[str, Any]:
    """Of each pod its state, why, and since when."""
    api.put(documents)
    found = rows(status(shell, kubeconfig, "-o", "json"))
    return {
        name: (one["state"], one["why"], one["since"], one["sinceIsExact"]) for name, one in found.items()
    }


def test_each_pod_has_a_row_with_its_size_and_rung(shell: Shell, api: Api, kubeconfig: str) -> None:
    deferred = resizing("PodResizePending", "Deferred", "no room")
    api.put(
        [hvpa(), deployment(), vpa(), pod("web-deferred", has=SMALL, condition=deferred), pod("web-done")]
    )
    ran = status(shell, kubeconfig)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Hvpa default/web, target Deployment web, mode Apply, InPlace\n"
        "Ready      False since 2026-11-21T09:58:00Z (2m), PodsNotResized: pod web-deferred: no room\n"
        "Replicas   4, 4 ready\n"
        "Desired    cpu 800m memory 600M since 2026-11-21T09:57:00Z (3m)\n"
        "Resized    1/4, 1 deferred: pod web-deferred: no room\n"
        "New pods   created with the template's size and resized once they run, without config/size-at-creation\n"
        "\n"
        "POD           READY  RESTARTS  PRESENT               DESIRED               STATE     SINCE  WHY\n"
        "web-deferred  yes    3         cpu 500m memory 500M  cpu 800m memory 600M  deferred  1m     no room\n"
        "web-done      yes    3         cpu 800m memory 600M  cpu 800m memory 600M  resized   <3m\n"
    )


def test_the_rungs_are_the_operators_own(shell: Shell, api: Api, kubeconfig: str) -> None:
    conditions = {
        "running": resizing("PodResizeInProgress", "", "the runtime is at it"),
        "never": resizing("PodResizePending", "Infeasible", "the node is too small"),
    }
    pods = [pod(name, has=SMALL, condition=one) for name, one in conditions.items()]
    pods += [pod("next", SMALL), pod("going", deletionTimestamp=NOW), pod("asked", has=SMALL)]
    assert rungs(shell, api, kubeconfig, [hvpa(), deployment(), vpa(), *pods]) == {
        "asked": ("in_progress", "the kubelet has not answered", "2026-11-21T09:57:00Z", False),
        "going": ("terminating", "", None, False),
        "never": ("infeasible", "the node is too small", "2026-11-21T09:59:00Z", True),
        "next": ("waiting", "is resized next", "2026-11-21T09:57:00Z", False),
        "running": ("in_progress", "the runtime is at it", "2026-11-21T09:59:00Z", True),
    }


def test_pods_that_would_restart_wait_for_one_another(shell: Shell, api: Api, kubeconfig: str) -> None:
    pods = [pod(name, SMALL, resizePolicy=RESTARTS) for name in ("a", "b")]
    found = rungs(shell, api, kubeconfig, [hvpa(), deployment(2), vpa(), *pods])
    assert found["a"][:2] == ("waiting", "is resized next")
    assert found["b"][0] == "waiting"
    assert "no more pods may be unavailable (maxUnavailable 25%)" in found["b"][1]


def test_a_pod_that_the_operator_names_has_its_words(shell: Shell, api: Api, kubeconfig: str) -> None:
    """What the API server refuses only the operator knows."""
    actuation = {"resized": "0/1", "pods": 1, "infeasible": 1, "message": "pod a: forbidden: quota"}
    one = hvpa(status={"actuation": actuation})
    found = rungs(shell, api, kubeconfig, [one, deployment(1), vpa(), pod("a", SMALL)])
    assert found["a"][:2] == ("waiting", "the operator reports: pod a: forbidden: quota")


@pytest.mark.parametrize("mode", ["Paused", "Recommend"])
def test_in_other_modes_pods_wait_for_the_mode(shell: Shell, api: Api, kubeconfig: str, mode: str) -> None:
    found = rungs(shell, api, kubeconfig, [hvpa(mode=mode), deployment(1), vpa(), pod("a", SMALL)])
    assert found["a"][1] == f"mode {mode}: no pod is resized"


def test_where_nothing_was_decided_pods_have_the_size_of_their_template(
    shell: Shell, api: Api, kubeconfig: str
) -> None:
    one = hvpa(status={"desired": None, "actuation": None, "conditions": []})
    api.put([one, deployment(1), vpa(), pod("a", SMALL)])
    found = rows(status(shell, kubeconfig, "-o", "json"))
    assert found["a"]["state"] == "template"
    text = status(shell, kubeconfig).out
    assert "Note       the operator has reported nothing yet" in text
    assert "Desired    no other size than the template's was decided\n" in text


def test_with_rollouts_pods_are_updated_or_old(shell: Shell, api: Api, kubeconfig: str) -> None:
    held = {"reason": "Canary", "message": "1 of 2 pods are replaced", "until": "2026-11-21T10:05:00Z"}
    last = {"lastScaling": {"lastScaleTime": "2026-11-21T09:50:00Z"}, "rollout": held}
    pods = [pod("new", SMALL), pod("old", {"cpu": "250m", "memory": "500M"})]
    api.put([hvpa("Rollout", status=last), deployment(2), vpa(), *pods])
    found = rows(status(shell, kubeconfig, "-o", "json"))
    assert {name: one["state"] for name, one in found.items()} == {"new": "updated", "old": "old"}
    assert (
        found["old"]["why"] == "rollout held by Canary until 2026-11-21T10:05:00Z: 1 of 2 pods are replaced"
    )
    assert found["old"]["present"]["app"]["requests"] == {"cpu": "250m", "memory": "500M"}
    assert found["old"]["desired"]["app"]["requests"] == SMALL
    ran = status(shell, kubeconfig)
    assert "Desired    cpu 500m memory 500M since 2026-11-21T09:50:00Z (10m)\n" in ran.out
    assert "\nResized" not in ran.out


def test_pods_of_others_are_not_shown(shell: Shell, api: Api, kubeconfig: str) -> None:
    found = rungs(shell, api, kubeconfig, [hvpa(), deployment(), vpa(), pod("bare", ownerReferences=[])])
    assert found == {}
    assert "No pods.\n" in status(shell, kubeconfig).out


def test_where_nothing_can_be_scaled_the_pods_are_shown_all_the_same(
    shell: Shell, api: Api, kubeconfig: str
) -> None:
    rival = hvpa()
    rival["metadata"] = {"name": "rival", "uid": "r"}
    found = rungs(shell, api, kubeconfig, [hvpa(), rival, deployment(), vpa(), pod("a")])
    assert found["a"][0] == "unknown"


def test_an_hvpa_without_a_workload_has_no_replicas(shell: Shell, api: Api, kubeconfig: str) -> None:
    api.put([hvpa()])
    assert rows(status(shell, kubeconfig, "-o", "json")) == {}
    ran = status(shell, kubeconfig)
    assert "Replicas   the workload is not there, or is not supported\n" in ran.out
    assert ran.code == 0


def test_what_is_held_back_and_limits_on_their_way_are_shown(shell: Shell, api: Api, kubeconfig: str) -> None:
    blocked = [
        {"reason": "Weight", "axis": "horizontal", "direction": "up", "current": "4", "wanted": "5"},
        {
            "reason": "MaintenanceWindow",
            "axis": "vertical",
            "direction": "down",
            "container": "app",
            "resource": "cpu",
            "current": "800m",
            "wanted": "500m",
            "until": "2026-11-21T22:00:00Z",
        },
    ]
    desired = {
        "replicas": 6,
        "containers": [{"name": "app", "requests": LARGE, "limits": {"memory": "1G"}}],
        "since": "2026-11-21T09:57:00Z",
        "generation": 1,
    }
    one = hvpa(status={"lastBlockedScaling": blocked, "desired": desired})
    limited = pod("a")
    limited["spec"]["containers"][0]["resources"] = {"requests": LARGE, "limits": {"memory": "2G"}}
    limited["status"]["containerStatuses"][0]["resources"] = {"requests": LARGE, "limits": {"memory": "2G"}}
    api.put([one, deployment(), vpa(), limited])
    out = status(shell, kubeconfig).out
    assert "Held back  replicas 4 -> 5: Weight\n" in out
    assert "Held back  app cpu 800m -> 500m: MaintenanceWindow until 2026-11-21T22:00:00Z (in 12h)\n" in out
    assert "Replicas   4, 4 ready; desired 6\n" in out
    assert "is resized next; app limits memory 2G -> 1G" in out


def test_an_hvpa_that_can_not_be_read_has_no_target(shell: Shell, api: Api, kubeconfig: str) -> None:
    api.put([hvpa(targetRef=7), deployment(), vpa()])
    assert rows(status(shell, kubeconfig, "-o", "json")) == {}
    assert "target unknown, mode unknown, unknown\n" in status(shell, kubeconfig).out


def test_a_report_on_an_earlier_spec_is_called_that(shell: Shell, api: Api, kubeconfig: str) -> None:
    one = hvpa()
    one["metadata"]["generation"] = 3
    api.put([one, deployment(), vpa()])
    assert "Note       the operator has not looked at the newest spec yet\n" in status(shell, kubeconfig).out


def test_an_hvpa_that_is_not_there_is_an_error(shell: Shell, api: Api, kubeconfig: str) -> None:
    ran = status(shell, kubeconfig)
    assert (ran.code, ran.err) == (1, "hvpa: error: Hvpa default/web does not exist\n")


class Steps(Api):
    """Changes what it holds after some looks at the pods, does not respond for two more, and then presses Ctrl-C."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.forgets = False

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, bytes]:
        if path.endswith("/pods"):
            self.looks += 1
            if self.looks == 3:
                self.objects["default", "pods"] = []
                self.put([pod("web-0")])
            self.fail = {"pods": 503} if self.looks in (4, 5) else {}
            if self.looks == 3 and self.forgets:
                self.objects = {}
            if self.looks == 7:
                os.kill(os.getpid(), signal.SIGINT)
        return super().answer(path, query)


class TestWatch:
    @pytest.fixture
    def api(self) -> Steps:
        return Steps()

    def test_it_shows_what_changed_once_and_ends_with_ctrl_c(
        self, shell: Shell, api: Api, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "PERIOD", 0.01)
        api.put([hvpa(), deployment(1), vpa(), pod("web-0", has=SMALL)])
        ran = status(shell, kubeconfig, "--watch")
        assert (ran.code, ran.err) == (
            0,
            "no response from the cluster; trying again: no pods for you\n",
        )
        assert ran.out.count("Hvpa default/web") == 2
        assert ran.out.index("in progress") < ran.out.index("  resized  ")

    def test_a_terminal_is_drawn_anew(
        self, shell: Shell, api: Api, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "PERIOD", 0.01)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        api.put([hvpa(), deployment(1), vpa(), pod("web-0", has=SMALL)])
        out = status(shell, kubeconfig, "--watch").out
        assert out.split("\x1b[H\x1b[2J\x1b[3J")[0] == ""
        assert out.count("\x1b[2J") == 2

    def test_it_ends_with_the_hvpa(
        self, shell: Shell, api: Steps, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "PERIOD", 0.01)
        api.forgets = True
        api.put([hvpa(), deployment(1), vpa(), pod("web-0", has=SMALL)])
        ran = status(shell, kubeconfig, "--watch")
        assert (ran.code, ran.err) == (1, "hvpa: error: Hvpa default/web does not exist\n")
        assert "Hvpa default/web" in ran.out

    def test_what_can_not_be_read_at_first_is_an_error(
        self, shell: Shell, api: Steps, kubeconfig: str
    ) -> None:
        api.looks = 3
        api.put([hvpa(), deployment(1), vpa()])
        assert status(shell, kubeconfig, "--watch").code == 3
