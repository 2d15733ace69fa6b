"""The model of the HPA controller: what the recorded answers (`test_recorded.py`) do not show."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import (
    Condition,
    Hpa,
    HpaStatusRead,
    Metric,
    MetricName,
    ObjectReference,
    Pod,
)
from hvpa.recommend.golang import MAX_INT32, MAX_INT64, MIN_INT64
from hvpa.recommend.hpa.pods import TargetPods, request_of
from hvpa.recommend.hpa.selector import SelectorError, check_selector, matches, parse_selector, show_selector
from hvpa_lab.recommend.hpa.controller import (
    HorizontalAutoscaler,
    HpaResult,
    HpaSettings,
    MetricsError,
    PodReading,
    Scale,
)
from hvpa_lab.recommend.hpa.plan import BehaviorPlan, DirectionPlan, PolicyPlan, Tolerance
from hvpa_lab.recommend.hpa.replicas import (
    Situation,
    by_external,
    by_external_per_pod,
    by_object_per_pod,
    by_pods_metric,
)
from hvpa_lab.recommend.hpa.scaling_history import ReplicaLimits, ScalingHistory
from tests.recorded.hpa import build as w

NOW = dt.datetime(2026, 11, 21, 10, 0, 0, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)
SELECTOR = "app=web"
QPS = MetricName(name="qps")
SERVICE = ObjectReference(kind="Service", name="front", api_version="v1")


class Given:
    """Metrics given by hand, in milli-units; an empty one is what can't be had."""

    def __init__(self, values: Sequence[int]) -> None:
        self.values = values

    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        if not self.values:
            raise MetricsError("no metrics returned from resource metrics API")
        return {f"p{i}": PodReading(value, NOW, MINUTE / 2) for i, value in enumerate(self.values)}

    def pods(self, metric: MetricName) -> Mapping[str, PodReading]:
        return self.resource("", "") if self.values else {}

    def object(self, metric: MetricName, described: ObjectReference) -> int:
        return next(iter(self.resource("", "").values())).value

    def external(self, metric: MetricName) -> Sequence[int]:
        return self.values


def hpa_of(status: HpaStatusRead | None = None, **spec: Any) -> Hpa:
    """An HPA of 1 to 10 replicas for 50 percent of CPU, with these fields."""
    whole = {"minReplicas": 1, "maxReplicas": 10, "metrics": [w.resource(utilization=50)], **spec}
    body = msgspec.json.encode({"metadata": {"name": "web", "namespace": "shop"}, "spec": whole})
    return msgspec.structs.replace(msgspec.json.decode(body, type=Hpa), status=status or HpaStatusRead())


def pods_of(count: int, **fields: Any) -> list[Pod]:
    """Pods that request a core."""
    return msgspec.convert(w.pods(count, cpu="1", **fields), list[Pod])


def sync(hpa: Hpa, *values: int, replicas: int = 2, now: dt.datetime = NOW) -> HpaResult:
    """One sync of a new controller with ready pods."""
    pods = pods_of(replicas)
    return HorizontalAutoscaler().sync(hpa, Scale(replicas, replicas, SELECTOR), pods, Given(values), now)


def situation(pods: Sequence[Pod], *values: int, current: int = 1, in_status: int | None = None) -> Situation:
    """What the calculation of one metric reads."""
    target = TargetPods(pods, NOW - 5 * MINUTE, MINUTE / 2)
    scale = Scale(current, current if in_status is None else in_status, SELECTOR)
    return Situation("shop", scale, target, Given(values), Tolerance(0.9, 1.1))


# --- the status --------------------------------------------------------------------------------------------
def test_the_status_is_the_same_object_while_nothing_changes_and_a_changed_spec_counts_at_once() -> None:
    autoscaler, scale, pods = HorizontalAutoscaler(), Scale(4, 4, SELECTOR), pods_of(4)

    def again(hpa: Hpa, *values: int) -> HpaResult:
        return autoscaler.sync(hpa, scale, pods, Given(values), NOW)

    status = again(hpa_of(), *[500] * 4).status
    assert again(hpa_of(status), *[500] * 4).status is status
    assert again(hpa_of(status), *[501] * 4).status is not status
    assert again(hpa_of(status, maxReplicas=3), *[500] * 4).replicas == 3


def test_times_are_whole_seconds() -> None:
    status = sync(hpa_of(), 900, 900, now=NOW.replace(microsecond=700_000)).status
    assert {
        status.last_scale_time,
        *(condition.last_transition_time for condition in status.conditions or ()),
    } == {NOW}


