"""The count that one metric asks for: the cases of Kubernetes' own tests of its replica calculator, as numbers."""

from __future__ import annotations

import msgspec
import pytest

from hvpa.api.objects.read_models import MetricName, ObjectReference
from hvpa.recommend.golang.numbers import MAX_INT32, MAX_INT64, MIN_INT32, MIN_INT64
from hvpa.recommend.hpa.controller import MetricsError, PodReading
from hvpa.recommend.hpa.replicas import (
    by_external,
    by_external_per_pod,
    by_object,
    by_object_per_pod,
    by_pods_metric,
    by_resource_usage,
    by_utilization,
)
from tests.unit.recommend.hpa.world import (
    NOW,
    WINDOW,
    Given,
    before,
    make_pod,
    make_pods,
    readings,
    situation,
)

QPS = MetricName(name="qps")
SOME = ObjectReference(kind="Deployment", name="some-deployment", api_version="apps/v1")
R, U, H, P, F, D = "ready", "unready", "starting", "pending", "failed", "deleted"
Levels = list[int | None]


@pytest.mark.parametrize(
    ("states", "levels", "target", "current", "replicas", "utilization", "raw"),
    [
        pytest.param([R] * 3, [300, 500, 700], 30, 3, 5, 50, 500, id="up"),
        pytest.param(
            [U, R, R], [300, 500, 700], 30, 3, 4, 60, 600, id="up less: an unready pod uses nothing"
        ),
        pytest.param(
            [H, R, R], [300, 500, 700], 30, 3, 4, 60, 600, id="up less: a starting pod uses nothing"
        ),
        pytest.param([R, U, U], [400, 500, 700], 30, 3, 3, 40, 400, id="unready pods turn the direction"),
        pytest.param([R, H, H], [400, 500, 700], 30, 3, 3, 40, 400, id="starting pods turn the direction"),
        pytest.param([R, R, F, F], [500, 700, None, None], 30, 2, 4, 60, 600, id="up, failed pods ignored"),
        pytest.param([R, R, D, D], [500, 700, None, None], 30, 2, 4, 60, 600, id="up, deleted pods ignored"),
        pytest.param([R, R, D, D], [500, 700, 9, 9], 30, 2, 4, 60, 600, id="deleted pods' readings ignored"),
        pytest.param([R] * 5, [100, 300, 500, 250, 250], 50, 5, 3, 28, 280, id="down"),
        pytest.param(
            [R, R, R, U, U], [100, 300, 500, 250, 250], 50, 5, 2, 30, 300, id="down, unready left out"
        ),
        pytest.param(
            [R, R, R, H, H], [100, 300, 500, 250, 250], 50, 5, 2, 30, 300, id="down, starting left out"
        ),
        pytest.param(
            [R, P, P, P, P], [100, None, None, None, None], 50, 5, 1, 10, 100, id="down, unscheduled left out"
        ),
        pytest.param(
            [R, P, P, P, P], [100, 9, 9, 9, 9], 50, 5, 1, 10, 100, id="pending pods' readings left out"
        ),
        pytest.param(
            [R] * 5 + [F] * 2, [100, 300, 500, 250, 250, 1, 1], 50, 5, 3, 28, 280, id="down, failed ignored"
        ),
        pytest.param([R] * 3, [1010, 1030, 1020], 100, 3, 3, 102, 1020, id="within tolerance"),
        pytest.param(
            [R] * 4, [4000, 9500, 3000, 7000, 3200, 2000], 100, 4, 24, 587, 5875, id="readings too many"
        ),
        pytest.param([R] * 4, [400, 95, None, None], 100, 4, 3, 24, 247, id="missing readings count in full"),
        pytest.param([R] * 2, [1000, None], 100, 2, 2, 100, 1000, id="missing, on target"),
        pytest.param([R] * 2, [1900, None], 100, 2, 2, 190, 1900, id="missing, up turns"),
        pytest.param([R] * 2, [600, None], 100, 2, 2, 60, 600, id="missing, down within tolerance"),
        pytest.param([U, R, R], [100, 450, None], 50, 3, 3, 45, 450, id="missing and unready, no change"),
        pytest.param([H, R, R], [100, 450, None], 50, 3, 3, 45, 450, id="missing and starting, no change"),
        pytest.param([U, R, R], [100, 2000, None], 50, 3, 4, 200, 2000, id="missing and unready, up"),
        pytest.param([U, R, R, R], [100, 100, 100, None], 50, 4, 3, 10, 100, id="missing and unready, down"),
        pytest.param([R] * 3, [100, 100, None], 50, 2, 2, 10, 100, id="rolling update with a surge"),
        pytest.param(
            [R] * 3, [None, 1000, 1000], 100, 1, 1, 100, 1000, id="no direction: missing pods are not added"
        ),
        pytest.param([R, R, U], [400, 400, None], 20, 2, 4, 40, 400, id="unready without a reading"),
        pytest.param([R] * 3, [0, 0, 0], 50, 3, 0, 0, 0, id="no usage"),
    ],
)
def test_by_utilization(
    states: list[str], levels: Levels, target: int, current: int, replicas: int, utilization: int, raw: int
) -> None:
    here = situation(make_pods(*states), Given(levels), current)
    assert by_utilization(here, "cpu", "", target) == (replicas, raw, utilization)


