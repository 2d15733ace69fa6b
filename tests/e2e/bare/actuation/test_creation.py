"""`config/size-at-creation`: new pods have the size that was decided, by a policy of the API server; and how it is
without that. Pods are created as their controllers create them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, install_crds, install_vpa_crd, serves_mutating_policies
from localcluster.programs.build import build
from localcluster.workloads.scenario import Scenario, new_namespace
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.actuation.test_in_place import in_place
from tests.e2e.bare.conftest import NewScenario, Start

DECIDED: Json = {"cpu": "800m", "memory": "600M"}
SIZES = "HvpaSizes"


@pytest.fixture(autouse=True)
def policies(plane: ControlPlane) -> None:
    if not serves_mutating_policies(plane):
        pytest.skip("the API server has no MutatingAdmissionPolicy")


def has_entry(scenario: Scenario) -> bool:
    return f"{scenario.kind}.apps/{scenario.name}" in entries(scenario)


def has_no_entry(scenario: Scenario) -> bool:
    return not has_entry(scenario)


def entries(scenario: Scenario) -> Json:
    """The sizes of the scenario's namespace, by owner."""
    found = scenario.api.find(SIZES, "hvpa", scenario.namespace)
    return dict(found["sizes"]) if found is not None else {}


def test_what_an_hvpa_has_left_behind_goes_when_the_operator_is_back(
    new_scenario: NewScenario, start: Start
) -> None:
    first = start()
    one = new_scenario(changes=in_place())
    Pods(one).start("0")
    one.vpa_recommends(**DECIDED)
    one.soon(lambda: entries(one), "an entry")
    first.kill()
    one.delete()
    one.api.patch(
        SIZES,
        "hvpa",
        one.namespace,
        {"sizes": {"Deployment.apps/other": {"hvpa": "other", "containers": []}}},
    )
    start()
    one.soon(lambda: not entries(one), "no entry any more")


@pytest.fixture
def without() -> Iterator[ControlPlane]:
    """A control plane without `config/size-at-creation`."""
    with ControlPlane(full=False, programs=build(full=False)) as made:
        install_crds(made)
        install_vpa_crd(made)
        yield made


def test_without_the_policy_a_new_pod_is_resized_as_soon_as_it_runs(without: ControlPlane) -> None:
    with Operator(without, without.kubeconfig):
        one = Scenario(without.api, new_namespace(without.api), changes=in_place()).create()
        pods = Pods(one)
        first = pods.start("0")
        one.vpa_recommends(**DECIDED)
        one.soon(partial(pods.requests, first, **DECIDED), "a resize")
        pods.resize(first)
        newer = pods.start("1")
        assert pods.get(newer)["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"] == "500m"
        one.soon(partial(pods.requests, newer, **DECIDED), "a resize of the new pod")
        assert one.status["actuation"]["sizeAtCreation"] is False


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_new_pod_has_the_size_that_was_decided(new_scenario: NewScenario, kind: str) -> None:
    one = new_scenario(kind=kind, changes=in_place())
    pods = Pods(one)
    first = pods.start("0")
    one.vpa_recommends(**DECIDED)
    one.soon(partial(pods.requests, first, **DECIDED), "a resize")
    one.soon(partial(has_entry, one), "an entry")
    assert one.soon(lambda: one.status["actuation"]["sizeAtCreation"], "the size at creation in the status")

    def created() -> bool:  # the API server's policies look at a copy of the object, too
        name = pods.start("1")
        is_sized = pods.requests(name, **DECIDED)
        if not is_sized:
            one.api.delete("Pod", name, one.namespace, grace=0)
        return is_sized

    one.soon(created, "a new pod of the size that was decided")
    assert one.resources()["requests"] == {"cpu": "500m", "memory": "500M"}


@pytest.mark.usefixtures("operator")
def test_what_was_written_goes_with_the_hvpa_and_with_its_strategy(new_scenario: NewScenario) -> None:
    both = [new_scenario(changes=in_place()) for _ in range(2)]
    for one in both:
        Pods(one).start("0")
        one.vpa_recommends(**DECIDED)
    for one in both:
        one.soon(partial(has_entry, one), "an entry")
    both[0].delete()
    both[1].change({"updateStrategy": {"type": "Rollout"}})
    for one in both:
        one.soon(partial(has_no_entry, one), "no entry any more")


@pytest.mark.usefixtures("operator")
def test_a_size_that_is_refused_is_not_given_to_new_pods(new_scenario: NewScenario) -> None:
    """A quota or LimitRange that refuses the size must not keep pods from being created at all."""
    one = new_scenario(changes=in_place())
    limit = {"type": "Container", "max": {"cpu": "1200m"}}
    one.api.create(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "limits", "namespace": one.namespace},
            "spec": {"limits": [limit]},
        }
    )
    pods = Pods(one)
    pods.start("0")
    one.vpa_recommends(cpu="2", memory="600M")
    one.await_condition("Ready", "False", "PodsNotResized")
    one.soon(lambda: not entries(one), "no entry")
    one.soon(
        lambda: pods.requests(pods.start("1"), cpu="500m", memory="500M"), "a new pod of the template's size"
    )
