"""The writes of one reconcile where pods are resized in place."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from builders import build
from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.objects.read_models import Meta, Pod
from hvpa.api.values.quantity import parse_cpu
from hvpa.core.actuation.removal import CANNOT
from hvpa.core.model import DELETION_COST, PodResize
from hvpa.reconcile.ports import (
    Cluster,
    Conflict,
    NodeTooSmall,
    NotServed,
    Overloaded,
    Refused,
    ResizeFailures,
    Unavailable,
    WriteError,
)
from hvpa.reconcile.reconciler import REPORTED_AFTER, ReconcileResult
from tests.unit.core.trajectory.jointly import app, state, value
from tests.unit.reconcile.fakes import FakeCluster, Harness

OWNER = {"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "w", "controller": True}]}


class InPlace(Harness):
    """The VPA wants larger pods, and the HPA twice as many."""

    def __init__(self, replicas: int = 6, **failures: Exception) -> None:
        hvpa = build.hvpa({"replicas": replicas, "updateStrategy": {"type": "InPlace"}})
        pods = [build.pod(f"web-{number}", change={"metadata": OWNER}) for number in range(3)]
        vpa = build.vpa({"app": {"cpu": "4", "memory": "4G"}})
        super().__init__(build.objects(hvpa, None, build.hpa(6, 100), vpa, pods), **failures)

    def ready(self) -> tuple[str, str]:
        condition = self.status.conditions[0]
        return condition.reason, condition.message

    def resized(self) -> list[str]:
        """The pods that one reconcile resized."""
        return [resize.pod for resizes in self.written("resizes") for resize in resizes]


def test_what_was_decided_is_written_before_anything_is_acted_upon() -> None:
    harness = InPlace()
    assert harness.reconcile().outcome == "done"
    names = harness.names("event", "owned")
    assert names == ["status", "workload", "resizes"]
    (status,), (patch,), (resizes,) = (harness.written(name) for name in names)
    assert status["desired"]["replicas"] == patch.body["spec"]["replicas"]
    assert patch.is_scale
    assert [resize.pod for resize in resizes] == ["web-0", "web-1", "web-2"]


def test_before_a_memory_limit_falls_it_is_asked_what_is_used_once_a_minute() -> None:
    harness = InPlace()
    limits = {"cpu": "2", "memory": "2G"}
    spec = [build.container(requests={"cpu": "1", "memory": "1G"}, limits=limits)]
    pods = tuple(
        build.pod(f"web-{number}", containers=spec, change={"metadata": OWNER}) for number in range(3)
    )
    less = build.vpa({"app": {"cpu": "1", "memory": "400M"}})
    harness.change(workload=build.workload(3, spec), pods=pods, vpas=(less,))
    harness.cluster.memory = {("web-1", "app"): 1_900_000_000}
    harness.reconcile()
    (resizes,) = harness.written("resizes")
    assert {resize.pod: resize.lowers_limit for resize in resizes} == {
        "web-0": True,
        "web-1": False,
        "web-2": True,
    }
    assert harness.cluster.asked == ["app=web"]
    harness.reconcile(seconds=59)
    assert harness.cluster.asked == ["app=web"]
    harness.reconcile(seconds=1)
    assert harness.cluster.asked == ["app=web"] * 2
    harness.cluster.one = None
    harness.reconcile()


NAMES = ("app", "log")


def limited(limits: Mapping[str, str], refuses: str = "") -> Pod:
    """A pod whose containers have memory limits of 1G, and others by its spec, of which the kubelet refuses one."""
    requests = {"cpu": "1", "memory": "100M"}
    spec = [build.container(name, requests, {"cpu": "2", "memory": limits.get(name, "1G")}) for name in NAMES]
    has = {"requests": requests, "limits": {"cpu": "2", "memory": "1G"}}
    said = f'attempting to set container "{refuses}" memory limit (800000000) below current usage (950000000)'
    error = {"type": "PodResizeInProgress", "status": "True", "reason": "Error", "message": said}
    status = {
        "containerStatuses": [{"name": name, "resources": has} for name in NAMES],
        "conditions": [error] if refuses else [],
    }
    return build.pod("web-0", containers=spec, change={"metadata": OWNER, "status": status})


def test_a_memory_limit_that_a_kubelet_refuses_is_asked_for_again_after_a_while() -> None:
    """Twice as long after the second time; of one container another one does not wait for its turn."""
    harness = InPlace(1)
    size = {"requests": {"cpu": "1", "memory": "100M"}, "limits": {"cpu": "2", "memory": "500M"}}
    desired = {"replicas": 1, "since": build.stamp(build.NOW), "generation": 1}
    desired |= {"containers": [{"name": name, **size} for name in NAMES]}
    hvpa = build.hvpa({"replicas": 1, "updateStrategy": {"type": "InPlace"}}, {"desired": desired})
    template = [build.container(name, size["requests"], size["limits"]) for name in NAMES]
    harness.change(hvpa=hvpa, workload=build.workload(1, template), hpas=(), vpas=())

    def asked(pod: Pod, seconds: float) -> dict[str, str]:
        harness.cluster.writes.clear()
        harness.change(pods=(pod,))
        harness.reconcile(seconds=seconds)
        return {
            item["name"]: item["resources"]["limits"]["memory"]
            for resizes in harness.written("resizes")
            for resize in resizes
            for item in resize.body["spec"]["containers"]
        }

    both = dict.fromkeys(NAMES, "800M")
    at_rest = limited({})
    assert asked(at_rest, 0) == both
    assert asked(limited(both, "app"), 15) == dict.fromkeys(NAMES, "1G")
    assert asked(at_rest, 1) == {"log": "800M"}
    assert asked(limited({"log": "800M"}, "log"), 15) == {"log": "1G"}
    assert asked(at_rest, 119) == {}
    assert asked(at_rest, 1) == both


def test_a_limit_that_could_not_be_put_back_is_put_back_again() -> None:
    harness = InPlace(1)
    refused = limited({"app": "800M"}, "app")
    harness.change(pods=(refused,))
    harness.cluster.failures["resizes"] = Unavailable("no answer")
    harness.reconcile()
    harness.cluster.failures.clear()
    harness.cluster.writes.clear()
    harness.reconcile(seconds=1)
    assert harness.resized() == ["web-0"]


def test_while_memory_is_only_raised_its_use_is_not_asked_for() -> None:
    harness = InPlace()
    harness.reconcile()
    assert harness.cluster.asked == []


def test_the_size_of_new_pods_is_written_before_there_are_more_of_them() -> None:
    harness = InPlace()
    harness.change(creation_sizes=())
    harness.reconcile()
    names = harness.names("event", "owned")
    assert names == ["status", "creation_sizes", "workload", "resizes"]
    assert list(harness.written("creation_sizes")[0]) == ["Deployment.apps/web"]


def test_nothing_waits_for_the_size_of_new_pods() -> None:
    harness = InPlace(creation_sizes=WriteError("no such thing"))
    harness.change(creation_sizes=())
    assert harness.reconcile().outcome == "failed"
    assert len(harness.written("workload")) == len(harness.written("resizes")) == 1
    assert harness.ready() == ("WriteFailed", "WriteCreationSizes: no such thing")
    harness.cluster.failures.clear()
    assert harness.reconcile().outcome == "done"
    assert len(harness.written("creation_sizes")) == 1


def test_without_its_strategy_or_itself_an_hvpa_leaves_no_size_behind() -> None:
    harness = InPlace()
    objects = harness.one
    assert objects.hvpa.spec is not None
    sizes = (("Deployment.apps/web", "web"),)
    spec = objects.hvpa.spec.model_copy(update={"update_strategy": UpdateStrategy(type="Rollout")})
    harness.change(hvpa=replace(objects.hvpa, spec=spec), creation_sizes=sizes)
    harness.reconcile()
    assert harness.written("creation_sizes") == [{"Deployment.apps/web": None}]
    harness.cluster.one = None
    harness.cluster.failures["creation_sizes"] = WriteError("no such thing")
    assert harness.reconcile().outcome == "failed"
    harness.cluster.failures.clear()
    assert harness.reconcile().outcome == "gone"


WRITES = {name for name, member in vars(Cluster).items() if inspect.iscoroutinefunction(member)} - {
    "memory_in_use",
    "give_back",  # for an Hvpa that is gone
}
"""All writes of the port, so that another one is another case."""


class KilledError(BaseException):
    """In place of the end of the process: nothing handles it."""


class AllWrites(InPlace):
    """One reconcile makes each of the writes: new pods have no size yet, `spec.replicas` is beyond maxReplicas, and a
    pod has a deletion cost from an earlier spec."""

    def __init__(self) -> None:
        super().__init__(replicas=60)
        marked = build.pod("web-0", change={"metadata": {**OWNER, "annotations": {DELETION_COST: CANNOT}}})
        self.change(creation_sizes=(), pods=(marked, *self.one.pods[1:]))

    def dies(self, killed_at: str, *, is_written: bool) -> list[str]:
        """The process ends at a write, before or after it `is_written`, and there is another one; returns the names of
        what was written."""
        write = getattr(self.cluster, killed_at)

        async def last(*args: object) -> None:
            if is_written:
                await write(*args)
            raise KilledError

        setattr(self.cluster, killed_at, last)
        with pytest.raises(KilledError):
            self.reconcile()
        setattr(self.cluster, killed_at, write)
        self.start()
        return self.names()


@pytest.mark.parametrize("is_written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("killed_at", sorted(WRITES))
def test_killed_at_any_write_it_goes_on_from_there(killed_at: str, is_written: bool) -> None:
    whole, harness = AllWrites(), AllWrites()
    whole.reconcile()
    done = harness.dies(killed_at, is_written=is_written)
    harness.reconcile()
    for name in set(whole.names("event")):
        assert name in done or harness.written(name) == whole.written(name), name
    for each_harness in (whole, harness):
        each_harness.reconcile()
    assert harness.status == whole.status, "nothing was decided twice"


def test_what_the_api_server_refuses_is_decided_anew_at_once_and_not_asked_for_again() -> None:
    harness = InPlace(resizes=Refused("exceeded quota"))  # of the first pod
    assert harness.reconcile() == ReconcileResult("done", dt.timedelta(0))
    harness.cluster.failures.clear()
    harness.reconcile()
    assert harness.resized() == ["web-1", "web-2"]
    assert harness.ready() == ("PodsNotResized", "pod web-0: exceeded quota")
    harness.reconcile(seconds=59)
    assert harness.resized() == ["web-1", "web-2"]  # the fake resizes nothing
    harness.reconcile(seconds=2)
    assert harness.resized() == ["web-0", "web-1", "web-2"]


def test_a_refusal_is_forgotten_with_its_pod_and_with_the_hvpa() -> None:
    harness = InPlace(resizes=Refused("exceeded quota"))
    harness.reconcile()
    objects = harness.one
    harness.cluster.failures.clear()
    harness.change(pods=objects.pods[1:])
    harness.reconcile()
    assert harness.ready()[0] != "PodsNotResized"
    harness.cluster.one = objects
    harness.reconcile()
    assert len(harness.resized()) == 3
    harness.cluster.failures["resizes"] = Refused("exceeded quota")
    harness.reconcile()
    harness.cluster.one = None
    assert harness.reconcile() == ReconcileResult("gone")
    harness.cluster.one = objects
    harness.reconcile()
    assert len(harness.resized()) == 3


def test_each_refusal_of_the_same_doubles_the_wait() -> None:
    harness = InPlace(resizes=Refused("exceeded quota"))
    for minutes in (1, 2):  # the third takes the size back
        harness.cluster.failures["resizes"] = Refused("exceeded quota")
        harness.reconcile()
        harness.cluster.failures.clear()
        harness.reconcile(minutes=minutes, seconds=-1)
        assert "web-0" not in harness.resized()
        harness.clock.time += dt.timedelta(seconds=2)


def test_a_refusal_that_is_not_repeated_for_long_is_the_first_one_again() -> None:
    harness = InPlace(resizes=Refused("exceeded quota"))
    harness.reconcile()
    harness.reconcile(minutes=2)
    harness.cluster.failures.clear()
    harness.reconcile(seconds=59)
    assert "web-0" not in harness.resized()
    harness.reconcile(seconds=1)
    assert "web-0" in harness.resized()


class LimitRange(FakeCluster):
    """The API server refuses containers of more than 1200m."""

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        await super().resize_pods(hvpa, resizes)
        return [(resize, Refused("maximum cpu usage per Container is 1200m")) for resize in resizes]


def test_replicas_serve_where_a_limit_range_allows_no_larger_pods() -> None:
    """3 pods of 1667m are to serve 5 cores. The size is refused, asked for again after a minute, then after two, and
    then 5 pods of one core serve."""
    made = [app("1")]
    pods = [build.pod("web-0", containers=made, change={"metadata": OWNER})]
    readings, targets = [value("cpu", "1", "5")], {"app": {"cpu": "5"}}
    in_place = {"updateStrategy": {"type": "InPlace"}}
    harness = Harness(state(1, made, readings, targets, in_place, pods=pods), cluster=LimitRange)
    asked, result = [], ReconcileResult("done")
    for minutes in (0, 1, 2):
        harness.clock.time += dt.timedelta(minutes=minutes)
        for _ in range(5):
            result = harness.reconcile()
            sizes = [resize.body["spec"]["containers"][0] for resize in chain(*harness.written("resizes"))]
            asked += [size["resources"]["requests"]["cpu"] for size in sizes]
        assert not harness.written("resizes")
    assert asked == ["1667m"] * 3
    assert harness.status.rolled_back is not None
    assert harness.status.rolled_back.message == "pod web-0: maximum cpu usage per Container is 1200m"
    assert result.wait is not None
    harness.reconcile(seconds=result.wait.total_seconds())
    assert harness.status.desired is not None
    assert harness.status.desired.replicas == 5
    assert [container.requests for container in harness.status.desired.containers] == [{"cpu": "1"}]


class SmallNode(FakeCluster):
    """The node has 4 cores, and resizes beyond that are refused; the others are carried out."""

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        await super().resize_pods(hvpa, resizes)
        failures = []
        for resize in resizes:
            body: Any = resize.body
            requests = body["spec"]["containers"][0]["resources"]["requests"]
            if parse_cpu(requests.get("cpu", "1")) > 4000:
                message = (
                    "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000"
                )
                failures.append((resize, NodeTooSmall(f'pods "{resize.pod}" is forbidden: {message}')))
            else:
                had = {"cpu": "1", "memory": "1G"} | requests
                pod = build.pod(resize.pod, containers=[app(**had)], change={"metadata": OWNER})
                assert self.one is not None
                self.one = replace(self.one, pods=(pod,))
        return failures


def test_replicas_serve_at_once_where_the_node_is_too_small_and_memory_is_raised_all_the_same() -> None:
    """5 cores are called for, at weight 100 of one pod. Its node has 4: memory alone is asked for, then CPU alone,
    which is taken back, and 5 pods of one core serve. No time passes."""
    made = [app("1")]
    pods = [build.pod("web-0", containers=made, change={"metadata": OWNER})]
    readings, targets = [value("cpu", "1", "5")], {"app": {"cpu": "5", "memory": "2G"}}
    spec = {
        "updateStrategy": {"type": "InPlace"},
        "weightBasedScalingIntervals": [{"vpaWeight": 100, "lastReplicaCount": 1}],
    }
    harness = Harness(state(1, made, readings, targets, spec, pods=pods), cluster=SmallNode)
    asked, waits = [], []
    for _ in range(8):
        result = harness.reconcile()
        if harness.status.rolled_back is not None:
            waits.append(result.wait)
        sizes = [resize.body["spec"]["containers"][0] for resize in chain(*harness.written("resizes"))]
        asked += [size["resources"]["requests"] for size in sizes]
    assert asked == [{"cpu": "5", "memory": "2G"}, {"memory": "2G"}, {"cpu": "5"}]
    assert waits[0] == dt.timedelta(0), "nothing else would call for the decision about replicas"
    assert harness.status.rolled_back is not None
    assert [(change.resource, change.failed) for change in harness.status.rolled_back.changes] == [
        ("cpu", 5000)
    ]
    assert harness.status.desired is not None
    assert harness.status.desired.replicas == 5
    assert [container.requests for container in harness.status.desired.containers] == [
        {"cpu": "1", "memory": "2G"}
    ]


@pytest.mark.parametrize(
    ("error", "is_taken_back"), [(Refused("a quota"), True), (NotServed("no resizes"), False)]
)
def test_a_size_is_taken_back_where_another_one_may_do(error: Refused, is_taken_back: bool) -> None:
    harness = InPlace(resizes=error)
    for minutes in (1, 2, 4, 8):
        for _ in range(3):  # a pod each time
            harness.cluster.failures["resizes"] = error
            harness.reconcile()
        harness.clock.time += dt.timedelta(minutes=minutes, seconds=1)
    assert (harness.status.rolled_back is not None) == is_taken_back
    assert is_taken_back or harness.ready() == ("PodsNotResized", "pod web-0 (and 2 more pods): no resizes")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (WriteError("no such thing"), "failed"),
        (Conflict("another pod"), "conflict"),
        (Overloaded("busy", dt.timedelta(seconds=3)), "overloaded"),
    ],
)
def test_other_failures_are_tried_again(error: Exception, outcome: str) -> None:
    harness = InPlace(resizes=error)
    assert harness.reconcile().outcome == outcome
    harness.cluster.failures.clear()
    assert harness.reconcile().outcome == "done"
    assert len(harness.resized()) == 3


def test_an_error_is_taken_back_only_when_the_writes_have_got_through() -> None:
    harness = InPlace(resizes=WriteError("no such thing"))
    harness.reconcile()
    assert harness.ready() == ("WriteFailed", "ResizePods: no such thing")
    for _ in range(2):
        harness.reconcile()
        assert harness.ready()[0] == "WriteFailed"
    assert not harness.written("status")  # nothing flaps
    harness.cluster.failures.clear()
    harness.reconcile()
    assert harness.ready()[0] != "WriteFailed"


def test_a_workload_that_can_not_be_scaled_is_reported() -> None:
    harness = InPlace(workload=Unavailable("no response"))
    for _ in range(REPORTED_AFTER):
        assert harness.reconcile().outcome == "failed"
        assert not harness.written("resizes")
    assert harness.ready() == ("WriteFailed", "PatchWorkload: no response")
