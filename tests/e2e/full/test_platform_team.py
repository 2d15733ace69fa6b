"""docs/platform-team.md: the page's own commands, all of them and in their order, with 300 workloads; and what the page
says comes true. Each step is a fixture, which needs the step before it, and a test of what has come of it."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.process import Process, free_port
from tests.e2e.full.shells import ROOT, Shells, blocks

pytestmark = [pytest.mark.owned_cluster, pytest.mark.timeout(900)]  # a step waits for a busy machine

PAGE: Final = (ROOT / "docs/platform-team.md").read_text()
(
    START,
    LOOK,
    DEPLOY,
    OPERATOR,
    RECOMMEND,
    REVIEW,
    APPLY,
    *_THROUGH_GIT,
    OPT_OUT,
    UNDO,
    DELETE,
    REMOVE,
    DOWN,
) = blocks(PAGE)
RIGHTS, SERVER, PROPOSE = _THROUGH_GIT
(ENVIRONMENT,) = re.findall(r"^eval .*\n", START, re.MULTILINE)
API: Final = "autoscaling.k8s.io/v1alpha1"
PREFIX: Final = "hvpa.autoscaling.k8s.io/"
KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet")
TEAMS: Final = 12
EACH: Final = 25
"""Workloads of a team."""
SOON: Final = 240
Place = tuple[str, str, str]
"""Namespace, kind and name of a workload."""


class Fleet:
    """The platform team's shells, and the cluster as they left it."""

    def __init__(self, shells: Shells) -> None:
        self.shells = shells
        self.api = KubeApi(Path(shells.env["KUBECONFIG"]))

    def type(self, block: str) -> str:
        """Return the output of a block's commands. They wait longer than on the page, because other tests run too."""
        return self.shells.run(re.sub(r"--timeout=\d+m", "--timeout=12m", block), seconds=840)

    def sizes(self) -> dict[Place, Json]:
        """The resources in the pod templates of all workloads."""
        found = {}
        for kind in KINDS:
            for workload in self.api.list(kind):
                meta, pod = workload["metadata"], workload["spec"]["template"]["spec"]
                if "team" in meta.get("labels", {}) or "tier" in meta.get("labels", {}):
                    containers = [*pod.get("initContainers", ()), *pod["containers"]]
                    size = {each["name"]: each.get("resources", {}) for each in containers}
                    found[meta["namespace"], kind, meta["name"]] = size | {"pod": pod.get("resources", {})}
        return found

    def changed(self, before: dict[Place, Json]) -> set[Place]:
        """Workloads with another size than before."""
        now = self.sizes()
        assert now.keys() == before.keys()
        return {place for place, size in now.items() if size != before[place]}

    def modes(self, team: str) -> Counter[str]:
        """How many Hvpas of a team are in which mode."""
        return Counter(hvpa["spec"]["mode"] for hvpa in self.api.list(f"{API}/Hvpa", team))

    def waits(self, team: str) -> set[str]:
        """Names of the team's Hvpas with a size that waits for approval."""
        return {
            hvpa["metadata"]["name"]
            for hvpa in self.api.list(f"{API}/Hvpa", team)
            for entry in hvpa.get("status", {}).get("lastBlockedScaling", ())
            if entry["reason"] == "Approval"
        }

    def recommenders(self) -> dict[tuple[str, str, str], str]:
        """The targets of all HPAs and VPAs."""
        found = {}
        for kind, field in (
            ("HorizontalPodAutoscaler", "scaleTargetRef"),
            ("VerticalPodAutoscaler", "targetRef"),
        ):
            for each in self.api.list(kind):
                meta, target = each["metadata"], each["spec"][field]
                found[meta["namespace"], kind, meta["name"]] = f"{target['kind']} {target['name']}"
        return found

    def policy(self, name: str) -> Json:
        """The counts in a policy's status."""
        status: Json = self.api.get(f"{API}/ClusterHvpaPolicy", name)["status"]
        return status


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A control plane with the workloads, whose usage is known."""
    shells = Shells(tmp_path_factory.mktemp("fleet"), OPERATOR_ARGS=f"--metrics-port {free_port()}")
    who = {"NAME": "platform", "EMAIL": "platform@example.com"}
    shells.env |= {
        f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()
    }
    start, applied = START.split(ENVIRONMENT)
    with shells.started("cluster", f"{start}\necho it runs\nwait") as first:
        try:
            wait_for(lambda: "it runs" in first.tail(3), SOON, first.tail)
            shells.settle(ENVIRONMENT)
            shells.run(applied)
            fleet = Fleet(shells)
            wait_for(
                lambda: measured(fleet.api),
                SOON,
                lambda: f"usage of all pods is known: {measured(fleet.api)}",
            )
            yield fleet
        finally:
            shells.end(DOWN)


def measured(api: KubeApi) -> bool:
    """Whether metrics-server knows the usage of all pods."""
    pods = [pod for pod in api.list("Pod") if pod["metadata"]["namespace"] != "hvpa-system"]
    known = api.raw("GET", "/apis/metrics.k8s.io/v1beta1/pods")["items"]
    return len(pods) > TEAMS * EACH and len(known) == len(pods)


@pytest.fixture(scope="module")
def before(fleet: Fleet) -> dict[Place, Json]:
    """The sizes before anything is installed."""
    return fleet.sizes()


@pytest.fixture(scope="module")
def recommenders(fleet: Fleet) -> dict[tuple[str, str, str], str]:
    """The teams' own HPAs and VPAs."""
    return fleet.recommenders()


