"""Whether the demo showed what it must show: from the writes that the API server logged to a summary and an exit code.
Pure: requests in, verdict out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from demo.outcome import Rivals, beside_simulated, size
from demo.scenario import Course, State
from demo.snapshot import Resources, Snapshot, clock, cpu, memory, resources

Direction = Literal["out", "up", "in", "down"]
DIRECTIONS: tuple[Direction, ...] = ("out", "up", "in", "down")
_RISING = frozenset({"out", "up"})
# The only permitted writers of the recommenders' status: the HPA controller and the VPA recommender themselves.
_RECOMMENDERS = {
    "HPA": "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
    "VPA": "vpa-recommender",
}


@dataclass(frozen=True, slots=True)
class Write:
    """An accepted write to the Deployment: its writer, its time (seconds since the load began to count), the part that
    it changed (`subresource`), and its body."""

    user: str
    seconds: float
    subresource: str
    body: Any


@dataclass(frozen=True, slots=True)
class Step:
    """A scaling in a single direction."""

    direction: Direction
    seconds: float
    what: str


def changes(before: State, after: State, seconds: float) -> list[Step]:
    """The steps from a state to the next: replicas, raised resources and lowered resources, if they differ."""
    steps: list[Step] = []
    if after.replicas != before.replicas:
        direction: Direction = "out" if after.replicas > before.replicas else "in"
        steps.append(Step(direction, seconds, f"{before.replicas} to {after.replicas} replicas"))
    texts: dict[Direction, list[str]] = {}
    for name, show in (("cpu", cpu), ("memory", memory)):
        old, new = getattr(before.requests, name), getattr(after.requests, name)
        if old is not None and new is not None and old != new:
            texts.setdefault("up" if new > old else "down", []).append(f"{name} {show(old)} to {show(new)}")
    return steps + [Step(direction, seconds, ", ".join(parts)) for direction, parts in sorted(texts.items())]


def state_of(snapshot: Snapshot) -> State:
    """The governed part of a snapshot."""
    return State(snapshot.replicas, snapshot.requests)


def states(start: State, writes: Iterable[Write]) -> list[tuple[float, State]]:
    """The state after each write (and the first state, at second 0), from the bodies of the patches."""
    course = [(0.0, start)]
    for write in writes:
        course.append((write.seconds, _patched(course[-1][1], write.body or {})))
    return course


def _patched(state: State, body: Mapping[str, Any]) -> State:
    spec = body.get("spec") or {}
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or [{}]
    sent = resources((containers[0].get("resources") or {}).get("requests") or {})
    return State(
        replicas=spec.get("replicas", state.replicas),
        requests=Resources(
            state.requests.cpu if sent.cpu is None else sent.cpu,
            state.requests.memory if sent.memory is None else sent.memory,
        ),
    )


@dataclass(frozen=True, slots=True)
class Evidence:
    """The input of the verdict. `writes` are the writes to the Deployment since it was created, without its status;
    `hpa_writers` and `vpa_writers` are the writers of the recommenders' status. Times are seconds since the load began
    to count: `rise` when it begins to rise, `fall` when it begins to fall; `gave_up_early` if the fall was not watched
    to its end."""

    start: State
    writes: Sequence[Write]
    operator: str
    hpa_writers: Counter[str]
    vpa_writers: Counter[str]
    rise: float
    fall: float
    gave_up_early: bool = False
    seen: Sequence[Snapshot] = ()
    rivals: Rivals | None = None
    course: Course = ()
    """The observed states with their times, if pods are resized in place: no write to the Deployment has their
    sizes."""
    resizes: Counter[str] | None = None
    """The writers of resizes, and their number; None if pods are replaced."""
    restarts: int = 0
    """Containers that restarted, and pods that were replaced for another size."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome: good when `faults` is empty."""

    steps: tuple[Step, ...]
    faults: tuple[str, ...]
    summary: tuple[str, ...] = field(default=())
    outcome: tuple[str, ...] = field(default=())
    """The last screen."""

    @property
    def exit_code(self) -> int:
        """0 if the workload was scaled all four ways and returned to its initial state, only by the operator and by
        real recommendations."""
        return 1 if self.faults else 0


def missing(steps: Iterable[Step], rise: float, fall: float) -> list[Direction]:
    """The directions that were not observed in their time: out and up once the load rises, in and down once it
    falls."""
    observed = {
        step.direction for step in steps if step.seconds >= (rise if step.direction in _RISING else fall)
    }
    return [direction for direction in DIRECTIONS if direction not in observed]


