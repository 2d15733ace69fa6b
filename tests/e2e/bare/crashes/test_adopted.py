"""HPAs and VPAs that an Hvpa adopted act as before once it is gone or only recommends, also if no operator runs
meanwhile, and nothing deletes them. (With the garbage collector: `tests/e2e/full/test_policies.py`.)"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.fault_points import VARIABLE
from localcluster.operator.operator import install_crds
from localcluster.workloads import samples
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario, Start
from tests.e2e.bare.outcome import HPA, VPA

CRD = "hvpas.autoscaling.k8s.io"
ADOPTED = "hvpa.autoscaling.k8s.io/adopted"
KINDS = (HPA, VPA)
Specs = dict[str, Json]


class Adopting:
    """A workload with an HPA and a VPA that act, whose Hvpa may adopt them."""

    def __init__(self, new_scenario: NewScenario) -> None:
        self.scenario = new_scenario(create=False)
        space, target = self.scenario.namespace, samples.target_of(self.scenario.workload)
        for made in (
            samples.hpa("by-hand", space, target, most=7),
            samples.vpa("by-hand", space, target, mode="Recreate"),
        ):
            made["metadata"]["labels"] = {"hvpa": self.scenario.name}
            self.scenario.api.create(made)
        self.before = self.specs()

    def get(self, kind: str) -> Json:
        return self.scenario.api.get(kind, "by-hand", self.scenario.namespace)

    def specs(self) -> Specs:
        return {kind: self.get(kind)["spec"] for kind in KINDS}

    def create(self) -> None:
        """Create the Hvpa, and wait for the adoption."""
        self.scenario.create(wait=False)
        self.await_adoption()

    def create_again(self, **change: Json) -> None:
        """Delete the Hvpa, and create it again at once."""
        self.scenario.delete()
        spec = {**self.scenario.manifest["spec"], **change}
        self.scenario.api.create({**self.scenario.manifest, "spec": spec})

    def adopters(self) -> list[str | None]:
        """The uids of the Hvpas in the annotations."""
        notes = [self.get(kind)["metadata"].get("annotations", {}).get(ADOPTED) for kind in KINDS]
        return [None if note is None else note.split('"uid":"')[1].split('"')[0] for note in notes]

    def await_adoption(self) -> None:
        uid = self.scenario.hvpa["metadata"]["uid"]
        self.soon(lambda: self.adopters() == [uid, uid])
        for kind in KINDS:
            assert "ownerReferences" not in self.get(kind)["metadata"]
            assert self.scenario.api.find(kind, self.scenario.name, self.scenario.namespace) is None

    def await_return(self) -> None:
        self.soon(lambda: self.adopters() == [None, None])
        assert self.specs() == self.before
        for kind in KINDS:
            assert not self.get(kind)["metadata"].get("annotations")

    def soon(self, condition: Callable[[], bool]) -> None:
        wait_for(condition, 30, lambda: f"{self.adopters()}, {self.specs()}")


@pytest.fixture
def adopting(new_scenario: NewScenario) -> Adopting:
    return Adopting(new_scenario)


def test_they_act_again_when_somebody_deletes_the_hvpa(
    plane: ControlPlane, adopting: Adopting, start: Start
) -> None:
    start()
    adopting.create()
    now = adopting.specs()
    assert now[HPA]["scaleTargetRef"]["kind"] == "Hvpa"
    assert now[VPA]["updatePolicy"]["updateMode"] == "Off"
    mark = plane.audit.mark()
    adopting.scenario.delete()
    adopting.await_return()

    def reported() -> set[str]:
        events = plane.api.list("Event", adopting.scenario.namespace)
        return {each["involvedObject"]["kind"] for each in events if each["reason"] == "AdoptedReturned"}

    adopting.soon(lambda: reported() == set(KINDS))
    requests = plane.audit.requests(mark, user=USER, writes=True, namespace=adopting.scenario.namespace)
    assert [
        request
        for request in requests
        if request.verb in ("create", "delete") and request.resource != "events"
    ] == []


def test_they_act_again_at_the_next_start_if_no_operator_ran(adopting: Adopting, start: Start) -> None:
    operator = start()
    adopting.create()
    operator.kill()
    adopting.scenario.delete()
    start()
    adopting.await_return()


@pytest.mark.parametrize(
    "point", ["before-patch-horizontalpodautoscalers", "after-patch-horizontalpodautoscalers"]
)
def test_they_act_again_while_the_hvpa_only_recommends(
    plane: ControlPlane, adopting: Adopting, start: Start, point: str
) -> None:
    """Also if the operator dies before or after the first of the two returns."""
    mortal, scenario = start(env={VARIABLE: point}), adopting.scenario
    adopting.create()
    scenario.change({"mode": "Recommend"})
    assert mortal.process.wait(30) == -9
    operator = start()
    adopting.await_return()
    scenario.await_condition("VpaActive", "False", "NoRecommendation")
    scenario.soon(lambda: scenario.condition("HpaActive")["reason"] == "NoMetrics", "the HPA is read")
    wait_for(lambda: operator.metric("hvpa_queue_depth") == 0, 30, "an empty queue")
    mark = plane.audit.mark()
    scenario.hpa_wants(5, name="by-hand")
    scenario.soon(lambda: scenario.condition("HpaActive")["reason"] == "ReadAsIs", "the HPA is read as it is")
    time.sleep(3)
    requests = plane.audit.requests(mark, user=USER, writes=True, namespace=scenario.namespace)
    written = {(request.resource, request.subresource) for request in requests}
    assert written <= {("hvpas", "status"), ("events", "")}, "nothing of the workload, the HPA and the VPA"
    assert adopting.specs() == adopting.before
    scenario.change({"mode": "Apply"})
    adopting.await_adoption()
    scenario.change({"mode": "Recommend"})
    adopting.await_return()


def test_they_act_again_once_a_deleted_crd_is_installed_again(
    plane: ControlPlane, adopting: Adopting, start: Start
) -> None:
    """Without it, no operator starts."""
    operator = start()
    adopting.create()
    operator.kill()
    try:
        plane.api.delete("CustomResourceDefinition", CRD)
        wait_for(lambda: plane.api.find("CustomResourceDefinition", CRD) is None, 90, "the CRD is gone")
    finally:
        install_crds(plane)
    start()
    adopting.await_return()


def test_an_hvpa_that_was_created_again_adopts_what_it_was_before(adopting: Adopting, start: Start) -> None:
    operator = start()
    adopting.create()
    operator.kill()
    adopting.create_again()
    start()
    adopting.await_adoption()
    adopting.scenario.delete()
    adopting.await_return()


def test_an_hvpa_that_was_created_again_without_selectors_gives_way(adopting: Adopting, start: Start) -> None:
    operator = start()
    adopting.create()
    operator.kill()
    spec = adopting.scenario.manifest["spec"]
    adopting.create_again(hpa={**spec["hpa"], "selector": {}}, vpa={**spec["vpa"], "selector": {}})
    start()
    adopting.await_return()
    adopting.scenario.soon(
        lambda: adopting.scenario.condition("HpaActive").get("reason") == "ForeignHpa", "the foreign HPA"
    )


def test_an_hpa_with_too_large_a_spec_is_not_adopted_and_stays_as_it_is(
    plane: ControlPlane, new_scenario: NewScenario, start: Start
) -> None:
    """Annotations have 256 KiB in all."""
    start()
    scenario = new_scenario(create=False)
    made = samples.hpa("large", scenario.namespace, samples.target_of(scenario.workload))
    made["metadata"]["labels"] = {"hvpa": scenario.name}
    labels = {f"{'l' * 50}{number}": "v" * 60 for number in range(2500)}
    external = {
        "metric": {"name": "q", "selector": {"matchLabels": labels}},
        "target": {"type": "Value", "value": "1"},
    }
    made["spec"]["metrics"].append({"type": "External", "external": external})
    before = plane.api.create(made)["spec"]
    scenario.create(wait=False)
    scenario.soon(lambda: "lastError" in scenario.status, "the refusal")
    assert "annotations: Too long" in scenario.status["lastError"]["description"]
    assert plane.api.get(HPA, "large", scenario.namespace)["spec"] == before


def test_a_made_up_annotation_changes_that_object_once_and_nothing_else(
    plane: ControlPlane, new_scenario: NewScenario, start: Start
) -> None:
    start()
    scenario: Scenario = new_scenario()
    target = {**samples.target_of(scenario.workload), "name": "unknown"}
    made = samples.hpa("forged", scenario.namespace, target)
    mark = plane.audit.mark()
    spec = '{"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}, "maxReplicas": 2}'
    made["metadata"]["annotations"] = {ADOPTED: f'{{"hvpa": "gone", "uid": "x", "spec": {spec}}}'}
    plane.api.create(made)
    scenario.soon(
        lambda: not plane.api.get(HPA, "forged", scenario.namespace)["metadata"].get("annotations"),
        "one return",
    )
    assert plane.api.get(HPA, "forged", scenario.namespace)["spec"]["maxReplicas"] == 2
    requests = plane.audit.requests(mark, user=USER, writes=True, namespace=scenario.namespace)
    patched = [request for request in requests if request.resource == "horizontalpodautoscalers"]
    assert len(patched) == 1
