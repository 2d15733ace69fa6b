"""More CPU for the start of pods that have resources of their own: the pod itself has room for it, and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders import build
from builders.build import at, container, decided, merged, stamp
from hvpa.api.objects.read_models import Pod, PodSpec, Resources
from hvpa.core import Decision
from hvpa.core.actuation.pods import sizes_in
from hvpa.core.actuation.startup import sizes_of_spec
from hvpa.core.actuation.trial import largest_of
from hvpa.core.model import LargestNode
from hvpa.core.workload.containers import wire
from hvpa.core.workload.pod_level import POD, own_resources
from tests.unit.core.actuation.sized_pods import actuation, resize_condition, size_status
from tests.unit.core.actuation.starting_pods import KEY
from tests.unit.core.report.test_bounds import policy
from tests.unit.core.workload.test_governed import objects
from tests.unit.core.workload.test_pod_level import after, drawn, is_accepted, pair, whole_of

OWN: Final = pair({"cpu": "400m", "memory": "1G"}, {"cpu": "800m", "memory": "1G"})
APP: Final = container("app", {"cpu": "300m"})
SIDE: Final = container("side", {})
BOOST: Final[dict[str, Any]] = {"container": "app", "cpu": {"factor": 3}}
OF_SHARED: Final[dict[str, Any]] = {"container": "side", "cpu": {"value": "1"}}
BOTH: Final = (BOOST, {**OF_SHARED, "atMost": "1m"})
REQUESTS_ONLY: Final = policy(containerName="*", controlledValues="RequestsOnly")


def starts(
    whole: Mapping[str, Any] = OWN,
    containers: Sequence[Mapping[str, Any]] = (APP, SIDE),
    init: Sequence[Mapping[str, Any]] = (),
    seconds: float = 20,
    has: Mapping[str, Any] | None = None,
    **status: Any,
) -> Pod:
    """A pod that was created so many seconds ago and is not ready. `has`: its own resources by its kubelet."""
    began = stamp(at(seconds=-seconds))
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": began}
    change = {
        "metadata": {"creationTimestamp": began, "generation": 2},
        "spec": {"resources": dict(whole), "initContainers": list(init)},
        "status": {
            "startTime": began,
            "conditions": [ready, *status.pop("conditions", ())],
            **({} if has is None else {"resources": dict(has)}),
            **status,
        },
    }
    made = build.pod("web-1", containers=containers, change=change)
    return structs.replace(made, spec=structs.replace(made.spec, resources=whole_of(made.spec)))


def boosted(
    pod: Pod,
    boosts: Sequence[Mapping[str, Any]] = (BOOST,),
    spec: Mapping[str, Any] | None = None,
    size: Mapping[str, Any] | None = None,
    whole: Mapping[str, Any] = OWN,
    containers: Sequence[Mapping[str, Any]] = (APP, SIDE),
    init: Sequence[Mapping[str, Any]] = (),
    **rest: Any,
) -> Decision:
    """What is decided about a pod whose VPA recommends nothing; `size` was decided before."""
    usual: dict[str, Any] = {"hpa": {"deploy": False}, "updateStrategy": {"type": "InPlace"}}
    own = build.hvpa(
        merged({**usual, "startupBoost": list(boosts)}, spec or {}),
        merged(size_status(1, size or {}, at(hours=-1)), rest.pop("status", {})),
    )
    inputs = objects(whole, containers, {}, init=init, pods=(pod,), **rest)
    return decided(replace(inputs, hvpa=own, hpas=()))


def changes(decision: Decision) -> dict[str, Any]:
    """What the pod is asked to have, by container; "" is the pod itself."""
    if not decision.resizes:
        return {}
    body: Any = decision.resizes[0].body["spec"]
    parts = (*body.get("containers", ()), *body.get("initContainers", ()))
    named = {one["name"]: one["resources"] for one in parts}
    return named | ({"": body["resources"]} if "resources" in body else {})


def cpu(request: str, limit: str | None = None) -> dict[str, Any]:
    return pair({"cpu": request}, None if limit is None else {"cpu": limit})


# --- begin and end ---------------------------------------------------------------------------------------------------
CASES: Final[dict[str, tuple[Any, Sequence[Any], dict[str, Any], dict[str, Any]]]] = {
    "the pod has room for its container, and its limit keeps its ratio": (
        OWN,
        [APP, SIDE],
        BOOST,
        {"app": cpu("900m"), "": cpu("1", "2")},
    ),
    "a pod without a limit": (cpu("400m"), [APP, SIDE], BOOST, {"app": cpu("900m"), "": cpu("1")}),
    "a Guaranteed pod stays one, and no container's limit is above the pod's": (
        pair({"cpu": "400m", "memory": "1G"}, {"cpu": "400m", "memory": "1G"}),
        [container("app", {"cpu": "300m"}, {"cpu": "400m"}), SIDE],
        BOOST,
        {"app": cpu("900m", "1"), "": cpu("1", "1")},
    ),
    "a limit alone, beside requests of containers": (
        {"limits": {"cpu": "800m"}},
        [APP],
        BOOST,
        {"app": cpu("900m"), "": cpu("900m", "2400m")},
    ),
    "a container without a request: what such containers share": (
        OWN,
        [APP, SIDE],
        {**BOOST, "container": "side"},
        {"": cpu("600m", "1200m")},
    ),
    "a pod whose only container has no request": (
        OWN,
        [container("app", {})],
        BOOST,
        {"": cpu("1200m", "2400m")},
    ),
    "a limit alone, and no request of a container": (
        {"limits": {"cpu": "800m"}},
        [container("app", {})],
        BOOST,
        {"": cpu("2400m", "2400m")},
    ),
    "a pod with memory of its own alone": (
        pair({"memory": "1G"}),
        [APP],
        BOOST,
        {"app": cpu("900m")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_pod_has_room_for_the_boost_of_its_container_and_returns_to_its_size(case: str) -> None:
    whole, containers, boost, expected = CASES[case]
    pod, rest = starts(whole, containers), {"whole": whole, "containers": containers}
    begin = boosted(pod, [boost], **rest)
    assert changes(begin) == expected
    assert actuation(begin).message == ""
    bigger = after(pod, begin.resizes[0].body)
    assert is_accepted(bigger.spec)
    assert boosted(bigger, [boost], **rest).resizes == ()
    end = boosted(aged(bigger, 300), [boost], **rest)
    assert after(bigger, end.resizes[0].body).spec == pod.spec
    assert boosted(aged(pod, 300), [boost], **rest).resizes == ()
    entry = sizes_in((boosted(pod, [boost], creation_sizes=(), **rest).creation_sizes or {})[KEY] or "")
    parts = {name: wire(size.requests) for name, size in entry.items()}
    assert parts == {name or POD: size["requests"] for name, size in expected.items()}


def aged(pod: Pod, seconds: float) -> Pod:
    """The same pod, created so many seconds ago."""
    began = at(seconds=-seconds)
    metadata = structs.replace(pod.metadata, creation_timestamp=began)
    status = structs.replace(pod.status, start_time=began, conditions=[])
    return structs.replace(pod, metadata=metadata, status=status)


def test_each_boost_ends_by_itself() -> None:
    """app and side have 900m and 1 core together; side's boost ends after a minute."""
    pod = starts()
    begin = boosted(pod, BOTH)
    assert changes(begin) == {"app": cpu("900m"), "": cpu("1900m", "3800m")}
    both = aged(after(pod, begin.resizes[0].body), 60)
    first = boosted(both, BOTH)
    assert changes(first) == {"": cpu("1", "2")}
    one = aged(after(both, first.resizes[0].body), 90)
    assert boosted(one, BOTH).resizes == ()
    last = boosted(aged(one, 120), BOTH)
    assert changes(last) == {"app": cpu("300m"), "": cpu("400m", "800m")}


