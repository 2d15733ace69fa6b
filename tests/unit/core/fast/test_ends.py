"""A raise by the fast signal ends when pods need it no more: at the request before it. Memory stays."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from builders.build import NOW, at, merged
from hvpa.api.hvpa.status import AppliedTarget, Axes, FailedChange, HvpaStatus, RolledBack, VerticalAxis
from hvpa.core.model import Decision, FastUsage, PodUsage
from tests.unit.core.actuation.sized_pods import resize_condition
from tests.unit.core.fast.pods import HALF, NONE, WHOLE, cpu, deciding, growing, memory_of, usage

ANY_CHANGE: Final = {"minChange": {"cpu": {"value": "1m"}}}
UNMEASURED: Final = {"blend": "Trajectory", "weightBasedScalingIntervals": []}
"""A joint decision without an HPA: no metric measures CPU."""


def after_a_raise(
    change: Mapping[str, Any],
    target: str = "1",
    *,
    later: Mapping[str, Any] | None = None,
    applied_from: Sequence[AppliedTarget] = (),
    used: Sequence[int] = (1200,),
    now_used: int = 500,
    **more: Any,
) -> Decision:
    """The decision two minutes after the last raise by the fast signal, a raise for each of these usages. `later`: what
    of the spec has changed since."""
    status, size, now = HvpaStatus(axes=Axes(vertical=VerticalAxis(applied_from=applied_from))), 1000, NOW
    for one in used:
        raised = deciding(usage(one, one, when=now), change, status, now=now, has=size, **more)
        assert cpu(raised) > size
        status, size, now = raised.status, cpu(raised), now + dt.timedelta(seconds=10)
    now += dt.timedelta(minutes=2)
    newest = usage(now_used, now_used, when=now)
    return deciding(newest, merged(change, later or {}), status, now=now, has=size, target=target, **more)


def record(decision: Decision) -> VerticalAxis:
    axes = decision.status.axes
    assert axes is not None
    assert axes.vertical is not None
    return axes.vertical


@pytest.mark.parametrize(
    ("target", "wanted"), [("1", 1000), ("1300m", 1150), ("700m", 1000), ("1600m", 1300), ("3", 2000)]
)
@pytest.mark.parametrize("used", [(1200,), (1200, 1900)])
def test_additive_goes_on_from_the_request_before_the_raise(
    target: str, wanted: int, used: Sequence[int]
) -> None:
    assert cpu(after_a_raise(HALF, target, used=used)) == wanted


@pytest.mark.parametrize(("target", "wanted"), [("1", 1000), ("1300m", 1300), ("700m", 1000), ("3", 3000)])
@pytest.mark.parametrize("used", [(1200,), (1200, 1900)])
def test_cpu_that_no_metric_measures_goes_to_the_target_or_back(
    target: str, wanted: int, used: Sequence[int]
) -> None:
    """Below the request before the raise, it waits for hours, as it would have without the raise."""
    later = after_a_raise(UNMEASURED, target, used=used)
    assert cpu(later) == wanted
    assert later.ended == ("the fast signal had raised cpu of app from 1",)


@pytest.mark.parametrize(
    ("now_used", "wanted"), [(900, 1000), (901, 1288), (960, 1372), (961, 1715), (1600, 2286)]
)
@pytest.mark.parametrize("blend", [HALF, UNMEASURED])
def test_of_a_raise_what_pods_need_is_kept(blend: Mapping[str, Any], now_used: int, wanted: int) -> None:
    """900m is 90 percent of the request before. Of the raise, 901m needs 1288m, and 961m needs more than 80 percent."""
    assert cpu(after_a_raise(blend, now_used=now_used)) == wanted


def test_a_raise_that_is_kept_is_explained() -> None:
    kept, lowered = after_a_raise(HALF, now_used=1200), after_a_raise(HALF, now_used=901)
    text = "app cpu: 1715m now, kept as raised by the fast signal, because the kubelets report 1200m"
    assert text in kept.steps
    assert (kept.status.recommended, kept.reported, kept.ended) == (
        after_a_raise(HALF, now_used=1300).status.recommended,
        (),
        (),
    )
    assert "1288m, lowered no further because the kubelets report 901m" in lowered.steps[1]
    assert (lowered.reported, len(lowered.ended)) == ((), 1)


@pytest.mark.parametrize("blend", [HALF, UNMEASURED])
@pytest.mark.parametrize("target", ["700m", "1"])
def test_no_way_back_is_too_short(blend: Mapping[str, Any], target: str) -> None:
    """`maxAllowed` leaves a raise to 1100m, which is close enough to 1 core otherwise."""
    policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "1100m"}}]}
    bounded = merged(blend, {"vpa": {"template": {"spec": {"resourcePolicy": policy}}}})
    assert cpu(deciding(usage(1200, 1200), bounded)) == 1100
    assert cpu(after_a_raise(bounded, target)) == 1000


@pytest.mark.parametrize(("lasting", "wanted"), [(1200, 1715), (700, 1000)])
@pytest.mark.parametrize("blend", [HALF, UNMEASURED])
def test_a_single_measurement_ends_no_raise(blend: Mapping[str, Any], lasting: int, wanted: int) -> None:
    """The usage of the last minute counts, however much the newest sample shows."""
    raised = deciding(usage(1200, 1200), blend)
    now = at(minutes=2)
    of = {("web-0", "app"): PodUsage(300, now, lasting_cpu=lasting), ("web-1", "app"): PodUsage(300, now)}
    of["web-1", "app"] = of["web-0", "app"]
    later = deciding(FastUsage(now, of, nodes=1), blend, raised.status, now=now, has=1715)
    assert cpu(later) == wanted


@pytest.mark.parametrize(
    ("reported", "minutes", "wanted"),
    [
        (None, 5, 1715),  # an operator has just started
        (FastUsage(nodes=1), 5, 1715),
        (None, 30, 1715),  # `hvpa explain` reads no kubelets
        (FastUsage(at(minutes=4), {("web-0", "app"): PodUsage(1200, at(minutes=4))}, nodes=1), 8, 1715),
        (FastUsage(at(minutes=4), {("web-0", "app"): PodUsage(1200, at(minutes=4))}, nodes=1), 11, 1715),
        (FastUsage(at(minutes=4), nodes=1, silent={"10.0.0.1": "HTTP 403"}), 8, 1715),
        (FastUsage(at(minutes=4), nodes=1, silent={"10.0.0.1": "HTTP 403"}), 16, 1000),
        (FastUsage(nodes=2, silent={"10.0.0.1": "HTTP 403"}), 30, 1715),
    ],
)
def test_usage_that_is_not_known_ends_a_raise_only_after_a_while(
    reported: FastUsage | None, minutes: float, wanted: int
) -> None:
    raised = deciding(usage(1200, 1200), HALF)
    later = deciding(reported, HALF, raised.status, now=at(minutes=minutes), has=1715)
    assert cpu(later) == wanted


def test_a_resize_that_waits_stops_further_raises_and_ends_none() -> None:
    """A node has no room for one of the pods."""
    raised, now = deciding(usage(3000, 3000), HALF), at(minutes=2)
    waits = [resize_condition("Pending", "Deferred", seconds=0)]
    later = deciding(usage(3000, 3000, when=now), HALF, raised.status, waits, now=now, has=2000)
    assert cpu(later) == cpu(raised) == 2000


@pytest.mark.parametrize(("blend", "wanted"), [(HALF, 1050), (UNMEASURED, 1100)])
def test_a_short_peak_leaves_no_large_request(blend: Mapping[str, Any], wanted: int) -> None:
    """80 seconds of 5 cores, and then 920m for ten minutes."""
    status, size, now = HvpaStatus(), 1000, NOW
    for step in range(70):
        used = 5000 if step < 8 else 920
        decision = deciding(usage(used, used, when=now), blend, status, now=now, has=size, target="1100m")
        size, status, now = cpu(decision), decision.status, now + dt.timedelta(seconds=10)
    assert size == wanted


def test_after_a_raise_a_request_still_moves_with_its_target() -> None:
    """1000m was blended from 800m at weight 50: another half of the way to 1600m would be 1300m."""
    before = AppliedTarget(container="app", resource="cpu", target="800m", weight=50, request="1")
    back = after_a_raise(HALF, "800m", applied_from=[before])
    assert (cpu(back), record(back).applied_from) == (1000, (before,))
    assert "800m recommended, 1 as before the fast signal raised it" in back.steps[1]
    events = [event.message for event in back.events if event.reason == "ScaledDown"]
    assert events
    assert all("the fast signal had raised cpu of app from 1" in event for event in events)
    assert cpu(after_a_raise(HALF, "1600m", applied_from=[before])) == 1400


def test_what_another_change_has_set_is_not_taken_back() -> None:
    """The VPA's target of 2430m has led to the same request as the raise before."""
    back = after_a_raise(HALF, "1")
    again = deciding(None, HALF, back.status, now=at(minutes=4), target="2430m")
    assert cpu(again) == 1715
    later = deciding(None, HALF, again.status, now=at(minutes=6), target="2430m", has=1715)
    assert cpu(later) == 1715


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [({"maxAllowed": {"cpu": "900m"}}, 900), ({"minAllowed": {"cpu": "1100m"}}, 1100)],
)
@pytest.mark.parametrize("weight", [HALF, WHOLE, NONE])
@pytest.mark.parametrize("now_used", [500, 1200])
def test_the_way_back_ends_at_bounds(
    weight: Mapping[str, Any], bounds: Mapping[str, Any], wanted: int, now_used: int
) -> None:
    policy = {"containerPolicies": [{"containerName": "app", **bounds}]}
    later = {**weight, "vpa": {"template": {"spec": {"resourcePolicy": policy}}}}
    keeps = now_used == 1200 and "minAllowed" in bounds
    assert cpu(after_a_raise(HALF, later=later, now_used=now_used)) == (1715 if keeps else wanted)