def test_a_target_above_100_percent_is_what_missing_pods_use() -> None:
    pods = [make_pod("p0", U), make_pod("p1"), make_pod("p2", request="2"), make_pod("p3", request="2")]
    found = by_utilization(situation(pods, Given([200, 100, 100, None]), 4), "cpu", "", 300)
    assert found == (2, 100, 6)


@pytest.mark.parametrize(
    ("levels", "down", "up", "replicas"),
    [
        ([909, 1010, 1111], 0.0, 0.0, 4),
        ([1890, 1910, 1900], 0.1, 2.0, 3),
        ([1100, 1080, 1090], 2.0, 0.08, 4),
        ([1010, 1030, 1020], 0.1, 0.1, 3),
        ([650, 650, 650], 0.4, 0.1, 3),
        ([650, 650, 650], 0.3, 0.1, 2),
    ],
)
def test_tolerance_per_direction(levels: Levels, down: float, up: float, replicas: int) -> None:
    pods = [make_pod("p0", request="0.9"), make_pod("p1", request="1.0"), make_pod("p2", request="1.1")]
    assert (
        by_utilization(situation(pods, Given(levels), 3, down=down, up=up), "cpu", "", 100).replicas
        == replicas
    )


def test_one_container_of_several() -> None:
    pods = [make_pod(f"p{i}", container="main") for i in range(3)]
    given = Given([9000] * 3, resources={("cpu", "main"): readings([300, 500, 700])})
    assert by_utilization(situation(pods, given, 3), "cpu", "main", 30) == (5, 500, 50)


@pytest.mark.parametrize(
    ("pods", "levels", "container", "error"),
    [
        ([], [100], "", "no pods returned by selector while calculating replica count"),
        (
            make_pods(R),
            None,
            "",
            "unable to get metrics for resource cpu: no metrics returned from resource metrics API",
        ),
        (make_pods(R), [], "", "did not receive metrics for targeted pods (pods might be unready)"),
        (make_pods(U), [100], "", "did not receive metrics for targeted pods (pods might be unready)"),
        (make_pods(R, request=None), [100], "", "missing request for cpu in container app of Pod p0"),
        (make_pods(R, request="0"), [100], "", "no metrics returned matched known pods"),
        ([make_pod("another")], [100], "", "no metrics returned matched known pods"),
        (make_pods(R), [100], "main", "container main not found in Pod p0"),
    ],
)
def test_no_utilization(pods: list[object], levels: Levels | None, container: str, error: str) -> None:
    given = Given(levels, resources=None if levels is None else {("cpu", "main"): readings(levels)})
    with pytest.raises(MetricsError) as raised:
        by_utilization(situation(pods, given, 1), "cpu", container, 50)  # type: ignore[arg-type]
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("state", "reading_age", "counts"),
    [
        ("starting", 0.0, False),  # the window began before the pod was ready
        ("starting", -15.0, True),  # a whole window since it is ready
        ("unready", 0.0, False),
        ("was-ready", 0.0, True),
        ("blank", 0.0, False),
        ("succeeded", 0.0, True),
    ],
)
def test_whose_cpu_counts(state: str, reading_age: float, counts: bool) -> None:
    seen = {"p0": PodReading(1000, NOW, WINDOW), "p1": PodReading(0, before(seconds=reading_age), WINDOW)}
    here = situation([make_pod("p0"), make_pod("p1", state)], Given(resources={("cpu", ""): seen}), 2)
    assert by_utilization(here, "cpu", "", 100).measured == (500 if counts else 1000)


