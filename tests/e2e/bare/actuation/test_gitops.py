"""Argo CD and Flux apply a workload every few seconds while an Hvpa scales it (docs/gitops.md): what is not in Git, or
ignored there, is left alone; what is in Git is set back, and the operator stops. Each way to update pods, and blend.
And Helm upgrades one."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import yaml

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads import bare_manifests
from localcluster.workloads.bare_manifests import merged, trajectory, weight
from localcluster.workloads.scenario import Scenario, parallel
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import USER, NewScenario
from tests.e2e.chart.command import run
from tests.e2e.reapplying import ARGO, ARGO_SERVER_SIDE, FLUX, HELM, Reapplying, Tool, in_git, with_ignored

pytestmark = pytest.mark.timeout(
    900
)  # dozens of kubectl, each of them a minute on a machine that has no time for it
STRATEGIES = ("Rollout", "InPlaceOrRollout", "InPlace")
BLENDS = ("Additive", "Trajectory")
IGNORING = (ARGO._replace(ignores=True), ARGO_SERVER_SIDE._replace(ignores=True))
ROUNDS = 2
"""Rounds in which nothing may be set back."""
RETRY = 60
"""Seconds after which the operator tries again what was set back (docs/decisions/0005-contested.md)."""


class Case:
    """A workload of two pods of one core that a tool applies, and an Hvpa that wants more and larger ones."""

    def __init__(self, new_scenario: NewScenario, tool: Tool, blend: str, strategy: str) -> None:
        changes: Json = merged(trajectory(least={"cpu": "1"}) if blend == "Trajectory" else {}, weight(50))
        changes = merged(changes, {"updateStrategy": {"type": strategy}})
        self.tool, self.in_place = tool, strategy != "Rollout"
        name = f"{tool.manager}-{'server' if tool.server_side else 'client'}-{blend}-{strategy}".lower()
        self.scenario: Scenario = new_scenario(name, create=False, replicas=2, changes=changes)
        bare_manifests.request(self.scenario.workload, cpu="1", memory="500M")
        self.kubelet = Pods(self.scenario)
        self.manifest: Json = {}
        self.pods: list[str] = []

    def begin(self) -> None:
        """The pods run, both recommenders are known, and a load of five cores comes: else there may be a decision about
        the HPA alone, and with it other replicas, that nobody measures again."""
        self.pods = [self.kubelet.start(str(number)) for number in range(2)]
        self.scenario.vpa_is_content()
        self.scenario.under(5000)

    def applied(self) -> Json:
        """What the tool applies."""
        return with_ignored(self.manifest, self.scenario.target) if self.tool.ignores else self.manifest

    def has_more_than(self, replicas: int) -> bool:
        """Whether there are to be more replicas."""
        return self.scenario.replicas > replicas

    def is_larger(self) -> bool:
        """Whether pods are to be larger: those that run, where they are resized, or those of the template."""
        if self.in_place:
            return all(parse_cpu(self.kubelet.spec(pod)["requests"]["cpu"]) > 1000 for pod in self.pods)
        return parse_cpu(self.scenario.requests["cpu"]) > 1000

    def await_larger(self) -> None:
        """Wait for larger pods; the kubelet resizes them."""
        self.scenario.soon(self.is_larger, "larger pods")
        for pod in self.pods:
            self.kubelet.resize(pod)

    def set_back(self) -> int:
        """How often the operator found its last step of either axis undone, by its own record."""
        record = self.scenario.status["axes"]
        return max(
            int(record[axis].get("setBack", {}).get("count", 0)) for axis in ("horizontal", "vertical")
        )


def tool_on(plane: ControlPlane, tool: Tool, cases: Sequence[Case]) -> Reapplying:
    """A tool on these cases. After each round the workload's controller has seen what was applied, and is done."""

    def completed() -> None:
        for case in cases:
            case.scenario.rollout_completes()

    return Reapplying(plane, tool, lambda: [case.applied() for case in cases], completed)


