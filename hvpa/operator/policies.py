"""Keeps the Hvpas of policies as these require: plans after each change, writes, and waits for the next change."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from hvpa.api.objects.read_models import Hpa, Vpa, Workload
from hvpa.api.policy.resource import PolicyKey, PolicyObject
from hvpa.core.policies.model import PolicyChange, PolicyInput, PolicyPlan, PresentHvpa, Target
from hvpa.core.policies.plan import plan
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import Store
from hvpa.kube.cache.targeting import target_in
from hvpa.kube.cache.watches import Watches
from hvpa.kube.objects.resources import CLUSTER_POLICIES, HVPA_POLICIES, NAMESPACES, WORKLOADS, T
from hvpa.kube.policies import PolicyWriter
from hvpa.reconcile.ports import Conflict, TimeSource, WriteError
from hvpa.reconcile.queue import Backoff

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
AT_ONCE: Final = 16
"""Maximum concurrent writes. They wait for their permits like reconciles, of which each makes several writes."""


class PolicyKeeper:
    """Works while `serves` returns True."""

    def __init__(
        self,
        local: LocalCluster,
        watches: Watches,
        writer: PolicyWriter,
        clock: TimeSource,
        serves: Callable[[], bool],
        operator_namespace: str,
    ) -> None:
        self._local, self._watches, self._writer, self._clock = local, watches, writer, clock
        self._serves, self._operator_namespace = serves, operator_namespace
        self._failures: dict[tuple[str, str], str] = {}
        self._removed: dict[PolicyKey, int] = {}
        """Removals of Hvpas that no status counts yet."""
        self._failed_in_a_row = 0
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
            delay = await self._round()

    async def _round(self) -> float | None:
        """Plan and write once; returns the seconds until the next plan, None if it waits for a change."""
        began = time.monotonic()
        serves = self._serves()
        if not serves:
            self._failures.clear()  # another process writes
            self._removed.clear()
        world = self._world() if serves else None
        if world is None:
            await asyncio.sleep(NOT_YET)
            return 0.0
        policies = self._local.policies
        policies.changed.clear()
        made = plan(world, self._clock.now())
        took = time.monotonic() - began
        policies.is_rolling, policies.edited = made.is_rolling, made.edited
        later = await self._write(made, {policy.key: policy for policy in world.policies})
        await asyncio.sleep(SHARE * took)
        if later:
            return max(0.0, self._due - time.monotonic())
        if made.is_rolling:
            return AGAIN
        return None if made.wait is None else made.wait.total_seconds()

    def _world(self) -> PolicyInput | None:
        """The objects that a plan depends on; None while they are being listed."""
        local, states = self._local, self._watches.states
        policies = local.policies.read()
        if "starting" in states(HVPA_POLICIES) | states(CLUSTER_POLICIES) | states(NAMESPACES):
            return None
        listed = frozenset(kind for kind, resource in WORKLOADS.items() if states(resource) == {"synced"})
        workloads: list[Workload] = []
        for kind in listed:
            workloads += _objects(local.workloads[kind])
        metas = [each.metadata for each in _objects(local.policies.namespaces)]
        namespaces = {meta.name: meta.labels for meta in metas}
        terminating = {meta.name for meta in metas if meta.deletion_timestamp is not None}
        hvpas = [
            PresentHvpa(hvpa.metadata, Target(*target_in(hvpa.metadata.namespace, hvpa.links)), hvpa.read)
            for hvpa in _objects(local.hvpas)
        ]
        hpas: list[Hpa] = _objects(local.hpas)
        vpas: list[Vpa] = _objects(local.vpas)
        failures = dict(self._failures)
        return PolicyInput(
            policies,
            namespaces if states(NAMESPACES) == {"synced"} else None,
            workloads,
            listed,
            hvpas,
            hpas,
            vpas,
            self._operator_namespace,
            failures,
            terminating,
            dict(self._removed),
        )

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
        failed = await _in_parallel([partial(self._change, change) for change in changes])
        for key, status in made.statuses.items():
            try:
                await self._writer.write_status(policies[key], status)
            except WriteError as error:
                log.info("status of a policy could not be written", policy=str(key), error=str(error))
                failed = True
            else:
                self._removed[key] = self._removed.get(key, 0) - counted.get(key, 0)
        self._removed = {key: count for key, count in self._removed.items() if count and key in policies}
        if failed:
            self._failed_in_a_row += 1
            self._due = time.monotonic() + RETRY.delay(self._failed_in_a_row, self._rng)
        elif not waiting:
            self._failed_in_a_row = 0
        return failed or len(changes) < len(made.changes)

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
        if change.counts and change.policy is not None:
            self._removed[change.policy] = self._removed.get(change.policy, 0) + 1
        log.info("wrote the Hvpa of a policy", **where)
        return False


def _objects(store: Store[T]) -> list[T]:
    return [obj for key in store if (obj := store.get(key)) is not None]


async def _in_parallel(writes: Iterable[Callable[[], Awaitable[bool]]]) -> bool:
    """Make the writes, AT_ONCE at a time, in their order; returns whether one failed."""
    left, failed = iter(writes), False

    async def one_after_another() -> None:
        nonlocal failed
        for write in left:
            failed |= await write()

    await asyncio.gather(*[one_after_another() for _ in range(AT_ONCE)])
    return failed
