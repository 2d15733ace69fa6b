"""Trust of a recommendation as far as its history goes (DESIGN 4, docs/decisions/0059). NOW is 10:00 on a Saturday."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.api.hvpa.status import TrustedHistory, VerticalAxis
from hvpa.api.objects.checkpoints import VpaCheckpoint
from hvpa.api.objects.read_models import Vpa
from hvpa.core.model import BoundRatio, Decision, Objects
from hvpa.core.recommenders.history import bound_ratios, view_history
from hvpa.core.values.clock import Clock
from hvpa_lab.recommend.vpa.estimate import upper_factor

HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
GIB = 1 << 30
TWO_GIB = 2_147_484_000
"""In whole kilobytes."""


def vpa(upper: str = "200Gi", target: str = "250Mi", resource: str = "memory", **more: Any) -> Vpa:
    """A VPA that has recommended for weeks; `more`: further fields of the recommendation, of this resource."""
    bounds = {"target": target, "uncappedTarget": target, "upperBound": upper} | more
    recommendation = {"containerName": "app"} | {
        field: {resource: amount} for field, amount in bounds.items()
    }
    return build.vpa(change={"status": {"recommendation": {"containerRecommendations": [recommendation]}}})


def workload(memory: str = "3Gi") -> Any:
    limits = {"memory": "4Gi"}
    container = build.container("app", {"memory": memory, "cpu": "500m"}, limits)
    return build.workload(3, [container])


def seen(vpa: Vpa, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> Objects:
    at_once = {"scaleDown": {"stabilizationDuration": "1s"}}
    whole = build.merged({"weightBasedScalingIntervals": [{"vpaWeight": 100}], "vpa": at_once}, spec or {})
    return build.objects(build.hvpa(whole, status), workload(), None, vpa)


def memory_of(decision: Decision) -> tuple[int, int]:
    resources = decision.containers["app"]
    return resources.requests["memory"], resources.limits["memory"]


def held(decision: Decision) -> list[tuple[str, str, str | None]]:
    return [
        (hold.axis, hold.reason, None if hold.until is None else hold.until.strftime("%H:%M:%S"))
        for hold in decision.blocked
    ]


def axis(decision: Decision) -> VerticalAxis:
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    return decision.status.axes.vertical


_POLICY: dict[str, Any] = {"containerName": "app", "minAllowed": {"memory": "100Mi", "cpu": "100m"}}
_TRAJECTORY: dict[str, Any] = {
    "blend": "Trajectory",
    "weightBasedScalingIntervals": [{"vpaWeight": 50}],
    "vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [_POLICY]}}}},
    "hpa": {"deploy": False},
}
STRATEGIES: dict[str, dict[str, Any]] = {
    "additive, rollout": {},
    "additive, in place": {"updateStrategy": {"type": "InPlace"}},
    "trajectory, rollout": _TRAJECTORY,
    "trajectory, in place": _TRAJECTORY | {"updateStrategy": {"type": "InPlace"}},
    "a named VPA": {"vpa": {"deploy": False, "name": "web"}},
}


@pytest.mark.parametrize("spec", STRATEGIES.values(), ids=STRATEGIES.keys())
@pytest.mark.parametrize(("target", "upper"), [("250Mi", "200Gi"), ("1Gi", "40Gi"), ("2Gi", "3000Gi")])
def test_min_history_holds_request_and_limit_where_history_was_lost(
    spec: dict[str, Any], target: str, upper: str
) -> None:
    if "deploy" in spec.get("vpa", {}):
        objects = seen(build.decoded(Vpa, _without_owner(vpa(upper, target))), spec)
    else:
        objects = seen(vpa(upper, target), spec)
    decision = build.decided(objects)
    assert memory_of(decision) == (3 * GIB, 4 * GIB)
    assert ("vertical", "MinHistory") in [entry[:2] for entry in held(decision)]
    condition = build.condition(decision, "VpaActive")
    assert (condition.status, condition.reason) == ("True", "LostHistory")


def _without_owner(vpa: Vpa) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(vpa))
    document["metadata"].pop("ownerReferences", None)
    return document


def test_min_history_until_is_in_the_gate_the_condition_and_the_next_look() -> None:
    decision = build.decided(seen(vpa("60Gi", "1Gi")))
    # The ratio 60 is rounded up to 64: the history began 1 day / 63 ago, at 09:37:09, and is an hour long at 10:37:09.
    assert held(decision) == [("vertical", "MinHistory", "10:37:08")]
    assert "app until 2026-11-21T10:37:09Z" in build.condition(decision, "VpaActive").message
    assert decision.recheck_after is not None
    assert 2228 < decision.recheck_after.total_seconds() < 2229


def test_min_history_that_is_over_lets_requests_be_lowered() -> None:
    first = seen(vpa("60Gi", "1Gi"))
    later = build.NOW + dt.timedelta(minutes=38)
    decision = build.decided(build.apply(first, build.decided(first)), later)
    assert memory_of(decision)[0] < 3 * GIB, (
        "an hour is over, although the bound is as it was: peaks are rare"
    )
    assert [record.short_since for record in axis(decision).history] == [None]


def test_min_history_ends_at_once_when_the_history_is_back() -> None:
    first = seen(vpa("200Gi"))
    after = build.apply(first, build.decided(first))
    back = replace(after, vpas=(vpa("3Gi", "2Gi"),))
    decision = build.decided(back, build.NOW + dt.timedelta(minutes=2))
    assert memory_of(decision)[0] == TWO_GIB
    assert build.condition(decision, "VpaActive").reason != "LostHistory"


@pytest.mark.parametrize(("target", "expected"), [("5Gi", 5 * GIB), ("4Gi", 4 * GIB)])
def test_min_history_does_not_hold_increases(target: str, expected: int) -> None:
    decision = build.decided(seen(vpa("4000Gi", target)))
    assert memory_of(decision)[0] == pytest.approx(expected, abs=1000)


@pytest.mark.parametrize(
    ("ratio", "is_lowered"), [(1.1, True), (2, True), (20, True), (26, True), (30, False), (1441, False)]
)
def test_min_history_default_is_an_hour(ratio: float, is_lowered: bool) -> None:
    decision = build.decided(seen(vpa(str(int(ratio * GIB)), str(GIB))))
    assert (memory_of(decision)[0] < 3 * GIB) is is_lowered


@pytest.mark.parametrize(
    ("min_history", "is_lowered"), [("0s", True), ("30m", True), ("1h", False), ("24h", False)]
)
def test_min_history_of_the_spec_says_how_much_is_enough(min_history: str, is_lowered: bool) -> None:
    spec = {"vpa": {"scaleDown": {"minHistory": min_history}}}
    decision = build.decided(seen(vpa("40Gi", "1Gi"), spec))
    assert (memory_of(decision)[0] < 3 * GIB) is is_lowered


def policy(**bounds: str) -> dict[str, Any]:
    container_policy = {"containerName": "app"} | {
        field: {"memory": amount} for field, amount in bounds.items()
    }
    return {"spec": {"resourcePolicy": {"containerPolicies": [container_policy]}}}


def capped(upper: str, target: str, uncapped: str | None = None, **bounds: str) -> Objects:
    """A VPA with a policy of its own, which the Hvpa's template has as well."""
    source_vpa = vpa(upper, target, **({} if uncapped is None else {"uncappedTarget": uncapped}))
    change = build.merged(policy(**bounds), {"status": {"recommendation": _recommendation(source_vpa)}})
    return seen(build.vpa(change=change), {"vpa": {"template": policy(**bounds)}})