def test_a_raise_is_taken_back_where_requests_have_no_weight() -> None:
    assert cpu(after_a_raise(HALF, later=NONE, target="3")) == 1000


def test_a_short_history_holds_back_only_what_is_below_the_request_before() -> None:
    back = after_a_raise(HALF, "500m", since=at(minutes=-30))
    assert cpu(back) == 1000
    for since, wanted in ((at(minutes=-30), 1000), (at(hours=-30), 750)):
        after = deciding(None, HALF, back.status, now=at(minutes=4), target="500m", since=since)
        assert cpu(after) == wanted
    policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "900m"}}]}
    later = {"vpa": {"template": {"spec": {"resourcePolicy": policy}}}}
    assert cpu(after_a_raise(HALF, "700m", later=later, since=at(minutes=-30))) == 900


def test_a_raise_that_is_too_small_for_min_change_waits() -> None:
    """From 1000m half of the way to 2500m is 1750m, 35m above what the fast signal has set."""
    assert cpu(after_a_raise(HALF, "2500m")) == 1715


@pytest.mark.parametrize("blend", [HALF, UNMEASURED])
def test_usage_between_request_and_target_leads_to_no_endless_resizes(blend: Mapping[str, Any]) -> None:
    """An hour of 950m: half of the way to the VPA's target of 1300m serves it."""
    status, sizes, now = HvpaStatus(), [1000], NOW
    for _ in range(360):
        decision = deciding(usage(950, 950, when=now), blend, status, now=now, has=sizes[-1], target="1300m")
        if cpu(decision) != sizes[-1]:
            sizes.append(cpu(decision))
        status, now = decision.status, now + dt.timedelta(seconds=10)
    assert len(sizes) <= 4


