"""Where one pod stands, and its resize: `hvpa.core.actuation.pod`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import MIB, NOW, at, container, decided, hvpa, objects, pod, stamp, workload
from hvpa.api.objects.read_models import Pod
from hvpa.core.actuation.pod import qos_class, reported_since
from hvpa.core.model import Decision, MemoryUse, RefusedResize
from hvpa.core.workload.containers import amounts, read_all
from hvpa.core.workload.pod_level import POD
from tests.unit.core.actuation.sized_pods import (
    INFEASIBLE,
    LARGER,
    REQUESTS,
    RESTARTS,
    actuation,
    decision,
    ready_of,
    resize_condition,
    resized,
    running,
    size_status,
)

IN_PLACE: Final = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "vpa": {"deploy": False}}
OF_A_RESIZE: Final = [
    ("InProgress", ""),
    ("InProgress", "Error"),
    ("Pending", "Deferred"),
    ("Pending", "Infeasible"),
]
"""What a kubelet reports of a resize that has not come to its end."""


def test_a_pod_of_another_size_is_asked_to_have_the_desired_one() -> None:
    outcome = decision([running("web-1"), running("web-2", LARGER)])
    containers = [{"name": "app", "resources": {"requests": LARGER}}]
    assert [resize.body for resize in outcome.resizes] == [
        {"metadata": {"uid": "web-1"}, "spec": {"containers": containers}}
    ]
    assert (actuation(outcome).resized, actuation(outcome).waiting, actuation(outcome).pods) == ("1/2", 1, 2)
    assert outcome.workload_patch is None


def test_of_containers_that_are_written_alike_and_otherwise_each_is_asked_for_what_it_lacks() -> None:
    has = {"app": "1", "log": "1000m", "proxy": "1", "tail": "2000m"}
    web_pod = pod(containers=[container(name, {"cpu": cpu, "memory": "1Gi"}) for name, cpu in has.items()])
    wanted = {"app": "2", "log": "2", "proxy": "3", "tail": "2"}
    size = {name: {"requests": {"cpu": cpu, "memory": "1024Mi"}} for name, cpu in wanted.items()}
    template = [container(name, {"cpu": "1", "memory": "1Gi"}) for name in has]
    inputs = objects(hvpa(IN_PLACE, size_status(1, size)), workload(1, template), None, None, [web_pod])
    (resize,) = decided(inputs).resizes
    asked = [
        {"name": name, "resources": {"requests": {"cpu": wanted[name]}}} for name in ("app", "log", "proxy")
    ]
    assert resize.body == {"metadata": {"uid": "web-1"}, "spec": {"containers": asked}}


@pytest.mark.parametrize(
    ("conditions", "has", "state", "message"),
    [
        ([], None, "resized", ""),
        ([], {"requests": REQUESTS}, "in_progress", ""),
        ([resize_condition("InProgress", minutes=1)], {"requests": REQUESTS}, "in_progress", ""),
        (
            [resize_condition("Pending", "Deferred", minutes=1)],
            {"requests": REQUESTS},
            "deferred",
            "pod web-1: the kubelet says Deferred",
        ),
        ([INFEASIBLE], {"requests": REQUESTS}, "infeasible", "pod web-1: the kubelet says Infeasible"),
        # Of the spec before, with which it is forgotten, however old it is: kubernetes/autoscaler#10093
        *[
            (
                [resize_condition(kind, reason, generation=1, hours=2)],
                {"requests": REQUESTS},
                "in_progress",
                "",
            )
            for kind, reason in OF_A_RESIZE
        ],
    ],
)
def test_where_a_pod_stands_that_was_asked(
    conditions: Sequence[Mapping[str, Any]], has: Mapping[str, Any] | None, state: str, message: str
) -> None:
    pods = [running(requests=LARGER, has=has, conditions=conditions)]
    outcome = decision(pods, strategy={"type": "InPlaceOrRollout"})
    counts = {name: getattr(actuation(outcome), name) for name in ("in_progress", "deferred", "infeasible")}
    assert counts == {name: int(name == state) for name in counts}
    assert actuation(outcome).resized == ("1/1" if state == "resized" else "0/1")
    assert actuation(outcome).message == message
    assert not outcome.resizes


@pytest.mark.parametrize("strategy", ["InPlace", "InPlaceOrRollout"])
@pytest.mark.parametrize(("kind", "reason"), OF_A_RESIZE)
@pytest.mark.parametrize(
    ("requests", "limits", "has"),
    [
        ({"cpu": "1500m", "memory": "1Gi"}, None, {"requests": REQUESTS}),
        (
            {"cpu": "1", "memory": "1Gi"},
            {"memory": "1Gi"},
            {"requests": REQUESTS, "limits": {"memory": "2Gi"}},
        ),
    ],
    ids=["larger", "a lower memory limit"],
)
def test_a_larger_size_is_asked_for_whatever_has_become_of_an_older_resize(
    requests: Mapping[str, str],
    limits: Mapping[str, str] | None,
    has: Mapping[str, Any],
    kind: str,
    reason: str,
    strategy: str,
) -> None:
    """kubernetes/autoscaler#10093"""
    old = {"status": {"startTime": stamp(at(hours=-2))}}
    reported = [resize_condition(kind, reason, hours=1)]
    pods = [running(requests=requests, limits=limits, has=has, conditions=reported, change=old)]
    outcome = decision(pods, strategy={"type": strategy}, since=at(minutes=-6))
    changed = {name: value for name, value in LARGER.items() if requests[name] != value}
    expected: dict[str, Any] = {"requests": changed}
    if limits is not None:
        expected["limits"] = {"memory": "2Gi"}
    assert resized(outcome) == {"web-1": expected}
    assert (outcome.workload_patch, outcome.status.rolled_back) == (None, None)
    assert ready_of(outcome)[0] != "PodsNotResized"