def _recommendation(vpa: Vpa) -> dict[str, Any]:
    recommendation: dict[str, Any] = msgspec.to_builtins(vpa.status.recommendation)
    return recommendation


def test_min_history_is_judged_by_an_upper_bound_capped_by_max_allowed() -> None:
    # By 8Gi / 500Mi it would be 1.5 hours.
    assert memory_of(build.decided(capped("8Gi", "500Mi", maxAllowed="8Gi")))[0] == 3 * GIB
    assert memory_of(build.decided(capped("8Gi", "2Gi", maxAllowed="8Gi")))[0] == TWO_GIB


def test_min_history_does_not_hold_a_target_capped_by_max_allowed() -> None:
    assert memory_of(build.decided(capped("2Gi", "2Gi", "6Gi", maxAllowed="2Gi")))[0] == 2 * GIB


def test_min_history_ignores_an_upper_bound_at_min_allowed() -> None:
    assert memory_of(build.decided(capped("2Gi", "2Gi", "10Mi", minAllowed="2Gi")))[0] == TWO_GIB


def test_min_history_compares_a_target_at_min_allowed_by_its_uncapped_target() -> None:
    decision = build.decided(capped("60Gi", "2Gi", "1Gi", minAllowed="2Gi"))
    assert memory_of(decision)[0] == 3 * GIB, "60, and not 30"


