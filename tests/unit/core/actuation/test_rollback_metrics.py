"""Metrics of the service judge a trial (`spec.updateStrategy.canary.rollbackOnMetrics`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import NOW, at, container, decided, hvpa, merged, objects, vpa, workload
from hvpa.api.hvpa.progress import CanaryMetric
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.core.gates.verdict import metric_name, rollback_metrics, with_values
from hvpa.core.model import Decision, MetricValue
from tests.unit.core.actuation.sized_pods import canary, desired, rolled_back, running
from tests.unit.core.actuation.test_rollouts import SMALL as ROLLED_SMALL
from tests.unit.core.actuation.test_rollouts import TRIED, Rollout, begun, pods_of
from tests.unit.core.actuation.test_trial import LARGE, LARGER, SMALL, SPEC

P99: Final[dict[str, Any]] = {"external": {"metric": {"name": "p99"}}, "above": "500m"}
ERRORS: Final[dict[str, Any]] = {
    "object": {"metric": {"name": "errors"}, "describedObject": {"kind": "Service", "name": "web"}},
    "above": "0",
}
NO_ANSWER: Final = MetricValue(problem="HTTP 403")
TRIED_FOR: Final = 10
"""Minutes of the trial."""


def judged_by(*metrics: dict[str, Any]) -> dict[str, Any]:
    return {"updateStrategy": {"canary": {"rollbackOnMetrics": list(metrics)}}}


class Trial:
    """A size that the VPA wants is tried on the first two of four pods, which have it at once."""

    def __init__(self, memory: str = "500M", metrics: Sequence[dict[str, Any]] = (P99,)) -> None:
        self.manifest = hvpa(merged(SPEC, judged_by(*metrics)))
        self.recommended = vpa({"app": {"cpu": "1", "memory": memory}})
        self.size = {"500M": SMALL, "2G": LARGER}[memory]

    def decide(self, minutes: float, values: Sequence[MetricValue] | None, tried: bool = True) -> Decision:
        sizes = [self.size] * 2 + [LARGE] * 2 if tried else [LARGE] * 4
        pods = [running(f"web-{index}", size) for index, size in enumerate(sizes)]
        seen = objects(
            self.manifest, workload(4, [container(requests=LARGE)]), None, self.recommended, pods,
            canary_values=None if values is None else tuple(values),
        )  # fmt: skip
        decision = decided(seen, at(minutes=minutes))
        self.manifest = replace(self.manifest, status=decision.status)
        return decision

    @property
    def status(self) -> HvpaStatus:
        return self.manifest.status


def p99(value: str, minutes: float) -> MetricValue:
    return MetricValue(value, at(minutes=minutes))


def running_trial(memory: str = "500M", before: str = "200m") -> Trial:
    """The pods have had the new size since NOW; the metric had this value before."""
    trial = Trial(memory)
    trial.decide(-1, [p99(before, -1.5)], tried=False)
    trial.decide(0, [p99(before, -0.5)])
    return trial


def test_rollback_metrics_of_a_canary_are_recorded_during_the_trial_only() -> None:
    trial = Trial()
    first = trial.decide(-1, [p99("200m", -1.5)], tried=False)
    assert canary(first).pods == ("web-0", "web-1")
    expected = CanaryMetric(
        metric="External p99", above="500m", value="200m", time=at(minutes=-1.5), was_good=True
    )
    assert trial.status.canary_metrics == (expected,)
    assert [metric_name(metric) for metric in first.judged_by] == ["External p99"]
    trial.decide(0, [p99("210m", 0)])
    over = trial.decide(TRIED_FOR, [p99("220m", TRIED_FOR - 0.5)])
    assert desired(over).canary is None
    assert over.judged_by == ()
    assert not trial.status.canary_metrics


def test_rollback_metric_above_its_threshold_takes_the_size_back() -> None:
    trial = running_trial()
    decision = trial.decide(3, [p99("1", 2)])
    assert rolled_back(decision).message == "External p99 is 1, above 500m"
    assert desired(decision).containers[0].requests == {"memory": "1G"}
    assert (decision.judged_by, trial.status.canary_metrics) == ((), ())


@pytest.mark.parametrize(
    ("before", "then"),
    [("200m", p99("500m", 2)), ("200m", p99("1", -0.1)), ("2", p99("3", 2))],
    ids=["at the threshold", "measured before the pods had the size", "above before the trial"],
)
def test_rollback_metric_that_proves_nothing_takes_nothing_back(before: str, then: MetricValue) -> None:
    trial = running_trial(before=before)
    decision = trial.decide(3, [then])
    assert decision.status.rolled_back is None
    assert canary(decision).since == NOW


def test_rollback_metric_that_recovers_during_the_trial_counts_from_then_on() -> None:
    trial = running_trial(before="2")
    trial.decide(3, [p99("300m", 2)])
    assert rolled_back(trial.decide(4, [p99("600m", 3.5)])).message == "External p99 is 600m, above 500m"


@pytest.mark.parametrize(("memory", "is_back"), [("500M", True), ("2G", False)])
def test_rollback_metric_without_a_value_doubles_the_trial_and_only_raises_pass(
    memory: str, is_back: bool
) -> None:
    trial = running_trial(memory)
    trial.decide(5, [NO_ANSWER])
    assert trial.status.canary_metrics[0].message == "HTTP 403"
    longer = trial.decide(TRIED_FOR, [NO_ANSWER])
    assert canary(longer).since == NOW
    over = trial.decide(2 * TRIED_FOR, [NO_ANSWER])
    assert desired(over).canary is None
    assert (over.status.rolled_back is not None) == is_back
    if is_back:
        assert rolled_back(over).message == "no value by the end of the trial: External p99: HTTP 403"


def test_canary_gate_holds_other_changes_until_the_longer_trial_is_over() -> None:
    trial = running_trial()
    trial.recommended = vpa({"app": {"cpu": "2", "memory": "500M"}})
    for minutes, until in ((5, TRIED_FOR), (TRIED_FOR, 2 * TRIED_FOR)):
        (held,) = trial.decide(minutes, [NO_ANSWER]).blocked
        assert (held.reason, held.until) == ("Canary", at(minutes=until))


def test_rollback_metrics_were_read_before_a_restart_of_the_operator() -> None:
    """Nothing has been read since: the status has the values."""
    trial = running_trial()
    known = trial.status.canary_metrics
    assert trial.decide(1, None).status.canary_metrics == known
    assert rolled_back(trial.decide(2, [p99("1", 1.5)])).message == "External p99 is 1, above 500m"


def test_a_value_of_each_rollback_metric_is_needed() -> None:
    trial = Trial(metrics=(P99, ERRORS))
    trial.decide(-1, [p99("200m", -1.5), NO_ANSWER], tried=False)
    trial.decide(0, [p99("200m", -0.5), NO_ANSWER])
    trial.decide(TRIED_FOR, [p99("200m", TRIED_FOR - 1), NO_ANSWER])
    decision = trial.decide(2 * TRIED_FOR, [p99("200m", 2 * TRIED_FOR - 1), NO_ANSWER])
    assert (
        rolled_back(decision).message == "no value by the end of the trial: errors of Service web: HTTP 403"
    )


def test_rollback_metrics_need_a_canary() -> None:
    assert (
        rollback_metrics(
            hvpa(merged(merged(SPEC, judged_by(P99)), {"updateStrategy": {"canary": None}})).spec
        )
        == ()
    )
    assert rollback_metrics(None) == ()


# --- a rollout -------------------------------------------------------------------------------------------------------
ROLLED: Final = merged(TRIED, judged_by(P99))


def rolled_out(minutes: float, rollout: Rollout, value: MetricValue) -> Decision:
    rollout.seen = replace(rollout.seen, canary_values=(value,))
    return rollout.decide(at(minutes=minutes))


def test_rollback_metric_ends_a_rollout_on_its_first_pods() -> None:
    rollout = Rollout(ROLLED)
    first = rolled_out(0, rollout, p99("200m", -0.5))
    assert [metric_name(metric) for metric in first.judged_by] == ["External p99"]
    rollout.replaced(1)
    assert rolled_out(1, rollout, p99("200m", 0.5)).judged_by
    rollout.replaced(1)
    decision = rolled_out(3, rollout, p99("1", 2))
    assert rolled_back(decision).message == "External p99 is 1, above 500m"
    assert rollout.memory == "1G"
    assert decision.judged_by == ()


def test_rollback_metric_without_a_value_doubles_the_trial_of_a_rollout() -> None:
    rollout = Rollout(ROLLED)
    rolled_out(0, rollout, NO_ANSWER)
    rollout.replaced(1)
    held = rolled_out(TRIED_FOR + 1, rollout, NO_ANSWER)
    assert held.status.rollout is not None
    assert held.status.rollout.until == at(minutes=2 * TRIED_FOR)
    rollout.replaced(1)
    message = "no value by the end of the trial: External p99: HTTP 403"
    assert rolled_back(rolled_out(2 * TRIED_FOR, rollout, NO_ANSWER)).message == message


def test_rollback_metrics_wait_until_all_canary_pods_of_a_rollout_are_there() -> None:
    rollout = begun(ROLLED, updated=0)
    assert rolled_out(1, rollout, p99("1", 0.5)).status.rolled_back is None
    rollout.replaced(1, pods_of("Deployment", ROLLED_SMALL, LARGE, LARGE, LARGE))
    assert rolled_out(2, rollout, p99("200m", 1.5)).status.rolled_back is None


def test_rollback_of_a_rollout_that_was_refused_is_written_later() -> None:
    """The status has it already, and the metric is not judged again."""
    rollout = Rollout(ROLLED)
    rolled_out(0, rollout, p99("200m", -0.5))
    rollout.replaced(1)
    held = rollout.seen.workload
    rolled_out(3, rollout, p99("1", 2))
    rollout.seen = replace(rollout.seen, workload=held)
    again = rolled_out(TRIED_FOR + 2, rollout, p99("1", TRIED_FOR + 1))
    assert rolled_back(again).message == "External p99 is 1, above 500m"
    assert rollout.memory == "1G"


# --- what happens meanwhile ------------------------------------------------------------------------------------------
def test_rollback_metric_that_was_bad_before_the_pods_had_the_size_proves_nothing() -> None:
    """A load jump comes between the beginning of the trial and the resize."""
    trial = Trial("2G")
    trial.decide(-3, [p99("200m", -3.5)], tried=False)
    trial.decide(-1, [p99("1", -1.2)], tried=False)
    trial.decide(0, [p99("1", -0.2)])
    assert trial.decide(1, [p99("2", 0.8)]).status.rolled_back is None


@pytest.mark.parametrize(
    "meanwhile", [{"mode": "Paused"}, {"mode": "Recommend"}, {"targetRef": {"name": ""}}], ids=str
)
@pytest.mark.parametrize("paused", [3, TRIED_FOR + 1])
def test_rollback_metrics_of_a_trial_outlive_a_pause_and_a_spec_that_is_invalid(
    meanwhile: dict[str, Any], paused: float
) -> None:
    trial = running_trial()
    trial.decide(2, [p99("200m", 1.8)])
    usual = trial.manifest
    trial.manifest = replace(hvpa(merged(merged(SPEC, judged_by(P99)), meanwhile)), status=usual.status)
    trial.decide(paused, [p99("1", paused - 0.2)])
    trial.manifest = replace(usual, status=trial.status)
    trial.decide(paused + 0.1, [p99("1", paused)])
    assert trial.status.rolled_back is not None
    assert trial.status.rolled_back.message == "External p99 is 1, above 500m"


def test_rollback_metrics_are_awaited_after_a_restart_that_outlasts_the_trial() -> None:
    trial = running_trial()
    trial.decide(6, [p99("200m", 5.9)])
    late = trial.decide(2 * TRIED_FOR + 1, None)
    assert canary(late).since == NOW
    again = trial.decide(2 * TRIED_FOR + 1.1, [p99("200m", -0.2)])
    assert canary(again).since == NOW
    over = trial.decide(2 * TRIED_FOR + 1.2, [p99("200m", 2 * TRIED_FOR + 1.1)])
    assert desired(over).canary is None
    assert over.status.rolled_back is None


@pytest.mark.parametrize(
    "changed",
    [
        {
            "external": {"metric": {"name": "p99", "selector": {"matchLabels": {"app": "web"}}}},
            "above": "500m",
        },
        {**P99, "above": "100m"},
    ],
    ids=["selector", "threshold"],
)
def test_rollback_metric_with_another_selector_or_threshold_is_another(changed: dict[str, Any]) -> None:
    trial = running_trial()
    trial.decide(1, [p99("200m", 0.5)])
    trial.manifest = replace(hvpa(merged(SPEC, judged_by(changed))), status=trial.status)
    assert trial.decide(3, [p99("1", 2)]).status.rolled_back is None
    assert not trial.status.canary_metrics[0].was_good


def test_rollback_metrics_may_change_places() -> None:
    trial = running_trial()
    trial.manifest = replace(hvpa(merged(SPEC, judged_by(ERRORS, P99))), status=trial.status)
    decision = trial.decide(3, [p99("0", 2), p99("1", 2)])
    assert rolled_back(decision).message == "External p99 is 1, above 500m"


def test_rollback_metric_that_says_the_same_is_written_every_five_minutes() -> None:
    trial = running_trial()
    first = trial.decide(1, [p99("210m", 0.9)]).status
    assert trial.decide(3, [p99("220m", 2.9)]).status is first
    assert trial.decide(6, [p99("230m", 5.9)]).status.canary_metrics[0].value == "230m"


def test_rollback_metric_without_a_value_is_in_the_status_before_a_trial() -> None:
    trial = Trial("500M")
    trial.recommended = vpa({"app": {"cpu": "1", "memory": "1G"}})
    status = trial.decide(0, [NO_ANSWER], tried=False).status
    assert status.canary_metrics == (CanaryMetric(metric="External p99", above="500m", message="HTTP 403"),)
    assert trial.decide(1, [NO_ANSWER], tried=False).status is status
    assert not trial.decide(2, [p99("200m", 1.9)], tried=False).status.canary_metrics


# --- bad input -------------------------------------------------------------------------------------------------------
@given(
    st.lists(
        st.builds(
            MetricValue,
            value=st.sampled_from(["0", "-1", "1e9", "500m", "501m"]),
            time=st.none() | st.datetimes(timezones=st.just(dt.UTC)),
            problem=st.text(max_size=5),
        ),
        max_size=3,
    )
)
def test_any_values_of_rollback_metrics_are_recorded_or_ignored(values: list[MetricValue]) -> None:
    spec = hvpa(merged(SPEC, judged_by(P99, ERRORS))).spec
    assert spec is not None
    known = (
        CanaryMetric(metric="External p99", above="500m", value="1"),
        CanaryMetric(metric="another", above="500m", value="1"),
    )
    records = with_values(spec, known, values)
    assert [record.metric for record in records] == ["External p99", "errors of Service web"]
    for record, value in zip(records, values, strict=False):
        if value.time is not None:
            assert (record.value, record.time, record.message) == (value.value, value.time, "")
            assert (record.bad_since is None) == record.was_good
        else:
            assert record.message == value.problem or not value.problem
            assert record.message
    assert with_values(spec, known, None) == (
        known[0],
        CanaryMetric(metric="errors of Service web", above="0"),
    )