# --- without room ----------------------------------------------------------------------------------------------------
DEFERRED: Final = resize_condition("Pending", "Deferred", minutes=1)
LESS_CPU: Final = {"cpu": "500m", "memory": "1Gi"}
MORE_MEMORY: Final = {"cpu": "1", "memory": "2Gi"}
MIXED: Final = {"cpu": "500m", "memory": "2Gi"}


@pytest.mark.parametrize("spec", [MIXED, MORE_MEMORY], ids=["asked for", "due"])
def test_decrease_does_not_wait_for_raise_without_room(spec: Mapping[str, str]) -> None:
    """The pod has 1 core and 1 GiB, and its node has no room for 2 GiB. The kubelet allocates a resize as a whole."""
    size: Mapping[str, Any] = {"requests": MIXED}
    changed = {name: value for name, value in LESS_CPU.items() if value != spec[name]}
    pod = running(requests=spec, has={"requests": REQUESTS}, conditions=[DEFERRED])
    outcome = decision([pod], size, since=at(minutes=-6))
    assert resized(outcome) == {"web-1": {"requests": changed}}
    assert (outcome.status.rolled_back, ready_of(outcome)[0]) == (None, "Reconciled")
    # Then the raise is asked for again, and waits.
    assert resized(decision([running(requests=LESS_CPU)], size)) == {"web-1": {"requests": {"memory": "2Gi"}}}
    waits = decision([running(requests=MIXED, has={"requests": LESS_CPU}, conditions=[DEFERRED])], size)
    assert (waits.resizes, actuation(waits).deferred) == ((), 1)


def test_decrease_of_one_container_does_not_wait_for_raise_of_another() -> None:
    """`app` is to have 2 cores instead of 1, and `log` 1 instead of 2."""

    def containers(app: str, log: str) -> list[dict[str, Any]]:
        return [container("app", {"cpu": app}), container("log", {"cpu": log})]

    statuses = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in (("app", "1"), ("log", "2"))
    ]
    change = {"status": {"conditions": [DEFERRED], "containerStatuses": statuses}}
    one = pod(containers=containers("2", "1"), change=change)
    size = {name: {"requests": {"cpu": cpu}} for name, cpu in (("app", "2"), ("log", "1"))}
    inputs = objects(
        hvpa(IN_PLACE, size_status(1, size)), workload(1, containers("1", "2")), None, None, [one]
    )
    (resize,) = decided(inputs).resizes
    assert resize.body["spec"] == {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}


