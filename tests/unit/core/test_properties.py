"""What holds for every decision, whatever it is made of."""

from __future__ import annotations

import copy
import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builders import build
from builders.build import NOW
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.scaling import ScaleParams
from hvpa.api.hvpa.status import read_status, to_wire
from hvpa.api.objects.read_models import Container, policies_by_name
from hvpa.api.values.quantity import RESOURCES
from hvpa.core import Decision, Objects, Settings, observe
from hvpa.core.model import LAST_APPLIED, OtherHvpa
from hvpa.core.values.memo import Memo, forget_all
from hvpa.core.workload.containers import amount, policies, present_resources
from tests.unit.core.strategies import Limits, objects

pytestmark = pytest.mark.long

APPLY = Limits(hvpa_modes=("Apply",))


def changes(seen: Objects, decision: Decision) -> set[tuple[str, ...]]:
    """What a decision changes of the workload: `("replicas",)` and `(container, section, resource)`."""
    if decision.workload_patch is None:
        return set()
    body: Any = decision.workload_patch.body
    found: set[tuple[str, ...]] = {("replicas",)} if "replicas" in body["spec"] else set()
    for container in body["spec"].get("template", {}).get("spec", {}).get("containers", []):
        for section, values in container["resources"].items():
            found |= {(container["name"], section, resource) for resource in values}
    return found


def requests_changed(seen: Objects, decision: Decision) -> set[tuple[str, str]]:
    return {(one[0], one[2]) for one in changes(seen, decision) if len(one) == 3 and one[1] == "requests"}


def containers(seen: Objects) -> Sequence[Container]:
    assert seen.workload is not None
    return seen.workload.spec.template.spec.containers


def starving(seen: Objects) -> set[str]:
    statuses = (one for pod in seen.pods for one in pod.status.container_statuses)
    return {one.name for one in statuses if one.last_state.terminated is not None}


@given(objects())
def test_the_same_or_equal_objects_give_the_same_decision_and_it_looks_again_in_the_future(
    seen: Objects,
) -> None:
    # Some of what is made of an object is remembered for that very object.
    decision = build.decided(seen)
    assert decision == build.decided(seen) == build.decided(copy.deepcopy(seen))
    assert decision.recheck_after is None or decision.recheck_after > dt.timedelta(0)


