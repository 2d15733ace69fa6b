"""What a kubelet refuses of a pod's resize: `hvpa.core.actuation.kubelet`, and that no raise waits behind it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import MIB, NOW, at, container, hvpa, objects, pod, stamp, workload
from hvpa.api.objects.read_models import Pod
from hvpa.core import Settings, observe
from hvpa.core.actuation.desired import ContainerSizes
from hvpa.core.actuation.kubelet import resources_named, used_at_least
from hvpa.core.actuation.pod import PodComparison, present_sizes, qos_class
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import Decision, MemoryUse, PodResize, RefusedResize, ResourceRequirements
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import amounts, present_resources
from tests.unit.core.actuation.sized_pods import (
    RESTARTS,
    actuation,
    decision,
    owned,
    patches_template,
    ready_of,
    resize_condition,
    resized,
    rolled_back,
    running,
)

BELOW: Final = (
    "cannot decrease memory limits: [attempting to set pod memory limit (256000000) below current usage (281000000), "
    'attempting to set container "app" memory limit (256000000) below current usage (280000000)]'
)
STATIC: Final = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
OF_MEMORY: Final = 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"'
SWAP: Final = "In-place resize of containers with swap is not supported."
NEVER: Final = {STATIC: "CPU", OF_MEMORY: "memory", SWAP: "memory"}
OLD: Final = {"status": {"startTime": stamp(at(hours=-2))}}


def size(cpu: str = "1", request: str = "100M", limit: str = "320M", most: str = "4") -> dict[str, Any]:
    """Requests and limits of a container."""
    return {"requests": {"cpu": cpu, "memory": request}, "limits": {"cpu": most, "memory": limit}}


def guaranteed(cpu: str, memory: str) -> dict[str, Any]:
    return both({"cpu": cpu, "memory": memory})


def both(wanted: Mapping[str, str]) -> dict[str, Any]:
    """Requests and limits that are the same."""
    return {"requests": wanted, "limits": wanted}


def error(message: str = BELOW, minutes: float = 0.25) -> dict[str, Any]:
    return {**resize_condition("InProgress", "Error", minutes=minutes), "message": message}


def never(message: str = STATIC) -> dict[str, Any]:
    return {**resize_condition("Pending", "Infeasible", seconds=1), "message": message}


def asked(
    spec: Mapping[str, Any], has: Mapping[str, Any] | None = None, *conditions: Any, **more: Any
) -> Pod:
    """A pod whose spec names this size, and that has another one."""
    return running("web-1", spec["requests"], has, spec["limits"], conditions, **more)


def of_kubelet(minutes: float, count: int = 1, used: int = 280) -> RefusedResize:
    return RefusedResize("web-1", {}, BELOW, at(minutes=-minutes), count, used={"app": used * 10**6})


# --- what it says -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (STATIC, {"cpu"}),
        (OF_MEMORY, {"memory"}),
        (SWAP, {"memory"}),
        ("Node didn't have enough capacity: cpu, requested: 64000, capacity: 1500", {"cpu"}),
        ("neither CPU nor memory", set()),
        ("the kubelet says Infeasible", set()),
    ],
)
def test_the_resource_that_is_infeasible(message: str, expected: set[str]) -> None:
    assert resources_named(message) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (BELOW, {"app": 280_000_000}),
        (BELOW.replace("(280000000)", "(2)"), {"app": 256}),
        (BELOW.replace('"app"', '"proxy"'), {"app": 256, "log": 128}),
        (BELOW.replace("280000000", "9" * 30), {"app": 256, "log": 128}),
        ("", {"app": 256, "log": 128}),
    ],
    ids=["by container", "no less than the limit", "another container", "no number", "nothing"],
)
def test_what_is_used_at_least_by_a_refusal(message: str, expected: Mapping[str, int]) -> None:
    assert used_at_least(message, {"app": 256, "log": 128}) == expected


@pytest.mark.parametrize("message", NEVER)
def test_a_resource_that_the_node_resizes_of_no_pod_is_named(message: str) -> None:
    """With InPlaceOrRollout the pods are replaced."""
    pods = [asked(guaranteed("2", "400M"), SMALL, never(message)), asked(guaranteed("1", "320M"))]
    outcome = decision(pods[:1], guaranteed("2", "400M"), {"type": "InPlaceOrRollout"})
    note = f"{message.rstrip('.')}: on such a node, only new pods get another {NEVER[message]} size"
    (resize,) = outcome.resizes
    assert [record.message for record in resize.refused] == [note]
    known = tuple(resize.refused)
    back = {"CPU": guaranteed("1", "400M"), "memory": guaranteed("2", "320M")}[NEVER[message]]
    later = decision(
        [asked(back)], guaranteed("2", "400M"), {"type": "InPlaceOrRollout"}, refused_resizes=known
    )
    assert patches_template(later)
    assert ready_of(later) == ("NodeForbidsResize", f"pod web-1: {note}")
    in_place = decision([asked(back)], guaranteed("2", "400M"), refused_resizes=known)
    assert rolled_back(in_place).message == f"pod web-1: {note}"


# --- raises before lower memory limits --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("before", "wanted", "requests"),
    [
        (
            size("1", limit="1G"),
            size("2", limit="900M"),
            [{"requests": {"cpu": "2"}}, {"limits": {"memory": "900M"}}],
        ),
        (
            size("2", limit="1G"),
            size("1", limit="900M"),
            [{"requests": {"cpu": "1"}, "limits": {"memory": "900M"}}],
        ),
        (
            size(request="500M", limit="1G"),
            size("2", limit="900M", most="2500m"),
            [
                {"requests": {"cpu": "2", "memory": "100M"}, "limits": {"cpu": "2500m"}},
                {"limits": {"memory": "900M"}},
            ],
        ),
        (
            guaranteed("1", "1G"),
            guaranteed("2", "900M"),
            [both({"cpu": "2"}), both({"memory": "900M"})],
        ),
    ],
    ids=["a raise first", "no raise: one request", "what else falls goes first", "Guaranteed"],
)
def test_a_lower_memory_limit_is_asked_for_once_the_pod_has_its_raises(
    before: Mapping[str, Any], wanted: Mapping[str, Any], requests: Sequence[Any]
) -> None:
    has = {name: dict(quantities) for name, quantities in before.items()}
    for expected in requests:
        decided = decision([asked(has)], wanted)
        assert resized(decided) == {"web-1": expected}
        assert decided.resizes[0].lowers_limit == ("memory" in expected.get("limits", {}))
        new = {name: {**quantities, **expected.get(name, {})} for name, quantities in has.items()}
        if expected is not requests[-1]:
            assert not decision([asked(new, has)], wanted).resizes, "it waits for its raises"
        has = new


def test_a_limit_does_not_fall_below_a_request_that_the_pod_alone_has() -> None:
    (state,) = states_of([asked(size(request="90M", limit="100M"))], {"limits": {"memory": "50M"}})
    assert state.resize.body["spec"]["containers"][0]["resources"] == {"limits": {"memory": "90M"}}


# --- a memory limit that is refused -----------------------------------------------------------------------------------
def test_a_refused_memory_limit_is_put_back_at_once_and_what_else_was_asked_for_stays() -> None:
    lower = asked(size("500m", limit="256M"), size("1"), error())
    decided = decision([lower], size("500m", limit="256M"))
    assert resized(decided) == {"web-1": {"limits": {"memory": "320M"}}}
    assert decided.resizes[0].refused == (RefusedResize("web-1", {}, BELOW, NOW, used={"app": 280_000_000}),)
    assert actuation(decided).message == f"pod web-1: {BELOW}"
    assert ready_of(decided)[0] != "PodsNotResized"


def test_of_a_guaranteed_pod_the_request_goes_back_with_it() -> None:
    lower = asked(guaranteed("1", "256M"), guaranteed("1", "320M"), error())
    back = both({"memory": "320M"})
    assert resized(decision([lower], guaranteed("1", "256M"))) == {"web-1": back}


@pytest.mark.parametrize("conditions", [[], [error()], [resize_condition("InProgress", seconds=5)]])
def test_a_raise_takes_a_limit_back_that_has_yet_to_fall(conditions: Sequence[Any]) -> None:
    """Whether the kubelet refuses it shows 15 seconds later."""
    lower = asked(size(limit="256M"), size(), *conditions)
    decided = decision([lower], size("2", limit="256M"))
    assert resized(decided) == {"web-1": {"requests": {"cpu": "2"}, "limits": {"memory": "320M"}}}
    assert bool(decided.resizes[0].refused) == (conditions[:1] == [error()])


def test_a_limit_for_which_the_container_restarts_is_not_taken_back_for_a_raise() -> None:
    """The kubelet restarts the container with the new limit, which it does not compare with what is used."""
    lower = asked(size(limit="256M"), size(), more={"resizePolicy": RESTARTS})
    assert resized(decision([lower], size("2", limit="256M"))) == {"web-1": {"requests": {"cpu": "2"}}}


def test_a_limit_that_is_wanted_larger_again_is_no_refusal_to_remember() -> None:
    lower = asked(size(limit="256M"), size(), error(minutes=30), change=OLD)
    outcome = decision([lower], size(limit="400M"), since=at(minutes=-20))
    assert resized(outcome) == {"web-1": {"limits": {"memory": "400M"}}}
    assert outcome.resizes[0].refused == ()
    assert ready_of(outcome)[0] != "PodsNotResized"


def test_an_error_of_another_kind_puts_nothing_back() -> None:
    outcome = decision([asked(size("2"), size("1"), error("no such cgroup"))], size("2"))
    assert (outcome.resizes, actuation(outcome).in_progress) == ((), 1)


@pytest.mark.parametrize(
    ("refused", "measured", "limit"),
    [
        (None, 21, "256M"),
        (of_kubelet(0.5), 21, None),
        (of_kubelet(0.5, used=270), 21, "310500k"),
        (of_kubelet(0.5, used=100), 240, "276M"),
        (of_kubelet(0.5), None, None),
        (of_kubelet(1.5), 21, "256M"),
        (of_kubelet(1.5, 2), 21, None),
        (of_kubelet(59, 9), 21, None),
        (of_kubelet(61, 9), 21, "256M"),
    ],
)
def test_a_limit_stays_above_what_the_kubelet_said_as_long_as_a_refused_resize_waits(
    refused: RefusedResize | None, measured: int | None, limit: str | None
) -> None:
    use = None if measured is None else MemoryUse(NOW, {("web-1", "app"): measured * 10**6})
    known = () if refused is None else (refused,)
    outcome = decision([asked(size())], size(limit="200M"), memory_use=use, refused_resizes=known)
    if limit is not None:
        assert resized(outcome) == {"web-1": {"limits": {"memory": limit}}}
        return
    assert (outcome.resizes, actuation(outcome).waiting) == ((), 1)
    assert (
        actuation(outcome).message
        == "pod web-1: container app uses 280M of memory, too close to its new limit"
    )
    assert outcome.recheck_after is not None
    assert outcome.recheck_after <= dt.timedelta(minutes=1)


@pytest.mark.parametrize("strategy", ["InPlace", "InPlaceOrRollout"])
@pytest.mark.parametrize(
    ("one", "refused"),
    [
        (asked(size(limit="256M"), size(), error(minutes=6), change=OLD), ()),
        (asked(size(), change=OLD), (of_kubelet(0.5),)),
        (asked(size(), change=OLD), (of_kubelet(1.5),)),
        (asked(size(limit="256M"), size(), change=OLD), (of_kubelet(1.5),)),
    ],
    ids=["refused", "waits", "is asked again", "is under way again"],
)
def test_a_limit_that_was_refused_counts_as_not_made_after_the_timeout(
    one: Pod, refused: Sequence[RefusedResize], strategy: str
) -> None:
    """kubernetes/autoscaler#8434"""
    for minutes, is_late in ((4, False), (6, True)):
        outcome = decision(
            [one],
            size(limit="256M"),
            {"type": strategy},
            at(minutes=-minutes),
            refused_resizes=tuple(refused),
        )
        assert (ready_of(outcome)[0] == "PodsNotResized") == is_late
        assert patches_template(outcome) == (is_late and strategy == "InPlaceOrRollout")
        assert outcome.status.rolled_back is None


