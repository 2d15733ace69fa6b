"""The worst objects that the API server accepts: the operator says what is wrong with each, stays well, writes no more
than it must, and scales an ordinary workload beside them as ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hvpa.core.model import MOST_RIVALS
from hvpa.core.observing import MOST_CONTAINERS
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import condition, merged, trajectory
from localcluster.workloads.scenario import Scenario
from localcluster.workloads.view import LAST_APPLIED
from tests.e2e.bare.conftest import USER, NewScenario

FORGED = "\x1b[2J\n2026-01-01T00:00:00Z [error    ] forged \u202e\x85\u2028"
LONG = FORGED + "long " * 60_000
"""300 kB."""
CROWD = 60
LONGEST_LINE = 32_768
QUIET = 3.0
"""Seconds that are counted at rest."""
MOST_REQUESTS = 40
"""In such a time, when no object changes but a few."""
Make = Callable[[NewScenario], Scenario]


def crowded_pod(new_scenario: NewScenario) -> Scenario:
    """A pod template of 1500 containers, and recommendations for all of them."""
    scenario = new_scenario(create=False)
    containers = [{"name": f"c-{number}", "image": "app"} for number in range(1500)]
    scenario.workload["spec"]["template"]["spec"]["containers"] = containers
    scenario.create(wait=False)
    reported = scenario.await_condition("Ready", "False", "UnsupportedTarget")
    assert f"more than {MOST_CONTAINERS} containers" in reported["message"]
    return scenario


def crowded_recommendation(new_scenario: NewScenario) -> Scenario:
    """Recommendations for 3000 containers that are not there."""
    scenario = new_scenario()
    others = {f"stranger-{number}": {"cpu": "1"} for number in range(3000)}
    scenario.vpa_recommends(cpu="500m", memory="500M", others=others)
    scenario.await_condition("VpaActive", "True", "UnknownContainer")
    return scenario


def long_texts(new_scenario: NewScenario) -> Scenario:
    """Conditions of HPA and VPA with hundreds of kilobytes that a terminal would obey."""
    scenario = new_scenario()
    inactive = condition("ScalingActive", "False", LONG) | {"message": LONG}
    scenario.hpa_wants(9, conditions=[inactive])
    reported = scenario.await_condition("HpaActive", "False", "ScalingInactive")
    assert "\\x1b[2J\\n2026" in reported["message"]
    assert "\\u202e\\x85\\u2028" in reported["message"]
    assert len(reported["message"]) < 5000
    scenario.await_event("ScalingInactive", "forged")
    return scenario


def wrong_times(new_scenario: NewScenario) -> Scenario:
    """An HPA and a VPA with times beyond the calendar in UTC: of the HPA's, the API server makes year 10000."""
    scenario = new_scenario()
    beyond = "9999-12-31T23:00:00-12:00"
    scenario.hpa_wants(4, conditions=[condition("ScalingActive", "True", "Some", beyond)])
    scenario.vpa_recommends(cpu="600m", since=beyond)
    assert scenario.hpa["status"]["conditions"][0]["lastTransitionTime"].startswith("10000-")
    scenario.await_replicas(4)
    scenario.await_blocked("Weight", "vertical")
    return scenario


def forged_record(new_scenario: NewScenario) -> Scenario:
    """A status and an annotation that another client has written."""
    scenario = new_scenario(changes=trajectory())
    scenario.under(1000)
    scenario.soon(lambda: scenario.status["axes"]["vertical"]["usualDemand"], "what is remembered")
    axes = scenario.status["axes"]
    forged = {"mean": 2**63 - 1, "weight": 2**63 - 1, "present": 1, "time": "9999-12-31T23:59:59Z"}
    axes["vertical"]["usualDemand"][0] |= forged
    axes["vertical"]["usualReplicas"] = forged | {"mean": 1e308, "weight": 1e308, "replicas": 2**31 - 1}
    axes["horizontal"]["appliedFrom"] = {"replicas": -1, "desired": 2**62, "weight": -1e308}
    scenario.api.patch_status("Hvpa", scenario.name, scenario.namespace, {"axes": axes})
    record = '{"horizontal": {"appliedFrom": {"replicas": 1e400, "weight": NaN}}, "vertical": ' + "[" * 20_000
    body = {"metadata": {"annotations": {LAST_APPLIED: record}}}
    scenario.api.patch(scenario.kind, scenario.name, scenario.namespace, body)
    scenario.rollout_completes()
    scenario.soon(
        lambda: scenario.status["axes"]["vertical"]["usualDemand"][0]["mean"] < 2000,
        "a record that makes sense",
    )
    return scenario


def endless_overlap(new_scenario: NewScenario) -> Scenario:
    """A path of two billion replicas whose overlap spans all of them."""
    changes = trajectory(most=2**31 - 1)
    changes["trajectory"] = {"overlap": {"cpu": {"value": "9000000000"}, "memory": {"value": "9Ei"}}}
    scenario = new_scenario(changes=changes)
    scenario.under(900, 900_000_000)
    scenario.await_condition("HpaActive", "True", "Recommending")
    return scenario


