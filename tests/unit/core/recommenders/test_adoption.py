"""An HPA or VPA that acts is adopted, and acts as before when the Hvpa no longer has it (docs/decisions/0099)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.api.objects.read_models import Hpa, Vpa, Workload
from hvpa.core.model import ADOPTED, TEMPLATE_HASH, OtherHvpa, OwnedChange
from hvpa.core.recommenders.adoption import adopting, adoption_of, holder_of, returned
from tests.unit.core.policies.test_plan import anything
from tests.unit.core.recommenders.test_ownership import (
    FREE,
    HPA,
    KEDAS,
    NAMED_HPA,
    ONLY_HPA,
    ONLY_VPA,
    OWNER,
    POINTED_AT_US,
    THEIRS,
    VPA,
    WORKLOAD,
    active,
    applied,
    changes,
    decide,
    hpa,
    vpa,
    warnings,
)

Json = dict[str, Any]
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
MINE: Json = {"labels": {"of": "web", "team": "a"}, "ownerReferences": [OTHER], "resourceVersion": "7"}
HPA_SPEC: Json = {"scaleTargetRef": WORKLOAD, "minReplicas": 3, "maxReplicas": 40}
VPA_SPEC: Json = {"targetRef": WORKLOAD, "updatePolicy": {"updateMode": "Recreate"}}


def acting_hpa(name: str = "by-hand", created: str = build.LONG_AGO, **metadata: Any) -> Hpa:
    """The HPA of the workload's owner."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": created}
    return build.decoded(Hpa, {"metadata": {**meta, **MINE, **metadata}, "spec": HPA_SPEC})


def acting_vpa(name: str = "by-hand", **metadata: Any) -> Vpa:
    """The VPA of the workload's owner."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return build.decoded(Vpa, {"metadata": {**meta, **MINE, **metadata}, "spec": VPA_SPEC})


def after(obj: Any, change: OwnedChange) -> Any:
    """An object after a write to it."""
    assert (change.manifest or {}).get("metadata", {}).get("resourceVersion", "7") == "7"  # type: ignore[attr-defined]
    return build.decoded(type(obj), json.loads(msgspec.json.encode(obj)), change.manifest)


def adopted_hpa(owner: Any = OWNER, **metadata: Any) -> Hpa:
    """The HPA of the workload's owner, once an Hvpa has adopted it."""
    before = acting_hpa()
    (change,) = [change for change in decide(owner, [before]).owned if change.kind == HPA]
    made: Hpa = build.decoded(
        Hpa, json.loads(msgspec.json.encode(after(before, change))), {"metadata": metadata}
    )
    return made


def adopted_vpa() -> Vpa:
    before = acting_vpa()
    (change,) = [change for change in decide(OWNER, vpas=[before]).owned if change.kind == VPA]
    made: Vpa = after(before, change)
    return made


def note(**parts: Any) -> str:
    return json.dumps({"hvpa": "web", "uid": build.UID, "spec": HPA_SPEC, **parts})


