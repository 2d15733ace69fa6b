"""What the API server refused, as an observation of a workload whose pods are resized in place."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at, stamp
from hvpa.api.hvpa.status import to_wire
from hvpa.core import Decision, Objects, Settings, decide, observe
from hvpa.core.actuation.refused import with_refusal
from hvpa.core.deciding import as_far_as
from hvpa.core.model import ScalableObservation

STEP = {"currentReplicas": 3, "desiredReplicas": 5}
OLDER = {"currentReplicas": 2, "desiredReplicas": 3}


def seen_of(
    status: dict[str, Any] | None = None, cpu: str = "4", kind: str = "InPlace"
) -> ScalableObservation:
    """3 pods of 1 core; the HPA wants 6 and weight 50 makes 5 of it; the VPA wants `cpu` for each pod."""
    hvpa = build.hvpa({"replicas": 6, "updateStrategy": {"type": kind}}, status)
    vpa = build.vpa({"app": {"cpu": cpu}})
    owner = {"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "w", "controller": True}]}
    pods = [build.pod(f"web-{number}", change={"metadata": owner}) for number in range(3)]
    return build.scalable(build.objects(hvpa, None, build.hpa(6, 100), vpa, pods))


def pending(last: dict[str, Any] | None, replicas: int = 5) -> dict[str, Any]:
    """A status that has 5 replicas, which are not written yet."""
    desired = {"replicas": 5, "since": stamp(NOW), "generation": 1}
    horizontal = {
        "lastScaleTime": stamp(NOW),
        "appliedFrom": {"replicas": replicas, "desired": 6, "weight": 50},
    }
    scaling = {} if last is None else {"lastScaling": {"lastScaleTime": stamp(NOW), **last}}
    return {"desired": desired, "axes": {"horizontal": horizontal}, **scaling}


def refused(observation: ScalableObservation) -> Decision:
    return decide(with_refusal(observation, decide(observation), "horizontal", "at most 4"))


@pytest.mark.parametrize(
    ("last", "left"),
    [
        (None, None),
        ({"hpaStatus": STEP}, None),
        ({"hpaStatus": OLDER}, {"hpaStatus": OLDER}),
        ({"hpaStatus": STEP, "vpaStatus": {}}, {"vpaStatus": {}}),
    ],
)
def test_refused_step_that_was_left_to_be_written_is_taken_back(last: Any, left: Any) -> None:
    observation = seen_of(pending(last), cpu="1")
    assert observation.workload is not None
    assert (observation.workload.spec.replicas, decide(observation).patched) == (5, ("horizontal",))
    decision = refused(observation)
    status = decision.status
    assert (status.desired, decision.workload_patch) != (None, None)
    assert status.desired is not None
    assert (status.desired.replicas, decision.workload_patch) == (3, None)
    [held] = decision.blocked
    assert (held.reason, held.current, held.wanted) == ("Refused", 3, 5)
    assert status.axes is not None
    assert status.axes.horizontal is not None
    assert status.axes.horizontal.applied_from is None
    scaling = status.last_scaling
    kept = None if scaling is None else {"hpaStatus": scaling.hpa_status, "vpaStatus": scaling.vpa_status}
    assert (kept is None) == (left is None)
    assert kept is None or {name for name, value in kept.items() if value is not None} == set(left)


def test_refused_step_keeps_what_was_set_before() -> None:
    observation = seen_of(pending(None, replicas=3), cpu="1")
    axes = refused(observation).status.axes
    assert axes is not None
    assert axes.horizontal is not None
    assert axes.horizontal.applied_from is not None


def stuck(kind: str, since: int = 0, message: str = "no quota", **template: Any) -> ScalableObservation:
    """A size that pods can't have, since the kubelet calls it infeasible, and a template that was refused."""
    return build.scalable(objects_of(kind, since=since, message=message, **template))