def test_new_pods_keep_a_size_of_which_one_limit_is_refused() -> None:
    outcome = decision(
        [asked(size(), change=OLD)],
        size(limit="256M"),
        since=at(minutes=-6),
        refused_resizes=(of_kubelet(0.5),),
        creation_sizes=(),
    )
    assert outcome.creation_sizes


# --- a resource that is infeasible ------------------------------------------------------------------------------------
BOTH: Final = guaranteed("2", "400M")
SMALL: Final = guaranteed("1", "320M")
CPU_BACK: Final = both({"cpu": "1"})


def of_cpu(decision: Decision) -> RefusedResize:
    """The record of what is put back."""
    (resize,) = decision.resizes
    (record,) = resize.refused
    return record


def test_an_infeasible_resource_is_put_back_so_that_a_raise_of_another_goes_on() -> None:
    outcome = decision([asked(BOTH, SMALL, never())], BOTH)
    assert resized(outcome) == {"web-1": CPU_BACK}
    record = of_cpu(outcome)
    assert (record.message, record.count) == (
        f"{STATIC}: on such a node, only new pods get another CPU size",
        3,
    )
    assert outcome.status.rolled_back is None
    # Memory is under way, then CPU alone is taken back.
    known = (record,)
    memory = guaranteed("1", "400M")
    waits = decision([asked(memory, SMALL)], BOTH, refused_resizes=known)
    assert (waits.resizes, waits.status.rolled_back, actuation(waits).in_progress) == ((), None, 1)
    later = decision([asked(memory)], BOTH, refused_resizes=known)
    (change,) = rolled_back(later).changes
    assert (change.resource, change.previous, change.failed) == ("cpu", 1000, 2000)
    again = decision([asked(memory)], BOTH, {"type": "InPlaceOrRollout"}, refused_resizes=known)
    assert patches_template(again)