def test_without_replicas_scaling_is_disabled_and_a_status_without_metrics_stays() -> None:
    old = HpaStatusRead(
        current_replicas=4,
        desired_replicas=4,
        current_metrics=[Metric()],
        conditions=[Condition("Other", "True"), Condition("ScaledToZero", "False")],
    )
    outcome = sync(hpa_of(old), 9, replicas=0)
    status = outcome.status
    assert (outcome.replicas, outcome.events) == (None, ())
    assert (status.current_replicas, status.desired_replicas, status.current_metrics) == (0, 0, None)
    assert [
        (condition.type, condition.status, condition.reason) for condition in status.conditions or ()
    ] == [
        ("Other", "True", ""),
        ("ScaledToZero", "False", ""),
        ("AbleToScale", "True", "SucceededGetScale"),
        ("ScalingActive", "False", "ScalingDisabled"),
    ]
    empty = msgspec.structs.replace(status, current_metrics=[])
    assert sync(hpa_of(empty), replicas=0).status is empty


def test_down_to_zero_where_the_minimum_allows_it() -> None:
    """The API server accepts it beside an object's or external metric only; the arithmetic is the same."""
    autoscaler = HorizontalAutoscaler(HpaSettings(downscale_stabilization=0))
    scale, pods = Scale(2, 2, SELECTOR), pods_of(2)
    outcome = autoscaler.sync(hpa_of(minReplicas=0), scale, pods, Given([0, 0]), NOW + MINUTE)
    assert outcome.replicas is None, "the first count is remembered"
    assert autoscaler.sync(hpa_of(minReplicas=0), scale, pods, Given([0, 0]), NOW + 2 * MINUTE).replicas == 0


def test_a_count_below_zero_is_none() -> None:
    outcome = sync(hpa_of(metrics=[w.external("m", value="1")]), -5000)
    assert (outcome.replicas, outcome.status.desired_replicas) == (None, 2)


NO_USAGE = "neither an average utilization target nor an average value (usage) target was set"
NO_VALUE = "neither a value target nor an average value target was set"
LIKE = {"matchExpressions": [{"key": "a", "operator": "Like"}]}


@pytest.mark.parametrize(
    ("metric", "cause", "text"),
    [
        (
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Value", "value": "1"}}},
            f"invalid resource metric source: {NO_USAGE}",
            "failed to get cpu resource metric value: {}",
        ),
        (
            {"type": "Resource"},
            f"invalid resource metric source: {NO_USAGE}",
            "failed to get  resource metric value: {}",
        ),
        (
            {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "Value", "value": "1"}}},
            "invalid pods metric source: no average value target was set",
            "failed to get pods metric value: {}",
        ),
        (
            {"type": "Object", "object": {"target": {"type": "Value", "averageValue": "1"}}},
            f"invalid object metric source: {NO_VALUE}",
            "failed to get object metric value: {}",
        ),
        (
            {"type": "Object", "object": {"metric": {"name": "qps", "selector": LIKE}}},
            '"Like" is not a valid label selector operator',
            "failed to get object metric value: {}",
        ),
        (
            {"type": "External", "external": {"metric": {"name": "qps"}}},
            f"invalid external metric source: {NO_VALUE}",
            "failed to get qps external metric value: {}",
        ),
        ({"type": "Weather"}, 'unknown metric source type "Weather"', "{}"),
    ],
)
def test_a_metric_that_the_api_server_would_refuse(metric: dict[str, Any], cause: str, text: str) -> None:
    outcome = sync(hpa_of(metrics=[metric]), 500, 500)
    kind = metric["type"]
    reason = "InvalidMetricSourceType" if kind == "Weather" else f"FailedGet{kind}Metric"
    message = f"the HPA was unable to compute the replica count: {cause}"
    last = f"invalid metrics (1 invalid out of 1), first error is: {text.format(cause)}"
    assert (outcome.replicas, outcome.status.current_metrics) == (None, [Metric()])
    active = msgspec.structs.replace((outcome.status.conditions or [])[-1], last_transition_time=None)
    assert active == Condition("ScalingActive", "False", reason, message)
    assert outcome.events == (("Warning", reason, cause), ("Warning", "FailedComputeMetricsReplicas", last))


# --- the history --------------------------------------------------------------------------------------------
def test_a_policy_of_unknown_type_repeats_the_one_before() -> None:
    odd = DirectionPlan(
        dt.timedelta(), "Max", (PolicyPlan("Pods", 2, MINUTE), PolicyPlan("Nodes", 9, MINUTE)), MINUTE
    )
    for desired, limited in ((50, 7), (1, 3)):
        assert (
            ScalingHistory().limit_by_rules(desired, ReplicaLimits(5, 1, 99), BehaviorPlan(odd, odd), NOW)[0]
            == limited
        )


