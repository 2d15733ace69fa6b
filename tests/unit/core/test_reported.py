"""What is not as recommended has a reason in the conditions or in `lastBlockedScaling`, whatever a decision is made of
(docs/decisions/0061)."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from builders.build import NOW
from hvpa.api.hvpa.actuation import UpdateStrategy as HvpaStrategy
from hvpa.api.objects.read_models import StatefulSetUpdateStrategy, Vpa
from hvpa.api.values.quantity import format_resource
from hvpa.core import Decision, Objects, Observation, Settings, decide, observe
from hvpa.core.model import ScalableState, UnscalableObservation
from hvpa.core.workload.containers import amounts
from hvpa.core.workload.governed import recommended
from tests.unit.core.strategies import Limits, objects

pytestmark = pytest.mark.long

APPLY = Limits(hvpa_modes=("Apply",))
FOLLOWS = "follows its recommendations"
OLD = [build.container(name, {"cpu": "123m", "memory": "77Mi"}) for name in ("app", "sidecar")]


@st.composite
def stateful(draw: st.DrawFn) -> Objects:
    """Everything of an Hvpa for a StatefulSet, whose pods have the template's size or another one and are replaced or
    not; the VPA's uncapped targets are above its targets, or equal to them."""
    inputs = draw(objects(APPLY))
    factor, kind = draw(st.sampled_from([1, 1, 3])), draw(st.sampled_from(["", "", "OnDelete"]))
    assert inputs.workload is not None
    assert inputs.hvpa.spec is not None
    spec = msgspec.structs.replace(inputs.workload.spec, update_strategy=StatefulSetUpdateStrategy(type=kind))
    workload = msgspec.structs.replace(inputs.workload, kind="StatefulSet", spec=spec)
    target = inputs.hvpa.spec.target_ref.model_copy(update={"kind": "StatefulSet"})
    strategy = HvpaStrategy(type=draw(st.sampled_from(["Rollout", "Rollout", "InPlace"])))
    update = {"target_ref": target, "update_strategy": strategy}
    hvpa = replace(inputs.hvpa, spec=inputs.hvpa.spec.model_copy(update=update))
    pods = inputs.pods if draw(st.booleans()) else tuple([build.pod("web-9", containers=OLD)])
    vpas = tuple([_capped(vpa, factor) for vpa in inputs.vpas])
    return replace(inputs, hvpa=hvpa, workload=workload, pods=pods, vpas=vpas)


def _capped(vpa: Vpa, factor: int) -> Vpa:
    original = vpa.status.recommendation
    if original is None or original.container_recommendations is None:
        return vpa
    entries = [
        msgspec.structs.replace(
            entry,
            uncapped_target={
                name: format_resource(name, value * factor) for name, value in amounts(entry.target).items()
            },
        )
        for entry in original.container_recommendations
    ]
    recommendation = msgspec.structs.replace(original, container_recommendations=entries)
    status = msgspec.structs.replace(vpa.status, recommendation=recommendation)
    return msgspec.structs.replace(vpa, status=status)


def _uses_vpa(observation: Observation) -> bool:
    return (
        observation.vpa.object is not None and observation.vpa.problem is None and observation.vpa.in_charge
    )


@given(stateful())
def test_each_difference_from_what_is_recommended_is_blocked_for_a_reason(inputs: Objects) -> None:
    observation = observe(inputs, NOW, Settings())
    decision = decide(observation)
    if decision.replicas is None or build.condition(decision, "Ready").reason == "ScaledToZero":
        return
    blocked = {(entry.axis, entry.container, entry.resource) for entry in decision.blocked}
    view = decision.replicas
    if view.target != view.recommended:
        assert ("horizontal", None, None) in blocked
    for name, wanted in decision.recommended.items():
        for resource, value in wanted.requests.items():
            if decision.containers[name].requests.get(resource) != value:
                assert ("vertical", name, resource) in blocked


@given(stateful())
def test_each_bound_that_a_target_is_beyond_is_named(inputs: Objects) -> None:
    observation = observe(inputs, NOW, Settings())
    decision = decide(observation)
    ready = build.condition(decision, "Ready")
    if (
        isinstance(observation, UnscalableObservation)
        or not _uses_vpa(observation)
        or ready.status == "False"
    ):
        return
    if ready.reason == "ScaledToZero":
        return
    for item in recommended(observation):
        bound, needed = item.upper_bound, item.beyond or item.target
        if bound is not None and item.current >= bound.size and needed > bound.size:
            assert (ready.reason, bound.name in ready.message) == ("Saturated", True)
        elif item.beyond is not None and item.current >= item.target:
            assert (ready.reason, "recommender recommends at most" in ready.message) == ("Saturated", True)


@given(stateful())
def test_ready_claims_to_follow_only_where_the_pods_have_the_size(inputs: Objects) -> None:
    observation = observe(inputs, NOW, Settings())
    decision = decide(observation)
    if isinstance(observation, UnscalableObservation) or not _uses_vpa(observation):
        return
    if FOLLOWS in build.condition(decision, "Ready").message:
        _assert_pods_follow(observation, decision)


def _assert_pods_follow(observation: ScalableState, decision: Decision) -> None:
    assert decision.status.last_blocked_scaling == ()
    if observation.spec.update_strategy.in_place:
        actuation = decision.status.actuation
        assert actuation is not None
        assert actuation.resized == f"{actuation.pods}/{actuation.pods}"
    else:
        assert "vertical" not in [axis for axis, _ in decision.applied if observation.pods.living]
        keys = {item.key for item in recommended(observation)}
        assert not any(unlike & keys for unlike in observation.pods.unlike)
