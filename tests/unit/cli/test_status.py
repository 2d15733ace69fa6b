"""`hvpa status`: one Hvpa at a glance, and one row for each of its pods."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from builders.build import merged
from hvpa.api.hvpa.spec import APPLYING
from hvpa.cli import status as command
from tests.unit.cli import schema
from tests.unit.cli.api_server import OPERATOR, Api
from tests.unit.cli.resizing import LARGE, SINCE, SMALL, deployment, hvpa, pod, resizing, vpa
from tests.unit.cli.support import NOW, Doc, Live

pytestmark = pytest.mark.usefixtures("at_ten")  # three minutes after the size was decided
RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
DEFERRED = resizing("PodResizePending", "Deferred", "no room")
GONE = "hvpa: error: Hvpa default/web does not exist\n"
Shown = Callable[..., tuple[str, dict[str, Any]]]


@pytest.fixture
def shown(live: Live, api: Api) -> Shown:
    """The text about the Hvpa among some documents, and the pods of the JSON, which follows its schema, by name."""

    def shown(*documents: Doc) -> tuple[str, dict[str, Any]]:
        api.put([*documents])
        text, written = live("status", "web"), live("status", "web", "-o", "json")
        assert (text.code, text.err, written.code, written.err) == (0, "", 0, "")
        schema.check(written.json, schema.schema_of("status"))
        return text.out, {pod["name"]: pod for pod in written.json["pods"]}

    return shown


def states(pods: dict[str, Any]) -> dict[str, Any]:
    """Of each pod its state, why, and since when."""
    fields = ("state", "why", "since", "sinceIsExact")
    return {name: tuple(pod[field] for field in fields) for name, pod in pods.items()}


def test_each_pod_has_a_row_with_its_size_and_state(shown: Shown) -> None:
    pods = [pod("web-deferred", has=SMALL, condition=DEFERRED), pod("web-done")]
    text, _ = shown(hvpa(), deployment(), vpa(), *pods)
    assert text == (
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


@pytest.mark.parametrize("mode", sorted(APPLYING))
def test_the_modes_in_which_pods_are_resized_follow_the_schema(shown: Shown, mode: str) -> None:
    text, pods = shown(hvpa(mode=mode), deployment(1), vpa(), pod("next", SMALL))
    assert f"mode {mode}, InPlace" in text
    assert states(pods)["next"][:2] == ("waiting", "is resized next")


def test_the_states_are_the_operators_own(shown: Shown) -> None:
    running = resizing("PodResizeInProgress", "", "the runtime is at it")
    never = resizing("PodResizePending", "Infeasible", "the node is too small")
    pods = [pod("running", has=SMALL, condition=running), pod("never", has=SMALL, condition=never)]
    pods += [pod("next", SMALL), pod("going", deletionTimestamp=NOW), pod("asked", has=SMALL)]
    assert states(shown(hvpa(), deployment(), vpa(), *pods)[1]) == {
        "asked": ("in_progress", "the kubelet has not answered", "2026-11-21T09:57:00Z", False),
        "going": ("terminating", "", None, False),
        "never": ("infeasible", "the node is too small", "2026-11-21T09:59:00Z", True),
        "next": ("waiting", "is resized next", "2026-11-21T09:57:00Z", False),
        "running": ("in_progress", "the runtime is at it", "2026-11-21T09:59:00Z", True),
    }


def test_pods_that_would_restart_wait_for_one_another(shown: Shown) -> None:
    both = [pod(name, SMALL, resizePolicy=RESTARTS) for name in ("a", "b")]
    _, pods = shown(hvpa(), deployment(2), vpa(), *both)
    assert (pods["a"]["state"], pods["a"]["why"], pods["b"]["state"]) == (
        "waiting",
        "is resized next",
        "waiting",
    )
    assert "no more pods may be unavailable (maxUnavailable 25%)" in pods["b"]["why"]


REFUSED = {"resized": "0/1", "pods": 1, "infeasible": 1, "message": "pod a: forbidden: quota"}


@pytest.mark.parametrize(
    ("one", "why"),
    [
        pytest.param(
            hvpa(status={"actuation": REFUSED}),
            "the operator reports: pod a: forbidden: quota",
            id="what the API server refuses only the operator knows",
        ),
        pytest.param(hvpa(mode="Paused"), "mode Paused: no pod is resized", id="mode Paused"),
        pytest.param(hvpa(mode="Recommend"), "mode Recommend: no pod is resized", id="mode Recommend"),
    ],
)
def test_what_a_pod_waits_for(shown: Shown, one: Doc, why: str) -> None:
    _, pods = shown(one, deployment(1), vpa(), pod("a", SMALL))
    assert (pods["a"]["state"], pods["a"]["why"]) == ("waiting", why)


def test_pods_that_are_replaced_as_they_could_not_be_resized_are_reported_so(shown: Shown) -> None:
    fall = {"since": "2026-11-21T09:00:00Z", "message": "pod a: the node is too small"}
    manifest = hvpa(status={"desired": None, "actuation": None, "replacing": fall})
    manifest["spec"]["updateStrategy"] = {"type": "InPlaceOrRollout"}
    text, _ = shown(manifest, deployment(1), vpa(), pod("a", SMALL))
    assert "mode Apply, Rollout" in text
    why = "for a day, because they could not be resized: pod a: the node is too small"
    assert f"Replacing  pods since 2026-11-21T09:00:00Z (1h), {why}" in text


def test_where_nothing_was_decided_pods_have_the_size_of_their_template(shown: Shown) -> None:
    manifest = hvpa(status={"desired": None, "actuation": None, "conditions": []})
    text, pods = shown(manifest, deployment(1), vpa(), pod("a", SMALL))
    assert pods["a"]["state"] == "template"
    assert "Note       the operator has reported nothing yet" in text
    assert "Desired    the template's size\n" in text


def test_with_rollouts_pods_are_updated_or_old(shown: Shown) -> None:
    held = {"reason": "Canary", "message": "1 of 2 pods are replaced", "until": "2026-11-21T10:05:00Z"}
    last = {"lastScaling": {"lastScaleTime": "2026-11-21T09:50:00Z"}, "rollout": held}
    small = {"cpu": "250m", "memory": "500M"}
    text, pods = shown(
        hvpa("Rollout", status=last), deployment(2), vpa(), pod("new", SMALL), pod("old", small)
    )
    old = pods["old"]
    assert (pods["new"]["state"], old["state"]) == ("updated", "old")
    assert old["why"] == "rollout held by Canary until 2026-11-21T10:05:00Z: 1 of 2 pods are replaced"
    assert (old["present"]["app"]["requests"], old["desired"]["app"]["requests"]) == (small, SMALL)
    assert "Desired    cpu 500m memory 500M since 2026-11-21T09:50:00Z (10m)\n" in text
    assert "\nResized" not in text


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, "is replaced by the rollout"),
        ({"paused": True}, "Deployment web does not replace it: it is paused (spec.paused)"),
    ],
)
def test_a_pod_of_another_size_says_whether_it_is_replaced(shown: Shown, spec: Any, why: str) -> None:
    workload = deployment(2)
    workload["spec"] |= spec
    text, pods = shown(hvpa("Rollout"), workload, vpa(), pod("old", {"cpu": "250m", "memory": "500M"}))
    assert (pods["old"]["state"], pods["old"]["why"]) == ("old", why)
    assert why in text


@pytest.mark.parametrize(
    ("strategy", "name", "why"),
    [
        ({"type": "OnDelete"}, "web-1", "its updateStrategy is OnDelete"),
        ({"rollingUpdate": {"partition": 2}}, "web-1", "its partition is 2"),
        ({"rollingUpdate": {"partition": 2}}, "web-2", "is replaced by the rollout"),
        ({"rollingUpdate": {"partition": 2}}, "odd", "its partition is 2"),
        ({"type": "RollingUpdate"}, "web-1", "is replaced by the rollout"),
    ],
)
def test_a_pod_of_a_stateful_set_is_replaced_by_its_update_strategy(
    shown: Shown, strategy: Any, name: str, why: str
) -> None:
    manifest, workload = hvpa("Rollout"), deployment(3)
    manifest["spec"]["targetRef"]["kind"] = workload["kind"] = "StatefulSet"
    workload["spec"]["updateStrategy"] = strategy
    owner = {"kind": "StatefulSet", "name": "web", "uid": workload["metadata"]["uid"], "controller": True}
    old = pod(name, {"cpu": "250m", "memory": "500M"}, ownerReferences=[owner])
    assert why in shown(manifest, workload, vpa(), old)[1][name]["why"]


def test_pods_of_others_are_not_shown(shown: Shown) -> None:
    text, pods = shown(hvpa(), deployment(), vpa(), pod("bare", ownerReferences=[]))
    assert pods == {}
    assert "No pods.\n" in text


def test_where_nothing_can_be_scaled_the_pods_are_shown_all_the_same(shown: Shown) -> None:
    rival = {**hvpa(), "metadata": {"name": "rival", "uid": "r"}}
    assert shown(hvpa(), rival, deployment(), vpa(), pod("a"))[1]["a"]["state"] == "unknown"


def test_what_is_held_back_and_limits_on_their_way_are_shown(shown: Shown) -> None:
    blocked = [
        {"reason": "Weight", "axis": "horizontal", "direction": "up", "current": "4", "wanted": "5"},
        {"reason": "MaintenanceWindow", "axis": "vertical", "direction": "down", "container": "app",
         "resource": "cpu", "current": "800m", "wanted": "500m", "until": "2026-11-21T22:00:00Z"},
    ]  # fmt: skip
    size = {"name": "app", "requests": LARGE, "limits": {"memory": "1G"}}
    desired = {"replicas": 6, "containers": [size], "since": "2026-11-21T09:57:00Z", "generation": 1}
    limited = pod("a")
    limited["spec"]["containers"][0]["resources"] = {"requests": LARGE, "limits": {"memory": "2G"}}
    limited["status"]["containerStatuses"][0]["resources"] = {"requests": LARGE, "limits": {"memory": "2G"}}
    manifest = hvpa(status={"lastBlockedScaling": blocked, "desired": desired})
    text, _ = shown(manifest, deployment(), vpa(), limited)
    assert "Held back  replicas 4 -> 5: Weight\n" in text
    assert "Held back  app cpu 800m -> 500m: MaintenanceWindow until 2026-11-21T22:00:00Z (in 12h)\n" in text
    assert "Replicas   4, 4 ready; desired 6\n" in text
    assert "is resized next; app limits memory 2G -> 1G" in text


NEWER = {**hvpa(), "metadata": {**hvpa()["metadata"], "generation": 3}}


@pytest.mark.parametrize(
    ("documents", "line"),
    [
        pytest.param(
            [hvpa()], "Replicas   the workload does not exist, or is not supported\n", id="without a workload"
        ),
        pytest.param(
            [hvpa(targetRef=7), deployment(), vpa()],
            "target unknown, mode unknown, unknown\n",
            id="a spec that can't be read",
        ),
        pytest.param(
            [NEWER, deployment(), vpa()],
            "Note       the operator has not processed the latest spec yet\n",
            id="a report on an earlier spec",
        ),
    ],
)
def test_what_is_not_known_is_called_that(shown: Shown, documents: list[Doc], line: str) -> None:
    text, pods = shown(*documents)
    assert line in text
    assert pods == {}


def test_an_hvpa_that_is_not_there_is_an_error(live: Live) -> None:
    ran = live("status", "web")
    assert (ran.code, ran.err) == (1, GONE)


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
            if self.looks >= 7:
                os.kill(os.getpid(), signal.SIGINT)
        return super().answer(path, query)


@pytest.mark.parametrize("command", ["status", "history"])
def test_a_silent_operator_is_reported(
    live: Live, api: Api, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("hvpa.cli.input.operator.CONFIRM", 0.0)
    api.put([hvpa(), deployment(1), vpa(), pod("web-0", has=SMALL)])
    api.objects[OPERATOR, "leases"][0]["spec"].update(
        leaseDurationSeconds=15, renewTime="2026-11-21T09:58:00.000000Z"
    )
    text = live(command, "web").out
    assert "operator silent for 2m, since 2026-11-21T09:58:00Z: nothing is scaled until it is back" in text
    output = live(command, "web", "-o", "json").json
    schema.check(output, schema.schema_of(command))
    assert output["operator"] == {"state": "silent", "since": "2026-11-21T09:58:00Z", "why": None}
    api.fail["leases"] = 403
    assert (
        "can't tell whether the operator is alive: no right to get Lease hvpa-system/hvpa"
        in live(command, "web").out
    )
    assert live(command, "web", "-o", "json").json["operator"]["state"] == "unknown"


class TestWatch:
    @pytest.fixture(autouse=True)
    def interrupts(self) -> Iterator[None]:
        """Ctrl-C ends also what was started in the background of a shell, which has it ignored."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    @pytest.fixture
    def api(self, monkeypatch: pytest.MonkeyPatch) -> Steps:
        monkeypatch.setattr(command, "PERIOD", 0.01)
        steps = Steps()
        steps.put([hvpa(), deployment(1), vpa(), pod("web-0", has=SMALL)])
        return steps

    def test_it_shows_what_changed_once_and_ends_with_ctrl_c(self, live: Live) -> None:
        ran = live("status", "web", "--watch")
        silence = "no response from the cluster; trying again: no pods for you\n"
        assert (ran.code, ran.err) == (0, silence)
        assert ran.out.count("Hvpa default/web") == 2
        assert ran.out.index("in progress") < ran.out.index("  resized  ")

    def test_a_terminal_is_drawn_anew(self, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        out = live("status", "web", "--watch").out
        assert out.startswith("\x1b[H\x1b[2J\x1b[3J")
        assert out.count("\x1b[2J") == 2

    def test_it_ends_with_the_hvpa(self, live: Live, api: Steps) -> None:
        api.forgets = True
        ran = live("status", "web", "--watch")
        assert (ran.code, ran.err) == (1, GONE)
        assert "Hvpa default/web" in ran.out

    def test_what_can_not_be_read_at_first_is_an_error(self, live: Live, api: Steps) -> None:
        api.looks = 3
        assert live("status", "web", "--watch").code == 3


def test_what_containers_share_of_the_pods_own_resources_is_a_container(shown: Shown, live: Live) -> None:
    workload, shared = deployment(2), {"name": "(shared)", "requests": LARGE}
    workload["spec"]["template"]["spec"] = {"resources": {"requests": SMALL}, "containers": [{"name": "app"}]}
    sizes = {"small": SMALL, "large": LARGE}
    pods = [
        merged(
            pod(name, {}),
            {"spec": {"resources": {"requests": size}}, "status": {"resources": {"requests": size}}},
        )
        for name, size in sizes.items()
    ]
    desired = {"replicas": 2, "containers": [shared], "since": SINCE, "generation": 1}
    manifest = hvpa(status={"desired": desired, "actuation": None, "conditions": []})
    text, rows = shown(manifest, workload, vpa(), *pods)
    assert {name: row["state"] for name, row in rows.items()} == {"small": "waiting", "large": "resized"}
    assert "app: none, (shared): cpu 500m memory 500M  app: none, (shared): cpu 800m memory 600M" in text
    explained = live("explain", "web").out
    assert "container (shared): requests cpu 800m, memory 600M" in explained
    assert "(shared) requests cpu 500m -> 800m, (shared) requests memory 500M -> 600M" in explained

    manifest["spec"]["updateStrategy"]["type"] = "Rollout"
    manifest["status"] = {}
    text, rows = shown(manifest, workload, vpa(), *pods)
    assert {name: row["state"] for name, row in rows.items()} == {"small": "updated", "large": "old"}
