"""The fast signal raises requests in place, once, at most twofold, and nothing else (`spec.fastSignal`)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import NOW, at, container, decided, hvpa, merged, objects, stamp, vpa, workload
from hvpa.api.hvpa.status import Axes, FailedChange, FastRaise, HvpaStatus, RolledBack, VerticalAxis
from hvpa.core.model import FastUsage, PodUsage
from tests.unit.core.actuation.sized_pods import resize_condition, running
from tests.unit.core.fast.pods import HALF, SIZE, SPEC, cpu, deciding, usage
from tests.unit.core.trajectory.jointly import state, utilization


@pytest.mark.parametrize(
    ("used", "wanted"),
    [
        ((900, 900), 1000),  # 90 percent is not above 90 percent
        ((950, 950), 1358),  # 950m is 70 percent of 1358m
        ((2000, 400), 1715),  # the mean is 1200m
        ((5000, 5000), 2000),  # at most twofold
        ((1200, None), 1715),  # half of the pods is enough
    ],
)
def test_pods_get_a_size_of_which_they_use_70_percent(used: tuple[int | None, ...], wanted: int) -> None:
    assert cpu(deciding(usage(*used))) == wanted


def test_the_raise_says_what_the_kubelets_report() -> None:
    (step,) = [step for step in deciding(usage(1200, 1200)).steps if "kubelets" in step]
    assert step == "app cpu: 1 now, 1 recommended, 1715m, raised because the kubelets report 1200m"


def test_the_event_names_it_as_the_cause() -> None:
    event = next(event for event in deciding(usage(1200, 1200)).events if event.reason == "ScaledUp")
    assert "the kubelets report 1200m for app" in event.message


def test_a_joint_decision_raises_its_sizes_too_and_keeps_its_count() -> None:
    inputs = state(
        2,
        [container(requests=SIZE)],
        [utilization("cpu", 70, 70, "700m")],
        {"app": SIZE},
        {"updateStrategy": {"type": "InPlace"}, "fastSignal": {"mode": "Raise"}},
        pods=[running(f"web-{index}", SIZE) for index in range(2)],
    )
    decision = decided(replace(inputs, usage=usage(1300, 1300)), NOW)
    assert decision.replicas is not None
    assert (cpu(decision), decision.replicas.target) == (1858, 2)
    assert cpu(decided(inputs, NOW)) == 1000


@pytest.mark.parametrize(
    "case",
    [
        {"reported": None},
        {"reported": usage(1200)},  # one of three pods
        {"reported": usage(1200, 1200, 1200, when=at(seconds=-31))},
        {"change": {"fastSignal": {"mode": "Off"}}},
        {"change": {"updateStrategy": {"type": "Rollout"}}},
        {"change": {"mode": "Paused"}},
        {"change": {"mode": "Recommend"}},
        {"change": {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}},
        {"change": {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}}},
        {"change": {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}},
        {"change": {"weightBasedScalingIntervals": [{"vpaWeight": 0}], "blend": "Trajectory"}},
        {"conditions": [resize_condition("Pending", "Deferred")]},
        {"restarts": "cpu"},
    ],
    ids=[
        "unknown",
        "few pods",
        "old",
        "off",
        "replaced",
        "paused",
        "recommend",
        "no raises",
        "window",
        "weight 0",
        "joint weight 0",
        "room",
        "restarts containers",
    ],
)
def test_nothing_is_raised(case: dict[str, Any]) -> None:
    given_usage = case.pop("reported", usage(1200, 1200, 1200))
    assert cpu(deciding(given_usage, pods=3, **case)) == 1000


def raised_at(when: dt.datetime) -> HvpaStatus:
    """A status that was last raised then, to the present size."""
    status = deciding(usage(1200, 1200)).status
    assert status.axes is not None
    axis = VerticalAxis(last_scale_time=when, last_scale_up_time=when)
    axes = status.axes.model_copy(update={"vertical": axis})
    return status.model_copy(update={"axes": axes, "desired": None})


def test_a_sample_from_before_the_last_raise_does_not_count_again() -> None:
    status = raised_at(at(seconds=-5))
    assert cpu(deciding(usage(1200, 1200, when=at(seconds=-5)), status=status)) == 1000
    assert cpu(deciding(usage(1200, 1200, when=at(seconds=-4)), status=status)) == 1715


@given(st.lists(st.none() | st.integers(0, 10**9), max_size=3), st.integers(1, 4))
def test_no_usage_lowers_a_request_or_more_than_doubles_it(used: list[int | None], pods: int) -> None:
    assert 1000 <= cpu(deciding(usage(*used), pods=pods)) <= 2000


def test_only_pods_whose_own_samples_are_new_count() -> None:
    """The mean of 100m and 5000m would call for more; but the second is an hour old."""
    of = {("web-0", "app"): PodUsage(100, NOW), ("web-1", "app"): PodUsage(5000, at(minutes=-60))}
    assert cpu(deciding(FastUsage(NOW, of, nodes=1))) == 1000


def test_what_has_no_cpu_request_is_not_raised() -> None:
    app = merged(container(requests={"memory": "1G"}, limits={"cpu": "1"}), {})
    pods = [running(f"web-{index}", {"memory": "1G"}, limits={"cpu": "1"}) for index in range(2)]
    seen = objects(
        hvpa(merged(SPEC, HALF)), workload(2, [app]), None, vpa({"app": SIZE}), pods, usage=usage(950, 950)
    )
    assert "cpu" not in decided(seen).containers["app"].requests


# --- again -----------------------------------------------------------------------------------------------------------
def raised_before(request: int, minutes: float) -> HvpaStatus:
    """A status with a raise to this request, before so many minutes; the next decision has taken it back."""
    when = at(minutes=-minutes)
    raised = FastRaise(container="app", resource="cpu", request=request, time=when)
    axis = VerticalAxis(last_scale_time=when, last_scale_up_time=when, fast_raises=(raised,))
    return HvpaStatus(axes=Axes(vertical=axis))


@pytest.mark.parametrize(
    ("used", "request_before", "minutes", "is_raised"),
    [
        (
            950,
            1358,
            2,
            False,
        ),  # that size served the usage, and the next decision found that a smaller one does
        (1222, 1358, 2, False),
        (1223, 1358, 2, True),
        (950, 1358, 11, True),
    ],
)
def test_a_usage_that_the_last_raise_served_calls_for_no_other_for_ten_minutes(
    used: int, request_before: int, minutes: float, is_raised: bool
) -> None:
    decision = deciding(usage(used, used), status=raised_before(request_before, minutes))
    assert (cpu(decision) > 1000) == is_raised


def test_a_raise_is_recorded() -> None:
    decision = deciding(usage(1200, 1200))
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    assert decision.status.axes.vertical.fast_raises == (
        FastRaise(container="app", resource="cpu", request=1715, before=1000, time=NOW),
    )


def test_a_jump_is_covered_in_steps() -> None:
    """5 cores, which a container without a limit uses at once, are more than each step serves but the last."""
    status, sizes, now = HvpaStatus(), [1000], NOW
    for _ in range(4):
        decision = deciding(usage(5000, 5000, when=now), status=status, now=now, has=sizes[-1])
        sizes.append(cpu(decision))
        status, now = decision.status, now + dt.timedelta(seconds=10)
    assert sizes == [1000, 2000, 4000, 7143, 7143]


def test_constant_usage_does_not_raise_and_lower_in_turn() -> None:
    """Ten minutes of 950m, which the VPA's target of 1 core takes back a minute after each raise."""
    status, changes, now, size = HvpaStatus(), 0, NOW, 1000
    for _ in range(60):
        decision = deciding(usage(950, 950, when=now), status=status, now=now, has=size)
        changes += cpu(decision) != size
        size, status, now = cpu(decision), decision.status, now + dt.timedelta(seconds=10)
    assert changes <= 2