def test_the_history_does_not_grow_with_time() -> None:
    history = ScalingHistory()
    history.begin(3, NOW)
    brief = DirectionPlan(dt.timedelta(), "Max", (PolicyPlan("Pods", 1, MINUTE),), MINUTE)
    for number in range(1000):
        now = NOW + number * MINUTE / 4
        history.stabilize(number % 7, 5 * MINUTE, now)
        history.store(number % 2, 1 - number % 2, BehaviorPlan(brief, brief), now)
    assert len(history._recommendations) <= 22
    assert all(len(events) <= 5 for events in history._events.values())


# --- the count of one metric --------------------------------------------------------------------------------
def test_a_transition_without_a_time_is_long_ago() -> None:
    (pod,) = pods_of(1, ready=False)
    bare = [Condition("Ready", "False")]
    pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=bare))
    with pytest.raises(MetricsError, match="pods might be unready"):
        situation([pod], 100).target.group(Given([100]).resource("cpu", ""), "cpu")


def test_no_reading_of_any_pod() -> None:
    with pytest.raises(MetricsError, match=r"^unable to get metric qps: no metrics returned from custom"):
        by_pods_metric(situation(pods_of(1)), QPS, 1)


def test_amounts_per_pod_that_leave_64_bits() -> None:
    none = situation(pods_of(1), 5000, in_status=0)
    assert by_object_per_pod(none, QPS, SERVICE, 1000) == (5, MIN_INT64, None)
    assert by_external_per_pod(none, QPS, 1000) == (5, MIN_INT64, None)
    assert by_external_per_pod(situation([], MAX_INT64), QPS, MAX_INT64) == (1, MAX_INT64, None)
    assert by_object_per_pod(situation([], 8600, current=3), QPS, SERVICE, 2900) == (3, 2867, None)


def test_sums_of_external_values_stop_at_the_largest_integer() -> None:
    here = situation(pods_of(1), MAX_INT64, 5, 7)
    assert by_external(here, QPS, 1).measured == MAX_INT64
    assert by_external_per_pod(here, QPS, 1) == (MAX_INT32, MAX_INT64, None)
    here = situation(pods_of(1), -5000, 7000)
    assert by_external(here, QPS, 1000) == (2, 2000, None)
    assert by_external_per_pod(here, QPS, 1000).measured == MAX_INT64, (
        "Go takes a negative sum for an overflow"
    )


@pytest.mark.parametrize(
    ("inits", "expected"),
    [("", 100), ("proxy", 150), ("setup", 1000), ("proxy setup", 1050), ("setup proxy", 1000)],
)
def test_what_the_pod_as_a_whole_leaves_out_is_added_up(inits: str, expected: int) -> None:
    known = {
        "proxy": {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
        "setup": {"name": "setup", "resources": {"requests": {"cpu": "1"}}},
    }
    pod = w.pod("web", cpu="100m")
    pod["spec"]["initContainers"] = [known[name] for name in inits.split()]
    pod["spec"]["resources"] = {"requests": {"memory": "2Gi"}}
    assert request_of(msgspec.convert(pod, Pod), "", "cpu") == expected


# --- selectors ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["-app", "a/b/c", "A/b", "!-", "app=-", f"app={'a' * 64}", "app in (-)"])
def test_a_selector_of_a_wrong_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(
        SelectorError, match=r"^unable to parse requirement: .* is no (name|value) of a label$"
    ):
        parse_selector(text)


@given(st.text(alphabet="ab/.-=!(),<> innot5", max_size=20))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        requirements = parse_selector(text)
    except SelectorError:
        return
    assert matches(requirements, {"a": "b"}) in (True, False)


def test_selectors_of_metrics_are_checked_and_printed_as_go_prints_them() -> None:
    two = [{"key": "c", "operator": "In", "values": ["x", "y"]}, {"key": "d", "operator": "Exists"}]
    selector = {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": two}
    check_selector(selector)
    assert show_selector(selector) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:c,Operator:In,Values:[x y],},"
        "LabelSelectorRequirement{Key:d,Operator:Exists,Values:[],},},}"
    )
    for operator in ("NotIn", "DoesNotExist"):
        values = ["x"] if operator == "NotIn" else None
        check_selector({"matchExpressions": [{"key": "c", "operator": operator, "values": values}]})
    with pytest.raises(SelectorError, match=r"^'-' is no name of a label$"):
        check_selector({"matchLabels": {"-": "b"}})