@pytest.mark.parametrize(
    ("spec", "limits", "has"),
    [
        (MIXED, None, {"requests": {"cpu": "1"}}),  # a resize can't remove the memory request
        # With the present memory back in the spec, requests would equal limits.
        (
            {"cpu": "2", "memory": "500M"},
            {"cpu": "2", "memory": "600M"},
            {"requests": {"cpu": "3", "memory": "400M"}, "limits": {"cpu": "4", "memory": "400M"}},
        ),
        ({"cpu": "2", "memory": "1Gi"}, None, {"requests": REQUESTS}),  # nothing falls
    ],
    ids=["a request that was added", "QoS class", "a raise alone"],
)
def test_raise_without_room_stays_if_putting_it_back_lets_nothing_fall(
    spec: Mapping[str, str], limits: Mapping[str, str] | None, has: Mapping[str, Any]
) -> None:
    size = {"requests": spec} if limits is None else {"requests": spec, "limits": limits}
    outcome = decision([running(requests=spec, limits=limits, has=has, conditions=[DEFERRED])], size)
    assert (outcome.resizes, actuation(outcome).deferred) == ((), 1)


def test_decrease_that_is_let_through_restarts_nothing_for_the_raise_that_it_takes_back() -> None:
    """So `maxUnavailable` does not hold it, although one pod is down."""
    restarting = {"resizePolicy": RESTARTS}
    pod = running(requests=MIXED, has={"requests": REQUESTS}, conditions=[DEFERRED], more=restarting)
    down = running("web-2", MIXED, ready=False, more=restarting)
    outcome = decision([pod, down], {"requests": MIXED}, {"maxUnavailable": 1})
    assert resized(outcome) == {"web-1": {"requests": {"memory": "1Gi"}}}


amounts_of: Final = st.fixed_dictionaries({"cpu": st.integers(1, 4), "memory": st.integers(1, 4)})


@given(
    sizes=st.lists(st.tuples(amounts_of, amounts_of), min_size=1, max_size=3),
    factor=st.sampled_from([None, 1, 2]),
    without=st.sampled_from([None, "cpu", "memory"]),
)
def test_without_room_for_any_raise_all_cpu_falls_and_nothing_is_asked_again_and_again(
    sizes: list[tuple[dict[str, int], dict[str, int]]], factor: int | None, without: str | None
) -> None:
    """`factor`: limits relative to requests. `without`: a resource that the first container does not request."""

    def resources(size: Mapping[str, int], *, is_first: bool = False) -> dict[str, dict[str, str]]:
        unit = {"cpu": 100, "memory": 100 * MIB}
        requests = {name: count * unit[name] for name, count in size.items()}
        limits = {name: amount * factor for name, amount in requests.items()} if factor else {}
        kept = {name: amount for name, amount in requests.items() if not (is_first and name == without)}
        sections = {
            "requests": kept,
            "limits": limits if factor and (not is_first or without is None) else {},
        }
        return {
            section: {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in of.items()}
            for section, of in sections.items()
        }

    names = [f"c{number}" for number in range(len(sizes))]
    has = {name: resources(size, is_first=name == "c0") for name, (size, _) in zip(names, sizes, strict=True)}
    wanted = {name: resources(size) for name, (_, size) in zip(names, sizes, strict=True)}
    if without is not None:
        wanted["c0"]["limits"] = {}
    template = [
        container(name, size["requests"] or None, size["limits"] or None) for name, size in has.items()
    ]
    given = hvpa(IN_PLACE, size_status(1, wanted))
    spec = {name: {section: dict(of) for section, of in size.items()} for name, size in has.items()}
    outcome: Decision | None = None
    for _ in range(40):  # memory limits fall by a fifth at a time
        parts = [container(name, size["requests"], size["limits"]) for name, size in spec.items()]
        reported = [{"name": name, "resources": size} for name, size in has.items()]
        conditions = [DEFERRED] if spec != has else []
        status = {"containerStatuses": reported, "conditions": conditions}
        one = pod(containers=parts, change={"metadata": {"generation": 2}, "status": status})
        outcome = decided(objects(given, workload(1, template), None, None, [one]))
        if not outcome.resizes:
            break
        for asked in outcome.resizes[0].body["spec"]["containers"]:  # type: ignore[index]
            for section, of in asked["resources"].items():
                spec[asked["name"]][section] |= of
        if not any(_raises(spec[name]["requests"], has[name]["requests"]) for name in names):
            has = {name: {section: dict(of) for section, of in size.items()} for name, size in spec.items()}
    assert outcome is not None
    assert outcome.resizes == ()
    if without is None and not actuation(outcome).infeasible:
        low = [amounts(has[name]["requests"])["cpu"] for name in names]
        assert all(
            cpu <= amounts(wanted[name]["requests"])["cpu"] or cpu == amounts(spec[name]["requests"])["cpu"]
            for name, cpu in zip(names, low, strict=True)
        )