def test_limits_are_the_same_after_a_raise() -> None:
    """The limit is one and a half times the request: 2572.5m while the request is 1715m."""
    back = after_a_raise(HALF, limits={"cpu": "1500m"})
    assert back.containers["app"].limits["cpu"] == 1500


def test_limits_of_pods_resized_in_place_do_not_creep() -> None:
    """Fifty times up and down in several steps: the limit depends on the request alone."""
    status, size, now = HvpaStatus(), 1000, NOW
    for number in range(150):
        target, now = ("400m", "577m", "1")[number % 3], now + dt.timedelta(hours=1)
        change = {**WHOLE, "vpa": {"scaleUp": ANY_CHANGE, "scaleDown": ANY_CHANGE}}
        decision = deciding(None, change, status, now=now, has=size, target=target, limits={"cpu": "1500m"})
        size, status = cpu(decision), decision.status
        limit = {400: 600, 577: 866, 1000: 1500}[size]
        assert decision.containers["app"].limits["cpu"] == limit


def test_what_is_left_of_several_raises_is_taken_back_after_a_rollback() -> None:
    """The second raise, to 4 cores, is beyond each node."""
    status, size, now = HvpaStatus(), 1000, NOW
    for _ in range(2):
        raised = deciding(usage(5000, 5000, when=now), HALF, status, now=now, has=size)
        status, size, now = raised.status, cpu(raised), now + dt.timedelta(seconds=10)
    refused = [resize_condition("Pending", "Infeasible", seconds=0)]
    rolled = deciding(None, HALF, status, refused, now=now, has=2000, spec_has=4000)
    assert size == 4000
    assert [(known.request, known.before) for known in record(rolled).fast_raises] == [(2000, 1000)]
    now += dt.timedelta(minutes=3)
    assert cpu(deciding(usage(500, 500, when=now), HALF, rolled.status, now=now, has=2000)) == 1000


