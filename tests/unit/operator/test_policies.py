"""When policies are planned for, with which objects, and what follows failures."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NoReturn, TypeVar, cast

import msgspec
import pytest

from builders import build
from builders.build import NOW, stamp
from hvpa.api.objects.read_models import Meta, RawHvpa
from hvpa.api.policy.resource import PolicyObject
from hvpa.api.policy.status import PolicyStatus
from hvpa.core.model import Event
from hvpa.core.policies.model import PolicyChange, PolicyInput
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.reflector import WatchState
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.cache.watches import Watches
from hvpa.kube.objects.policies import StoredPolicy
from hvpa.kube.objects.resources import (
    CLUSTER_POLICIES,
    DEPLOYMENTS,
    HVPA_POLICIES,
    HVPAS,
    NAMESPACES,
    STATEFULSETS,
    ApiResource,
)
from hvpa.kube.policies import PolicyWriter
from hvpa.operator import policies
from hvpa.operator.policies import PolicyKeeper, Process
from hvpa.reconcile.ports import Conflict, Key, Refused, WriteError
from hvpa.reconcile.queue import Backoff
from tests.unit.core.policies.world import policy, workload
from tests.unit.kube.fake_server import background, until

Json = dict[str, Any]
T = TypeVar("T")


def stored(made: PolicyObject) -> StoredPolicy:
    return StoredPolicy(made.kind, RawHvpa(made.metadata), made)


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> dt.datetime:
        return self.time


class States:
    """Stands in for the watches."""

    def __init__(self) -> None:
        self.of: dict[str, WatchState] = {
            resource.plural: "synced"
            for resource in (HVPA_POLICIES, CLUSTER_POLICIES, DEPLOYMENTS, STATEFULSETS)
        }
        self.looks = 0

    def states(self, resource: ApiResource[Any]) -> set[WatchState]:
        self.looks += 1
        return {self.of[resource.plural]} if resource.plural in self.of else set()


class Writer:
    """Stands in for the API server: stores what is written."""

    def __init__(self, local: LocalCluster) -> None:
        self.local = local
        self.errors: list[WriteError] = []
        self.status_errors: list[WriteError] = []
        self.changes: list[PolicyChange] = []
        self.statuses: list[PolicyStatus] = []
        self.version = 100
        self.documents: dict[str, Json] = {}
        self.on_error: Callable[[], None] = lambda: None
        self.on_write: list[Callable[[], bool]] = []
        self.noted: list[bool] = []
        """What the functions in `on_write` returned when something was written."""

    async def write(self, change: PolicyChange) -> None:
        self.changes.append(change)
        self.noted += [look() for look in self.on_write]
        if self.errors:
            self.on_error()
            raise self.errors.pop()
        if change.action == "delete":
            del self.documents[change.name]
            self.local.hvpas.delete(Key(change.namespace, change.name))
            return
        self.store(change.name, build.merged(self.documents.get(change.name, {}), change.body))

    def store(self, name: str, body: Json) -> None:
        self.version += 1
        stamps = {"uid": name, "resourceVersion": str(self.version)}
        document = {**body, "metadata": {**body["metadata"], **stamps}}
        self.documents[name] = document
        self.local.hvpas.put(HVPAS.decode(msgspec.json.encode(document)))

    async def write_status(self, made: PolicyObject, status: PolicyStatus) -> None:
        if self.status_errors:
            raise self.status_errors.pop()
        self.statuses.append(status)
        changed = replace(made, status=status)
        store = (
            self.local.policies.policies
            if made.kind == "HvpaPolicy"
            else self.local.policies.cluster_policies
        )
        store._objects[Key(made.metadata.namespace, made.metadata.name)] = stored(changed)


class Kept:
    """A keeper and what surrounds it."""

    def __init__(self) -> None:
        self.local = LocalCluster((ALL_NAMESPACES,), lambda key: None)
        self.states, self.writer, self.serves = States(), Writer(self.local), True
        self.clock = Clock()
        self.events: list[tuple[str, str, str, str]] = []
        self.asides = 0
        """How often work went to another thread."""
        self.asked = 0
        """How often the keeper looked whether it serves."""
        self.keeper = PolicyKeeper(
            self.local,
            cast(Watches, self.states),
            cast(PolicyWriter, self.writer),
            Process(self.clock, self._serves, "hvpa-system", self._aside, self._record),
        )

    async def _aside(self, work: Callable[[], T], /) -> tuple[T, float]:
        self.asides += 1
        return await asyncio.to_thread(work), 0.0

    def _record(self, meta: Meta, event: Event) -> None:
        self.events.append((meta.name, event.type, event.reason, event.message))

    def _serves(self) -> bool:
        self.asked += 1
        return self.serves

    def reasons(self) -> list[str]:
        return [status.conditions[0].reason for status in self.writer.statuses]

    def edit(self, name: str, field: str, value: object) -> None:
        """Somebody changes a field of an Hvpa's spec."""
        document = self.writer.documents[name]
        document["spec"][field] = value
        self.writer.store(name, document)

    def named(self) -> list[str]:
        return [change.name for change in self.writer.changes]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(policies, "SETTLE", 0.0)
    monkeypatch.setattr(policies, "NOT_YET", 0.001)
    monkeypatch.setattr(policies, "AGAIN", 0.001)
    monkeypatch.setattr(policies, "RETRY", Backoff(base=0.001, cap=0.002))
    return iter([None])