def test_a_transition_without_a_time_is_long_ago() -> None:

    pod = make_pod("p0", "unready")
    bare = msgspec.structs.replace(pod.status.conditions[0], last_transition_time=None)
    pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[bare]))
    with pytest.raises(MetricsError, match="pods might be unready"):
        by_utilization(situation([pod], Given([100]), 1), "cpu", "", 50)


@pytest.mark.parametrize("state", ["starting", "unready", "blank"])
def test_readiness_is_nothing_to_memory(state: str) -> None:
    gib = 1024**3 * 1000
    here = situation(make_pods(R, state), Given(resources={("memory", ""): readings([gib, 3 * gib])}), 2)
    assert by_utilization(here, "memory", "", 100) == (4, 2 * gib, 200)


@pytest.mark.parametrize(
    ("states", "levels", "target", "current", "replicas", "measured"),
    [
        pytest.param([R] * 3, [20000, 10000, 30000], 15000, 3, 4, 20000, id="up"),
        pytest.param([R, R, H], [50000, 10000, 30000], 15000, 3, 6, 30000, id="readiness is nothing to it"),
        pytest.param([R] * 5, [12000] * 5, 20000, 5, 3, 12000, id="down"),
        pytest.param([R] * 3, [20000, 21000, 21000], 20000, 3, 3, 20666, id="within tolerance"),
        pytest.param([R] * 5, [20000, 19000, 21000, None, None], 20000, 5, 5, 20000, id="missing, on target"),
        pytest.param([R] * 3, [10000, 10000, None], 17000, 2, 2, 10000, id="rolling update with a surge"),
        pytest.param([R, P], [40000, None], 15000, 1, 3, 40000, id="up with an unready pod"),
        pytest.param(
            [R, R, P], [16000, 18000, None], 15000, 3, 3, 17000, id="an unready pod turns the direction"
        ),
        pytest.param([R] * 2, [50000, None], 20000, 2, 3, 50000, id="up, missing use nothing"),
        pytest.param([R], [10000, 50000], 15000, 1, 2, 30000, id="unknown pods' readings count"),
        # the document's two examples: 75 on average against 60; one of two not received
        pytest.param([R] * 2, [50000, 100000], 60000, 2, 3, 75000, id="document: 50 and 100 against 60"),
        pytest.param([R] * 2, [2000, None], 60000, 2, 2, 2000, id="document: one of two is missing"),
    ],
)
def test_by_an_amount_per_pod(
    states: list[str], levels: Levels, target: int, current: int, replicas: int, measured: int
) -> None:
    here = situation(make_pods(*states), Given(custom=levels), current)
    assert by_pods_metric(here, QPS, target) == (replicas, measured, None)


def test_by_resource_usage_looks_at_readiness_for_cpu() -> None:
    here = situation(make_pods(R, R, H), Given([200, 400, 900]), 3)
    assert by_resource_usage(here, "cpu", "", 100) == (6, 300, None)


def test_no_amount_per_pod() -> None:
    for custom, error in (
        (None, "unable to fetch metrics from custom metrics API: down"),
        ([], "no metrics returned"),
    ):
        with pytest.raises(MetricsError, match=f"^unable to get metric qps: {error}"):
            by_pods_metric(situation(make_pods(R), Given(custom=custom), 1), QPS, 1)
    with pytest.raises(MetricsError, match="did not receive metrics"):
        by_resource_usage(situation(make_pods(U), Given([100]), 1), "cpu", "", 1)


@pytest.mark.parametrize(
    ("states", "value", "target", "current", "replicas"),
    [
        ([R] * 3, 20000, 15000, 3, 4),
        ([U, R, U], 50000, 10000, 3, 5),
        ([R, P, F], 50000, 10000, 3, 5),
        (["blank", R], 50000, 10000, 2, 5),
        ([R] * 5, 12000, 20000, 5, 3),
        ([R] * 3, 20666, 20000, 3, 3),
        ([R] * 3, MAX_INT64, 1, 3, MAX_INT32),
        ([U] * 3, 50000, 10000, 3, 0),
        ([R] * 3, 50000, 0, 3, MAX_INT32),  # infinite
        ([U] * 3, 50000, 0, 3, MIN_INT32),  # infinite times nothing: no number, as Go converts it
    ],
)
def test_by_object_and_external(
    states: list[str], value: int, target: int, current: int, replicas: int
) -> None:
    here = situation(make_pods(*states), Given(value=value, values=[value]), current)
    assert by_object(here, QPS, SOME, target) == (replicas, value, None)
    assert by_external(here, QPS, target) == (replicas, value, None)


