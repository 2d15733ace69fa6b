"""More CPU for the start of native sidecars and init containers: `hvpa.core.actuation.startup`."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import pytest

from builders.build import at, container, decided, hvpa, merged, objects, scalable, stamp, vpa, workload
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Decision, LargestNode, Objects
from hvpa.core.path.path import ResourceKey
from tests.unit.core.actuation.sized_pods import (
    REQUESTS,
    actuation,
    resize_condition,
    running,
    size_status,
)
from tests.unit.core.actuation.starting_pods import KEY

BOOST: Final = {"container": "mesh", "cpu": {"factor": 3}}
USUAL: Final = {"cpu": "200m"}
BOOSTED: Final = {"cpu": "600m"}
UP: Final = {"initContainers": [{"name": "mesh", "resources": {"requests": {"cpu": "600m"}}}]}
DOWN: Final = {"initContainers": [{"name": "mesh", "resources": {"requests": {"cpu": "200m"}}}]}
OWN: Final[Mapping[str, Any]] = {
    "updateStrategy": {"type": "InPlace"},
    "hpa": {"deploy": False},
    "startupBoost": [BOOST],
}


def mesh(requests: Mapping[str, str] = USUAL, **more: Any) -> dict[str, Any]:
    """A native sidecar."""
    return {**container("mesh", requests=requests), "restartPolicy": "Always", **more}


def beside(
    requests: Mapping[str, str] = BOOSTED,
    seconds: float = 20,
    has: Mapping[str, str] | None = None,
    own: Mapping[str, Any] | None = None,
    *,
    ready: bool = False,
    **more: Any,
) -> Pod:
    """A pod that was created so many seconds ago, whose sidecar requests this and `has` that."""
    started = stamp(at(seconds=-seconds))
    status = {
        "name": "mesh",
        "resources": {"requests": has or requests},
        "state": {"running": {"startedAt": started}},
    }
    change = {
        "spec": {"initContainers": [mesh(requests)]},
        "status": {
            "startTime": started,
            "initContainerStatuses": [merged(status, own or {})],
            "conditions": [
                {"type": "Ready", "status": str(ready), "lastTransitionTime": started},
                *more.pop("conditions", ()),
            ],
        },
    }
    return running(change=merged(change, more))


def inputs(*pods: Pod, first: Any = None, **rest: Any) -> Objects:
    """A Deployment with a sidecar (or other init containers), and its pods."""
    spec = {**OWN, **rest.pop("spec", {})}
    status = merged(size_status(len(pods), {}), rest.pop("status", {}))
    inside = {"initContainers": [mesh()] if first is None else first}
    target = workload(
        len(pods),
        containers=[container(requests=REQUESTS)],
        change={"spec": {"template": {"spec": inside}}, **rest.pop("target", {})},
    )
    return objects(hvpa(spec, status), target, None, vpa({"app": REQUESTS}), pods, **rest)


def asked(decision: Decision) -> list[Any]:
    return [resize.body["spec"] for resize in decision.resizes]


@pytest.mark.parametrize(
    ("pod", "boost", "resizes"),
    [
        (beside(USUAL), {}, [UP]),
        (beside(), {}, []),
        (beside(ready=True), {}, [DOWN]),
        (beside(seconds=121), {}, [DOWN]),
        (beside(own={"started": True}), {"until": "Started"}, [DOWN]),
        (beside(own={"started": False}), {"until": "Started"}, []),
        (
            beside(seconds=130, own={"state": {"running": {"startedAt": stamp(at(seconds=-60))}}}),
            {},
            [],
        ),
        (
            beside(
                seconds=130,
                own={"restartCount": 1, "state": {"running": {"startedAt": stamp(at(seconds=-60))}}},
            ),
            {},
            [DOWN],
        ),
        (beside(USUAL, seconds=3600, ready=True), {}, []),
    ],
)
def test_a_sidecar_has_the_boost_until_the_pod_has_started(
    pod: Pod, boost: Mapping[str, Any], resizes: list[Any]
) -> None:
    spec = {"startupBoost": [{**BOOST, **boost}]}
    assert asked(decided(inputs(pod, spec=spec))) == resizes


def test_the_start_of_a_sidecar_is_counted_and_recorded() -> None:
    outcome = decided(inputs(beside(), creation_sizes=()))
    assert (actuation(outcome).starting, actuation(outcome).resized) == (1, "0/1")
    assert [(boost.name, boost.requests) for boost in outcome.status.boosts] == [("mesh", {"cpu": "600m"})]
    assert outcome.creation_sizes == {KEY: "web; mesh 600m: :"}


def test_an_end_under_way_is_awaited() -> None:
    outcome = decided(inputs(beside(USUAL, 200, has=BOOSTED, ready=True)))
    assert asked(outcome) == []
    assert actuation(outcome).in_progress == 1


def test_a_sidecars_boost_without_room_is_taken_back() -> None:
    deferred = resize_condition("Pending", "Deferred", seconds=1)
    outcome = decided(inputs(beside(has=USUAL, conditions=[deferred])))
    assert asked(outcome) == [DOWN]
    assert "no startup boost: pod web-1" in actuation(outcome).message


def test_a_sidecars_boost_is_no_capacity() -> None:
    seen = scalable(inputs(beside(), largest_node=LargestNode({"cpu": 64000, "memory": 1 << 40})))
    assert seen.pods.boosted == (Fraction(1600, 1200), Fraction(1))
    assert seen.pods.unlike == {}
    assert seen.pods.sizes[ResourceKey("mesh", "cpu")] == 200


def test_a_sidecar_whose_resize_of_others_waits_says_nothing_about_a_pod() -> None:
    """Only sidecars with a boost count."""
    other = beside({"cpu": "900m"}, 3600, has=USUAL, ready=True)
    outcome = decided(inputs(other, spec={"startupBoost": [{**BOOST, "container": "app"}]}))
    assert actuation(outcome).resized == "1/1"


def test_the_boost_of_a_sidecar_fits_the_largest_node() -> None:
    """1500m: 1 core is the app's, 200m are the sidecar's, 300m are left."""
    outcome = decided(inputs(beside(USUAL), largest_node=LargestNode({"cpu": 1500}), creation_sizes=()))
    assert outcome.creation_sizes == {KEY: "web; mesh 500m: :"}


def test_a_sidecar_that_a_resize_restarts_has_no_boost() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    outcome = decided(inputs(beside(USUAL), first=[mesh(resizePolicy=policy)]))
    assert asked(outcome) == []
    assert "container mesh: a resize of its CPU restarts it" in actuation(outcome).message


def test_a_pod_stays_guaranteed_with_the_boost_of_its_sidecar() -> None:
    size, more = {"cpu": "1", "memory": "1Gi"}, {"cpu": "3", "memory": "1Gi"}
    whole = {"requests": size, "limits": size}
    both = {**container("mesh", requests=size, limits=size), "restartPolicy": "Always"}
    change = {"spec": {"containers": [container(requests=size, limits=size)], "initContainers": [both]}}
    pod = running(
        has=whole,
        change=merged(
            change, {"status": {"startTime": stamp(at(seconds=-9)), "conditions": [{"type": "Ready"}]}}
        ),
    )
    target = {"spec": {"template": {"spec": change["spec"]}}}
    [resize] = asked(decided(inputs(pod, target=target)))
    cpu = {"cpu": more["cpu"]}
    assert resize == {"initContainers": [{"name": "mesh", "resources": {"requests": cpu, "limits": cpu}}]}


# --- init containers ---
LIMITED: Final = container("migrate", requests={"cpu": "100m"}, limits={"cpu": "200m"})
OF_FIRST: Final = {"startupBoost": [{**BOOST, "container": "migrate"}]}


def test_new_pods_have_a_larger_limit_of_an_init_container() -> None:
    pod = running(change={"spec": {"initContainers": [LIMITED]}})
    outcome = decided(inputs(pod, first=[LIMITED], spec=OF_FIRST, creation_sizes=()))
    assert outcome.creation_sizes == {KEY: "web; migrate :600m :"}
    assert (asked(outcome), outcome.status.boosts) == ([], ())
    assert actuation(outcome).message == ""


@pytest.mark.parametrize(
    ("first", "boost", "why"),
    [
        (
            container("migrate", requests={"cpu": "100m"}),
            {},
            "it has no CPU limit, so it may use all CPU that is left",
        ),
        (
            container("migrate", requests=REQUESTS, limits=REQUESTS),
            {},
            "a larger limit would change the pod's QoS class",
        ),
        (
            container("migrate", requests={}, limits=REQUESTS),
            {},
            "a larger limit would change the pod's QoS class",
        ),
        (LIMITED, {"cpu": {"value": "200m"}}, "a boost to 200m CPU is not more than its limit, 200m CPU"),
    ],
)
def test_why_an_init_container_has_no_boost(first: Any, boost: Mapping[str, Any], why: str) -> None:
    spec = {"startupBoost": [{**BOOST, "container": "migrate", **boost}]}
    outcome = decided(inputs(running(), first=[first], spec=spec, creation_sizes=()))
    assert actuation(outcome).message == f"no startup boost: init container migrate: {why}"
    assert not outcome.creation_sizes


def test_without_the_policy_init_containers_have_no_boost() -> None:
    outcome = decided(inputs(running(), first=[LIMITED], spec=OF_FIRST))
    assert "by the policy for sizes at creation, which is not installed" in actuation(outcome).message


def test_init_containers_have_no_boost_while_new_pods_are_refused_or_nothing_is_applied() -> None:
    had = ((KEY, "web; migrate :600m :"),)
    failed = {"status": {"conditions": [{"type": "ReplicaFailure", "status": "True"}]}}
    refused = decided(inputs(running(), first=[LIMITED], spec=OF_FIRST, creation_sizes=had, target=failed))
    assert refused.creation_sizes == {KEY: None}
    assert "new pods are refused" in actuation(refused).message
    paused = {**OF_FIRST, "mode": "Recommend"}
    recommends = decided(inputs(running(), first=[LIMITED], spec=paused, creation_sizes=had))
    assert recommends.creation_sizes == {KEY: None}


@pytest.mark.parametrize("boost", [[], [{**BOOST, "container": "app"}]])
def test_an_edit_of_mode_and_boost_at_once_leaves_no_limit_to_new_init_containers(boost: list[Any]) -> None:
    entry = ((KEY, "web; app 1: 1Gi:; migrate :600m :"),)
    pod = running(change={"spec": {"initContainers": [LIMITED]}})
    spec = {"startupBoost": boost, "mode": "Recommend"}
    outcome = decided(inputs(pod, first=[LIMITED], spec=spec, creation_sizes=entry))
    assert outcome.creation_sizes == {KEY: "web; app 1: 1Gi:"}


def test_a_name_that_no_container_has_is_an_error() -> None:
    outcome = decided(inputs(running(), spec={"startupBoost": [{**BOOST, "container": "none"}]}))
    assert actuation(outcome).message == "no startup boost: the pod template has no container none"
