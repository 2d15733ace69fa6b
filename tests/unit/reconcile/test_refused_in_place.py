"""What the API server refuses where pods are resized in place: the other axis goes on, and nothing that was refused is
reported as done (docs/decisions/0061)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import structlog.testing
from msgspec import structs

from builders import build
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Meta
from hvpa.core.model import PodResize, WorkloadPatch
from hvpa.reconcile.ports import Conflict, Refused, ResizeFailures, Unavailable, WriteError
from hvpa.reconcile.reconciler import MOST_PATCHES, ReconcileResult
from tests.unit.core.actuation.test_undo import STEP, after_step, large
from tests.unit.core.actuation.test_undo import status as stepped
from tests.unit.reconcile.fakes import FakeCluster, Harness
from tests.unit.reconcile.test_in_place import OWNER

FEW = "policy 'few': at most 4"
WEBHOOK = "webhook 'few' refuses it"


@dataclass
class ScaledCluster(FakeCluster):
    """A cluster that scales workloads and refuses more than `most` replicas, resizes as `refuses_resizes` says, and
    templates as `refuses_templates` says. `is_blind`: a dry run finds nothing of it."""

    most: int = 100
    is_blind: bool = False
    refuses_resizes: Callable[[PodResize], bool] = lambda resize: False
    refusal: WriteError = field(default_factory=lambda: Refused("exceeded quota"))
    refuses_templates: bool = False
    checks: list[WorkloadPatch] = field(default_factory=list)
    statuses: list[HvpaStatus] = field(default_factory=list)

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        self.checks.append(patch)
        await super().check_workload_patch(hvpa, patch)
        if not self.is_blind:
            self._judge(patch)

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        await super().patch_workload(hvpa, patch)
        self._judge(patch)
        count = spec_of(patch).get("replicas")
        if count is not None:
            self.scaled_to(count)

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        await super().patch_status(hvpa, patch, status)
        self.statuses.append(status)

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        await super().resize_pods(hvpa, resizes)
        return [(resize, self.refusal) for resize in resizes if self.refuses_resizes(resize)]

    def scaled_to(self, count: int) -> None:
        assert self.one is not None
        assert self.one.workload is not None
        old = self.one.workload
        metadata = structs.replace(old.metadata, generation=old.metadata.generation + 1)
        spec = structs.replace(old.spec, replicas=count)
        self.one = replace(self.one, workload=structs.replace(old, metadata=metadata, spec=spec))

    def _judge(self, patch: WorkloadPatch) -> None:
        if spec_of(patch).get("replicas", 0) > self.most:
            raise Refused(WEBHOOK if self.is_blind else FEW)
        if self.refuses_templates and "template" in spec_of(patch):
            raise Refused("no right to patch deployments")


def spec_of(patch: WorkloadPatch) -> Mapping[str, Any]:
    spec: Any = patch.body["spec"]
    return spec  # type: ignore[no-any-return]


class InPlace(Harness):
    """3 pods of 1 core; the HPA wants 6 and weight 50 makes 5 of it; the VPA wants `cpu` for each pod."""

    def __init__(self, cpu: str = "4", kind: str = "InPlace", most: int = 4, **failures: Exception) -> None:
        hvpa = build.hvpa({"replicas": 6, "updateStrategy": {"type": kind}})
        pods = [build.pod(f"web-{number}", change={"metadata": OWNER}) for number in range(3)]
        vpa = build.vpa({"app": {"cpu": cpu}})
        objects = build.objects(hvpa, None, build.hpa(6, 100), vpa, pods)
        super().__init__(objects, cluster=ScaledCluster, **failures)
        self.cluster.most = most
        self.lines: list[Any] = []

    def reconcile(self, **later: float) -> ReconcileResult:
        self.cluster.statuses.clear()
        self.cluster.checks.clear()
        with structlog.testing.capture_logs() as lines:
            result = super().reconcile(**later)
        self.lines = list(lines)
        return result

    def steps(self) -> list[str]:
        """The steps that the log reports."""
        return [line["step"] for line in self.lines if line["event"] == "scaled"]

    def applied(self) -> set[str]:
        return {report[1] for report in self.telemetry.reports if report[0] == "applied"}

    @property
    def replicas(self) -> int:
        assert self.one.workload is not None
        return self.one.workload.spec.replicas

    def last_counts(self) -> tuple[int | None, int | None] | None:
        """The replicas of `status.lastScaling`."""
        last = self.status.last_scaling
        if last is None or last.hpa_status is None:
            return None
        return last.hpa_status.current_replicas, last.hpa_status.desired_replicas

    def message(self) -> str:
        return next(condition.message for condition in self.status.conditions if condition.type == "Ready")


def names_more_than_three(status: HvpaStatus) -> bool:
    last = status.last_scaling
    in_last = last is not None and last.hpa_status is not None and last.hpa_status.desired_replicas != 3
    return in_last or (status.desired is not None and status.desired.replicas != 3)


@pytest.mark.parametrize("most", [3, 4])
def test_where_replicas_are_refused_pods_are_resized_and_nothing_says_that_it_was_scaled_out(
    most: int,
) -> None:
    harness = InPlace(most=most)
    assert harness.reconcile().outcome == "done"
    assert [len(resizes) for resizes in harness.written("resizes")] == [3]
    assert (harness.replicas, harness.written("workload")) == (3, [])
    assert harness.conditions()["Ready"] == ("False", "Refused")
    assert harness.conditions()["ScalingBlocked"] == ("True", "Refused")
    assert FEW in harness.message()
    assert not any(map(names_more_than_three, harness.cluster.statuses)), "not for an instant"
    [held] = harness.status.last_blocked_scaling
    assert (held.axis, held.reason, held.current, held.wanted) == ("horizontal", "Refused", "3", "5")
    assert harness.status.last_error is not None
    assert harness.status.last_error.description == FEW
    [step] = harness.steps()
    assert "cpu 1 -> 2500m" in step
    assert "replicas" not in step
    assert "Refused" in harness.events()
    assert "ScaledUp" in harness.events()
    assert not {"ScaledOut", "Scaled", "WriteFailed"} & set(harness.events())
    assert harness.applied() == {"vertical"}
    assert ("write failed", "PatchWorkload", "failed") in harness.telemetry.reports


def test_while_refused_replicas_wait_nothing_is_sent_and_each_try_leaves_the_status_as_it_was() -> None:
    harness = InPlace()
    harness.reconcile()
    for minutes in (1, 2, 4):
        harness.reconcile(minutes=minutes, seconds=-1)
        assert harness.cluster.checks == []
        harness.reconcile(seconds=1)
        assert len(harness.cluster.checks) == 1
        assert not any(map(names_more_than_three, harness.cluster.statuses))
        assert harness.conditions()["Ready"] == ("False", "Refused")
        assert not {"Refused", "ScalingUnblocked"} & set(harness.events()), "reported once"
    assert harness.applied() == {"vertical"}


def test_once_they_are_taken_replicas_follow_and_are_reported() -> None:
    harness = InPlace()
    harness.reconcile()
    harness.cluster.most = 9
    harness.reconcile(minutes=1)
    assert harness.replicas == 5
    assert harness.last_counts() == (3, 5)
    assert harness.status.last_error is None
    assert harness.conditions()["Ready"][1] != "Refused"
    assert "ScaledOut" in harness.events()
    assert ["replicas 3 -> 5" in step for step in harness.steps()] == [True]
    assert harness.applied() == {"horizontal", "vertical"}


def test_after_a_restart_refused_replicas_still_wait() -> None:
    harness = InPlace()
    harness.reconcile()
    harness.start()
    harness.reconcile(seconds=10)
    assert harness.cluster.checks == []


def test_what_is_refused_although_a_dry_run_was_not_is_taken_back_at_once() -> None:
    harness = InPlace()
    harness.cluster.is_blind = True
    assert harness.reconcile().outcome == "done"
    assert harness.conditions()["Ready"] == ("False", "Refused")
    assert not names_more_than_three(harness.status)
    assert harness.status.axes is not None
    assert harness.status.axes.horizontal is not None
    assert harness.status.axes.horizontal.last_scale_time is None
    assert harness.status.axes.horizontal.applied_from is None
    assert [len(resizes) for resizes in harness.written("resizes")] == [3]
    assert (harness.applied(), harness.last_counts()) == ({"vertical"}, (3, 3))
    assert "ScaledOut" not in harness.events()


@pytest.mark.parametrize("cpu", ["1", "4"])
def test_replicas_that_an_earlier_try_left_to_be_written_are_taken_back_when_they_are_refused(
    cpu: str,
) -> None:
    """The response to the write was lost, and when it is sent again there is a policy."""
    harness = InPlace(cpu, workload=Unavailable("no response"))
    harness.cluster.most = 9
    assert harness.reconcile().outcome == "failed"
    assert harness.status.desired is not None
    assert (harness.status.desired.replicas, harness.applied()) == (5, set())
    harness.cluster.failures.clear()
    harness.cluster.most = 4
    harness.reconcile(seconds=1)
    assert harness.conditions()["Ready"] == ("False", "Refused")
    assert harness.status.desired.replicas == 3
    assert harness.last_counts() in (None, (3, 3))
    assert harness.conditions()["Contested"][0] == "False"
    assert "horizontal" not in harness.applied()
    harness.reconcile(seconds=10)
    assert (harness.cluster.checks, harness.conditions()["Ready"]) == ([], ("False", "Refused"))


@pytest.mark.parametrize("error", [Conflict("another version"), Unavailable("no response"), WriteError("?")])
def test_a_step_that_needs_several_tries_is_reported_once_when_it_is_done(error: WriteError) -> None:
    harness = InPlace(most=9, workload=error)
    harness.reconcile()
    assert (harness.steps(), harness.applied()) == ([], set())
    assert not {"ScaledOut", "Scaled"} & set(harness.events())
    harness.cluster.failures.clear()
    harness.reconcile()
    assert harness.applied() == {"horizontal", "vertical"}
    [step] = harness.steps()
    assert "replicas 3 -> 5, cpu 1 -> 2500m of app" in step
    assert harness.events().count("Scaled") == 2, "on the Hvpa and on its workload"
    assert harness.last_counts() == (3, 5)
    harness.reconcile()
    assert harness.steps() == []


def test_a_step_that_another_client_makes_superfluous_is_not_reported() -> None:
    harness = InPlace(cpu="1", most=9, workload=Unavailable("no response"))
    harness.reconcile()
    harness.cluster.failures.clear()
    harness.cluster.scaled_to(4)
    harness.change(hpas=(build.hpa(4, 50, replicas=4),))
    harness.reconcile(seconds=1)
    assert (harness.steps(), harness.applied()) == ([], set())


def test_where_all_resizes_are_refused_the_replicas_alone_are_reported() -> None:
    harness = InPlace(most=9)
    harness.cluster.refuses_resizes = lambda resize: True
    assert harness.reconcile() == ReconcileResult("done", dt.timedelta(0))
    assert harness.applied() == {"horizontal"}
    [step] = harness.steps()
    assert "cpu" not in step.partition(";")[0]
    assert "ScaledOut" in harness.events()
    assert harness.status.last_scaling is not None
    assert (harness.last_counts(), harness.status.last_scaling.vpa_status) == ((3, 5), None)


def test_where_nothing_is_taken_no_step_is_reported() -> None:
    harness = InPlace(most=3)
    harness.cluster.refuses_resizes = lambda resize: True
    harness.reconcile()
    assert (harness.steps(), harness.applied(), harness.status.last_scaling) == ([], set(), None)
    assert "Refused" in harness.events()
    harness.reconcile()
    assert harness.conditions()["Ready"] == ("False", "Refused")
    assert "PodsNotResized" in harness.message() or "exceeded quota" in harness.message()


def test_a_resize_that_one_pod_is_refused_is_a_step_of_the_others() -> None:
    harness = InPlace(most=9)
    harness.cluster.refuses_resizes = lambda resize: resize.pod == "web-1"
    harness.reconcile()
    assert harness.applied() == {"horizontal", "vertical"}
    assert "Scaled" in harness.events()


def test_resizes_that_fail_once_are_reported_when_they_are_taken() -> None:
    harness = InPlace(most=9)
    harness.cluster.refuses_resizes, harness.cluster.refusal = lambda resize: True, Unavailable("no response")
    assert harness.reconcile().outcome == "failed"
    assert harness.applied() == {"horizontal"}
    assert "ScaledOut" in harness.events()
    harness.cluster.refuses_resizes = lambda resize: False
    harness.reconcile(seconds=1)
    assert harness.applied() == {"horizontal", "vertical"}
    assert "ScaledUp" in harness.events()


class Stuck(InPlace):
    """Pods that can't be resized, so that they are replaced: the API server has no resizes."""

    def __init__(self) -> None:
        super().__init__(kind="InPlaceOrRollout", most=4)
        self.cluster.refuses_resizes = lambda resize: True
        self.cluster.refuses_templates = True


