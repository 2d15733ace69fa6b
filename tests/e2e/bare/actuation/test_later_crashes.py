"""SIGKILL at the writes that follow a resize in place: the fall to the pod template, a size that is taken back, memory
that ran out. Another operator goes on, and nothing is written or decided twice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.fault_points import VARIABLE
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged, weight
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.conftest import USER
from tests.e2e.bare.outcome import dying

USUAL: Json = {"cpu": "500m", "memory": "500M"}


class Plot:
    """An Hvpa of two pods whose sizes are those of a VPA, an operator that dies, and what comes before and after."""

    strategy: ClassVar[Json] = {"type": "InPlace"}
    recommended: ClassVar[Json] = USUAL
    """What the VPA wants, and the first pod is asked to have, before the operator dies."""

    def __init__(self, plane: ControlPlane) -> None:
        changes = merged(merged(VERTICAL_ONLY, weight(100)), {"updateStrategy": self.strategy})
        self.one = Scenario(plane.api, new_namespace(plane.api, "later"), "app", changes=changes)
        self.pods = Pods(self.one)

    def begins(self) -> None:
        """Until an operator has done what comes before."""
        self.one.await_owned()
        self.names = [self.pods.start(str(number)) for number in range(2)]
        self.one.vpa_recommends(**self.recommended)

    def has_begun(self) -> None:
        self.one.await_condition("VpaActive", "True", "Recommending")
        self.asks(self.names[0], **self.recommended)

    def breaks(self) -> None:
        """While there is no operator: what the next one dies of."""
        raise NotImplementedError

    def ends(self, plane: ControlPlane) -> None:
        """How it stands once another operator has gone on."""
        raise NotImplementedError

    def asks(self, name: str, **requests: str) -> None:
        self.one.soon(partial(self.pods.requests, name, **requests), f"{requests} of {name}")

    def is_reported_once(self, reason: str) -> None:
        assert [entry["count"] for entry in self.one.events(reason)] in ([], [1])


class Falls(Plot):
    """A pod can't be resized: the template is patched."""

    strategy: ClassVar[Json] = {"type": "InPlaceOrRollout"}
    recommended: ClassVar[Json] = {"cpu": "800m", "memory": "600M"}

    def breaks(self) -> None:
        self.pods.report(self.names[0], "PodResizePending", "Infeasible", "no room")

    def ends(self, plane: ControlPlane) -> None:
        self.one.await_requests(**self.recommended)
        self.one.rollout_completes()
        self.one.soon(lambda: "replacing" in self.one.status, "pods that are replaced for a day")
        for name in self.names:
            self.one.api.delete("Pod", name, self.one.namespace)
            self.pods.start(f"new-{name}")
        self.one.await_ready()
        assert len(self.one.patches(plane.audit, USER)) == 1
        assert self.one.resources()["requests"] == self.recommended


class TakenBack(Plot):
    """The first pod does not stand the size that is tried on it."""

    strategy: ClassVar[Json] = {"type": "InPlace", "canary": {"duration": "10m"}}
    recommended: ClassVar[Json] = {"cpu": "500m", "memory": "400M"}

    def breaks(self) -> None:
        self.pods.ran_out_of_memory(self.names[0])

    def ends(self, plane: ControlPlane) -> None:
        self.asks(self.names[0], **USUAL)
        self.one.await_blocked("RolledBack", "vertical", "down")
        assert self.pods.requests(self.names[1], **USUAL)
        assert self.one.status["rolledBack"]["count"] == 1
        assert "canary" not in self.one.status["desired"]
        self.is_reported_once("RolledBack")


class Starves(Plot):
    """The first pod runs out of memory: it is raised, and then the other one."""

    raised: ClassVar[Json] = {"cpu": "500m", "memory": "604858k"}
    """By 100Mi, once."""

    def breaks(self) -> None:
        self.pods.ran_out_of_memory(self.names[0])

    def ends(self, plane: ControlPlane) -> None:
        for name in self.names:
            self.asks(name, **self.raised)
            self.pods.resize(name)
        self.one.soon(lambda: self.one.status["actuation"]["resized"] == "2/2", "both pods resized")
        memory = self.raised["memory"]
        assert self.one.status["desired"]["containers"][0]["requests"] == {"memory": memory}
        self.is_reported_once("ScaledUp")


DECIDED = ("before-patch-hvpas-status", "after-patch-hvpas-status", "after-patch-pods-resize")
"""Before and after the record of what was decided, and after the first pod was asked for it."""
PLOTS: dict[type[Plot], tuple[str, ...]] = {
    Falls: ("before-patch-deployments", "after-patch-deployments"),
    TakenBack: DECIDED,
    Starves: DECIDED,
}
CASES = [(plot, point) for plot, points in PLOTS.items() for point in points]


@pytest.fixture(scope="module")
def plots(plane: ControlPlane, account: Path) -> Iterator[dict[tuple[type[Plot], str], Plot]]:
    """All cases, after an operator has died at each one's point and another one has gone on."""
    made = {case: case[0](plane) for case in CASES}
    with Operator(plane, account, name="first survivor"):
        for plot in made.values():
            plot.one.create(wait=False)
        for plot in made.values():
            plot.begins()
        for plot in made.values():
            plot.has_begun()
    for plot in made.values():
        plot.breaks()
    operators = [
        Operator(plane, account, "--namespace", plot.one.namespace, env={VARIABLE: point}, name=point)
        for (_, point), plot in made.items()
    ]
    with dying(operators):
        pass
    with Operator(plane, account, name="last survivor"):
        yield made
    for plot in made.values():
        plot.one.delete()


@pytest.mark.parametrize(("plot", "point"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_after_a_sigkill_another_operator_goes_on_and_nothing_is_done_twice(
    plane: ControlPlane, plots: dict[tuple[type[Plot], str], Plot], plot: type[Plot], point: str
) -> None:
    plots[plot, point].ends(plane)
