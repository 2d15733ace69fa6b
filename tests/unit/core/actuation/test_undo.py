"""The return to the sizes before the last step (`hvpa undo`), of pods that are resized in place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders.build import (
    NOW,
    at,
    condition,
    container,
    decided,
    hpa,
    hvpa,
    merged,
    objects,
    stamp,
    vpa,
    with_status,
    workload,
)
from hvpa.api.hvpa.progress import DesiredSize
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import PreviousSize
from hvpa.api.objects.read_models import Pod
from hvpa.core.actuation.undo import ANNOTATION, returned
from hvpa.core.model import Decision, Objects, OtherHvpa
from hvpa.core.workload.containers import amounts
from tests.unit.core.actuation.sized_pods import (
    LARGER,
    REQUESTS,
    infeasible,
    out_of_memory,
    resized,
    running,
    size_status,
)
from tests.unit.core.actuation.starting_pods import BOOST, DOWN, HAD, starting

STEP = stamp(at(minutes=-5))
BY_ANN = {"by": "ann", "step": STEP}
TEXT = "the sizes before the step of 2026-11-21T09:55:00Z, by hvpa undo (ann)"
ENTRY = "Deployment.apps/web"


def status(replicas: int = 2, before: int = 2, **more: Any) -> dict[str, Any]:
    """The status after a step from `before` pods of REQUESTS to `replicas` pods of LARGER."""
    app = {"name": "app", "requests": LARGER}
    desired = {"replicas": replicas, "containers": [app], "since": STEP, "generation": 1}
    previous = {"time": STEP, "replicas": before, "containers": [{"name": "app", "requests": REQUESTS}]}
    source = {"container": "app", "resource": "cpu", "target": "2", "weight": 100, "request": "2"}
    axis = {"lastScaleTime": STEP, "lastScaleUpTime": STEP, "appliedFrom": [source]}
    return merged({"desired": desired, "previousSize": previous, "axes": {"vertical": axis}}, more)


def after_step(
    pods: Sequence[Pod],
    known: Mapping[str, Any] | None = None,
    annotation: Any = BY_ANN,
    spec: Mapping[str, Any] | None = None,
    target: Any = None,
    **rest: Any,
) -> Objects:
    """A paused Hvpa with this annotation. Its VPA wants LARGER."""
    text = annotation if isinstance(annotation, str) else json.dumps(annotation)
    paused = {"mode": "Paused", "updateStrategy": {"type": "InPlace"}}
    meta = {"annotations": {ANNOTATION: text} if text else {}}
    manifest = hvpa(merged(paused, spec or {}), known or status(), meta)
    return objects(manifest, target or workload(len(pods)), hpa(), vpa({"app": LARGER}), pods, **rest)


def undone(pods: Sequence[Pod], *arguments: Any, **named: Any) -> Decision:
    """What is decided about them."""
    return decided(after_step(pods, *arguments, **named))


def carried_out(inputs: Objects) -> Objects:
    """The same once the status is written."""
    return replace(inputs, hvpa=with_status(inputs.hvpa, decided(inputs).status))


def large(*names: str, **changes: Any) -> list[Pod]:
    return [running(name, LARGER, **changes) for name in names]


def desired(decision: Decision) -> DesiredSize:
    assert decision.status.desired is not None
    return decision.status.desired


def changes_nothing(decision: Decision) -> bool:
    return not decision.resizes and decision.workload_patch is None and not decision.creation_sizes


# --- what it does --------------------------------------------------------------------------------------------------
def test_pods_and_new_pods_get_the_sizes_before_the_step() -> None:
    decision = undone(large("web-1", "web-2"), creation_sizes=((ENTRY, "web; app 2: 2Gi:"),))
    assert resized(decision) == {"web-1": {"requests": REQUESTS}, "web-2": {"requests": REQUESTS}}
    assert decision.creation_sizes == {ENTRY: "web; app 1: 1Gi:"}
    assert decision.workload_patch is None
    assert (desired(decision).replicas, desired(decision).since) == (2, NOW)
    assert condition(decision, "Paused").message == (
        f"spec.mode is Paused: pods get {TEXT}, and HVPA changes nothing else"
    )
    ready = condition(decision, "Ready")
    assert (ready.status, ready.reason) == ("True", "Paused")
    assert ready.message == f"mode Paused: pods get {TEXT}; 0/2 pods have the desired size"
    events = [event.message for event in decision.events if event.reason == "Undone"]
    assert events == [f"cpu 2 -> 1 of app, memory 2Gi -> 1Gi of app: {TEXT}"]


def test_then_nothing_changes_until_it_is_resumed_except_pods_of_another_size() -> None:
    inputs = after_step(large("web-1", "web-2"))
    inputs = carried_out(inputs)
    done = replace(inputs, pods=(running("web-1"), running("web-2")))
    decision = decided(done, at(hours=3))
    assert changes_nothing(decision)
    assert decision.status.desired == inputs.hvpa.status.desired
    assert not [event for event in decision.events if event.reason == "Undone"]
    assert condition(decision, "Ready").message == f"mode Paused: pods get {TEXT}; all pods have them"


def test_once_all_pods_have_had_it_somebody_may_resize_them_by_hand_and_only_new_pods_get_it() -> None:
    """Memory that runs out, for example: HVPA is paused, so a person has to raise it."""
    inputs = carried_out(after_step(large("web-1", "web-2")))
    half = replace(inputs, pods=(running("web-1"), *large("web-2")))
    assert restored_at(half) is None
    assert resized(decided(replace(half, pods=(*large("web-1"), running("web-2")))))
    both = replace(inputs, pods=(running("web-1"), running("web-2")))
    done = replace(both, hvpa=with_status(both.hvpa, decided(both, at(minutes=1)).status))
    assert done.hvpa.status.previous_size is not None
    assert done.hvpa.status.previous_size.restored == at(minutes=1)
    assert decided(done, at(hours=1)).status.previous_size == done.hvpa.status.previous_size

    by_hand = running("web-1", {"cpu": "1", "memory": "4Gi"})
    new = running("web-3", LARGER, change={"status": {"startTime": stamp(at(minutes=58))}})
    (unstarted,) = large("web-4")
    unstarted = structs.replace(unstarted, status=structs.replace(unstarted.status, start_time=None))
    later = replace(done, pods=(by_hand, new, unstarted))
    assert set(resized(decided(later, at(hours=1)))) == {"web-3", "web-4"}
    message = condition(decided(later, at(hours=1)), "Ready").message
    assert message.endswith(
        "0/3 pods have the desired size: pod web-1: another client has resized it since hvpa undo"
    )


def test_boosts_end_also_once_all_pods_have_had_it() -> None:
    """A pod starts late, for example because its image takes long to pull."""
    known = status(1, 1, previousSize={"restored": stamp(at(minutes=-20))})
    size = {"containers": [{"name": "app", "requests": REQUESTS}], "since": stamp(at(hours=-1))}
    late = starting(seconds=600, runs=200, ready=True, changed=100)
    boosts = {"startupBoost": [BOOST]}
    assert resized(
        undone([late], {**known, **HAD, "desired": {**known["desired"], **size}}, spec=boosts)
    ) == {"web-1": DOWN}


def restored_at(inputs: Objects) -> Any:
    previous = decided(inputs).status.previous_size
    assert previous is not None
    return previous.restored


def test_a_step_during_a_trial_is_taken_back_with_the_trial() -> None:
    """The size before it is that of the pods that do not try it. Otherwise all pods would get an untested size."""
    tried = {"cpu": "1", "memory": "2Gi"}
    known = size_status(
        2,
        {"app": {"requests": tried}},
        canary={"pods": ["web-1"], "previous": [{"name": "app", "requests": {"memory": "1Gi"}}]},
    )
    canary = {"type": "InPlace", "canary": {"pods": 1}}
    spec = {
        "updateStrategy": canary,
        "hpa": {"deploy": False},
        "weightBasedScalingIntervals": [{"vpaWeight": 100}],
    }
    pods = [out_of_memory("web-1", 0.5, requests=tried), running("web-2")]
    inputs = objects(hvpa(spec, known), workload(2), None, vpa({"app": {"cpu": "1", "memory": "3Gi"}}), pods)
    previous = decided(inputs).status.previous_size
    assert previous is not None
    assert [(one.name, one.requests) for one in previous.containers] == [("app", REQUESTS)]


def test_the_next_step_after_it_is_resumed_starts_from_these_sizes_and_is_recorded_as_usual() -> None:
    inputs = after_step(large("web-1", "web-2"), spec={"weightBasedScalingIntervals": [{"vpaWeight": 100}]})
    inputs = carried_out(inputs)
    axes = inputs.hvpa.status.axes
    assert axes is not None
    assert axes.vertical is not None
    assert (axes.vertical.applied_from, axes.vertical.last_scale_time) == ((), NOW)
    assert inputs.hvpa.spec is not None
    applying = replace(inputs.hvpa, spec=inputs.hvpa.spec.model_copy(update={"mode": "Apply"}))
    decision = decided(replace(inputs, hvpa=applying, pods=(running("web-1"), running("web-2"))), at(hours=3))
    assert {size["requests"]["cpu"] for size in resized(decision).values()} == {"2"}
    assert condition(decision, "Contested").status == "False"
    previous = decision.status.previous_size
    assert previous is not None
    assert (previous.time, previous.containers[0].requests) == (at(hours=3), REQUESTS)


# --- replicas --------------------------------------------------------------------------------------------------------
def test_replicas_come_back_once_and_lower_requests_wait_for_them() -> None:
    inputs = after_step(large("web-1", "web-2"), status(2, before=4))
    decision = decided(inputs)
    patch = decision.workload_patch
    assert patch is not None
    assert (patch.is_scale, patch.body["spec"]) == (True, {"replicas": 4})
    assert not decision.resizes
    assert [event.message for event in decision.events if event.reason == "Undone"] == [
        f"cpu 2 -> 1 of app, memory 2Gi -> 1Gi of app: replicas 2 -> 4, {TEXT}"
    ]
    waits = "waits for the added replicas, at most until 2026-11-21T10:05:00Z"
    assert waits in condition(decision, "Ready").message

    scaled = workload(4, change={"metadata": {"generation": 2}})
    after = replace(carried_out(inputs), workload=scaled)
    new = [
        running(name, change={"metadata": {"creationTimestamp": stamp(at(seconds=20))}}, ready=ready)
        for name, ready in (("web-3", True), ("web-4", False))
    ]
    starting = replace(after, pods=(*large("web-1", "web-2"), *new))
    assert changes_nothing(decided(starting, at(minutes=1)))
    late = decided(starting, at(minutes=5))
    assert (set(resized(late)), late.workload_patch) == ({"web-1", "web-2"}, None)
    all_ready = replace(after, pods=(*large("web-1", "web-2"), new[0], running("web-4")))
    assert set(resized(decided(all_ready, at(minutes=1)))) == {"web-1", "web-2"}

    scaled_in = replace(all_ready, workload=workload(3, change={"metadata": {"generation": 9}}))
    assert decided(scaled_in, at(minutes=1)).workload_patch is None  # another client's count stays


@pytest.mark.parametrize(
    ("replicas", "before", "spec"),
    [(4, 2, {}), (0, 2, {}), (2, 4, {"hpa": {"deploy": False}})],
    ids=["never fewer", "none at 0", "not without an HPA"],
)
def test_other_replicas_stay(replicas: int, before: int, spec: Mapping[str, Any]) -> None:
    pods = large(*[f"web-{index}" for index in range(replicas)])
    decision = undone(pods, status(replicas, before), spec=spec)
    assert (decision.workload_patch, desired(decision).replicas) == (None, replicas)
    assert set(resized(decision)) == {one.metadata.name for one in pods}


def test_after_it_is_resumed_replicas_that_came_back_are_not_another_clients_either() -> None:
    """Not even soon after another client did set them."""
    of_replicas = {
        "lastScaleTime": STEP,
        "appliedFrom": {"replicas": 2, "desired": 2, "weight": 0},
        "setBack": {"count": 1, "time": STEP},
    }
    inputs = carried_out(
        after_step(large("web-1", "web-2"), status(2, before=4, axes={"horizontal": of_replicas}))
    )
    assert inputs.hvpa.spec is not None
    applying = replace(inputs.hvpa, spec=inputs.hvpa.spec.model_copy(update={"mode": "Apply", "replicas": 2}))
    four = tuple([running(f"web-{index}") for index in range(4)])
    resumed = replace(inputs, hvpa=applying, hpas=(hpa(2, 35),), pods=four)
    resumed = replace(resumed, workload=workload(4, change={"metadata": {"generation": 2}}))
    decision = decided(resumed, at(minutes=8))
    assert condition(decision, "Contested").status == "False"
    assert decision.workload_patch is not None


def test_added_replicas_count_as_new_if_the_clock_of_the_api_server_is_behind() -> None:
    after = replace(
        carried_out(after_step(large("web-1", "web-2"), status(2, before=4))),
        workload=workload(4, change={"metadata": {"generation": 2}}),
    )
    created = {"metadata": {"creationTimestamp": stamp(at(seconds=-30))}}
    new = [running(name, change=created, ready=False) for name in ("web-3", "web-4")]
    assert changes_nothing(decided(replace(after, pods=(*large("web-1", "web-2"), *new)), at(seconds=20)))


def test_a_daemonset_gets_no_replicas() -> None:
    pods = large("web-1", "web-2")
    daemonset = workload(2, change={"kind": "DaemonSet"})
    decision = undone(pods, status(2, before=4), spec={"targetRef": {"kind": "DaemonSet"}}, target=daemonset)
    assert (desired(decision).replicas, set(resized(decision))) == (2, {"web-1", "web-2"})


def test_replicas_that_the_api_server_refused_do_not_hold_up_the_sizes() -> None:
    refused = {"count": 1, "time": stamp(NOW), "message": "no", "changes": [{"current": 2, "wanted": 4}]}
    known = status(2, before=4, axes={"horizontal": {"refused": refused}})
    decision = undone(large("web-1", "web-2"), known)
    assert (decision.workload_patch, set(resized(decision))) == (None, {"web-1", "web-2"})
    long_ago = status(2, before=4, axes={"horizontal": {"refused": {**refused, "time": STEP}}})
    assert undone(large("web-1", "web-2"), long_ago).workload_patch is not None


# --- pods ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["InPlace", "InPlaceOrRollout"])
def test_pods_that_cannot_be_resized_are_reported_and_never_replaced(kind: str) -> None:
    known = status(
        1, 1, previousSize={"containers": [{"name": "app", "requests": {"cpu": "3", "memory": "1Gi"}}]}
    )
    pods = [infeasible("web-1", {"cpu": "3", "memory": "1Gi"})]
    decision = undone(pods, known, spec={"updateStrategy": {"type": kind}})
    assert decision.workload_patch is None
    ready = condition(decision, "Ready")
    assert (ready.status, ready.reason) == ("False", "PodsNotResized")
    assert ready.message.startswith("pod web-1: the kubelet says Infeasible")


@pytest.mark.parametrize("mode", ["Off", "MaintenanceWindow"])
def test_neither_an_update_mode_nor_a_maintenance_window_holds_it(mode: str) -> None:
    never = {"updatePolicy": {"updateMode": mode}}
    decision = undone(large("web-1"), status(1, 1), spec={"vpa": {"scaleUp": never, "scaleDown": never}})
    assert set(resized(decision)) == {"web-1"}


def test_a_trial_of_the_size_ends() -> None:
    previous = [{"name": "app", "requests": REQUESTS}]
    known = status(desired={"canary": {"pods": ["web-1"], "previous": previous}})
    canary = {"updateStrategy": {"canary": {"pods": 1}}}
    decision = undone([*large("web-1"), running("web-2")], known, spec=canary)
    assert (desired(decision).canary, set(resized(decision))) == (None, {"web-1"})


def test_only_what_hvpa_decides_comes_back() -> None:
    """Memory is the template's, which has changed since; a limit that did not exist before can't be removed."""
    known = status(
        1,
        1,
        desired={"containers": [{"name": "app", "requests": {"cpu": "2"}, "limits": {"cpu": "4"}}]},
        previousSize={
            "containers": [{"name": "app", "requests": REQUESTS}, {"name": "gone", "requests": REQUESTS}]
        },
    )
    template = [container(requests={"cpu": "1", "memory": "3Gi"}, limits={"cpu": "4"})]
    pods = [running("web-1", {"cpu": "2", "memory": "3Gi"}, limits={"cpu": "4"})]
    decision = undone(pods, known, target=workload(1, template))
    (app,) = desired(decision).containers
    assert (app.requests, app.limits) == ({"cpu": "1"}, {"cpu": "4"})
    assert resized(decision) == {"web-1": {"requests": {"cpu": "1"}}}


# --- when it does nothing --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("annotation", "known", "spec", "why"),
    [
        ("", None, {}, ""),
        ("{", None, {}, "Input data was truncated"),
        (b"\xff".decode("latin-1"), None, {}, "JSON is malformed"),
        ({"by": "ann"}, None, {}, "Object missing required field `step`"),
        ({"step": "yesterday"}, None, {}, "Invalid RFC3339 encoded datetime - at `$.step`"),
        (
            {"step": "9999-12-31T23:59:59.5+10:00"},
            None,
            {},
            "status.previousSize is not the size before 9999-12-31T14",
        ),
        ({"step": "2026-11-21T09:55:00"}, None, {}, "Expected `datetime` with a timezone component"),
        ({**BY_ANN, "sizes": {}}, None, {}, "Object contains unknown field `sizes`"),
        ({**BY_ANN, "by": "a" * 257}, None, {}, "Expected `str` of length <= 256 - at `$.by`"),
        (
            {**BY_ANN, "step": "2026-11-21T09:54:00Z"},
            None,
            {},
            "status.previousSize is not the size before 2026-11-21T09:54:00Z",
        ),
        (
            BY_ANN,
            status(previousSize=None),
            {},
            "status.previousSize is not the size before 2026-11-21T09:55:00Z",
        ),
        (BY_ANN, status(desired=None), {}, "HVPA has decided no size for pods that are resized in place"),
        (BY_ANN, None, {"updateStrategy": {"type": "Rollout"}}, "HVPA has decided no size"),
    ],
)
def test_an_annotation_without_effect_changes_nothing_and_is_reported(
    annotation: Any, known: Any, spec: Mapping[str, Any], why: str
) -> None:
    decision = undone(large("web-1", "web-2"), known, annotation, spec)
    assert changes_nothing(decision)
    message, begin = condition(decision, "Paused").message, "spec.mode is Paused: the workload is not changed"
    if not why:
        assert message == begin
        return
    assert message.startswith(f"{begin}; nothing is undone: annotation {ANNOTATION}: {why}")


@pytest.mark.parametrize("mode", ["Apply", "Review", "Recommend"])
def test_it_counts_only_in_mode_paused(mode: str) -> None:
    decision = undone(large("web-1", "web-2"), spec={"mode": mode})
    assert changes_nothing(decision)
    assert "undo" not in condition(decision, "Paused").message


def test_an_invalid_spec_or_a_missing_workload_does_no_harm() -> None:
    assert changes_nothing(undone(large("web-1"), spec={"blend": "Never"}))
    missing = replace(after_step(large("web-1")), workload=None, creation_sizes=())
    decision = decided(missing)
    assert changes_nothing(decision)
    assert condition(decision, "Ready").reason == "TargetNotFound"


def test_after_a_crash_before_the_replicas_were_written_they_are_written() -> None:
    """The status is written first."""
    inputs = after_step(large("web-1", "web-2"), status(2, before=4))
    again = decided(carried_out(inputs), at(seconds=10)).workload_patch
    assert again is not None
    assert again.body["spec"] == {"replicas": 4}


def test_it_does_not_work_against_another_hvpa_that_applies() -> None:
    decision = undone(large("web-1"), status(1, 1), others=(OtherHvpa("other"),))
    assert changes_nothing(decision)
    assert "another Hvpa in mode Apply sizes this workload" in condition(decision, "Paused").message
    assert resized(undone(large("web-1"), status(1, 1), others=(OtherHvpa("other", applies=False),)))


# --- with any input --------------------------------------------------------------------------------------------------
NAMES = st.sampled_from(["app", "proxy", "(shared)"])
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(1, 10**9).map(str), max_size=2)
SIZES = st.dictionaries(NAMES, st.tuples(AMOUNTS, AMOUNTS), max_size=3).map(
    lambda sizes: [
        {"name": name, "requests": requests, "limits": limits} for name, (requests, limits) in sizes.items()
    ]
)


@given(SIZES, SIZES, st.integers(0, 50), st.integers(0, 50))
def test_it_returns_to_recorded_amounts_only_and_a_second_time_changes_nothing(
    now: list[Any], before: list[Any], replicas: int, had: int
) -> None:
    size = DesiredSize.model_validate({"replicas": replicas, "containers": now, "since": NOW})
    previous = PreviousSize.model_validate({"time": NOW, "replicas": had, "containers": before})
    spec = hvpa().spec
    assert isinstance(spec, HvpaSpec)
    back = returned(spec, size, previous)
    assert returned(spec, back, previous) is back
    if back is not size:
        assert back.replicas == (max(replicas, had) if replicas else 0)
    known = {one["name"]: one for one in before}
    assert len(now) == len(back.containers)
    for present, then in zip(now, back.containers, strict=True):
        assert present["name"] == then.name
        former = known.get(then.name, {"requests": {}, "limits": {}})
        for section, found in (("requests", then.requests), ("limits", then.limits)):
            expected = {of: former[section].get(of, amount) for of, amount in present[section].items()}
            assert amounts(found) == amounts(expected)


NO_JSON = st.text()
OTHER_JSON = st.recursive(st.none() | st.booleans() | st.text() | st.integers(), st.lists)
FIELDS = {"step": st.text() | st.datetimes().map(str), "by": st.text(), "sizes": st.text()}
LIKE_OURS = st.fixed_dictionaries({}, optional=FIELDS)


@given(NO_JSON | (OTHER_JSON | LIKE_OURS).map(json.dumps))
def test_no_annotation_breaks_the_decision_or_is_carried_out_by_chance(text: str) -> None:
    decision = undone(large("web-1"), status(1, 1), text)
    assert changes_nothing(decision)
    assert "\n" not in condition(decision, "Paused").message