@asynccontextmanager
async def keeping(*made: PolicyObject) -> AsyncIterator[Kept]:
    kept = Kept()
    for each in made:
        resource = HVPA_POLICIES if each.kind == "HvpaPolicy" else CLUSTER_POLICIES
        kept.local.store(resource).put(stored(each))
    async with background(kept.keeper.run()):
        yield kept


async def test_each_change_leads_to_a_plan_and_then_there_is_rest() -> None:
    async with keeping(policy()) as kept:
        await until(lambda: kept.reasons() == ["NothingSelected"])
        kept.local.workloads["Deployment"].put(workload())
        await until(lambda: kept.reasons()[-1] == "UpToDate")
        assert kept.named() == ["web"]
        looks = kept.states.looks
        await asyncio.sleep(0.05)
        assert kept.states.looks == looks


async def test_after_a_failure_the_keeper_plans_again_without_another_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(world: PolicyInput, now: dt.datetime) -> NoReturn:
        raise ValueError("a bug")

    with monkeypatch.context() as broken:
        broken.setattr(policies, "plan_in_steps", fails)
        kept = Kept()
        kept.local.store(HVPA_POLICIES).put(stored(policy()))
        with pytest.raises(ValueError, match="a bug"):
            await kept.keeper.run()
    async with background(kept.keeper.run()):
        await until(lambda: kept.reasons() == ["NothingSelected"])


async def test_an_edited_hvpa_follows_the_policy_again_once_it_is_as_before() -> None:
    async with keeping(policy()) as kept:
        kept.local.workloads["Deployment"].put(workload())
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
        kept.edit("web", "blend", "Additive")
        kept.local.store(HVPA_POLICIES).put(
            stored(policy(spec={"stage": "Apply"}, metadata={"generation": 2}))
        )
        await until(lambda: kept.reasons()[-1] == "Edited")
        kept.edit("web", "blend", None)
        await until(lambda: kept.named() == ["web", "web"])


def exclude(kept: Kept, *names: str, most: int = 2) -> None:
    """Somebody edits the policy so that it does not select these workloads."""
    spec = {"workloads": {"exclude": {"names": names}}, "rollout": {"maxRemovals": most}}
    (old,) = kept.local.policies.read()
    metadata = {"generation": old.metadata.generation + 1}
    made = replace(policy(spec=spec, metadata=metadata), status=old.status)
    kept.local.store(HVPA_POLICIES).put(stored(made))


async def test_removals_are_counted_once_they_are_done_and_no_more_than_allowed_follow() -> None:
    async with keeping(policy()) as kept:
        for name in "abcd":
            kept.local.workloads["Deployment"].put(workload(name))
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
        kept.writer.errors = [Conflict("newer"), Conflict("newer")]
        exclude(kept, "a")
        await until(lambda: kept.writer.statuses[-1].removed == 1)
        exclude(kept, "a", "b", "c")
        await until(lambda: kept.reasons()[-1] == "RemovalHeld")
        assert kept.writer.statuses[-1].awaiting_removal == 2
        assert set(kept.writer.documents) == {"b", "c", "d"}
        exclude(kept, "a", "b", "c", most=3)
        await until(lambda: kept.writer.statuses[-1].removed == 3)
        assert set(kept.writer.documents) == {"d"}


async def test_a_restarted_operator_finishes_a_removal_and_begins_no_other() -> None:
    kept = Kept()
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    names = [f"w{number:02}" for number in range(31)]
    for name in names:
        kept.local.workloads["Deployment"].put(workload(name))
    write, dies = kept.writer.write, asyncio.Event()

    async def until_it_dies(change: PolicyChange) -> None:
        if len(kept.writer.documents) <= 26:
            dies.set()
            await asyncio.Event().wait()
        await write(change)

    async with background(kept.keeper.run()):
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
        kept.writer.write = until_it_dies  # type: ignore[method-assign]
        exclude(kept, *names[:10], most=10)
        await dies.wait()
    assert len(kept.writer.documents) == 26
    kept.writer.write = write  # type: ignore[method-assign]
    restarted = PolicyKeeper(kept.local, kept.keeper._watches, kept.keeper._writer, kept.keeper._process)
    async with background(restarted.run()):
        kept.local.policies.changed.set()
        await until(lambda: kept.writer.statuses[-1].removed == 5)
        assert set(kept.writer.documents) == set(names[10:])
        exclude(kept, *names[:20], most=10)
        await until(lambda: kept.reasons()[-1] == "RemovalHeld")
        assert set(kept.writer.documents) == set(names[10:])