def test_a_boost_that_begins_leaves_one_that_ends_its_room() -> None:
    """The factor of app was changed to 2 while side, whose boost is over, still has 1 core."""
    pod = starts(pair({"cpu": "1300m"}, {"cpu": "2600m"}), seconds=60)
    before = {"boosts": [{"name": "(shared)", "requests": {"cpu": "1"}, "atMost": "1m"}]}
    changed = ({**BOOST, "cpu": {"factor": 2}}, BOTH[1])
    begin = boosted(pod, changed, status=before)
    assert changes(begin) == {"app": cpu("600m"), "": cpu("1600m", "3200m")}
    end = boosted(after(pod, begin.resizes[0].body), changed, status=before)
    assert changes(end) == {"": cpu("700m", "1400m")}


def test_the_decided_size_is_the_usual_one() -> None:
    size = {
        "app": {"requests": {"cpu": "500m"}},
        "(shared)": {"requests": {"cpu": "200m"}, "limits": {"cpu": "1400m"}},
    }
    pod = starts(pair({"cpu": "700m"}, {"cpu": "1400m"}), [container("app", {"cpu": "500m"}), SIDE])
    begin = boosted(pod, size=size)
    assert changes(begin) == {"app": cpu("1500m"), "": cpu("1700m", "3400m")}
    bigger = after(pod, begin.resizes[0].body)
    assert changes(boosted(aged(bigger, 120), size=size)) == {"app": cpu("500m"), "": cpu("700m", "1400m")}
    assert boosted(pod, size=size, creation_sizes=()).creation_sizes == {
        KEY: "web; (pod) 1700m:3400m :; app 1500m: :"
    }