def noted(note: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> Hpa:
    """An adopted HPA with this annotation."""
    change: Json = {"metadata": {"annotations": {ADOPTED: note}, **metadata}, "spec": spec or {}}
    return build.decoded(Hpa, json.loads(msgspec.json.encode(adopted_hpa())), change)


def raw(obj: Hpa | Vpa) -> Json:
    return json.loads(bytes(obj.raw_spec))  # type: ignore[no-any-return]


# --- adoption --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [HPA, VPA])
def test_what_acts_is_adopted_in_one_write_without_an_owner_and_with_its_former_spec(kind: str) -> None:
    before: Any = acting_hpa() if kind == HPA else acting_vpa()
    decision = decide(OWNER, [before]) if kind == HPA else decide(OWNER, vpas=[before])
    (change,) = [change for change in decision.owned if change.kind == kind]
    assert (change.action, change.name) == ("apply", "by-hand")
    manifest: Any = change.manifest
    metadata = manifest["metadata"]
    assert "ownerReferences" not in metadata
    assert (metadata["uid"], metadata["resourceVersion"]) == ("uid-by-hand", "7"), (
        "only what was read is adopted"
    )
    assert json.loads(metadata["annotations"][ADOPTED]) == {
        "hvpa": "web",
        "uid": build.UID,
        "spec": HPA_SPEC if kind == HPA else VPA_SPEC,
    }
    assert TEMPLATE_HASH in metadata["annotations"]
    now = after(before, change)
    holder = holder_of(now)
    assert holder is not None
    assert (holder.kind, holder.name, holder.uid) == ("Hvpa", "web", build.UID)
    assert now.metadata.owner_references == before.metadata.owner_references


def test_what_only_recommends_is_owned_as_if_the_hvpa_had_created_it() -> None:
    decision = decide(OWNER, [hpa("old", POINTED_AT_US, **FREE)], [vpa("old", "Off", **FREE)])
    for change in decision.owned:
        manifest: Any = change.manifest
        assert manifest["metadata"]["ownerReferences"][0]["uid"] == build.UID
        assert ADOPTED not in manifest["metadata"]["annotations"]


def test_after_the_adoption_nothing_is_written_and_the_hvpa_uses_them() -> None:
    decision = decide(OWNER, [adopted_hpa()], [adopted_vpa()])
    assert decision.owned == ()
    assert active(decision)[1] == "NoMetrics"
    assert active(decision, "VpaActive")[1] == "NoRecommendation"


@pytest.mark.parametrize("spec", [{}, {"hpa": {"template": {"spec": {"maxReplicas": 8}}}}])
def test_neither_an_edit_nor_a_new_template_changes_what_it_was(spec: Json) -> None:
    """As when somebody applies the HPA again, which resets the target, or the template changes."""
    edited = noted(note(), {"scaleTargetRef": WORKLOAD, "maxReplicas": 99})
    (change,) = [change for change in decide(build.hvpa(spec), [edited]).owned if change.kind == HPA]
    manifest: Any = change.manifest
    assert manifest["metadata"]["annotations"][ADOPTED] == note()
    assert manifest["spec"]["scaleTargetRef"]["kind"] == "Hvpa"


def test_an_acting_hpa_comes_before_an_older_one_that_the_hvpa_created() -> None:
    young = acting_hpa(created="2026-11-03T00:00:00Z")
    own = applied(OWNER, HPA, "web", {"metadata": {"creationTimestamp": "2026-11-01T00:00:00Z"}})
    assert changes(decide(OWNER, [own, young])) == [("delete", "web"), ("apply", "by-hand")]


def test_of_several_that_act_none_is_adopted_or_deleted() -> None:
    own = applied(OWNER, HPA, "web")
    decision = decide(OWNER, [acting_hpa("a"), acting_hpa("b"), own], [acting_vpa("a"), acting_vpa("b")])
    assert changes(decision) == [("delete", "web")]
    assert changes(decision, VPA) == []
    assert active(decision) == ("False", "ForeignHpa")
    assert active(decision, "VpaActive") == ("False", "ForeignVpa")


def test_beside_another_that_acts_the_adopted_one_is_returned() -> None:
    decision = decide(OWNER, [adopted_hpa(), acting_hpa("b")])
    assert changes(decision) == [("return", "by-hand")]
    assert active(decision) == ("False", "ForeignHpa")


def test_what_another_hvpa_adopted_is_not_adopted_too() -> None:
    theirs = build.decoded(
        Vpa,
        json.loads(msgspec.json.encode(adopted_vpa())),
        {"metadata": {"annotations": {ADOPTED: note(hvpa="theirs", uid="t", spec=VPA_SPEC)}}},
    )
    assert changes(decide(OWNER, vpas=[theirs]), VPA) == [("apply", "web")]


def test_no_template_can_feign_an_adoption() -> None:
    owner = build.hvpa({"hpa": {"template": {"metadata": {"annotations": {ADOPTED: note(hvpa="gone")}}}}})
    (created,) = [change for change in decide(owner).owned if change.kind == HPA]
    manifest: Any = created.manifest
    assert set(manifest["metadata"]["annotations"]) == {TEMPLATE_HASH}


# --- return ----------------------------------------------------------------------------------------------------------
RELABELLED: Json = {"labels": {"of": "else", "team": "a"}}
MEANWHILE: dict[str, tuple[Any, Json, list[Hpa]]] = {
    "the Hvpa deploys none": (build.hvpa(ONLY_VPA), {}, []),
    "somebody took it away by its labels": (OWNER, RELABELLED, []),
    "an HPA of another client acts": (OWNER, {}, [KEDAS]),
    "an HPA acts beside an Hvpa that is paused": (build.hvpa({"mode": "Paused"}), {}, [KEDAS]),
}


@pytest.mark.parametrize(("owner", "metadata", "others"), MEANWHILE.values(), ids=MEANWHILE)
def test_it_is_made_as_it_was_instead_of_being_deleted(owner: Any, metadata: Json, others: list[Hpa]) -> None:
    present = adopted_hpa(**metadata)
    decision = decide(owner, [present, *others])
    (change,) = [change for change in decision.owned if change.kind == HPA]
    assert (change.action, change.name) == ("return", "by-hand")
    now = after(present, change)
    assert raw(now) == HPA_SPEC
    assert now.metadata.annotations == {}
    assert now.metadata.owner_references == acting_hpa().metadata.owner_references


def test_a_vpa_is_made_as_it_was_too() -> None:
    present = adopted_vpa()
    (change,) = [
        change for change in decide(build.hvpa(ONLY_HPA), vpas=[present]).owned if change.kind == VPA
    ]
    assert change.action == "return"
    assert raw(after(present, change)) == VPA_SPEC


@pytest.mark.parametrize("mode", ["Review", "Paused"])
@pytest.mark.parametrize(
    "window", [{}, {"maintenanceTimeWindow": {"begin": "030000+0000", "end": "040000+0000"}}]
)
def test_an_hvpa_that_may_soon_apply_keeps_it(mode: str, window: Json) -> None:
    assert decide(build.hvpa({"mode": mode, **window}), [adopted_hpa()], [adopted_vpa()]).owned == ()


def test_an_hvpa_that_only_recommends_makes_them_as_they_were_and_reads_them_as_they_are() -> None:
    """As an Hvpa that has never adopted; in mode Apply it then adopts them again."""
    looker, present = build.hvpa({"mode": "Recommend"}), (adopted_hpa(), adopted_vpa())
    decision = decide(looker, [present[0]], [present[1]])
    assert [change.action for change in decision.owned] == ["return", "return"]
    assert (decision.workload_patch, decision.scale_replicas, decision.resizes) == (None, None, ())
    hpa, vpa = (after(obj, change) for obj, change in zip(present, decision.owned, strict=True))
    assert (raw(hpa), raw(vpa)) == (HPA_SPEC, VPA_SPEC)
    for hpas, vpas in [
        ([hpa], [present[1]]),
        ([present[0]], [vpa]),
    ]:  # the operator stopped between the writes
        assert [change.action for change in decide(looker, hpas, vpas).owned] == ["return"]
    rests = decide(looker, [hpa], [vpa])
    assert rests.owned == ()
    assert active(rests) == ("False", "NoMetrics")
    never = decide(looker, [acting_hpa()], [acting_vpa()])
    assert [active(rests, kind) for kind in ("HpaActive", "VpaActive")] == [
        active(never, kind) for kind in ("HpaActive", "VpaActive")
    ]
    again = decide(OWNER, [hpa], [vpa]).owned
    manifests: list[Any] = [change.manifest for change in again]
    notes = [manifest["metadata"]["annotations"][ADOPTED] for manifest in manifests]
    assert notes == [present[0].metadata.annotations[ADOPTED], present[1].metadata.annotations[ADOPTED]]


def test_before_the_adoption_nothing_is_scaled_that_the_acting_one_scales() -> None:
    """The HPA recommends 6 replicas instead of 3, and the VPA twice the CPU."""
    acting = build.hpa(6, 200, {"metadata": {"ownerReferences": []}, "spec": {"scaleTargetRef": WORKLOAD}})
    measured = build.vpa(change={"metadata": FREE, "spec": {"updatePolicy": {"updateMode": "Recreate"}}})
    decision = decide(OWNER, [acting], [measured])
    assert [change.action for change in decision.owned] == ["apply", "apply"]
    assert decision.workload_patch is None
    adopted: list[Any] = [
        build.decoded(type(obj), json.loads(msgspec.json.encode(obj)), change.manifest)
        for obj, change in zip((acting, measured), decision.owned, strict=True)
    ]
    assert decide(OWNER, adopted[:1], adopted[1:]).workload_patch is not None


def test_one_that_the_spec_names_is_released_with_its_present_spec() -> None:
    owner = build.hvpa({**NAMED_HPA, "hpa": {"deploy": False, "name": "by-hand"}})
    (change,) = decide(owner, [adopted_hpa()]).owned
    assert change.action == "release"
    now = after(adopted_hpa(), change)
    assert holder_of(now) is None
    assert raw(now)["scaleTargetRef"]["kind"] == "Hvpa"


@pytest.mark.parametrize("mode", ["Apply", "Recommend", "Paused"])
def test_what_a_former_hvpa_of_this_name_adopted_is_returned_before_anything_else(mode: str) -> None:
    """As when somebody deletes the Hvpa and creates it again before the operator notices."""
    present = [noted(note(uid="former")), applied(OWNER, HPA, "web")]
    decision = decide(build.hvpa({"mode": mode}), present)
    assert changes(decision) == [("return", "by-hand")]
    assert active(decision) == ("False", "HpaAwaited")
    assert "HpaAwaited" not in warnings(decision)


GOING: Json = {"deletionTimestamp": build.LONG_AGO}


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ({"targetRef": {"name": "missing"}}, build.workload(change={"metadata": GOING})),
        ({"targetRef": {"kind": "DaemonSet"}}, build.workload(change={"kind": "DaemonSet"})),
    ],
    ids=["one that is missing", "one without replicas"],
)
def test_what_was_adopted_for_another_target_is_returned_though_the_new_target_has_no_use_for_it(
    spec: Json, target: Workload
) -> None:
    for uid in (build.UID, "former"):
        decision = decide(build.hvpa(spec), [noted(note(uid=uid))], [adopted_vpa()], target=target)
        assert changes(decision) == [("return", "by-hand")]
        assert changes(decision, VPA) == [("return", "by-hand")]


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ({"maintenanceTimeWindow": {"begin": "x", "end": "y"}}, build.workload()),
        ({}, build.workload(change={"metadata": GOING})),
    ],
    ids=["an error in its spec", "no workload"],
)
def test_an_hvpa_that_was_created_again_and_can_t_scale_returns_it_too(spec: Json, target: Workload) -> None:
    known = json.loads(msgspec.json.encode(adopted_vpa()))
    former = {"metadata": {"annotations": {ADOPTED: note(uid="former", spec=VPA_SPEC)}}}
    decision = decide(
        build.hvpa(spec), [noted(note(uid="former"))], [build.decoded(Vpa, known, former)], target=target
    )
    assert [change.action for change in decision.owned] == ["return", "return"]
    assert decide(build.hvpa(spec), [noted(note())], [adopted_vpa()], target=target).owned == ()
    going = noted(note(uid="former"), **GOING)
    assert decide(build.hvpa(spec), [going], target=target).owned == ()


