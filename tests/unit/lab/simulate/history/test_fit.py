"""What is learnt of usage, with and without a load."""

from __future__ import annotations

import random
import re

import pytest

from hvpa_lab.simulate.history.fit import fit
from tests.unit.lab.simulate.history.build import history, wave


def test_usage_follows_replicas_and_load() -> None:
    learnt = fit(history())
    (app,) = learnt.containers.values()
    assert (app.cpu.per_replica, app.cpu.per_unit) == pytest.approx((0.15, 0.01))
    assert (app.memory.per_replica, app.memory.per_unit) == pytest.approx((4e8, 1e6))
    assert (learnt.cpu_base, learnt.memory_base) == pytest.approx((0.15, 4e8))
    assert (learnt.is_cpu, learnt.is_poor, learnt.notes) == (False, False, ())
    assert learnt.load[0] == wave(0)


def test_without_a_load_cpu_is_the_load_and_containers_share_it() -> None:
    learnt = fit(history(load=None, containers=("app", "proxy")))
    assert learnt.is_cpu
    for usage in learnt.containers.values():
        assert usage.cpu[:2] == pytest.approx((0, 0.5))
    assert learnt.load[0] == pytest.approx(0.15 * 2 + 0.01 * 50)
    assert learnt.notes == (
        "no load was given: CPU usage is used as the load, and the base usage of a pod is assumed to be 0",
    )


def test_a_load_of_0_throughout_is_none() -> None:
    learnt = fit(history(load=lambda row: 0.0))
    assert (learnt.is_cpu, learnt.notes) == (
        True, ("the load is 0 throughout: CPU usage is used as the load",),
    )  # fmt: skip
    nothing = fit(history(load=lambda row: 0.0, cpu=lambda count, units: 0.0))
    assert nothing.containers["app"].cpu.per_unit == 0


def test_a_load_that_cpu_does_not_follow_is_left_out_unless_it_is_wanted() -> None:
    draw = random.Random(1)
    odd = history(cpu=lambda count, units: draw.uniform(0.5, 9))
    learnt = fit(odd)
    assert learnt.is_cpu
    assert learnt.notes[0].startswith("CPU usage does not follow the load, which explains only ")
    kept = fit(odd, by_load=True)
    assert (kept.is_cpu, kept.is_poor) == (False, True)
    assert kept.notes[0].startswith("container app: replicas and load explain ")
    assert re.search(r", with a typical error of \d+(\.\d+)? percent$", kept.notes[0])


def test_replicas_in_proportion_to_the_load_leave_no_base() -> None:
    learnt = fit(history(replicas=lambda row: wave(row) / 50))
    assert learnt.cpu_base == 0
    assert learnt.notes[0].startswith("replicas were always proportional to the load")


def test_memory_that_is_told_apart_from_no_load_is_the_replicas() -> None:
    learnt = fit(history(replicas=lambda row: 3, load=lambda row: 100.0))
    assert learnt.containers["app"].memory[:2] == pytest.approx((4e8 + 1e8 / 3, 0.0))
    # Replicas that follow the load: what explains as much is taken to stay.
    learnt = fit(history(replicas=lambda row: wave(row) / 50, memory=lambda count, units: 4e8 * count))
    assert learnt.containers["app"].memory[:2] == pytest.approx((4e8, 0.0))


def test_memory_above_the_line_is_what_nineteen_of_twenty_do_not_exceed() -> None:
    rows = iter(range(10_000))
    learnt = fit(history(memory=lambda count, units: count * (4e8 + 1e6 * (next(rows) % 20))))
    above = learnt.containers["app"].memory_above
    line = learnt.containers["app"].memory
    assert line.per_replica + above == pytest.approx(4e8 + 18e6, rel=2e-3)
    nothing = fit(history(replicas=lambda row: 0))
    assert nothing.containers["app"].memory_above == 0