def test_where_the_template_is_refused_for_pods_that_can_not_be_resized_it_is_reported_and_waits() -> None:
    harness = Stuck()
    harness.reconcile()
    assert harness.reconcile().outcome == "done"
    assert ["template" in spec_of(patch) for patch in harness.cluster.checks] == [True]
    assert harness.conditions()["Ready"] == ("False", "Refused")
    assert "no right to patch deployments" in harness.message()
    assert {hold.reason for hold in harness.status.last_blocked_scaling} == {"Refused"}
    harness.reconcile(seconds=10)
    assert harness.cluster.checks == []
    harness.cluster.refuses_templates = False
    harness.cluster.refuses_resizes = lambda resize: False
    harness.reconcile(minutes=1)
    assert ["template" in spec_of(patch) for patch in harness.written("workload")] == [True]


def test_a_patch_that_is_refused_whatever_is_decided_ends_the_reconcile_with_the_error() -> None:
    harness = InPlace(most=9)

    async def refuse(hvpa: Meta, patch: WorkloadPatch) -> None:
        harness.cluster.checks.append(patch)
        raise Refused("never")

    harness.cluster.check_workload_patch = refuse
    harness.reconcile()
    assert len(harness.cluster.checks) <= MOST_PATCHES
    assert harness.conditions()["Ready"] == ("False", "Refused")