def test_an_hvpa_that_only_recommends_returns_them_also_without_a_workload() -> None:
    looker, gone = build.hvpa({"mode": "Recommend"}), build.workload(change={"metadata": GOING})
    decision = decide(looker, [adopted_hpa()], [adopted_vpa()], target=gone)
    assert [change.action for change in decision.owned] == ["return", "return"]


def test_what_was_adopted_for_another_target_is_returned() -> None:
    elsewhere = {**HPA_SPEC, "scaleTargetRef": {**WORKLOAD, "name": "other"}}
    present = noted(note(spec=elsewhere))
    (change,) = [change for change in decide(OWNER, [present]).owned if change.kind == HPA]
    assert change.action == "return"
    assert raw(after(present, change)) == elsewhere


def test_an_hvpa_that_applies_waits_until_one_that_only_looks_has_returned_it() -> None:
    looker = OtherHvpa("looker", applies=False, deploys_hpa=True)
    target = {**POINTED_AT_US, "name": "looker"}
    theirs = noted(note(hvpa="looker", uid="l"), {"scaleTargetRef": target})
    decision = decide(OWNER, [theirs], others=(looker,))
    assert (changes(decision), active(decision)) == ([], ("False", "HpaAwaited"))


# --- the annotation --------------------------------------------------------------------------------------------------
UNUSABLE = ["", "no JSON", "[]", "{}", note(hvpa="A b"), note(hvpa=""), note(uid=1), 20_000 * "["]