def test_min_history_is_one_for_both_resources() -> None:
    """The bound of memory is capped by a flag; that of CPU is not."""
    bounds = {"target": ("250Mi", "25m"), "uncappedTarget": ("250Mi", "25m"), "upperBound": ("2Gi", "30")}
    recommendation: dict[str, Any] = {"containerName": "app"}
    recommendation |= {field: {"memory": memory, "cpu": cpu} for field, (memory, cpu) in bounds.items()}
    vpa = build.vpa(change={"status": {"recommendation": {"containerRecommendations": [recommendation]}}})
    decision = build.decided(seen(vpa))
    assert memory_of(decision)[0] == 3 * GIB
    assert decision.containers["app"].requests["cpu"] == 500


def test_min_history_starts_anew_when_the_bound_jumps_tenfold() -> None:
    calm = seen(vpa("3400Mi", "3Gi"))
    known = build.apply(calm, build.decided(calm))
    jumped = replace(known, vpas=(vpa("4Gi", "250Mi"),))  # a flag caps it at 4Gi, 16 times the target
    decision = build.decided(jumped, build.NOW + HOUR)
    assert memory_of(decision)[0] == 3 * GIB
    assert held(decision) == [("vertical", "MinHistory", "12:00:00")]
    anew = build.decided(build.apply(jumped, decision), build.NOW + 1.5 * HOUR)
    assert held(anew) == [("vertical", "MinHistory", "12:00:00")], "what is known is in the status"
    over = build.decided(build.apply(jumped, decision), build.NOW + 2 * HOUR)
    assert memory_of(over)[0] < 3 * GIB


def test_min_history_does_not_hold_a_raise_of_memory_that_ran_out() -> None:
    containers = workload().spec.template.spec.containers
    own = [
        build.container("app", dict(container.resources.requests), dict(container.resources.limits))
        for container in containers
    ]
    pods = [
        build.oom_killed(build.NOW - dt.timedelta(minutes=1), "web-0", containers=own),
        build.pod("web-1"),
    ]
    decision = build.decided(replace(seen(vpa("200Gi", "250Mi")), pods=tuple(pods)))
    assert memory_of(decision)[0] > 3 * GIB


def test_min_history_holds_replicas_that_follow_targets_of_a_lost_history() -> None:
    intervals = [
        {"maxReplicas": 2, "maxResources": {"memory": "4Gi"}},
        {"maxReplicas": 6, "maxResources": {"memory": "4Gi"}},
    ]
    spec: dict[str, Any] = {
        "hpa": {"deploy": False},
        "weightBasedScalingIntervals": [],
        "trajectory": {"intervals": intervals},
        "updateStrategy": {"type": "InPlace"},
    }
    lost = build.decided(seen(vpa("200Gi", "250Mi"), spec))
    assert build.counts(lost).target == 3
    assert ("horizontal", "MinHistory") in [entry[:2] for entry in held(lost)]
    trusted = build.decided(seen(vpa("300Mi", "250Mi"), spec))
    assert build.counts(trusted).target < 3


def test_a_target_of_nothing_is_none() -> None:
    decision = build.decided(seen(vpa("0", "0")))
    assert memory_of(decision) == (3 * GIB, 4 * GIB)


# --- caps ---------------------------------------------------------------------------------------------------------
JOINT = {"blend": "Trajectory", "weightBasedScalingIntervals": [{"vpaWeight": 100}]}


def test_what_a_flag_of_the_recommender_cut_stays_cut() -> None:
    decision = build.decided(seen(vpa("8Gi", "3Gi", uncappedTarget="40Gi"), JOINT))
    assert memory_of(decision)[0] <= 3 * GIB + 1000


def test_what_a_named_vpas_policy_cut_stays_cut() -> None:
    named_vpa = build.vpa(
        change=build.merged(
            policy(maxAllowed="3Gi"),
            {
                "status": {"recommendation": _recommendation(vpa("3Gi", "3Gi", uncappedTarget="40Gi"))},
                "metadata": {"ownerReferences": None},
            },
        )
    )
    spec = JOINT | {"vpa": {"deploy": False, "name": "web"}}
    assert memory_of(build.decided(seen(named_vpa, spec)))[0] <= 3 * GIB + 1000


# --- the ratio ----------------------------------------------------------------------------------------------------
@given(st.floats(1 / 1440, 30), st.integers(25, 10**7))
def test_the_days_of_a_history_are_those_of_the_recommenders_formula(days: float, target: int) -> None:
    upper = int(target * upper_factor(days))
    (bound,) = bound_ratios(vpa(f"{upper}m", f"{target}m", "cpu"))
    assert bound.ratio >= upper / target * 0.999
    assert bound.ratio <= max(1.0, upper / target) * 2**0.25 * 1.001


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_bounds_that_are_no_quantities_say_nothing(upper: str, target: str, uncapped: str) -> None:
    for bound in bound_ratios(vpa(upper, target, uncappedTarget=uncapped)):
        assert bound.ratio >= 1


