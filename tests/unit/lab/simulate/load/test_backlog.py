"""What waits is served later, and only what is too much is unmet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.load.backlog import Backlog
from hvpa_lab.simulate.model import Tick


def served(backlog: Backlog, load: float, most: float, length: float = 5.0) -> Tick:
    """A step of pods that do `most` units at once, of 10 millicores each."""
    offered = backlog.offer(load, length) * 10
    tick = Tick(
        offered, max(0.0, offered - most * 10), most * 10, min(offered, most * 10), 0, 0, 0, 1, 1, 0, 0
    )
    return backlog.step(tick, load, length)


def test_what_is_not_served_waits_and_what_is_beyond_the_bound_is_lost() -> None:
    backlog = Backlog(20.0, 10.0)
    assert served(backlog, 4, 4)[:2] == (40.0, 0.0)
    assert served(backlog, 10, 4)[:2] == (100.0, 0.0), "30 wait, of 200"
    assert served(backlog, 2, 4)[:2] == (20.0, 0.0), "30 and 10 less 20: 20 wait, of 40"
    assert served(backlog, 1, 4)[:4] == (10.0, 0.0, 40.0, 40.0), "5 wait"
    assert served(backlog, 1, 4)[3] == 20.0
    assert served(backlog, 0.1, 0)[:2] == (1.0, 0.0)
    assert served(backlog, 0, 0)[:2] == (0.0, 1.0), "nothing may wait: 0.5 of 10 are lost in 5 seconds"


def test_without_a_backlog_nothing_is_changed() -> None:
    for backlog in (Backlog(0.0, 10.0), Backlog(20.0, 0.0)):
        assert served(backlog, 10, 4)[:2] == (100.0, 60.0)
        assert backlog.offer(1, 5) == 1


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1))
def test_nothing_of_the_load_is_lost_unseen(steps: list[tuple[float, float]]) -> None:
    backlog, done, unmet, demand = Backlog(30.0, 10.0), 0.0, 0.0, 0.0
    for load, most in steps:
        tick = served(backlog, load, most)
        done, unmet, demand = done + tick.used_cpu, unmet + tick.unmet, demand + tick.demand
    waiting = backlog.offer(0, 5.0) * 10
    assert abs(done + unmet + waiting - demand) < 1e-6 * max(1.0, demand)
