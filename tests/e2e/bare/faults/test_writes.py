"""Faults of each kind of write: refused, sent elsewhere, lost on the way there or back, or answered with rubbish after
it was carried out. Afterwards all stands as after an undisturbed run, and each step was taken once.

All cases run at the same time, by one operator, each in a namespace of its own: setting up, a step on both axes,
letting the VPA go. The Hvpas are paused while recommendations are written, so that the step is one decision."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.proxy.faults import Damage, Fault
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.conftest import USER
from tests.e2e.bare.outcome import outcome

WRITES = (
    ("patch", "/deployments/app$"),
    ("patch", "/hvpas/app/status$"),
    ("patch", "/hvpas/app$"),
    ("patch", "/horizontalpodautoscalers/app$"),
    ("patch", "/verticalpodautoscalers/app$"),
    ("delete", "/verticalpodautoscalers/app$"),
    ("create", "/events$"),
    ("patch", "/events/"),
)
"""Every kind of write that is made for an Hvpa."""
UNDISTURBED = "undisturbed"
LATE = 20
"""Seconds that the last write may be late."""
Arm = Callable[[Proxy, str, str], Fault]


def refused(code: int, retry_after: int | str | None = None, location: str | None = None) -> Arm:
    return lambda line, verb, path: line.fail(
        code, verb=verb, path=path, retry_after=retry_after, location=location
    )


def damaged(how: Damage) -> Arm:
    return lambda line, verb, path: line.damage(how, verb=verb, path=path, seconds=0.5)


def lost(*, answered: bool) -> Arm:
    def arm(line: Proxy, verb: str, path: str) -> Fault:
        hold = line.hold(verb=verb, path=path, answered=answered)
        hold.drop()
        return hold

    return arm


CASES: dict[str, Arm | None] = {
    UNDISTURBED: None,
    **{str(code): refused(code) for code in (403, 409, 410, 422, 429, 500, 503)},
    "429 with Retry-After": refused(429, 1),
    "429 with Retry-After nan": refused(429, "nan"),
    "503 with Retry-After in the past": refused(503, "-7"),
    "a redirect": refused(307, location="https://127.0.0.1:1/"),
    "lost on its way there": lost(answered=False),
    "lost on its way back": lost(answered=True),
    **{how.value: damaged(how) for how in Damage},
}

REFUSED = {"403", "422"}
"""Answers to the step itself that make two steps of it, one for each axis: `test_refused.py`."""
UNTOLD = {"lost on its way back", Damage.SHORT.value, Damage.CHUNKED.value}
"""Where the answer to the step itself is lost: the operator does not know who took it, and writes no Event."""


class Case:
    """A scenario whose every kind of write fails once."""

    def __init__(
        self, plane: ControlPlane, line: Proxy, arm: Arm | None, writes: Sequence[tuple[str, str]]
    ) -> None:
        space = new_namespace(plane.api, "write")
        self.scenario = Scenario(plane.api, space, "app", changes={**weight(50), "mode": "Paused"})
        self.faults = [arm(line, verb, f"/namespaces/{space}{path}") for verb, path in writes if arm]
        self.scenario.create(wait=False)

    def is_set_up(self) -> bool:
        """HPA and VPA are there, and `spec.replicas` is of use."""
        scenario = self.scenario
        return bool(scenario.hpa and scenario.vpa and scenario.hvpa["spec"]["replicas"])

    def has_stepped(self) -> bool:
        axes, record = self.scenario.status["axes"], self.scenario.record
        return all(axes[axis].get("appliedFrom") == record[axis]["appliedFrom"] for axis in axes)

    def has_let_go(self) -> bool:
        scenario = self.scenario
        is_gone = scenario.api.find("VerticalPodAutoscaler", scenario.name, scenario.namespace) is None
        return is_gone and scenario.condition("VpaActive")["reason"] == "NotConfigured"

    def is_paused(self, wanted: bool) -> bool:
        return bool(self.scenario.condition("Paused")["status"] == str(wanted))

    def is_over(self) -> bool:
        """Every fault was met, by Events too, which are written last and one by one; and nothing fails any more."""
        return all(fault.hits for fault in self.faults) and "lastError" not in self.scenario.status


@pytest.fixture(scope="module")
def cases(plane: ControlPlane, token: str) -> Iterator[dict[str, Case]]:
    """All cases, run to their ends."""
    with plane.proxy() as line, Operator(plane, line.kubeconfig_for(token), "--log-level", "debug") as remote:
        by_name = {
            name: Case(plane, line, arm, WRITES[1:] if name in REFUSED else WRITES)
            for name, arm in CASES.items()
        }
        new_scenario(list(by_name.values()))
        wait_for(lambda: remote.metric("hvpa_queue_depth") == 0, 60, "an empty queue")
        yield by_name
        for case in by_name.values():
            case.scenario.delete()


def new_scenario(cases: list[Case]) -> None:
    def all_come_to(what: Callable[[Case], bool]) -> None:
        for case in cases:
            with contextlib.suppress(TimeoutError):  # the case's own test says what is amiss
                case.scenario.soon(partial(what, case), str(what))

    all_come_to(Case.is_set_up)
    for case in cases:
        case.scenario.hpa_wants(6)
        case.scenario.vpa_recommends(cpu="1500m", memory="1500M")
    all_come_to(lambda case: case.scenario.recommends(4, cpu="1", memory="1G"))
    for case in cases:
        case.scenario.change({"mode": "Apply"})
    all_come_to(Case.has_stepped)
    for case in cases:
        case.scenario.change({"vpa": {"deploy": False}})
    all_come_to(Case.has_let_go)
    for mode in ("Paused", "Apply", "Paused"):  # what is reported again is counted
        for case in cases:
            case.scenario.change({"mode": mode})
        all_come_to(lambda case, paused=mode == "Paused": case.is_paused(paused))  # type: ignore[misc]
    all_come_to(Case.is_over)


@pytest.mark.parametrize("name", CASES)
def test_after_a_fault_of_each_write_all_is_as_in_an_undisturbed_run_and_one_step_was_taken(
    plane: ControlPlane, cases: dict[str, Case], name: str
) -> None:
    case, undisturbed = cases[name], cases[UNDISTURBED].scenario
    scenario = case.scenario
    assert [fault.matcher for fault in case.faults if fault.hits == 0] == []
    with contextlib.suppress(TimeoutError):  # a last status may be on its way
        scenario.soon(lambda: outcome(scenario) == outcome(undisturbed), "the same", LATE)
    assert outcome(scenario) == outcome(undisturbed)
    assert (scenario.replicas, scenario.requests) == (4, {"cpu": "1", "memory": "1G"})
    writes = plane.audit.requests(user=USER, namespace=scenario.namespace, writes=True)
    patches = [request for request in writes if request.resource == "deployments" and request.code == 200]
    assert [patch.verb for patch in patches] == ["patch"]
    deletions = [request for request in writes if request.verb == "delete" and request.code == 200]
    assert [deletion.resource for deletion in deletions] == ["verticalpodautoscalers"]
    steps = scenario.events("Scaled")
    assert len(steps) == (name not in UNTOLD)
    assert {step["count"] for step in steps} <= {1}