class AtWork:
    """The tools at work on cases, of whose manifests in Git `manifest` says what they hold."""

    def __init__(self, plane: ControlPlane, cases: Sequence[Case], manifest: Callable[[Case], Json]) -> None:
        self.plane, self.cases = plane, cases
        by_tool: dict[Tool, list[Case]] = defaultdict(list)
        for case in cases:
            case.manifest = manifest(case)
            by_tool[case.tool].append(case)
        self.tools = [tool_on(plane, tool, of) for tool, of in by_tool.items()]

    def __enter__(self) -> AtWork:
        with ExitStack() as stack:
            for tool in self.tools:
                stack.enter_context(tool)
            self.go_on(1)
            for case in self.cases:
                case.begin()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def go_on(self, rounds: int) -> None:
        """Wait until each tool has applied so many times more."""
        for tool in self.tools:
            tool.go_on(rounds)

    def patched(self) -> dict[str, Counter[str]]:
        """How often the operator has written each field of a workload's spec, by the workload."""
        namespace = self.cases[0].scenario.namespace
        requests = self.plane.audit.requests(user=USER, resource="deployments", namespace=namespace, code=200)
        fields: dict[str, Counter[str]] = defaultdict(Counter)
        for request in requests:
            fields[request.name].update(
                (request.body or {}).get("spec", {}).keys() if request.verb == "patch" else ()
            )
        return fields

    def await_rest(self) -> None:
        """Wait until all is as it should be, and stays so while the tools go on. No step was ever undone."""
        for case in self.cases:
            case.scenario.soon(partial(case.has_more_than, 2), "more replicas")
            case.await_larger()
        self.go_on(ROUNDS)
        patched = self.patched()
        for case in self.cases:
            name, workload = case.scenario.name, case.scenario.target
            assert case.set_back() == 0, name
            assert case.scenario.condition("Contested")["status"] == "False", name
            assert workload["metadata"]["labels"] == {"from": "git"}
            assert workload["spec"]["replicas"] > 2
            assert case.is_larger()
            assert case.in_place is not bool(patched[name]["template"]), name


@pytest.fixture
def cases(new_scenario: NewScenario, operator: Operator, request: pytest.FixtureRequest) -> list[Case]:
    """A case of each tool that the test names, blend and strategy."""
    variants = itertools.product(request.param, BLENDS, STRATEGIES)
    made = [Case(new_scenario, *variant) for variant in variants]
    parallel([case.scenario for case in made])
    return made


@pytest.mark.parametrize("cases", [(ARGO, FLUX)], indirect=True, ids=["tools"])
def test_what_is_not_in_git_is_left_alone(plane: ControlPlane, cases: list[Case]) -> None:
    """No replicas, and no resources where the template is patched. Where pods are resized, resources are in Git."""
    with AtWork(
        plane, cases, lambda case: in_git(case.scenario.workload, replicas=False, resources=case.in_place)
    ) as work:
        work.await_rest()


@pytest.mark.parametrize("cases", [IGNORING], indirect=True, ids=["tools"])
def test_what_argo_cd_ignores_is_left_alone(plane: ControlPlane, cases: list[Case]) -> None:
    with AtWork(
        plane, cases, lambda case: in_git(case.scenario.workload, replicas=True, resources=True)
    ) as work:
        work.await_rest()


@pytest.mark.parametrize("cases", [(ARGO, ARGO_SERVER_SIDE)], indirect=True, ids=["tools"])
def test_what_is_in_git_is_contested_and_the_operator_stops(plane: ControlPlane, cases: list[Case]) -> None:
    """The operator sets what was set back once more, and then waits. Where pods are resized, resources in Git are no
    contest: those of the template are not touched."""
    with AtWork(
        plane, cases, lambda case: in_git(case.scenario.workload, replicas=True, resources=True)
    ) as work:
        began = time.monotonic()
        for case in cases:
            # The Event stays. The condition is over after a minute if larger pods make more of them needless.
            (event, *_) = case.scenario.soon(partial(case.scenario.events, "SetBack"), "an Event SetBack")
            message = event["message"]
            assert case.tool.manager in message
            assert "replicas" in message
        # All are contested for a minute at least: larger pods of one must not keep the others from being looked at.
        for case in cases:
            if case.in_place:
                case.await_larger()
        work.go_on(ROUNDS)
        most = 2 + (time.monotonic() - began) // RETRY
        patched = work.patched()
        for case in cases:
            fields = patched[case.scenario.name]
            case.scenario.await_replicas(2)
            assert 1 <= fields["replicas"] <= most, case.scenario.name
            assert fields["template"] <= (0 if case.in_place else most), case.scenario.name