def _raises(requests: Mapping[str, str], had: Mapping[str, str]) -> bool:
    now, then = amounts(requests), amounts(had)
    return any(amount > then.get(resource, 0) for resource, amount in now.items())


@pytest.mark.parametrize(
    ("state", "conditions", "since"),
    [
        ("deferred", [resize_condition("Pending", "Deferred", minutes=2)], at(minutes=-2)),
        ("in_progress", [resize_condition("InProgress", minutes=9)], at(minutes=-9)),
        ("in_progress", [resize_condition("InProgress", generation=1, minutes=9)], None),
        ("resized", [resize_condition("InProgress", minutes=9)], None),
        ("deferred", [], None),
    ],
)
def test_since_when_a_pod_is_in_its_state_is_reported_by_the_kubelet_of_its_present_spec(
    state: str, conditions: Sequence[Mapping[str, Any]], since: dt.datetime | None
) -> None:
    assert reported_since(running(conditions=conditions), state) == since


def test_a_resize_that_takes_too_long_is_reported() -> None:
    old = {"status": {"startTime": stamp(at(hours=-2))}}
    asked = running(requests=LARGER, has={"requests": REQUESTS}, change=old)
    early = decision([asked], since=at(minutes=-4))
    assert early.recheck_after == dt.timedelta(minutes=1)
    assert ready_of(early)[0] != "PodsNotResized"
    late = decision([asked, running("web-2", LARGER, {"requests": REQUESTS})], since=at(minutes=-6))
    assert ready_of(late) == (
        "PodsNotResized",
        "pod web-1 (and 1 more pods): the kubelet has not answered",
    )


@pytest.mark.parametrize(
    ("one", "size", "why"),
    [
        (running(requests={}, has={}), None, "a pod of QoS class BestEffort can't be resized"),
        (
            running(limits=LARGER),
            {"requests": LARGER, "limits": LARGER},
            "its QoS class would change from Burstable to Guaranteed, which Kubernetes does not allow",
        ),
    ],
)
def test_a_pod_keeps_its_qos_class(one: Pod, size: Mapping[str, Any] | None, why: str) -> None:
    outcome = decision([one], size)
    assert not outcome.resizes
    assert actuation(outcome).infeasible == 1
    assert actuation(outcome).message == f"pod web-1: {why}"


