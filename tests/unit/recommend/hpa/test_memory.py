"""Windows, policies and limits: the cases of Kubernetes' own tests, as numbers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pytest

from hvpa.recommend.hpa.controller import HpaSettings
from hvpa.recommend.hpa.memory import Bounds, Memory, limit
from hvpa.recommend.hpa.plan import Policy, Rules, make_plan
from tests.unit.recommend.hpa.world import NOW, before, make_hpa

Past = Sequence[tuple[int, float]]
"""A number, and how many seconds ago."""
DEFAULT = make_plan(make_hpa({"behavior": {}}).spec, HpaSettings())


def rules(
    pods: int = 0,
    pods_period: int = 0,
    percent: int = 0,
    percent_period: int = 0,
    window: float = 0.0,
    select: str = "Max",
) -> Rules:
    policies = []
    if pods:
        policies.append(Policy("Pods", pods, dt.timedelta(seconds=pods_period)))
    if percent:
        policies.append(Policy("Percent", percent, dt.timedelta(seconds=percent_period)))
    longest = max((policy.period for policy in policies), default=dt.timedelta())
    return Rules(dt.timedelta(seconds=window), select, tuple(policies), longest)


def default_up() -> Rules:
    assert DEFAULT.up is not None
    return DEFAULT.up


def default_down() -> Rules:
    assert DEFAULT.down is not None
    return DEFAULT.down


def recommended(past: Past) -> Memory:
    """A memory of recommendations, in this order. A window of a century keeps each of them."""
    memory = Memory()
    for replicas, ago in past:
        memory.stabilize(replicas, dt.timedelta(days=36500), before(seconds=ago))
    return memory


def changed(ups: Past = (), downs: Past = ()) -> Memory:
    """A memory of changes of the count."""
    memory = Memory()
    keep = rules(1, 10**9)
    for change, ago in ups:
        memory.store(0, change, keep, keep, before(seconds=ago))
    for change, ago in downs:
        memory.store(change, 0, keep, keep, before(seconds=ago))
    return memory


def spread(*changes: int) -> Past:
    """Changes in the middles of equal parts of the last 120 seconds."""
    part = 120 / len(changes)
    return [(change, int(120 - part * (i + 1) + part / 2)) for i, change in enumerate(changes)]


@pytest.mark.parametrize(
    ("past", "desired", "stabilized", "length"),
    [
        ([], 5, 5, 1),
        ([(4, 120), (5, 60)], 3, 5, 3),
        ([(1, 120), (2, 60)], 3, 3, 3),
        ([(10, 600), (9, 540)], 3, 3, 2),
        ([(10, 600), (4, 60), (5, 120), (9, 540)], 3, 5, 4),
        ([(7, 300)], 3, 7, 2),  # just inside
    ],
)
def test_without_a_behavior_the_highest_of_the_window(
    past: Past, desired: int, stabilized: int, length: int
) -> None:
    memory = recommended(past)
    found, (reason, _) = memory.stabilize(desired, dt.timedelta(minutes=5), NOW)
    assert found == stabilized
    assert reason == ("ReadyForNewScale" if stabilized == desired else "ScaleDownStabilized")
    assert len(memory._recommendations) == length


@pytest.mark.parametrize(
    ("past", "current", "desired", "up", "down", "stabilized", "kept"),
    [
        ([], 100, 5, 0, 0, 5, [5]),
        ([(4, 120), (5, 60)], 100, 3, 0, 180, 5, [4, 5, 3]),
        ([(4, 120), (5, 60)], 1, 7, 300, 0, 4, [4, 5, 7]),
        ([(1, 120), (2, 60)], 100, 3, 300, 0, 3, [1, 2, 3]),
        ([(4, 120), (5, 60)], 1, 3, 0, 300, 3, [4, 5, 3]),
        ([(10, 600), (9, 540)], 100, 3, 0, 0, 3, [10, 3]),
        ([(10, 600), (9, 540)], 1, 100, 0, 0, 100, [10, 100]),
        ([(10, 600), (4, 60), (5, 120), (9, 540)], 100, 3, 0, 180, 5, [10, 4, 5, 3]),
        ([(10, 6000), (6, 60), (5, 120), (9, 180)], 1, 100, 300, 0, 5, [100, 6, 5, 9]),
        ([(2, 6000), (3, 180)], 2, 1, 300, 300, 2, [1, 3]),
        ([(2, 6000), (1, 180)], 2, 3, 300, 300, 2, [3, 1]),
    ],
)
def test_windows_of_both_directions(
    past: Past, current: int, desired: int, up: int, down: int, stabilized: int, kept: list[int]
) -> None:
    memory = recommended(past)
    found, (reason, _) = memory.stabilize_by_rules(
        desired, current, rules(window=up), rules(window=down), NOW
    )
    assert found == stabilized
    expected = "ScaleUpStabilized" if desired >= current else "ScaleDownStabilized"
    assert reason == ("ReadyForNewScale" if stabilized == desired else expected)
    assert [entry.replicas for entry in memory._recommendations] == kept


UPS = spread(1, 5, 9)


@pytest.mark.parametrize(
    ("current", "desired", "bounds", "up", "events", "count", "reason"),
    [
        (5, 7, (3, 8), None, changed(), 7, "DesiredWithinRange"),
        (100, 1000, (100, 150), None, changed(), 150, "TooManyReplicas"),
        (3, 1000, (1, 2000), rules(0, 0, 1, 60), changed(), 4, "ScaleUpLimit"),
        (10, 50, (1, 1000), None, changed(), 20, "ScaleUpLimit"),
        (10, 500, (1, 1000), rules(100, 60, 100, 60), changed(), 110, "ScaleUpLimit"),
        (10, 500, (1, 1000), rules(2, 60, 100, 60), changed(), 20, "ScaleUpLimit"),
        (10, 50, (1, 1000), rules(100, 60), changed(), 50, "DesiredWithinRange"),
        (10, 50, (1, 1000), rules(30, 60), changed(), 40, "ScaleUpLimit"),
        (10, 50, (1, 1000), rules(0, 0, 200, 60), changed(), 30, "ScaleUpLimit"),
        (100, 500, (1, 200), rules(300, 60), changed(UPS), 200, "TooManyReplicas"),
        (100, 500, (1, 200), rules(0, 0, 10000, 60), changed(UPS), 200, "TooManyReplicas"),
        (100, 500, (1, 1000), rules(5, 120), changed(UPS), 100, "ScaleUpLimit"),
        (100, 500, (1, 1000), rules(150, 120), changed(UPS), 235, "ScaleUpLimit"),
        (100, 500, (1, 1000), rules(0, 0, 200, 120), changed(UPS), 255, "ScaleUpLimit"),
        (6, 24, (1, 1000), rules(0, 0, 300, 300), changed(spread(4), spread(2)), 16, "ScaleUpLimit"),
        (100, 200, (1, 1000), rules(1000, 60), changed(spread(8, 12, 9, 11)), 200, "DesiredWithinRange"),
        (1, 9, (1, 10), rules(2, 60, 50, 60, select="Min"), changed(), 2, "ScaleUpLimit"),
        (4, 9, (1, 10), rules(2, 60, select="Disabled"), changed(), 4, "ScaleUpLimit"),
        (4, 9, (1, 10), rules(), changed(), 4, "ScaleUpLimit"),  # no policy at all: Go's smallest integer
        (4, 9, (1, 10), rules(select="Min"), changed(), 9, "DesiredWithinRange"),
    ],
)
def test_policies_for_scaling_up(
    current: int,
    desired: int,
    bounds: tuple[int, int],
    up: Rules | None,
    events: Memory,
    count: int,
    reason: str,
) -> None:
    found = events.limit_by_rules(desired, Bounds(current, *bounds), up or default_up(), default_down(), NOW)
    assert (found[0], found[1][0]) == (count, reason)


@pytest.mark.parametrize(
    ("current", "desired", "bounds", "down", "events", "count", "reason"),
    [
        (3, 1, (2, 8), None, changed(), 2, "TooFewReplicas"),
        (1, 0, (0, 10), None, changed(), 0, "DesiredWithinRange"),
        (1000, 3, (3, 2000), rules(20, 60), changed(), 980, "ScaleDownLimit"),
        (100, 2, (1, 1000), rules(20, 60, 1, 60), changed(), 80, "ScaleDownLimit"),
        (100, 2, (1, 1000), rules(2, 60, 1, 60), changed(), 98, "ScaleDownLimit"),
        (10, 0, (1, 1000), rules(100, 60), changed(), 1, "TooFewReplicas"),
        (10, 2, (5, 1000), rules(0, 0, 100, 60), changed(), 5, "TooFewReplicas"),
        (10, 2, (1, 1000), rules(5, 60), changed(), 5, "ScaleDownLimit"),
        (10, 5, (1, 1000), rules(0, 0, 50, 60), changed(), 5, "DesiredWithinRange"),
        (10, 5, (1, 1000), None, changed(downs=UPS), 5, "DesiredWithinRange"),
        (100, 0, (1, 1000), rules(115, 120), changed(downs=UPS), 1, "TooFewReplicas"),
        (100, 0, (5, 1000), rules(130, 120), changed(downs=UPS), 5, "TooFewReplicas"),
        (100, 2, (5, 1000), rules(0, 0, 100, 120), changed(downs=UPS), 5, "TooFewReplicas"),
        (100, 2, (1, 1000), rules(5, 120), changed(downs=UPS), 100, "ScaleDownLimit"),
        (100, 0, (1, 1000), rules(0, 0, 50, 120), changed(downs=spread(2, 4, 6)), 56, "ScaleDownLimit"),
        (10, 1, (1, 1000), rules(0, 0, 50, 180), changed(spread(2), spread(4)), 6, "ScaleDownLimit"),
        (100, 0, (1, 1000), rules(0, 0, 10, 120), changed(downs=spread(10, 10, 10)), 100, "ScaleDownLimit"),
        (
            10,
            5,
            (1, 1000),
            rules(0, 0, 1000, 120),
            changed(downs=spread(10, 10, 10)),
            5,
            "DesiredWithinRange",
        ),
        (5, 1, (1, 10), rules(2, 60, 50, 60, select="Min"), changed(), 3, "ScaleDownLimit"),
        (5, 1, (1, 10), rules(2, 60, select="Disabled"), changed(), 5, "ScaleDownLimit"),
        (5, 5, (1, 10), rules(2, 60), changed(), 5, "DesiredWithinRange"),
    ],
)
def test_policies_for_scaling_down(
    current: int,
    desired: int,
    bounds: tuple[int, int],
    down: Rules | None,
    events: Memory,
    count: int,
    reason: str,
) -> None:
    found = events.limit_by_rules(
        desired, Bounds(current, *bounds), default_up(), down or default_down(), NOW
    )
    assert (found[0], found[1][0]) == (count, reason)


def test_a_policy_of_unknown_type_repeats_the_one_before() -> None:
    known = Policy("Pods", 2, dt.timedelta(seconds=60))
    strange = Policy("Nodes", 9, dt.timedelta(seconds=60))
    odd = Rules(dt.timedelta(), "Max", (known, strange), dt.timedelta(seconds=60))
    assert Memory().limit_by_rules(50, Bounds(5, 1, 99), odd, odd, NOW)[0] == 7
    assert Memory().limit_by_rules(1, Bounds(5, 1, 99), odd, odd, NOW)[0] == 3


@pytest.mark.parametrize(
    ("past", "stored_by", "kept"),
    [
        ([], rules(10, 60, 100, 60), [(5, False)]),
        ([(7, 61)], rules(10, 60, 100, 60), [(5, False)]),
        ([(7, 58)], rules(10, 60, 100, 60), [(7, False), (5, False)]),
        ([(7, 61), (6, 59)], rules(10, 60), [(5, False), (6, False)]),
        (
            [(8, 29), (6, 59), (7, 61), (9, 61)],
            rules(10, 60, 100, 30),
            [(8, False), (6, False), (7, True), (5, False)],
        ),
        ([(7, 58), (6, 59)], rules(10, 120, 100, 30), [(7, False), (6, False), (5, False)]),
    ],
)
def test_an_outdated_change_is_replaced(past: Past, stored_by: Rules, kept: list[tuple[int, bool]]) -> None:
    memory = changed(ups=past)
    memory.store(10, 15, stored_by, default_down(), NOW)
    assert [(event.change, event.outdated) for event in memory._ups] == kept
    memory = changed(downs=past)
    memory.store(15, 10, default_up(), stored_by, NOW)
    assert [(event.change, event.outdated) for event in memory._downs] == kept


@pytest.mark.parametrize(
    ("current", "desired", "minimum", "maximum", "count", "reason"),
    [
        (5, 7, 3, 8, 7, "DesiredWithinRange"),
        (3, 1, 2, 8, 2, "TooFewReplicas"),
        (1, 0, 0, 10, 0, "DesiredWithinRange"),
        (20, 1000, 1, 10, 10, "TooManyReplicas"),
        (3, 1000, 1, 2000, 6, "ScaleUpLimit"),
        (1, 1000, 1, 2000, 4, "ScaleUpLimit"),
        (5, 1000, 1, 10, 10, "TooManyReplicas"),
    ],
)
def test_limits_without_a_behavior(
    current: int, desired: int, minimum: int, maximum: int, count: int, reason: str
) -> None:
    found = limit(desired, Bounds(current, minimum, maximum))
    assert (found[0], found[1][0]) == (count, reason)


def test_the_memory_does_not_grow_with_time() -> None:
    memory = Memory()
    memory.begin(3, NOW)
    brief = rules(1, 60)
    for turn in range(1000):
        now = NOW + dt.timedelta(seconds=15 * turn)
        memory.stabilize(turn % 7, dt.timedelta(seconds=300), now)
        memory.store(turn % 2, 1 - turn % 2, brief, brief, now)
    assert len(memory._recommendations) <= 22
    assert len(memory._ups) <= 5
    assert len(memory._downs) <= 5