@given(objects(), objects(), st.booleans(), st.lists(st.integers(-3600, 4 * 3600), min_size=1, max_size=5))
def test_what_is_remembered_changes_no_decision(
    seen: Objects, other: Objects, applied: bool, seconds: list[int]
) -> None:
    """Whatever was decided before: at each instant the decision is the one of an operator that has just started."""
    memo = Memo()
    if applied:
        seen = build.settled(seen)
    seen_objects = [seen, replace(seen, hpas=other.hpas), replace(seen, vpas=other.vpas), seen]
    instants = [NOW, *(NOW + dt.timedelta(seconds=one) for one in seconds)]
    forget_all()
    found = [build.decided(one, instant, memo=memo) for instant in instants for one in seen_objects]
    for index, decision in enumerate(found):
        forget_all()
        assert decision == build.decided(
            seen_objects[index % len(seen_objects)], instants[index // len(seen_objects)]
        )


def _without_times(decision: Decision) -> tuple[object, ...]:
    """A decision without the times that it writes down."""
    return (
        decision.replicas,
        decision.containers,
        decision.recommended,
        decision.blocked,
        decision.weight_ppm,
        decision.scale_replicas,
        decision.applied,
        [(one.type, one.status, one.reason) for one in decision.status.conditions],
    )


@given(objects(), st.floats(0, 1))
def test_until_it_looks_again_time_alone_changes_nothing(seen: Objects, part: float) -> None:
    first = build.decided(seen)
    later = NOW + (first.recheck_after or dt.timedelta(days=400)) * part * 0.999_999
    forget_all()
    assert _without_times(build.decided(seen, later)) == _without_times(first)


@given(objects(APPLY))
def test_results_are_inside_their_bounds(seen: Objects) -> None:
    decision = build.decided(seen)
    assert decision.replicas is not None
    spec = seen.hvpa.spec
    assert spec is not None
    assert spec.hpa.template.spec is not None
    if ("replicas",) in changes(seen, decision):
        least, most = spec.hpa.template.spec.min_replicas or 1, spec.hpa.template.spec.max_replicas
        assert least <= decision.replicas.target <= most
    for name, resource in requests_changed(seen, decision):
        request = decision.containers[name].requests[resource]  # type: ignore[index]
        limit = decision.containers[name].limits.get(resource)  # type: ignore[call-overload]
        assert limit is None or request <= limit
        policy = policies_by_name(policies(spec, seen.vpas[0]))(name)
        upper, lower = amount(policy.max_allowed, resource), amount(policy.min_allowed, resource)  # type: ignore[arg-type]
        assert upper is None or request <= upper
        fixed = policy.controlled_values == "RequestsOnly" and limit == request
        assert lower is None or request >= lower or fixed


@given(objects())
def test_a_patch_touches_only_what_is_governed(seen: Objects) -> None:
    decision = build.decided(seen)
    if decision.workload_patch is None:
        return
    assert seen.workload is not None
    body: Any = decision.workload_patch.body
    assert set(body) == {"metadata", "spec"}
    assert set(body["metadata"]) == {"resourceVersion", "annotations"}
    assert body["metadata"]["resourceVersion"] == seen.workload.metadata.resource_version
    assert set(body["metadata"]["annotations"]) == {LAST_APPLIED}
    assert body["spec"]
    assert set(body["spec"]) <= {"replicas", "template"}
    names = {one.name for one in containers(seen)}
    for container in body["spec"].get("template", {}).get("spec", {}).get("containers", []):
        assert set(container) == {"name", "resources"}
        assert container["name"] in names
        assert container["resources"]
        assert set(container["resources"]) <= {"requests", "limits"}
        for section, values in container["resources"].items():
            assert values
            assert set(values) <= set(RESOURCES)
            present = next(one for one in containers(seen) if one.name == container["name"]).resources
            assert section == "requests" or set(values) <= set(present.limits), (
                "no limit is set where there was none"
            )


@given(objects(APPLY))
def test_a_decision_that_is_applied_is_not_made_again(seen: Objects) -> None:
    first = build.decided(seen)
    after = build.apply(seen, first)
    unfinished = after
    if after.workload is not None and seen.workload is not None:
        unfinished = replace(
            after, workload=msgspec.structs.replace(after.workload, status=seen.workload.status)
        )
    if starving(seen):
        # A container that starves and has all it may have is not lowered, until a step elsewhere makes that the past.
        assert ("replicas",) not in changes(after, build.decided(after))
        return
    assert build.decided(unfinished).workload_patch is None
    third = build.decided(after)
    desired_counts = [one.replicas.hpa for one in (first, third) if one.replicas is not None]
    if len(set(desired_counts)) > 1:
        return  # of fewer pods, the same measurement is another desired replicas, until the HPA has measured again
    waited = any(entry.reason in ("Rollout", "PodReplacement") for entry in first.blocked)
    if third.weight_ppm == first.weight_ppm and not waited:
        assert third.workload_patch is None
    else:  # the count has moved into another interval, and a target is spent at its weight; or the rollout is through
        assert ("replicas",) not in changes(after, third)
        assert build.decided(build.apply(after, third)).workload_patch is None


@given(objects(), st.floats(0.01, 0.99))
def test_at_rest_nothing_is_written_before_it_looks_again(seen: Objects, part: float) -> None:
    for _ in range(
        3
    ):  # a step, the same interval's vertical step after a horizontal one, the record of a contest
        seen = build.apply(seen, build.decided(seen))
    rest = build.decided(seen)
    assert (rest.workload_patch, rest.events) == (None, ())
    assert rest.scale_replicas is None or rest.scale_replicas != seen.hvpa.spec.replicas  # type: ignore[union-attr]
    assert to_wire(rest.status) == to_wire(seen.hvpa.status)
    wait = rest.recheck_after if rest.recheck_after is not None else dt.timedelta(minutes=30)
    later = build.decided(seen, NOW + wait * part)
    assert later.workload_patch is None
    assert to_wire(later.status) == to_wire(rest.status)


@given(objects(Limits(weights=(0,), hvpa_modes=("Apply",))))
def test_weight_0_touches_a_request_in_two_cases_only(seen: Objects) -> None:
    decision = build.decided(seen)
    spec, workload = seen.hvpa.spec, seen.workload
    assert spec is not None
    assert workload is not None
    assert spec.hpa.template.spec is not None
    status = seen.hpas[0].status if seen.hpas else None
    at_max = (
        status is not None
        and workload.spec.replicas >= spec.hpa.template.spec.max_replicas
        and status.desired_replicas >= spec.hpa.template.spec.max_replicas
        and any(one.type == "ScalingLimited" and one.status == "True" for one in status.conditions or [])
    )
    legacy = seen.hvpa.status.axes is None and seen.hvpa.status.override_scale_up_stabilization
    before = present_resources(containers(seen))
    for name, resource in requests_changed(seen, decision):
        present = before[name]
        held = present.requests.get(resource, present.limits.get(resource, 0))  # type: ignore[call-overload]
        raised = decision.containers[name].requests[resource] > held  # type: ignore[index]
        assert raised, "and only upwards"
        assert at_max or (resource == "memory" and (name in starving(seen) or legacy))


def raised(spec: Any, direction: str, axis: str, by: Mapping[str, int]) -> Any:
    """The spec with what is set of one minChange raised."""
    policy = getattr(getattr(spec, axis), direction)
    least = policy.min_change
    update = {}
    for resource in ("cpu", "memory", "replicas"):
        params = getattr(least, resource)
        more = {
            name: value + by[name]
            for name in ("value", "percentage")
            if (value := getattr(params, name)) is not None
        }
        update[resource] = params.model_copy(update=more)
    changed = policy.model_copy(update={"min_change": ScaleParams.model_construct(**update)})
    return spec.model_copy(update={axis: getattr(spec, axis).model_copy(update={direction: changed})})


@given(
    objects(APPLY),
    st.sampled_from([("scaleUp", "hpa"), ("scaleDown", "hpa"), ("scaleUp", "vpa"), ("scaleDown", "vpa")]),
    st.integers(0, 10**9),
    st.integers(0, 200),
)
def test_raising_a_min_change_never_adds_a_change(
    seen: Objects, which: tuple[str, str], value: int, percentage: int
) -> None:
    direction = {"scaleUp": "scale_up", "scaleDown": "scale_down"}[which[0]]
    spec = raised(seen.hvpa.spec, direction, which[1], {"value": value, "percentage": percentage})
    stricter = replace(seen, hvpa=replace(seen.hvpa, spec=spec))
    assert changes(stricter, build.decided(stricter)) <= changes(seen, build.decided(seen))


@given(
    objects(Limits(modes=("Off",)))
    | objects(Limits(modes=("MaintenanceWindow",), windows=("none", "closed")))
)
def test_update_policy_off_and_a_closed_maintenance_window_patch_nothing(seen: Objects) -> None:
    assert build.decided(seen).workload_patch is None


@given(objects(Limits(hvpa_modes=("Recommend", "Paused"))))
def test_recommend_and_paused_never_patch(seen: Objects) -> None:
    decision = build.decided(seen)
    assert decision.workload_patch is None
    assert decision.applied == ()
    assert decision.replicas is not None
    assert decision.replicas.target == decision.replicas.current
    assert decision.containers == present_resources(containers(seen))


@given(objects(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_seen_does_not_matter(seen: Objects, random: Any) -> None:
    beside = build.hpa(
        change={"metadata": {"name": "older", "uid": "o", "creationTimestamp": "2020-01-01T00:00:00Z"}}
    )
    seen = replace(seen, hpas=(*seen.hpas, beside))
    assert seen.workload is not None
    pods, hpas, order = list(seen.pods), list(seen.hpas), list(containers(seen))
    random.shuffle(pods)
    random.shuffle(hpas)
    random.shuffle(order)
    one = replace(seen, pods=tuple(pods), hpas=tuple(hpas))
    first, second = build.decided(seen), build.decided(one)
    assert first == second
    template = msgspec.structs.replace(
        seen.workload.spec.template,
        spec=msgspec.structs.replace(seen.workload.spec.template.spec, containers=order),
    )
    workload = msgspec.structs.replace(
        seen.workload, spec=msgspec.structs.replace(seen.workload.spec, template=template)
    )
    third = build.decided(replace(one, workload=workload))
    assert third.workload_patch == first.workload_patch
    assert third.containers == first.containers
    assert set(third.blocked) == set(first.blocked)


@given(objects())
def test_statuses_and_annotations_round_trip(seen: Objects) -> None:
    decision = build.decided(seen)
    wire = json.dumps(to_wire(decision.status)).encode()
    assert read_status(wire)[0] == decision.status
    if decision.workload_patch is None:
        return
    axes = decision.status.axes
    assert axes is not None
    after = build.apply(seen, decision)
    crashed = observe(replace(after, hvpa=seen.hvpa), NOW, Settings())  # only the annotation is left
    for axis, _ in decision.applied:
        if axis == "horizontal":
            assert axes.horizontal is not None
            assert crashed.horizontal == axes.horizontal.model_copy(update={"correction": None})
        else:
            assert axes.vertical is not None
            assert crashed.vertical == axes.vertical.model_copy(update={"pending": ()})


@given(objects(), st.sampled_from(["workload", "spec", "others", "hpas", "vpas", "pods"]))
def test_a_decision_is_made_whatever_is_missing(seen: Objects, missing: str) -> None:
    if missing == "workload":
        seen = replace(seen, workload=None)
    elif missing == "spec":
        broken: HvpaObject = replace(seen.hvpa, spec=None)
        seen = replace(seen, hvpa=broken)
    elif missing == "others":
        seen = replace(seen, others=(OtherHvpa("other"),))
    else:
        seen = replace(seen, **{missing: ()})  # type: ignore[arg-type]
    decision = build.decided(seen)
    assert decision.status.conditions[0].type == "Ready"
    assume(missing in ("workload", "spec", "others"))
    assert decision.workload_patch is None
