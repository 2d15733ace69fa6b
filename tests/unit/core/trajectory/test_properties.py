"""What holds for joint decisions on every path, at every demand and after every history (DESIGN 5.4, 5.5).

The band. What is there is left alone where it is near: a size within twice the overlap of one that serves the usual
demand, a count while the demand is between HPA's tolerance above the capacity and the overlap below it. So for one and
the same demand D the capacity is between D / 1.1 (or one overlap less, where pods can't be more) and D / (1 - overlap)
and one more replica, whatever was before; at no overlap and no tolerance that would be D and one more replica.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from builders import build
from builders.build import MIB
from hvpa.api.hvpa.status import to_wire
from hvpa.api.values.quantity import Resource
from hvpa.core import Decision
from hvpa.core.model import JointView
from hvpa.core.path.curve import Margin
from hvpa.core.path.path import ResourceKey
from tests.unit.core.trajectory.joint_loop import JointLoop, Setup, amounts, requests, twin, twin_of
from tests.unit.core.trajectory.jointly import Reading, app, external, one_core, state, value, wanted_down

pytestmark = pytest.mark.long

TOLERANCE = 1.1
"""HPA's: so much more than there is calls for nothing."""

GRAIN = 1.02
"""Usual demand is reported in steps of one percent, and is rounded up on each pod."""


@dataclass(frozen=True)
class Case:
    """A setup with what its properties need to know of it: the overlap of CPU as value (millicores) and percentage, the
    largest CPU of a pod (all containers, None: no end), and whether the path has vertical stretches before its last
    count."""

    setup: Setup
    overlap: tuple[int, int]
    most: int | None
    has_vertical_stretches: bool

    def raised(self, demand: float) -> float:
        """The capacity above which replicas are taken away."""
        return max(demand + self.overlap[0], demand / (1 - self.overlap[1] / 100))

    def path_sizes(self, found: JointView, name: str) -> list[int]:
        """The sizes of a container's CPU on the path, at all counts that the overlap allows for the usual demand."""
        usual = {one.key: one.usual for one in found.items if one.usual is not None}
        assert found.usual is not None
        margin = Margin(*self.overlap)
        margins: dict[Resource, Margin] = {"cpu": margin, "memory": Margin(percentage=self.overlap[1])}
        counts = range(found.path.count(usual), found.path.count_in(usual, margins) + 1)
        return [found.path.sizes(count, usual)[ResourceKey(name, "cpu")] for count in counts]

    def near(self, size: int) -> float:
        """How far off a size may be that is left alone."""
        return max(self.overlap[0], size * self.overlap[1] / 100)


# --- strategies ------------------------------------------------------------------------------------------------------
@cache
@st.composite
def paths(draw: st.DrawFn, upper: int) -> tuple[dict[str, Any], bool, int | None]:
    """How to grow, in a spec's fields; whether there are vertical stretches; and the largest pod (None: no end)."""
    if draw(st.integers(0, 2)) == 0:
        counts = sorted(draw(st.sets(st.integers(1, upper), min_size=1, max_size=4)))
        cpu, found = 0, []
        for count in counts:
            cpu += draw(st.integers(200, 3000))
            modes = st.sampled_from(["linear", "linear", "horizontalOnly"])
            found.append(
                {"maxReplicas": count, "maxResources": {"cpu": f"{cpu}m"}, "extrapolation": draw(modes)}
            )
        # What lies beyond the last count is a vertical stretch.
        fields = {"trajectory": {"intervals": found}, "weightBasedScalingIntervals": None}
        return fields, counts[-1] < upper, cpu
    starts = sorted(draw(st.sets(st.integers(2, upper), max_size=2)) | {1})
    weights = [draw(st.sampled_from([0, 20, 30, 50, 67, 80, 100])) for _ in starts]
    ends = [*starts[1:], None]
    rows = [
        {"vpaWeight": weight, "startReplicaCount": start} | ({"lastReplicaCount": end} if end else {})
        for weight, start, end in zip(weights, starts, ends, strict=True)
    ]
    return {"weightBasedScalingIntervals": rows}, 100 in weights, None