@pytest.mark.parametrize("text", UNUSABLE)
def test_without_a_usable_annotation_it_is_not_adopted(text: str) -> None:
    assert adoption_of(noted(text)) is None
    assert holder_of(noted(text)) is None


def test_what_has_a_controller_is_not_adopted() -> None:
    assert adoption_of(noted(note(), **THEIRS)) is None
    owned = noted(note(), ownerReferences=[build.OWNER])
    assert changes(decide(build.hvpa(ONLY_VPA), [owned])) == [("delete", "by-hand")]


@pytest.mark.parametrize("spec", [1, [], {}, {"maxReplicas": 3}, {"scaleTargetRef": "web"}])
def test_without_a_usable_spec_the_present_one_stays(spec: Any) -> None:
    present = noted(note(spec=spec))
    assert changes(decide(OWNER, [present])) == [], "it is still the Hvpa's"
    (change,) = [change for change in decide(build.hvpa(ONLY_VPA), [present]).owned if change.kind == HPA]
    now = after(present, change)
    assert raw(now) == raw(present)
    assert now.metadata.annotations == {}


@given(st.text() | anything.map(json.dumps) | anything.map(lambda spec: note(spec=spec)))
def test_whatever_the_annotation_says_there_is_a_decision(text: str) -> None:
    present = noted(text)
    decide(OWNER, [present])
    if (adoption := adoption_of(present)) is not None:
        assert returned(present, adoption).manifest is not None


VALUES: Any = st.recursive(
    st.booleans() | st.integers(-(2**31), 2**31) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["minReplicas", "maxReplicas", "behavior", "metrics"]), VALUES))
def test_it_becomes_exactly_as_it_was(former: Json) -> None:
    spec = {"scaleTargetRef": WORKLOAD, **former}
    before = msgspec.structs.replace(acting_hpa(), raw_spec=msgspec.Raw(msgspec.json.encode(spec)))
    manifest = adopting({"metadata": {"annotations": {}}}, before, OWNER.metadata)
    present = noted(manifest["metadata"]["annotations"][ADOPTED])
    adoption = adoption_of(present)
    assert adoption is not None
    change: Any = returned(present, adoption).manifest
    assert build.merged(raw(present), change["spec"]) == spec
