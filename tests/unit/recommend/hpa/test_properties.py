"""What holds for every input of the HPA model."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Metric
from hvpa.recommend.golang.numbers import MAX_INT64, MIN_INT64
from hvpa.recommend.hpa.controller import HorizontalAutoscaler, Scale
from tests.unit.recommend.hpa.world import (
    NOW,
    SELECTOR,
    Given,
    Loop,
    make_hpa,
    make_pod,
    make_pods,
    readings,
    sync_once,
)

STATES = st.sampled_from(
    ["ready", "starting", "unready", "was-ready", "blank", "pending", "failed", "succeeded", "deleted"]
)
AMOUNTS = st.one_of(st.integers(0, 5000), st.integers(-10, 10), st.integers(MIN_INT64, MAX_INT64))
QUANTITIES = st.sampled_from(["0", "1m", "1", "1.5", "100", "3Gi", "8E", "9Pi", "1n", "10E", "-1"])
LABELS = st.one_of(
    st.none(), st.just({"matchLabels": {"a": "b"}}), st.just({"matchExpressions": [{"key": "?"}]})
)
POLICIES = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Percent"]),
            "value": st.integers(1, 200),
            "periodSeconds": st.integers(1, 1800),
        }
    ),
    max_size=3,
)
RULES = st.fixed_dictionaries(
    {},
    optional={
        "policies": POLICIES,
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "stabilizationWindowSeconds": st.integers(0, 3600),
        "tolerance": st.sampled_from(["0", "0.05", "50m", "1", "10"]),
    },
)
BEHAVIORS = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"scaleUp": RULES, "scaleDown": RULES}))


@st.composite
def metrics(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["Resource", "ContainerResource", "Pods", "Object", "External", "Other"]))
    target = draw(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["Utilization", "AverageValue", "Value"])},
            optional={
                "averageUtilization": st.integers(0, 500),
                "averageValue": QUANTITIES,
                "value": QUANTITIES,
            },
        )
    )
    source = {
        "name": draw(st.sampled_from(["cpu", "memory", "gpu"])),
        "container": draw(st.sampled_from(["app", "other"])),
        "metric": {"name": "m", "selector": draw(LABELS)},
        "describedObject": {"kind": "Service", "name": "s"},
        "target": target,
    }
    return {"type": kind, kind[0].lower() + kind[1:]: source}


def with_behavior(spec: dict[str, Any], behavior: dict[str, Any] | None) -> dict[str, Any]:
    return spec if behavior is None else {**spec, "behavior": behavior}


@given(
    specs=st.lists(metrics(), max_size=3),
    behavior=BEHAVIORS,
    states=st.lists(STATES, max_size=5),
    request=st.one_of(st.none(), QUANTITIES),
    amounts=st.lists(st.one_of(st.none(), AMOUNTS), max_size=6),
    replicas=st.integers(0, 30),
    counted=st.integers(0, 30),
    selector=st.sampled_from([SELECTOR, "", "=", "app"]),
)
def test_any_input_gives_a_count_within_the_limits_and_a_complete_status(
    specs: list[dict[str, Any]],
    behavior: dict[str, Any] | None,
    states: list[str],
    request: str | None,
    amounts: list[int | None],
    replicas: int,
    counted: int,
    selector: str,
) -> None:
    hpa = make_hpa(with_behavior({"minReplicas": 2, "maxReplicas": 20, "metrics": specs}, behavior))
    given_metrics = Given(
        amounts,
        resources={("cpu", "app"): readings(amounts), ("memory", ""): readings(amounts)},
        custom=amounts,
        value=next((amount for amount in amounts if amount is not None), None),
        values=[amount for amount in amounts if amount is not None],
    )
    pods = [make_pod(f"p{index}", state, request) for index, state in enumerate(states)]
    autoscaler = HorizontalAutoscaler()
    for minutes in (0, 1, 10):
        now = NOW + dt.timedelta(minutes=minutes)
        outcome = autoscaler.sync(hpa, Scale(replicas, counted, selector), pods, given_metrics, now)
        status = outcome.status
        assert status.current_replicas == replicas
        if outcome.replicas is not None:
            assert 2 <= outcome.replicas <= 20
            assert outcome.replicas == status.desired_replicas != replicas
        assert [c.type for c in status.conditions or ()][:1] == ["AbleToScale"]
        if 2 <= replicas <= 20 and selector not in ("", "="):
            entries = status.current_metrics or []
            assert len(entries) == max(1, len(specs))
            for entry, spec in zip(entries, specs, strict=False):
                assert entry == Metric() or entry.type == spec["type"]


@given(
    usages=st.lists(st.integers(0, 100_000), min_size=1, max_size=6),
    more=st.lists(st.integers(0, 100_000), min_size=6, max_size=6),
    behavior=BEHAVIORS,
    target=st.integers(1, 300),
)
def test_more_usage_of_ready_pods_never_means_fewer_pods(
    usages: list[int], more: list[int], behavior: dict[str, Any] | None, target: int
) -> None:
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
    spec = with_behavior(
        {"maxReplicas": 500, "metrics": [{"type": "Resource", "resource": resource}]}, behavior
    )
    count = len(usages)
    pods = make_pods(*["ready"] * count)
    higher = [usage + extra for usage, extra in zip(usages, more, strict=False)]
    found = []
    for levels in (usages, higher):
        autoscaler = HorizontalAutoscaler()
        scale = Scale(count, count, SELECTOR)
        autoscaler.sync(make_hpa(spec), scale, pods, Given([1000 * target // 100] * count), NOW)
        later = NOW + dt.timedelta(hours=2)
        outcome = autoscaler.sync(make_hpa(spec), scale, pods, Given(levels), later)
        found.append(outcome.status.desired_replicas)
    assert found[0] <= found[1]


@given(usages=st.lists(st.integers(0, 3000), min_size=1, max_size=30), behavior=BEHAVIORS)
def test_a_run_stays_within_the_limits_and_steps(usages: list[int], behavior: dict[str, Any] | None) -> None:
    loop = Loop(with_behavior({"minReplicas": 2, "maxReplicas": 30}, behavior), 5)
    for usage in usages:
        previous = loop.replicas
        outcome = loop.sync(usage)
        assert 2 <= loop.replicas <= 30
        assert outcome.status.desired_replicas == loop.replicas
        if behavior is None:
            assert loop.replicas <= max(2 * previous, 4)
        for direction, moved in (
            ("scaleUp", loop.replicas > previous),
            ("scaleDown", loop.replicas < previous),
        ):
            if ((behavior or {}).get(direction) or {}).get("selectPolicy") == "Disabled":
                assert not moved


@given(levels=st.lists(st.integers(0, 4000), min_size=1, max_size=5))
def test_the_status_tells_the_mean(levels: list[int]) -> None:
    count = len(levels)
    outcome = sync_once(None, Given(levels), make_pods(*["ready"] * count), Scale(count, count, SELECTOR))
    (entry,) = outcome.status.current_metrics or []
    assert entry.resource is not None
    assert entry.resource.current.average_utilization == sum(levels) * 100 // (1000 * count)
