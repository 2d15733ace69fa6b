"""Many of something: what is written stays small, and the work grows with how many there are, not with its square. The
numbers are such that one that grew with the square would not come to an end."""

from __future__ import annotations

import pytest

from builders.build import LONG_AGO, OWNER, merged
from hvpa.api.hvpa.windows import MOST_WINDOWS
from hvpa.core.model import MOST_RIVALS
from hvpa.core.observing import MOST_CONTAINERS
from hvpa.core.recommenders.desired_replicas import MOST_METRICS
from hvpa.core.recommenders.ownership import AT_ONCE
from hvpa.core.values.memo import forget_all
from hvpa.core.workload.selector import MOST_TERMS
from hvpa.kube.objects.salvage import MOST_ENTRIES
from hvpa.reconcile.ports import Key
from tests.unit.hostile.documents import BLENDS, NAME, NAMESPACE, Json, documents
from tests.unit.hostile.reading import KEY, Watched, condition, reconciled

pytestmark = pytest.mark.long

MANY = 10_000
SOME = 2_000
"""Of what takes longer to make than to look at."""
FEW = 8
HVPA, DEPLOYMENT, HPA, VPA, POD = range(5)
AMOUNTS = {"cpu": "3", "memory": "3Gi"}


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    forget_all()


def containers(count: int) -> list[Json]:
    """Containers with names as long as they may be."""
    requests = {"cpu": "1234m", "memory": "1234567k"}
    limits = {"cpu": "2345m", "memory": "2345678k"}
    return [
        {"name": f"{number:05}".rjust(63, "c"), "resources": {"requests": requests, "limits": limits}}
        for number in range(count)
    ]


def targets(count: int) -> list[Json]:
    return [
        {"containerName": container["name"], "target": AMOUNTS, "uncappedTarget": AMOUNTS}
        for container in containers(count)
    ]


def with_containers(blend: str, count: int) -> list[Json]:
    docs = documents(blend)
    for number in (DEPLOYMENT, POD, POD + 1, POD + 2):
        spec = docs[number]["spec"]
        (spec["template"]["spec"] if number == DEPLOYMENT else spec)["containers"] = containers(count)
    docs[VPA]["status"]["recommendation"]["containerRecommendations"] = targets(count)
    return docs


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("mode", ["Apply", "Recommend"])
def test_as_many_containers_as_may_be_have_room(blend: str, mode: str) -> None:
    """`reconciled` looks at the sizes of what is written."""
    docs = with_containers(blend, MOST_CONTAINERS)
    docs[HVPA]["spec"]["mode"] = mode
    writes = reconciled(docs)
    assert writes.status is not None
    assert writes.status.recommended is not None
    assert len(writes.status.recommended.containers) == MOST_CONTAINERS


@pytest.mark.parametrize("blend", BLENDS)
def test_too_many_containers_are_not_scaled_and_it_is_reported(blend: str) -> None:
    writes = reconciled(with_containers(blend, MANY))
    ready = condition(writes, "Ready")
    assert ready.reason == "UnsupportedTarget"
    assert f"more than {MOST_CONTAINERS} containers" in ready.message
    assert writes.patch is None


def test_recommendations_for_many_strangers_are_reported_by_few_names() -> None:
    docs = documents("Additive")
    own = docs[VPA]["status"]["recommendation"]["containerRecommendations"]
    docs[VPA]["status"]["recommendation"]["containerRecommendations"] = own + targets(MANY)
    writes = reconciled(docs)
    assert condition(writes, "VpaActive").reason == "UnknownContainer"
    assert condition(writes, "VpaActive").message.endswith(f" and {MOST_ENTRIES - 11} more")
    assert writes.patch is not None


def test_policies_for_many_containers_are_found() -> None:
    docs = with_containers("Additive", MOST_CONTAINERS)
    docs[HVPA]["spec"]["vpa"] = {"name": NAME}
    policies = [{"containerName": container["name"], "mode": "Off"} for container in containers(MANY)]
    docs[VPA]["spec"]["resourcePolicy"] = {"containerPolicies": policies}
    writes = reconciled(docs)
    assert writes.patch is not None
    assert "template" not in writes.patch.body["spec"]  # type: ignore[operator]