def test_a_raise_of_another_resource_takes_an_infeasible_one_back_with_it() -> None:
    has = guaranteed("1", "320M")
    outcome = decision([asked(guaranteed("2", "320M"), has, never())], BOTH)
    expected = {"cpu": "1", "memory": "400M"}
    assert resized(outcome) == {"web-1": {"requests": expected, "limits": expected}}


@pytest.mark.parametrize(
    ("spec", "has", "message"),
    [
        (guaranteed("2", "320M"), SMALL, STATIC),
        (guaranteed("2", "320M"), guaranteed("1", "400M"), STATIC),
        (BOTH, SMALL, "no reason"),
        (
            {"requests": {"cpu": "2", "memory": "400M"}, "limits": {}},
            {"requests": {"memory": "320M"}},
            STATIC,
        ),
        (size("2", "400M", "400M", "4"), size("4", "320M", "400M", "4"), STATIC),
    ],
    ids=["nothing waits", "nothing is raised", "no resource named", "nothing to go back to", "QoS class"],
)
def test_where_nothing_waits_or_nothing_is_known_the_spec_stays(
    spec: Mapping[str, Any], has: Mapping[str, Any], message: str
) -> None:
    outcome = decision([asked(spec, has, never(message))], spec)
    (state,) = states_of([asked(spec, has, never(message))], spec)
    assert (state.state, state.resize) == ("infeasible", None)
    assert outcome.workload_patch is None