@pytest.mark.parametrize("error", [Conflict("another version"), Unavailable("the webhook does not answer")])
def test_a_check_that_gets_no_answer_changes_nothing(error: WriteError) -> None:
    harness = InPlace(most=9, check=error)
    harness.reconcile()
    assert harness.names("event") == []
    assert (harness.status.desired, harness.applied()) == (None, set())
    harness.cluster.failures.clear()
    harness.reconcile()
    assert (harness.replicas, harness.last_counts()) == (5, (3, 5))


def test_a_check_that_gets_no_answer_for_long_is_reported_beside_what_was_decided() -> None:
    harness = InPlace(most=9, check=Unavailable("the webhook does not answer"))
    for _ in range(3):
        harness.reconcile(seconds=1)
    assert harness.conditions()["Ready"] == ("False", "WriteFailed")
    assert harness.conditions()["HpaActive"][0] == "True"
    assert (harness.status.desired, harness.status.last_scaling) == (None, None)
    assert harness.status.axes is None


@pytest.mark.parametrize("is_blind", [False, True])
def test_replicas_that_are_refused_do_not_hold_up_hvpa_undo(is_blind: bool) -> None:
    """The step made two large pods of four small ones; a quota allows no more than two now."""
    harness = Harness(after_step(large("web-1", "web-2"), stepped(2, before=4)), cluster=ScaledCluster)
    harness.cluster.most, harness.cluster.is_blind = 2, is_blind
    assert harness.reconcile().outcome == "done"
    assert [resize.pod for resize in harness.written("resizes")[0]] == ["web-1", "web-2"]
    assert harness.status.desired is not None
    assert harness.status.desired.replicas == 2
    assert harness.events().count("Undone") == 1


