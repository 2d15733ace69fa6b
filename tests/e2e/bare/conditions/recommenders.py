"""Reasons that the HPA and the VPA give: their own conditions, and those of another user's objects."""

from __future__ import annotations

from hvpa.core.values.tuning import MAX_CORRECTIONS
from localcluster.client.api import Json
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import ago, condition, entry
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conditions.row import GATED, HPA, VPA, Act, Row, both, change, content, content_again
from tests.e2e.bare.scaling.test_owned import foreign_hpa, foreign_vpa

GB = 1_000_000_000
HEALTHY_READY = ("True", "Reconciled")
NO_HPA, NO_VPA = ("False", "HpaInactive"), ("False", "VpaInactive")


def hpa_says(scenario: Scenario, *conditions: Json) -> None:
    """The HPA controller has measured nothing, and reports why."""
    status = {"conditions": list(conditions), "currentMetrics": None}
    scenario.api.patch_status(HPA, scenario.name, scenario.namespace, status)


def inactive(reason: str, message: str, since: str | None = None) -> Json:
    return condition("ScalingActive", "False", reason, since) | {"message": message}


def vpa_says(scenario: Scenario, kind: str, message: str) -> None:
    """The recommender sets a condition beside its recommendation."""
    conditions = [condition("RecommendationProvided", "True", "", ago(hours=2)), condition(kind, "True", "")]
    conditions[1]["message"] = message
    scenario.api.patch_status(VPA, scenario.name, scenario.namespace, {"conditions": conditions})


def vpa_has_none(scenario: Scenario) -> None:
    no = condition("RecommendationProvided", "False", "NoPodsMatched") | {"message": "no pods match"}
    scenario.api.patch_status(
        VPA, scenario.name, scenario.namespace, {"conditions": [no], "recommendation": None}
    )


def recommender_stops(scenario: Scenario) -> None:
    """The recommender writes a last time; its upper bounds would move from now on."""
    moving = entry("app", scenario.requests)
    moving["upperBound"] = {"memory": str(2 * GB + 1)}
    provided = condition("RecommendationProvided", "True", "", ago(hours=2))
    status = {"conditions": [provided], "recommendation": {"containerRecommendations": [moving]}}
    scenario.api.patch_status(VPA, scenario.name, scenario.namespace, status)


def theirs(scenario: Scenario) -> str:
    """The name of another user's HPA or VPA."""
    return f"{scenario.name}-theirs"


def without(kind: str) -> Act:
    """A user deletes the HPA or VPA; the operator makes its own again."""

    def act(scenario: Scenario) -> None:
        scenario.api.delete(kind, theirs(scenario), scenario.namespace)
        content_again(scenario)

    return act


def names(part: str) -> Act:
    """The user names another user's HPA or VPA instead of having one deployed."""
    return lambda scenario: scenario.change({part: {"deploy": False, "name": theirs(scenario)}})


def deploys(part: str) -> Act:
    """The user has an HPA or VPA deployed again."""
    return both(change({part: {"deploy": True, "name": None}}), content_again)


def vpa_of_another(scenario: Scenario) -> None:
    target = samples.target_of(scenario.workload) | {"name": "another"}
    scenario.api.create(samples.vpa(theirs(scenario), scenario.namespace, target))


def named_vpa_of_mode_off(scenario: Scenario) -> None:
    """The user names another user's VPA, which recommends what is requested and does no more."""
    foreign_vpa(scenario, theirs(scenario), mode="Off")
    scenario.vpa_recommends(name=theirs(scenario), **scenario.requests)
    names("vpa")(scenario)


def acts(mode: str) -> Act:
    """Another user's VPA gets this mode. (In one write: of two, the operator may see the first alone.)"""
    spec = {"spec": {"updatePolicy": {"updateMode": mode}}}
    return lambda scenario: scenario.api.patch(VPA, theirs(scenario), scenario.namespace, spec)


def without_requests(scenario: Scenario) -> None:
    container = {"name": "app", "resources": {"requests": None}}
    scenario.change_workload({"template": {"spec": {"containers": [container]}}})
    scenario.rollout_completes()


def insists(scenario: Scenario) -> None:
    """The HPA wants 9 replicas again and again, though what it has measured calls for no more."""
    measured = scenario.hpa_status(2)["currentMetrics"]
    for _ in range(MAX_CORRECTIONS):
        scenario.hpa_wants(9, currentMetrics=measured)
        scenario.soon(lambda: scenario.hvpa["spec"]["replicas"] == 2, "the HPA's desired replicas corrected")
    scenario.hpa_wants(9, currentMetrics=measured)