def test_a_raise_is_taken_back_after_a_rollback_of_the_change_that_followed() -> None:
    """From 1000m half of the way to 5 cores is 3 cores, which no node has."""
    raised = deciding(usage(1200, 1200), HALF)
    larger = deciding(None, HALF, raised.status, now=at(minutes=1), has=1715, target="5")
    refused = [resize_condition("Pending", "Infeasible", seconds=0)]
    rolled = deciding(None, HALF, larger.status, refused, now=at(minutes=2), has=1715, spec_has=3000)
    assert rolled.status.desired is not None
    assert rolled.status.desired.containers[0].requests["cpu"] == "1715m"
    now = at(minutes=5)
    for target in ("1", "5"):  # 3 cores are held for a day
        back = deciding(usage(500, 500, when=now), HALF, rolled.status, now=now, has=1715, target=target)
        assert cpu(back) == 1000


def test_a_raise_ends_where_the_usual_change_is_held() -> None:
    """600m has failed, so half of the way to 200m is held for a day."""
    change = FailedChange(container="app", resource="cpu", previous=1000, failed=600)
    status = HvpaStatus(rolled_back=RolledBack(count=4, time=at(minutes=-30), changes=(change,)))
    raised = deciding(usage(3000, 3000), HALF, status)
    now = at(minutes=3)
    back = deciding(usage(100, 100, when=now), HALF, raised.status, now=now, has=cpu(raised), target="200m")
    assert (cpu(raised), cpu(back)) == (2000, 1000)


@pytest.mark.parametrize("minutes", [1.1, 1.9])
def test_usage_from_before_the_raise_does_not_end_it(minutes: float) -> None:
    """The last minute of a kubelet that takes a sample every 20 s can begin before the jump."""
    raised, now = deciding(usage(1200, 1200), HALF), at(minutes=minutes)
    later = deciding(usage(300, 300, when=now), HALF, raised.status, now=now, has=1715)
    assert cpu(later) == 1715


