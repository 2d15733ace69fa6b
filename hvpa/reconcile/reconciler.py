"""The reconcile of an Hvpa: read all, decide, write, and return when to reconcile again.

Only writes through the cluster port wait. With a port that never suspends, `reconcile` runs without an event loop.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import structlog
from structlog.contextvars import bound_contextvars

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Meta, Workload
from hvpa.api.values.text import one_line
from hvpa.core import decide, observe
from hvpa.core.actuation.pod import MOST_REFUSALS
from hvpa.core.actuation.refused import with_refusal
from hvpa.core.deciding import as_far_as
from hvpa.core.gates.verdict import rollback_metrics
from hvpa.core.invariants import violations
from hvpa.core.model import (
    Decision,
    Event,
    MemoryUse,
    Objects,
    Observation,
    RefusedResize,
    ScalableObservation,
    Settings,
    WorkloadPatch,
)
from hvpa.core.report.events import STEP_EVENTS
from hvpa.core.report.remedies import advised, entered, left
from hvpa.core.report.status import WRITE_FAILED, failed_status, still_failing, unapplied_status
from hvpa.core.report.summary import newly_blocked
from hvpa.core.workload.selector import selector_text
from hvpa.reconcile.patch import StatusPatch
from hvpa.reconcile.ports import (
    Cluster,
    Conflict,
    Key,
    NodeTooSmall,
    NotServed,
    Overloaded,
    Refused,
    ResizeFailures,
    SizeChanges,
    TimeSource,
    Unavailable,
    WriteError,
)
from hvpa.reconcile.record import Record
from hvpa.reconcile.size import LARGE, RunsAside, parts
from hvpa.reconcile.telemetry import Operation, Outcome, Telemetry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

MAX_DESCRIPTION = 1024
"""Maximum length of an error in `status.lastError.description` (webhooks can return whole pages)."""
REPORTED_AFTER = 3
"""Number of failures in a row after which HVPA reports a write without a response. By then a second has passed, which
is enough to replace a connection or one of several API servers."""
CONFLICTS_REPORTED_AFTER = 5
"""Number of conflicts in a row after which HVPA reports them. By then two seconds have passed (`Pace` of the queue),
and HVPA has read the object again each time."""
POSTPONED_REPORTED = 5.0
"""Delay in seconds from which the status reports a postponed decision: a third of the HPA's period."""
MOST_PATCHES = 6
"""Maximum number of workload patches in a reconcile. Usually there are at most three: for both axes, and for each
alone. With `Trajectory`, HVPA solves an axis again without the other, which may give a different result."""


PatchWrite = Callable[[Meta, WorkloadPatch], Awaitable[None]]
"""Cluster port method that sends a patch of an Hvpa's workload."""


class ReconcileResult(msgspec.Struct, frozen=True, gc=False):
    """The result of a reconcile."""

    outcome: Outcome
    wait: dt.timedelta | None = None
    """Time until the next reconcile (`done`), or the wait that the server required (`overloaded`). None if there is
    neither."""
    aside: float = 0.0
    """Seconds of computing time outside of the event loop's thread."""
    is_unanswered: bool = False
    """Whether a write failed because the API server did not respond or failed itself."""


class _Failed(Exception):
    """A write failed in `operation`. `decision` is the decision that it belongs to, if its status is not written
    yet."""

    def __init__(self, operation: Operation, error: WriteError, decision: Decision | None = None) -> None:
        super().__init__(str(error))
        self.operation = operation
        self.error = error
        self.decision = decision


@contextmanager
def _writing(operation: Operation, decision: Decision | None = None) -> Iterator[None]:
    """Names the operation of a write: errors of the cluster become `_Failed`."""
    try:
        yield
    except WriteError as error:
        raise _Failed(operation, error, decision) from error