@pytest.mark.parametrize(
    ("value", "target", "current", "replicas", "average"),
    [
        (20000, 5000, 3, 4, 6667),
        (6000, 2000, 5, 3, 1200),
        (20166, 5000, 4, 4, 5042),
        (8600, 2150, 3, 4, 2867),
        (8600, 2867, 5, 3, 1720),
        (8600, 2900, 3, 3, 2867),
        (MAX_INT64, MAX_INT64, 1, 1, MAX_INT64),
    ],
)
def test_per_pod(value: int, target: int, current: int, replicas: int, average: int) -> None:
    here = situation([], Given(value=value, values=[value]), current)
    assert by_external_per_pod(here, QPS, target) == (replicas, average, None)
    if value < MAX_INT64:
        assert by_object_per_pod(here, QPS, SOME, target) == (replicas, average, None)


def test_per_pod_without_pods_in_the_status() -> None:
    here = situation(make_pods(R), Given(value=5000, values=[5000]), 1, status_replicas=0)
    assert by_object_per_pod(here, QPS, SOME, 1000) == (5, MIN_INT64, None)
    assert by_external_per_pod(here, QPS, 1000) == (5, MIN_INT64, None)


def test_sums_of_external_values_stop_at_the_largest_integer() -> None:
    here = situation(make_pods(R), Given(values=[MAX_INT64, 5, 7]), 1)
    assert by_external(here, QPS, 1).measured == MAX_INT64
    assert by_external_per_pod(here, QPS, 1) == (MAX_INT32, MAX_INT64, None)
    here = situation(make_pods(R), Given(values=[-5000, 7000]), 1)
    assert by_external(here, QPS, 1000) == (2, 2000, None)
    assert (
        by_external_per_pod(here, QPS, 1000).measured == MAX_INT64
    )  # Go takes a negative sum for an overflow


def test_no_object_or_external_value() -> None:
    here = situation(make_pods(R), Given(), 1)
    down = "unable to fetch metrics from {} metrics API: down"
    text = f"unable to get metric qps: Deployment on shop some-deployment/{down.format('custom')}"
    for ask in (by_object, by_object_per_pod):
        with pytest.raises(MetricsError) as raised:
            ask(here, QPS, SOME, 1)
        assert str(raised.value) == text
    text = f"unable to get external metric shop/qps/nil: {down.format('external')}"
    for fetch in (by_external, by_external_per_pod):
        with pytest.raises(MetricsError) as raised:
            fetch(here, QPS, 1)
        assert str(raised.value) == text
    with pytest.raises(MetricsError, match="no metrics returned from external metrics API"):
        by_external(situation(make_pods(R), Given(values=[]), 1), QPS, 1)
    with pytest.raises(MetricsError, match="unable to calculate ready pods: no pods returned by selector"):
        by_external(situation([], Given(values=[5]), 1), QPS, 1)
    with pytest.raises(MetricsError, match=r'^"Like" is not a valid label selector operator$'):
        by_external(
            here, MetricName(name="qps", selector={"matchExpressions": [{"key": "a", "operator": "Like"}]}), 1
        )


def test_requests_are_added_up_over_containers() -> None:

    pod = make_pod("p0", request="300m")
    two = [*pod.spec.containers, msgspec.structs.replace(pod.spec.containers[0], name="second")]
    pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=two))
    twin = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, name="p1"))
    here = situation([pod, twin], Given([300, 300], resources={("cpu", "second"): readings([300, 300])}), 2)
    assert by_utilization(here, "cpu", "", 50).utilization == 50
    assert by_utilization(here, "cpu", "second", 50).utilization == 100


def test_the_edge_of_the_tolerance() -> None:
    """The tolerance is compared as Go's floats are: 1.1 is within 10 percent, one percent more is not."""
    for level, replicas in ((1100, 10), (1110, 12)):
        here = situation(make_pods(*[R] * 10), Given([level] * 10), 10)
        assert by_utilization(here, "cpu", "", 100).replicas == replicas