@cache
@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A setup of one or two containers."""
    lower = draw(st.integers(1, 3))
    upper = lower + draw(st.integers(1, 25))
    names = draw(st.sampled_from([("app",), ("app",), ("app", "proxy")]))
    fields, has_vertical_stretches, ends = draw(paths(upper))
    overlap = draw(st.sampled_from([(0, 10), (0, 10), (0, 0), (0, 25), (100, 5), (300, 0)]))
    base = draw(st.sampled_from([(0, 0), (0, 0), (0, 20), (150, 0)]))
    first: dict[str, dict[Resource, int]] = {}
    usual: dict[str, dict[Resource, int]] = {}
    for name in names:
        first[name] = {"cpu": draw(st.integers(200, 2000)), "memory": draw(st.integers(64, 2048)) * MIB}
        usual[name] = {"cpu": draw(st.integers(100, 30_000)), "memory": draw(st.integers(64, 40_000)) * MIB}
    most = draw(st.none() | st.integers(2000, 8000))
    policies: list[dict[str, Any]] = [
        {"containerName": name, "minAllowed": amounts({"cpu": one["cpu"]})} for name, one in first.items()
    ]
    if most is not None:
        policies = [one | {"maxAllowed": amounts({"cpu": most})} for one in policies]
    trajectory = {
        **fields.get("trajectory", {}),
        "overlap": {"cpu": _margin(overlap), "memory": {"percentage": overlap[1]}},
        "baseResourcesPerReplica": {"cpu": _margin(base)},
    }
    spec = {
        **fields,
        "blend": "Trajectory",
        "trajectory": trajectory,
        "hpa": {"template": {"spec": {"minReplicas": lower, "maxReplicas": upper}}},
        "vpa": {**_ANY_CHANGE, "template": {"spec": {"resourcePolicy": {"containerPolicies": policies}}}},
    }
    absolute = draw(st.booleans())
    target = min(sum(one["cpu"] for one in first.values()), 700) if absolute else 80
    if most is not None:
        ends = most * len(names) if ends is None else min(ends, most * len(names))
    return Case(Setup(spec, usual, first, target, absolute, base), overlap, ends, has_vertical_stretches)


_NO_THRESHOLD = {"minChange": {"cpu": {"value": "0"}, "memory": {"value": "0"}}}
_ANY_CHANGE = {"scaleUp": _NO_THRESHOLD, "scaleDown": _NO_THRESHOLD}


def _margin(amount: tuple[int, int]) -> dict[str, Any]:
    return {"value": f"{amount[0]}m", "percentage": amount[1]}


@cache
def demands() -> st.SearchStrategy[int]:
    """What the pods together should request now, in millicores."""
    return st.integers(0, 60_000)


@st.composite
def starts(draw: st.DrawFn, case: Case) -> JointLoop:
    """The workload as another client left it."""
    lower, upper = case.setup.bounds
    replicas = draw(st.integers(lower, upper))
    sizes = {
        name: {"cpu": draw(st.integers(100, 8000)), "memory": draw(st.integers(64, 8192)) * MIB}
        for name in case.setup.first
    }
    return JointLoop(case.setup, replicas, sizes)  # type: ignore[arg-type]


@cache
@st.composite
def loops(draw: st.DrawFn) -> tuple[Case, JointLoop]:
    case = draw(cases())
    return case, draw(starts(case))


@cache
def histories() -> st.SearchStrategy[list[int]]:
    return st.lists(demands(), max_size=4)


# --- the band --------------------------------------------------------------------------------------------------------
def check_band(case: Case, loop: JointLoop, demand: int) -> None:
    """Capacity is in the band of the module's docstring, as far as the bounds allow."""
    lower, upper = case.setup.bounds
    work = case.setup.work(loop.sizes)
    capacity = loop.replicas * work
    is_end = loop.replicas == upper or case.has_vertical_stretches
    near = sum(case.near(one["cpu"]) for one in loop.sizes.values()) if is_end else 0
    if loop.replicas < upper or case.most is None:
        least = min(demand / TOLERANCE, demand - near * loop.replicas)
        assert capacity + 2 * loop.replicas >= least, (loop.state, demand)
    if loop.replicas > lower:
        assert capacity - work <= case.raised(demand) + 2 * loop.replicas, (loop.state, demand)


