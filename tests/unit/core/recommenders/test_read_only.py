"""What an Hvpa reads that applies nothing, in mode Recommend and Paused (DESIGN 3.2, docs/decisions/0022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import build
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.status import to_wire
from hvpa.api.objects.read_models import Hpa, Vpa
from hvpa.core import Decision, Objects
from hvpa.core.model import OtherHvpa, ReplicaView
from tests.unit.core import strategies
from tests.unit.core.recommenders.test_ownership import (
    ELSEWHERE,
    FREE,
    HPA,
    ONLY_HPA,
    ONLY_VPA,
    THEIRS,
    VPA,
    WORKLOAD,
    active,
    applied,
    changes,
)
from tests.unit.core.recommenders.test_ownership import vpa as vpa_of

MODES = pytest.mark.parametrize("mode", ["Recommend", "Paused"])
NAMED = {"hpa": {"deploy": False, "name": "theirs"}, "vpa": {"deploy": False, "name": "theirs"}}
NAMED_HPA = {"hpa": NAMED["hpa"]}


def looking(spec: Mapping[str, Any] | None = None, mode: str = "Recommend") -> HvpaObject:
    """The usual Hvpa, which only looks; created in the middle of the month."""
    created = {"creationTimestamp": "2026-11-15T00:00:00Z"}
    return build.hvpa(build.merged({"mode": mode}, spec or {}), metadata=created)


def hpa(
    name: str = "web", utilization: int = 100, change: Mapping[str, Any] | None = None, **metadata: Any
) -> Hpa:
    """An HPA that scales the workload itself: 3 pods at twice the target."""
    base = {
        "metadata": {"name": name, "uid": f"uid-{name}", **metadata},
        "spec": {"scaleTargetRef": WORKLOAD, "minReplicas": 2, "maxReplicas": 20},
    }
    return build.hpa(3, utilization, build.merged(base, change or {}))


def of_hvpa(name: str) -> dict[str, Any]:
    """What an HPA of this Hvpa points at."""
    return {"apiVersion": build.OWNER["apiVersion"], "kind": "Hvpa", "name": name}


def hpa_of(other: str) -> Hpa:
    """The HPA of an Hvpa."""
    owner = {**build.OWNER, "name": other, "uid": f"uid-of-{other}"}
    return hpa(other, change={"spec": {"scaleTargetRef": of_hvpa(other)}}, ownerReferences=[owner])


def acting_vpa(name: str = "web", mode: str | None = "Recreate", **rest: Any) -> Vpa:
    """A VPA that changes the pods itself."""
    return vpa_of(name, mode, **{**FREE, **rest})


def decide(
    owner: HvpaObject,
    hpas: Sequence[Hpa] = (),
    vpas: Sequence[Vpa] = (),
    others: Sequence[OtherHvpa] = (),
    **rest: Any,
) -> Decision:
    objects = build.objects(owner, **rest)
    return build.decided(replace(objects, hpas=tuple(hpas), vpas=tuple(vpas), others=tuple(others)))


def message(decision: Decision, kind: str = "HpaActive") -> str:
    return next(condition.message for condition in decision.status.conditions if condition.type == kind)


def other(
    name: str, created: int = 1, *, applies: bool = False, hpa: bool = True, vpa: bool = True
) -> OtherHvpa:
    """Another Hvpa, created on a day of the month, at midnight as the usual one."""
    return OtherHvpa(name, applies, hpa, vpa, build.NOW.replace(day=created, hour=0))


# --- what scales the workload itself ---------------------------------------------------------------------------------
@MODES
@pytest.mark.parametrize("metadata", [FREE, THEIRS, {**THEIRS, "labels": {}}])
def test_an_hpa_that_scales_the_workload_is_read_as_it_is(mode: str, metadata: Mapping[str, Any]) -> None:
    decision = decide(looking(mode=mode), [hpa("keda-hpa-web", **metadata)], [vpa_of(**FREE)])
    assert decision.owned == ()
    assert active(decision) == ("True", "ReadAsIs")
    what = "reading HorizontalPodAutoscaler keda-hpa-web, which scales Deployment web itself"
    assert message(decision) == what
    # 3 pods at twice the target, weight 50
    assert build.counts(decision) == ReplicaView(current=3, hpa=6, target=3, recommended=5)
    assert decision.status.recommended is not None
    assert decision.status.recommended.replicas == 5


@pytest.mark.parametrize("written", [None, 0, 9])
def test_no_hpa_writes_to_the_hvpa_so_its_own_count_does_not_matter(written: int | None) -> None:
    unowned_hpa = hpa(change={"status": {"desiredReplicas": 9}}, **FREE)
    decision = decide(looking({"replicas": written}), [unowned_hpa])
    assert build.counts(decision).hpa == 6, "not the 9 that its behaviour may hold"
    assert decision.scale_replicas is None
    assert "correction" not in to_wire(decision.status)["axes"].get("horizontal", {})


def test_the_bounds_are_the_templates_and_those_of_a_named_hpa_its_own() -> None:
    much = hpa(utilization=1000, change={"metadata": {"name": "theirs"}})
    decision = decide(looking({"weightBasedScalingIntervals": None}), [much])
    assert build.counts(decision).recommended == 10
    decision = decide(looking({**NAMED_HPA, **ONLY_HPA}), [much])
    assert build.counts(decision).recommended == 20
    assert active(decision) == ("True", "ReadAsIs")


def test_beyond_max_replicas_requests_go_up_whatever_the_weight() -> None:
    target = build.workload(10)
    pegged = hpa(change={"status": {"currentReplicas": 10, "desiredReplicas": 10}})
    weightless = {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    decision = decide(looking(weightless), [pegged], [acting_vpa()], target=target)
    assert decision.recommended["app"].requests["cpu"] == 2000
    content = hpa(utilization=50, change={"status": {"currentReplicas": 10}})
    decision = decide(looking(weightless), [content], [acting_vpa()], target=target)
    assert decision.recommended["app"].requests["cpu"] == 1000


AMBIGUOUS = {"type": "ScalingActive", "status": "False", "reason": "AmbiguousSelector"}


@pytest.mark.parametrize(
    ("status", "reason"),
    [({"conditions": [AMBIGUOUS]}, "AmbiguousSelector"), ({"currentMetrics": None}, "NoMetrics")],
)
def test_one_that_has_measured_nothing_is_not_used(status: Mapping[str, Any], reason: str) -> None:
    decision = decide(looking(), [hpa(change={"status": status})])
    assert active(decision) == ("False", reason)
    assert build.counts(decision).recommended == 3


def test_both_blends_read_the_same_hpa_and_vpa() -> None:
    objects: dict[str, Any] = {"hpas": [hpa("keda", **THEIRS)], "vpas": [acting_vpa()]}
    others = [other("additive"), other("trajectory"), other("applying", applies=True)]
    for blend in ("Additive", "Trajectory"):
        decision = decide(looking({"blend": blend}), others=others, **objects)
        assert decision.owned == ()
        assert active(decision) == ("True", "ReadAsIs")
        assert active(decision, "VpaActive") == ("True", "ReadAsIs")
        assert decision.recommended["app"].requests["cpu"] > 1000
        assert decision.joint is None or decision.joint.items[0].present == 6000


@pytest.mark.parametrize("mode", ["Initial", "Recreate", "Auto", "InPlaceOrRecreate", "Off", None])
def test_a_vpa_in_any_mode_is_read_as_it_is(mode: str | None) -> None:
    decision = decide(looking(), [hpa(**FREE)], [acting_vpa("theirs", mode)])
    assert decision.owned == ()
    assert active(decision, "VpaActive") == ("True", "ReadAsIs")
    shown = f"reading VerticalPodAutoscaler theirs (updateMode {mode or 'not set'})"
    assert message(decision, "VpaActive").startswith(shown)
    assert decision.containers["app"].requests["cpu"] == 1000
    assert decision.recommended["app"].requests["cpu"] == 1500


def test_ready_says_that_the_workload_is_not_changed() -> None:
    decision = decide(looking(), [hpa(**FREE)], [acting_vpa()])
    assert active(decision, "Ready") == ("True", "Recommend")
    assert "the workload is not changed" in message(decision, "Ready")


# --- which one is read ------------------------------------------------------------------------------------------------
OWNER = looking()
OWN_HPA, OWN_VPA = applied(OWNER, HPA), applied(OWNER, VPA)
MEASURED = {"status": msgspec.to_builtins(build.hpa().status)}
MADE_TO_ACT = applied(OWNER, HPA, change={"spec": {"scaleTargetRef": WORKLOAD}, **MEASURED})
KEDAS = hpa("keda", **THEIRS)
NAMED_OWN = {"hpa": {"deploy": False, "name": "web"}}
AHEAD, OF_AHEAD = other("ahead"), "reading HorizontalPodAutoscaler ahead of Hvpa ahead"
APPLYING = other("applying", 20, applies=True)
WITHOUT_HPA = other("applying", 20, applies=True, hpa=False)
Expected = list[tuple[str, str]]
HPAS: dict[str, tuple[dict[str, Any], list[Hpa], list[OtherHvpa], Expected, str, str]] = {
    "a named one even if it acts and another one does": (
        NAMED_HPA, [hpa("theirs", **FREE), KEDAS], [], [], "ReadAsIs", "HorizontalPodAutoscaler theirs"),
    "a named one that points at the Hvpa asks it for a count": (
        {"replicas": 6, **NAMED_HPA}, [build.hpa(6, 100, {"metadata": {"name": "theirs", **FREE}})],
        [], [], "Recommending", ""),
    "a named one of its own stays": (NAMED_OWN, [build.hpa(), KEDAS], [], [], "Recommending", ""),
    "a named one of another target is refused": (
        NAMED_HPA, [hpa("theirs", change={"spec": {"scaleTargetRef": ELSEWHERE}})], [], [], "OtherTarget", ""),
    "a named one is missing": (NAMED_HPA, [], [], [], "HpaNotFound", ""),
    "none for an axis that is not asked for; its own would switch off the other": (
        ONLY_VPA, [hpa("keda", **FREE), build.hpa()], [], [("delete", "web")], "NotConfigured", ""),
    "none for an axis that is not asked for; its own stays alone": (
        ONLY_VPA, [build.hpa()], [], [], "NotConfigured", ""),
    "where there is none it creates its own": ({}, [], [], [("apply", "web")], "HpaCreated", ""),
    "its own is as it should be": ({}, [OWN_HPA], [], [], "NoMetrics", ""),
    "its own is kept up": (
        {}, [applied(OWNER, HPA, change={"spec": {"maxReplicas": 99}})], [], [("apply", "web")], "NoMetrics", ""),
    "its own that was made to act stays so": (
        {}, [MADE_TO_ACT], [], [], "ReadAsIs", "scales Deployment web itself"),
    "its own goes where another one scales the workload": (
        {}, [OWN_HPA, KEDAS], [], [("delete", "web")], "ReadAsIs", "reading HorizontalPodAutoscaler keda"),
    "one of another client that points at the Hvpa is not adopted": (
        {"replicas": 6}, [build.hpa(6, 100, {"metadata": FREE})], [], [], "Recommending", ""),
    "that of another Hvpa": ({}, [hpa_of("ahead")], [AHEAD], [], "ReadAsIs", OF_AHEAD),
    "that of one that applies": ({}, [hpa_of("ahead")], [other("ahead", applies=True)], [], "ReadAsIs", OF_AHEAD),
    "that of a younger one, as there is one already": (
        {}, [hpa_of("behind")], [other("behind", 20)], [], "ReadAsIs", "of Hvpa behind"),
    "not that of an Hvpa with another target": (
        {}, [hpa_of("unknown")], [other("behind", 20)], [("apply", "web")], "HpaCreated", ""),
    "of two that of the first Hvpa": (
        {}, [OWN_HPA, hpa_of("ahead")], [AHEAD], [("delete", "web")], "ReadAsIs", OF_AHEAD),
    "its own beside that of a younger one": (
        {}, [OWN_HPA, hpa_of("behind")], [other("behind", 20)], [], "NoMetrics", ""),
    "its own makes room for that of the one that applies": (
        {}, [OWN_HPA], [APPLYING], [("delete", "web")], "HpaAwaited", "Hvpa applying"),
    "its own beside one that applies and has no HPA": ({}, [OWN_HPA], [WITHOUT_HPA], [], "NoMetrics", ""),
    "its own is created beside one that applies and has no HPA": (
        {}, [], [WITHOUT_HPA], [("apply", "web")], "HpaCreated", ""),
}  # fmt: skip
VPAS: dict[str, tuple[dict[str, Any], list[Vpa], list[OtherHvpa], Expected, str, str]] = {
    "a named one even if it acts and another one does": (
        NAMED, [acting_vpa("theirs"), acting_vpa("more")], [], [], "ReadAsIs", "VerticalPodAutoscaler theirs"),
    "a named one of another target is refused": (
        NAMED, [acting_vpa("theirs", change={"spec": {"targetRef": ELSEWHERE}})], [], [], "OtherTarget", ""),
    "a named one is missing": (NAMED, [], [], [], "VpaNotFound", ""),
    "where there is none it creates its own": ({}, [], [], [("apply", "web")], "VpaCreated", ""),
    "its own is as it should be": ({}, [OWN_VPA], [], [], "NoRecommendation", ""),
    "its own that was made to act stays so": (
        {}, [acting_vpa(ownerReferences=[build.OWNER])], [], [], "ReadAsIs", "which changes the pods itself"),
    "its own counts before others and stays as it is": (
        {}, [acting_vpa("a"), OWN_VPA, acting_vpa("b", "Off")], [], [], "NoRecommendation", ""),
    "its own that is Off does no harm to one that applies": ({}, [OWN_VPA], [APPLYING], [], "NoRecommendation", ""),
    "that of one that applies is awaited": ({}, [], [WITHOUT_HPA], [], "VpaAwaited", ""),
}  # fmt: skip


@MODES
@pytest.mark.parametrize(("spec", "hpas", "others", "expected", "reason", "text"), HPAS.values(), ids=HPAS)
def test_which_hpa_is_read(
    mode: str,
    spec: dict[str, Any],
    hpas: list[Hpa],
    others: list[OtherHvpa],
    expected: Expected,
    reason: str,
    text: str,
) -> None:
    decision = decide(looking(spec, mode), hpas, others=others)
    assert changes(decision) == expected
    assert active(decision) == (str(reason in ("ReadAsIs", "Recommending")), reason)
    assert text in message(decision)
    assert decision.scale_replicas is None
    if "replicas" in spec:
        assert build.counts(decision).hpa == 6, "what it asks this Hvpa for"


@pytest.mark.parametrize(("spec", "vpas", "others", "expected", "reason", "text"), VPAS.values(), ids=VPAS)
def test_which_vpa_is_read(
    spec: dict[str, Any],
    vpas: list[Vpa],
    others: list[OtherHvpa],
    expected: Expected,
    reason: str,
    text: str,
) -> None:
    decision = decide(looking(spec), vpas=vpas, others=others)
    assert changes(decision, VPA) == expected
    assert active(decision, "VpaActive") == (str(reason == "ReadAsIs"), reason)
    assert text in message(decision, "VpaActive")


# --- beside other Hvpas ----------------------------------------------------------------------------------------------
def test_of_several_the_first_creates_and_the_others_wait() -> None:
    behind = [other("younger", 20), other("without", 1, hpa=False, vpa=False), other("z-twin", 15)]
    first = decide(looking(), others=behind)
    assert (changes(first), changes(first, VPA)) == ([("apply", "web")], [("apply", "web")])
    for ahead in (other("older", 1), other("applying", 20, applies=True), other("a-twin", 15)):
        decision = decide(looking(), others=[ahead])
        assert decision.owned == ()
        assert active(decision) == ("False", "HpaAwaited")
        assert active(decision, "VpaActive") == ("False", "VpaAwaited")
        assert f"Hvpa {ahead.name}" in message(decision)


def test_what_that_hpa_asks_the_other_hvpa_for_is_no_count_of_pods() -> None:
    asks = {"status": {"currentReplicas": 2, "desiredReplicas": 2}}
    less = hpa(utilization=20, change={"spec": {"scaleTargetRef": of_hvpa("ahead")}, **asks}, **FREE)
    decision = decide(looking(), [less], others=[other("ahead")], target=build.workload(4))
    assert build.counts(decision).hpa == 2, "4 pods at 40 percent of the target"


@MODES
def test_other_hvpas_share_the_target_with_one_that_only_looks(mode: str) -> None:
    others = [other("a", applies=True), other("b", applies=True)]
    not_shared = ("False", "HpaInactive")
    assert active(decide(looking(mode=mode), others=others), "Ready") == not_shared
    assert active(decide(looking(mode="Apply"), others=[other("a")]), "Ready") == not_shared
    assert active(decide(looking(mode="Apply"), others=others), "Ready") == ("False", "TargetShared")
    shared = decide(looking(mode="Apply"), others=[other("a", applies=True), other("watcher")])
    assert active(shared, "Ready") == ("False", "TargetShared")
    assert "watcher" not in message(shared, "Ready")


# --- whatever there is -----------------------------------------------------------------------------------------------
OF_ANOTHER = {**build.OWNER, "name": "ahead", "uid": "x"}
OWNERS = st.sampled_from([[build.OWNER], [], THEIRS["ownerReferences"], [OF_ANOTHER]])
TARGETS = st.sampled_from([WORKLOAD, ELSEWHERE, *map(of_hvpa, ("web", "ahead", "behind"))])
NAMES = st.lists(st.sampled_from(["web", "theirs", "ahead", "keda"]), max_size=3, unique=True)
OTHERS = st.sampled_from([other("ahead"), other("behind", 20), other("one", applies=True)])


@st.composite
def many_hpas(draw: st.DrawFn) -> list[Hpa]:
    """Up to three HPAs of different names, each of some owner and for something."""
    return [
        hpa(name, change={"spec": {"scaleTargetRef": draw(TARGETS)}}, ownerReferences=draw(OWNERS))
        for name in draw(NAMES)
    ]


@st.composite
def many_vpas(draw: st.DrawFn) -> list[Vpa]:
    """Up to three VPAs of different names and modes, each of some owner."""
    modes = st.sampled_from(["Off", "Recreate", None])
    return [vpa_of(name, draw(modes), ownerReferences=draw(OWNERS)) for name in draw(NAMES)]


@settings(max_examples=40)
@given(
    st.sampled_from(["Recommend", "Paused"]),
    st.sampled_from([{}, ONLY_HPA, ONLY_VPA, NAMED_HPA]),
    many_hpas(),
    many_vpas(),
    st.lists(OTHERS, max_size=3, unique=True),
    strategies.objects(),
)
def test_nothing_that_exists_is_changed_but_its_own_that_only_recommends(
    mode: str,
    spec: Mapping[str, Any],
    hpas: list[Hpa],
    vpas: list[Vpa],
    others: list[OtherHvpa],
    objects: Objects,
) -> None:
    owner = replace(looking(spec, mode), status=objects.hvpa.status)
    existing_objects = {"hpas": tuple(hpas), "vpas": tuple(vpas), "others": tuple(others)}
    decision = build.decided(replace(objects, hvpa=owner, **existing_objects))  # type: ignore[arg-type]
    assert decision.workload_patch is None
    known: dict[tuple[str, str], Hpa | Vpa] = {(HPA, hpa.metadata.name): hpa for hpa in hpas}
    known |= {(VPA, vpa.metadata.name): vpa for vpa in vpas}
    acting = [hpa for hpa in hpas if hpa.spec.scale_target_ref.kind == "Deployment"]
    acting = [hpa for hpa in acting if hpa.spec.scale_target_ref.name == "web"]
    for change in decision.owned:
        autoscaler = known.get((change.kind, change.name))
        assert change.action == "apply" or (change.action == "delete" and autoscaler is not None)
        if autoscaler is None:
            continue
        controller = autoscaler.metadata.controller()
        assert controller is not None
        assert controller.uid == build.UID
        if change.action == "delete":
            assert change.kind == HPA
            assert autoscaler not in acting
            assert others or acting, "beside another one alone"