@pytest.mark.parametrize(("known", "wanted"), [(4, 1715), (5, 1000)])
def test_the_usage_of_few_pods_ends_no_raise(known: int, wanted: int) -> None:
    raised, now = deciding(usage(*[1200] * 10), HALF, pods=10), at(minutes=3)
    of = {
        (f"web-{index}", "app"): PodUsage(100, now, lasting_cpu=100 if index < known else None)
        for index in range(10)
    }
    later = deciding(FastUsage(now, of, nodes=1), HALF, raised.status, now=now, has=1715, pods=10)
    assert cpu(later) == wanted


def test_a_part_that_must_not_be_lowered_is_not_reported() -> None:
    """The size that pods need moves with their usage: each report would be a write."""
    off = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    lists = [after_a_raise(HALF, later=off, now_used=used) for used in (910, 930)]
    assert [(cpu(one), one.blocked) for one in lists] == [(1715, ()), (1715, ())]
    assert lists[0].status.recommended == lists[1].status.recommended


def test_a_raise_lowers_no_limit() -> None:
    """The template's limit has been lowered since the limit of 3 cores was set."""
    first = deciding(usage(1200, 1200), HALF, limits={"cpu": "3"})
    now = at(seconds=30)
    second = deciding(
        usage(1700, 1700, when=now), HALF, first.status, now=now, has=1715, limits={"cpu": "1100m"}
    )
    assert (cpu(second), second.containers["app"].limits["cpu"]) == (2429, 5145)


@pytest.mark.parametrize("weight", [HALF, WHOLE])
def test_a_raise_and_its_end_need_no_trial(weight: Mapping[str, Any]) -> None:
    change = {**weight, "updateStrategy": {"canary": {"pods": 1, "duration": "10m"}}}
    raised = deciding(usage(1200, 1200), change)
    assert len(raised.resizes) == 2
    back = after_a_raise(change)
    assert len(back.resizes) == 2
    other = after_a_raise(change, target="3")
    assert other.status.desired is not None
    assert other.status.desired.canary is not None


def test_beside_a_trial_all_pods_get_the_raise() -> None:
    """The VPA's memory target has risen in the same decision; one pod tries it."""
    change = {**HALF, "updateStrategy": {"canary": {"pods": 1, "duration": "10m"}}}
    decision = deciding(usage(1200, 1200), change, memory_target="4G")
    assert decision.status.desired is not None
    assert decision.status.desired.canary is not None
    (previous,) = decision.status.desired.canary.previous
    assert (previous.requests["cpu"], previous.requests["memory"]) == ("1715m", "1G")
    assert len(decision.resizes) == 2


# --- memory ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("blend", [HALF, WHOLE, {"blend": "Trajectory", "weightBasedScalingIntervals": []}])
@pytest.mark.parametrize("minutes", [2, 30])
def test_memory_is_not_lowered_again_as_after_an_oom(blend: Mapping[str, Any], minutes: float) -> None:
    raised = growing(blend)
    later = deciding(None, blend, raised.status, now=at(minutes=minutes), limits={"memory": "1G"})
    assert memory_of(later) == memory_of(raised) == 1_200_000_000


@pytest.mark.parametrize(
    ("minutes", "wanted"),
    [
        pytest.param(-1, 1_200_000_000, id="before the raise it counts no more"),
        pytest.param(0.1, 1_440_000_000, id="soon after it"),
        pytest.param(2.5, 1_440_000_000, id="later"),
    ],
)
def test_an_oom_after_the_raise_leads_to_more_at_once(minutes: float, wanted: int) -> None:
    killed = deciding(
        None,
        HALF,
        growing(HALF).status,
        now=at(minutes=3),
        limits={"memory": "1200M"},
        memory="1200M",
        killed=at(minutes=minutes),
    )
    assert memory_of(killed) == wanted