def test_the_begin_of_a_boost_carries_no_memory() -> None:
    size = {"(shared)": {"requests": {"memory": "2G"}, "limits": {"cpu": "800m", "memory": "2G"}}}
    pod = starts()
    begin = boosted(pod, size=size)
    assert changes(begin) == {"app": cpu("900m"), "": cpu("1", "2")}
    bigger = after(pod, begin.resizes[0].body)
    assert changes(boosted(bigger, size=size)) == {"": pair({"memory": "2G"}, {"memory": "2G"})}


GIVEN: Final = {
    "an injected container": (OWN, [APP, SIDE], [APP, SIDE, container("proxy", {"cpu": "50m"})]),
    "a LimitRange": (OWN, [APP, SIDE], [APP, container("side", {"cpu": "60m"}, {"cpu": "500m"})]),
    "a LimitRange, for all containers": (OWN, [SIDE], [container("side", {"cpu": "60m"})]),
    "a limit alone": ({"limits": {"cpu": "800m"}}, [SIDE], [container("side", {"cpu": "60m"})]),
}


@pytest.mark.parametrize("case", GIVEN)
def test_a_shared_boost_ends_although_others_gave_requests_to_containers(case: str) -> None:
    whole, template, containers = GIVEN[case]
    rest: dict[str, Any] = {"whole": whole, "containers": template}
    boosts, pod = [{**BOOST, "container": "side"}], starts(whole, containers)
    bigger = after(pod, boosted(pod, boosts, **rest).resizes[0].body)
    starting = boosted(bigger, boosts, **rest)
    assert (starting.resizes, actuation(starting).starting) == ((), 1)
    end = after(bigger, boosted(aged(bigger, 300), boosts, **rest).resizes[0].body)
    assert own_resources(end.spec).limits == own_resources(pod.spec).limits
    if "requests" in whole:
        assert end.spec == pod.spec
        assert counted(bigger, boosts, **rest) == counted(pod, boosts, **rest)


def test_a_pod_keeps_the_request_of_an_injected_init_container() -> None:
    """The API server refuses a pod that requests less than its init container, so the boost would never end."""
    whole, injected = {"limits": {"cpu": "800m"}}, [container("first", {"cpu": "100m"})]
    rest: dict[str, Any] = {"whole": whole, "containers": [container("app", {"cpu": "30m"})]}
    pod = starts(whole, rest["containers"], injected)
    assert own_resources(pod.spec).requests == {"cpu": 100}
    bigger = after(pod, boosted(pod, [{**BOOST, "cpu": {"factor": 5}}], **rest).resizes[0].body)
    assert own_resources(bigger.spec).requests == {"cpu": 150}
    end = boosted(aged(bigger, 300), [{**BOOST, "cpu": {"factor": 5}}], **rest)
    assert after(bigger, end.resizes[0].body).spec == pod.spec
    assert is_accepted(pod.spec)


def counted(pod: Pod, boosts: Sequence[Any], **rest: Any) -> Any:
    """The pod as it counts in decisions, without what is known about boosts."""
    observed = build.scalable(inputs_of(pod, boosts, **rest))
    return structs.replace(observed.pods, boosted=None), largest_of(observed, observed.resizable)


def test_a_shared_boost_of_a_pod_of_an_older_template_ends() -> None:
    """The container that requests 300m was named app."""
    bigger = after(starts(), boosted(starts(), [OF_SHARED]).resizes[0].body)
    renamed = [container("web", {"cpu": "300m"}), SIDE]
    end = boosted(aged(bigger, 300), [OF_SHARED], containers=renamed)
    assert changes(end) == {"": cpu("400m", "800m")}


# --- left out, or less -----------------------------------------------------------------------------------------------
def test_a_limit_that_stays_bounds_the_boosts_of_a_pod_together() -> None:
    """800m are the pod's limit and 400m its request: 399m are left, of which app has 300m."""
    boosts = [{**BOOST, "cpu": {"factor": 2}}, {**BOOST, "container": "side"}]
    begin = boosted(starts(), boosts, REQUESTS_ONLY)
    assert changes(begin) == {"app": cpu("600m"), "": {"requests": {"cpu": "799m"}}}


