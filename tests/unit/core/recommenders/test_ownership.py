"""Who belongs to whom (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from builders import build
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.objects.read_models import Hpa, Vpa
from hvpa.core import Decision
from hvpa.core.model import OtherHvpa, OwnedKind
from hvpa.core.recommenders.manifests import document
from hvpa.core.recommenders.ownership import OwnerRules, resolve

HPA: OwnedKind = "HorizontalPodAutoscaler"
VPA: OwnedKind = "VerticalPodAutoscaler"
WORKLOAD = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
ELSEWHERE = {**WORKLOAD, "name": "other"}
FREE: dict[str, Any] = {"ownerReferences": []}
KEDA = {"apiVersion": "keda.sh/v1", "kind": "ScaledObject", "name": "k", "uid": "k", "controller": True}
THEIRS: dict[str, Any] = {"ownerReferences": [KEDA]}
ONLY_HPA = {"vpa": {"deploy": False}, "weightBasedScalingIntervals": None}
ONLY_VPA = {"hpa": {"deploy": False}}


def hpa(
    name: str = "web", target: Mapping[str, Any] = WORKLOAD, created: str | None = None, **metadata: Any
) -> Hpa:
    """An HPA that points at the workload."""
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": created, **metadata}
    return build.hpa(change={"metadata": metadata, "spec": {"scaleTargetRef": target}})


def vpa(
    name: str = "web", mode: str | None = "Off", change: Mapping[str, Any] | None = None, **metadata: Any
) -> Vpa:
    policy = {"updatePolicy": {"updateMode": mode} if mode else None}
    base = {"metadata": {"name": name, "uid": f"uid-{name}", **metadata}, "spec": policy}
    return build.vpa({"app": {"cpu": "2", "memory": "1Gi"}}, build.merged(base, change or {}))


def applied(
    owner: HvpaObject, kind: OwnedKind, name: str = "web", change: Mapping[str, Any] | None = None
) -> Any:
    """The object as it stands after it was applied."""
    assert owner.spec is not None
    wanted = document(kind, name, owner.metadata, owner.spec)
    body = build.merged(wanted, {"metadata": {"uid": f"uid-{name}"}})
    model = Hpa if kind == HPA else Vpa
    return msgspec.json.decode(msgspec.json.encode(build.merged(body, change or {})), type=model)


def decide(owner: HvpaObject, hpas: Sequence[Hpa] = (), vpas: Sequence[Vpa] = (), **rest: Any) -> Decision:
    return build.decided(replace(build.objects(owner, **rest), hpas=tuple(hpas), vpas=tuple(vpas)))


def changes(decision: Decision, kind: OwnedKind = HPA) -> list[tuple[str, str]]:
    return [(change.action, change.name) for change in decision.owned if change.kind == kind]


def active(decision: Decision, kind: str = "HpaActive") -> tuple[str, str]:
    condition = build.condition(decision, kind)
    return condition.status, condition.reason


def warnings(decision: Decision) -> list[str]:
    return [event.reason for event in decision.events if event.type == "Warning"]


# --- owning ----------------------------------------------------------------------------------------------------------
def test_what_is_missing_is_created_under_the_hvpas_name() -> None:
    decision = decide(build.hvpa())
    assert changes(decision) == [("apply", "web")]
    assert changes(decision, VPA) == [("apply", "web")]
    assert active(decision) == ("False", "HpaCreated")
    assert active(decision, "VpaActive") == ("False", "VpaCreated")
    assert decision.events == ()


@pytest.mark.parametrize(
    ("name", "with_suffix"),
    [
        ("web", "web-11111111"),
        pytest.param("w" * 253, "w" * 244 + "-11111111", id="it is cut for its suffix"),
        # No name of Kubernetes may end in a dot before its suffix.
        pytest.param("w" * 243 + ".w" * 5, "w" * 243 + "-11111111", id="a dot at the cut goes too"),
    ],
)
def test_a_foreign_object_that_holds_the_name_gives_ours_a_suffix(name: str, with_suffix: str) -> None:
    decision = decide(build.hvpa(metadata={"name": name}), [hpa(name, ELSEWHERE, **FREE)])
    assert changes(decision) == [("apply", with_suffix)]


OWNER = build.hvpa()
NO_SELECTOR: dict[str, Any] = {"hpa": {"selector": {"matchLabels": None}}}
NAMED_HPA = {"hpa": {"deploy": False, "name": "theirs"}, **ONLY_HPA}
NAMED_VPA = {"vpa": {"deploy": False, "name": "theirs"}, **ONLY_VPA}
POINTED_AT_US = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "web"}
GOING: dict[str, Any] = {"deletionTimestamp": build.LONG_AGO}
RELABELLED = {"metadata": {"labels": {"of": "else"}}}
KEDAS = hpa("keda", labels={}, **THEIRS)


def labelled(axis: str, **labels: str) -> HvpaObject:
    """The usual Hvpa, whose template has these labels."""
    return build.hvpa({axis: {"template": {"metadata": {"labels": labels}}}})


HPAS: dict[str, tuple[Any, list[Hpa], list[tuple[str, str]], str]] = {
    "what is as it should be is left alone": ({}, [applied(OWNER, HPA)], [], "NoMetrics"),
    "what differs from the template is applied again": (
        {}, [applied(OWNER, HPA, change={"spec": {"maxReplicas": 99}})], [("apply", "web")], "NoMetrics"),
    "one that is being deleted counts no more": (
        {}, [applied(OWNER, HPA, change={"metadata": GOING})], [("apply", "web")], "HpaCreated"),
    "nor does a foreign one": ({}, [hpa("other", **THEIRS, **GOING)], [("apply", "web")], "HpaCreated"),
    "one of the workload that matches the selector is adopted": (
        {}, [hpa("old", **FREE)], [("apply", "old")], "HpaAwaited"),
    "one of the Hvpa itself is adopted likewise": (
        {}, [build.hpa(change={"metadata": FREE})], [("apply", "web")], "Recommending"),
    "one with a controller is foreign": ({}, [hpa("old", **THEIRS)], [], "ForeignHpa"),
    "one whose labels don't match is foreign": ({}, [hpa("old", labels={"of": "x"}, **FREE)], [], "ForeignHpa"),
    "an empty selector matches nothing": (NO_SELECTOR, [hpa("old", **FREE)], [], "ForeignHpa"),
    "one of another target is none of ours": (
        {}, [hpa("old", {**WORKLOAD, "kind": "StatefulSet"}, **FREE)], [("apply", "web")], "HpaCreated"),
    "one that a new selector has left behind is ours still": (
        {"hpa": {"selector": {"matchLabels": {"of": "new"}}}}, [applied(OWNER, HPA)], [], "NoMetrics"),
    "one that no selector matches is ours still": (
        NO_SELECTOR, [applied(OWNER, HPA, change=RELABELLED)], [("apply", "web")], "NoMetrics"),
    "one with an earlier template is ours still": (
        {}, [applied(labelled("hpa", of="old"), HPA)], [("apply", "web")], "NoMetrics"),
    "without deploy ours is deleted": (ONLY_VPA, [applied(OWNER, HPA)], [("delete", "web")], "NotConfigured"),
    "nothing is adopted or deleted beside a foreign one": (
        {}, [hpa("a", **FREE), hpa("b", **FREE), KEDAS], [], "ForeignHpa"),
    "a named one is read and never changed": (
        NAMED_HPA, [hpa("theirs", POINTED_AT_US, **FREE)], [], "Recommending"),
    "a named one does not exist": (NAMED_HPA, [], [], "HpaNotFound"),
    "a named one scales the workload itself": (NAMED_HPA, [hpa("theirs", **FREE)], [], "NotRecommendationOnly"),
    "a named one is beside a foreign one": (
        NAMED_HPA, [hpa("theirs", POINTED_AT_US, **FREE), hpa("keda", **THEIRS)], [], "ForeignHpa"),
    "a named one is of an Hvpa of another group": (
        NAMED_HPA, [hpa("theirs", {**POINTED_AT_US, "apiVersion": "other.io/v1"}, **FREE)],
        [], "NotRecommendationOnly"),
    "one of ours that the spec names now is released and read": (
        {**NAMED_HPA, "hpa": {"deploy": False, "name": "web"}}, [applied(OWNER, HPA), applied(OWNER, HPA, "web-2")],
        [("release", "web"), ("delete", "web-2")], "NoMetrics"),
}  # fmt: skip
VPAS: dict[str, tuple[Any, list[Vpa], list[tuple[str, str]], str]] = {
    "what is as it should be is left alone": ({}, [applied(OWNER, VPA)], [], "NoRecommendation"),
    "what differs from the template is applied again": (
        {}, [applied(labelled("vpa", of="web", a="b"), VPA)], [("apply", "web")], "NoRecommendation"),
    "one that acts is adopted": ({}, [vpa("old", "Auto", **FREE)], [("apply", "old")], "VpaAwaited"),
    "one that only recommends is adopted": (
        {}, [vpa("old", "Off", **FREE)], [("apply", "old")], "Recommending"),
    "one that was taken away by its labels is released": (
        {}, [applied(OWNER, VPA, change=RELABELLED)], [("release", "web"), ("apply", "web-11111111")], "VpaCreated"),
    "without deploy ours is deleted": (ONLY_HPA, [applied(OWNER, VPA)], [("delete", "web")], "NotConfigured"),
    **{f"beside a foreign one in mode {mode} ours may stay, as it only recommends": (
        {}, [vpa("theirs", mode, labels={"of": None}, **FREE), vpa()], [], "ForeignVpa")
       for mode in ("Auto", "Recreate", "Initial", None)},
    "a foreign one that is Off does no harm": (
        {}, [vpa("o", "Off", labels={"of": None}, **FREE), vpa()], [("apply", "web")], "Recommending"),
    "a foreign one for another target does no harm": (
        {}, [vpa("o", "Auto", {"spec": {"targetRef": ELSEWHERE}}, labels={}, **FREE), vpa()],
        [("apply", "web")], "Recommending"),
    "a named one does not exist": (NAMED_VPA, [], [], "VpaNotFound"),
    "a named one is not Off": (NAMED_VPA, [vpa("theirs", "Auto", **FREE)], [], "NotRecommendationOnly"),
    "a named one has the default mode": (NAMED_VPA, [vpa("theirs", None, **FREE)], [], "NotRecommendationOnly"),
    "a named one is for another target": (
        NAMED_VPA, [vpa("theirs", change={"spec": {"targetRef": ELSEWHERE}}, **FREE)], [], "OtherTarget"),
    "a named one is beside a foreign one": (
        NAMED_VPA, [vpa("theirs", **FREE), vpa("x", "Auto", **FREE)], [], "ForeignVpa"),
}  # fmt: skip
AS_IT_SHOULD_BE = (
    "Recommending",
    "HpaCreated",
    "VpaCreated",
    "HpaAwaited",
    "VpaAwaited",
    "NoMetrics",
    "NoRecommendation",
    "NotConfigured",
)


@pytest.mark.parametrize(("spec", "hpas", "expected", "reason"), HPAS.values(), ids=HPAS)
def test_which_hpa_is_read_owned_or_let_go(
    spec: Mapping[str, Any], hpas: list[Hpa], expected: list[tuple[str, str]], reason: str
) -> None:
    decision = decide(build.hvpa(spec), hpas)
    assert changes(decision) == expected
    assert active(decision) == (str(reason == "Recommending"), reason)
    if reason not in AS_IT_SHOULD_BE:
        assert warnings(decision) == [reason]
        assert (decision.workload_patch, decision.scale_replicas) == (None, None)


@pytest.mark.parametrize(("spec", "vpas", "expected", "reason"), VPAS.values(), ids=VPAS)
def test_which_vpa_is_read_owned_or_let_go(
    spec: Mapping[str, Any], vpas: list[Vpa], expected: list[tuple[str, str]], reason: str
) -> None:
    decision = decide(build.hvpa(spec), vpas=vpas)
    assert changes(decision, VPA) == expected
    assert active(decision, "VpaActive") == (str(reason == "Recommending"), reason)
    if reason not in AS_IT_SHOULD_BE:
        assert reason in warnings(decision)
        assert decision.workload_patch is None


def test_what_is_adopted_is_pointed_at_the_hvpa() -> None:
    decision = decide(OWNER, [hpa("old", **FREE)])
    manifest: Any = next(change.manifest for change in decision.owned if change.kind == HPA)
    assert manifest["spec"]["scaleTargetRef"]["kind"] == "Hvpa"


def test_of_several_that_only_recommend_the_oldest_stays() -> None:
    young = applied(OWNER, HPA, "web", {"metadata": {"creationTimestamp": "2026-11-03T00:00:00Z"}})
    old = hpa("older", POINTED_AT_US, created="2026-11-01T00:00:00Z", **FREE)
    middle = hpa("middle", POINTED_AT_US, created="2026-11-02T00:00:00Z", **FREE)
    decision = decide(OWNER, [young, old, middle])
    assert changes(decision) == [("delete", "middle"), ("delete", "web"), ("apply", "older")]
    deleted = next(change for change in decision.owned if change.name == "web")
    assert deleted.uid == "uid-web"


def test_one_that_was_taken_away_by_its_labels_is_released() -> None:
    plain = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": False}
    others = [{**plain, "blockOwnerDeletion": True}, plain]
    taken = {"labels": {"of": "else"}, "ownerReferences": [build.OWNER, *others], "resourceVersion": "5"}
    decision = decide(OWNER, [applied(OWNER, HPA, change={"metadata": taken})])
    assert changes(decision) == [("release", "web")]
    manifest: Any = decision.owned[0].manifest
    metadata = manifest["metadata"]
    assert (metadata["uid"], metadata["resourceVersion"]) == ("uid-web", "5")
    assert metadata["ownerReferences"] == others
    assert active(decision) == ("False", "ForeignHpa"), "it goes on acting, so it is foreign from now on"


def test_where_a_foreign_hpa_selects_the_pods_ours_goes_and_the_vertical_axis_goes_on() -> None:
    decision = decide(OWNER, [KEDAS, applied(OWNER, HPA)], [vpa()])
    assert changes(decision) == [("delete", "web")]
    assert active(decision) == ("False", "ForeignHpa")
    assert decision.scale_replicas is None
    assert build.counts(decision).target == 3
    assert decision.containers["app"].requests["cpu"] == 1500


def test_a_named_object_that_is_fit_is_followed() -> None:
    named = build.hpa(6, 100, change={"metadata": {"name": "theirs", **FREE}})
    assert build.counts(decide(build.hvpa(NAMED_HPA), [named])).target == 6
    alone = build.hvpa({**NAMED_VPA, "weightBasedScalingIntervals": None})
    decision = decide(alone, vpas=[vpa("beside", **FREE), vpa("theirs", **FREE)])
    assert decision.containers["app"].requests["cpu"] == 2000, "fully where there is no HPA"
    assert decision.owned == ()


# --- beside Hvpas that only look -------------------------------------------------------------------------------------
LOOKER = OtherHvpa("looker", applies=False, deploys_hpa=True)
LOOKERS_OWN: dict[str, Any] = {"ownerReferences": [{**build.OWNER, "name": "looker", "uid": "looker"}]}


def lookers_hpa(**metadata: Any) -> Hpa:
    """The HPA that an Hvpa in mode Recommend deploys."""
    return hpa("looker", {**POINTED_AT_US, "name": "looker"}, **metadata)


def test_the_hpa_of_one_that_only_looks_goes_before_ours_is_created() -> None:
    decision = decide(OWNER, [lookers_hpa(**LOOKERS_OWN)], others=(LOOKER,))
    assert changes(decision) == []
    assert active(decision) == ("False", "HpaAwaited")
    assert decision.events == ()
    decision = decide(OWNER, [lookers_hpa(**LOOKERS_OWN), applied(OWNER, HPA)], others=(LOOKER,))
    assert changes(decision) == [], "ours stays meanwhile"


@pytest.mark.parametrize(
    ("others", "metadata"),
    [
        pytest.param((LOOKER,), FREE, id="it has no controller"),
        pytest.param((LOOKER,), THEIRS, id="another client controls it"),
        pytest.param((OtherHvpa("looker"),), LOOKERS_OWN, id="it is not one that only looks"),
    ],
)
def test_an_hpa_of_another_hvpa_that_does_not_go_is_foreign(
    others: tuple[OtherHvpa, ...], metadata: Mapping[str, Any]
) -> None:
    assert OWNER.spec is not None
    recommender = resolve(OwnerRules(HPA, OWNER.metadata, OWNER.spec, (lookers_hpa(**metadata),), others))
    assert recommender.problem is not None
    assert recommender.problem.reason == "ForeignHpa"
    assert recommender.changes == ()


def test_what_hvpa_does_not_know_in_a_template_is_named_so_that_the_api_server_is_asked_first() -> None:
    fields = {"template": {"spec": {"recommenders": [{"name": "fast"}]}}}
    owner = build.hvpa({"vpa": fields})
    (created,) = [change for change in decide(owner).owned if change.kind == VPA]
    assert created.passed_on == (("recommenders",),)
    (updated,) = [
        change for change in decide(owner, vpas=[applied(build.hvpa(), VPA)]).owned if change.kind == VPA
    ]
    assert updated.passed_on == (("recommenders",),)
    assert all(change.passed_on == () for change in decide(build.hvpa()).owned)
