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
    found = cost(largest()["usual"], rounds=1)
    assert sorted(found) == ["cold", "spec", "status", "warm"]


async def test_an_honest_hvpa_is_scaled_beside_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = largest()["windows: 29 February"]
    monkeypatch.setattr(cluster, "bombs", lambda: [("bomb-0", bomb)])
    monkeypatch.setattr(cluster, "PAUSE", 0.01)
    found = await cluster.measure(0.2)
    assert sorted(found) == ["alone", "beside 40 bombs"]
    for one in found.values():
        assert one["waits"] >= 1
        assert one["crashed"] == 0
        assert one["lease_kept"]
    json.dumps(found)


def test_a_path_has_as_many_intervals_as_may_be() -> None:
    one = Largest(trajectory(), lambda spec: pytest.fail("not made"))
    more = json.loads(encoded(one.spec))
    more["trajectory"]["intervals"].append(
        {"maxReplicas": 9999, "maxResources": {"cpu": "99", "memory": "9Ti"}}
    )
    _, problems = read_spec(msgspec.json.encode(more))
    assert "spec.trajectory.intervals" in str(problems[0])
