"""A workload's patch that the cluster refuses: what can be written is written alone, what was refused waits, and
neither is repeated without need (DESIGN 8). The cluster is a fake that applies what it takes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from builders import build
from hvpa.api.hvpa.status import Axes
from hvpa.api.objects.read_models import Meta
from hvpa.api.values.quantity import parse_cpu
from hvpa.core import Decision, Objects
from hvpa.core.model import LAST_APPLIED, WorkloadPatch
from hvpa.reconcile.ports import Conflict, Refused, WriteError
from hvpa.reconcile.reconciler import ReconcileResult
from tests.unit.core.trajectory import jointly
from tests.unit.reconcile.fakes import FakeCluster, Harness

Rule = Callable[[Mapping[str, Any]], str]
"""Why a spec in a patch is refused; empty where it is taken."""


def taken(spec: Mapping[str, Any]) -> str:
    return ""


def all_refused(spec: Mapping[str, Any]) -> str:
    return "no right to patch deployments"


def large_requests(spec: Mapping[str, Any]) -> str:
    """Requests of more than a core are refused."""
    for container in spec.get("template", {}).get("spec", {}).get("containers", []):
        if parse_cpu(container["resources"]["requests"]["cpu"]) > 1000:
            return "policy 'small': at most a core"
    return ""


def many_replicas(spec: Mapping[str, Any]) -> str:
    """More than 4 replicas are refused."""
    return "policy 'few': at most 4" if spec.get("replicas", 0) > 4 else ""


@dataclass
class RuledCluster(FakeCluster):
    """Takes what its rule lets pass. `attempts` are the specs of all patches of the workload."""

    rule: Rule = taken
    attempts: list[Any] = field(default_factory=list)

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        spec = patch.body["spec"]
        self.attempts.append(spec)
        if why := self.rule(spec):  # type: ignore[arg-type]
            raise Refused(why)
        await super().patch_workload(hvpa, patch)
        assert self.one is not None
        status = self.one.hvpa.status
        self.one = build.apply(self.one, Decision(status=status, workload_patch=patch))


class RuledHarness(Harness):
    """A reconciler before a cluster with a rule; the HPA wants 7 of 3 replicas, the VPA 2 cores for each, weight 50."""

    def __init__(self, rule: Rule, objects: Objects | None = None) -> None:
        super().__init__(objects or wanting(7, "2"), cluster=RuledCluster)
        self.cluster.rule = rule

    def reconcile(self, **later: float) -> ReconcileResult:
        self.cluster.attempts.clear()
        return super().reconcile(**later)

    def want(self, replicas: int, cpu: str) -> None:
        """The HPA and the VPA want this from now on."""
        objects = wanting(replicas, cpu, self.replicas)
        self.change(hpas=objects.hpas, vpas=objects.vpas)

    @property
    def attempts(self) -> list[set[str]]:
        """Which parts of the spec were sent, patch by patch."""
        return [set(spec) for spec in self.cluster.attempts]

    @property
    def replicas(self) -> int:
        assert self.one.workload is not None
        return self.one.workload.spec.replicas

    @property
    def cpu(self) -> Any:
        assert self.one.workload is not None
        return self.one.workload.spec.template.spec.containers[0].resources.requests["cpu"]

    @property
    def ready(self) -> tuple[str, str]:
        return self.conditions()["Ready"]

    @property
    def axes(self) -> Axes:
        assert self.status.axes is not None
        return self.status.axes


def wanting(replicas: int, cpu: str, present: int = 3) -> Objects:
    ratio = 50 * replicas // present + 1 if replicas > present else 50
    hpa = build.hpa(desired=replicas, utilization=ratio, replicas=present)
    return build.objects(horizontal=hpa, vertical=build.vpa({"app": {"cpu": cpu}}))


BOTH, REPLICAS, REQUESTS = {"replicas", "template"}, {"replicas"}, {"template"}


def test_where_requests_are_refused_the_replicas_are_written_alone() -> None:
    harness = RuledHarness(large_requests)
    result = harness.reconcile()
    assert harness.attempts == [BOTH, REPLICAS]
    assert (harness.replicas, harness.cpu) == (5, "1")
    assert result.outcome == "done"
    assert result.wait is not None
    assert result.wait <= dt.timedelta(minutes=1)
    assert harness.ready == ("False", "Refused")
    assert harness.status.last_error is not None
    assert harness.status.last_error.description == "policy 'small': at most a core"
    assert {"ScaledOut", "Refused", "ScalingBlocked"} <= set(harness.events())
    assert ("applied", "horizontal", "up") in harness.telemetry.reports
    assert ("applied", "vertical", "up") not in harness.telemetry.reports
    assert ("write failed", "PatchWorkload", "failed") in harness.telemetry.reports
    [patch] = harness.written("workload")
    record = json.loads(patch.body["metadata"]["annotations"][LAST_APPLIED])
    assert record["vertical"] == {}


def test_while_requests_wait_replicas_go_on_without_sending_them_again() -> None:
    harness = RuledHarness(large_requests)
    harness.reconcile()
    for replicas in (9, 6, 8):
        harness.want(replicas, "2")
        harness.reconcile(seconds=10)
        assert harness.attempts in ([REPLICAS], []), "the requests are not sent"
    harness.want(harness.replicas, "2")
    for _ in range(3):
        harness.reconcile(seconds=1)
        assert harness.attempts == []
        assert harness.names("owned") == [], "at rest nothing is written"


def test_refused_requests_are_sent_again_at_growing_distances_and_follow_once_they_are_taken() -> None:
    harness = RuledHarness(large_requests)
    harness.reconcile()
    harness.want(harness.replicas, "2")
    for minutes in (1, 2, 4):
        assert harness.reconcile(minutes=minutes, seconds=-1).outcome == "done"
        assert harness.attempts == []
        harness.reconcile(seconds=1)
        assert harness.attempts == [REQUESTS]
        assert harness.ready == ("False", "Refused")
        assert "Refused" not in harness.events(), "reported once"
    harness.cluster.rule = taken
    harness.reconcile(minutes=8)
    assert harness.cpu == "1500m"
    assert harness.ready[0] == "True"
    assert harness.status.last_error is None
    assert "ScaledUp" in harness.events()


def test_a_recommendation_that_the_policy_allows_is_followed_at_once() -> None:
    harness = RuledHarness(large_requests)
    harness.reconcile()
    harness.want(harness.replicas, "800m")
    harness.reconcile(seconds=1)
    assert harness.attempts == []  # 900m is nearer than minChange
    harness.want(harness.replicas, "500m")
    harness.reconcile(seconds=1)
    assert harness.attempts == [REQUESTS]
    assert harness.cpu == "750m"


def test_where_replicas_are_refused_the_requests_are_written_alone() -> None:
    harness = RuledHarness(many_replicas)
    harness.reconcile()
    assert harness.attempts == [BOTH, REPLICAS, REQUESTS]
    assert (harness.replicas, harness.cpu) == (3, "1500m")
    [held] = harness.status.last_blocked_scaling
    assert (held.axis, held.reason, held.wanted) == ("horizontal", "Refused", "5")
    assert harness.status.last_error is not None
    assert harness.status.last_error.description == "policy 'few': at most 4"
    assert harness.axes.horizontal is not None
    assert harness.axes.horizontal.applied_from is None
    assert harness.axes.horizontal.last_scale_time is None
    harness.reconcile(seconds=10)
    assert harness.attempts == []
    harness.want(5, "2")  # so that 4 are set
    harness.reconcile(seconds=10)
    assert harness.attempts == [REPLICAS]
    assert harness.replicas == 4


def test_where_all_is_refused_each_axis_is_tried_once_and_all_waits() -> None:
    harness = RuledHarness(all_refused)
    assert harness.reconcile().outcome == "done"
    assert harness.attempts == [BOTH, REPLICAS, REQUESTS]
    assert {hold.axis for hold in harness.status.last_blocked_scaling} == {"horizontal", "vertical"}
    harness.reconcile(seconds=59)
    assert harness.attempts == []
    harness.cluster.rule = taken
    harness.reconcile(seconds=1)
    assert harness.attempts == [BOTH]
    assert (harness.replicas, harness.cpu, harness.ready[0]) == (5, "1500m", "True")


def test_after_a_restart_what_waits_still_waits() -> None:
    harness = RuledHarness(large_requests)
    harness.reconcile()
    harness.start()
    harness.reconcile(seconds=10)
    assert harness.attempts == []


def test_where_the_operator_ends_before_the_status_is_written_one_refused_write_is_repeated() -> None:
    harness = RuledHarness(large_requests)
    harness.cluster.failures["status"] = WriteError("the operator ends here")
    harness.reconcile()
    assert (harness.replicas, harness.cpu) == (5, "1")
    del harness.cluster.failures["status"]
    harness.start()
    harness.want(harness.replicas, "2")
    harness.reconcile(seconds=1)
    assert harness.attempts == [REQUESTS]
    assert harness.axes.horizontal is not None
    assert harness.axes.horizontal.last_scale_time == build.NOW, "by the annotation"
    harness.reconcile(seconds=1)
    assert harness.attempts == []


@pytest.mark.parametrize("other", [Conflict("changed"), WriteError("no answer in time")])
def test_a_failure_of_the_second_patch_is_one_like_any_other(other: WriteError) -> None:
    harness = RuledHarness(large_requests)

    def rule(spec: Mapping[str, Any]) -> str:
        if why := large_requests(spec):
            return why
        raise other

    harness.cluster.rule = rule
    expected = "conflict" if isinstance(other, Conflict) else "failed"
    assert harness.reconcile().outcome == expected
    assert harness.attempts == [BOTH, REPLICAS]


def test_however_often_a_refused_axis_is_solved_anew_the_patches_of_one_reconcile_have_an_end() -> None:
    """With `Trajectory`, an axis that is solved without the other one may want something else each time."""
    spec = {**jointly.JOINT, "vpa": {"scaleUp": {"minChange": {"cpu": {"value": "1m"}}}}}
    objects = build.objects(
        build.hvpa(spec),
        build.workload(replicas=3),
        jointly.hpa(3, jointly.utilization("cpu", 50, 150, "1500m")),
        build.vpa({"app": {"cpu": "2", "memory": "2Gi"}}),
    )
    harness = RuledHarness(all_refused, objects)
    assert harness.reconcile().outcome == "done"
    assert 3 <= len(harness.attempts) <= 6
    harness.reconcile(seconds=1)
    assert harness.attempts == []
