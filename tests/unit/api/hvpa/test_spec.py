"""What a spec means once it is read: weights, windows, defaults, selectors."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pydantic import ValidationError

from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.hvpa.intervals import ScalingInterval
from hvpa.api.hvpa.scaling import CpuParams, MaxStep, MemoryParams, ReplicasParams, ScaleType
from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.hvpa.spec import HpaSpec, HvpaSpec
from hvpa.api.hvpa.templates import HpaTemplate
from hvpa.api.hvpa.windows import MaintenanceTimeWindow

TARGET = {"kind": "Deployment", "name": "app"}


def spec(**fields: Any) -> HvpaSpec:
    """A spec with these fields, as they stand in a manifest."""
    return HvpaSpec.model_validate({"targetRef": TARGET, **fields})


WEIGHTS: dict[str, tuple[list[float], tuple[int, ...]]] = {
    "none": ([], ()),
    "fractions": ([0, 0.6, 1], (0, 600_000, 1_000_000)),
    "a fraction that is not exact in binary": ([0.1], (100_000,)),
    "one whole, alone": ([1], (1_000_000,)),
    "percentages": ([0, 60, 100], (0, 600_000, 1_000_000)),
    "one percent among percentages": ([1, 60], (10_000, 600_000)),
    "percentages with fractions": ([33.3], (333_000,)),
}


@pytest.mark.parametrize(("weights", "ppm"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_weight_based_scaling_intervals_weights_are_fractions_or_percentages(
    weights: list[float], ppm: tuple[int, ...]
) -> None:
    read = spec(weightBasedScalingIntervals=[{"vpaWeight": weight} for weight in weights])
    assert read.weights_ppm == ppm
    assert read.weights_ppm is read.weights_ppm


def test_weight_based_scaling_intervals_replica_counts_of_0_are_missing() -> None:
    interval = ScalingInterval.model_validate({"vpaWeight": 3, "startReplicaCount": 0, "lastReplicaCount": 0})
    assert (interval.start_replica_count, interval.last_replica_count) == (None, None)


def test_defaults_of_mode_blend_update_mode_min_change_timeout_and_min_history() -> None:
    read = spec()
    assert read.mode == "Apply"
    assert read.blend is None
    assert read.hpa.deploy is False
    assert read.hpa.selector.is_empty
    assert read.hpa.scale_up.update_policy.update_mode == "Auto"
    assert read.hpa.scale_up.stabilization_duration == dt.timedelta(0)
    assert read.vpa.scale_up.min_change_timeout == dt.timedelta(minutes=15)
    assert read.vpa.scale_down.min_history == dt.timedelta(hours=1)
    assert read.vpa.scale_up.min_change.cpu.value is None


def test_amounts_are_held_in_millicores_bytes_and_replicas() -> None:
    assert CpuParams.model_validate({"value": "1.5"}).value == 1500
    assert CpuParams(value="200m").value == 200
    assert CpuParams(value=2).value == 2000
    assert CpuParams.model_validate({"value": 2.0}).value == 2000
    assert MemoryParams.model_validate({"value": "1Ki"}).value == 1024
    assert ReplicasParams.model_validate({"value": "3"}).value == 3


@pytest.mark.parametrize(("current", "limit"), [(1, 4), (10, 11), (11, 13)])
def test_max_step_limit_is_a_factor_rounded_up_or_a_minimum(current: int, limit: int) -> None:
    assert MaxStep.model_validate({"factor": 1.1}).limit(current) == limit


def test_stabilization_duration_may_be_set_by_its_python_name() -> None:
    direction = ScaleType(stabilization_duration=dt.timedelta(minutes=3))
    assert direction.stabilization_duration == dt.timedelta(minutes=3)
    assert direction.model_dump(mode="json", by_alias=True)["stabilizationDuration"] == "3m"


def test_a_spec_can_not_be_changed() -> None:
    with pytest.raises(ValidationError):
        setattr(spec(), "mode", "Paused")  # noqa: B010


def test_a_template_without_maxReplicas_holds_no_spec() -> None:
    assert HpaTemplate.model_validate({"spec": {"maxReplicas": 0}}).spec is None
    assert HpaTemplate.model_validate({"spec": {}}).spec is None
    assert HpaTemplate.model_validate({}).spec is None
    assert HpaTemplate.model_validate({"spec": {"maxReplicas": 3}}).spec is not None


def test_an_integer_may_be_written_with_a_point() -> None:
    read = HpaSpec.model_validate({"template": {"spec": {"maxReplicas": 3.0}}})
    assert read.template.spec is not None
    assert read.template.spec.max_replicas == 3


TIMES = {
    "in UTC": ("220000+0000", 22 * 3600),
    "east of Greenwich": ("220000+0100", 21 * 3600),
    "west of Greenwich": ("220000-0100", 23 * 3600),
    "over midnight, forward": ("230000-0230", 3600 + 1800),
    "over midnight, backward": ("001530+0100", 23 * 3600 + 15 * 60 + 30),
}


@pytest.mark.parametrize(("text", "second"), TIMES.values(), ids=TIMES.keys())
def test_maintenance_time_window_begin_and_end_are_seconds_of_the_day_in_utc(text: str, second: int) -> None:
    assert MaintenanceTimeWindow(begin=text, end="120000+0000").begin_seconds == second
    assert MaintenanceTimeWindow(begin="120000+0000", end=text).end_seconds == second


LABELS = {"app": "web", "tier": "front"}
SELECTORS: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing selects nothing": ({}, False),
    "empty parts select nothing": ({"matchLabels": {}, "matchExpressions": []}, False),
    "a label that is there": ({"matchLabels": {"app": "web"}}, True),
    "a label of another value": ({"matchLabels": {"app": "db"}}, False),
    "one of two labels": ({"matchLabels": {"app": "web", "zone": "a"}}, False),
    "In": ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}, True),
    "In, absent": ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}, False),
    "NotIn": ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
    "NotIn, absent": ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
    "Exists": ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
    "DoesNotExist": ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
    "both parts": (
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]},
        False,
    ),
}


@pytest.mark.parametrize(("selector", "selects"), SELECTORS.values(), ids=SELECTORS.keys())
def test_a_selector_selects_by_all_of_its_conditions(selector: dict[str, Any], selects: bool) -> None:
    assert LabelSelector.model_validate(selector).matches(LABELS) is selects


def test_a_selector_is_written_as_it_was_read() -> None:
    wire = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["b"]},
            {"key": "c", "operator": "Exists"},
        ],
    }
    assert LabelSelector.model_validate(wire).to_wire() == wire
    assert LabelSelector().to_wire() == {}


def test_labels_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(ValidationError, match="matchLabels"):
        spec(hpa={"selector": {"matchLabels": ["app"]}})


# --- spec.updateStrategy --------------------------------------------------------------------------------------
def test_update_strategy_type_in_place_and_in_place_or_rollout_resize_pods() -> None:
    strategy = UpdateStrategy.model_validate({})
    assert (strategy.type, strategy.in_place, strategy.timeout) == (None, False, dt.timedelta(minutes=5))
    assert not UpdateStrategy.model_validate({"type": "Rollout"}).in_place
    assert UpdateStrategy.model_validate({"type": "InPlace"}).in_place
    assert UpdateStrategy.model_validate({"type": "InPlaceOrRollout"}).in_place


@pytest.mark.parametrize(
    ("spec", "resizes", "counts"),
    [
        ({}, True, "Rollout"),
        ({"blend": "Additive"}, True, "Rollout"),
        ({"blend": "Trajectory"}, True, "InPlaceOrRollout"),
        ({"trajectory": {}}, True, "InPlaceOrRollout"),
        ({"blend": "Trajectory"}, False, "Rollout"),
        ({"blend": "Trajectory", "updateStrategy": {"timeout": "3m"}}, True, "InPlaceOrRollout"),
        ({"blend": "Trajectory", "updateStrategy": {"timeout": "3m"}}, False, "Rollout"),
        ({"blend": "Trajectory", "updateStrategy": {"type": None}}, True, "InPlaceOrRollout"),
        ({"blend": "Trajectory", "updateStrategy": {"type": "Rollout"}}, True, "Rollout"),
        ({"blend": "Trajectory", "updateStrategy": {"type": "InPlace"}}, False, "InPlace"),
        ({"updateStrategy": {"type": "InPlaceOrRollout"}}, False, "InPlaceOrRollout"),
    ],
)
def test_update_strategy_type_default_depends_on_blend_and_api_server(
    spec: dict[str, Any], resizes: bool, counts: str
) -> None:
    given = HvpaSpec.model_validate({"targetRef": {"kind": "Deployment", "name": "web"}, **spec})
    hvpa_spec = given if resizes else given.without_resizes()
    assert hvpa_spec.strategy.type == counts
    assert hvpa_spec.strategy.is_default == (spec.get("updateStrategy", {}).get("type") is None)
    assert hvpa_spec.strategy.timeout == given.update_strategy.timeout
    assert given.update_strategy.type == spec.get("updateStrategy", {}).get("type")


@pytest.mark.parametrize(
    ("given", "pods", "most"),
    [
        (None, 10, 2),
        (None, 3, 1),
        (None, 1, 1),
        ("100%", 10, 10),
        ("1%", 10, 1),
        (3, 10, 3),
        (3.0, 10, 3),
        (3, 1, 3),
    ],
)
def test_update_strategy_max_unavailable_as_a_number_of_pods(given: object, pods: int, most: int) -> None:
    fields = {} if given is None else {"maxUnavailable": given}
    assert UpdateStrategy.model_validate(fields).most_unavailable(pods) == most


@pytest.mark.parametrize("bad", [0, -1, 2**31, 1.5, True, "0%", "101%", "10", "1 %", "%", "", "١%", [1]])
def test_update_strategy_max_unavailable_refuses_what_is_no_number(bad: object) -> None:
    with pytest.raises(
        ValidationError, match="must be a positive number of pods, or a percentage from 1% to 100%"
    ):
        UpdateStrategy.model_validate({"maxUnavailable": bad})


@pytest.mark.parametrize("bad", ["0s", "-1m", "soon", 5])
def test_update_strategy_timeout_refuses_what_is_no_duration(bad: object) -> None:
    with pytest.raises(ValidationError):
        UpdateStrategy.model_validate({"timeout": bad})


def test_update_strategy_type_that_is_unknown_is_refused() -> None:
    with pytest.raises(ValidationError):
        UpdateStrategy.model_validate({"type": "Recreate"})


@pytest.mark.parametrize("sources", [(), ("external", "object")], ids=["none", "both"])
def test_a_rollback_metric_is_external_or_of_an_object(sources: tuple[str, ...]) -> None:
    described = {"describedObject": {"kind": "Service", "name": "web"}}
    known = {"external": {"metric": {"name": "p99"}}, "object": {"metric": {"name": "p99"}, **described}}
    metric = {"above": "1", **{source: known[source] for source in sources}}
    with pytest.raises(ValidationError, match="set one of external and object"):
        UpdateStrategy.model_validate({"canary": {"rollbackOnMetrics": [metric]}})


def test_canary_pods_are_a_count_or_a_share() -> None:
    strategy = UpdateStrategy.model_validate({"type": "InPlace", "canary": {}})
    assert strategy.canary is not None
    assert (strategy.canary.pods, strategy.canary.duration) == (1, dt.timedelta(minutes=5))
    assert strategy.canary.rollback_on == ("OOMKilled", "CrashLoopBackOff", "NotReady")
    assert strategy.canary_pods(30) == 1
    tenth = UpdateStrategy.model_validate({"type": "InPlaceOrRollout", "canary": {"pods": "10%"}})
    assert [tenth.canary_pods(pods) for pods in (1, 25, 30)] == [1, 2, 3]
    assert UpdateStrategy().canary_pods(30) == 30
    assert UpdateStrategy.model_validate({"canary": {}}).canary_pods(30) == 1
    with pytest.raises(ValidationError, match="rollbackOn"):
        UpdateStrategy.model_validate({"type": "InPlace", "canary": {"rollbackOn": ["Evicted"]}})


def test_at_the_end_pods_have_neither_boosts_nor_deletion_costs() -> None:
    strategy = {"type": "InPlace", "podDeletionCost": "BySize", "timeout": "2m"}
    boosts = [{"container": "app", "cpu": {"factor": 2}}]
    given = spec(updateStrategy=strategy, startupBoost=boosts)
    ended = given.at_the_end()
    assert (ended.startup_boost, ended.strategy.pod_deletion_cost) == ((), "Never")
    assert (ended.strategy.type, ended.strategy.timeout) == ("InPlace", given.strategy.timeout)
    assert given.startup_boost
