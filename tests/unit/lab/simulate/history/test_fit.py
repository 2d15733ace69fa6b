"""What is learnt of usage, with and without a load."""

from __future__ import annotations

import random
import re

import pytest

from hvpa_lab.simulate.history.fit import fit
from tests.unit.lab.simulate.history.build import history, wave


def test_usage_follows_replicas_and_load() -> None:
    found = fit(history())
    (app,) = found.containers.values()
    assert (app.cpu.per_replica, app.cpu.per_unit) == pytest.approx((0.15, 0.01))
    assert (app.memory.per_replica, app.memory.per_unit) == pytest.approx((4e8, 1e6))
    assert (found.cpu_base, found.memory_base) == pytest.approx((0.15, 4e8))
    assert (found.is_cpu, found.is_poor, found.notes) == (False, False, ())
    assert found.load[0] == wave(0)


def test_without_a_load_cpu_is_the_load_and_containers_share_it() -> None:
    found = fit(history(load=None, containers=("app", "proxy")))
    assert found.is_cpu
    for one in found.containers.values():
        assert one.cpu[:2] == pytest.approx((0, 0.5))
    assert found.load[0] == pytest.approx(0.15 * 2 + 0.01 * 50)
    assert found.notes == (
        "no load was given: CPU usage is used as the load, and the base usage of a pod is assumed to be 0",
    )


def test_a_load_of_0_throughout_is_none() -> None:
    found = fit(history(load=lambda row: 0.0))
    assert (found.is_cpu, found.notes) == (
        True, ("the load is 0 throughout: CPU usage is used as the load",),
    )  # fmt: skip
    nothing = fit(history(load=lambda row: 0.0, cpu=lambda count, units: 0.0))
    assert nothing.containers["app"].cpu.per_unit == 0


def test_a_load_that_cpu_does_not_follow_is_left_out_unless_it_is_wanted() -> None:
    draw = random.Random(1)
    odd = history(cpu=lambda count, units: draw.uniform(0.5, 9))
    found = fit(odd)
    assert found.is_cpu
    assert found.notes[0].startswith("CPU usage does not follow the load, which explains only ")
    kept = fit(odd, by_load=True)
    assert (kept.is_cpu, kept.is_poor) == (False, True)
    assert kept.notes[0].startswith("container app: replicas and load explain ")
    assert re.search(r", with a typical error of \d+(\.\d+)? percent$", kept.notes[0])


def test_replicas_in_proportion_to_the_load_leave_no_base() -> None:
    found = fit(history(replicas=lambda row: wave(row) / 50))
    assert found.cpu_base == 0
    assert found.notes[0].startswith("replicas were always proportional to the load")


def test_memory_that_is_told_apart_from_no_load_is_the_replicas() -> None:
    found = fit(history(replicas=lambda row: 3, load=lambda row: 100.0))
    assert found.containers["app"].memory[:2] == pytest.approx((4e8 + 1e8 / 3, 0.0))
    # Replicas that follow the load: what explains as much is taken to stay.
    found = fit(history(replicas=lambda row: wave(row) / 50, memory=lambda count, units: 4e8 * count))
    assert found.containers["app"].memory[:2] == pytest.approx((4e8, 0.0))


def test_memory_above_the_line_is_what_nineteen_of_twenty_do_not_exceed() -> None:
    rows = iter(range(10_000))
    found = fit(history(memory=lambda count, units: count * (4e8 + 1e6 * (next(rows) % 20))))
    above = found.containers["app"].memory_above
    line = found.containers["app"].memory
    assert line.per_replica + above == pytest.approx(4e8 + 18e6, rel=2e-3)
    nothing = fit(history(replicas=lambda row: 0))
    assert nothing.containers["app"].memory_above == 0