# --- beside the usual decision ---------------------------------------------------------------------------------------
def test_a_larger_raise_of_the_usual_decision_is_made() -> None:
    assert cpu(deciding(usage(950, 950), target="3")) == 3000
    assert cpu(deciding(usage(1900, 1900), target="1200m")) == 2000


@pytest.mark.parametrize("target", ["1400m", "1200m"])
def test_a_raise_that_is_held_back_does_not_hold_back_the_usual_one(target: str) -> None:
    """A size of 1500m failed, for a day; the usual raise to less passes."""
    change = FailedChange(container="app", resource="cpu", previous=1000, failed=1500)
    status = HvpaStatus(rolled_back=RolledBack(count=1, time=at(minutes=-30), changes=(change,)))
    for reported in (None, usage(3000, 3000)):
        decision = deciding(reported, status=status, target=target)
        assert cpu(decision) == int(target[:-1])


def test_what_a_gate_holds_back_is_neither_recommended_nor_reported() -> None:
    closed = {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}}
    held, without = deciding(usage(1200, 1200), closed), deciding(usage(100, 100), closed)
    assert (held.status.recommended, held.blocked) == (without.status.recommended, without.blocked)


def test_its_size_replaces_no_pods() -> None:
    """The kubelets say that no node has so much: a rollout would replace all pods."""
    change = {"updateStrategy": {"type": "InPlaceOrRollout"}}
    first = deciding(usage(1900, 1900), change)
    refused = [resize_condition("Pending", "Infeasible", seconds=0)]
    for seconds in (5, 25, 330):
        later = deciding(None, change, first.status, refused, now=at(seconds=seconds), spec_has=2000)
        assert later.workload_patch is None, seconds


