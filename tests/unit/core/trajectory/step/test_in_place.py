"""Joint decisions where pods are resized in place: sizes follow the present demand, too (DESIGN 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from builders import build
from builders.build import GIB
from hvpa.core import Decision
from hvpa.core.path.path import ResourceKey
from tests.unit.core.trajectory.jointly import EXACT, Reading, app, count, held, state, value, wanted

CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")


def in_place(readings: list[Reading], targets: Mapping[str, Any], replicas: int = 4, **spec: Any) -> Decision:
    seen = state(replicas, [app("1", "1Gi")], readings, {"app": targets}, {"trajectory": EXACT, **spec})
    return build.decided(seen, resizes=True)


def test_in_place_sizes_follow_present_demand_and_what_is_not_measured_grows_with_it() -> None:
    decision = in_place([value("cpu", "1", "2500m")], {"cpu": "1", "memory": "1Gi"})
    assert wanted(decision) == (4, {CPU: 2500, MEMORY: 2_684_355_000})
    assert count(decision) == 4
    assert held(decision) == []


def test_in_place_cpu_shrinks_and_memory_keeps_its_usual_demand() -> None:
    readings = [value("cpu", "1", "100m"), value("memory", "1Gi", "100Mi")]
    decision = in_place(readings, {"cpu": "1", "memory": "1Gi"})
    assert wanted(decision) == (2, {CPU: 200, MEMORY: 2 * GIB // 1000 * 1000 + 1000})
    assert count(decision) == 2  # at once: no pod is replaced
    more = in_place([readings[0], value("memory", "1Gi", "2Gi")], {"cpu": "1", "memory": "1Gi"})
    assert wanted(more)[1][MEMORY] == 8 * GIB // 3 // 1000 * 1000 + 1000


def test_in_place_a_mean_of_nothing_has_no_growth() -> None:
    decision = in_place([value("cpu", "1", "1")], {"cpu": "0", "memory": "1Gi"})
    assert (wanted(decision)[0], wanted(decision)[1][CPU]) == (2, 2000)