@pytest.fixture(scope="module")
def looked(fleet: Fleet, before: dict[Place, Json], recommenders: dict[tuple[str, str, str], str]) -> str:
    """The report."""
    return fleet.type(LOOK)


def test_the_report_covers_all_teams_before_anything_is_installed(fleet: Fleet, looked: str) -> None:
    rows = list(csv.DictReader((fleet.shells.place / "report.csv").read_text().splitlines()))
    kinds = Counter(row["kind"] for row in rows)
    assert kinds == {"Deployment": 22 * TEAMS, "StatefulSet": 2 * TEAMS}
    assert len({row["namespace"] for row in rows}) == TEAMS
    assert re.search(r"^cc-1 ", looked, re.MULTILINE)
    assert "<table" in (fleet.shells.place / "report.html").read_text()


@pytest.fixture(scope="module")
def operator(fleet: Fleet, looked: str) -> Iterator[Process]:
    """The installed operator."""
    fleet.type(DEPLOY)
    with fleet.shells.started("operator", f"{OPERATOR}wait") as process:
        wait_for(lambda: fleet.api.find("Lease", "hvpa", "hvpa-system"), SOON, process.tail)
        yield process


def test_the_operator_follows_policies(fleet: Fleet, operator: Process) -> None:
    pod = fleet.api.get("Deployment", "hvpa", "hvpa-system")["spec"]["template"]["spec"]
    assert "--policies" in pod["containers"][0]["args"]


@pytest.fixture(scope="module")
def recommended(fleet: Fleet, operator: Process) -> str:
    """The overview of all Hvpas."""
    return fleet.type(RECOMMEND)


def test_each_workload_has_an_hvpa_that_changes_nothing(
    fleet: Fleet, before: dict[Place, Json], recommended: str
) -> None:
    assert len(re.findall(r"^\S+ +\S+ +Recommend ", recommended, re.MULTILINE)) == TEAMS * EACH
    hvpas = fleet.api.list(f"{API}/Hvpa")
    targets = {
        (hvpa["metadata"]["namespace"], hvpa["spec"]["targetRef"]["kind"], hvpa["spec"]["targetRef"]["name"])
        for hvpa in hvpas
    }
    assert targets == before.keys()
    assert {hvpa["spec"]["mode"] for hvpa in hvpas} == {"Recommend"}
    assert fleet.changed(before) == set()
    assert fleet.policy("recommend")["awaitingAdoption"] == 8 * TEAMS


@pytest.fixture(scope="module")
def reviewed(fleet: Fleet, recommended: str) -> str:
    """The output of `hvpa status` and `hvpa approve` once sizes wait."""
    stage, look, approve = REVIEW.partition("hvpa status")[0], *REVIEW.splitlines()[-2:]
    fleet.type(stage)
    wait_for(
        lambda: {"worker-1", "store-1"} <= fleet.waits("blue"), SOON, lambda: f"waits: {fleet.waits('blue')}"
    )
    return fleet.type(f"{look}\n{approve}")


def test_in_review_only_what_was_approved_changes(
    fleet: Fleet, before: dict[Place, Json], reviewed: str
) -> None:
    assert fleet.modes("blue") == {"Review": 17, "Recommend": 8}
    assert len(re.findall(r": approved until ", reviewed)) == 2
    approved = {("blue", "Deployment", "worker-1"), ("blue", "StatefulSet", "store-1")}
    wait_for(lambda: fleet.changed(before) == approved, SOON, lambda: str(fleet.changed(before)))


@pytest.fixture(scope="module")
def applied(fleet: Fleet, reviewed: str) -> str:
    """The policy."""
    return fleet.type(APPLY)


