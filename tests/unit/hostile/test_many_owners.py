"""Many objects that requirement to belong to an Hvpa, and many Hvpas that requirement one target: few are reported by
name, a few are written at a time, and one more or less wakes nobody else."""

from __future__ import annotations

import pytest

from builders.build import LONG_AGO, OWNER, merged
from hvpa.core.model import MOST_RIVALS
from hvpa.core.recommenders.ownership import AT_ONCE
from hvpa.core.values.memo import forget_all
from hvpa.reconcile.ports import Key
from tests.unit.hostile.documents import NAME, NAMESPACE, Json, documents
from tests.unit.hostile.reading import KEY, Watched, condition

MANY = 10_000
FEW = 8
SOME = 2_000
"""Of what takes longer to make than to look at."""
HVPA, DEPLOYMENT, HPA, VPA, POD = range(5)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    forget_all()


@pytest.mark.parametrize("deploy", [True, False])
@pytest.mark.parametrize("labels", [{"of": "web"}, {"of": "other"}])
def test_many_objects_that_claim_to_be_owned_go_a_few_at_a_time(deploy: bool, labels: Json) -> None:
    docs = documents("Additive")
    for part, number in (("hpa", HPA), ("vpa", VPA)):
        docs[HVPA]["spec"][part]["deploy"] = deploy
        for index in range(SOME):
            metadata = {"name": f"claims-{index}", "uid": str(index), "labels": labels}
            docs.append(merged(docs[number], {"metadata": metadata}))
    watched = Watched()
    for document in docs:
        watched.put(document)
    seen = watched.local.objects(KEY)
    assert seen is not None
    assert len(seen.hpas) == len(seen.vpas) == SOME + 1
    writes = watched.reconcile()
    for kind in ("HorizontalPodAutoscaler", "VerticalPodAutoscaler"):
        gone = [one for one in writes.owned if one.kind == kind and one.action == "delete"]
        assert len(gone) == AT_ONCE
    assert len(writes.owned) <= 2 * AT_ONCE + 2


def test_many_foreign_and_terminating_hpas_are_reported_by_few_names() -> None:
    docs = documents("Additive")
    foreign: Json = {"metadata": {"ownerReferences": [], "labels": None}}
    for index in range(SOME):
        metadata = {"name": f"foreign-{index}", "uid": str(index)}
        docs.append(merged(merged(docs[HPA], foreign), {"metadata": metadata}))
        metadata = {"name": f"going-{index}", "uid": f"g{index}", "deletionTimestamp": LONG_AGO}
        docs.append(merged(docs[HPA], {"metadata": metadata}))
    watched = Watched()
    for document in docs:
        watched.put(document)
    writes = watched.reconcile()
    assert condition(writes, "HpaActive").reason == "ForeignHpa"
    assert f"and {SOME - 10} more" in condition(writes, "HpaActive").message


def test_cyclic_owners_and_owners_by_the_thousand_do_no_harm() -> None:
    docs = documents("Additive")
    mentions = [{**OWNER, "name": f"h-{index}", "controller": False} for index in range(MANY)]
    docs[HPA]["metadata"]["ownerReferences"] += mentions
    docs[HVPA]["metadata"]["ownerReferences"] = [
        {"kind": "HorizontalPodAutoscaler", "name": NAME, "uid": docs[HPA]["metadata"]["uid"]},
        {**OWNER},
    ]
    owned = {"kind": "HorizontalPodAutoscaler", "name": NAME, "uid": docs[HPA]["metadata"]["uid"]}
    for name in ("a", "b"):
        metadata = {"name": name, "uid": name, "ownerReferences": [{**owned, "controller": True}]}
        target = {"apiVersion": "autoscaling/v2", "kind": owned["kind"], "name": "ab".replace(name, "")}
        docs.append(merged(docs[HPA], {"metadata": metadata, "spec": {"scaleTargetRef": target}}))
    watched = Watched()
    for document in docs:
        watched.put(document)
    for index in range(20):
        watched.put(
            merged(docs[HVPA], {"metadata": {"name": f"h-{index}"}, "spec": {"targetRef": {"name": "x"}}})
        )
    watched.woken.clear()
    docs[HPA]["status"]["desiredReplicas"] = 6
    docs[HPA]["metadata"]["resourceVersion"] = "8"
    watched.put(docs[HPA])
    assert watched.woken == [KEY]
    assert condition(watched.reconcile(), "Ready").reason == "Reconciled"