def test_what_is_infeasible_and_no_longer_wanted_is_not_remembered() -> None:
    outcome = decision([asked(BOTH, SMALL, never())], guaranteed("1", "400M"))
    assert resized(outcome) == {"web-1": CPU_BACK}
    assert outcome.resizes[0].refused == ()


# --- whatever is asked ------------------------------------------------------------------------------------------------
def states_of(pods: Sequence[Pod], wanted: Mapping[str, Any], **more: Any) -> list[Any]:
    """Where pods stand whose containers `app` are to have this size."""
    return [comparison({"app": wanted}, **more).at(pod) for pod in pods]


def comparison(wanted: Mapping[str, Mapping[str, Any]], **more: Any) -> PodComparison:
    observation = observe(objects(hvpa(), workload(), **more), NOW, Settings())
    assert observation.spec is not None
    sizes = {
        name: ResourceRequirements(
            amounts(resources.get("requests", {})), amounts(resources.get("limits", {}))
        )
        for name, resources in wanted.items()
    }
    return PodComparison.of(
        GateContext(Clock(NOW), observation.spec, is_settled=True), observation, sizes, at(minutes=-1)
    )


def after(sizes: ContainerSizes, resize: PodResize) -> ContainerSizes:
    """The sizes once they were asked for."""
    new_sizes = dict(sizes)
    body: Any = resize.body
    for entry in body["spec"]["containers"]:
        have, named = new_sizes[entry["name"]], entry["resources"]
        new_sizes[entry["name"]] = ResourceRequirements(
            {**have.requests, **amounts(named.get("requests", {}))},
            {**have.limits, **amounts(named.get("limits", {}))},
        )
    return new_sizes