@pytest.mark.parametrize(
    ("spec", "containers", "why"),
    [
        (
            REQUESTS_ONLY,
            [container("app", {"cpu": "400m"})],
            "container app: a boost to 400m CPU is not more than its usual request, 400m CPU",
        ),
        (
            {},
            [container("app", {}), container("other", {"cpu": "400m"})],
            "container app: it requests no CPU",
        ),
        (
            {"startupBoost": [{**BOOST, "container": "side"}, BOOST]},
            [container("app", {}), SIDE],
            "container app: it shares the pod's CPU with side",
        ),
    ],
)
def test_why_a_container_of_such_a_pod_has_no_boost(
    spec: Mapping[str, Any], containers: Sequence[Any], why: str
) -> None:
    whole = {"limits": {"cpu": "400m"}} if len(spec) == 1 and "vpa" in spec else OWN
    outcome = boosted(starts(whole, containers), spec=spec, whole=whole, containers=containers)
    assert actuation(outcome).message == f"no startup boost: {why}"


def test_a_boost_without_room_is_taken_back_with_that_of_the_pod_and_not_tried_again() -> None:
    pod = after(starts(), boosted(starts()).resizes[0].body)
    waits = [{"name": "app", "resources": cpu("300m")}]
    deferred = starts(
        pair({"cpu": "1", "memory": "1G"}, {"cpu": "2", "memory": "1G"}),
        [container("app", {"cpu": "900m"}), SIDE],
        has=OWN,
        containerStatuses=waits,
        conditions=[resize_condition("Pending", "Deferred", seconds=1)],
    )
    assert deferred.spec == pod.spec
    outcome = boosted(deferred)
    assert changes(outcome) == {"app": cpu("300m"), "": cpu("400m", "800m")}
    again = boosted(starts(), refused_resizes=outcome.resizes[0].refused)
    assert again.resizes == ()
    assert actuation(again).resized == "1/1"


def test_the_end_of_a_boost_waits_for_no_memory_of_the_pod() -> None:
    """The kubelet defers the end together with a larger memory of the pod; the memory is set back first."""
    waits = starts(
        pair({"cpu": "400m", "memory": "2G"}, {"cpu": "800m", "memory": "2G"}),
        seconds=180,
        has=pair({"cpu": "1", "memory": "1G"}, {"cpu": "2", "memory": "1G"}),
        containerStatuses=[{"name": "app", "resources": cpu("900m")}],
        conditions=[resize_condition("Pending", "Deferred", seconds=1)],
    )
    size = {"(shared)": {"requests": {"memory": "2G"}, "limits": {"cpu": "800m", "memory": "2G"}}}
    assert changes(boosted(waits, size=size)) == {"": pair({"memory": "1G"}, {"memory": "1G"})}
    shared = structs.replace(
        waits,
        status=structs.replace(
            waits.status,
            resources=Resources({"cpu": "1300m", "memory": "1G"}, {"cpu": "2600m", "memory": "1G"}),
            container_statuses=[],
        ),
    )
    assert changes(boosted(shared, [OF_SHARED], size=size)) == {"": pair({"memory": "1G"}, {"memory": "1G"})}


def test_a_boost_fits_the_largest_node() -> None:
    node = LargestNode({"cpu": 700})
    assert changes(boosted(starts(), largest_node=node)) == {"app": cpu("600m"), "": cpu("700m", "1400m")}


# --- sidecars and init containers ------------------------------------------------------------------------------------
MESH: Final[dict[str, Any]] = {
    **container("mesh", {"cpu": "100m"}, {"cpu": "200m"}),
    "restartPolicy": "Always",
}
FIRST: Final[dict[str, Any]] = container("first", {"cpu": "100m"}, {"cpu": "200m"})


def test_the_pod_has_room_for_the_boost_of_a_sidecar() -> None:
    boost = {**BOOST, "container": "mesh"}
    pod, whole = starts(init=[MESH]), OWN
    begin = boosted(pod, [boost], init=[MESH])
    assert changes(begin) == {"mesh": cpu("300m", "600m"), "": cpu("600m", "1200m")}
    entry = boosted(pod, [boost], init=[MESH], creation_sizes=(), whole=whole).creation_sizes
    assert entry == {KEY: "web; (pod) 600m:1200m :; mesh 300m:600m :"}


