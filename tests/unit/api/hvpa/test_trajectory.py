"""Joint scaling in the spec: when it is on, paths that are written out, and the margins. What is refused, and why, is
in `tests/manifests/bad.yaml`."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.hvpa.resource import parse_spec
from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.trajectory import MaxResources, ResourceMargins, Trajectory
from hvpa.api.values.quantity import parse_quantity

TARGET = {"kind": "Deployment", "name": "app"}
WEIGHTS = [{"vpaWeight": 50}]


def interval(replicas: int, **sizes: object) -> dict[str, Any]:
    """An interval as it stands in a manifest."""
    return {"maxReplicas": replicas, "maxResources": sizes}


def refusals(**fields: object) -> list[str]:
    """What is wrong with a spec with these fields."""
    return [str(problem) for problem in parse_spec({"targetRef": TARGET, **fields})[1]]


# --- whether scaling is joint -------------------------------------------------------------------------------
JOINT: dict[str, tuple[dict[str, object], bool]] = {
    "nothing": ({}, False),
    "weights": ({"weightBasedScalingIntervals": WEIGHTS}, False),
    "Additive": ({"blend": "Additive"}, False),
    "Trajectory": ({"blend": "Trajectory"}, True),
    "a trajectory": ({"trajectory": {}}, True),
    "a trajectory that is null": ({"trajectory": None}, False),
    "both": ({"blend": "Trajectory", "trajectory": {}}, True),
}


@pytest.mark.parametrize(("fields", "joint"), JOINT.values(), ids=JOINT.keys())
def test_blend_trajectory_or_a_trajectory_makes_scaling_joint(fields: dict[str, object], joint: bool) -> None:
    spec = HvpaSpec.model_validate({"targetRef": TARGET, **fields})
    assert spec.joint is joint


def test_trajectory_without_intervals_may_stand_beside_weights() -> None:
    assert refusals(trajectory={"intervals": []}, weightBasedScalingIntervals=WEIGHTS) == []
    assert refusals(trajectory={"overlap": {}}, weightBasedScalingIntervals=WEIGHTS) == []
    assert refusals(trajectory={"intervals": [interval(1, cpu=1)]}, weightBasedScalingIntervals=[]) == []


# --- what is read -------------------------------------------------------------------------------------------
def test_trajectory_intervals_max_resources_are_held_in_millicores_and_bytes() -> None:
    size = MaxResources.model_validate({"cpu": "1.5", "memory": "2Gi"})
    assert (size.cpu, size.memory) == (1500, 2 * 2**30)
    assert (size.quantity("cpu"), size.quantity("memory")) == ("1.5", "2Gi")
    assert MaxResources(cpu="100u").cpu == 1
    assert MaxResources(cpu="1").memory is None
    assert MaxResources(memory="1k").cpu is None
    assert MaxResources.model_validate({"cpu": 2}).cpu == 2000


def test_trajectory_intervals_and_margins_have_their_defaults() -> None:
    read = Trajectory.model_validate({"intervals": [interval(1, cpu=1)]})
    assert read.intervals[0].extrapolation == "linear"
    for margins in (read.overlap, read.base_resources_per_replica):
        assert margins == ResourceMargins(cpu=CpuParams(), memory=MemoryParams())
        assert (margins.cpu.value, margins.memory.percentage) == (None, None)
    assert Trajectory().intervals == ()


def test_a_trajectory_is_written_as_it_was_read() -> None:
    wire = {"intervals": [interval(1, cpu="500m", memory="2Gi") | {"extrapolation": "horizontalOnly"}]}
    read = Trajectory.model_validate(wire)
    assert read.model_dump(by_alias=True, exclude_unset=True, mode="json") == wire


def test_trajectory_overlap_and_base_resources_are_in_millicores_and_bytes() -> None:
    margins = {"cpu": {"value": "100m"}, "memory": {"value": "1Ki", "percentage": 90}}
    read = Trajectory.model_validate({"overlap": margins, "baseResourcesPerReplica": margins})
    assert read.overlap == read.base_resources_per_replica
    assert (read.overlap.cpu.value, read.overlap.cpu.percentage) == (100, None)
    assert (read.overlap.memory.value, read.overlap.memory.percentage) == (1024, 90)


# --- anything -----------------------------------------------------------------------------------------------
amounts = st.sampled_from([None, "1", 1, "1000m", "999500u", "0.9999", ".5", "2", "2.", "1e1", "1Ki"])
written = st.lists(st.tuples(st.integers(1, 4), amounts, amounts), max_size=4)


def is_path(parts: list[tuple[int, str | int | None, str | int | None]]) -> bool:
    """Whether these intervals make a path: stated once more, in other words."""
    counts = [count for count, _, _ in parts]
    if counts != sorted(set(counts)) or any(cpu is None and memory is None for _, cpu, memory in parts):
        return False
    for sizes in ([cpu for _, cpu, _ in parts], [memory for _, _, memory in parts]):
        exact = [parse_quantity(size) for size in sizes if size is not None]
        if len(exact) not in (0, len(sizes)) or any(low > high for low, high in combinations(exact, 2)):
            return False
    return True


@given(written)
def test_trajectory_intervals_are_accepted_where_they_make_a_path(
    parts: list[tuple[int, str | int | None, str | int | None]],
) -> None:
    intervals = [interval(count, cpu=cpu, memory=memory) for count, cpu, memory in parts]
    assert (refusals(trajectory={"intervals": intervals}) == []) is is_path(parts)