@given(loops(), histories(), demands(), st.sampled_from(["both", "hpa", "vpa"]))
def test_at_rest_capacity_is_in_the_band_and_deciding_again_changes_nothing(
    seen: tuple[Case, JointLoop], history: list[int], demand: int, ahead: str
) -> None:
    """Whichever recommender is `ahead` in measuring anew; also from the status that the API server stored, and for as
    long as nothing happens."""
    case, loop = seen
    for past in history:
        loop.rest(past)
        check_band(case, loop, past)
    if ahead != "both":
        loop.reports_hpa, loop.reports_vpa = ahead == "hpa", ahead == "vpa"
        loop.step(demand)
        loop.step(demand)
        loop.reports_hpa = loop.reports_vpa = True
    loop.rest(demand)
    check_band(case, loop, demand)
    loop.measure(demand)
    first = loop.decide()
    assert (first.workload_patch, first.scale_replicas) == (None, None)
    loop.keep(msgspec.json.encode(to_wire(loop.seen.hvpa.status)))
    assert loop.decide() == first
    loop.take(first)
    loop.measure(demand)
    again = loop.decide()
    assert (again.workload_patch, again.scale_replicas) == (None, None)
    assert to_wire(again.status) == to_wire(first.status)


# --- one demand, one place -------------------------------------------------------------------------------------------
@given(
    loops(),
    st.integers(1, 28),
    st.integers(100, 8000),
    st.lists(st.lists(demands(), max_size=2), min_size=2, max_size=2),
    demands(),
)
def test_the_same_demand_ends_in_the_same_band_whatever_was_before(
    seen: tuple[Case, JointLoop], replicas: int, cpu: int, histories: list[list[int]], demand: int
) -> None:
    """Sizes differ by what is left alone, and counts by what that and the band of the capacity make of it."""
    case, first = seen
    assume(not case.has_vertical_stretches)
    sizes: dict[str, dict[Resource, int]] = {name: {**one, "cpu": cpu} for name, one in first.sizes.items()}
    lower, upper = case.setup.bounds
    second = twin(first, min(max(replicas, lower), upper), sizes)
    for loop, history in zip((first, second), histories, strict=True):
        for past in [*history, demand]:
            loop.rest(past)
    usual = first.decisions[-1].joint
    assert usual is not None
    assert usual.usual is not None
    for name, found in first.sizes.items():
        here, there = found["cpu"], second.sizes[name]["cpu"]
        apart = 2 * case.near(here) + 2 * case.near(there) + 1
        ends = case.path_sizes(usual, name)
        assert abs(here - there) <= apart + max(ends) - min(ends), (first.state, second.state)
    if first.sizes == second.sizes:
        work = case.setup.work(first.sizes)
        band = case.raised(demand) - demand / TOLERANCE
        assert abs(first.replicas - second.replicas) <= band / work + 2


def test_what_measurements_are_rounded_by_replaces_no_pods() -> None:
    """Found by the search: 2 of 22617 millicores, back and forth every six hours, where nothing else is left alone."""
    policy = {"containerName": "app", "minAllowed": {"cpu": "1928m"}}
    spec = {
        "weightBasedScalingIntervals": [{"vpaWeight": 100, "startReplicaCount": 1}],
        "blend": "Trajectory",
        "trajectory": {
            "overlap": {"cpu": _margin((0, 0)), "memory": {"percentage": 0}},
            "baseResourcesPerReplica": {"cpu": _margin((0, 20))},
        },
        "hpa": {"template": {"spec": {"minReplicas": 1, "maxReplicas": 2}}},
        "vpa": {**_ANY_CHANGE, "template": {"spec": {"resourcePolicy": {"containerPolicies": [policy]}}}},
    }
    first: dict[str, dict[Resource, int]] = {"app": {"cpu": 1928, "memory": 64 * MIB}}
    usual: dict[str, dict[Resource, int]] = {"app": {"cpu": 100, "memory": 64 * MIB}}
    loop = JointLoop(Setup(spec, usual, first, 700, True, (0, 20)), 1, usual)
    assert loop.rest(18_090).rollouts == 1


@given(loops(), histories(), demands(), demands())
def test_more_demand_never_takes_less(
    seen: tuple[Case, JointLoop], history: list[int], demand: int, more: int
) -> None:
    case, loop = seen
    for past in history:
        loop.rest(past)
    demand, more = sorted((demand, more))
    before = twin_of(loop)
    loop.measure(demand)
    before.measure(more)
    little, much = loop.decide(), before.decide()
    assert little.replicas is not None
    assert much.replicas is not None
    assert little.joint is not None
    assert much.joint is not None
    few, many = little.joint.wanted, much.joint.wanted
    works = [loop.setup.work(requests(one.sizes)) * one.replicas for one in (few, many)]
    assert works[0] <= works[1] * GRAIN + many.replicas
    # A vertical stretch ends where another replica takes a part of the load from pods that have grown.
    if few.replicas == many.replicas or not case.has_vertical_stretches:
        assert all(size <= many.sizes[key] * GRAIN + 1 for key, size in few.sizes.items())