def test_a_pod_whose_init_container_needs_as_much_as_a_boost_keeps_its_request() -> None:
    """Without a request of its own, the pod requests what the init container needs beside the sidecar."""
    whole, init = {"limits": {"cpu": "2"}}, [MESH, container("first", {"cpu": "900m"})]
    begin = boosted(starts(whole, [APP], init), whole=whole, containers=[APP], init=init)
    assert changes(begin) == {"app": cpu("900m")}


def test_an_init_container_has_no_larger_limit_than_its_pod() -> None:
    boost = {"container": "first", "cpu": {"factor": 10}}
    outcome = boosted(starts(init=[FIRST]), [boost], init=[FIRST], creation_sizes=())
    assert outcome.creation_sizes == {KEY: "web; first :800m :"}


# --- neither demand nor capacity -------------------------------------------------------------------------------------
@pytest.mark.parametrize("boosts", [(BOOST,), (OF_SHARED,), BOTH])
def test_a_boosted_pod_counts_as_if_it_had_its_usual_requests(boosts: Sequence[Any]) -> None:
    pod = starts()
    bigger = after(pod, boosted(pod, boosts).resizes[0].body)
    assert bigger.spec != pod.spec
    before, then = boosted(pod, boosts), boosted(bigger, boosts)
    assert then.containers == before.containers
    observed = [build.scalable(inputs_of(one, boosts)) for one in (pod, bigger)]
    usual, counted = [one.pods for one in observed]
    assert counted.sizes == usual.sizes
    assert counted.boosted is not None
    assert structs.replace(counted, boosted=None) == usual


def inputs_of(
    pod: Pod,
    boosts: Sequence[Any],
    whole: Mapping[str, Any] = OWN,
    containers: Sequence[Mapping[str, Any]] = (APP, SIDE),
    init: Sequence[Mapping[str, Any]] = (),
) -> Any:
    own = build.hvpa(
        {"updateStrategy": {"type": "InPlace"}, "startupBoost": list(boosts)}, size_status(1, {})
    )
    return replace(objects(whole, containers, {}, init=init, pods=(pod,)), hvpa=own)


@pytest.mark.parametrize(("factor", "times"), [(2, Fraction(1)), (6, Fraction(2))])
def test_the_hpas_count_is_corrected_by_the_requests_that_it_divides_by(factor: int, times: Fraction) -> None:
    """The pod requests the 900m of its init container: enough for 600m of the app, but not for 1800m."""
    whole, first = {"limits": {"cpu": "800m"}}, [container("first", {"cpu": "900m"})]
    pod, boosts = starts(whole, [APP], first), [{**BOOST, "cpu": {"factor": factor}}]
    bigger = after(pod, boosted(pod, boosts, whole=whole, containers=[APP], init=first).resizes[0].body)
    observed = build.scalable(inputs_of(bigger, boosts, whole, [APP], first))
    assert observed.pods.boosted is not None
    assert observed.pods.boosted[0] == times


def test_earlier_boosts_of_new_pods_end_and_are_recorded() -> None:
    """The entry of new pods has a boost of what containers share, which the spec no longer has."""
    had = ((KEY, "web; (pod) 1300m:2600m :"),)
    status = {"boosts": [{"name": "(shared)", "requests": {"cpu": "1"}}]}
    outcome = boosted(starts(), [], status=status, creation_sizes=had)
    assert [(one.name, one.requests) for one in outcome.status.boosts] == [("(shared)", {"cpu": "1"})]
    assert outcome.creation_sizes == {KEY: None}


@pytest.mark.parametrize(
    ("size", "entry", "then"),
    [
        ({}, "web; (pod) 1:2 :; app 900m: :", None),
        ({}, "web; (pod) 1300m:2600m :", None),
        (
            {"(shared)": {"requests": {"memory": "2G"}, "limits": {"cpu": "800m", "memory": "2G"}}},
            "web; (pod) 1:2 2G:2G; app 900m: :",
            "web; (pod) :800m 2G:2G",
        ),
        (
            {"app": {"requests": {"cpu": "300m"}}, "(shared)": {"limits": {"cpu": "800m"}}},
            "web; (pod) 1:2 :; app 900m: :",
            "web; (pod) 400m:800m :; app 300m: :",
        ),
        ({}, "web; (pod) 400m:800m :; app 300m: :", "unchanged"),
    ],
)
def test_new_pods_have_no_boost_while_nothing_is_applied(size: Any, entry: str, then: str | None) -> None:
    outcome = boosted(
        starts(),
        [BOOST, OF_SHARED],
        {"mode": "Recommend"},
        size,
        status={"boosts": [{"name": "app", "requests": {"cpu": "900m"}}]},
        creation_sizes=((KEY, entry),),
    )
    assert (outcome.creation_sizes or {KEY: "unchanged"}) == {KEY: then}