def objects_of(
    kind: str, mode: str = "Apply", since: int = 1, message: str = "no quota", **template: Any
) -> Objects:
    """The same as objects; nothing was refused of the template unless `since` is 0."""
    containers = [{"name": "app", "requests": {"cpu": "2500m"}}]
    changes = [{"container": "app", "resource": "cpu", "current": 1000, "wanted": 2500}]
    refusal = {"count": 1, "time": stamp(NOW), "message": message, "changes": changes, **template}
    status = {
        "desired": {"replicas": 3, "since": stamp(NOW), "generation": 1, "containers": containers},
        "axes": {"vertical": {"refused": refusal} if since == 0 else {}},
    }
    spec = [build.container(requests={"cpu": "2500m", "memory": "1Gi"})]
    owner = {"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "w", "controller": True}]}
    infeasible = {
        "type": "PodResizePending",
        "status": "True",
        "reason": "Infeasible",
        "message": "too large",
    }
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": build.LONG_AGO}, infeasible]
    statuses = [{"name": "app", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    change = {"metadata": owner, "status": {"conditions": conditions, "containerStatuses": statuses}}
    pods = [build.pod(f"web-{number}", containers=spec, change=change) for number in range(3)]
    hvpa = build.hvpa({"replicas": 3, "mode": mode, "updateStrategy": {"type": kind}}, status)
    vpa = build.vpa({"app": {"cpu": "2500m"}})
    return build.objects(hvpa, None, build.hpa(3, 50), vpa, pods)


def test_refused_template_of_pods_that_can_not_be_resized_waits_and_is_reported() -> None:
    decision = decide(stuck("InPlaceOrRollout"))
    assert decision.workload_patch is None
    [held] = decision.blocked
    assert (held.axis, held.reason, held.current, held.wanted) == ("vertical", "Refused", 1000, 2500)
    assert build.condition(decision, "Ready").reason == "Refused"
    assert decision.recheck_after is not None


def test_refused_for_a_missing_right_is_reported_as_not_permitted() -> None:
    message = 'deployments.apps "web" is forbidden: User "x" cannot patch resource "deployments"'
    condition = build.condition(decide(stuck("InPlaceOrRollout", message=message)), "Ready")
    assert condition.reason == "NotPermitted"
    assert message in condition.message


@pytest.mark.parametrize(
    "seen",
    [
        stuck("InPlaceOrRollout", since=1),
        stuck(
            "InPlaceOrRollout", changes=[{"container": "app", "resource": "cpu", "current": 1, "wanted": 9}]
        ),
    ],
)
def test_refused_does_not_hold_a_template_with_another_change(seen: ScalableObservation) -> None:
    decision = decide(seen)
    assert decision.workload_patch is not None
    assert decision.patched == ("vertical",)
    [held] = decide(with_refusal(seen, decision, "vertical", "no right")).blocked
    assert (held.reason, held.current, held.wanted) == ("Refused", 1000, 2500)


def strategy(objects: Objects, when: dt.datetime) -> tuple[str | None, str | None, bool]:
    """The type that is acted by, the type that the status says, and whether that remembers a fall."""
    observed = observe(objects, when, Settings())
    assert observed.spec is not None
    status = decide(observed).status
    return observed.spec.strategy.type, status.update_strategy, status.replacing is not None


def test_update_strategy_in_place_or_rollout_replaces_pods_for_a_day_after_a_fall() -> None:
    """Each other size would be one more rollout, so sizes are decided as those of pods that are replaced."""
    objects = objects_of("InPlaceOrRollout")
    first = build.decided(objects, NOW)
    assert (first.patched, first.status.replacing) == (("vertical",), None), "it is not written yet"
    target = build.workload(3, [build.container(requests={"cpu": "2500m", "memory": "1Gi"})])
    objects = replace(objects, workload=target, hvpa=build.with_status(objects.hvpa, first.status))
    second = build.decided(objects, NOW)
    fall = {"since": stamp(NOW), "message": "pod web-0 (and 2 more pods): too large"}
    assert (second.workload_patch, to_wire(second.status)["replacing"]) == (None, fall)
    after = replace(objects, hvpa=build.with_status(objects.hvpa, second.status))
    assert strategy(after, at(hours=1)) == ("Rollout", "Rollout", True)
    assert strategy(after, at(hours=23)) == ("Rollout", "Rollout", True)
    assert strategy(after, at(hours=24))[:2] == ("InPlaceOrRollout", None)
    assert build.decided(after, at(hours=1)).recheck_after is not None


def test_update_strategy_default_falls_to_rollout_for_a_day_as_well() -> None:
    spec = {"blend": "Trajectory", "updateStrategy": None}
    fallen = {"replacing": {"since": stamp(NOW), "message": "too large"}}
    objects = build.objects(
        build.hvpa(spec, fallen), None, build.hpa(3, 50), build.vpa({"app": {"cpu": "1"}})
    )
    assert strategy(objects, at(hours=1)) == ("Rollout", "Rollout", True)
    assert strategy(objects, at(hours=24)) == ("InPlaceOrRollout", "InPlaceOrRollout", False)
    only = replace(objects, hvpa=build.hvpa({"updateStrategy": {"type": "InPlace"}}, fallen))
    assert strategy(only, at(hours=1))[:2] == ("InPlace", None)


@pytest.mark.parametrize(("kind", "mode"), [("InPlace", "Apply"), ("InPlaceOrRollout", "Recommend")])
def test_update_strategy_fall_is_not_recorded_where_nothing_was_replaced(kind: str, mode: str) -> None:
    assert build.decided(objects_of(kind, mode)).status.replacing is None


def test_refused_template_does_not_hold_update_strategy_in_place() -> None:
    assert decide(stuck("InPlace")).blocked == ()


def last_scaling(decision: Decision) -> tuple[Any, bool]:
    last = decision.status.last_scaling
    if last is None:
        return None, False
    counts = (
        None
        if last.hpa_status is None
        else (last.hpa_status.current_replicas, last.hpa_status.desired_replicas)
    )
    return counts, last.vpa_status is not None


@pytest.mark.parametrize(
    ("axes", "reason", "changes", "last"),
    [
        ({"horizontal", "vertical"}, "Scaled", "replicas 3 -> 5, cpu 1 -> 2500m of app", ((3, 5), True)),
        ({"horizontal"}, "ScaledOut", "replicas 3 -> 5", ((3, 5), False)),
        ({"vertical"}, "ScaledUp", "cpu 1 -> 2500m of app", ((3, 3), True)),
        (set(), "", "", (None, False)),
    ],
)
def test_a_step_is_reported_as_far_as_it_was_carried_out(
    axes: Any, reason: str, changes: str, last: Any
) -> None:
    observation = seen_of()
    whole = decide(observation)
    part = as_far_as(observation, whole, axes)
    steps = [event for event in part.events if event.reason.startswith("Scaled")]
    assert [step.reason for step in steps] == ([reason] * 2 if reason else [])
    assert all(step.message.removeprefix("Hvpa web: ").startswith(f"{changes};") for step in steps)
    assert {axis for axis, _ in part.applied} == axes
    assert last_scaling(part) == last
    others = [event for event in whole.events if not event.reason.startswith("Scaled")]
    assert [event for event in part.events if not event.reason.startswith("Scaled")] == others
    assert (as_far_as(observation, part, axes) == part) or not axes