class Reconciler:
    """Reconciles Hvpas, each of them once at a time, as `decide` requires. Between reconciles it stores a `Record` of
    each Hvpa."""

    def __init__(
        self,
        cluster: Cluster,
        clock: TimeSource,
        settings: Settings,
        telemetry: Telemetry,
        postponed: Callable[[Key], float] = lambda key: 0.0,
        aside: RunsAside | None = None,
    ) -> None:
        """`postponed` returns for how many seconds an Hvpa's decision has been due, if its namespace was over budget.
        `aside` makes large decisions; without it they are made here."""
        self._cluster, self._clock, self._settings, self._telemetry = cluster, clock, settings, telemetry
        self._postponed, self._aside = postponed, aside
        self._spent: dict[Key, float] = {}
        """Seconds of computing time that current reconciles have used in the other thread."""
        self._records: defaultdict[Key, Record] = defaultdict(Record)

    def forget(self, key: Key) -> None:
        """Drops all that is stored about an Hvpa: it is deleted, or another process works on it."""
        record = self._records.pop(key, None)
        if record is not None and record.is_polled:
            self._cluster.reported_usage(key, (), 0)
        if record is not None and record.is_judged:
            self._cluster.canary_values(key, (), often=False)
        self._telemetry.forgotten(key)

    async def reconcile(self, key: Key) -> ReconcileResult:
        """Reads, decides and writes for the Hvpa of `key`. Raises only on cancellation and process exit."""
        try:
            result = await self._reconcile(key)
            if key in self._records:
                self._records[key].failures = 0
        except Exception as error:
            with bound_contextvars(namespace=key.namespace, name=key.name):
                result = await self._after_failure(key, error)
        finally:
            aside = self._spent.pop(key, 0.0)
        return msgspec.structs.replace(result, aside=aside) if aside else result

    async def _reconcile(self, key: Key) -> ReconcileResult:
        objects = self._cluster.objects(key)
        if objects is None:
            gone = Meta(name=key.name, namespace=key.namespace)
            await self._write_creation_sizes(gone, None)
            await self._clean_up(key)
            with _writing("ChangeOwned"):
                await self._cluster.give_back(gone)
            self.forget(key)
            return ReconcileResult("gone")
        if objects.hvpa.metadata.deletion_timestamp is not None or objects.unlisted == "":
            return ReconcileResult(
                "done"
            )  # the key is added again once the workloads of its target's kind are listed
        record = self._records[key]
        objects = record.added_to(objects, self._clock.now())
        objects = self._with_canary_values(key, self._with_reported_usage(key, objects))
        if self._postponed(key) >= POSTPONED_REPORTED:
            objects = replace(objects, postponed=True)
        observation, decision = await self._decided(key, objects)
        if any(resize.lowers_limit for resize in decision.resizes) and objects.memory_use is None:
            objects = await self._with_memory_in_use(key, objects)
            observation, decision = await self._decided(key, objects)
        self._read_often(key, objects, is_trial=bool(decision.judged_by))
        record.add_demand(objects, decision, self._clock.now())
        record.keep(objects, decision)
        self._telemetry.decided(key, decision, objects.workload)
        self._check_invariants(key, observation, decision)
        is_kept = decision.status is objects.hvpa.status and not objects.hvpa.unreadable_status
        if is_kept and is_quiet(decision):
            return ReconcileResult("done", decision.recheck_after)  # at rest: nothing to write or report
        with bound_contextvars(namespace=key.namespace, name=key.name):
            if decision.status.desired is None:
                write = self._cluster.patch_workload
                _, decision = await self._agreed(key, objects, observation, decision, write)
                self._report_applied(key, objects.workload, decision)
                if decision.creation_sizes:
                    await self._write_creation_sizes(objects.hvpa.metadata, decision.creation_sizes)
            else:
                decision, is_refused = await self._act_in_place(key, objects, observation, decision)
                objects = self._cluster.objects(key) or objects
                if is_refused:
                    await self._write_status(objects.hvpa, decision.status)
                    await self._record_events(objects.hvpa, decision.events)
                    return ReconcileResult("done", dt.timedelta(0))
            self._report_blocked(key, objects.hvpa.status, decision)
            await self._write_decision(key, objects.hvpa, decision)
        if decision.status.rolled_back != observation.status.rolled_back:
            # More replicas may replace the size that was rolled back.
            return ReconcileResult("done", dt.timedelta(0))
        return ReconcileResult("done", decision.recheck_after)

    async def _clean_up(self, key: Key) -> None:
        """Ends the startup boosts and removes the deletion costs of the pods of an Hvpa that was deleted."""
        last = self._records[key].last if key in self._records else None
        if last is None or last.hvpa.spec is None:
            return
        hvpa = replace(last.hvpa, spec=last.hvpa.spec.at_the_end())
        _, decision = await self._decided(key, replace(last, hvpa=hvpa))
        if decision.costs:
            await self._cluster.write_pod_costs(hvpa.metadata, decision.costs)
        ends = [resize for resize in decision.resizes if resize.of_start]
        failures = await self._cluster.resize_pods(hvpa.metadata, ends) if ends else ()
        for _, error in failures:
            if not isinstance(error, Refused | Conflict):  # a pod that has been replaced has no boost to end
                raise _Failed("ResizePods", error)  # and try again

    async def _decided(self, key: Key, objects: Objects) -> tuple[Observation, Decision]:
        """Returns the observation and its decision. A large decision is made in another thread, so that it delays no
        other Hvpa."""
        now, settings, memo = self._clock.now(), self._settings, self._records[key].memo

        def work() -> tuple[Observation, Decision]:
            observation = observe(objects, now, settings, memo)
            return observation, decide(observation, memo)

        if self._aside is None or parts(objects) < LARGE:
            return work()
        result, seconds = await self._aside(work)
        self._spent[key] = self._spent.get(key, 0.0) + seconds
        return result

    def _check_invariants(self, key: Key, observation: Observation, decision: Decision) -> None:
        """Reports violated invariants of a decision, if the check is enabled."""
        for violation in violations(observation, decision) if self._telemetry.checks_invariants else ():
            log.error(
                "a decision breaks an invariant: report it with the output of `hvpa explain -o json`",
                **key._asdict(),
                invariant=violation.invariant,
                found=violation.what,
            )
            self._telemetry.violated(key, violation)

    def _with_reported_usage(self, key: Key, objects: Objects) -> Objects:
        """Returns the objects with what the kubelets report of the pods, if the Hvpa has the fast signal."""
        record, spec = self._records[key], objects.hvpa.spec
        if spec is not None and spec.polls_kubelets:
            record.is_polled = True
            return replace(
                objects, usage=self._cluster.reported_usage(key, objects.pods, spec.fast_signal.above)
            )
        if record.is_polled:
            self._cluster.reported_usage(key, (), 0)
            record.is_polled = False
        return objects

    def _with_canary_values(self, key: Key, objects: Objects) -> Objects:
        """Returns the objects with the values of the metrics that judge canaries, if the spec names some."""
        record, spec = self._records[key], objects.hvpa.spec
        is_used = spec is not None and (spec.applies or bool(objects.hvpa.status.canary_metrics))
        metrics = rollback_metrics(spec) if is_used else ()
        if metrics or record.is_judged:
            record.is_judged = bool(metrics)
            values = self._cluster.canary_values(key, metrics, often=record.in_trial)
            return replace(objects, canary_values=values)
        return objects

    def _read_often(self, key: Key, objects: Objects, *, is_trial: bool) -> None:
        """Has the metrics that judge canaries read more often during a trial."""
        record = self._records[key]
        if record.is_judged and is_trial != record.in_trial:
            record.in_trial = is_trial
            self._with_canary_values(key, objects)

    async def _with_memory_in_use(self, key: Key, objects: Objects) -> Objects:
        """Returns the objects with the pods' memory usage. HVPA queries it at most once a minute, and only before it
        lowers a limit."""
        assert objects.workload is not None
        selector = selector_text(objects.workload.spec.selector)
        in_use = await self._cluster.memory_in_use(objects.hvpa.metadata, selector)
        use = self._records[key].memory_use = MemoryUse(self._clock.now(), in_use)
        return replace(objects, memory_use=use)

    async def _agreed(
        self, key: Key, objects: Objects, observation: Observation, decision: Decision, write: PatchWrite
    ) -> tuple[Observation, Decision]:
        """Sends the patch of the workload by `write`. Returns the decision that the API server accepted, and its
        observation.

        If the API server refuses a patch, HVPA decides again without the refused part, so that one axis does not block
        the other. For a patch of both axes, HVPA tries the replicas alone (policies are mostly about requests), then
        the requests alone, then neither.
        """
        refused: Refused | None = None
        known = observation
        for _ in range(MOST_PATCHES):
            refused = await self._send_patch(key, objects.hvpa.metadata, decision, write)
            if refused is None:
                return observation, decision
            if not decision.patched:
                break  # the patch holds, continues or reverts a rollout
            observation = _without_refused(known, decision, refused)
            if len(decision.patched) == 1:
                known = observation  # for both axes it is not yet known which axis was refused
            decision = decide(observation, self._records[key].memo)
            self._telemetry.decided(key, decision, objects.workload)
        assert refused is not None
        raise _Failed("PatchWorkload", refused, decision)

    async def _send_patch(
        self, key: Key, hvpa: Meta, decision: Decision, write: PatchWrite
    ) -> Refused | None:
        """Sends the patch of the workload by `write`, if there is one. Returns the refusal of the cluster, if any."""
        if decision.workload_patch is None:
            return None
        try:
            with _writing("PatchWorkload", decision):
                await write(hvpa, decision.workload_patch)
        except _Failed as failed:
            if not isinstance(failed.error, Refused):
                raise
            log.info("write refused", operation="PatchWorkload", error=str(failed))
            self._telemetry.write_failed(key, "PatchWorkload", "failed")
            return failed.error
        return None

    async def _act_in_place(
        self, key: Key, objects: Objects, observation: Observation, decision: Decision
    ) -> tuple[Decision, bool]:
        """Writes the desired size and the replicas, then resizes pods, raises first. Failed writes are retried later,
        from the status at that time.

        Returns the decision as far as it was carried out, and whether the API server refused resizes, which requires
        another decision.
        """
        decision, unsized = await self._write_size(key, objects, observation, decision)
        failures = await self._resize_pods(key, objects.hvpa, decision)
        all_failed = bool(decision.resizes) and len(failures) == len(decision.resizes)
        done = self._records[key].carried_out(decision, all_failed)
        if done is not None:
            self._report_applied(key, objects.workload, done)
        if decision.applied:
            decision = done or as_far_as(observation, decision, frozenset())
        elif done is not None:
            await self._record_events(objects.hvpa, done.events[:STEP_EVENTS])
        failed = next((error for _, error in failures if not isinstance(error, Refused)), None)
        unwritten = unsized if failed is None else _Failed("ResizePods", failed)
        if unwritten is not None:
            await self._record_events(objects.hvpa, decision.events)
            raise unwritten
        self._records[key].step = None
        return decision, bool(failures)

    async def _write_size(
        self, key: Key, objects: Objects, observation: Observation, decision: Decision
    ) -> tuple[Decision, _Failed | None]:
        """Writes the status, the sizes of new pods, and the replicas. Returns the decision that the API server
        accepted, and the failure to write the sizes, if any.

        The status is written first and must not contain replicas that the API server refuses. Therefore a dry run
        checks them before. Only the replicas of `hvpa undo` are written before it: they depend on the present replicas,
        so a conflict after the status would lose them.
        """
        refused: Refused | None = None
        for _ in range(MOST_PATCHES):
            check = self._cluster.check_workload_patch
            observation, decision = await self._agreed(key, objects, observation, decision, check)
            self._records[key].begin_step(observation, decision)
            size, view, write = decision.status.desired, decision.replicas, self._cluster.patch_workload
            is_undo = size is not None and view is not None and size.replicas > view.target
            refused = await self._send_patch(key, objects.hvpa.metadata, decision, write) if is_undo else None
            if refused is None:
                unsized = await self._write_status_and_sizes(key, objects.hvpa, decision)
                await self._write_pod_costs(key, objects.hvpa, decision)
                if not is_undo:
                    refused = await self._send_patch(key, objects.hvpa.metadata, decision, write)
                if refused is None:
                    return decision, unsized
            self._records[key].step = None
            if not decision.patched:
                break
            observation = _without_refused(observation, decision, refused)
            decision = decide(observation, self._records[key].memo)
            self._telemetry.decided(key, decision, objects.workload)
        assert refused is not None
        raise _Failed("PatchWorkload", refused, decision)

    async def _write_status_and_sizes(self, key: Key, hvpa: HvpaObject, decision: Decision) -> _Failed | None:
        """Writes the status and the sizes of new pods. Returns the failure to write the sizes, if any. Nothing else
        waits for them, because new pods without them are resized as soon as they run."""
        latest = self._cluster.objects(key)
        hvpa, status = hvpa if latest is None else latest.hvpa, decision.status
        if hvpa.status.last_error is not None and (decision.workload_patch or decision.resizes):
            status = still_failing(status, hvpa.status)  # until the writes succeed
        await self._write_status(hvpa, status)
        if decision.creation_sizes:
            try:
                await self._write_creation_sizes(hvpa.metadata, decision.creation_sizes)
            except _Failed as failed:
                return failed
        return None

    async def _write_pod_costs(self, key: Key, hvpa: HvpaObject, decision: Decision) -> None:
        """Writes deletion costs of pods. Nothing waits for them: without them, a ReplicaSet deletes pods by its own
        rules. The first failure is reported by an Event."""
        record, now = self._records[key], self._clock.now()
        if not decision.costs or (record.costs_after is not None and now < record.costs_after):
            return
        errors = await self._cluster.write_pod_costs(hvpa.metadata, decision.costs)
        is_first = record.add_costs(now, failed=bool(errors))
        if not errors:
            return
        self._telemetry.write_failed(key, "WritePodCosts", "failed")
        if not is_first:
            log.debug("write failed", operation="WritePodCosts", error=str(errors[0]))
            return
        log.warning("write failed", operation="WritePodCosts", error=str(errors[0]))
        why = f"podDeletionCost has no effect without the right to patch pods (config/deletion-cost): {errors[0]}"
        if not isinstance(errors[0], Refused):
            why = f"podDeletionCost has no effect for now: {errors[0]}"
        event = Event("Warning", WRITE_FAILED, one_line(why, MAX_DESCRIPTION))
        await self._cluster.record_event(hvpa.metadata, event)

    async def _resize_pods(self, key: Key, hvpa: HvpaObject, decision: Decision) -> ResizeFailures:
        """Resizes the pods. Returns the failed resizes with their errors."""
        if not decision.resizes:
            return ()
        failures = await self._cluster.resize_pods(hvpa.metadata, decision.resizes)
        now, failed = self._clock.now(), {resize.uid for resize, _ in failures}
        by_api_server = [
            RefusedResize(
                resize.uid,
                resize.body,
                str(error),
                now,
                count=MOST_REFUSALS if isinstance(error, NodeTooSmall) else 1,
                of_any_size=isinstance(error, NotServed),
                of_start=resize.of_start,
            )
            for resize, error in failures
            if isinstance(error, Refused)
        ]
        by_kubelet = [
            refusal for resize in decision.resizes if resize.uid not in failed for refusal in resize.refused
        ]
        self._records[key].add_refused([*by_api_server, *by_kubelet])
        for resize, failure in failures:
            log.info("resize failed", pod=resize.pod, error=str(failure))
        return failures

    async def _write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        with _writing("WriteCreationSizes"):
            await self._cluster.write_creation_sizes(hvpa, changes)

    async def _write_decision(self, key: Key, hvpa: HvpaObject, decision: Decision) -> None:
        """Writes the rest after the workload, in DESIGN's order: status, `spec.replicas`, owned objects, events."""
        try:
            await self._write_rest(key, hvpa, decision)
        except _Failed as failed:
            # The next decision starts from the writes so far and does not repeat their events.
            if decision.workload_patch is not None or failed.operation != "PatchStatus":
                await self._record_events(hvpa, decision.events)
            raise
        await self._record_events(hvpa, decision.events)

    async def _write_rest(self, key: Key, hvpa: HvpaObject, decision: Decision) -> None:
        # An earlier error is removed only after all writes have succeeded.
        first = decision.status
        if hvpa.status.last_error is not None and (decision.scale_replicas is not None or decision.owned):
            first = still_failing(decision.status, hvpa.status)
        await self._write_status(hvpa, first)
        if decision.scale_replicas is not None:
            with _writing("WriteScaleReplicas"):
                await self._cluster.write_scale_replicas(hvpa.metadata, decision.scale_replicas)
        await self._change_owned(hvpa, decision)
        if first is not decision.status and (latest := self._cluster.objects(key)) is not None:
            await self._write_status(latest.hvpa, decision.status)

    async def _change_owned(self, hvpa: HvpaObject, decision: Decision) -> None:
        """Writes HPAs and VPAs. After a refused write, the other kind is written all the same, and all adopted objects
        are returned. Then the first refusal is raised."""
        refused: dict[str, _Failed] = {}
        for change in decision.owned:
            if change.kind in refused and change.action != "return":
                continue
            try:
                with _writing("ChangeOwned"):
                    await self._cluster.change_owned(hvpa.metadata, change)
            except _Failed as failed:
                if not isinstance(failed.error, Refused):
                    raise
                refused.setdefault(change.kind, failed)
            else:
                log.info("owned object changed", action=change.action, kind=change.kind, object=change.name)
        if refused:
            raise next(iter(refused.values()))

    async def _write_status(self, hvpa: HvpaObject, status: HvpaStatus) -> None:
        patch = StatusPatch(hvpa, status)
        if not patch.fields:
            return
        log.debug("status", fields=patch.fields)
        with _writing("PatchStatus"):
            await self._cluster.patch_status(hvpa.metadata, patch, status)
        log_transitions(hvpa, status)

    async def _record_events(self, hvpa: HvpaObject, events: Sequence[Event]) -> None:
        for event in events:
            await self._cluster.record_event(hvpa.metadata, event)

    async def _after_failure(self, key: Key, failure: Exception) -> ReconcileResult:
        if isinstance(failure, _Failed):
            return await self._after_failed_write(key, failure)
        log.exception("reconcile crashed")
        self._telemetry.write_failed(key, "Decide", "crashed")
        await self._report_error(key, "Decide", f"internal error: {type(failure).__name__}: {failure}")
        return ReconcileResult("crashed")

    async def _after_failed_write(self, key: Key, failed: _Failed) -> ReconcileResult:
        operation, error = failed.operation, failed.error
        if isinstance(error, Conflict):
            return await self._after_conflict(key, failed)
        if isinstance(error, Overloaded):
            log.debug("API server is overloaded", operation=operation, retry_after=error.retry_after)
            self._telemetry.write_failed(key, operation, "overloaded")
            return ReconcileResult("overloaded", error.retry_after)
        # `log_transitions` logs errors when the status reports them, not at each try.
        is_unreported = operation == "PatchStatus" or self._cluster.objects(key) is None
        level = logging.WARNING if is_unreported else logging.INFO
        log.log(level, "write failed", operation=operation, error=str(error))
        self._telemetry.write_failed(key, operation, "failed")
        is_passing = isinstance(error, Unavailable) and self._counted(key) < REPORTED_AFTER
        if operation != "PatchStatus" and not is_passing:
            await self._report_error(key, operation, str(error), failed.decision)
        return ReconcileResult("failed", is_unanswered=isinstance(error, Unavailable))

    async def _after_conflict(self, key: Key, failed: _Failed) -> ReconcileResult:
        """Reads and decides again after a conflict. Repeated conflicts are reported in the status. Repeated conflicts
        of the status itself are reported by an Event and in the log."""
        operation, error = failed.operation, failed.error
        log.debug("conflict", operation=operation, error=str(error))
        self._telemetry.write_failed(key, operation, "conflict")
        count = self._counted(key)
        why = f"repeated conflicts: another client changes the object, or the operator's cache is behind: {error}"
        if operation != "PatchStatus":
            if count >= CONFLICTS_REPORTED_AFTER:
                await self._report_error(key, operation, why, failed.decision)
        elif count == CONFLICTS_REPORTED_AFTER and (objects := self._cluster.objects(key)) is not None:
            log.warning("write failed", operation=operation, error=why)
            event = Event("Warning", WRITE_FAILED, advised(WRITE_FAILED, f"{operation}: {why}"))
            await self._cluster.record_event(objects.hvpa.metadata, event)
        return ReconcileResult("conflict")

    def _counted(self, key: Key) -> int:
        """Counts a failed write of an Hvpa. Returns the number of failures in a row."""
        self._records[key].failures += 1
        return self._records[key].failures

    async def _report_error(
        self, key: Key, operation: Operation, description: str, decision: Decision | None = None
    ) -> None:
        """Writes the error into the decided status, so that the rest of the status is up to date. Without a decision,
        it writes the error into the current status. There is no Event for an error that the status already has."""
        description = one_line(description, MAX_DESCRIPTION)
        try:
            objects = self._cluster.objects(key)
            if objects is None:
                return
            before = status = objects.hvpa.status
            if decision is not None:
                status = unapplied_status(before, decision.status, {axis for axis, _ in decision.applied})
            failed = failed_status(before, status, operation, description, self._clock.now())
            await self._write_status(objects.hvpa, failed)
            is_known = failed.last_error == before.last_error
            ready = (
                []
                if is_known
                else [condition for condition in failed.conditions if condition.type == "Ready"]
            )
            for condition in [*ready, *(begun for begun in entered(before, failed) if begun.type != "Ready")]:
                meta, spec = objects.hvpa.metadata, objects.hvpa.spec
                event = Event(
                    "Warning", condition.reason, advised(condition.reason, condition.message, meta, spec)
                )
                await self._cluster.record_event(meta, event)
        except _Failed as again:
            log.debug("error not reported in the status", error=str(again))
        except Exception:
            log.exception("error not reported in the status")

    def _report_blocked(self, key: Key, old: HvpaStatus, decision: Decision) -> None:
        for blocked in newly_blocked(old, decision.blocked):
            self._telemetry.blocked(key, blocked)
            log.debug(
                "scaling blocked",
                axis=blocked.axis,
                direction=blocked.direction,
                reason=blocked.reason,
                until=blocked.until,
            )

    def _report_applied(self, key: Key, workload: Workload | None, decision: Decision) -> None:
        for axis, direction in decision.applied:
            self._telemetry.applied(key, axis, direction)
        if decision.reported:
            self._telemetry.raised_fast(key)
        if workload is not None and decision.applied:
            step = next(event.message for event in decision.events if event.involved is None)
            log.info("scaled", kind=workload.kind, target=workload.metadata.name, step=step)


