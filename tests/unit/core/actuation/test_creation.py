"""Sizes of new pods: `hvpa.core.actuation.pods`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders.build import at, decided, hvpa, merged, objects, pod, vpa, workload
from hvpa.api.objects.read_models import Pod
from hvpa.core.actuation.pods import owner_keys, sizes_in
from hvpa.core.model import Decision, Objects, OtherHvpa, RefusedResize
from hvpa.core.values.tuning import CREATED_WITHIN
from tests.unit.core.actuation.sized_pods import (
    LARGER,
    REQUESTS,
    actuation,
    infeasible,
    running,
    size_status,
)
from tests.unit.core.recommenders.test_adoption import adopted_vpa

KEY: Final = "Deployment.apps/web"
SIZE: Final = f"web; app {LARGER['cpu']}: {LARGER['memory']}:"
OTHER: Final = "web; app 3: :"
Known = Sequence[tuple[str, str]]


def decision(
    known: Known | None,
    spec: Mapping[str, Any] | None = None,
    pods: Sequence[Pod] | None = None,
    status: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    """What is decided where LARGER was decided before, for two pods, and `known` are the sizes that were written."""
    present_pods = [running("web-1"), running("web-2", LARGER)] if pods is None else pods
    changes = merged({"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}}, spec or {})
    sized_hvpa = hvpa(changes, status or size_status(2, {"app": {"requests": LARGER}}))
    sizes = None if known is None else tuple(known)
    return decided(
        objects(
            sized_hvpa, workload(2), None, vpa({"app": LARGER}), present_pods, creation_sizes=sizes, **rest
        )
    )


@pytest.mark.parametrize(
    ("known", "changes"),
    [
        ([], {KEY: SIZE}),
        ([(KEY, OTHER)], {KEY: SIZE}),
        ([(KEY, SIZE)], {}),
        ([("StatefulSet.apps/web", OTHER), (KEY, SIZE)], {"StatefulSet.apps/web": None}),
        (None, {}),
    ],
)
def test_new_pods_get_what_was_decided(known: Known | None, changes: Mapping[str, Any]) -> None:
    decided = decision(known)
    assert decided.creation_sizes == changes
    assert actuation(decided).size_at_creation is (known is not None)


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        ({"mode": "Recommend"}, {}),
        ({"mode": "Paused"}, {}),
        ({"updateStrategy": {"type": "Rollout"}}, {KEY: None}),
        ({"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Sometimes"}}}}, {}),
    ],
)
def test_only_an_hvpa_that_resizes_writes(spec: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    assert decision([(KEY, OTHER)], spec).creation_sizes == changes


@pytest.mark.parametrize(("mode", "changes"), [("Recommend", {KEY: None}), ("Paused", {})])
def test_new_pods_get_no_size_once_the_vpa_that_was_adopted_sizes_them_again(
    mode: str, changes: Mapping[str, Any]
) -> None:
    own = hvpa({"mode": mode, "updateStrategy": {"type": "InPlace"}})
    known = ((KEY, SIZE),)
    result = decided(objects(own, workload(2), vertical=adopted_vpa(), creation_sizes=known))
    assert ("return" in [change.action for change in result.owned]) is bool(changes)
    assert result.creation_sizes == changes


def test_an_hvpa_that_may_not_scale_its_target_changes_nothing_of_it() -> None:
    """Two Hvpas share the target: what new pods get stays as it was."""
    assert decision([(KEY, OTHER)], others=(OtherHvpa("other"),)).creation_sizes == {}


def test_what_a_workload_left_behind_goes() -> None:
    in_place_hvpa = hvpa({"updateStrategy": {"type": "InPlace"}})
    assert decided(Objects(hvpa=in_place_hvpa, creation_sizes=((KEY, SIZE),))).creation_sizes == {KEY: None}


def test_where_nothing_was_decided_nothing_is_written() -> None:
    off = {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    assert decision([], off, status=size_status(2, {})).creation_sizes == {}


def test_canary_new_pods_get_the_size_of_the_others() -> None:
    spec = {"updateStrategy": {"canary": {"pods": 1, "duration": "10m"}}}
    canary = {"pods": ["web-2"], "previous": [{"name": "app", "requests": REQUESTS}]}
    status = size_status(2, {"app": {"requests": LARGER}}, canary=canary)
    size = f"web; app {REQUESTS['cpu']}: {REQUESTS['memory']}:"
    assert decision([], spec, status=status).creation_sizes == {KEY: size}


def test_a_size_that_the_api_server_or_a_node_will_not_have_is_not_for_new_pods() -> None:
    (resize, *_) = decision([]).resizes
    refused = RefusedResize(resize.uid, resize.body, "exceeded quota", at(), 1)
    assert decision([(KEY, SIZE)], refused_resizes=(refused,)).creation_sizes == {KEY: None}
    kind = {"updateStrategy": {"type": "InPlaceOrRollout"}}
    assert decision([(KEY, SIZE)], kind, [infeasible(), running("web-2")]).creation_sizes == {KEY: None}


def test_pods_that_are_not_created_for_long_are_not_to_have_the_size() -> None:
    """A quota may refuse it; the answer is known to their controller only."""

    def one_pod(since: dt.datetime) -> Decision:
        status = size_status(2, {"app": {"requests": LARGER}}, since)
        return decision([(KEY, SIZE)], pods=[running("web-2", LARGER)], status=status)

    assert one_pod(at() - CREATED_WITHIN).creation_sizes == {KEY: None}
    early = one_pod(at(seconds=-29))
    assert early.creation_sizes == {}
    assert early.recheck_after is not None
    assert early.recheck_after <= dt.timedelta(seconds=1)


@pytest.mark.parametrize(
    "key", ["StatefulSet.apps/web", "DaemonSet.apps/web", "ReplicaSet.apps/web", "ReplicationController/web"]
)
def test_each_kind_has_its_key(key: str) -> None:
    kind = key.partition("/")[0].removesuffix(".apps")
    assert set(owner_keys(workload(kind=kind), [])) == {key}


def test_only_pods_of_a_custom_kind_name_their_owner() -> None:
    rollout = structs.replace(workload(kind="Rollout"), api_version="argoproj.io/v1alpha1")
    owners = [
        {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": name, "controller": True}
        for name in ("web-a", "web-b")
    ]
    pods = [pod(change={"metadata": {"ownerReferences": [owner]}}) for owner in owners]
    keys = {"ReplicaSet.apps/web-a", "ReplicaSet.apps/web-b"}
    alone = pod("alone", change={"metadata": {"ownerReferences": []}})
    assert set(owner_keys(rollout, [*pods, *pods, alone])) == keys


def test_pods_of_another_owner_neither_count_nor_get_a_size() -> None:
    """Of two pods that the selector matches, one is a Job's."""
    job = {"kind": "Job", "apiVersion": "batch/v1", "name": "import", "uid": "j", "controller": True}
    pods = [running("web-1", LARGER), running("web-2", change={"metadata": {"ownerReferences": [job]}})]
    late = size_status(2, {"app": {"requests": LARGER}}, at(minutes=-5))
    assert decision([(KEY, SIZE)], pods=pods, status=late).creation_sizes == {KEY: None}
    rollout = structs.replace(workload(1, kind="Rollout"), api_version="argoproj.io/v1alpha1")
    target = {"apiVersion": rollout.api_version, "kind": rollout.kind}
    spec = {"updateStrategy": {"type": "InPlace"}, "targetRef": target, "hpa": {"deploy": False}}
    rollout_hvpa = hvpa(spec, size_status(1, {"app": {"requests": LARGER}}))
    rollout_decision = decided(
        objects(rollout_hvpa, rollout, None, vpa({"app": LARGER}), pods, creation_sizes=())
    )
    assert set(rollout_decision.creation_sizes) == {"Deployment/web"}


@given(st.text("web; app:123m\n ", max_size=40))
def test_an_entry_of_any_text_can_be_read(entry: str) -> None:
    assert all(name in entry for name in sizes_in(entry))
