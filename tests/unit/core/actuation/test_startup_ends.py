"""How boosts for the start of pods end: `hvpa.core.actuation.startup` and `pod`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import (
    NOW,
    at,
    condition,
    container,
    decided,
    hvpa,
    merged,
    objects,
    stamp,
    vpa,
    workload,
)
from builders.build import hpa as build_hpa
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Decision, RefusedResize
from tests.unit.core.actuation.sized_pods import (
    REQUESTS,
    actuation,
    resize_condition,
    resized,
    running,
    size_status,
)
from tests.unit.core.actuation.starting_pods import (
    BOOST,
    BOOSTED,
    DOWN,
    HAD,
    KEY,
    SIZE,
    boosted,
    decided_for,
    starting,
)


def test_a_boost_ends_although_the_spec_has_none_any_more() -> None:
    """As a user removes it while a pod starts; the status names the container."""
    (record,) = boosted([starting()]).status.boosts
    assert (record.name, record.requests) == ("app", {"cpu": "3"})
    over = decided_for([starting()], {"startupBoost": []}, HAD)
    assert (resized(over), over.status.boosts) == ({"web-1": DOWN}, (record,))
    gone = decided_for([starting(requests=REQUESTS)], {"startupBoost": []}, HAD)
    assert (gone.resizes, gone.status.boosts) == ((), ())


HOUR = dt.timedelta(hours=1)
LONG = {"boosts": [{"name": "app", "requests": {"cpu": "3"}, "atMost": "1h"}]}


@pytest.mark.parametrize(
    ("kind", "boosts"),
    [
        ("InPlace", []),
        ("InPlace", [BOOST]),
        ("InPlace", [{**BOOST, "cpu": {"factor": 4}}]),
        ("Rollout", []),
    ],
)
def test_a_long_boost_ends_at_once_although_the_spec_has_another_by_then(
    kind: str, boosts: Sequence[Any]
) -> None:
    """Neither the window of decreases nor the strategy holds it. So it also ends if the Hvpa is deleted."""
    pod, since = starting(seconds=1200), at(hours=-1)
    held = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}, "updateStrategy": {"type": kind}}
    outcome = decided_for(
        [pod], {**held, "startupBoost": boosts}, merged(size_status(1, {"app": SIZE}, since), LONG)
    )
    assert resized(outcome) == {"web-1": DOWN}
    assert [resize.of_start for resize in outcome.resizes] == [True]
    assert [boost.at_most for boost in outcome.status.boosts if boost.requests == {"cpu": "3"}] == [HOUR]


def test_the_boost_of_a_container_that_the_template_has_no_longer_is_forgotten() -> None:
    status = {"boosts": [{"name": "gone", "requests": {"cpu": "3"}, "atMost": "1h"}]}
    outcome = decided_for([running()], {"startupBoost": []}, status)
    assert (outcome.resizes, outcome.status.boosts) == ((), ())


def test_the_status_has_the_longest_boost_that_pods_may_have() -> None:
    def recorded(pod: Pod) -> list[dt.timedelta]:
        return [boost.at_most for boost in decided_for([pod], status=LONG).status.boosts]

    assert recorded(starting()) == [HOUR]
    assert recorded(starting(requests=REQUESTS, ready=True, changed=0)) == [dt.timedelta(minutes=2)]
    (boost,) = boosted([starting()], {"atMost": "1h"}).status.boosts
    assert boost.at_most == HOUR


@pytest.mark.parametrize("change", [{"cpu": {"factor": 4}}, {"cpu": {"value": "500m"}}])
def test_a_boost_ends_although_the_spec_has_another_by_then(change: Mapping[str, Any]) -> None:
    pod = starting(ready=True, changed=0)
    outcome = decided_for([pod], {"startupBoost": [{**BOOST, **change}]}, HAD)
    assert resized(outcome) == {"web-1": DOWN}


def test_a_boost_ends_at_the_size_of_an_edited_template() -> None:
    edited = {"resources": {"requests": {"cpu": "1200m", "memory": "1Gi"}}}
    outcome = decided_for([starting(ready=True, changed=0)], status=HAD, template=edited)
    assert resized(outcome) == {"web-1": {"requests": {"cpu": "1200m"}}}


def test_a_boosted_limit_ends_too() -> None:
    limits = {"resources": {"requests": dict(REQUESTS), "limits": {"cpu": "2"}}}
    pod = starting(limits={"cpu": "6"}, ready=True, changed=0)
    expected = {"web-1": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
    assert resized(decided_for([pod], template=limits)) == expected


@pytest.mark.parametrize("spec", [{"updateStrategy": {"type": "Rollout"}, "startupBoost": []}, {}])
def test_a_boost_ends_although_pods_are_replaced_now(spec: Mapping[str, Any]) -> None:
    replacing = {"replacing": {"since": stamp(at(minutes=-1)), "message": "no room"}, **HAD}
    strategy = {"updateStrategy": {"type": "InPlaceOrRollout"}}
    outcome = decided_for([starting()], {**strategy, **spec}, replacing)
    assert resized(outcome) == {"web-1": DOWN}
    assert [record.name for record in outcome.status.boosts] == ["app"]
    over = decided_for([starting(requests=REQUESTS)], {**strategy, **spec}, replacing)
    assert over.resizes == ()


def test_the_end_of_a_boost_is_tried_again_although_pods_are_replaced_now() -> None:
    body = {"metadata": {"uid": "web-1"}, "spec": {"containers": [{"name": "app", "resources": DOWN}]}}
    refused = (RefusedResize("web-1", body, "forbidden", NOW, of_start=True),)
    spec = {"updateStrategy": {"type": "Rollout"}, "startupBoost": []}
    outcome = decided_for([starting(seconds=9000)], spec, HAD, refused_resizes=refused)
    assert (outcome.resizes, [record.name for record in outcome.status.boosts]) == ((), ["app"])
    assert resized(decided_for([starting(seconds=9000)], spec, HAD)) == {"web-1": DOWN}


@pytest.mark.parametrize("seconds", [300, 3600])
def test_a_size_that_is_lowered_is_no_boost(seconds: float) -> None:
    """Two cores were decided before; no boost has two cores."""
    held = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    old = starting(requests={"cpu": "2", "memory": "1Gi"}, seconds=seconds, ready=True)
    assert resized(boosted([old], spec=held, since=at(seconds=-1))) == {}
    assert resized(boosted([old], since=at(seconds=-1))) == {"web-1": DOWN}


def test_an_old_pod_with_a_size_like_a_boost_keeps_its_gates() -> None:
    """Three cores were decided before, and now one, of which the boost is three."""
    held = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    old = starting(seconds=3600, ready=True)
    assert resized(boosted([old], spec=held, since=at(seconds=-1))) == {}


def test_a_boost_never_becomes_the_size_before_a_size_that_no_pod_can_have() -> None:
    large = {"requests": {"cpu": "40", "memory": "1Gi"}}
    refused = resize_condition("Pending", "Infeasible", minutes=1)
    pods = [
        starting(
            "web-1", large["requests"], 200, has={"requests": BOOSTED}, ready=True, conditions=[refused]
        ),
        running("web-2", large["requests"], {"requests": REQUESTS}, conditions=[refused]),
    ]
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(2, {"app": large}, at(minutes=-10)),
    )
    target = workload(2, containers=[container(requests=REQUESTS)])
    outcome = decided(objects(own, target, None, vpa({"app": large["requests"]}), pods))
    assert outcome.status.desired is not None
    assert outcome.status.desired.containers[0].requests["cpu"] == "1"


def test_new_pods_have_no_boost_that_nobody_would_end() -> None:
    entry = ((KEY, "web; app 3: 1Gi:"),)
    for mode in ("Recommend", "Paused"):
        outcome = boosted([running()], spec={"mode": mode}, creation_sizes=entry)
        assert outcome.creation_sizes == {KEY: "web; app 1: 1Gi:"}
        other = boosted([running()], spec={"mode": mode}, creation_sizes=((KEY, "web; app 7: 1Gi:"),))
        assert other.creation_sizes == {}


@pytest.mark.parametrize("mode", ["Recommend", "Paused"])
@pytest.mark.parametrize("boost", [[], [{**BOOST, "cpu": {"factor": 4}}]])
@pytest.mark.parametrize(
    ("size", "entry", "usual"),
    [
        ({"app": SIZE}, "web; app 3: 1Gi:; side 3: :", "web; app 1: 1Gi:; side 3: :"),
        ({}, "web; app 3: 1Gi:", "web; app : 1Gi:"),
        ({}, "web; app 3: :; side 1: :", "web; side 1: :"),
        ({}, "web; app 3: :", None),
        ({}, "web; ", ...),
    ],
)
def test_an_edit_of_mode_and_boost_at_once_leaves_no_boost_to_new_pods(
    mode: str, boost: Sequence[Any], size: Mapping[str, Any], entry: str, usual: Any
) -> None:
    """Nobody would end the boosts of these pods. The boost stays known, so that pods that have it by then lose it."""
    spec = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "mode": mode}
    own = hvpa({**spec, "startupBoost": boost}, merged(size_status(1, size), HAD))
    target = workload(1, containers=[container(requests=REQUESTS)])
    inputs = objects(own, target, None, vpa({"app": REQUESTS}), [running()], creation_sizes=((KEY, entry),))
    outcome = decided(inputs)
    assert outcome.creation_sizes == ({} if usual is ... else {KEY: usual})
    recorded = [boost.requests["cpu"] for boost in outcome.status.boosts]
    assert ("3" in recorded) == ("app 3:" in entry)


def test_without_a_workload_no_entry_of_new_pods_changes() -> None:
    own = hvpa({"mode": "Paused"}, HAD)
    entries = ((KEY, "web; app 3: 1Gi:"),)
    outcome = decided(replace(objects(own, creation_sizes=entries), workload=None))
    assert outcome.creation_sizes == {}


@pytest.mark.parametrize("runs", [5, 34])
def test_a_boost_ends_although_containers_began_late(runs: float) -> None:
    """The image was pulled for 15 minutes, and a size was decided meanwhile."""
    held = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    late = starting(seconds=900 + runs, runs=runs, ready=True, changed=0)
    outcome = boosted([late], spec=held, since=at(seconds=-120))
    assert resized(outcome) == {"web-1": DOWN}


def _waiting(kind: str, requests: Mapping[str, str], seconds: float, *, ready: bool, has: str = "3") -> Pod:
    """A pod with 1 GiB that waits for 2 GiB."""
    actual = {"requests": {"cpu": has, "memory": "1Gi"}}
    pending = [resize_condition("Pending", kind, seconds=seconds - 1)]
    return starting("web-1", requests, seconds, has=actual, ready=ready, conditions=pending)


@pytest.mark.parametrize("seconds", [200, 90000])
@pytest.mark.parametrize("kind", ["Deferred", "Infeasible"])
@pytest.mark.parametrize(
    "spec", [{}, {"updateStrategy": {"type": "Rollout"}, "startupBoost": []}, {"startupBoost": []}]
)
def test_a_boost_ends_although_memory_waits(kind: str, seconds: float, spec: Mapping[str, Any]) -> None:
    """The kubelet allocates a resize as a whole, so the memory is set back until the container has its usual CPU."""
    size = {"requests": {"cpu": "1", "memory": "2Gi"}}
    usual = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]}
    own = hvpa({**usual, **spec}, merged(size_status(1, {"app": size}), HAD))
    target = workload(1, containers=[container(requests=REQUESTS)])

    def outcome_for(pod: Pod) -> Decision:
        return decided(objects(own, target, None, vpa({"app": size["requests"]}), [pod]))

    outcome = outcome_for(_waiting(kind, size["requests"], seconds, ready=True))
    assert resized(outcome) == {"web-1": {"requests": {"memory": "1Gi"}}}
    assert [boost.requests for boost in outcome.status.boosts] == [{"cpu": "3"}]
    answering = starting("web-1", REQUESTS, seconds, has={"requests": BOOSTED}, ready=True)
    assert resized(outcome_for(answering)) == {}


def test_pods_of_an_older_template_may_lack_the_container() -> None:
    own = hvpa(
        {
            "updateStrategy": {"type": "InPlace"},
            "hpa": {"deploy": False},
            "startupBoost": [{**BOOST, "container": "side"}],
        },
        size_status(1, {"app": SIZE}),
    )
    target = workload(1, containers=[container(requests=REQUESTS), container("side", requests=REQUESTS)])
    pods = [_waiting("Deferred", {"cpu": "1", "memory": "2Gi"}, 20, ready=False, has="1")]
    outcome = decided(objects(own, target, None, vpa({"app": REQUESTS}), pods))
    assert resized(outcome) == {"web-1": {"requests": {"memory": "1Gi"}}}


def test_a_start_keeps_its_boost_while_memory_waits() -> None:
    size = {"requests": {"cpu": "1", "memory": "2Gi"}}
    pods = [_waiting("Deferred", {"cpu": "3", "memory": "2Gi"}, 20, ready=False)]
    outcome = boosted(pods, size=size)
    assert resized(outcome) == {}
    assert "no startup boost" not in actuation(outcome).message


@pytest.mark.parametrize("seconds", [500, 800, 90000])
def test_memory_that_waits_makes_no_boost_a_size(seconds: float) -> None:
    size = {"requests": {"cpu": "2", "memory": "4Gi"}}
    pods = [_waiting("Deferred", size["requests"], seconds, ready=True, has="6")]
    spec = {
        "updateStrategy": {"type": "InPlace"},
        "blend": "Additive",
        "hpa": {"template": {"spec": {"maxReplicas": 20}}},
        "startupBoost": [BOOST],
    }
    status = merged(
        size_status(1, {"app": size}, at(hours=-3)), {"boosts": [{"name": "app", "requests": {"cpu": "6"}}]}
    )
    in_charge = build_hpa(1, change={"spec": {"maxReplicas": 20}})
    target = workload(1, containers=[container(requests=REQUESTS)])
    outcome = decided(objects(hvpa(spec, status), target, in_charge, vpa({"app": size["requests"]}), pods))
    assert outcome.status.rolled_back is None
    assert outcome.status.desired is not None
    assert outcome.status.desired.containers[0].requests == {"cpu": "2", "memory": "4Gi"}


def test_an_end_that_is_refused_stays_visible() -> None:
    body = {"metadata": {"uid": "web-1"}, "spec": {"containers": [{"name": "app", "resources": DOWN}]}}
    refused = RefusedResize("web-1", body, "a webhook says no", NOW, of_start=True)
    outcome = decided_for([starting(ready=True, changed=0)], refused_resizes=(refused,))
    assert (outcome.resizes, actuation(outcome).resized, actuation(outcome).infeasible) == ((), "0/1", 1)
    assert condition(outcome, "Ready").reason == "PodsNotResized"


def test_the_end_of_a_boost_comes_before_other_changes() -> None:
    pod = starting(requests={"cpu": "3", "memory": "3Gi"}, ready=True, changed=0)
    spec = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    assert resized(boosted([pod], spec=spec, since=at(seconds=-1))) == {"web-1": DOWN}


@given(
    seconds=st.integers(0, 400),
    runs=st.integers(0, 400),
    changed=st.integers(0, 400),
    ready=st.booleans(),
    restarts=st.integers(0, 3),
    until=st.sampled_from(["Ready", "Started"]),
)
def test_a_pod_never_has_the_boost_longer_than_allowed(
    seconds: int, runs: int, changed: int, ready: bool, restarts: int, until: str
) -> None:
    pod = starting(
        seconds=seconds,
        runs=min(runs, seconds),
        ready=ready,
        changed=changed,
        status={"restartCount": restarts},
    )
    outcome = boosted([pod], {"until": until})
    if min(runs, seconds) >= 120 or seconds >= 120 + 400:
        assert resized(outcome) == {"web-1": DOWN}
    else:
        assert resized(outcome) in ({}, {"web-1": DOWN})
