"""Keeps the Hvpas of policies as these require: plans after each change, writes, and waits for the next change."""

from __future__ import annotations

import asyncio
import datetime as dt
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, TypeVar

import structlog

from hvpa.api.objects.read_models import Hpa, Meta, Namespace, Vpa, Workload
from hvpa.api.policy.resource import PolicyKey, PolicyObject
from hvpa.api.policy.status import PolicyStatus
from hvpa.core.model import Event
from hvpa.core.policies.events import of_changes, of_status
from hvpa.core.policies.model import PolicyChange, PolicyInput, PolicyPlan, PresentHvpa, Target
from hvpa.core.policies.plan import plan_in_steps
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.targeting import target_in
from hvpa.kube.cache.watches import Watches
from hvpa.kube.objects.resources import CLUSTER_POLICIES, HVPA_POLICIES, NAMESPACES, WORKLOADS
from hvpa.kube.objects.stored_hvpa import StoredHvpa
from hvpa.kube.policies import PolicyWriter
from hvpa.reconcile.ports import Conflict, TimeSource, WriteError
from hvpa.reconcile.queue import Backoff
from hvpa.reconcile.size import RunsAside

R = TypeVar("R")
log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

SETTLE: Final = 0.5
"""Seconds from a change until the next plan, so that changes that come together are planned together."""
NOT_YET: Final = 2.0
"""Seconds until the next look if the caches are not filled, or another process does the work."""
SHARE: Final = 20.0
"""Reading policies and planning may take a twentieth of the time: after 0.1 s of that, the next plan follows 2 s
later."""
AGAIN: Final = 30.0
"""Seconds until the next plan while Hvpas wait for their turn."""
RETRY: Final = Backoff(base=1.0, cap=300.0)
"""Back-off after failed writes."""
LASTING: Final = 3
"""Failures in a row after which a conflict is reported: normally the next plan sees the newer object."""
SLICE: Final = 0.005
"""Seconds for which planning may block the event loop. Not in a thread: Hvpas are parsed on first read, which only the
event loop may do."""
AT_ONCE: Final = 16
"""Maximum concurrent writes. They wait for their permits like reconciles, of which each makes several writes."""


class _Snapshot(NamedTuple):
    """The objects that a plan depends on, at the same time."""

    policies: list[PolicyObject]
    namespaces: list[Namespace] | None
    """None if they can't be read."""
    workloads: Mapping[str, list[Workload]]
    """By kind; only kinds that are known completely."""
    hvpas: list[StoredHvpa]
    hpas: list[Hpa]
    vpas: list[Vpa]


class Process(NamedTuple):
    """The parts of the process that the work for policies uses."""

    clock: TimeSource
    serves: Callable[[], bool]
    """Whether this process does the work."""
    namespace: str
    """The operator's namespace."""
    aside: RunsAside
    record: Callable[[Meta, Event], None]
    """Writes an Event."""


