"""The local copy: an Hvpa's own objects, and whom a change wakes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Meta, Pod, Selector, SelectorRequirement
from hvpa.core.model import ADOPTED, OtherHvpa
from hvpa.core.recommenders.ownership import AT_ONCE
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.custom_targets import NOT_YET
from hvpa.kube.cache.indexes import PodIndex, SelectorIndex, selects
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.cache.targeting import Target
from hvpa.kube.objects.resources import (
    DEPLOYMENTS,
    HPAS,
    HVPA_SIZES,
    HVPAS,
    PODS,
    STATEFULSETS,
    VPAS,
    ApiResource,
)
from hvpa.reconcile.ports import Key

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
NS = "shop"


class Harness:
    """A local copy, and the keys that it wants looked at."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        self.later: list[str] = []
        self.local = LocalCluster(
            (ALL_NAMESPACES,),
            lambda key: self.woken.append(key.name),
            lambda key: self.later.append(key.name),
        )
        self._version = 0

    def put(self, resource: ApiResource[Any], name: str, own: bool | None = None, **parts: Any) -> list[str]:
        """Have the watch (or an answer to our own write: `own`: whether a quiet one) bring an object; the names
        that this wakes."""
        self._version += 1
        metadata = {
            "name": name,
            "namespace": NS,
            "uid": f"uid-{name}",
            "resourceVersion": str(self._version),
        }
        metadata |= parts.pop("metadata", {})
        obj = resource.decode(msgspec.json.encode({"metadata": metadata, **parts}))
        self.woken.clear()
        store = self.local.store(resource)
        if own is None:
            store.put(obj)
        else:
            store.put_own(obj, quiet=own)
        return sorted(self.woken)

    def delete(self, resource: ApiResource[Any], name: str) -> list[str]:
        self.woken.clear()
        self.local.store(resource).delete(Key(NS, name))
        return sorted(self.woken)

    def hvpa(
        self, name: str, target: str = "web", kind: str = "Deployment", own: bool | None = None, **parts: Any
    ) -> list[str]:
        spec = {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target}, **parts.pop("spec", {})}
        return self.put(HVPAS, name, own, spec=spec, **parts)

    def workload(
        self, name: str = "web", replicas: int = 1, own: bool | None = None, **labels: str
    ) -> list[str]:
        spec = {"replicas": replicas, "selector": {"matchLabels": labels or {"app": name}}}
        return self.put(DEPLOYMENTS, name, own, spec=spec)

    def pod(self, name: str, phase: str = "Running", **labels: str) -> list[str]:
        return self.put(PODS, name, metadata={"labels": labels}, status={"phase": phase})

    def seen(self, name: str) -> Any:
        objects = self.local.objects(Key(NS, name))
        assert objects is not None
        return objects


def names(objects: Any) -> list[str]:
    return sorted(item.metadata.name for item in objects)


def hpa_for(kind: str, name: str) -> dict[str, Any]:
    return {"spec": {"scaleTargetRef": {"kind": kind, "name": name, "apiVersion": "x"}}}


def vpa_for(kind: str, name: str) -> dict[str, Any]:
    return {"spec": {"targetRef": {"kind": kind, "name": name}}}


def test_an_hvpa_s_own_objects_are_found() -> None:
    harness = Harness()
    harness.hvpa("h", spec={"hpa": {"name": "named"}})
    harness.workload()
    harness.put(HPAS, "named", **hpa_for("Other", "x"))
    harness.put(HPAS, "for-us", **hpa_for("Hvpa", "h"))
    harness.put(HPAS, "foreign", **hpa_for("Deployment", "web"))
    owner = {"kind": "Hvpa", "name": "h", "uid": "uid-h"}
    harness.put(HPAS, "owned", metadata={"ownerReferences": [{**owner, "controller": True}]})
    harness.put(HPAS, "only-mentions-us", metadata={"ownerReferences": [owner]})
    harness.put(HPAS, "h", **hpa_for("Deployment", "else"))
    harness.put(HPAS, "unrelated", **hpa_for("Deployment", "else"))
    harness.put(VPAS, "v", **vpa_for("Deployment", "web"))
    harness.put(VPAS, "w", **vpa_for("StatefulSet", "web"))
    harness.pod("web-1", app="web")
    harness.pod("else-1", app="else")
    objects = harness.seen("h")
    assert objects.workload is not None
    assert objects.workload.kind == "Deployment"
    assert names(objects.hpas) == ["for-us", "foreign", "h", "named", "owned"]
    assert names(objects.vpas) == ["v"]
    assert names(objects.pods) == ["web-1"]
    assert harness.local.objects(Key(NS, "nobody")) is None