# --- the way ---------------------------------------------------------------------------------------------------------
@given(loops(), histories(), demands())
def test_pods_are_replaced_once_for_one_decision(
    seen: tuple[Case, JointLoop], history: list[int], demand: int
) -> None:
    """While the reported demand stays, sizes change once, and once more where only larger pods serve what the HPA
    measures of all that there may be; and while pods are replaced, not at all. (Without any overlap, each rounding
    of a measurement is a reason.)"""
    case, loop = seen
    assume(case.overlap != (0, 0))
    for past in history:
        loop.rest(past)
    before = loop.rollouts
    loop.measure(demand)
    loop.take(loop.decide())
    if loop.rollouts > before:
        loop.begin_rollout()
        again = loop.decide()
        assert again.containers == loop.decisions[-1].containers, "while the pods are replaced"
    loop.rest(demand)
    is_end = loop.replicas == loop.setup.bounds[1] or case.has_vertical_stretches
    assert loop.rollouts - before <= 1 + is_end, loop.state


_HOLDS: tuple[dict[str, Any], ...] = (
    {},
    {"updatePolicy": {"updateMode": "Off"}},
    {"stabilizationDuration": "12m"},
    {"stabilizationDuration": "2h"},
    {"maxStep": {"minimum": 1}},
)


@given(loops(), histories(), demands(), st.sampled_from(_HOLDS))
def test_on_the_way_there_are_always_enough_pods(
    seen: tuple[Case, JointLoop], history: list[int], demand: int, hold: dict[str, Any]
) -> None:
    """Of old and new pods the smaller ones count: both are there while pods are replaced. So many as there were, or as
    the demand takes, there are at each time, and where more are held back as well."""
    case, loop = seen
    assume(case.most is None or loop.request <= case.most)
    spec = {**loop.setup.spec, "hpa": {**loop.setup.spec["hpa"], "scaleUp": hold}}
    loop = twin(replace(loop, setup=replace(loop.setup, spec=spec)), *loop.state)
    for past in history:
        loop.rest(past)
    for _ in range(12):
        before = loop.capacity
        old = {name: dict(one) for name, one in loop.sizes.items()}
        changed = loop.step(demand)
        least = loop.replicas * min(case.setup.work(old), case.setup.work(loop.sizes))
        assert least + 2 * loop.replicas >= min(before, demand / TOLERANCE), (old, loop.state)
        if not changed:
            break


# --- any numbers, in any order ---------------------------------------------------------------------------------------
_CPUS = st.sampled_from([None, "0", "1n", "1m", "50m", "1", "7", "1e6", "9e15"])
_MEMORIES = st.sampled_from([None, "0", "1m", "1", "64Mi", "1Gi", "7Gi", "9e18"])
_PERCENT = st.sampled_from([0, 1, 50, 80, 150, 10**6])


def _resources(cpu: str | None, memory: str | None) -> dict[str, str]:
    return {name: one for name, one in (("cpu", cpu), ("memory", memory)) if one is not None}


_SIZES = st.builds(_resources, _CPUS, _MEMORIES)


@st.composite
def metrics(draw: st.DrawFn) -> Reading:
    """A metric with any target and any value, or none."""
    kind = draw(st.sampled_from(["Resource", "ContainerResource", "External"]))
    resource = draw(st.sampled_from(["cpu", "memory"]))
    amount = _CPUS if resource == "cpu" else _MEMORIES
    target, used = draw(amount.filter(bool)), draw(amount)
    name: dict[str, Any] = {"name": resource}
    if kind == "External":
        name = {"metric": {"name": "queue"}}
    elif kind == "ContainerResource":
        name["container"] = draw(st.sampled_from(["app", "side", "gone"]))
    field = kind[0].lower() + kind[1:]
    wanted: dict[str, Any] = {"type": "AverageValue", "averageValue": target}
    current: dict[str, Any] = {} if used is None else {"averageValue": used}
    if kind != "External" and draw(st.booleans()):
        wanted = {"type": "Utilization", "averageUtilization": draw(_PERCENT)}
        current["averageUtilization"] = draw(_PERCENT)
    reported = {"type": kind, field: {**name, "current": current}} if current else None
    return {"type": kind, field: {**name, "target": wanted}}, reported, Fraction(1)


