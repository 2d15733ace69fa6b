"""Reasons that the user's spec gives: what it names, deploys and allows."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import hvpa
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conditions.row import HPA, VPA, Row, both, change, content, content_again, wants

NOT_READY = (("HpaActive", "False", "NotReady"), ("VpaActive", "False", "NotReady"))


def rival(scenario: Scenario) -> str:
    return f"{scenario.name}-rival"


def shared(scenario: Scenario) -> None:
    """Another Hvpa applies to the same target."""
    other = hvpa(rival(scenario), scenario.namespace, {"targetRef": {"name": scenario.name}}, scenario.kind)
    scenario.api.create(other)


def no_recommender(scenario: Scenario) -> None:
    scenario.change({"hpa": {"deploy": False}, "vpa": {"deploy": False}})
    for kind in (HPA, VPA):
        scenario.await_gone(kind)


def time_zone(name: str) -> Json:
    return {"maintenanceWindows": [{"schedule": "0 3 * * *", "duration": "1h", "timeZone": name}]}


def most(**resources: str) -> Json:
    """A change of an Hvpa's spec: the VPA's maxAllowed."""
    policy = {"containerPolicies": [{"containerName": "*", "maxAllowed": resources}]}
    return {"vpa": {"template": {"spec": {"resourcePolicy": policy}}}}


def unblocked(scenario: Scenario) -> None:
    content(scenario)
    scenario.await_unblocked()


ROWS = (
    Row(
        "a time zone that is none",
        change(time_zone("Mars/Utopia")),
        ("False", "InvalidSpec"),
        change({"maintenanceWindows": None}),
        others=NOT_READY,
        gate="InvalidSpec",
        text="timeZone",
        columns={"DESIRED": ""},
        to_act=("InvalidSpec",),
    ),
    Row(
        "a target that can't be scaled",
        change({"targetRef": {"kind": "Job"}}),
        ("False", "UnsupportedTarget"),
        change({"targetRef": {"kind": "Deployment"}}),
        others=NOT_READY,
        gate="UnsupportedTarget",
        text="apps/v1 Job is not supported",
        columns={"CURRENT": "", "DESIRED": ""},
        to_act=("UnsupportedTarget",),
    ),
    Row(
        "two Hvpas apply to one target",
        shared,
        ("False", "TargetShared"),
        lambda scenario: scenario.api.delete("Hvpa", rival(scenario), scenario.namespace),
        others=NOT_READY,
        gate="TargetShared",
        text="is also the target of Hvpa",
        columns={"CURRENT": "", "DESIRED": ""},
        to_act=("TargetShared",),
    ),
    Row(
        "neither HPA nor VPA is deployed",
        no_recommender,
        ("False", "NoRecommender"),
        both(change({"hpa": {"deploy": True}, "vpa": {"deploy": True}}), content_again),
        others=(("HpaActive", "False", "NotConfigured"), ("VpaActive", "False", "NotConfigured")),
        gate="NoRecommender",
        text="neither spec.hpa nor spec.vpa",
        to_act=("NoRecommender",),
    ),
    Row(
        "mode Recommend",
        change({"mode": "Recommend"}),
        ("True", "Recommend"),
        change({"mode": "Apply"}),
        columns={"MODE": "Recommend"},
    ),
    Row(
        "mode Paused",
        both(change({"mode": "Paused"}), wants(6)),
        ("True", "Paused"),
        both(unblocked, change({"mode": "Apply"})),
        others=(("Paused", "True", "Paused"),),
        gate="Paused",
        text="replicas 2 -> 4 held by Paused",
        columns={"MODE": "Paused", "CURRENT": "2", "DESIRED": "4"},
        to_act=("Paused",),
    ),
    Row(
        "the VPA asks for more than maxAllowed",
        change(most(cpu="500m")),
        ("True", "Saturated"),
        change({"vpa": {"template": {"spec": None}}}),
        text="the VPA's target reaches maxAllowed, 500m",
        to_act=("Saturated",),
    ),
)
