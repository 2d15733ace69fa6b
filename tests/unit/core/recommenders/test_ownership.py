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
    found = build.condition(decision, kind)
    return found.status, found.reason


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


def test_what_is_as_it_should_be_is_left_alone() -> None:
    owner = build.hvpa()
    decision = decide(owner, [applied(owner, HPA)], [applied(owner, VPA)])
    assert decision.owned == ()


def test_what_differs_from_the_template_is_applied_again() -> None:
    owner = build.hvpa()
    drifted = applied(owner, HPA, change={"spec": {"maxReplicas": 99}})
    assert changes(decide(owner, [drifted])) == [("apply", "web")]
    labels = {"labels": {"of": "web", "a": "b"}}
    earlier = applied(build.hvpa({"vpa": {"template": {"metadata": labels}}}), VPA)
    assert changes(decide(owner, vpas=[earlier]), VPA) == [("apply", "web")]


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


def test_an_object_that_is_being_deleted_counts_no_more() -> None:
    owner = build.hvpa()
    going = applied(owner, HPA, change={"metadata": {"deletionTimestamp": build.LONG_AGO}})
    decision = decide(owner, [going])
    assert changes(decision) == [("apply", "web")]
    foreign = hpa("other", **THEIRS, deletionTimestamp=build.LONG_AGO)
    assert active(decide(owner, [foreign])) == ("False", "HpaCreated")


# --- adopting --------------------------------------------------------------------------------------------------------
def test_an_hpa_for_the_workload_that_matches_the_selector_is_adopted_and_pointed_at_the_hvpa() -> None:
    decision = decide(build.hvpa(), [hpa("old", **FREE)])
    assert changes(decision) == [("apply", "old")]
    manifest = next(change.manifest for change in decision.owned if change.kind == HPA)
    assert manifest is not None
    assert manifest["spec"]["scaleTargetRef"]["kind"] == "Hvpa"  # type: ignore[index]
    assert active(decision) == ("True", "Recommending")


def test_an_hpa_for_the_hvpa_itself_is_adopted_likewise() -> None:
    decision = decide(build.hvpa(), [build.hpa(change={"metadata": FREE})])
    assert changes(decision) == [("apply", "web")]


def test_a_vpa_is_adopted_whatever_its_mode() -> None:
    decision = decide(build.hvpa(), vpas=[vpa("old", "Auto", **FREE)])
    assert changes(decision, VPA) == [("apply", "old")]
    assert active(decision, "VpaActive")[0] == "True"


@pytest.mark.parametrize(
    ("spec", "candidate"),
    [
        pytest.param({}, hpa("old", **THEIRS), id="it has a controller"),
        pytest.param({}, hpa("old", labels={"of": "other"}, **FREE), id="its labels don't match"),
        pytest.param(
            {"hpa": {"selector": {"matchLabels": None}}},
            hpa("old", **FREE),
            id="an empty selector matches nothing",
        ),
    ],
)
def test_an_hpa_of_the_workload_that_is_not_adopted_is_foreign(
    spec: Mapping[str, Any], candidate: Hpa
) -> None:
    decision = decide(build.hvpa(spec), [candidate])
    assert changes(decision) == []
    assert active(decision) == ("False", "ForeignHpa")


def test_an_hpa_of_another_target_is_none_of_ours() -> None:
    other = hpa("old", {**WORKLOAD, "kind": "StatefulSet"}, **FREE)
    assert changes(decide(build.hvpa(), [other])) == [("apply", "web")]


def test_of_several_the_oldest_stays() -> None:
    owner = build.hvpa()
    young = applied(owner, HPA, "web", {"metadata": {"creationTimestamp": "2026-11-03T00:00:00Z"}})
    old = hpa("older", created="2026-11-01T00:00:00Z", **FREE)
    middle = hpa("middle", created="2026-11-02T00:00:00Z", **FREE)
    decision = decide(owner, [young, old, middle])
    assert changes(decision) == [("delete", "middle"), ("delete", "web"), ("apply", "older")]
    deleted = next(change for change in decision.owned if change.name == "web")
    assert deleted.uid == "uid-web"


# --- letting go ------------------------------------------------------------------------------------------------------
def test_one_that_was_taken_away_by_its_labels_is_released() -> None:
    owner = build.hvpa()
    plain = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": False}
    others = [{**plain, "blockOwnerDeletion": True}, plain]
    taken = {"labels": {"of": "else"}, "ownerReferences": [build.OWNER, *others], "resourceVersion": "5"}
    change = {"metadata": taken}
    decision = decide(owner, [applied(owner, HPA, change=change)])
    assert changes(decision) == [("release", "web")]
    released = decision.owned[0]
    assert (released.uid, released.resource_version) == ("uid-web", "5")
    assert released.owner_references == tuple(others)
    assert active(decision) == ("False", "ForeignHpa"), "it goes on acting, so it is foreign from now on"
    decision = decide(owner, vpas=[applied(owner, VPA, change={"metadata": {"labels": {"of": "else"}}})])
    assert changes(decision, VPA) == [("release", "web"), ("apply", "web-11111111")]