def test_many_pods_with_many_conditions_are_counted() -> None:
    docs = documents("Additive")
    strange = [{"type": f"Strange{number}", "message": "m" * 20} for number in range(1000)]
    crowd = []
    for number in range(300):
        metadata = {"name": f"web-{number}", "uid": str(number)}
        conditions = [*docs[POD + 1]["status"]["conditions"], *strange]
        crowd.append(merged(docs[POD + 1], {"metadata": metadata, "status": {"conditions": conditions}}))
    docs[DEPLOYMENT]["spec"]["replicas"] = 300
    assert condition(reconciled(docs[:POD] + crowd), "Ready").reason == "Contested"


def test_megabytes_in_messages_are_cut() -> None:
    docs = documents("Additive")
    huge = "\x1b[31m" + "long " * 200_000
    docs[HPA]["status"]["conditions"] = [
        {"type": "ScalingActive", "status": "False", "reason": huge, "message": huge}
    ]
    docs[VPA]["status"]["conditions"] = [{"type": "LowConfidence", "status": "True", "message": huge}]
    evicted = f"The node was low on resource: memory. Container app was using {huge}"
    docs[POD]["status"] = {"phase": "Failed", "reason": "Evicted", "message": evicted, "startTime": LONG_AGO}
    writes = reconciled(docs)
    assert condition(writes, "HpaActive").reason == "ScalingInactive"
    assert condition(writes, "HpaActive").message.startswith("\\x1b[31mlong")
    assert condition(writes, "VpaActive").reason == "LowConfidence"


def test_a_selector_of_many_values_is_compared_quickly_and_reported_when_it_is_too_long() -> None:
    docs = documents("Additive")
    values = [f"{number:05}".rjust(60, "v") for number in range(MANY)]
    docs[DEPLOYMENT]["spec"]["selector"] = {
        "matchExpressions": [
            {"key": "app", "operator": "In", "values": [NAME, *values]},
            {"key": "tier", "operator": "NotIn", "values": values},
        ]
    }
    watched = Watched(docs)
    for number in range(SOME):
        labels = {"app": values[number], "number": str(number)}
        watched.put(merged(docs[POD], {"metadata": {"name": f"p-{number}", "labels": labels}}))
    objects = watched.objects()
    assert len(objects.pods) == 0, "the selector is not compared with any pod"
    ready = condition(watched.reconcile(), "Ready")
    assert ready.reason == "UnsupportedTarget"
    assert f"more than {MOST_TERMS} labels, conditions and values" in ready.message


def test_too_many_metrics_are_not_used() -> None:
    docs = documents("Additive")
    docs[HVPA]["spec"]["hpa"] = {"name": NAME}
    docs[HPA]["spec"]["metrics"] = [
        {"type": "External", "external": {"metric": {"name": f"m-{number}"}, "target": {"averageValue": "1"}}}
        for number in range(MANY)
    ]
    docs[HPA]["status"]["currentMetrics"] = [
        {
            "type": "External",
            "external": {"metric": {"name": f"m-{number}"}, "current": {"averageValue": "9"}},
        }
        for number in reversed(range(MANY))
    ]
    writes = reconciled(docs)
    assert condition(writes, "HpaActive").reason == "TooManyMetrics"
    assert str(MOST_METRICS) in condition(writes, "HpaActive").message


def test_metrics_in_another_order_are_found_by_their_names() -> None:
    docs = documents("Additive")
    docs[HPA]["status"]["currentMetrics"].reverse()
    straight, reverse = reconciled(documents("Additive")), reconciled(docs)
    assert straight.patch is not None
    assert reverse.patch is not None
    assert straight.patch.body["spec"] == reverse.patch.body["spec"]


def test_an_overlap_of_billions_of_counts_is_looked_through_in_steps() -> None:
    docs = documents("written")
    intervals = docs[HVPA]["spec"]["trajectory"]["intervals"]
    intervals[1] = {"maxReplicas": 2**31 - 1, "maxResources": {"cpu": "4", "memory": "4Gi"}}
    docs[HVPA]["spec"]["trajectory"]["overlap"] = {
        "cpu": {"value": "9000000000"},
        "memory": {"percentage": 90},
    }
    docs[HVPA]["spec"]["hpa"]["template"]["spec"]["maxReplicas"] = 2**31 - 1
    assert condition(reconciled(docs), "Ready").reason == "Reconciled"


def test_many_intervals_are_refused() -> None:
    docs = documents("Additive")
    docs[HVPA]["spec"]["weightBasedScalingIntervals"] = [{"vpaWeight": 1}] * MANY
    assert condition(reconciled(docs), "Ready").reason == "InvalidSpec"