async def test_what_is_done_for_a_policy_and_what_needs_a_person_are_events() -> None:
    async with keeping(policy()) as kept:
        for name in "abcd":
            kept.local.workloads["Deployment"].put(workload(name))
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
        exclude(kept, "a", "b", "c")
        await until(lambda: kept.reasons()[-1] == "RemovalHeld")
        exclude(kept, "a")
        await until(lambda: kept.reasons()[-1] == "UpToDate")
    assert [event[1:3] for event in kept.events] == [
        ("Normal", "HvpasCreated"),
        ("Warning", "RemovalHeld"),
        ("Normal", "HvpasRemoved"),
        ("Normal", "UpToDate"),
    ]
    assert {event[0] for event in kept.events} == {"team"}
    assert kept.events[2][3] == "no longer selected, so removed: 1 Hvpas (default/a)"


async def test_a_removal_counts_although_the_status_could_not_be_written() -> None:
    async with keeping(policy()) as kept:
        for name in "abcd":
            kept.local.workloads["Deployment"].put(workload(name))
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
        kept.writer.status_errors = [Conflict("newer") for _ in range(5)]
        exclude(kept, "a", "b")
        await until(lambda: kept.writer.statuses[-1].removed == 2)
        exclude(kept, "a", "b", "c")
        await until(lambda: kept.reasons()[-1] == "RemovalHeld")


async def test_what_waits_for_the_end_of_the_hour_is_looked_after_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = Kept()
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    for name in "abcd":
        kept.local.workloads["Deployment"].put(workload(name))
    monkeypatch.setattr("hvpa.core.policies.removing.WINDOW", dt.timedelta(seconds=0.2))
    monkeypatch.setattr("hvpa.core.policies.plan.WINDOW", dt.timedelta(seconds=0.2))
    async with background(kept.keeper.run()):
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
        exclude(kept, "a")
        await until(lambda: kept.writer.statuses[-1].removed == 1)
        exclude(kept, "a", "b", "c")
        await until(lambda: kept.reasons()[-1] == "RemovalHeld")
        kept.clock.time += dt.timedelta(seconds=1)
        await until(lambda: set(kept.writer.documents) == {"d"})


async def test_new_policies_are_parsed_in_another_thread_and_only_once() -> None:
    kept = Kept()
    made = policy()
    document = {"template": {"vpa": {"deploy": True}}}
    raw = RawHvpa(made.metadata, msgspec.Raw(msgspec.json.encode(document)), msgspec.Raw(b"{}"))
    kept.local.store(HVPA_POLICIES).put(StoredPolicy(made.kind, raw))
    async with background(kept.keeper.run()):
        await until(lambda: kept.reasons()[-1:] == ["NothingSelected"])
        kept.local.workloads["Deployment"].put(workload())
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
    assert kept.asides == 1


async def test_others_work_while_a_plan_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "SLICE", 0.0)
    kept = Kept()
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    for number in range(50):
        kept.local.workloads["Deployment"].put(workload(f"w{number}"))
    steps = list[int]()

    async def others() -> None:
        while True:
            steps.append(len(kept.writer.changes))
            await asyncio.sleep(0)

    async with background(others()), background(kept.keeper.run()):
        await until(lambda: len(kept.writer.changes) == 50)
    assert steps.count(0) > 50


async def test_after_the_plan_that_begins_a_rollout_another_follows() -> None:
    """While it was made, changes of the workloads' progress were not noted."""
    spec = {"stage": "Apply", "rollout": {"maxConcurrent": 1}}
    async with keeping(policy()) as kept:
        for name in ("a", "b"):
            kept.local.workloads["Deployment"].put(workload(name))
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
        kept.writer.on_write.append(kept.local.policies.changed.is_set)
        kept.local.store(HVPA_POLICIES).put(stored(policy(spec=spec, metadata={"generation": 2})))
        await until(lambda: kept.named() == ["a", "b", "a"])
    assert kept.writer.noted == [True]


async def test_without_policies_nothing_is_done() -> None:
    async with keeping() as kept:
        kept.local.workloads["Deployment"].put(workload())
        await asyncio.sleep(0.02)
        assert kept.states.looks == 0


async def test_who_has_no_lease_waits_for_it() -> None:
    kept = Kept()
    kept.serves = False
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    async with background(kept.keeper.run()):
        await asyncio.sleep(0.02)
        assert kept.states.looks == 0
        kept.serves = True
        await until(lambda: bool(kept.writer.statuses))