def mixes(before: ContainerSizes, then: ContainerSizes) -> bool:
    """Whether a memory limit is lowered while anything is raised."""
    moves = [
        (section, resource, part[resource] - getattr(before[name], section)[resource])
        for name, requirements in then.items()
        for section, part in (("requests", requirements.requests), ("limits", requirements.limits))
        for resource in part
    ]
    lowers = any(by < 0 for section, resource, by in moves if (section, resource) == ("limits", "memory"))
    return lowers and any(by > 0 for *_, by in moves)


UNITS: Final = st.integers(1, 8)


@st.composite
def drawn(draw: st.DrawFn, is_guaranteed: bool) -> dict[str, Any]:
    cpu, memory = sorted([draw(UNITS), draw(UNITS)]), sorted([draw(UNITS), draw(UNITS)])
    limits = {"cpu": f"{100 * cpu[1] + 50}m", "memory": str(memory[1] * 100 * MIB)}
    requests = {"cpu": f"{100 * cpu[0]}m", "memory": str(memory[0] * 100 * MIB)}
    return {"requests": limits if is_guaranteed else requests, "limits": limits}


@given(data=st.data(), is_guaranteed=st.booleans())
def test_no_request_lowers_a_memory_limit_beside_a_raise_and_limits_are_never_below_requests(
    data: st.DataObject, is_guaranteed: bool
) -> None:
    """Whatever the kubelet reports; and the QoS class stays."""
    names = ("app", "log")
    spec, has, wanted = ({name: data.draw(drawn(is_guaranteed)) for name in names} for _ in range(3))
    if data.draw(st.booleans()):
        has = spec
    reports = data.draw(st.sets(st.sampled_from(["error", "never", "deferred"])))
    known = {
        "error": error(),
        "never": never(),
        "deferred": resize_condition("Pending", "Deferred", seconds=1),
    }
    statuses = [{"name": name, "resources": has[name]} for name in names]
    status = {"containerStatuses": statuses, "conditions": [known[report] for report in sorted(reports)]}
    containers = [container(name, spec[name]["requests"], spec[name]["limits"]) for name in names]
    web_pod = pod("web-1", containers=containers, change=owned(generation=2) | {"status": status})
    used = {("web-1", name): data.draw(st.integers(0, 800)) * MIB for name in names}
    state = comparison(wanted, pods=[web_pod], memory_use=MemoryUse(NOW, used)).at(web_pod)
    if state.resize is None:
        return
    before = present_resources(web_pod.spec.containers)
    then = after(before, state.resize)
    assert not mixes(before, then)
    assert not mixes(present_sizes(web_pod), then) or mixes(present_sizes(web_pod), before)
    assert all(part.requests[key] <= part.limits[key] for part in then.values() for key in part.requests)
    assert qos_class(web_pod, then) == qos_class(web_pod, before)