def judge(evidence: Evidence) -> Verdict:
    """The verdict with its summary."""
    own = [write for write in evidence.writes if write.user == evidence.operator]
    course = evidence.course or states(evidence.start, own)
    steps = [
        step
        for (_, before), (seconds, after) in itertools.pairwise(course)
        for step in changes(before, after, seconds)
    ]
    faults = [_why_not(direction, evidence) for direction in missing(steps, evidence.rise, evidence.fall)]
    if not faults and not course[-1][1].is_as(evidence.start):
        faults.append(f"not back where it began, at {size(evidence.start)}: {size(course[-1][1])}")
    strangers = Counter(write.user for write in evidence.writes if write.user != evidence.operator)
    faults += [
        f"the Deployment was also written by {user} ({_times(count)})" for user, count in strangers.items()
    ]
    if evidence.resizes is not None:
        if evidence.restarts:
            faults.append(f"pods restarted {_times(evidence.restarts)}, although they are resized in place")
        if others := sorted(evidence.resizes.keys() - {evidence.operator}):
            faults.append(f"pods were also resized by {', '.join(others)}")
    for name, writers in (("HPA", evidence.hpa_writers), ("VPA", evidence.vpa_writers)):
        if not writers:
            faults.append(f"no recommendation was written into the {name}'s status")
        for user in sorted(writers.keys() - {_RECOMMENDERS[name]}):
            faults.append(f"the {name}'s status was also written by {user}: its recommendation is not real")
    summary = _summary(evidence, [state for _, state in course], steps)
    outcome = beside_simulated(course, evidence.restarts, evidence.rivals) if evidence.rivals else ()
    return Verdict(tuple(steps), tuple(faults), tuple(summary), tuple(outcome))


def _why_not(direction: Direction, evidence: Evidence) -> str:
    """The missing direction, the recommenders' values, and the gate that held it back."""
    if evidence.gave_up_early and direction not in _RISING:
        return f"not scaled {direction}: not waited for, since the rise was not followed"
    reasons = Counter(
        reason
        for snapshot in evidence.seen
        for reason in {entry.reason for entry in snapshot.held if entry.direction == direction}
    )
    looks = len(evidence.seen)
    held = ", ".join(f"{reason} ({count} of {looks} looks)" for reason, count in reasons.most_common())
    why = f"held back by {held}" if held else "nothing was held back"
    return f"not scaled {direction}: {_asked(direction, evidence.seen)}; {why}"


def _asked(direction: Direction, snapshots: Sequence[Snapshot]) -> str:
    if direction in ("out", "in"):
        desired = [snapshot.hpa_desired for snapshot in snapshots if snapshot.hpa_desired is not None]
        amount = f"{min(desired)} to {max(desired)} replicas" if desired else "nothing"
        return f"the HPA asked for {amount}"
    targets = [snapshot.vpa_target.cpu for snapshot in snapshots if snapshot.vpa_target.cpu is not None]
    amount = f"{cpu(min(targets))} to {cpu(max(targets))} of CPU" if targets else "nothing"
    return f"the VPA asked for {amount}"


def _summary(evidence: Evidence, course: Sequence[State], steps: Sequence[Step]) -> Iterable[str]:
    yield f"replicas         {_range([state.replicas for state in course], str)}"
    yield f"CPU request      {_range([state.requests.cpu for state in course], cpu)}"
    yield f"memory request   {_range([state.requests.memory for state in course], memory)}"
    for direction in DIRECTIONS:
        of_it = [step for step in steps if step.direction == direction]
        first = f"  (first at {clock(of_it[0].seconds)}: {of_it[0].what})" if of_it else ""
        yield f"{f'scaled {direction}':<17}{_times(len(of_it))}{first}"
    if evidence.resizes is not None:
        yield f"pods             {_writers(evidence.resizes, 'resized')}"
        yield f"restarts         {evidence.restarts or 'none'}"
    yield f"Deployment       {_writers(Counter(write.user for write in evidence.writes), 'patched')}"
    yield f"HPA's status     {_writers(evidence.hpa_writers, 'written')}"
    yield f"VPA's status     {_writers(evidence.vpa_writers, 'written')}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _range(values: Sequence[Any], show: Any) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{show(min(known))} to {show(max(known))}, {show(known[-1])} at the end"


def _writers(writers: Counter[str], verb: str) -> str:
    if not writers:
        return f"{verb} by no client"
    return ", ".join(f"{verb} {_times(count)} by {user}" for user, count in writers.most_common())