async def test_failures_from_before_the_lease_was_lost_are_not_reported_afterwards() -> None:
    kept = Kept()
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    kept.local.workloads["Deployment"].put(workload())
    error = WriteError("not the leader (any more)")
    kept.writer.errors, kept.writer.status_errors = [error], [error]
    kept.writer.on_error = lambda: setattr(kept, "serves", False)
    async with background(kept.keeper.run()):
        await until(lambda: not kept.serves and not kept.writer.status_errors)
        asked = kept.asked
        await until(lambda: kept.asked > asked)
        kept.serves = True
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
    assert "WriteFailed" not in kept.reasons()


async def test_a_plan_waits_until_policies_and_namespaces_are_listed() -> None:
    kept = Kept()
    kept.states.of[NAMESPACES.plural] = "starting"
    kept.local.store(CLUSTER_POLICIES).put(stored(policy("all", namespace="")))
    kept.local.workloads["Deployment"].put(workload())
    async with background(kept.keeper.run()):
        await until(lambda: kept.states.looks > 3)
        assert kept.writer.statuses == []
        kept.states.of[NAMESPACES.plural] = "not served"
        await until(lambda: kept.reasons() == ["NotPermitted"])
        kept.states.of[NAMESPACES.plural] = "synced"
        metadata = {"name": "default", "resourceVersion": "1"}
        namespace = NAMESPACES.decode(msgspec.json.encode({"metadata": metadata}))
        kept.local.policies.namespaces.put(namespace)
        await until(lambda: kept.reasons()[-1] == "UpToDate")


async def test_a_namespace_that_is_being_deleted_gets_no_hvpas() -> None:
    kept = Kept()
    kept.states.of[NAMESPACES.plural] = "synced"
    for name, stamps in (("default", {}), ("going", {"deletionTimestamp": stamp(NOW)})):
        metadata = {"name": name, "resourceVersion": "1", **stamps}
        kept.local.policies.namespaces.put(NAMESPACES.decode(msgspec.json.encode({"metadata": metadata})))
        kept.local.workloads["Deployment"].put(workload(namespace=name))
    kept.local.store(CLUSTER_POLICIES).put(stored(policy("all", namespace="")))
    async with background(kept.keeper.run()):
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
    assert [change.namespace for change in kept.writer.changes] == ["default"]


async def test_a_refused_write_is_reported_and_tried_again() -> None:
    kept = Kept()
    kept.writer.errors = [Refused("exceeded quota")]
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    kept.local.workloads["Deployment"].put(workload())
    async with background(kept.keeper.run()):
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
    assert kept.reasons() == ["RollingOut", "WriteFailed", "UpToDate"]
    assert kept.writer.statuses[1].conditions[0].message == "default/web: exceeded quota"


async def test_a_refused_write_waits_although_other_workloads_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policies, "RETRY", Backoff(base=1000.0, cap=1000.0))
    kept = Kept()
    kept.writer.errors = [Refused("exceeded quota")]
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    kept.local.workloads["Deployment"].put(workload("a"))
    async with background(kept.keeper.run()):
        await until(lambda: kept.named() == ["a"])
        kept.local.workloads["Deployment"].put(workload("b"))
        await until(lambda: kept.reasons()[-1:] == ["WriteFailed"])
        kept.local.workloads["Deployment"].put(workload("c"))
        await until(lambda: kept.named() == ["a", "b", "c"])


async def test_a_conflict_is_no_failure_of_the_policy() -> None:
    kept = Kept()
    kept.writer.errors, kept.writer.status_errors = [Conflict("exists")], [Conflict("newer")]
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    kept.local.workloads["Deployment"].put(workload())
    async with background(kept.keeper.run()):
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
    assert "WriteFailed" not in kept.reasons()
    assert kept.named() == ["web", "web"]


async def test_a_conflict_that_stays_is_reported() -> None:
    """The Hvpa may be there in a form that can't be read."""
    kept = Kept()
    kept.writer.errors = [Conflict("already exists") for _ in range(6)]
    kept.local.store(HVPA_POLICIES).put(stored(policy()))
    kept.local.workloads["Deployment"].put(workload())
    async with background(kept.keeper.run()):
        await until(lambda: kept.reasons()[-1:] == ["UpToDate"])
    assert "WriteFailed" in kept.reasons()


async def test_hvpas_that_wait_for_their_turn_are_looked_after_without_a_change() -> None:
    spec = {"stage": "Apply", "rollout": {"maxConcurrent": 1}}
    async with keeping(policy(spec=spec)) as kept:
        for name in ("a", "b"):
            kept.local.workloads["Deployment"].put(workload(name))
        await until(lambda: kept.local.policies.is_rolling)
        looks = kept.states.looks
        await until(lambda: kept.states.looks > looks + 20)
        assert set(kept.named()) == {"a", "b"}