def adopted(hvpa: str, uid: str = "u", **metadata: Any) -> dict[str, Any]:
    note = msgspec.json.encode({"hvpa": hvpa, "uid": uid, "spec": {}}).decode()
    return {"metadata": {"annotations": {ADOPTED: note}, **metadata}}


def test_what_an_hvpa_adopted_is_found_by_its_name_whatever_it_targets() -> None:
    """So an Hvpa that is created again finds what the former one adopted."""
    harness = Harness()
    harness.hvpa("h")
    assert harness.put(VPAS, "v", **vpa_for("Deployment", "else"), **adopted("h")) == ["h"]
    harness.put(HPAS, "p", **hpa_for("Hvpa", "h"), **adopted("h"))
    harness.put(HPAS, "other", **hpa_for("Hvpa", "other"), **adopted("other"))
    objects = harness.seen("h")
    assert (names(objects.hpas), names(objects.vpas)) == (["p"], ["v"])
    harness.put(VPAS, "v", **vpa_for("Deployment", "else"))
    assert names(harness.seen("h").vpas) == []


def test_an_hvpa_that_is_gone_is_woken_for_what_it_adopted() -> None:
    harness = Harness()
    assert harness.put(HPAS, "p", **hpa_for("Hvpa", "gone"), **adopted("gone")) == ["gone"]
    assert harness.put(HPAS, "p", **hpa_for("Deployment", "web")) == ["gone"], "for others that are left"
    assert harness.put(HPAS, "p", **hpa_for("Deployment", "web")) == []
    harness.put(VPAS, "v", **vpa_for("Deployment", "web"), **adopted("gone"))
    harness.hvpa("h")
    assert list(harness.local.known()) == [Key(NS, "h"), Key(NS, "gone")]
    (change,) = harness.local.adopted_by(Key(NS, "gone"))
    assert (change.action, change.kind, change.name) == ("return", VPAS.kind, "v")
    assert harness.local.adopted_by(Key("other", "gone")) == []
    owner = {"kind": "X", "name": "x", "uid": "x", "controller": True}
    assert harness.put(
        VPAS, "v", **vpa_for("Deployment", "web"), **adopted("gone", ownerReferences=[owner])
    ) == ["gone", "h"]
    assert harness.local.adopted_by(Key(NS, "gone")) == []
    assert list(harness.local.known()) == [Key(NS, "h")]


def test_of_many_adopted_objects_only_some_are_returned_at_once() -> None:
    harness = Harness()
    for number in range(AT_ONCE + 1):
        harness.put(HPAS, f"p{number}", **hpa_for("Hvpa", "gone"), **adopted("gone"))
    assert len(harness.local.adopted_by(Key(NS, "gone"))) == AT_ONCE


def test_the_same_pods_are_the_same_tuple() -> None:
    harness = Harness()
    harness.hvpa("h")
    harness.workload()
    harness.pod("web-1", app="web")
    pods = harness.seen("h").pods
    harness.pod("else-1", app="else")
    harness.workload(replicas=2)
    assert harness.seen("h").pods is pods
    harness.pod("web-1", "Pending", app="web")
    assert [pod.status.phase for pod in harness.seen("h").pods] == ["Pending"]
    harness.pod("web-1", "Failed", app="else")
    assert harness.seen("h").pods == ()
    harness.workload("web", app="else")
    assert names(harness.seen("h").pods) == ["else-1", "web-1"]
    harness.delete(DEPLOYMENTS, "web")
    assert harness.seen("h").pods == ()
    harness.workload()
    assert harness.seen("h").pods == ()
    harness.hvpa("h", target="other")
    harness.pod("web-2", app="web")
    harness.hvpa("h")
    assert names(harness.seen("h").pods) == ["web-2"]


