"""What must be so at all times of a soak, judged write by write.

- One writer: what an Hvpa asks for is written by the process that holds the Lease that the Hvpa falls under (that of
  its shard, or the one Lease of a leader), or that held it when the write came. There are two exceptions. Events say
  what was done and change nothing. And a process that is stopped between looking at its Lease and sending sends when it
  goes on: such a write is conditional on the very version that it was decided on, so no other client has written since.
- No step without a recommendation: what a step was blended from, by the record that it leaves on the workload, was
  recommended before.
- No step twice: of one recommendation there is one step on an axis, unless another client changed the workload since.
  (Desired replicas that are left standing for a minute on a settled workload count as measured anew.)
- Replicas are within their bounds, and a step leads where the recommendation says.
- Of writes for hostile Hvpas only the sender is judged: how those are scaled is nobody's business."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from hvpa.api.values.quantity import parse_cpu
from hvpa.api.values.timestamp import parse_timestamp
from hvpa.core.model import LAST_APPLIED
from tests.e2e.soak.audit_trail import Write
from tests.e2e.soak.controllers import Controllers
from tests.e2e.soak.leases import Leases
from tests.e2e.soak.objects import Class, Place, Role, place_of
from tests.e2e.soak.plan import LEAST, MOST

MEASURED_ANEW = 60.0
"""Seconds from one decision to the next, by the records of both steps, after which the same desired replicas on a
settled workload speak of the count that stands (DESIGN 5.2). A write may arrive long after its decision: one that is
lost is sent again."""
WORKLOADS = ("deployments", "statefulsets")
THAWING = 5.0
"""Seconds after a process goes on in which what it was about to send arrives."""
CLOSE = 2.0
"""Seconds within which two answers may stand in the audit log the other way round."""


@dataclass(slots=True)
class _Step:
    """What an axis was last set to, from which recommendation, when that was decided, and when it was answered (both in
    seconds of the epoch)."""

    recommended: str
    result: str
    decided: float
    at: float


@dataclass(slots=True)
class _Suspect:
    place: Place
    begin: float
    end: float
    text: str


@dataclass
class Checker:
    """Fed with every write, in order. `operators` are the credentials of operator processes, with their names."""

    controllers: Controllers
    roles: dict[Place, Role]
    operators: dict[str, str]
    leases: Leases = field(default_factory=Leases)
    hostile: frozenset[Place] = frozenset()
    """Hvpas of the hostile tenant."""
    found: list[str] = field(default_factory=list)
    """What was not as it must be."""
    writes: Counter[str] = field(default_factory=Counter)
    """Writes of the operators, by what."""
    thaws: list[tuple[str, float]] = field(default_factory=list)
    """When which process (a credential) went on after it had been stopped."""
    late_sends: int = 0
    """Conditional writes of processes that were stopped as they were about to send them."""
    late_events: int = 0
    """Events that a process wrote without holding the Lease any more."""
    _steps: dict[tuple[Place, str], _Step] = field(default_factory=dict)
    _edits: dict[Place, list[float]] = field(default_factory=lambda: defaultdict(list))
    _suspects: list[_Suspect] = field(default_factory=list)

    def feed(self, write: Write) -> None:
        """Judge one write."""
        place = (write.namespace, write.name)
        if write.credential not in self.operators:
            if write.resource in WORKLOADS and place in self.roles:
                self._edited(place, write.answered)
            return
        self.writes[f"{write.verb} {write.resource}"] += 1
        if write.resource == "leases":
            self.leases.note(write)
            return
        self._fenced(write)
        if write.resource in WORKLOADS and place in self.roles:
            self._step(place, write)

    def violations(self) -> list[str]:
        """All that was found so far, but for what an edit at the same time explains."""
        left = [
            suspect.text
            for suspect in self._suspects
            if not any(
                suspect.begin - CLOSE <= at <= suspect.end + CLOSE for at in self._edits[suspect.place]
            )
        ]
        return self.found + left

    def _edited(self, place: Place, at: float) -> None:
        self._edits[place].append(at)
        for axis in ("horizontal", "vertical"):
            self._steps.pop((place, axis), None)

    def _fenced(self, write: Write) -> None:
        place = place_of(write.namespace, write.name)
        if place not in self.roles and place not in self.hostile:
            self.found.append(f"{write} concerns none of the Hvpas")
            return
        problem = self.leases.problem(place, write)
        if problem is None:
            return
        if write.resource == "events":
            self.late_events += 1
            return
        if _is_conditional(write) and any(
            who == write.credential and 0 <= write.received - at < THAWING for who, at in self.thaws
        ):
            self.late_sends += 1
            return
        when = f"{dt.datetime.fromtimestamp(write.received, dt.UTC):%H:%M:%S.%f}"
        lease, holder = problem.lease, self.operators.get(problem.holder, problem.holder or "no process")
        late = "never held it" if problem.late is None else f"had lost it {problem.late:.3f} s before"
        who = self.operators[write.credential]
        self.found.append(f"{who} sent {write} at {when}: {holder} held the Lease {lease}, {who} {late}")

    # --- steps -------------------------------------------------------------------------------------------------------
    def _step(self, place: Place, write: Write) -> None:
        body = write.body or {}
        annotation = body.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED)
        if annotation is None:
            self.found.append(f"{write} without the annotation that says what it follows from")
            return
        record, spec = json.loads(annotation), body.get("spec", {})
        axes = self.roles[place].axes
        if "replicas" in spec:
            self._replicas(place, write, int(spec["replicas"]), record["horizontal"], axes)
        for container in spec.get("template", {}).get("spec", {}).get("containers", []):
            requests = container.get("resources", {}).get("requests", {})
            for spent in record["vertical"].get("appliedFrom", []):
                if spent["resource"] in requests:
                    self._request(place, write, requests[spent["resource"]], spent, axes)

    def _replicas(self, place: Place, write: Write, count: int, record: dict[str, Any], axes: Class) -> None:
        desired = int((record.get("appliedFrom") or {}).get("desired", 0))
        decided = parse_timestamp(record["lastScaleTime"]).timestamp()
        if not LEAST <= count <= MOST:
            self.found.append(f"{write}: {count} replicas")
        if self.controllers.recommended[place, "replicas"].get(desired, write.answered) >= write.answered:
            self.found.append(f"{write}: the HPA never wanted {desired} replicas")
        if axes == "horizontal" and count != desired:
            self.found.append(f"{write}: {count} replicas, but the HPA wants {desired}")
        self._once(
            place,
            "horizontal",
            write,
            _Step(str(desired), str(count), decided, write.answered),
            MEASURED_ANEW,
        )

    def _request(self, place: Place, write: Write, request: str, spent: dict[str, Any], axes: Class) -> None:
        target = parse_cpu(spent["target"])
        if self.controllers.recommended[place, "target"].get(target, write.answered) >= write.answered:
            self.found.append(f"{write}: the VPA never recommended {target}m")
        if axes == "vertical" and parse_cpu(request) != target:
            self.found.append(f"{write}: {request}, but the VPA recommends {target}m")
        step = _Step(str(target), request, write.answered, write.answered)
        self._once(place, "vertical", write, step, float("inf"))

    def _once(self, place: Place, axis: str, write: Write, step: _Step, within: float) -> None:
        before = self._steps.get((place, axis))
        self._steps[place, axis] = step
        if before is None or before.recommended != step.recommended or before.result == step.result:
            return
        if step.decided - before.decided < within:
            text = f"{axis} step to {step.result} from {step.recommended}, after one to {before.result} from the same"
            self._suspects.append(_Suspect(place, before.at, step.at, f"{write}: {text}"))


def _is_conditional(write: Write) -> bool:
    return "resourceVersion" in (write.body or {}).get("metadata", {})