class PolicyKeeper:
    """Works while `Process.serves` returns True."""

    def __init__(self, local: LocalCluster, watches: Watches, writer: PolicyWriter, process: Process) -> None:
        self._local, self._watches, self._writer, self._process = local, watches, writer, process
        self._failures: dict[tuple[str, str], str] = {}
        self._removed: dict[PolicyKey, int] = {}
        """Removals of Hvpas that no status counts yet."""
        self._failed_in_a_row = 0
        self._done: list[PolicyChange] = []
        """The present plan's writes that have been made."""
        self._due = 0.0
        """When failed writes are tried again (`time.monotonic`)."""
        self._rng = random.Random()

    async def run(self) -> None:
        """Plan and write forever."""
        delay: float | None = None
        changed = self._local.policies.changed
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await changed.wait()
            await asyncio.sleep(SETTLE)
            try:
                delay = await self._round()
            except Exception:
                changed.set()  # the supervisor starts this again, which must not wait for the next change
                raise

    async def _round(self) -> float | None:
        """Plan and write once; returns the seconds until the next plan, None if it waits for a change."""
        serves = self._process.serves()
        if not serves:
            self._failures.clear()  # another process writes
            self._removed.clear()
        took = await self._parse() if serves else 0.0
        began = time.perf_counter()
        snapshot = self._snapshot() if serves else None
        took += time.perf_counter() - began
        if snapshot is None:
            await asyncio.sleep(NOT_YET)
            return 0.0
        policies = self._local.policies
        policies.changed.clear()
        now = self._process.clock.now()
        made, seconds = await _in_slices(self._plan(snapshot, now))
        if not (made.is_rolling <= policies.is_rolling and set(made.edited) <= set(policies.edited)):
            policies.changed.set()  # what happened during the planning counts, but was not noted
        policies.is_rolling, policies.edited = made.is_rolling, made.edited
        later = await self._write(made, {policy.key: policy for policy in snapshot.policies})
        await asyncio.sleep(SHARE * (took + seconds))
        if later:
            return max(0.0, self._due - time.monotonic())
        if made.is_rolling:
            return AGAIN
        return None if made.wait is None else made.wait.total_seconds()

    async def _parse(self) -> float:
        """Parse new policies; returns the computing time in seconds. In a thread, since the template of a policy may
        have many cases."""
        new = [stored for stored in self._local.policies.all() if stored.parsed is None]
        if not new:
            return 0.0
        _, seconds = await self._process.aside(lambda: [stored.read() for stored in new])
        return seconds

    def _snapshot(self) -> _Snapshot | None:
        """The objects that a plan depends on; None while they are being listed."""
        local, states = self._local, self._watches.states
        policies = local.policies.read()
        if "starting" in states(HVPA_POLICIES) | states(CLUSTER_POLICIES) | states(NAMESPACES):
            return None
        listed = frozenset(kind for kind, resource in WORKLOADS.items() if states(resource) == {"synced"})
        return _Snapshot(
            policies,
            local.policies.namespaces.all() if states(NAMESPACES) == {"synced"} else None,
            {kind: local.workloads[kind].all() for kind in listed},
            local.hvpas.all(),
            local.hpas.all(),
            local.vpas.all(),
        )

    def _plan(self, snapshot: _Snapshot, now: dt.datetime) -> Generator[None, None, PolicyPlan]:
        """Plan in short steps."""
        hvpas: list[PresentHvpa] = []
        for hvpa in snapshot.hvpas:
            yield
            target = Target(*target_in(hvpa.metadata.namespace, hvpa.links))
            hvpas.append(PresentHvpa(hvpa.metadata, target, hvpa.read))
        metas = [each.metadata for each in snapshot.namespaces or ()]
        world = PolicyInput(
            snapshot.policies,
            None if snapshot.namespaces is None else {meta.name: meta.labels for meta in metas},
            [workload for workloads in snapshot.workloads.values() for workload in workloads],
            frozenset(snapshot.workloads),
            hvpas,
            snapshot.hpas,
            snapshot.vpas,
            self._process.namespace,
            dict(self._failures),
            {meta.name for meta in metas if meta.deletion_timestamp is not None},
            dict(self._removed),
        )
        return (yield from plan_in_steps(world, now))

    async def _write(self, made: PolicyPlan, policies: Mapping[PolicyKey, PolicyObject]) -> bool:
        """Make the writes of a plan, except those that failed lately; returns whether any are left for later."""
        counted = dict(self._removed)
        """Removals that the plan's statuses count."""
        planned = {(change.namespace, change.name) for change in made.changes}
        self._failures = {
            key: why for key, why in self._failures.items() if made.is_rolling or key in planned
        }
        waiting = set(self._failures) if time.monotonic() < self._due else set[tuple[str, str]]()
        changes = [change for change in made.changes if (change.namespace, change.name) not in waiting]
        self._done.clear()
        failed = await _in_parallel([partial(self._change, change) for change in changes])
        self._report(policies)
        for key, status in made.statuses.items():
            try:
                await self._writer.write_status(policies[key], status)
            except WriteError as error:
                log.info("status of a policy could not be written", policy=str(key), error=str(error))
                failed = True
            else:
                self._removed[key] = self._removed.get(key, 0) - counted.get(key, 0)
                self._report_status(policies[key], status)
        self._removed = {key: count for key, count in self._removed.items() if count and key in policies}
        if failed:
            self._failed_in_a_row += 1
            self._due = time.monotonic() + RETRY.delay(self._failed_in_a_row, self._rng)
        elif not waiting:
            self._failed_in_a_row = 0
        return failed or len(changes) < len(made.changes)

    def _report(self, policies: Mapping[PolicyKey, PolicyObject]) -> None:
        """Record an Event on each policy that something was written for."""
        done: dict[PolicyKey, list[PolicyChange]] = defaultdict(list)
        for change in self._done:
            if change.policy is not None:
                done[change.policy].append(change)
        for key, changes in done.items():
            for event in of_changes(policies[key], changes):
                self._process.record(policies[key].metadata, event)

    def _report_status(self, policy: PolicyObject, status: PolicyStatus) -> None:
        """Report that a policy begins to need a person, or no longer does."""
        if (event := of_status(policy, status)) is not None:
            self._process.record(policy.metadata, event)
            level = log.warning if event.type == "Warning" else log.info
            level("policy", policy=str(policy.key), reason=event.reason, message=event.message)

    async def _change(self, change: PolicyChange) -> bool:
        """Make a write to an Hvpa; returns whether it failed."""
        where = {"action": change.action, "namespace": change.namespace, "name": change.name}
        try:
            await self._writer.write(change)
        except WriteError as error:
            log.info("Hvpa of a policy could not be written", **where, error=str(error))
            if not isinstance(error, Conflict) or self._failed_in_a_row >= LASTING:
                self._failures[change.namespace, change.name] = str(error)
            return True
        self._failures.pop((change.namespace, change.name), None)
        self._done.append(change)
        if (key := change.removed_by) is not None:
            self._removed[key] = self._removed.get(key, 0) + 1
        log.info("wrote the Hvpa of a policy", **where)
        return False


async def _in_slices(work: Generator[None, None, R]) -> tuple[R, float]:
    """Do work in the event loop, SLICE at a time; returns its result and its computing time in seconds."""
    took = 0.0
    while True:
        began = time.perf_counter()
        try:
            next(work)
            while time.perf_counter() - began < SLICE:
                next(work)
        except StopIteration as end:
            return end.value, took + time.perf_counter() - began
        took += time.perf_counter() - began
        await asyncio.sleep(0)


async def _in_parallel(writes: Iterable[Callable[[], Awaitable[bool]]]) -> bool:
    """Make the writes, AT_ONCE at a time, in their order; returns whether one failed."""
    left, failed = iter(writes), False

    async def one_after_another() -> None:
        nonlocal failed
        for write in left:
            failed |= await write()

    await asyncio.gather(*[one_after_another() for _ in range(AT_ONCE)])
    return failed
