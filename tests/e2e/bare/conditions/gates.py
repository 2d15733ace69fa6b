"""Gates: what is wanted and waits, because the user says so, after what has just happened, or because another client
else is against it."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import ago, closed_window, merged, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.admission import FEW, Policy
from tests.e2e.bare.conditions.row import GATED, Act, Row, both, change, content, wants
from tests.e2e.bare.conditions.spec import most
from tests.e2e.bare.conditions.workload import no_pods
from tests.e2e.bare.scaling.test_starving import RAISED, oom_killed

HPA_OF_10 = Policy(
    "object.spec.maxReplicas <= 10",
    "at most 10 replicas",
    lambda spec: spec.update(maxReplicas=12),
    "HorizontalPodAutoscaler",
)


def scale_up(axis: str, **fields: object) -> Json:
    return {axis: {"scaleUp": fields}}


def mode(name: str) -> Json:
    return {"updatePolicy": {"updateMode": name}}


def stepped(desired: int, count: int) -> Act:
    """The HPA wants so many replicas, and the step to `count` is made and complete."""

    def act(scenario: Scenario) -> None:
        scenario.hpa_wants(desired)
        scenario.await_replicas(count)
        scenario.rollout_completes()

    return act


def contested(scenario: Scenario) -> None:
    """Another client reverts the count twice. On the way down the operator waits for five minutes, long enough to
    look at it."""
    scenario.hpa_wants(1)
    for _ in range(2):
        scenario.await_replicas(1)
        scenario.rollout_completes()
        scenario.change_workload({"replicas": 2}, "gitops")


def out_of_memory_again(scenario: Scenario) -> None:
    """A container ran out of memory, and again with what it was raised to."""
    oom_killed(scenario, "a")
    scenario.await_requests(memory=RAISED)
    scenario.rollout_completes()
    scenario.vpa_recommends(**scenario.requests)
    scenario.soon(lambda: scenario.status["overrideScaleUpStabilization"] is False, "the step known")
    oom_killed(scenario, "b", 2)  # with the new resources, after the step
    scenario.soon(
        lambda: scenario.status["overrideScaleUpStabilization"] is True, "the container known to starve"
    )


def out_of_memory(scenario: Scenario) -> None:
    """The VPA recommends less memory, and a container runs out of all that it may have."""
    scenario.vpa_recommends(cpu="500m", memory="400M")
    scenario.change(most(memory="500M"))
    oom_killed(scenario, "a")


ROWS = (
    Row(
        "scaling out is switched off",
        wants(6),
        GATED,
        content,
        gate="UpdatePolicy",
        text="replicas 2 -> 4 held by UpdatePolicy",
        columns={"CURRENT": "2", "DESIRED": "4"},
        changes=scale_up("hpa", **mode("Off")),
    ),
    Row(
        "replicas have no weight",
        wants(6),
        GATED,
        content,
        gate="Weight",
        text="replicas 2 -> 6 held by Weight",
        columns={"CURRENT": "2", "DESIRED": "2"},
        changes=weight(100),
    ),
    Row(
        "the VPA is young",
        lambda scenario: scenario.vpa_recommends(cpu="250m", memory="500M", since=ago(minutes=30)),
        GATED,
        content,
        others=(("VpaActive", "True", "YoungHistory"),),
        gate="MinHistory",
        text="cpu 500m -> 375m held by MinHistory",
    ),
    Row(
        "a size waits for approval",
        lambda scenario: scenario.vpa_recommends(cpu="1", memory="500M"),
        GATED,
        content,
        gate="Approval",
        text="held by Approval",
        changes={"mode": "Review"},
    ),
    Row(
        "a container ran out of memory again, less than ten minutes after its memory was raised for that",
        out_of_memory_again,
        GATED,
        both(no_pods, content),
        gate="RecentRaise",
        text="held by RecentRaise",
    ),
    Row(
        "a container ran out of all the memory that it may have, and the VPA wants less",
        out_of_memory,
        ("True", "Saturated"),
        both(no_pods, change(most(memory="2G")), content),
        gate="OutOfMemory",
        text="ran out of 500M, and maxAllowed allows no more",
        to_act=("Saturated",),
        changes={"vpa": {"scaleDown": {"minChange": {"memory": {"value": "200M"}}}}},
    ),
    Row(
        "a step was made less than stabilizationDuration ago",
        both(stepped(4, 3), wants(9)),
        GATED,
        content,
        gate="StabilizationWindow",
        text="replicas 3 -> 6 held by StabilizationWindow",
        changes=scale_up("hpa", stabilizationDuration="1h"),
    ),
    Row(
        "no maintenance window is open",
        wants(6),
        GATED,
        content,
        gate="MaintenanceWindow",
        text="replicas 2 -> 4 held by MaintenanceWindow",
        changes=merged(scale_up("hpa", **mode("MaintenanceWindow")), closed_window()),
    ),
    Row(
        "a rollout is under way",
        both(
            lambda scenario: scenario.rollout(complete=False),
            lambda scenario: scenario.vpa_recommends(cpu="1500m", memory="500M"),
        ),
        GATED,
        content,
        gate="Rollout",
        text="cpu 500m -> 1 held by Rollout",
    ),
    Row(
        "the HPA has not measured the last step yet",
        both(stepped(6, 4), wants(6)),
        GATED,
        content,
        gate="Measurement",
        text="replicas 4 -> 5 held by Measurement",
    ),
    Row(
        "a change is too small",
        wants(4),
        GATED,
        content,
        gate="MinChange",
        text="replicas 2 -> 3 held by MinChange",
        changes=scale_up("hpa", minChange={"replicas": {"value": 2}}),
    ),
    Row(
        "maxStep has left a part of the way",
        stepped(7, 4),
        GATED,
        content,
        gate="MaxStep",
        text="replicas 4 -> 7 held by MaxStep",
        columns={"CURRENT": "4", "DESIRED": "7"},
        changes=merged(weight(0), scale_up("hpa", maxStep={"factor": 2, "minimum": 4})),
    ),
    Row(
        "another client reverts replicas",
        contested,
        ("False", "Contested"),
        both(lambda scenario: scenario.change_workload({"replicas": 1}, "gitops"), content),
        others=(("Contested", "True", "SetBack"),),
        gate="Contested",
        text="gitops keeps reverting replicas: remove spec.replicas from its manifest",
        columns={"DESIRED": "1"},
        to_act=("SetBack",),
    ),
    Row(
        "a policy of the cluster refuses replicas",
        both(FEW.impose, wants(6)),
        ("False", "Refused"),
        both(FEW.lift, content),
        gate="Refused",
        text="at most 3 replicas",
        columns={"CURRENT": "2", "DESIRED": "4"},
        to_act=("Refused",),
    ),
    Row(
        "a policy of the cluster refuses the HPA",
        both(HPA_OF_10.impose, change({"hpa": {"template": {"spec": {"maxReplicas": 12}}}})),
        ("False", "WriteFailed"),
        HPA_OF_10.lift,
        text="at most 10 replicas",
        to_act=("WriteFailed",),
    ),
)