def test_in_apply_hvpas_scale_and_take_over_the_hpas_that_they_may(
    fleet: Fleet, before: dict[Place, Json], applied: str
) -> None:
    assert fleet.modes("green") == {"Apply": 22, "Recommend": 3}
    hpas = {
        name: target
        for (team, kind, name), target in fleet.recommenders().items()
        if (team, kind) == ("green", "HorizontalPodAutoscaler")
    }
    adopted = ("web-1", "web-2", "web-3", "api-1", "api-2")
    assert hpas == {name: f"Hvpa {name}" for name in adopted} | {"keda-hpa-queue-1": "Deployment queue-1"}
    worker = ("green", "Deployment", "worker-1")
    wait_for(lambda: worker in fleet.changed(before), SOON, lambda: str(fleet.changed(before)))
    assert {team for team, _, _ in fleet.changed(before)} == {"blue", "green"}
    assert not [name for _, _, name in fleet.changed(before) if name.startswith(("queue", "sized"))]


@pytest.fixture(scope="module")
def merged(fleet: Fleet, applied: str) -> str:
    """The output of the CI."""
    fleet.type(RIGHTS)
    fleet.type(SERVER)
    return fleet.type(PROPOSE)


def test_through_git_the_ci_applies_the_sizes_that_were_merged(
    fleet: Fleet, before: dict[Place, Json], merged: str
) -> None:
    job = "--kubeconfig job.kubeconfig -n red"
    assert (
        fleet.type(f"kubectl auth can-i list hvpas {job}; kubectl auth can-i patch deployments {job} || true")
        == "yes\nno\n"
    )
    files = list((fleet.shells.place / "fleet/sizes/red").glob("*-*.yaml"))
    assert len(files) == EACH
    wanted = dict(map(in_file, files))
    sizes = fleet.sizes()
    assert {place: {name: sizes[place][name] for name in size} for place, size in wanted.items()} == wanted
    assert "red" in {team for team, _, _ in fleet.changed(before)}
    assert fleet.modes("red") == {"Recommend": EACH}


def in_file(file: Path) -> tuple[Place, Json]:
    """The workload of an exported file, and its resources."""
    manifest = yaml.safe_load(file.read_text())
    pod = manifest["spec"]["template"]["spec"]
    size = {each["name"]: each["resources"] for each in pod.get("containers", ())}
    whole = {"pod": pod["resources"]} if "resources" in pod else {}
    return ("red", manifest["kind"], manifest["metadata"]["name"]), size | whole


@pytest.fixture(scope="module")
def opted_out(fleet: Fleet, merged: str) -> str:
    """The output of kubectl."""
    return fleet.type(OPT_OUT)


def test_a_team_that_opts_out_has_no_hvpas(fleet: Fleet, opted_out: str) -> None:
    assert fleet.api.list(f"{API}/Hvpa", "white") == []
    wait_for(lambda: fleet.policy("recommend")["optedOut"] == EACH, SOON, "the policy counts them")
    assert len(fleet.api.list(f"{API}/Hvpa")) == (TEAMS - 1) * EACH


@pytest.fixture(scope="module")
def undone(fleet: Fleet, opted_out: str) -> str:
    """The undone steps."""
    return fleet.type(UNDO)


def test_undo_restores_the_sizes(fleet: Fleet, before: dict[Place, Json], undone: str) -> None:
    assert fleet.api.get(f"{API}/Hvpa", "worker-1", "green")["spec"]["mode"] == "Paused"
    changed = fleet.changed(before)
    assert ("green", "Deployment", "worker-1") not in changed
    assert {team for team, _, _ in changed} == {"blue", "green"}


@pytest.fixture(scope="module")
def uninstalled(fleet: Fleet, operator: Process, undone: str) -> tuple[str, dict[Place, Json]]:
    """What is left, as the page looks for it; and the sizes when the last Hvpa was gone."""
    fleet.type(DELETE)
    operator.kill()
    sizes = fleet.sizes()
    return fleet.type(REMOVE), sizes


def test_after_uninstallation_nothing_is_left(
    fleet: Fleet,
    before: dict[Place, Json],
    recommenders: dict[tuple[str, str, str], str],
    uninstalled: tuple[str, dict[Place, Json]],
) -> None:
    printed, sizes = uninstalled
    assert printed.splitlines()[-1] == "nothing is left"
    assert fleet.sizes() == sizes
    assert {team for team, _, _ in fleet.changed(before)} == {"blue", "green"}
    assert fleet.recommenders() == recommenders
    assert [lease for lease in fleet.api.list("Lease") if "hvpa" in lease["metadata"]["name"]] == []
    for kind in (
        *KINDS,
        "HorizontalPodAutoscaler",
        "VerticalPodAutoscaler",
        "batch/v1/CronJob",
        "Pod",
        "Namespace",
    ):
        for each in fleet.api.list(kind):
            texts = {**each["metadata"].get("annotations", {}), **each["metadata"].get("labels", {})}
            assert [key for key in texts if "hvpa" in key] == [], (kind, each["metadata"]["name"])