def test_hvpa_undo_knows_the_size_before_a_step_whose_resizes_were_refused_at_first() -> None:
    """Otherwise it would go two steps back, or none."""
    spec = {
        "hpa": {"deploy": False},
        "updateStrategy": {"type": "InPlace"},
        "weightBasedScalingIntervals": [{"vpaWeight": 100}],
    }
    known = stepped(1, 1, previousSize={"restored": STEP}, desired={"replicas": 1})
    objects = build.objects(
        build.hvpa(spec, known),
        build.workload(1),
        None,
        build.vpa({"app": {"cpu": "4", "memory": "4Gi"}}),
        large("web-1"),
    )
    harness = Harness(objects, resizes=Refused("exceeded quota"))
    harness.reconcile(hours=3)
    previous = harness.status.previous_size
    assert previous is not None
    assert (previous.time, previous.restored) == (harness.clock.time, None)
    assert [one.requests["cpu"] for one in previous.containers] == ["2"]
    harness.cluster.failures.clear()
    harness.reconcile(minutes=3)
    assert harness.written("resizes")
    assert harness.status.previous_size == previous


def test_replicas_come_back_although_somebody_changes_the_workload_at_the_same_moment() -> None:
    """As when Git takes back the image and the size in one commit."""
    inputs = after_step(large("web-1", "web-2"), stepped(2, before=4))
    harness = Harness(inputs, cluster=ScaledCluster, workload=Conflict("another version"))
    assert harness.reconcile().outcome == "conflict"
    harness.cluster.failures.clear()
    harness.change(workload=build.workload(2, change={"metadata": {"generation": 2}}))
    harness.reconcile(seconds=1)
    assert [spec_of(patch) for patch in harness.written("workload")] == [{"replicas": 4}]
    assert harness.written("resizes") == []
    assert harness.events().count("Undone") == 1