# --- memory ----------------------------------------------------------------------------------------------------------
def memory(used: int, grows: bool = True, limit: str | None = "1G", **more: Any) -> int:
    of = {("web-0", "app"): PodUsage(memory=used, memory_time=NOW, grows=grows)}
    limits = None if limit is None else {"memory": limit}
    decision = deciding(FastUsage(NOW, of, nodes=1), limits=limits, **more)
    return decision.containers["app"].requests["memory"]


def test_memory_that_grows_towards_its_limit_is_raised_as_after_an_oom() -> None:
    assert memory(950 * 10**6) == 1200 * 10**6
    assert memory(950 * 10**6, grows=False) == 10**9
    assert memory(900 * 10**6) == 10**9
    assert memory(950 * 10**6, limit=None) == 10**9


def test_memory_that_no_container_can_have_is_no_usage() -> None:
    assert memory(2001 * 10**6) == 10**9


def test_memory_is_not_raised_if_its_limit_stays() -> None:
    policy = {"containerName": "app", "controlledValues": "RequestsOnly"}
    vertical = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [policy]}}}}}
    assert memory(950 * 10**6, change=vertical) == 10**9


def test_memory_without_max_allowed_is_at_most_four_targets() -> None:
    assert memory(950 * 10**6, memory_target="250M") == 250 * 10**6  # the usual decision
    assert memory(950 * 10**6, memory_target="275M") == 1100 * 10**6


@pytest.mark.parametrize(("most", "wanted"), [("1100M", 1100), ("2G", 1200)])
def test_memory_is_at_most_max_allowed(most: str, wanted: int) -> None:
    policy = {"containerName": "app", "maxAllowed": {"memory": most}}
    vertical = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [policy]}}}}}
    assert memory(950 * 10**6, change=vertical) == wanted * 10**6


@pytest.mark.parametrize(("since", "wanted"), [(10, 1000), (50, 1715)])
def test_samples_of_a_start_with_more_cpu_call_for_nothing(since: int, wanted: int) -> None:
    """The pods became ready so many seconds ago, with a boost until 15 seconds after that."""
    boost = {"startupBoost": [{"container": "app", "cpu": {"factor": 2}, "after": "15s"}]}
    inputs = objects(
        hvpa(merged(SPEC, boost)),
        workload(2, containers=[container(requests=SIZE)]),
        None,
        vpa({"app": SIZE}),
        [
            running(
                f"web-{index}",
                SIZE,
                change={
                    "status": {
                        "conditions": [
                            {
                                "type": "Ready",
                                "status": "True",
                                "lastTransitionTime": stamp(at(seconds=-since)),
                            }
                        ]
                    }
                },
            )
            for index in range(2)
        ],
    )
    assert cpu(decided(replace(inputs, usage=usage(1200, 1200)), NOW)) == wanted
