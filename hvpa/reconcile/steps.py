"""Steps of workloads whose pods are resized in place: decided, written to the status, and not yet carried out.

The status has a step before anything is acted upon, so that it survives the operator. It is reported (in the log, as an
Event, in metrics) once the API server has taken its writes, which may be after some tries, and on each axis alone where
the other one is refused. Only that report is kept here, and a process that ends takes it along."""

from __future__ import annotations

from typing import NamedTuple

from hvpa.core.deciding import as_far_as
from hvpa.core.model import Axis, Decision, Observation
from hvpa.reconcile.ports import Key


class Step(NamedTuple):
    """A decision with a step, what it was made of, and the axes on which the step is not reported yet."""

    seen: Observation
    decision: Decision
    open: frozenset[Axis]


class Steps:
    """The steps that are not reported yet, by Hvpa."""

    def __init__(self) -> None:
        self._steps: dict[Key, Step] = {}

    def begin(self, key: Key, seen: Observation, decision: Decision) -> None:
        """Note the step of a decision, if it makes one; it takes the place of an earlier one."""
        if decision.applied:
            self._steps[key] = Step(seen, decision, frozenset([axis for axis, _ in decision.applied]))

    def carried_out(self, key: Key, decision: Decision, only_scaled: bool) -> Decision | None:
        """The decision with the step that must be reported now, since the API server took the writes of `decision`,
        which may be a later one; with the replicas alone if it took only these (`only_scaled`). None: no step."""
        step = self._steps.get(key)
        if step is None:
            return None
        done: set[Axis] = set() if only_scaled else {"vertical"}
        was, now = step.decision.replicas, decision.replicas
        if was is not None and now is not None and was.target == now.target:
            done.add("horizontal")
        if not (reported := step.open & done):
            return None
        self._steps[key] = step._replace(open=step.open - reported)
        return as_far_as(step.seen, step.decision, reported)

    def forget(self, key: Key) -> None:
        """Report nothing more of a step: it was refused, or is done."""
        self._steps.pop(key, None)