def test_a_missing_or_unsupported_target_is_no_workload() -> None:
    harness = Harness()
    harness.hvpa("h", target="nobody")
    harness.hvpa("d", kind="DaemonSet")
    assert harness.seen("h").workload is None
    assert harness.seen("d").workload is None


def test_rivals_see_each_other_come_and_go() -> None:
    harness = Harness()
    assert harness.hvpa("one") == ["one"]
    assert harness.hvpa("two") == ["one", "two"]
    assert [rival.name for rival in harness.seen("one").others] == ["two"]
    assert [rival.name for rival in harness.seen("two").others] == ["one"]
    assert harness.hvpa("two", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}) == ["one", "two"]
    assert harness.seen("one").others == ()
    assert harness.hvpa("three") == ["one", "three"]  # two does not count any more
    assert harness.hvpa("three", target="other") == ["one", "three"]
    assert harness.seen("three").others == ()
    assert harness.delete(HVPAS, "two") == ["two"]  # of which the other one has known since it began to go


def looking(harness: Harness, name: str, **spec: Any) -> list[str]:
    return harness.hvpa(name, spec={"mode": "Recommend", **spec})


def test_those_that_look_see_what_the_others_of_their_target_have() -> None:
    harness = Harness()
    harness.workload()
    assert looking(harness, "b", hpa={"deploy": True}) == ["b"]
    assert harness.hvpa("a", spec={"vpa": {"deploy": True}}) == ["a", "b"]
    assert harness.seen("a").others == (OtherHvpa("b", False, True),)
    assert harness.seen("b").others == (OtherHvpa("a", True, False, True),)
    assert harness.put(HPAS, "x", **hpa_for("Hvpa", "a")) == ["a", "b"]
    assert names(harness.seen("b").hpas) == ["x"]
    assert harness.put(HPAS, "x", **hpa_for("Hvpa", "b")) == ["a", "b"]
    assert names(harness.seen("a").hpas) == ["x"]
    assert harness.put(HPAS, "x", **hpa_for("Hvpa", "nobody")) == ["a", "b"]
    assert harness.put(VPAS, "v", **vpa_for("Deployment", "web")) == ["a", "b"]
    assert harness.workload(replicas=3) == ["a", "b"]
    assert harness.hvpa("a", spec={"vpa": {"deploy": True}, "replicas": 3}) == ["a"], (
        "its HPA's count is no news"
    )
    assert harness.hvpa("a", spec={"mode": "Paused"}) == ["a", "b"]
    assert harness.seen("b").others == (OtherHvpa("a", False),)


def test_those_that_look_go_on_where_several_would_scale_and_none_does() -> None:
    harness = Harness()
    harness.workload()
    looking(harness, "looks")
    harness.hvpa("one")
    assert harness.hvpa("two") == ["looks", "one", "two"]
    assert harness.workload(replicas=2) == ["looks"]
    assert harness.delete(HVPAS, "two") == ["looks", "one", "two"]
    assert harness.workload(replicas=3) == ["looks", "one"]


def test_a_workload_wakes_the_hvpas_that_target_it_when_it_matters() -> None:
    harness = Harness()
    harness.hvpa("h")
    assert harness.workload() == ["h"]
    assert harness.workload() == []
    assert harness.workload(replicas=2) == ["h"]
    assert harness.workload("else") == []
    assert harness.put(STATEFULSETS, "web", spec={}) == []
    assert harness.delete(DEPLOYMENTS, "web") == ["h"]
    assert harness.seen("h").workload is None


