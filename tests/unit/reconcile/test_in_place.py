"""The writes of one reconcile where pods are resized in place."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.objects.read_models import CreationSize
from hvpa.core import Settings
from hvpa.reconcile.ports import Conflict, NotServed, Overloaded, Refused, Unavailable, WriteError
from hvpa.reconcile.reconciler import REPORTED_AFTER, Reconciler, Result
from tests.unit.reconcile.fakes import FakeClock, FakeCluster, FakeTelemetry, drive
from tests.unit.reconcile.test_reconciler import KEY

OWNER = {"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "w", "controller": True}]}


class World:
    """A reconciler around fakes: the VPA wants larger pods, and the HPA twice as many."""

    def __init__(self, **failures: Exception) -> None:
        one = build.hvpa({"replicas": 6, "updateStrategy": {"type": "InPlace"}})
        pods = [build.pod(f"web-{number}", change={"metadata": OWNER}) for number in range(3)]
        vpa = build.vpa({"app": {"cpu": "4", "memory": "4G"}})
        self.cluster = FakeCluster(build.objects(one, None, build.hpa(6, 100), vpa, pods), dict(failures))
        self.cluster.keeps = True
        self.clock = FakeClock()
        self.reconciler = Reconciler(self.cluster, self.clock, Settings(), FakeTelemetry())

    def reconcile(self) -> Result:
        self.cluster.writes.clear()
        return drive(self.reconciler.reconcile(KEY))

    def written(self, name: str) -> list[Any]:
        return [what for kind, what in self.cluster.writes if kind == name]

    def ready(self) -> tuple[str, str]:
        assert self.cluster.one is not None
        (found,) = [one for one in self.cluster.one.hvpa.status.conditions if one.type == "Ready"]
        return found.reason, found.message


def test_what_was_decided_is_written_before_anything_is_acted_upon() -> None:
    world = World()
    assert world.reconcile().outcome == "done"
    names = [name for name in world.cluster.names() if name not in ("event", "owned")]
    assert names == ["status", "workload", "resizes"]
    (status,), (patch,), (resizes,) = (world.written(name) for name in names)
    assert status["desired"]["replicas"] == patch.body["spec"]["replicas"]
    assert patch.is_scale
    assert [one.pod for one in resizes] == ["web-0", "web-1", "web-2"]


def test_before_a_memory_limit_falls_it_is_asked_what_is_used_once_a_minute() -> None:
    world = World()
    assert world.cluster.one is not None
    limits = {"cpu": "2", "memory": "2G"}
    spec = [build.container(requests={"cpu": "1", "memory": "1G"}, limits=limits)]
    pods = tuple(
        build.pod(f"web-{number}", containers=spec, change={"metadata": OWNER}) for number in range(3)
    )
    less = build.vpa({"app": {"cpu": "1", "memory": "400M"}})
    world.cluster.one = replace(world.cluster.one, workload=build.workload(3, spec), pods=pods, vpas=(less,))
    world.cluster.memory = {("web-1", "app"): 1_900_000_000}
    world.reconcile()
    (resizes,) = world.written("resizes")
    assert {one.pod: one.lowers_limit for one in resizes} == {"web-0": True, "web-1": False, "web-2": True}
    assert world.cluster.asked == ["app=web"]
    world.clock.time += dt.timedelta(seconds=59)
    world.reconcile()
    assert world.cluster.asked == ["app=web"]
    world.clock.time += dt.timedelta(seconds=1)
    world.reconcile()
    assert world.cluster.asked == ["app=web"] * 2
    world.cluster.one = None
    world.reconcile()


def test_while_memory_is_only_raised_nobody_asks_what_is_used() -> None:
    world = World()
    world.reconcile()
    assert world.cluster.asked == []


def test_the_size_of_new_pods_is_written_before_there_are_more_of_them() -> None:
    world = World()
    assert world.cluster.one is not None
    world.cluster.one = replace(world.cluster.one, creation_sizes=())
    world.reconcile()
    names = [name for name in world.cluster.names() if name not in ("event", "owned")]
    assert names == ["status", "creation_sizes", "workload", "resizes"]
    assert list(world.written("creation_sizes")[0]) == ["Deployment.apps/web"]


def test_nothing_waits_for_the_size_of_new_pods() -> None:
    world = World(creation_sizes=WriteError("no such thing"))
    assert world.cluster.one is not None
    world.cluster.one = replace(world.cluster.one, creation_sizes=())
    assert world.reconcile().outcome == "failed"
    assert len(world.written("workload")) == len(world.written("resizes")) == 1
    assert world.ready() == ("WriteFailed", "WriteCreationSizes: no such thing")
    world.cluster.failures.clear()
    assert world.reconcile().outcome == "done"
    assert len(world.written("creation_sizes")) == 1


def test_without_its_strategy_or_itself_an_hvpa_leaves_no_size_behind() -> None:
    world = World()
    one = world.cluster.one
    assert one is not None
    assert one.hvpa.spec is not None
    sizes = (("Deployment.apps/web", CreationSize("web")),)
    spec = one.hvpa.spec.model_copy(update={"update_strategy": UpdateStrategy(type="Rollout")})
    world.cluster.one = replace(one, hvpa=replace(one.hvpa, spec=spec), creation_sizes=sizes)
    world.reconcile()
    assert world.written("creation_sizes") == [{"Deployment.apps/web": None}]
    world.cluster.one = None
    world.cluster.failures["creation_sizes"] = WriteError("no such thing")
    assert world.reconcile().outcome == "failed"
    world.cluster.failures.clear()
    assert world.reconcile().outcome == "gone"


@pytest.mark.parametrize("killed_at", ["status", "workload", "resizes"])
def test_killed_at_any_write_it_goes_on_from_there(killed_at: str) -> None:
    whole = World()
    whole.reconcile()
    world = World()
    world.cluster.failures[killed_at] = Unavailable("no response")
    world.reconcile()
    done = set(world.cluster.names())
    world.cluster.failures.clear()
    world.reconciler = Reconciler(world.cluster, world.clock, Settings(), FakeTelemetry())  # another process
    world.reconcile()
    assert done | set(world.cluster.names()) >= {"status", "workload", "resizes"}
    for name in ("workload", "resizes"):
        if killed_at != "resizes" or name == "resizes":
            assert world.written(name) == whole.written(name)


def test_what_the_api_server_refuses_is_decided_anew_at_once_and_not_asked_for_again() -> None:
    world = World(resizes=Refused("exceeded quota"))  # of the first pod
    assert world.reconcile() == Result("done", dt.timedelta(0))
    world.cluster.failures.clear()
    world.reconcile()
    assert [one.pod for one in world.written("resizes")[0]] == ["web-1", "web-2"]
    assert world.ready() == ("PodsNotResized", "pod web-0: exceeded quota")
    world.clock.time += dt.timedelta(seconds=59)
    world.reconcile()
    assert [one.pod for one in world.written("resizes")[0]] == ["web-1", "web-2"]  # the fake resizes nothing
    world.clock.time += dt.timedelta(seconds=2)
    world.reconcile()
    assert [one.pod for one in world.written("resizes")[0]] == ["web-0", "web-1", "web-2"]


def test_a_refusal_is_forgotten_with_its_pod_and_with_the_hvpa() -> None:
    world = World(resizes=Refused("exceeded quota"))
    world.reconcile()
    one = world.cluster.one
    assert one is not None
    world.cluster.failures.clear()
    world.cluster.one = replace(one, pods=one.pods[1:])
    world.reconcile()
    assert world.ready()[0] != "PodsNotResized"
    world.cluster.one = one
    world.reconcile()
    assert len(world.written("resizes")[0]) == 3
    world.cluster.failures["resizes"] = Refused("exceeded quota")
    world.reconcile()
    world.cluster.one = None
    assert world.reconcile() == Result("gone")
    world.cluster.one = one
    world.reconcile()
    assert len(world.written("resizes")[0]) == 3


def test_each_refusal_of_the_same_doubles_the_wait() -> None:
    world = World(resizes=Refused("exceeded quota"))
    for minutes in (1, 2):  # the third takes the size back
        world.cluster.failures["resizes"] = Refused("exceeded quota")
        world.reconcile()
        world.cluster.failures.clear()
        world.clock.time += dt.timedelta(minutes=minutes, seconds=-1)
        world.reconcile()
        assert "web-0" not in [one.pod for one in world.written("resizes")[0]]
        world.clock.time += dt.timedelta(seconds=2)


@pytest.mark.parametrize(
    ("error", "is_taken_back"), [(Refused("a quota"), True), (NotServed("no resizes"), False)]
)
def test_a_size_is_taken_back_where_another_one_may_do(error: Refused, is_taken_back: bool) -> None:
    world = World(resizes=error)
    for minutes in (1, 2, 4, 8):
        world.cluster.failures["resizes"] = error
        world.reconcile()
        world.reconcile()
        world.clock.time += dt.timedelta(minutes=minutes, seconds=1)
    assert world.cluster.one is not None
    assert (world.cluster.one.hvpa.status.rolled_back is not None) == is_taken_back
    assert is_taken_back or world.ready() == ("PodsNotResized", "pod web-0: no resizes")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (WriteError("no such thing"), "failed"),
        (Conflict("another pod"), "conflict"),
        (Overloaded("busy", dt.timedelta(seconds=3)), "overloaded"),
    ],
)
def test_other_failures_are_tried_again(error: Exception, outcome: str) -> None:
    world = World(resizes=error)
    assert world.reconcile().outcome == outcome
    world.cluster.failures.clear()
    assert world.reconcile().outcome == "done"
    assert len(world.written("resizes")[0]) == 3


def test_an_error_is_taken_back_only_when_the_writes_have_got_through() -> None:
    world = World(resizes=WriteError("no such thing"))
    world.reconcile()
    assert world.ready() == ("WriteFailed", "ResizePods: no such thing")
    for _ in range(2):
        world.reconcile()
        assert world.ready()[0] == "WriteFailed"
    assert not world.written("status")  # nothing flaps
    world.cluster.failures.clear()
    world.reconcile()
    assert world.ready()[0] != "WriteFailed"


def test_a_workload_that_can_not_be_scaled_is_reported() -> None:
    world = World(workload=Unavailable("no response"))
    for _ in range(REPORTED_AFTER):
        assert world.reconcile().outcome == "failed"
        assert not world.written("resizes")
    assert world.ready() == ("WriteFailed", "PatchWorkload: no response")