@given(
    st.lists(st.tuples(st.floats(1, 1e12), st.booleans(), st.integers(0, 200_000)), min_size=1, max_size=12),
    st.sampled_from([dt.timedelta(0), HOUR, DAY, 200 * DAY, dt.timedelta(hours=2_562_047)]),
)
def test_min_history_is_the_longest_wait_after_the_last_change_of_the_bounds(
    course: list[tuple[float, bool, int]], min_history: dt.timedelta
) -> None:
    records: tuple[TrustedHistory, ...] = ()
    now = build.NOW
    for ratio, capped_, seconds in course:
        now += dt.timedelta(seconds=seconds)
        records, short_until = view_history(
            records, [BoundRatio("app", ratio, capped_)], min_history, Clock(now)
        )
        for until in short_until.values():
            assert now < until <= now + min_history
    if now.year + min_history.days / 365 < 9990:
        _, short_until = view_history(
            records, [BoundRatio("app", ratio, capped_)], min_history, Clock(now + min_history)
        )
        assert short_until == {}


def test_a_container_that_is_gone_is_forgotten() -> None:
    known = (TrustedHistory(container="gone", ratio=2),)
    records, _ = view_history(known, [BoundRatio("app", 2)], HOUR, Clock(build.NOW))
    assert [record.container for record in records] == ["app"]


def test_a_ratio_that_halves_is_written_down_and_a_smaller_fall_is_not() -> None:
    def ratio(now: float) -> float:
        known = (TrustedHistory(container="app", ratio=8),)
        ((record,), _) = view_history(known, [BoundRatio("app", now)], HOUR, Clock(build.NOW))
        return record.ratio

    assert (ratio(5.0), ratio(4.0), ratio(9.0)) == (8, 4, 8)


# --- checkpoints ----------------------------------------------------------------------------------------------------
def checkpoint(
    age: dt.timedelta, samples: int | None = None, updated: dt.datetime = build.NOW, vpa: str = "web"
) -> VpaCheckpoint:
    """What the recommender saved of a history of this length."""
    count = int(age / dt.timedelta(minutes=1)) if samples is None else samples
    status = {
        "firstSampleStart": build.stamp(build.NOW - age),
        "lastSampleStart": build.stamp(build.NOW),
        "lastUpdateTime": build.stamp(updated),
        "totalSamplesCount": count,
    }
    spec = {"vpaObjectName": vpa, "containerName": "app"}
    return build.decoded(
        VpaCheckpoint, {"metadata": {"name": "c", "namespace": "default"}, "spec": spec, "status": status}
    )


UNSAVED = build.decoded(VpaCheckpoint, {"metadata": {"name": "c"}, "spec": {"vpaObjectName": "web"}})
CHECKPOINTS: dict[str, tuple[VpaCheckpoint, str, bool]] = {
    "long, although peaks are rare": (checkpoint(8 * DAY), "200Gi", True),
    "short, although a flag caps the bound": (checkpoint(HOUR / 4), "4Gi", False),
    "of few samples": (checkpoint(8 * DAY, samples=30), "4Gi", False),
    "of no sample": (checkpoint(dt.timedelta(0)), "4Gi", False),
    "of another VPA": (checkpoint(8 * DAY, vpa="other"), "200Gi", False),
    "that was never saved": (UNSAVED, "200Gi", False),
}


@pytest.mark.parametrize(("saved", "upper", "is_lowered"), CHECKPOINTS.values(), ids=CHECKPOINTS.keys())
def test_min_history_is_judged_by_the_checkpoint_where_there_is_one(
    saved: VpaCheckpoint, upper: str, is_lowered: bool
) -> None:
    decision = build.decided(replace(seen(vpa(upper, "1Gi")), checkpoints=(saved,)))
    assert (memory_of(decision)[0] < 3 * GIB) is is_lowered


@pytest.mark.parametrize(("minutes", "is_lowered"), [(5, True), (15, False)])
def test_min_history_ignores_a_checkpoint_older_than_the_recommendation(
    minutes: int, is_lowered: bool
) -> None:
    entry = {
        "subresource": "status",
        "time": build.stamp(build.NOW),
        "manager": "recommender",
        "operation": "Update",
    }
    whole = seen(vpa("200Gi", "1Gi"))
    document = msgspec.json.decode(msgspec.json.encode(whole.vpas[0]))
    document["metadata"]["managedFields"] = [entry]
    saved = checkpoint(8 * DAY, updated=build.NOW - dt.timedelta(minutes=minutes))
    decision = build.decided(replace(whole, vpas=(build.decoded(Vpa, document),), checkpoints=(saved,)))
    assert (memory_of(decision)[0] < 3 * GIB) is is_lowered
