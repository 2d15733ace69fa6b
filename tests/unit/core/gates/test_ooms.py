"""While most pods run out of memory, HVPA triples the replicas."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import (
    at,
    counts,
    decided,
    hpa,
    hvpa,
    merged,
    objects,
    oom_killed,
    pod,
    stamp,
    vpa,
    workload,
)
from hvpa.core.model import Decision
from tests.unit.core.gates.test_fallback import lost

BLENDS = ("Additive", "Trajectory")


def after_ooms(
    killed: int,
    of: int = 3,
    *,
    spec: Mapping[str, Any] | None = None,
    ago: dt.timedelta = dt.timedelta(minutes=1),
    horizontal: Any = None,
    status: Mapping[str, Any] | None = None,
) -> Decision:
    """The decision if so many of the pods were killed for memory."""
    pods = [oom_killed(at() - ago, f"web-{number}") for number in range(killed)]
    pods += [pod(f"web-{number}") for number in range(killed, of)]
    own = hvpa(merged({"replicas": of}, spec or {}), status)
    vertical = vpa({"app": {"cpu": "1", "memory": "1Gi"}})
    return decided(objects(own, workload(of), horizontal or lost(2, current=of), vertical, pods=pods))


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize(
    ("killed", "of", "expected"), [(2, 3, 9), (3, 3, 9), (2, 4, 4), (0, 3, 3), (3, 4, 10), (1, 1, 3)]
)
def test_replicas_triple_if_most_pods_ran_out_of_memory(
    blend: str, killed: int, of: int, expected: int
) -> None:
    """Within maxReplicas, which is 10."""
    result = after_ooms(killed, of, spec={"blend": blend})
    assert counts(result).target == expected
    if expected > of:
        why = f"at least while {killed} of {of} pods fail and run out of memory"
        assert any(why in step for step in result.steps), result.steps


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize(("failed", "expected"), [(4, 9), (5, 10)])
def test_the_next_step_needs_new_pods_that_fail(blend: str, failed: int, expected: int) -> None:
    """Also if some of the new pods do not exist yet."""
    own = hvpa({"replicas": 9, "blend": blend})
    pods = [oom_killed(at(minutes=-1), f"web-{number}") for number in range(failed)]
    vertical = vpa({"app": {"cpu": "1", "memory": "1Gi"}})
    assert (
        counts(decided(objects(own, workload(9), lost(2, current=9), vertical, pods=pods))).target == expected
    )


def test_other_failures_are_no_need_of_replicas() -> None:
    """A container that exits with an error has no use for more pods."""
    ended = {"terminated": {"reason": "Error", "finishedAt": stamp(at(minutes=-1))}}
    failing = {"status": {"containerStatuses": [{"name": "app", "lastState": ended}]}}
    pods = [pod(f"web-{number}", change=failing) for number in range(4)]
    seen = objects(
        hvpa({"replicas": 4}), workload(4), lost(2), vpa({"app": {"cpu": "1", "memory": "1Gi"}}), pods=pods
    )
    assert counts(decided(seen)).target == 4


def test_failures_of_ten_minutes_ago_have_ended() -> None:
    assert counts(after_ooms(3, ago=dt.timedelta(minutes=11))).target == 3


@pytest.mark.parametrize("blend", BLENDS)
def test_metrics_of_few_pods_do_not_hide_that_most_ran_out_of_memory(blend: str) -> None:
    result = after_ooms(2, spec={"blend": blend}, horizontal=hpa(3, 50, replicas=3))
    assert counts(result).target == 9


@pytest.mark.parametrize(("blend", "expected"), [("Additive", 3), ("Trajectory", 9)])
def test_at_weight_100_additive_adds_no_replicas(blend: str, expected: int) -> None:
    """There `Additive` scales vertically alone. A path continues with replicas where sizes end."""
    all_vertical = {"weightBasedScalingIntervals": [{"vpaWeight": 100}]}
    assert counts(after_ooms(3, spec={"blend": blend, **all_vertical})).target == expected


@pytest.mark.parametrize(
    "held", [{"mode": "Paused"}, {"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}]
)
def test_what_the_user_forbids_stays_forbidden(held: Mapping[str, Any]) -> None:
    result = after_ooms(3, spec=held)
    assert (counts(result).target, counts(result).recommended) == (3, 9)


def test_without_an_hpa_the_count_stays() -> None:
    result = after_ooms(3, spec={"hpa": {"deploy": False}}, horizontal=None)
    assert counts(result).target == 3


@given(st.integers(0, 12), st.integers(1, 12), st.sampled_from(BLENDS))
def test_the_count_at_most_triples_within_the_bounds(killed: int, of: int, blend: str) -> None:
    killed = min(killed, of)
    target = counts(after_ooms(killed, of, spec={"blend": blend})).target
    assert target == (min(10, max(of, 3 * of if 2 * killed > of else 0)))


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize(("replicas", "expected"), [(5, 9), (10, 10)])
def test_the_larger_of_two_floors_counts(blend: str, replicas: int, expected: int) -> None:
    floored = {"blend": blend, "hpa": {"fallback": {"after": "1m", "replicas": replicas}}}
    assert counts(after_ooms(3, spec=floored)).target == expected


@pytest.mark.parametrize("blend", BLENDS)
def test_max_step_does_not_divide_it(blend: str) -> None:
    """As with other floors. Few new pods would be killed like the old ones."""
    stepwise = {"blend": blend, "hpa": {"scaleUp": {"maxStep": {"factor": 1.1, "minimum": 1}}}}
    assert counts(after_ooms(3, spec=stepwise)).target == 9