def test_an_hvpa_s_status_wakes_it_unless_it_is_our_own_write() -> None:
    harness = Harness()
    harness.hvpa("h")
    assert harness.hvpa("h") == []
    assert harness.hvpa("h", status={"replicas": 1}) == ["h"]
    assert harness.hvpa("h", own=True, status={"replicas": 2}) == []
    harness.local.begin_status_write(Key(NS, "h"))
    assert harness.hvpa("h", status={"replicas": 3}) == []
    assert harness.hvpa("h", spec={"replicas": 5}, status={"replicas": 3}) == ["h"]  # `spec.replicas`
    harness.local.end_status_write(Key(NS, "h"), harness.local.hvpas.get(Key(NS, "h")))
    assert harness.hvpa("h", spec={"replicas": 5}, status={"replicas": 4}) == ["h"]


def test_recommenders_wake_those_that_they_are_about() -> None:
    harness = Harness()
    harness.hvpa("h", spec={"vpa": {"name": "named"}})
    harness.workload()
    assert harness.put(HPAS, "x", **hpa_for("Hvpa", "h")) == ["h"]
    assert harness.put(HPAS, "x", **hpa_for("Hvpa", "h")) == []
    assert harness.put(HPAS, "x", **hpa_for("Hvpa", "h"), status={"desiredReplicas": 2}) == ["h"]
    assert harness.put(HPAS, "x", **hpa_for("Deployment", "web")) == ["h"]
    assert harness.put(HPAS, "x", **hpa_for("Deployment", "else")) == ["h"]  # it let go of us
    assert harness.put(HPAS, "x", **hpa_for("Deployment", "third")) == []
    assert harness.put(VPAS, "named", **vpa_for("Deployment", "else")) == ["h"]
    assert harness.put(VPAS, "h", **vpa_for("Deployment", "else")) == ["h"]
    assert harness.delete(VPAS, "named") == ["h"]


def test_a_recommendation_s_bounds_that_move_a_little_wake_nobody() -> None:
    harness = Harness()
    harness.hvpa("h")

    def vpa(**recommended: Any) -> list[str]:
        recommendation = {"containerName": "app", **recommended}
        status = {"recommendation": {"containerRecommendations": [recommendation]}}
        return harness.put(VPAS, "v", **vpa_for("Deployment", "web"), status=status)

    assert vpa(target={"cpu": "1"}, upperBound={"cpu": "1900m"}) == ["h"]
    assert vpa(target={"cpu": "1"}, upperBound={"cpu": "2"}) == []
    assert vpa(target={"cpu": "1"}, upperBound={"cpu": "200"}) == ["h"], (
        "the recommender has lost its history"
    )
    assert vpa(target={"cpu": "2"}, upperBound={"cpu": "2"}) == ["h"]


def test_what_we_did_to_a_workload_ourselves_is_looked_at_later() -> None:
    harness = Harness()
    harness.hvpa("h")
    harness.workload()
    assert harness.workload(replicas=2, own=True) == []
    assert harness.later == ["h"]
    assert harness.workload(replicas=3) == ["h"]
    assert harness.later == ["h"]


def test_pods_wake_their_workload_s_hvpa_only_when_something_relevant_changed() -> None:
    harness = Harness()
    harness.hvpa("h")
    harness.workload()
    assert harness.pod("p", phase="Pending", app="web") == []
    assert harness.pod("p", app="web") == ["h"]
    assert harness.pod("p", app="web") == []
    assert harness.pod("p", phase="Failed", app="web") == ["h"]
    assert harness.pod("p", phase="Failed", app="else") == ["h"]
    assert names(harness.seen("h").pods) == []
    assert harness.pod("p", phase="Failed", app="web") == ["h"]
    assert harness.delete(PODS, "p") == ["h"]
    assert harness.pod("q", app="else") == []


def test_pods_that_came_before_their_workload_and_hvpa_count() -> None:
    harness = Harness()
    harness.pod("p", app="web")
    harness.workload()
    harness.hvpa("h")
    assert names(harness.seen("h").pods) == ["p"]
    assert harness.pod("p", phase="Failed", app="web") == ["h"]
    harness.workload("web", 1, tier="x")  # another selector
    assert names(harness.seen("h").pods) == []
    assert harness.pod("p", phase="Running", app="web") == []