# --- what holds for every input -----------------------------------------------------------------------------
AMOUNTS = st.one_of(st.integers(0, 5000), st.integers(-10, 10), st.integers(MIN_INT64, MAX_INT64))
QUANTITIES = st.sampled_from(["0", "1m", "1", "1.5", "100", "3Gi", "8E", "9Pi", "1n", "10E", "-1"])
POLICY = {"value": st.integers(1, 200), "periodSeconds": st.integers(1, 1800)}
RULES = st.fixed_dictionaries(
    {},
    optional={
        "policies": st.lists(
            st.fixed_dictionaries({"type": st.sampled_from(["Pods", "Percent"]), **POLICY}), max_size=3
        ),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "stabilizationWindowSeconds": st.integers(0, 3600),
        "tolerance": st.sampled_from(["0", "0.05", "50m", "1", "10"]),
    },
)
BEHAVIORS = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"scaleUp": RULES, "scaleDown": RULES}))
TARGETS = st.fixed_dictionaries(
    {"type": st.sampled_from(["Utilization", "AverageValue", "Value"])},
    optional={"averageUtilization": st.integers(0, 500), "averageValue": QUANTITIES, "value": QUANTITIES},
)
PODS = st.builds(
    w.pod,
    st.sampled_from(["p0", "p1", "p2", "p3"]),
    cpu=st.none() | QUANTITIES,
    phase=st.sampled_from(["Running", "Running", "Pending", "Failed", "Succeeded"]),
    ready=st.sampled_from([True, True, False, None]),
    deleted=st.sampled_from([None, None, 0]),
)


@st.composite
def metrics(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["Resource", "ContainerResource", "Pods", "Object", "External", "Other"]))
    source = {
        "name": draw(st.sampled_from(["cpu", "memory", "gpu"])),
        "container": draw(st.sampled_from(["app", "other"])),
        "metric": {"name": "m", "selector": draw(st.sampled_from([None, {"matchLabels": {"a": "b"}}, LIKE]))},
        "describedObject": {"kind": "Service", "name": "s"},
        "target": draw(TARGETS),
    }
    return {"type": kind, kind[0].lower() + kind[1:]: source}


@given(
    specs=st.lists(metrics(), max_size=3),
    behavior=BEHAVIORS,
    pods=st.lists(PODS, max_size=4, unique_by=lambda pod: pod["metadata"]["name"]),
    amounts=st.lists(AMOUNTS, max_size=6),
    replicas=st.integers(0, 30),
    selector=st.sampled_from([SELECTOR, "", "=", "app"]),
)
def test_any_input_gives_a_count_within_the_limits_and_a_complete_status(
    specs: list[dict[str, Any]],
    behavior: dict[str, Any] | None,
    pods: list[dict[str, Any]],
    amounts: list[int],
    replicas: int,
    selector: str,
) -> None:
    hpa = hpa_of(minReplicas=2, maxReplicas=20, metrics=specs, behavior=behavior)
    autoscaler, typed_pods = HorizontalAutoscaler(), msgspec.convert(pods, list[Pod])
    for minutes in (0, 1, 10):
        scale = Scale(replicas, len(pods), selector)
        outcome = autoscaler.sync(hpa, scale, typed_pods, Given(amounts), NOW + minutes * MINUTE)
        status = outcome.status
        assert status.current_replicas == replicas
        if outcome.replicas is not None:
            assert 2 <= outcome.replicas <= 20
            assert outcome.replicas == status.desired_replicas != replicas
        assert [condition.type for condition in status.conditions or ()][:1] == ["AbleToScale"]
        if 2 <= replicas <= 20 and selector not in ("", "="):
            entries = status.current_metrics or []
            assert len(entries) == max(1, len(specs))
            for entry, spec in zip(entries, specs, strict=False):
                assert entry == Metric() or entry.type == spec["type"]


@given(
    levels=st.lists(st.tuples(st.integers(0, 10**5), st.integers(0, 10**5)), min_size=1, max_size=6),
    behavior=BEHAVIORS,
    target=st.integers(1, 300),
)
def test_more_usage_of_ready_pods_never_means_fewer_pods(
    levels: list[tuple[int, int]], behavior: dict[str, Any] | None, target: int
) -> None:
    hpa = hpa_of(maxReplicas=500, metrics=[w.resource(utilization=target)], behavior=behavior)
    count = len(levels)
    counts = []
    for usage in ([low for low, _ in levels], [low + more for low, more in levels]):
        autoscaler, scale, pods = HorizontalAutoscaler(), Scale(count, count, SELECTOR), pods_of(count)
        autoscaler.sync(hpa, scale, pods, Given([10 * target] * count), NOW)
        outcome = autoscaler.sync(hpa, scale, pods, Given(usage), NOW + 120 * MINUTE)
        counts.append(outcome.status.desired_replicas)
    assert counts[0] <= counts[1]