def _without_refused(observation: Observation, decision: Decision, refused: Refused) -> Observation:
    """Returns the observation with the refused part of the workload's patch. For a patch of both axes, this is the
    requests."""
    assert isinstance(observation, ScalableObservation), "HVPA patches only what it can scale"
    return with_refusal(
        observation, decision, "vertical" if "vertical" in decision.patched else "horizontal", str(refused)
    )


def is_quiet(decision: Decision) -> bool:
    """Whether a decision requires no write, except possibly of the status."""
    writes = (decision.resizes, decision.costs, decision.creation_sizes, decision.owned, decision.events)
    return decision.workload_patch is None and decision.scale_replicas is None and not any(writes)


def log_transitions(hvpa: HvpaObject, after: HvpaStatus) -> None:
    """Logs the transitions to the status `after`, once it is written: a line for each condition that begins to need
    action, and a line when that ends. Lines are not repeated, not even after a restart."""
    before = hvpa.status
    if after.conditions is before.conditions:
        return
    for was, now in left(before, after):
        message = f"{was.reason} is over: {now.type} is {now.status}, {now.reason}"
        log.info(message, condition=now.type, was=was.reason)
    for condition in entered(before, after):
        message = (
            f"{condition.reason}: {advised(condition.reason, condition.message, hvpa.metadata, hvpa.spec)}"
        )
        log.warning(message, condition=condition.type, reason=condition.reason)
