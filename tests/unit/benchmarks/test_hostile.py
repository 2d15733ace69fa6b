"""The benchmark of what users cost each other: its inputs are accepted, and a short run of it ends."""

from __future__ import annotations

import json

import msgspec
import pytest

from benchmarks.hostile import cluster
from benchmarks.hostile.inputs import Largest, encoded, largest, trajectory
from benchmarks.hostile.largest import cost
from hvpa.api.hvpa.resource import read_spec


@pytest.mark.parametrize("name", largest())
def test_the_largest_specs_are_accepted(name: str) -> None:
    spec, problems = read_spec(encoded(largest()[name].spec))
    assert problems == ()
    assert spec is not None


def test_all_parts_of_a_cost_are_measured() -> None:
    milliseconds = cost(largest()["usual"], rounds=1)
    assert sorted(milliseconds) == ["cold", "spec", "status", "warm"]


async def test_an_honest_hvpa_is_scaled_beside_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = largest()["windows: 29 February"]
    monkeypatch.setattr(cluster, "bombs", lambda: [("bomb-0", bomb)])
    monkeypatch.setattr(cluster, "PAUSE", 0.01)
    phases = await cluster.measure(0.2)
    assert sorted(phases) == ["alone", "beside 40 bombs"]
    for phase in phases.values():
        assert phase["waits"] >= 1
        assert phase["crashed"] == 0
        assert phase["lease_kept"]
    json.dumps(phases)


def test_a_path_has_as_many_intervals_as_may_be() -> None:
    hvpa = Largest(trajectory(), lambda spec: pytest.fail("not made"))
    more = json.loads(encoded(hvpa.spec))
    more["trajectory"]["intervals"].append(
        {"maxReplicas": 9999, "maxResources": {"cpu": "99", "memory": "9Ti"}}
    )
    _, problems = read_spec(msgspec.json.encode(more))
    assert "spec.trajectory.intervals" in str(problems[0])