def test_when_vpas_become_known_every_hvpa_is_looked_at() -> None:
    harness = Harness()
    harness.hvpa("a", "x")
    harness.hvpa("b", "y")
    harness.woken.clear()
    harness.local.set_served(VPAS, True)
    assert harness.woken == []
    harness.local.set_served(VPAS, False)
    assert sorted(harness.woken) == ["a", "b"]
    assert not harness.seen("a").vpa_served


def test_an_api_server_that_can_not_resize_pods_makes_rollout_the_default() -> None:
    harness = Harness()
    harness.hvpa("a", "x", spec={"blend": "Trajectory"})
    harness.hvpa("b", "y", spec={"blend": "Trajectory", "updateStrategy": {"type": "InPlaceOrRollout"}})

    def strategies() -> list[str | None]:
        specs = [harness.seen(name).hvpa.spec for name in ("a", "b")]
        return [spec.strategy.type for spec in specs if spec is not None]

    harness.woken.clear()
    harness.local.set_resizes_pods(True)
    assert harness.woken == []
    assert strategies() == ["InPlaceOrRollout", "InPlaceOrRollout"]
    harness.local.set_resizes_pods(False)
    assert sorted(harness.woken) == ["a", "b"]
    assert strategies() == ["Rollout", "InPlaceOrRollout"]
    assert (
        harness.seen("a").hvpa.spec is harness.seen("a").hvpa.spec
    )  # the same object: nothing is decided anew
    harness.local.set_resizes_pods(True)
    assert strategies() == ["InPlaceOrRollout", "InPlaceOrRollout"]


def test_sizes_of_new_pods_are_those_that_were_written_for_the_hvpa() -> None:
    harness = Harness()
    harness.hvpa("a", "x")
    size, other = "a; app 1:2 :", "gone"
    sizes = {"Deployment.apps/x": size, "Deployment.apps/y": other}
    assert harness.put(HVPA_SIZES, "hvpa", sizes=sizes) == ["a", "gone"]
    assert harness.seen("a").creation_sizes is None  # not served, as far as is known
    harness.woken.clear()
    harness.local.set_served(HVPA_SIZES, True)
    assert harness.woken == ["a"]
    assert harness.seen("a").creation_sizes == (("Deployment.apps/x", size),)
    assert harness.local.owners_of_sizes(Key(NS, "gone")) == ["Deployment.apps/y"]
    assert list(harness.local.known()) == [Key(NS, "a"), Key(NS, "gone")]


def test_another_size_of_new_pods_wakes_its_hvpa_unless_we_wrote_it() -> None:
    harness = Harness()
    for name in ("a", "b"):
        harness.hvpa(name, name)
    both = {f"Deployment.apps/{name}": name for name in ("a", "b")}
    assert harness.put(HVPA_SIZES, "hvpa", True, sizes=both) == []
    assert harness.put(HVPA_SIZES, "hvpa", sizes=both) == []
    assert harness.put(HVPA_SIZES, "hvpa", sizes={**both, "Deployment.apps/c": "b"}) == ["b"]
    assert harness.delete(HVPA_SIZES, "hvpa") == ["a", "b"]
    assert list(harness.local.known()) == [Key(NS, "a"), Key(NS, "b")]


def test_an_hvpa_whose_spec_is_nonsense_is_still_held() -> None:
    harness = Harness()
    harness.put(HVPAS, "bad", spec={"targetRef": 5, "hpa": "x"})
    objects = harness.seen("bad")
    assert objects.hvpa.spec is None
    assert objects.others == ()


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ["a", "b"], {"k": "a"}, True),
        ("In", ["a", "b"], {"k": "c"}, False),
        ("In", ["a"], {}, False),
        ("NotIn", ["a"], {"k": "b"}, True),
        ("NotIn", ["a"], {}, True),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("Exists", None, {"k": ""}, True),
        ("Exists", None, {}, False),
        ("DoesNotExist", None, {}, True),
        ("DoesNotExist", None, {"k": "a"}, False),
        ("Unheard", None, {"k": "a"}, False),
    ],
)
def test_selector_expressions(
    operator: str, values: list[str] | None, labels: dict[str, str], matches: bool
) -> None:
    allowed = None if values is None else frozenset(values)
    selector = Selector(match_expressions=[SelectorRequirement("k", operator, allowed)])
    assert selects(selector, labels) is matches


