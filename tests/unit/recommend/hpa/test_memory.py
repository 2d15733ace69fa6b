"""Policies that the recorded answers do not have, and the size of what is remembered."""

from __future__ import annotations

import datetime as dt

from hvpa.recommend.hpa.memory import Bounds, Memory
from hvpa.recommend.hpa.plan import Policy, Rules
from tests.unit.recommend.hpa.world import NOW


def test_a_policy_of_unknown_type_repeats_the_one_before() -> None:
    known = Policy("Pods", 2, dt.timedelta(seconds=60))
    strange = Policy("Nodes", 9, dt.timedelta(seconds=60))
    odd = Rules(dt.timedelta(), "Max", (known, strange), dt.timedelta(seconds=60))
    assert Memory().limit_by_rules(50, Bounds(5, 1, 99), odd, odd, NOW)[0] == 7
    assert Memory().limit_by_rules(1, Bounds(5, 1, 99), odd, odd, NOW)[0] == 3


def test_the_memory_does_not_grow_with_time() -> None:
    memory = Memory()
    memory.begin(3, NOW)
    minute = dt.timedelta(seconds=60)
    brief = Rules(dt.timedelta(), "Max", (Policy("Pods", 1, minute),), minute)
    for turn in range(1000):
        now = NOW + dt.timedelta(seconds=15 * turn)
        memory.stabilize(turn % 7, dt.timedelta(seconds=300), now)
        memory.store(turn % 2, 1 - turn % 2, brief, brief, now)
    assert len(memory._recommendations) <= 22
    assert len(memory._ups) <= 5
    assert len(memory._downs) <= 5
