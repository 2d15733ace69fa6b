"""Steps of workloads whose pods are resized in place: decided, written to the status, and not yet carried out.

The status stores a step before HVPA acts, so that the step survives a restart. HVPA reports the step (log, Event,
metrics) once the API server has accepted its writes, possibly after retries. If the API server refuses one axis, HVPA
reports the other axis alone. This module stores only the pending reports, which are lost when the process ends.
"""

from __future__ import annotations

from typing import NamedTuple

from hvpa.core.deciding import as_far_as
from hvpa.core.model import Axis, Decision, Observation
from hvpa.reconcile.ports import Key


class Step(NamedTuple):
    """A decision with a step."""

    observation: Observation
    """The observation that the decision is based on."""
    decision: Decision
    open: frozenset[Axis]
    """Axes on which the step is not reported yet."""


class Steps:
    """The steps that are not reported yet, by Hvpa."""

    def __init__(self) -> None:
        self._steps: dict[Key, Step] = {}

    def begin(self, key: Key, observation: Observation, decision: Decision) -> None:
        """Stores the step of a decision, if it makes one. It replaces an earlier step."""
        if decision.applied:
            self._steps[key] = Step(observation, decision, frozenset([axis for axis, _ in decision.applied]))

    def carried_out(self, key: Key, decision: Decision, only_scaled: bool) -> Decision | None:
        """Returns the decision with the step to report now, because the API server accepted the writes of `decision`,
        which may be a later decision. With `only_scaled` the API server accepted only the replicas. None if there is no
        step."""
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
        return as_far_as(step.observation, step.decision, reported)

    def forget(self, key: Key) -> None:
        """Drops the step, because it was refused or is done."""
        self._steps.pop(key, None)