ROWS = (
    Row(
        "the HPA has no metrics",
        lambda scenario: hpa_says(scenario, inactive("FailedGetResourceMetric", "no metrics known")),
        NO_HPA,
        content,
        others=(("HpaActive", "False", "FailedGetResourceMetric"),),
        text="no metrics known",
        to_act=("FailedGetResourceMetric",),
    ),
    Row(
        "the HPA has no metrics for less than a minute",
        lambda scenario: hpa_says(scenario, inactive("FailedGetResourceMetric", "no metrics known", ago())),
        NO_HPA,
        content,
        others=(("HpaActive", "False", "NoMetrics"),),
        text="no metrics for less than a minute (FailedGetResourceMetric: no metrics known)",
    ),
    Row(
        "the HPA is inactive and gives no reason that can be passed on",
        lambda scenario: hpa_says(scenario, inactive("no\nreason", "it does not scale")),
        NO_HPA,
        content,
        others=(("HpaActive", "False", "ScalingInactive"),),
        text="it does not scale",
        to_act=("ScalingInactive",),
    ),
    Row(
        "the HPA has measured nothing yet",
        hpa_says,
        NO_HPA,
        content,
        others=(("HpaActive", "False", "NoMetrics"),),
        text="measured none of its metrics",
    ),
    Row(
        "the HPA wants what its metrics do not call for",
        insists,
        HEALTHY_READY,
        content,
        others=(("HpaActive", "True", "StaleDesiredReplicas"),),
        text="the HPA still recommends 9 replicas",
        to_act=("StaleDesiredReplicas",),
    ),
    Row(
        "another user's HPA scales the workload",
        lambda scenario: foreign_hpa(scenario, theirs(scenario)),
        NO_HPA,
        without(HPA),
        others=(("HpaActive", "False", "ForeignHpa"),),
        text="-theirs",
        to_act=("ForeignHpa",),
    ),
    Row(
        "the named HPA does not exist",
        names("hpa"),
        NO_HPA,
        deploys("hpa"),
        others=(("HpaActive", "False", "HpaNotFound"),),
        text="-theirs does not exist",
        to_act=("HpaNotFound",),
    ),
    Row(
        "another user's VPA acts on the workload",
        lambda scenario: foreign_vpa(scenario, theirs(scenario), mode="Recreate"),
        NO_VPA,
        without(VPA),
        others=(("VpaActive", "False", "ForeignVpa"),),
        text="-theirs",
        to_act=("ForeignVpa",),
    ),
    Row(
        "the named VPA does not exist",
        names("vpa"),
        NO_VPA,
        deploys("vpa"),
        others=(("VpaActive", "False", "VpaNotFound"),),
        text="-theirs does not exist",
        to_act=("VpaNotFound",),
    ),
    Row(
        "the named VPA does more than recommend",
        both(named_vpa_of_mode_off, acts("Recreate")),
        NO_VPA,
        acts("Off"),
        others=(("VpaActive", "False", "NotRecommendationOnly"),),
        text="must have updateMode Off",
        to_act=("NotRecommendationOnly",),
    ),
    Row(
        "the named VPA is for another workload",
        both(vpa_of_another, names("vpa")),
        NO_VPA,
        deploys("vpa"),
        others=(("VpaActive", "False", "OtherTarget"),),
        text="is for another target",
        to_act=("OtherTarget",),
    ),
    Row(
        "the VPA has no recommendation",
        vpa_has_none,
        NO_VPA,
        content,
        others=(("VpaActive", "False", "NoRecommendation"),),
        text="no pods match",
    ),
    *(
        Row(
            f"the VPA says {reason}",
            lambda scenario, reason=reason: vpa_says(scenario, reason, "the VPA's own words"),  # type: ignore[misc]
            NO_VPA,
            content,
            others=(("VpaActive", "False", reason),),
            text="the VPA's own words",
            to_act=(reason,),
        )
        for reason in ("ConfigUnsupported", "ConfigDeprecated", "LowConfidence")
    ),
    Row(
        "the recommender is down",
        recommender_stops,
        NO_VPA,
        content,
        others=(("VpaActive", "False", "RecommendationStale"),),
        text="was last updated at",
        to_act=("RecommendationStale",),
    ),
    Row(
        "the VPA recommends for a container that is gone",
        lambda scenario: scenario.vpa_recommends(**scenario.requests, others={"gone": {"cpu": "1"}}),
        HEALTHY_READY,
        content,
        others=(("VpaActive", "True", "UnknownContainer"),),
        text="gone",
        to_act=("UnknownContainer",),
    ),
    Row(
        "the pod template has no requests",
        without_requests,
        GATED,
        both(lambda scenario: scenario.set_requests(cpu="500m", memory="500M"), content),
        others=(("VpaActive", "True", "MissingRequest"),),
        gate="UpdatePolicy",
        text="app cpu",
        to_act=("MissingRequest",),
        changes={"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}},
    ),
)
