"""SIGKILL at each named fault point (`localcluster/operator/fault_points.py`): afterwards all stands as after an
undisturbed run.

Each write has its points in the phases in which it comes: setting up (status, scale replicas, HPA and VPA, Events),
tidying up (what is found is adopted, or deleted where there is one too many), letting go (of what lost its labels),
reporting again (an Event that is counted), and one step on both axes at once (workload, status, Events). So that a step
is one decision, the Hvpas are paused while recommendations are written. The points of the Lease are in `test_lease.py`,
those of resizes in place in `actuation/test_crashes.py`.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hvpa.api.hvpa.resource import API_VERSION
from hvpa.api.objects.kinds import KINDS
from hvpa.core.model import ADOPTED
from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.fault_points import POINTS, VARIABLE
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.conftest import USER
from tests.e2e.bare.outcome import HPA, VPA, applied_from, dying, outcome

RECOMMENDERS = ("horizontalpodautoscalers", "verticalpodautoscalers")
UNDISTURBED = "undisturbed"
PHASES: dict[str, tuple[str, ...]] = {
    "setting up": (
        "patch-hvpas-status",
        "patch-hvpas",
        *(f"apply-{resource}" for resource in RECOMMENDERS),
        "create-events",
    ),
    "tidying up": tuple(f"{verb}-{resource}" for verb in ("apply", "delete") for resource in RECOMMENDERS),
    "reporting again": ("patch-events",),
    "letting go": tuple(f"patch-{resource}" for resource in RECOMMENDERS),
    "stepping": ("patch-deployments", "patch-hvpas-status", "create-events"),
}
"""What happens, and the writes at which a process dies then."""
BEGINNING = ("setting up", "tidying up", "reporting again")
"""Happens at the first start; the rest later, to what an operator has set up."""
STEPPING = ("setting up", "reporting again", "stepping")
"""Where all Hvpas take a step in the end, by one operator or the next."""
LATE = 20
"""Seconds that the last write may be late."""
Case = tuple[str, str]
"""A point (or UNDISTURBED), and the phase."""
CASES: list[Case] = [
    (point, phase)
    for phase, writes in PHASES.items()
    for point in (UNDISTURBED, *(point for point in POINTS if point.partition("-")[2] in writes))
]


def test_every_write_is_died_at_before_and_after() -> None:
    """Of the kinds of workloads one stands for all: their writes differ in the path."""
    elsewhere = ("-leases", "-scale", "-resize", "-hvpasizes")
    alike = tuple(f"-patch-{kind.lower()}s" for kind in KINDS if kind != "Deployment")
    expected = {point for point in POINTS if not point.endswith(elsewhere + alike)}
    assert {point for point, _ in CASES} - {UNDISTURBED} == expected


class Cases:
    """One scenario per case, each in a namespace of its own, and operators for some of them."""

    def __init__(self, plane: ControlPlane, account: Path) -> None:
        self.plane = plane
        self.account = account
        self.scenarios = {case: self._scenario(case[1]) for case in CASES}

    def _scenario(self, phase: str) -> Scenario:
        mode = "Paused" if phase in STEPPING else "Apply"
        space = new_namespace(self.plane.api, "crash")
        return Scenario(self.plane.api, space, "app", changes={**weight(50), "mode": mode})

    def of(self, *phases: str) -> list[Scenario]:
        """The scenarios of these phases."""
        return [scenario for (_, phase), scenario in self.scenarios.items() if phase in phases]

    def all_die(self, *phases: str) -> None:
        """An operator for each case of these phases: each dies at its point."""
        mortal = [case for case in CASES if case[1] in phases and case[0] != UNDISTURBED]
        operators = [self._operator(case) for case in mortal]
        with dying(operators):
            for case, operator in zip(mortal, operators, strict=True):
                if case[1] == "reporting again":
                    pause_until_death(self.scenarios[case], operator)

    def _operator(self, case: Case) -> Operator:
        flags = ("--namespace", self.scenarios[case].namespace)
        return Operator(self.plane, self.account, *flags, env={VARIABLE: case[0]}, name=case[0])


def pause_until_death(scenario: Scenario, operator: Operator) -> None:
    """Let a paused Hvpa go on and pause it again, which is reported again, until the operator dies of it."""

    def shown(status: str) -> bool:
        return not operator.process.alive or scenario.condition("Paused").get("status") == status

    scenario.soon(partial(shown, "True"), "that it is paused")
    while operator.process.alive:
        for mode, status in (("Apply", "False"), ("Paused", "True")):
            scenario.change({"mode": mode})
            scenario.soon(partial(shown, status), mode)


def find_some(scenario: Scenario) -> None:
    """There are two HPAs and two VPAs that match the selectors, before the Hvpa is there. One of each acts."""
    hvpa = {"apiVersion": API_VERSION, "kind": "Hvpa", "name": scenario.name}
    target = samples.target_of(scenario.workload)
    for made in (
        samples.hpa("a", scenario.namespace, target),
        samples.vpa("a", scenario.namespace, target, mode="Recreate"),
        samples.hpa("b", scenario.namespace, hvpa),
        samples.vpa("b", scenario.namespace, target, mode="Off"),
    ):
        made["metadata"]["labels"] = {"hvpa": scenario.name}
        scenario.api.create(made)


def take_away(scenario: Scenario) -> None:
    """A user takes the HPA and the VPA by their labels."""
    for kind in (HPA, VPA):
        scenario.api.patch(
            kind, scenario.name, scenario.namespace, {"metadata": {"labels": {"hvpa": "elsewhere"}}}
        )


@pytest.fixture(scope="module")
def cases(plane: ControlPlane, account: Path) -> Iterator[Cases]:
    """All cases, run to their ends."""
    cases = Cases(plane, account)
    for scenario in cases.of("tidying up"):
        find_some(scenario)
    for scenario in cases.scenarios.values():
        scenario.create(wait=False)
    cases.all_die(*BEGINNING)
    with Operator(plane, account, name="first survivor"):
        recommend(cases.of(*STEPPING))
        for scenario in cases.of("letting go"):
            scenario.await_owned()
    for scenario in cases.of(*STEPPING):
        scenario.change({"mode": "Apply"})
    for scenario in cases.of("letting go"):
        take_away(scenario)
    cases.all_die(*(phase for phase in PHASES if phase not in BEGINNING))
    with Operator(plane, account, name="last survivor") as survivor:
        for scenario in cases.scenarios.values():
            with contextlib.suppress(TimeoutError):  # the case's own test says what is amiss
                scenario.soon(partial(has_ended, scenario), "the end")
        wait_for(lambda: survivor.metric("hvpa_queue_depth") == 0, 60, "an empty queue")
        yield cases
    for scenario in cases.scenarios.values():
        scenario.delete()


def recommend(scenarios: list[Scenario]) -> None:
    """Wait until they are set up, and recommend something on both axes."""
    for scenario in scenarios:
        scenario.await_owned()
        scenario.hpa_wants(6)
        scenario.vpa_recommends(cpu="1500m", memory="1500M")
    for scenario in scenarios:
        ready = partial(scenario.recommends, 4, cpu="1", memory="1G")
        scenario.soon(ready, "a recommendation on both axes")


def has_ended(scenario: Scenario) -> bool:
    """A scenario is at its end: the step is reported, what was found is tidy, what was taken is let go."""
    if scenario.manifest["spec"]["mode"] == "Paused":
        is_ready = scenario.condition("Ready").get("status") == "True"
        return is_ready and applied_from(scenario.status["axes"]) == applied_from(scenario.record) != [
            None,
            None,
        ]
    owned = [
        recommender["metadata"]
        for kind in (HPA, VPA)
        for recommender in scenario.api.list(kind, scenario.namespace)
    ]
    names = {metadata["name"] for metadata in owned}
    if "a" in names:
        return len(owned) == 2 == sum(ADOPTED in metadata.get("annotations", {}) for metadata in owned)
    return len(owned) == 3 and sum(bool(metadata.get("ownerReferences")) for metadata in owned) == 1


@pytest.mark.parametrize("case", CASES, ids=", ".join)
def test_after_a_sigkill_all_is_as_in_an_undisturbed_run_and_at_most_one_step_was_taken(
    cases: Cases, case: Case
) -> None:
    scenario, phase = cases.scenarios[case], case[1]
    steps = phase in STEPPING
    undisturbed = cases.scenarios[UNDISTURBED, phase]
    with contextlib.suppress(TimeoutError):  # a last status may be on its way
        scenario.soon(lambda: outcome(scenario) == outcome(undisturbed), "the same", LATE)
    assert outcome(scenario) == outcome(undisturbed)
    assert scenario.requests["cpu"] == ("1" if steps else "500m")
    assert scenario.replicas == (4 if steps else 2)
    assert len(scenario.patches(cases.plane.audit, USER)) == steps
    events = Counter((event["reason"], event["message"], event["count"]) for event in scenario.events())
    times = {key: count for key, count in events.items() if key[0].startswith("Scaled")}
    assert set(times.values()) <= {1}
    assert {key[2] for key in times} <= {1}


def test_what_an_undisturbed_run_leaves_is_what_is_meant(cases: Cases) -> None:
    tidy, gone = (outcome(cases.scenarios[UNDISTURBED, phase]) for phase in ("tidying up", "letting go"))
    assert [len(tidy[kind]) for kind in (HPA, VPA)] == [1, 1]
    assert [recommender["owners"] for kind in (HPA, VPA) for recommender in tidy[kind]] == [[], []]
    assert [recommender["owners"] for recommender in gone[HPA]] == [[]]
    assert sorted(recommender["owners"] for recommender in gone[VPA]) == [[], ["Hvpa"]]
    counts = [
        sum(
            event["count"]
            for event in cases.scenarios[f"{when}-patch-events", "reporting again"].events("Paused")
        )
        for when in ("before", "after")
    ]
    assert counts == [1, 2]