def test_an_empty_selector_matches_nothing() -> None:
    assert not selects(Selector(), {"a": "b"})


KEYS = st.sampled_from(["app", "tier", "pod-template-hash"])
LABELS = st.dictionaries(KEYS, st.sampled_from(["1", "2"]), max_size=3)
EXPRESSIONS = st.lists(
    st.builds(
        SelectorRequirement,
        KEYS,
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        st.lists(st.sampled_from(["1", "2"]), min_size=1, max_size=2),
    ),
    max_size=2,
)
SELECTORS = st.builds(Selector, LABELS, EXPRESSIONS)


@CALM
@given(st.lists(st.tuples(st.integers(0, 4), LABELS), max_size=12), SELECTORS)
def test_the_indexes_find_exactly_what_the_selector_matches(
    puts: list[tuple[int, dict[str, str]]], selector: Selector
) -> None:
    index, owners = PodIndex(), SelectorIndex[str]()
    owners.put("w", NS, selector)
    pods: dict[str, Pod] = {}
    for number, labels in puts:
        name = str(number)
        if name in pods:
            index.remove(pods.pop(name))
        if labels or number % 2:
            pods[name] = Pod(metadata=Meta(name=name, namespace=NS, labels=labels))
            index.put(pods[name])
    expected = sorted(name for name, pod in pods.items() if selects(selector, pod.metadata.labels))
    assert sorted(index.select(NS, selector)) == expected
    assert index.select("elsewhere", selector) == []
    owning = sorted(name for name, pod in pods.items() if list(owners.owners(NS, pod.metadata.labels)))
    assert owning == expected
    for pod in pods.values():
        index.remove(pod)
    owners.remove("w")
    assert len(index) == len(owners) == 0


@pytest.mark.parametrize("resource", [HVPAS, DEPLOYMENTS, HPAS, VPAS], ids=lambda resource: resource.kind)
def test_the_hvpa_that_changed_last_with_all_that_it_depends_on_is_the_first(
    resource: ApiResource[Any],
) -> None:
    harness = Harness()
    names = [f"app-{number}" for number in range(5)]
    for name in names:
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        for kind in (DEPLOYMENTS, HPAS, VPAS):
            harness.put(kind, name)
        harness.put(HVPAS, name, spec={"targetRef": reference})
    keys = [Key(NS, name) for name in names]
    assert harness.local.changed_last(keys) == keys[::-1]
    harness.put(resource, "app-2")
    assert harness.local.changed_last(keys)[0] == keys[2]


def test_versions_that_are_no_numbers_and_what_is_gone_give_no_order() -> None:
    harness = Harness()
    harness.put(HVPAS, "web", metadata={"resourceVersion": "x"})
    keys = [Key(NS, "web"), Key(NS, "gone")]
    assert harness.local.changed_last(keys) == keys


def test_an_hvpa_waits_for_the_list_of_its_targets_kind() -> None:
    harness = Harness()
    named: list[Target] = []
    harness.local.on_named = named.append
    harness.local.set_unlisted("DaemonSet", NOT_YET)
    harness.hvpa("h", kind="DaemonSet")
    harness.hvpa("other")
    assert named == [Target(NS, "DaemonSet", "web"), Target(NS, "Deployment", "web")]
    assert (harness.seen("h").unlisted, harness.seen("other").unlisted) == (NOT_YET, None)
    harness.woken.clear()
    harness.local.set_unlisted("DaemonSet", "403 Forbidden")
    assert (harness.seen("h").unlisted, harness.woken) == ("403 Forbidden", ["h"])
    harness.local.set_unlisted("DaemonSet", None)
    assert (harness.seen("h").unlisted, harness.woken) == (None, ["h", "h"])
    harness.local.set_unlisted("DaemonSet", None)
    assert harness.woken == ["h", "h"]