def test_a_boost_ends_if_pods_are_replaced_by_now() -> None:
    pod = starts()
    bigger = after(pod, boosted(pod).resizes[0].body)
    had = {"boosts": [{"name": "app", "requests": {"cpu": "900m"}}]}
    end = boosted(aged(bigger, 30), [], {"updateStrategy": {"type": "Rollout"}}, status=had)
    assert changes(end) == {"app": cpu("300m"), "": cpu("400m", "800m")}


def test_no_boost_becomes_a_size_by_a_rollback() -> None:
    pod = starts()
    bigger = after(pod, boosted(pod, BOTH).resizes[0].body)
    usual, counted = [build.scalable(inputs_of(one, BOTH)) for one in (pod, bigger)]
    assert largest_of(counted, counted.resizable) == largest_of(usual, usual.resizable)


# --- whatever the pods have ------------------------------------------------------------------------------------------
@given(
    drawn_pod=drawn(),
    fixed=st.booleans(),
    boosts=st.dictionaries(
        st.sampled_from(["c0", "c1", "c2", "native"]),
        st.tuples(st.integers(2, 50), st.sampled_from(["10s", "40s", "2m"])),
        min_size=1,
    ),
)
def test_every_boost_is_accepted_and_ends(drawn_pod: Any, fixed: bool, boosts: Any) -> None:
    whole, containers, init, _ = drawn_pod
    if not whole:
        return
    names = [one["name"] for one in (*containers, *init)]
    entries = [
        {"container": name, "cpu": {"factor": factor}, "atMost": at_most}
        for name, (factor, at_most) in boosts.items()
        if name in names
    ]
    rest: dict[str, Any] = {"whole": whole, "containers": containers, "init": init}
    rest["spec"] = REQUESTS_ONLY if fixed else {}
    first = pod = starts(whole, containers, init, seconds=1)
    new = boosted(pod, entries, creation_sizes=(), **rest).creation_sizes or {}
    for seconds in (1, 2, 15, 16, 45, 46, 130, 131):
        pod = aged(pod, seconds)
        for resize in boosted(pod, entries, **rest).resizes:
            pod = with_resize(pod, resize.body)
            assert is_accepted(pod.spec), pod.spec
        if seconds == 1 and new:
            made = created(first, whole, new[KEY] or "")
            assert numbers(made) == numbers(pod.spec)
    assert numbers(pod.spec) == numbers(first.spec)


def numbers(spec: PodSpec) -> Any:
    return sizes_of_spec(spec), own_resources(spec)


def with_resize(pod: Pod, body: Any) -> Pod:
    """The pod once it has been resized, also its sidecars."""
    spec = {key: value for key, value in body["spec"].items() if key != "initContainers"}
    changed = after(pod, {"spec": spec}) if spec else pod
    of_init = {one["name"]: one["resources"] for one in body["spec"].get("initContainers", ())}
    init = [
        structs.replace(one, resources=joined(one.resources, of_init.get(one.name, {})))
        for one in changed.spec.init_containers
    ]
    return structs.replace(changed, spec=structs.replace(changed.spec, init_containers=init))


def joined(have: Resources, change: Mapping[str, Any]) -> Resources:
    return Resources(have.requests | change.get("requests", {}), have.limits | change.get("limits", {}))


def created(pod: Pod, whole: Mapping[str, Any], entry: str) -> PodSpec:
    """The spec of a pod that the policy creates with this entry, and the API server completes."""
    sizes = {
        name: {"requests": wire(size.requests), "limits": wire(size.limits)}
        for name, size in sizes_in(entry).items()
    }
    own = Resources(whole.get("requests", {}), whole.get("limits", {}))
    of_pod = {
        section: {of: size for of, size in part.items() if of in whole.get(section, {})}
        for section, part in sizes.pop(POD, {}).items()
    }
    containers, init = [
        [structs.replace(one, resources=joined(one.resources, sizes.get(one.name, {}))) for one in some]
        for some in (pod.spec.containers, pod.spec.init_containers)
    ]
    spec = structs.replace(
        pod.spec, containers=containers, init_containers=init, resources=joined(own, of_pod)
    )
    return structs.replace(spec, resources=whole_of(spec))
