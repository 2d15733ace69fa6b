"""The examples that show one thing to the second: what they say happens, happens."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from hvpa.simulate.engine import simulate
from hvpa.simulate.model import PolicyResult
from hvpa.simulate.scenario.read import load_scenario

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


def run(example: str, policy: str, **changes: Any) -> PolicyResult:
    scenario = replace(load_scenario(EXAMPLES / example, seed=0), **changes)
    (found,) = [one for one in scenario.policies if one.name == policy]
    return simulate(scenario, found)


def counts(result: PolicyResult) -> list[tuple[float, int]]:
    """When the number of replicas changed (seconds, from the beginning of a step on), and to what."""
    series = result.series
    changes = [(0.0, series.replicas[0])]
    for index, count in enumerate(series.replicas):
        if count != changes[-1][1]:
            changes.append((index * series.step, count))
    return changes


def test_an_hpa_answers_eleven_seconds_of_load_in_three_steps() -> None:
    # 13:10:00 is 300 s after the start: 4 at 13:10:26, 8 at :41, 10 at :56; and down again minutes later.
    result = run("hpa-delay/scenario.yaml", "HPA alone")
    assert counts(result)[:4] == [(0, 2), (326, 4), (341, 8), (356, 10)]
    assert counts(result)[-1][1] == 2


def test_the_delay_of_that_hpa_is_reported_phase_by_phase() -> None:
    (rise,) = run("hpa-delay/scenario.yaml", "HPA alone").reactions
    assert (rise.start, rise.tolerance, rise.metric_age, rise.hpa_period, rise.gates) == (300, 0, 25, 1, 0)
    assert (rise.start_up, rise.total) == (2, 26)


def test_a_faster_behavior_takes_one_step() -> None:
    assert counts(run("hpa-delay/scenario.yaml", "HPA, in one step"))[:2] == [(0, 2), (326, 10)]


def test_an_hvpa_makes_the_first_step_and_not_those_that_nothing_calls_for() -> None:
    assert [count for _, count in counts(run("hpa-delay/scenario.yaml", "Hvpa, horizontal only"))] == [
        2,
        4,
        2,
    ]


def test_two_pods_with_values_above_the_target_become_three() -> None:
    found = counts(run("hpa-two-pods/both-measured.yaml", "HPA alone"))
    assert [count for _, count in found] == [2, 3]


def test_a_pod_without_a_value_keeps_the_count_at_two_until_it_has_one() -> None:
    # The load falls at 118 s. It is measured at 120 s, when the new pod is too young; at 180 s both are.
    assert counts(run("hpa-two-pods/one-missing.yaml", "HPA alone")) == [(0, 1), (115, 2), (235, 1)]


def test_a_pod_that_is_pinned_at_its_nodes_headroom_escalates_within_min_change_timeout() -> None:
    result = run("noisy-neighbour/scenario.yaml", "Hvpa, larger only")
    requests = result.series.requests["app", "cpu"]
    steps = [  # of the first of both pods
        i * result.series.step
        for i in range(1, len(requests))
        if requests[i] != requests[i - 1] and requests[i - 1] in (1000, 1737, 2677, 3666)
    ]
    hour, timeout, recommender = 3600, 15 * 60, 10 * 60
    assert hour + timeout < steps[0] < hour + timeout + recommender
    waits = [after - before for before, after in pairwise(steps)]
    # Each small step doubles the timeout; the last one is large enough not to wait.
    assert all(wait < 2**index * timeout + 2 * recommender for index, wait in enumerate(waits, 1))
    assert requests[-1] > 4000
    unmet = result.series.unmet
    assert max(unmet[-100:]) == 0 < max(unmet)


def test_a_leak_is_killed_where_nothing_makes_pods_larger_and_not_where_an_hvpa_does() -> None:
    alone, hvpa = (
        run("memory-leak/scenario.yaml", policy, duration=86400.0).totals
        for policy in ("HPA alone", "Hvpa, weight 50")
    )
    assert alone.ooms > 40
    assert hvpa.ooms < 10