def test_one_that_only_the_spec_has_left_behind_is_ours_still() -> None:
    new_selector = build.hvpa({"hpa": {"selector": {"matchLabels": {"of": "new"}}}})
    assert changes(decide(new_selector, [applied(build.hvpa(), HPA)])) == []
    no_selector = build.hvpa({"hpa": {"selector": {"matchLabels": None}}})
    relabelled = applied(build.hvpa(), HPA, change={"metadata": {"labels": {"of": "else"}}})
    assert changes(decide(no_selector, [relabelled])) == [("apply", "web")]


def test_one_with_an_earlier_template_is_ours_still() -> None:
    earlier = build.hvpa({"hpa": {"template": {"metadata": {"labels": {"of": "old"}}}}})
    assert changes(decide(build.hvpa(), [applied(earlier, HPA)])) == [("apply", "web")]


def test_without_deploy_those_that_we_own_are_deleted() -> None:
    owner = build.hvpa()
    assert changes(decide(build.hvpa(ONLY_VPA), [applied(owner, HPA)])) == [("delete", "web")]
    decision = decide(build.hvpa(ONLY_HPA), vpas=[applied(owner, VPA)])
    assert changes(decision, VPA) == [("delete", "web")]
    assert active(decision, "VpaActive") == ("False", "NotConfigured")


# --- foreign ones ----------------------------------------------------------------------------------------------------
def test_where_a_foreign_hpa_selects_the_pods_none_is_created_and_ours_goes() -> None:
    foreign = hpa("keda-hpa-web", labels={}, **THEIRS)
    owner = build.hvpa()
    assert changes(decide(owner, [foreign])) == []
    decision = decide(owner, [foreign, applied(owner, HPA)])
    assert changes(decision) == [("delete", "web")]
    assert active(decision) == ("False", "ForeignHpa")
    assert decision.scale_replicas is None
    assert build.counts(decision).target == 3
    assert warnings(decision) == ["ForeignHpa"]
    assert changes(decide(owner)) == [("apply", "web")], "it is created again once the foreign one is gone"


def test_nothing_is_adopted_or_deleted_beside_a_foreign_one() -> None:
    decision = decide(build.hvpa(), [hpa("a", **FREE), hpa("b", **FREE), hpa("keda", labels={}, **THEIRS)])
    assert changes(decision) == []


def test_the_vertical_axis_goes_on_beside_a_foreign_hpa() -> None:
    decision = decide(build.hvpa(), [hpa("keda", labels={}, **THEIRS)], [vpa()])
    assert decision.containers["app"].requests["cpu"] == 1500


@pytest.mark.parametrize("mode", ["Auto", "Recreate", "Initial", None])
def test_a_foreign_vpa_that_is_not_off_switches_the_vertical_axis_off(mode: str | None) -> None:
    owner = build.hvpa()
    decision = decide(owner, vpas=[vpa("theirs", mode, labels={"of": None}, **FREE), vpa()])
    assert active(decision, "VpaActive") == ("False", "ForeignVpa")
    assert decision.containers["app"].requests["cpu"] == 1000
    assert changes(decision, VPA) == [], "ours only recommends and may stay"


def test_a_foreign_vpa_that_is_off_or_for_another_target_does_no_harm() -> None:
    other = {"spec": {"targetRef": ELSEWHERE}}
    for foreign in (vpa("o", "Off", labels={"of": None}, **FREE), vpa("o", "Auto", other, labels={}, **FREE)):
        assert active(decide(build.hvpa(), vpas=[foreign, vpa()]), "VpaActive")[0] == "True"


# --- named ones ------------------------------------------------------------------------------------------------------
NAMED_HPA = {"hpa": {"deploy": False, "name": "theirs"}, **ONLY_HPA}
NAMED_VPA = {"vpa": {"deploy": False, "name": "theirs"}, **ONLY_VPA}


def test_a_named_hpa_is_read_and_never_changed() -> None:
    named = build.hpa(6, 100, change={"metadata": {"name": "theirs", **FREE}})
    decision = decide(build.hvpa(NAMED_HPA), [named])
    assert decision.owned == ()
    assert active(decision) == ("True", "Recommending")
    assert build.counts(decision).target == 6


POINTED_AT_US = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa", "name": "web"}


