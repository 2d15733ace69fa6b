"""What the status says about the fast signal: whether it works, why not, and how old it is."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from builders.build import NOW, at, condition, container, decided, hvpa, merged, objects, vpa, workload
from hvpa.api.hvpa.progress import FastSignalStatus
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.core.model import Decision, FastUsage
from tests.unit.core.actuation.sized_pods import running
from tests.unit.core.fast.pods import SIZE, SPEC


def deciding(
    usage: FastUsage | None,
    change: dict[str, Any] | None = None,
    status: HvpaStatus | None = None,
    now: dt.datetime = NOW,
) -> Decision:
    manifest = hvpa(merged(SPEC, change or {}))
    manifest = manifest if status is None else replace(manifest, status=status)
    target = workload(1, [container(requests=SIZE)])
    pods = [running("web-0", SIZE)]
    return decided(objects(manifest, target, None, vpa({"app": SIZE}), pods, usage=usage), now)


def found(decision: Decision) -> tuple[str, str]:
    of = condition(decision, "FastSignal")
    return of.status, of.reason


def shown(decision: Decision) -> FastSignalStatus:
    assert decision.status.fast_signal is not None
    return decision.status.fast_signal


def test_the_condition_says_whether_kubelets_report() -> None:
    silent = {"10.0.0.1": "HTTP 403"}
    for usage, expected in (
        (None, ("False", "SampleAwaited")),
        (FastUsage(nodes=1), ("False", "SampleAwaited")),
        (FastUsage(NOW, nodes=1), ("True", "Reporting")),
        (FastUsage(at(seconds=-59), nodes=1), ("True", "Reporting")),
        (FastUsage(at(seconds=-61), nodes=1), ("False", "SampleStale")),
        (FastUsage(NOW, nodes=2, silent=silent), ("False", "KubeletsSilent")),
    ):
        assert found(deciding(usage)) == expected


def test_the_message_names_a_kubelet_and_why_it_reports_nothing() -> None:
    silent = {"10.0.0.7": "HTTP 403", "10.0.0.2": "no answer within 5 s"}
    message = condition(deciding(FastUsage(NOW, nodes=3, silent=silent)), "FastSignal").message
    assert message == "the kubelets of 2 of 3 nodes report no usage; 10.0.0.2: no answer within 5 s"


def test_pods_that_are_replaced_have_no_fast_signal() -> None:
    assert found(deciding(None, {"updateStrategy": {"type": "Rollout"}})) == ("False", "NotInPlace")


@pytest.mark.parametrize(
    "change", [{"mode": "Paused"}, {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}]
)
def test_kubelets_are_not_polled_if_nothing_may_be_raised(change: dict[str, Any]) -> None:
    decision = deciding(None, change)
    of = condition(decision, "FastSignal")
    assert (of.status, of.reason) == ("False", "NothingRaised")
    assert decision.status.fast_signal is None


@pytest.mark.parametrize(
    ("minutes", "expected"), [(4, ("True", "Reporting")), (7, ("False", "SampleAwaited"))]
)
def test_the_next_process_keeps_the_condition_until_its_first_sample(
    minutes: int, expected: tuple[str, str]
) -> None:
    reported = deciding(FastUsage(NOW, nodes=1)).status
    later = deciding(FastUsage(nodes=1), status=reported, now=at(minutes=minutes))
    assert found(later) == expected
    if minutes == 4:
        assert later.status.fast_signal == reported.fast_signal


def test_a_target_that_is_not_scaled_has_none_either() -> None:
    lost = replace(objects(hvpa(SPEC)), workload=None)
    decision = decided(lost, NOW)
    assert found(decision) == ("False", "NotReady")
    assert decision.status.fast_signal is None


def test_without_the_field_nothing_is_said() -> None:
    decision = deciding(None, {"fastSignal": {"mode": "Off"}})
    assert "FastSignal" not in [of.type for of in decision.status.conditions]
    assert decision.status.fast_signal is None


def test_it_is_looked_at_again_when_the_sample_is_too_old() -> None:
    assert deciding(FastUsage(at(seconds=-40), nodes=1)).recheck_after == dt.timedelta(seconds=20)


def test_the_status_has_the_source_and_the_age_and_how_often_kubelets_sample() -> None:
    usage = FastUsage(NOW, nodes=3, silent={"10.0.0.1": "HTTP 403"}, sampling=14.6)
    assert shown(deciding(usage)) == FastSignalStatus(
        source="/metrics/resource", nodes=3, silent=1, sampling_seconds=15, last_sample_time=NOW
    )


def test_a_newer_sample_alone_is_written_every_five_minutes() -> None:
    first = deciding(FastUsage(NOW, nodes=1, sampling=15.0)).status
    known = shown(deciding(FastUsage(NOW, nodes=1, sampling=15.0)))
    for seconds, sampling, is_kept in ((299, 15.0, True), (299, 12.0, True), (301, 15.0, False)):
        now = at(seconds=seconds)
        later = shown(deciding(FastUsage(now, nodes=1, sampling=sampling), status=first, now=now))
        assert (later == known) == is_kept, (seconds, sampling)
    unknown = deciding(FastUsage(NOW, nodes=1)).status
    soon = deciding(FastUsage(at(seconds=9), nodes=1, sampling=15.0), status=unknown, now=at(seconds=9))
    assert shown(soon).sampling_seconds == 15
    more = deciding(FastUsage(at(seconds=9), nodes=2, sampling=15.0), status=first, now=at(seconds=9))
    assert shown(more).nodes == 2


def test_a_process_that_polls_no_kubelets_keeps_what_was_reported() -> None:
    for usage in (FastUsage(NOW, nodes=1), FastUsage(NOW, nodes=1, silent={"10.0.0.1": "HTTP 403"})):
        reported = deciding(usage).status
        kept = deciding(None, status=reported, now=at(seconds=200)).status
        assert (kept.conditions, kept.fast_signal) == (reported.conditions, reported.fast_signal)