BOTH: Final = {"requests": LARGER, "limits": LARGER}
CPU: Final = {"requests": {"cpu": "2"}}
LOG: Final = {"spec": {"containers": [container(), container("log", {"cpu": "100m"})]}}
SIDECAR: Final = {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
"""VPA 1.8's recommender takes no samples of init containers (kubernetes/autoscaler#7229)."""
BESIDE: Final = {"spec": {"initContainers": [SIDECAR]}}
ASKED: Final[dict[str, tuple[Pod, Any, Any]]] = {
    "a Guaranteed pod stays Guaranteed": (running(limits=REQUESTS), BOTH, BOTH),
    "a limit of a LimitRange is raised only for the request": (
        running(limits={"cpu": "1500m", "memory": "4Gi"}),
        None,
        {"requests": LARGER, "limits": {"cpu": "2"}},
    ),
    "a limit without a request is kept": (running("web-1", {"cpu": "1"}, limits={"memory": "1Gi"}), CPU, CPU),
    "memory is not named": (running(), CPU, CPU),
    "of two containers the one that is named": (running(change=LOG), None, {"requests": LARGER}),
    "a pod with a native sidecar": (running(change=BESIDE), None, {"requests": LARGER}),
    "its requests make the pod more than BestEffort": (
        running(requests={}, has={}, change=BESIDE),
        None,
        {"requests": LARGER},
    ),
}


@pytest.mark.parametrize(("one", "size", "asked"), ASKED.values(), ids=ASKED)
def test_what_a_pod_is_asked_to_have(one: Pod, size: Mapping[str, Any] | None, asked: Any) -> None:
    outcome = decision([one], size)
    assert resized(outcome) == {"web-1": asked}
    assert len(outcome.resizes[0].body["spec"]["containers"]) == 1  # type: ignore[index]
    assert not outcome.resizes[0].lowers_limit


def test_a_container_that_does_not_run_yet_starts_with_what_its_spec_says() -> None:
    outcome = decision([running("web-1", LARGER, change={"status": {"containerStatuses": []}})])
    assert actuation(outcome).resized == "1/1"


# --- memory limits ---------------------------------------------------------------------------------------------------
def test_a_memory_limit_falls_by_a_fifth_at_a_time() -> None:
    """Of a Guaranteed pod the request goes with it; CPU falls at once."""
    small = {"requests": {"cpu": "500m", "memory": "500M"}, "limits": {"cpu": "500m", "memory": "500M"}}
    has: Mapping[str, str] = {"cpu": "1", "memory": "1G"}
    steps = []
    while resizes := resized(decision([running(requests=has, limits=has)], small)):
        has = {**has, **resizes["web-1"]["limits"]}
        steps.append(has["memory"])
    assert steps == ["800M", "640M", "512M", "500M"]
    assert has["cpu"] == "500m"


@pytest.mark.parametrize(
    ("used", "limit"),
    [(0, "800M"), (400, "800M"), (700, "805M"), (869, "999350k"), (870, None), (2000, None)],
)
def test_a_memory_limit_stays_above_what_is_used_by_the_recommender_s_margin(
    used: int, limit: str | None
) -> None:
    """From 1000 MB to 500 MB, while so many MB are used."""
    small = {"cpu": "1", "memory": "500M"}
    use = MemoryUse(NOW, {("web-1", "app"): used * 10**6} if used else {})
    pods = [running(requests=small, limits={"cpu": "1", "memory": "1G"})]
    outcome = decision(pods, {"requests": small, "limits": small}, memory_use=use)
    if limit is not None:
        assert resized(outcome) == {"web-1": {"limits": {"memory": limit}}}
        assert outcome.resizes[0].lowers_limit
        return
    assert (outcome.resizes, actuation(outcome).waiting) == ((), 1)
    uses = f"container app uses {used if used < 1000 else 2}{'M' if used < 1000 else 'G'} of memory"
    assert actuation(outcome).message == f"pod web-1: {uses}, too close to its new limit"
    assert outcome.recheck_after == dt.timedelta(minutes=1)


def test_a_cpu_limit_is_lowered_without_care() -> None:
    more_cpu = {"requests": LARGER, "limits": {"cpu": "3", "memory": "4Gi"}}
    assert not decision([running(limits={"cpu": "4", "memory": "2Gi"})], more_cpu).resizes[0].lowers_limit


def test_the_next_step_down_waits_until_the_pod_has_the_last_one() -> None:
    small = {"requests": {"cpu": "1", "memory": "100M"}, "limits": {"cpu": "1", "memory": "500M"}}
    had = {"requests": {"cpu": "1", "memory": "100M"}, "limits": {"cpu": "1", "memory": "1G"}}
    asked = running(requests=had["requests"], limits={"cpu": "1", "memory": "800M"}, has=had)
    assert not decision([asked], small).resizes


# --- refusals, whose pod it is, and the class ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("count", "minutes", "waits"),
    [(1, 0.5, True), (1, 1.5, False), (2, 1.5, True), (99, 59, True), (99, 61, False)],
)
def test_what_was_refused_is_asked_for_again_after_a_while_only(
    count: int, minutes: float, waits: bool
) -> None:
    (asked,) = decision([running()]).resizes
    refused = RefusedResize("web-1", asked.body, "no room", at(minutes=-minutes), count)
    outcome = decision([running()], strategy={"type": "InPlaceOrRollout"}, refused_resizes=(refused,))
    assert (not outcome.resizes) == waits
    assert ready_of(outcome) == ("PodsNotResized", "pod web-1: no room")  # until the API server takes it
    other = RefusedResize("web-1", {}, "no room", NOW)
    assert decision([running()], refused_resizes=(other,)).resizes


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("node didn't have enough allocatable resources: cpu, requested: 4000", {"memory": LARGER["memory"]}),
        ("exceeded quota: requests.memory", {"cpu": LARGER["cpu"]}),
        ("cpu, requested: 4000; memory, requested: 4000", None),
        ("no room", None),
    ],
)
def test_the_resource_that_is_not_too_much_by_the_refusal_is_asked_for_alone(
    message: str, asked: Mapping[str, str] | None
) -> None:
    pods = [running(), running("web-2", LARGER)]
    (whole,) = decision(pods).resizes
    once, thrice = [RefusedResize("web-1", whole.body, message, NOW, count) for count in (1, 3)]
    assert decision(pods, refused_resizes=(once,)).resizes == ()
    outcome = decision(pods, refused_resizes=(thrice,))
    assert resized(outcome) == ({} if asked is None else {"web-1": {"requests": asked}})
    again = [RefusedResize("web-1", resize.body, "nor this", NOW) for resize in outcome.resizes]
    waits = decision(pods, refused_resizes=(thrice, *again))
    assert waits.resizes == ()
    assert ready_of(waits) == ("PodsNotResized", f"pod web-1: {message}")


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_pods_that_have_ended_do_not_count(phase: str) -> None:
    gone = running("web-2", change={"metadata": {"deletionTimestamp": stamp(NOW)}})
    over = running("web-3", change={"status": {"phase": phase}})
    assert actuation(decision([running("web-1", LARGER), gone, over])).resized == "1/1"