def _measures(one: Reading) -> tuple[object, ...]:
    """What a metric measures: of two that measure the same, the status does not say which one it reports."""
    source = one[0].get("resource") or one[0].get("containerResource") or {}
    return source.get("name"), source.get("container")


@st.composite
def observed(draw: st.DrawFn) -> dict[str, Any]:
    """A workload of one or two containers, and what is said of it: arguments of `state`."""
    names = draw(st.sampled_from([["app"], ["app", "side"]]))
    containers = [build.container(name, draw(_SIZES)) for name in names]
    pods = []
    for index in range(draw(st.integers(1, 4))):
        own = [build.container(name, draw(_SIZES)) for name in names]
        is_like = draw(st.booleans())
        pods.append(
            build.pod(f"web-{index}", containers=containers if is_like else own, ready=draw(st.booleans()))
        )
    readings = draw(st.lists(metrics(), max_size=3, unique_by=_measures))
    return {
        "replicas": draw(st.integers(1, 6)),
        "containers": containers,
        "readings": readings,
        "targets": {name: draw(_SIZES) for name in names},
        "desired": draw(st.integers(0, 12)),
        "pods": pods,
    }


def outcome(decision: Decision) -> tuple[object, ...]:
    """What is set, in no order."""
    sizes = {name: (dict(one.requests), dict(one.limits)) for name, one in decision.containers.items()}
    return (
        decision.replicas and decision.replicas.target,
        sizes,
        decision.status.recommended and (decision.status.recommended.replicas),
    )


@given(observed(), st.booleans(), st.randoms(use_true_random=False))
def test_any_numbers_are_decided_on_and_in_any_order_likewise(
    seen: dict[str, Any], resizes: bool, random: Random
) -> None:
    first = build.decided(state(**seen), resizes=resizes)
    other: dict[str, Any] = {
        name: random.sample(one, len(one)) if isinstance(one, list) else one for name, one in seen.items()
    }
    assert outcome(build.decided(state(**other), resizes=resizes)) == outcome(first)


@given(
    st.lists(st.integers(200, 4000), min_size=2, max_size=10),
    st.integers(0, 4000),
    st.integers(100, 4000),
    st.sampled_from([0, 50, 100]),
    st.booleans(),
)
def test_no_replica_goes_that_the_pods_own_sizes_need(
    sizes: list[int], used: int, target: int, weight: int, resizes: bool
) -> None:
    """The smallest pods may be those that stay, and the HPA's target is meant for the core that was first requested."""
    template = max(sizes)
    pods = [build.pod(f"web-{index}", containers=[app(f"{size}m")]) for index, size in enumerate(sizes)]
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    status = {"axes": {"vertical": {**wanted_down(7), "base": {"app": {"cpu": "1"}}}}}
    seen = one_core(len(sizes), f"{used}m", f"{target}m", spec, f"{template}m", status=status, pods=pods)
    decision = build.decided(seen, resizes=resizes)
    assert decision.replicas is not None
    count, request = decision.replicas.target, decision.containers["app"].requests["cpu"]
    if count < len(sizes):
        assert sum(sorted(min(size, request) for size in sizes)[:count]) >= used * len(sizes)


@given(
    st.integers(1, 5),
    st.sampled_from(["100Mi", "900Mi", "1200Mi", "3Gi"]),
    st.lists(st.integers(0, 5000), min_size=2, max_size=2),
    st.lists(st.integers(0, 50), min_size=2, max_size=2),
    st.sampled_from([0, 50, 100]),
)
def test_what_no_metric_measures_has_one_size_whatever_the_metrics_say(
    replicas: int, target: str, used: list[int], queues: list[int], weight: int
) -> None:
    """In place: where pods are replaced for something else, small changes go along."""
    found = []
    for cpu, queue in zip(used, queues, strict=True):
        readings = [value("cpu", "1", f"{cpu}m"), external("10", str(queue))]
        spec = {"weightBasedScalingIntervals": [{"vpaWeight": weight}]}
        status = {"axes": {"vertical": wanted_down(7, "memory")}}
        targets = {"app": {"cpu": "1", "memory": target}}
        seen = state(replicas, [app("1", "1Gi")], readings, targets, spec, status=status)
        found.append(build.decided(seen, resizes=True).containers["app"].requests["memory"])
    assert found[0] == found[1]