def owners_in_a_circle(new_scenario: NewScenario) -> Scenario:
    """HPAs that own each other and scale each other, and all that they can lay hands on."""
    scenario = new_scenario()
    kind = "HorizontalPodAutoscaler"
    owner = {"apiVersion": "autoscaling/v2", "kind": kind, "controller": True}
    made: list[Json] = []
    for name in ("a", "b"):
        target = {
            "apiVersion": "autoscaling/v2",
            "kind": kind,
            "name": f"{scenario.name}-{'ab'.replace(name, '')}",
        }
        spec = {"scaleTargetRef": target, "maxReplicas": 5}
        metadata = {"name": f"{scenario.name}-{name}", "namespace": scenario.namespace}
        body = {"apiVersion": "autoscaling/v2", "kind": kind, "metadata": metadata, "spec": spec}
        made.append(scenario.api.create(body))
    for index, other in ((0, 1), (1, 0)):
        named = {"name": made[other]["metadata"]["name"], "uid": made[other]["metadata"]["uid"]}
        references = [owner | named] + [
            {
                "apiVersion": "autoscaling.k8s.io/v1alpha1",
                "kind": "Hvpa",
                "name": f"h-{number}",
                "uid": f"{number}",
            }
            for number in range(500)
        ]
        change = {"metadata": {"ownerReferences": references}}
        scenario.api.patch(kind, made[index]["metadata"]["name"], scenario.namespace, change)
    scenario.await_condition("Ready", "False", "HpaInactive")  # no HPA controller runs
    return scenario


HOSTILE: tuple[Make, ...] = (
    crowded_pod,
    crowded_recommendation,
    long_texts,
    wrong_times,
    forged_record,
    endless_overlap,
    owners_in_a_circle,
)


def one_target(scenario: Scenario) -> None:
    """Many Hvpas that name one workload, none of which scales it then."""

    def create(number: int) -> None:
        spec = scenario.manifest["spec"]
        metadata = {"name": f"{scenario.name}-{number}", "namespace": scenario.namespace}
        scenario.api.create(merged(scenario.manifest, {"metadata": metadata, "spec": spec}))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(create, range(CROWD)))
    reported = scenario.await_condition("Ready", "False", "TargetShared")
    scenario.soon(
        lambda: f"more than {MOST_RIVALS} other Hvpas" in scenario.condition("Ready")["message"],
        "many rivals",
    )
    assert reported["message"].isprintable()


def refused_for_ever(new_scenario: NewScenario) -> Scenario:
    """An HPA whose template the API server takes as a part of the Hvpa and never as an HPA."""
    template = {"metadata": {"annotations": {"note": LONG}}}
    scenario = new_scenario(create=False, changes={"hpa": {"template": template}}).create(wait=False)
    scenario.soon(lambda: "annotations" in scenario.status["lastError"]["description"], "the error")
    return scenario


def scales(scenario: Scenario, count: int) -> None:
    scenario.hpa_wants(count)
    scenario.await_replicas(count)
    scenario.rollout_completes()


def log_is_sound(operator: Operator) -> None:
    """Each line is one entry, of bounded length, and can be looked at."""
    text = operator.log.read_text(errors="strict")
    lines = text.split("\n")
    assert max(map(len, lines)) < LONGEST_LINE
    assert [line for line in lines if not line.isprintable()] == []
    assert [line for line in lines if line.startswith("2026-01-01")] == []
    assert "reconcile crashed" not in text
    assert "Traceback" not in text


def names_at_rest(plane: ControlPlane) -> set[str]:
    """What the operator asks for within some seconds (an Event's name begins with its Hvpa's)."""
    mark = plane.audit.mark()
    time.sleep(QUIET)
    requests = [request for request in plane.audit.requests(mark, user=USER) if request.verb != "watch"]
    assert len(requests) < MOST_REQUESTS
    return {request.name.split(".")[0] for request in requests}


@pytest.fixture
def ordinary(new_scenario: NewScenario) -> Scenario:
    return new_scenario()


def test_hostile_objects_harm_no_other_hvpa(
    plane: ControlPlane, new_scenario: NewScenario, ordinary: Scenario, operator: Operator
) -> None:
    shared = new_scenario()
    with ThreadPoolExecutor(3) as threads:
        made = [threads.submit(make, new_scenario) for make in HOSTILE]
        crowd = threads.submit(one_target, shared)
        scales(ordinary, 5)  # while they come
        crowd.result()
        for future in made:
            future.result()
    wait_for(lambda: names_at_rest(plane) == set(), 120, "rest")
    refused = refused_for_ever(new_scenario)
    scales(ordinary, 7)
    scales(ordinary, 3)
    wait_for(
        lambda: names_at_rest(plane) <= {refused.name}, 120, "rest but for what is tried again, ever later"
    )
    assert operator.process.alive
    operator.await_ready()
    assert len(operator.metrics()) < 60_000
    log_is_sound(operator)