@pytest.mark.parametrize(
    ("requests", "limits", "whole", "expected"),
    [
        ({}, None, None, "BestEffort"),
        ({"cpu": "0"}, None, None, "BestEffort"),
        ({"cpu": "1"}, None, None, "Burstable"),
        ({"cpu": "1"}, {"cpu": "1"}, None, "Burstable"),
        (REQUESTS, REQUESTS, None, "Guaranteed"),
        ({}, REQUESTS, None, "Guaranteed"),
        (REQUESTS, {"cpu": "2", "memory": "1Gi"}, None, "Burstable"),
        (REQUESTS, REQUESTS, {"requests": {"cpu": "4"}}, "Burstable"),
    ],
)
def test_the_qos_class(requests: Any, limits: Any, whole: Any, expected: str) -> None:
    web_pod = pod(
        containers=[container(requests=requests, limits=limits)], change={"spec": {"resources": whole}}
    )
    assert qos_of(web_pod) == expected


def qos_of(pod: Pod) -> str:
    """The QoS class of a pod with the containers that it has."""
    of_pod = {} if pod.spec.resources is None else {POD: pod.spec.resources}
    return qos_class(
        pod, read_all({container.name: container.resources for container in pod.spec.containers} | of_pod)
    )


cpus = st.integers(1, 8000).map("{}m".format)
memories = st.integers(1, 8192).map(lambda n: str(n * MIB))
sizes = st.fixed_dictionaries({"cpu": cpus, "memory": memories})


@given(has=sizes, limits=st.none() | sizes, wanted=sizes, wanted_limits=st.none() | sizes)
def test_whatever_is_asked_for_the_api_server_could_take(
    has: dict[str, str],
    limits: dict[str, str] | None,
    wanted: dict[str, str],
    wanted_limits: dict[str, str] | None,
) -> None:
    """Nothing is removed, requests are not above limits, and the QoS class stays."""

    def valid(requests: dict[str, str], bound: dict[str, str]) -> dict[str, str]:
        low, high = amounts(requests), amounts(bound)
        return {name: bound[name] if high[name] >= low[name] else requests[name] for name in high}

    had = None if limits is None else valid(has, limits)
    pod = running(requests=has, limits=had)
    bounds = {} if wanted_limits is None else {"limits": valid(wanted, wanted_limits)}
    for asked in resized(decision([pod], {"requests": wanted, **bounds})).values():
        requests = {**has, **asked.get("requests", {})}
        after_limits = {**(had or {}), **asked.get("limits", {})}
        low, high = amounts(requests), amounts(after_limits)
        assert all(low[name] <= high[name] for name in high)
        after = running(requests=requests, limits=after_limits or None)
        assert qos_of(after) == qos_of(pod)
