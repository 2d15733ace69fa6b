"""Reasons that the HPA and the VPA give: what they say of themselves, and who else has one."""

from __future__ import annotations

from hvpa.core.recommenders.desired_replicas import MAX_CORRECTIONS
from localcluster.client.api import Json
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import ago, condition, entry
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conditions.row import GATED, HPA, VPA, Act, Row, both, change, content, content_again
from tests.e2e.bare.scaling.test_owned import foreign_hpa, foreign_vpa

GB = 1_000_000_000
HEALTHY_READY = ("True", "Reconciled")
NO_HPA, NO_VPA = ("False", "HpaInactive"), ("False", "VpaInactive")


def hpa_says(stage: Stage, *conditions: Json) -> None:
    """The HPA controller has measured nothing, and says why."""
    status = {"conditions": list(conditions), "currentMetrics": None}
    stage.api.patch_status(HPA, stage.name, stage.namespace, status)


def inactive(reason: str, message: str, since: str | None = None) -> Json:
    return condition("ScalingActive", "False", reason, since) | {"message": message}


def vpa_says(stage: Stage, kind: str, message: str) -> None:
    """The recommender sets a condition beside its recommendation."""
    conditions = [condition("RecommendationProvided", "True", "", ago(hours=2)), condition(kind, "True", "")]
    conditions[1]["message"] = message
    stage.api.patch_status(VPA, stage.name, stage.namespace, {"conditions": conditions})


def vpa_has_none(stage: Stage) -> None:
    no = condition("RecommendationProvided", "False", "NoPodsMatched") | {"message": "no pods match"}
    stage.api.patch_status(VPA, stage.name, stage.namespace, {"conditions": [no], "recommendation": None})


def recommender_stops(stage: Stage) -> None:
    """The recommender writes a last time; its upper bounds would move from now on."""
    moving = entry("app", stage.requests)
    moving["upperBound"] = {"memory": str(2 * GB + 1)}
    provided = condition("RecommendationProvided", "True", "", ago(hours=2))
    status = {"conditions": [provided], "recommendation": {"containerRecommendations": [moving]}}
    stage.api.patch_status(VPA, stage.name, stage.namespace, status)


def theirs(stage: Stage) -> str:
    """The name of somebody else's HPA or VPA."""
    return f"{stage.name}-theirs"


def without(kind: str) -> Act:
    """Somebody deletes their HPA or VPA; the operator makes its own again."""

    def act(stage: Stage) -> None:
        stage.api.delete(kind, theirs(stage), stage.namespace)
        content_again(stage)

    return act


def names(part: str) -> Act:
    """The user names somebody else's HPA or VPA instead of having one deployed."""
    return lambda stage: stage.change({part: {"deploy": False, "name": theirs(stage)}})


def deploys(part: str) -> Act:
    """The user has an HPA or VPA deployed again."""
    return both(change({part: {"deploy": True, "name": None}}), content_again)


def vpa_of_another(stage: Stage) -> None:
    target = samples.target_of(stage.workload) | {"name": "another"}
    stage.api.create(samples.vpa(theirs(stage), stage.namespace, target))


def without_requests(stage: Stage) -> None:
    container = {"name": "app", "resources": {"requests": None}}
    stage.change_workload({"template": {"spec": {"containers": [container]}}})
    stage.rollout_completes()


def insists(stage: Stage) -> None:
    """The HPA wants 9 replicas again and again, though what it has measured calls for no more."""
    measured = stage.hpa_status(2)["currentMetrics"]
    for _ in range(MAX_CORRECTIONS):
        stage.hpa_wants(9, currentMetrics=measured)
        stage.soon(lambda: stage.hvpa["spec"]["replicas"] == 2, "the HPA's desired replicas corrected")
    stage.hpa_wants(9, currentMetrics=measured)


ROWS = (
    Row(
        "the HPA has no metrics",
        lambda stage: hpa_says(stage, inactive("FailedGetResourceMetric", "no metrics known")),
        NO_HPA,
        content,
        others=(("HpaActive", "False", "FailedGetResourceMetric"),),
        text="no metrics known",
        to_act=("FailedGetResourceMetric",),
    ),
    Row(
        "the HPA has no metrics for less than a minute",
        lambda stage: hpa_says(stage, inactive("FailedGetResourceMetric", "no metrics known", ago())),
        NO_HPA,
        content,
        others=(("HpaActive", "False", "NoMetrics"),),
        text="for less than a minute, FailedGetResourceMetric: no metrics known",
    ),
    Row(
        "the HPA is inactive and gives no reason that can be passed on",
        lambda stage: hpa_says(stage, inactive("no\nreason", "it does not scale")),
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
        others=(("HpaActive", "True", "StaleWish"),),
        text="the HPA keeps asking for 9 replicas",
        to_act=("StaleWish",),
    ),
    Row(
        "somebody else's HPA scales the workload",
        lambda stage: foreign_hpa(stage, theirs(stage)),
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
        "somebody else's VPA acts on the workload",
        lambda stage: foreign_vpa(stage, theirs(stage), mode="Recreate"),
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
        both(lambda stage: foreign_vpa(stage, theirs(stage), mode="Recreate"), names("vpa")),
        NO_VPA,
        both(lambda stage: stage.api.delete(VPA, theirs(stage), stage.namespace), deploys("vpa")),
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
            lambda stage, reason=reason: vpa_says(stage, reason, "the VPA's own words"),  # type: ignore[misc]
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
        text="is its recommender running",
        to_act=("RecommendationStale",),
    ),
    Row(
        "the VPA recommends for a container that is gone",
        lambda stage: stage.vpa_recommends(**stage.requests, others={"gone": {"cpu": "1"}}),
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
        both(lambda stage: stage.set_requests(cpu="500m", memory="500M"), content),
        others=(("VpaActive", "True", "MissingRequest"),),
        gate="UpdatePolicy",
        text="app cpu",
        to_act=("MissingRequest",),
        changes={"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}},
    ),
)