def test_many_hvpas_of_one_target_wake_each_other_a_few_times_only() -> None:
    watched = Watched()
    hvpa, deployment, *rest = documents("Additive")
    watched.put(deployment)
    for index in range(5000):
        watched.put(merged(hvpa, {"metadata": {"name": f"h-{index}", "uid": str(index)}}))
    assert len(watched.woken) < 5000 + 2 * (MOST_RIVALS + 2) ** 2
    seen = watched.local.objects(Key(NAMESPACE, "h-4711"))
    assert seen is not None
    assert len(seen.others) == MOST_RIVALS + 1
    writes = watched.reconcile(Key(NAMESPACE, "h-4711"))
    assert condition(writes, "Ready").reason == "TargetShared"
    assert f"more than {MOST_RIVALS} other Hvpas" in condition(writes, "Ready").message
    watched.woken.clear()
    for document in rest:  # none of them scales this target: nothing that becomes of it is news
        watched.put(document)
    deployment["spec"]["replicas"], deployment["metadata"]["resourceVersion"] = 9, "8"
    watched.put(deployment)
    assert len(watched.woken) < FEW
    watched.woken.clear()
    for index in range(1, 5000):
        watched.delete(hvpa["kind"], NAMESPACE, f"h-{index}")
    assert len(watched.woken) < 5000 + 2 * (MOST_RIVALS + 2) ** 2
    assert watched.woken[-1] == Key(NAMESPACE, "h-0")
    writes = watched.reconcile(Key(NAMESPACE, "h-0"))
    assert condition(writes, "Ready").reason == "HpaInactive", "its own is being created"


def test_many_hvpas_that_look_at_one_target_see_the_first_ones() -> None:
    watched = Watched()
    hvpa, *rest = documents("Additive")
    for document in (hvpa, *rest):
        watched.put(document)
    looks = merged(hvpa, {"spec": {"mode": "Recommend"}})
    for index in range(SOME):
        watched.put(merged(looks, {"metadata": {"name": f"h-{index}", "uid": str(index)}}))
    assert len(watched.woken) < SOME * (MOST_RIVALS + 2) * 2
    last = watched.reconcile(Key(NAMESPACE, f"h-{SOME - 1}"))
    assert condition(last, "Ready").reason == "Recommend"
    assert f"of Hvpa {NAME}" in condition(last, "HpaActive").message
    assert last.owned == []
    assert condition(watched.reconcile(), "Ready").reason == "Reconciled"


def test_an_hvpa_that_is_going_leaves_its_target_to_the_others() -> None:
    watched = Watched()
    hvpa, *rest = documents("Additive")
    for document in (hvpa, *rest):
        watched.put(document)
    late = merged(hvpa, {"metadata": {"name": "late", "uid": "late"}})
    watched.put(late)
    going = {"deletionTimestamp": LONG_AGO, "finalizers": ["x"], "resourceVersion": "9", "generation": 2}
    watched.put(merged(hvpa, {"metadata": going}))
    assert watched.local.objects(KEY) is not None  # asks for its pods
    watched.delete("Hvpa", NAMESPACE, "late")
    watched.put(merged(late, {"metadata": {"resourceVersion": "10"}}))
    pod = merged(rest[-1], {"metadata": {"name": "web-9", "uid": "9"}})
    watched.put(pod)
    seen = watched.local.objects(Key(NAMESPACE, "late"))
    assert seen is not None
    assert seen.others == ()
    assert len(seen.pods) == 4
