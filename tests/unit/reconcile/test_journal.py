"""The log has one warning for each state in which action is needed, and one line when it is over."""

from __future__ import annotations

from structlog.testing import capture_logs

from builders import build
from hvpa.core.report.remedies import REMEDIES
from hvpa.reconcile.ports import Unavailable, WriteError
from tests.unit.reconcile.fakes import Harness, scaling_out


class Cycle(Harness):
    """A harness with what it logs of conditions."""

    def lines(self) -> list[tuple[str, str]]:
        """Level and text of what one reconcile logs of conditions."""
        with capture_logs() as logs:
            self.reconcile()
        return [(line["log_level"], line["event"]) for line in logs if "condition" in line]


def test_a_state_is_logged_once_with_its_remedy_and_once_when_it_is_over() -> None:
    harness = Cycle(build.settled(scaling_out()))
    assert harness.lines() == []
    workload = harness.one.workload
    harness.change(workload=None)
    gone = f"TargetNotFound: Deployment web does not exist. {REMEDIES['TargetNotFound']}."
    assert harness.lines() == [("warning", gone)]
    assert harness.lines() == [], "not at each reconcile"
    again = Cycle(harness.one)
    assert again.lines() == [], "nor by an operator that has just started"
    again.change(workload=workload)
    assert again.lines() == [("info", "TargetNotFound is over: Ready is False, VpaInactive")]
    assert again.lines() == []


def test_a_write_that_keeps_failing_is_logged_once() -> None:
    harness = Cycle(build.objects(vertical=build.vpa()), owned=WriteError("forbidden"))
    failed = f"WriteFailed: ChangeOwned: forbidden. {REMEDIES['WriteFailed']}."
    assert harness.lines() == [("warning", failed)]
    [event] = [event for event in harness.written("event") if event.reason == "WriteFailed"]
    assert event.message == failed.removeprefix("WriteFailed: ")
    assert harness.lines() == []
    del harness.cluster.failures["owned"]
    assert harness.lines() == [("info", "WriteFailed is over: Ready is False, HpaInactive")]


def test_conditions_that_begin_with_a_failed_write_have_their_events_once() -> None:
    objects = build.objects(
        build.hvpa({"vpa": {"deploy": False, "name": "gone"}}),
        horizontal=build.hpa(desired=6, utilization=100),
    )
    harness = Cycle(objects, workload=WriteError("denied"))

    def news() -> list[tuple[str, str, str]]:
        """The events of one reconcile, each of which is also a line of the log."""
        lines = [text for level, text in harness.lines() if level == "warning"]
        events = [(event.type, event.reason, event.message) for event in harness.written("event")]
        assert lines == [f"{reason}: {message}" for _, reason, message in events]
        return events

    write_failed = ("Warning", "WriteFailed", f"PatchWorkload: denied. {REMEDIES['WriteFailed']}.")
    gone = f"VerticalPodAutoscaler gone does not exist. {REMEDIES['VpaNotFound']}."
    assert news() == [write_failed, ("Warning", "VpaNotFound", gone)]
    assert news() == [], "no more than once"
    unsupported = {"conditions": [{"type": "ConfigUnsupported", "status": "True", "message": "two VPAs"}]}
    there = build.vpa(change={"metadata": {"name": "gone"}, "status": unsupported})
    harness.change(vpas=(there,))
    assert [reason for _, reason, _ in news()] == ["ConfigUnsupported"], "of what begins later, only that"
    assert harness.one.hvpa.status.conditions[0].reason == "WriteFailed"


def test_a_condition_s_event_is_not_lost_to_a_write_that_fails_later() -> None:
    objects = build.objects(build.hvpa({"vpa": {"deploy": False, "name": "gone"}}))  # its HPA is missing
    harness = Cycle(objects, owned=WriteError("forbidden"))
    assert ("warning", "VpaNotFound") in [(level, text.partition(":")[0]) for level, text in harness.lines()]
    assert "VpaNotFound" in [event.reason for event in harness.written("event")]


def test_what_a_status_can_t_say_is_a_warning_each_time() -> None:
    harness = Cycle(scaling_out(), status=Unavailable("no answer"))
    for _ in range(2):
        with capture_logs() as logs:
            harness.reconcile()
        assert ("warning", "write failed") in [(line["log_level"], line["event"]) for line in logs]


def test_a_step_is_logged_with_what_changed_and_why() -> None:
    harness = Harness(scaling_out())
    with capture_logs() as logs:
        harness.reconcile()
    [step] = [line for line in logs if line["event"] == "scaled"]
    assert step["step"].startswith("replicas 3 -> 6; HPA: cpu at 200 % of its target, using 6")
    assert build.decided(scaling_out()).events[0].message == step["step"]