@pytest.mark.parametrize(
    ("hpas", "reason"),
    [
        pytest.param([], "HpaNotFound", id="it does not exist"),
        pytest.param([hpa("theirs", **FREE)], "NotRecommendationOnly", id="it scales the workload itself"),
        pytest.param(
            [hpa("theirs", POINTED_AT_US, **FREE), hpa("keda", **THEIRS)],
            "ForeignHpa",
            id="beside a foreign one",
        ),
        pytest.param(
            [hpa("theirs", {**POINTED_AT_US, "apiVersion": "other.io/v1"}, **FREE)],
            "NotRecommendationOnly",
            id="an Hvpa of another group",
        ),
    ],
)
def test_a_named_hpa_that_is_not_fit_is_not_used(hpas: list[Hpa], reason: str) -> None:
    decision = decide(build.hvpa(NAMED_HPA), hpas)
    assert active(decision) == ("False", reason)
    assert reason in warnings(decision)
    assert decision.workload_patch is None


@pytest.mark.parametrize(
    ("vpas", "reason"),
    [
        pytest.param([], "VpaNotFound", id="it does not exist"),
        pytest.param([vpa("theirs", "Auto", **FREE)], "NotRecommendationOnly", id="it is not off"),
        pytest.param([vpa("theirs", None, **FREE)], "NotRecommendationOnly", id="it has the default mode"),
        pytest.param(
            [vpa("theirs", change={"spec": {"targetRef": {"name": "other"}}}, **FREE)],
            "OtherTarget",
            id="it is for another",
        ),
        pytest.param(
            [vpa("theirs", **FREE), vpa("x", "Auto", **FREE)], "ForeignVpa", id="beside a foreign one"
        ),
    ],
)
def test_a_named_vpa_that_is_not_fit_is_not_used(vpas: list[Vpa], reason: str) -> None:
    decision = decide(build.hvpa(NAMED_VPA), vpas=vpas)
    assert active(decision, "VpaActive") == ("False", reason)
    assert reason in warnings(decision)
    assert decision.workload_patch is None


def test_a_named_vpa_that_is_fit_counts_fully_where_there_is_no_hpa() -> None:
    decision = decide(
        build.hvpa({**NAMED_VPA, "weightBasedScalingIntervals": None}),
        vpas=[vpa("beside", **FREE), vpa("theirs", **FREE)],
    )
    assert decision.containers["app"].requests["cpu"] == 2000
    assert decision.owned == ()


def test_one_that_we_own_and_the_spec_names_now_is_released_and_read() -> None:
    owner = build.hvpa()
    spec = {"hpa": {"deploy": False, "name": "web"}, **ONLY_HPA}
    decision = decide(build.hvpa(spec), [applied(owner, HPA), applied(owner, HPA, "web-2")])
    assert changes(decision) == [("release", "web"), ("delete", "web-2")]
    assert active(decision) != ("False", "ForeignHpa")


# --- beside Hvpas that only look -------------------------------------------------------------------------------------
LOOKER = OtherHvpa("looker", applies=False, deploys_hpa=True)
LOOKERS_OWN: dict[str, Any] = {"ownerReferences": [{**build.OWNER, "name": "looker", "uid": "looker"}]}


def lookers_hpa(**metadata: Any) -> Hpa:
    """The HPA that an Hvpa in mode Recommend deploys."""
    return hpa("looker", {**POINTED_AT_US, "name": "looker"}, **metadata)


def test_the_hpa_of_one_that_only_looks_goes_before_ours_is_created() -> None:
    decision = decide(build.hvpa(), [lookers_hpa(**LOOKERS_OWN)], others=(LOOKER,))
    assert changes(decision) == []
    assert active(decision) == ("False", "HpaAwaited")
    assert decision.events == ()
    owner = build.hvpa()
    decision = decide(owner, [lookers_hpa(**LOOKERS_OWN), applied(owner, HPA)], others=(LOOKER,))
    assert changes(decision) == [], "ours stays meanwhile"


@pytest.mark.parametrize(
    ("others", "metadata"),
    [
        pytest.param((LOOKER,), FREE, id="nobody controls it"),
        pytest.param((LOOKER,), THEIRS, id="somebody else controls it"),
        pytest.param((OtherHvpa("looker"),), LOOKERS_OWN, id="it is not one that only looks"),
    ],
)
def test_an_hpa_of_another_hvpa_that_does_not_go_is_foreign(
    others: tuple[OtherHvpa, ...], metadata: Mapping[str, Any]
) -> None:
    owner = build.hvpa()
    assert owner.spec is not None
    found = resolve(OwnerRules(HPA, owner.metadata, owner.spec, (lookers_hpa(**metadata),), others))
    assert found.problem is not None
    assert found.problem.reason == "ForeignHpa"
    assert found.changes == ()