def test_replicas_that_are_removed_from_git(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    """Server-side: the operator owns them since its first step, and nothing happens. By client-side apply they fall to
    1, the default, and the operator sets them again; unless the manifest is made the last applied one before."""
    server, client, prepared = (new_scenario(name, create=False) for name in ("server", "client", "prepared"))
    every = (server, client, prepared)
    for scenario, tool in zip(every, (FLUX, ARGO, ARGO), strict=True):
        before = in_git(scenario.workload, replicas=True, resources=True)
        Reapplying(plane, tool, partial(list, [before])).apply()
        scenario.rollout_completes()
        scenario.api.create(scenario.manifest)
        scenario.await_owned()
        scenario.scales()
        scenario.rollout_completes()
    after = {scenario.name: in_git(scenario.workload, replicas=False, resources=True) for scenario in every}
    plane.kubectl("apply", "set-last-applied", "-f", "-", input=yaml.safe_dump(after[prepared.name]))
    for scenario, tool in zip(every, (FLUX, ARGO, ARGO), strict=True):
        Reapplying(plane, tool, partial(list, [after[scenario.name]])).apply()
    client.await_replicas(4)
    counts = {
        scenario.name: [version.replicas for version in scenario.versions(plane.audit)] for scenario in every
    }
    assert counts["server"][-1] == counts["prepared"][-1] == 4
    assert (
        plane.audit.writers("deployments", "client", client.namespace)[f"system:serviceaccount:{USER}"] == 2
    )
    assert (
        plane.audit.writers("deployments", "server", client.namespace)[f"system:serviceaccount:{USER}"] == 1
    )
    assert (
        plane.audit.writers("deployments", "prepared", client.namespace)[f"system:serviceaccount:{USER}"] == 1
    )


class Chart:
    """A user's chart with one workload."""

    def __init__(self, helm: Path, plane: ControlPlane, scenario: Scenario, folder: Path) -> None:
        self.helm, self.plane, self.scenario, self.folder = helm, plane, scenario, folder
        (folder / "templates").mkdir(parents=True)
        (folder / "Chart.yaml").write_text("{apiVersion: v2, name: chart, version: 0.1.0}")

    def upgrade(
        self, *flags: str, replicas: bool = True, resources: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Install or upgrade it, with or without these fields."""
        manifest = in_git(self.scenario.workload, replicas=replicas, resources=resources)
        (self.folder / "templates/workload.yaml").write_text(yaml.safe_dump(manifest))
        release = (self.scenario.name, self.folder, "--namespace", self.scenario.namespace)
        return run(self.helm, "upgrade", "--install", *release, *flags, kubeconfig=self.plane.kubeconfig)

    def begin(self, *flags: str) -> None:
        """Install it, and create the Hvpa."""
        done = self.upgrade(*flags)
        assert done.returncode == 0, done.stderr
        self.scenario.rollout_completes()
        self.scenario.api.create(self.scenario.manifest)
        self.scenario.await_owned()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_helm_refuses_to_set_back_what_is_in_a_chart_and_takes_one_without_it(
    plane: ControlPlane,
    new_scenario: NewScenario,
    operator: Operator,
    helm: Path,
    tmp_path: Path,
    strategy: str,
) -> None:
    """By force it sets back, and the operator stops."""
    case = Case(new_scenario, HELM, "Additive", strategy)
    chart = Chart(helm, plane, case.scenario, tmp_path / "chart")
    chart.begin()
    case.begin()
    case.scenario.soon(partial(case.has_more_than, 2), "more replicas")
    case.scenario.rollout_completes()  # a size waits for that
    case.await_larger()
    scaled = (case.scenario.replicas, case.scenario.requests["cpu"])
    refusal = chart.upgrade().stderr
    assert 'with "hvpa"' in refusal
    assert ".spec.replicas" in refusal
    assert (".resources.requests.cpu" in refusal) is not case.in_place
    done = chart.upgrade(replicas=False, resources=case.in_place)
    assert done.returncode == 0, done.stderr
    assert (case.scenario.replicas, case.scenario.requests["cpu"]) == scaled
    for number in (1, 2):
        done = chart.upgrade("--force-conflicts")
        assert done.returncode == 0, done.stderr
        if number == 1:
            case.scenario.soon(partial(case.has_more_than, 2), "more replicas again")
    message = case.scenario.await_condition("Contested", "True", "SetBack")["message"]
    assert HELM.manager in message
    assert "replicas" in message


def test_replicas_that_are_removed_from_a_chart_that_is_applied_client_side(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, helm: Path, tmp_path: Path
) -> None:
    """As Helm 3 does, and Helm 4 with its releases. They fall to 1, unless the same upgrade changes over to
    server-side apply."""
    client, server = (new_scenario(name, create=False) for name in ("client", "server"))
    for scenario, *flags in ((client,), (server, "--server-side=true")):
        chart = Chart(helm, plane, scenario, tmp_path / scenario.name)
        chart.begin("--server-side=false")
        scenario.scales()
        scenario.rollout_completes()
        done = chart.upgrade(*flags, replicas=False)
        assert done.returncode == 0, done.stderr
    client.await_replicas(4)
    assert server.replicas == 4
    for scenario, writes in ((client, 2), (server, 1)):
        writers = plane.audit.writers("deployments", scenario.name, scenario.namespace)
        assert writers[f"system:serviceaccount:{USER}"] == writes, scenario.name