def test_many_faults_of_a_spec_are_reported_by_the_first() -> None:
    docs = documents("Additive")
    docs[HVPA]["spec"].update({f"unknown{number}\x1b[31m": number for number in range(MANY)})
    writes = reconciled(docs)
    assert condition(writes, "Ready").reason == "InvalidSpec"
    assert "unknown0\\x1b[31m: unknown field" in condition(writes, "Ready").message


def test_overlapping_intervals_are_warned_of_once() -> None:
    docs = documents("Additive")
    overlapping = [{"vpaWeight": 50, "startReplicaCount": 1, "lastReplicaCount": 9}] * 100
    docs[HVPA]["spec"]["weightBasedScalingIntervals"] = overlapping
    writes = reconciled(docs)
    assert [event.reason for event in writes.events].count("SpecWarning") == 1
    assert writes.status is not None
    docs[HVPA]["status"]["conditions"] = [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
        for condition in writes.status.conditions
    ]
    again = reconciled(docs)
    assert "SpecWarning" not in [event.reason for event in again.events]


def test_as_many_windows_as_may_be_are_looked_up() -> None:
    docs = documents("Additive")
    window = {"schedule": "0 0 29 2 *", "duration": "1m", "timeZone": "Europe/Berlin"}
    docs[HVPA]["spec"]["maintenanceTimeWindow"] = None
    docs[HVPA]["spec"]["maintenanceWindows"] = [window] * MOST_WINDOWS
    writes = reconciled(docs)
    assert writes.status is not None
    assert {scaling.reason for scaling in writes.status.last_blocked_scaling} >= {"MaintenanceWindow"}


# --- many owners, and many Hvpas of one target: few are named, few are written at a time, no other Hvpa is woken ---
@pytest.mark.parametrize("deploy", [True, False])
@pytest.mark.parametrize("labels", [{"of": "web"}, {"of": "other"}])
def test_many_objects_that_claim_to_be_owned_go_a_few_at_a_time(deploy: bool, labels: Json) -> None:
    docs = documents("Additive")
    for part, number in (("hpa", HPA), ("vpa", VPA)):
        docs[HVPA]["spec"][part]["deploy"] = deploy
        for index in range(SOME):
            metadata = {"name": f"claims-{index}", "uid": str(index), "labels": labels}
            docs.append(merged(docs[number], {"metadata": metadata}))
    watched = Watched(docs)
    objects = watched.objects()
    assert len(objects.hpas) == len(objects.vpas) == SOME + 1
    writes = watched.reconcile()
    for kind in ("HorizontalPodAutoscaler", "VerticalPodAutoscaler"):
        gone = [change for change in writes.owned if change.kind == kind and change.action == "delete"]
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
    watched = Watched(docs)
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
    watched = Watched(docs)
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
    objects = watched.objects(Key(NAMESPACE, "h-4711"))
    assert len(objects.others) == MOST_RIVALS + 1
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
    hvpa, *rest = documents("Additive")
    watched = Watched((hvpa, *rest))
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
    hvpa, *rest = documents("Additive")
    watched = Watched((hvpa, *rest))
    late = merged(hvpa, {"metadata": {"name": "late", "uid": "late"}})
    watched.put(late)
    going = {"deletionTimestamp": LONG_AGO, "finalizers": ["x"], "resourceVersion": "9", "generation": 2}
    watched.put(merged(hvpa, {"metadata": going}))
    watched.objects()  # asks for its pods
    watched.delete("Hvpa", NAMESPACE, "late")
    watched.put(merged(late, {"metadata": {"resourceVersion": "10"}}))
    pod = merged(rest[-1], {"metadata": {"name": "web-9", "uid": "9"}})
    watched.put(pod)
    objects = watched.objects(Key(NAMESPACE, "late"))
    assert objects.others == ()
    assert len(objects.pods) == 4


def test_of_a_pod_with_very_many_labels_some_are_indexed() -> None:
    labels = {f"label-{number:05}": "x" * 60 for number in range(MANY)}
    watched = Watched(documents("Additive"))
    watched.put(merged(documents("Additive")[POD], {"metadata": {"name": "p-many", "labels": labels}}))
    pod = watched.local.pods.get(Key(NAMESPACE, "p-many"))
    assert pod is not None
    assert len(pod.metadata.labels) == MOST_ENTRIES
