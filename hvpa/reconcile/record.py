"""The record of one Hvpa between reconciles. It is in memory only: a process begins with an empty record when it
starts, and when it gains the Hvpa's shard.

The reconciler drops the record together with the Hvpa, so nothing about a deleted Hvpa is left.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from msgspec import structs

from hvpa.core.actuation.pod import by_pod
from hvpa.core.deciding import as_far_as
from hvpa.core.gates.backoff import refusal_wait
from hvpa.core.model import DELETION_COST, Axis, Decision, MemoryUse, Objects, Observation, RefusedResize
from hvpa.core.rules import highest_demand
from hvpa.core.values.lately import Lately
from hvpa.core.values.memo import Memo
from hvpa.core.values.tuning import USE_COUNTS


class UnreportedStep(NamedTuple):
    """A decided step of a workload whose pods are resized in place. The status stores the step before HVPA acts, so it
    survives a restart. HVPA reports it (log, Event, metrics) once the API server has accepted its writes, possibly
    after retries. If the API server refuses one axis, HVPA reports the other axis alone."""

    observation: Observation
    """The observation that the decision is based on."""
    decision: Decision
    open: frozenset[Axis]
    """Axes on which the step is not reported yet."""


@dataclass(slots=True, eq=False)
class Record:
    """All that the reconciler stores about an Hvpa."""

    memo: Memo = field(default_factory=Memo)
    """Earlier results of the decision's functions."""
    failures: int = 0
    """Number of failed writes in a row."""
    refused: tuple[RefusedResize, ...] = ()
    """Resizes of pods that the API server or a kubelet refused."""
    memory_use: MemoryUse | None = None
    """The pods' memory usage, for a minute."""
    lately: Lately | None = None
    """Recent demand by metrics, if pods are resized in place."""
    step: UnreportedStep | None = None
    """The step that is not reported yet."""
    costs_failed: int = 0
    """Number of failed writes of deletion costs in a row."""
    costs_after: dt.datetime | None = None
    """When deletion costs are written again after a failure."""
    is_judged: bool = False
    """The metrics that judge its canaries are read."""
    in_trial: bool = False
    """They judge a trial at present."""
    is_polled: bool = False
    """The kubelets of its pods are polled."""
    last: Objects | None = None
    """Its objects as of the last decision, if its pods may have startup boosts or deletion costs, which HVPA removes
    when the Hvpa is deleted."""

    def added_to(self, objects: Objects, now: dt.datetime) -> Objects:
        """Returns the objects with refused resizes, memory usage, and recent demand by metrics.

        A refusal expires if HVPA has not requested the same resize again within twice its wait, because sizes change
        with demand.
        """
        spec = objects.hvpa.spec
        if spec is None or not (spec.joint and spec.strategy.in_place):
            self.lately = None
        else:
            self.lately = self.lately or Lately(now)
            objects = replace(objects, lately=self.lately)
        if self.memory_use is not None and now - self.memory_use.time >= USE_COUNTS:
            self.memory_use = None
        if self.memory_use is None and not self.refused:
            return objects
        uids = {pod.metadata.uid for pod in objects.pods}
        left = tuple(
            [
                refusal
                for refusal in self.refused
                if refusal.uid in uids and now - refusal.time < 2 * refusal_wait(refusal.count)
            ]
        )
        if len(left) < len(self.refused):
            self.refused = left
        return replace(objects, memory_use=self.memory_use, refused_resizes=self.refused)

    def keep(self, objects: Objects, decision: Decision) -> None:
        """Stores the objects if a deleted Hvpa would leave boosts or deletion costs in its pods."""
        spec = objects.hvpa.spec
        marks = spec is not None and spec.strategy.pod_deletion_cost != "Never"
        has_costs = marks and any(DELETION_COST in pod.metadata.annotations for pod in objects.pods)
        self.last = objects if has_costs or decision.status.boosts else None

    def add_costs(self, now: dt.datetime, *, failed: bool) -> bool:
        """Stores whether a write of deletion costs failed: the next is a minute later, then two, up to an hour. Returns
        whether this is the first failure."""
        self.costs_failed = self.costs_failed + 1 if failed else 0
        self.costs_after = now + refusal_wait(self.costs_failed) if failed else None
        return self.costs_failed == 1

    def add_refused(self, refused: Sequence[RefusedResize]) -> None:
        """Stores refusals. The same resize of a pod, refused again, counts once more."""
        known = by_pod(self.refused)
        for refusal in refused:
            same = [old for old in known.get(refusal.uid, ()) if old.body == refusal.body]
            others = [old for old in known.get(refusal.uid, ()) if old.body != refusal.body]
            used = dict(chain(*[old.used.items() for old in same], refusal.used.items()))
            count = refusal.count + sum(old.count for old in same)
            known[refusal.uid] = [*others, structs.replace(refusal, count=count, used=used)]
        self.refused = tuple(chain.from_iterable(known.values()))

    def add_demand(self, objects: Objects, decision: Decision, now: dt.datetime) -> None:
        """Stores the demand by metrics, if decisions use its recent maximum."""
        if objects.lately is not None and objects.hvpa.spec is not None and decision.called_for is not None:
            self.lately = objects.lately.then(
                decision.called_for, now, highest_demand(objects.hvpa.spec).duration
            )

    def begin_step(self, observation: Observation, decision: Decision) -> None:
        """Stores the step of a decision, if it makes one. It replaces an earlier step."""
        if decision.applied:
            self.step = UnreportedStep(
                observation, decision, frozenset([axis for axis, _ in decision.applied])
            )

    def carried_out(self, decision: Decision, only_scaled: bool) -> Decision | None:
        """Returns the decision with the step to report now, because the API server accepted the writes of `decision`,
        which may be a later decision. With `only_scaled` the API server accepted only the replicas. None if there is no
        step."""
        if self.step is None:
            return None
        done: set[Axis] = set() if only_scaled else {"vertical"}
        was, now = self.step.decision.replicas, decision.replicas
        if was is not None and now is not None and was.target == now.target:
            done.add("horizontal")
        if not (reported := self.step.open & done):
            return None
        self.step = self.step._replace(open=self.step.open - reported)
        return as_far_as(self.step.observation, self.step.decision, reported)
