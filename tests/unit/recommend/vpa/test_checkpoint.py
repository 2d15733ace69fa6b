"""The recommender that goes on from a checkpoint."""

from __future__ import annotations

import datetime as dt
import math

import pytest

from hvpa.api.values.quantity import parse_cpu, parse_memory
from hvpa.recommend.vpa.recommender import CheckpointError, VerticalRecommender
from hvpa.recommend.vpa.samples import cpu_buckets, memory_buckets
from tests.unit.recommend.vpa.world import LATER, NOW, START, found, vpa


def checkpoint(**changes: object) -> dict[str, object]:
    start = dt.datetime.fromtimestamp(START, dt.UTC).isoformat()
    end = dt.datetime.fromtimestamp(START + 86_400, dt.UTC).isoformat()
    cpu = {"referenceTimestamp": start, "bucketWeights": {"20": 10_000, "3": 10_000}, "totalWeight": 288.0}
    memory = {"referenceTimestamp": start, "bucketWeights": {"30": 10_000}, "totalWeight": 2.0}
    return {
        "version": "v3",
        "firstSampleStart": start,
        "lastSampleStart": end,
        "lastUpdateTime": end,
        "totalSamplesCount": 1440,
        "cpuHistogram": cpu,
        "memoryHistogram": memory,
        **changes,
    }


class TestCheckpoint:
    def test_it_is_recommended_from(self) -> None:
        recommender = VerticalRecommender()
        recommender.load_checkpoint("app", checkpoint())
        one = found(recommender.recommend(vpa(), NOW))["app"]
        cpu, memory = (int(end) for end in (cpu_buckets().ends[20] * 1000, memory_buckets().ends[30]))
        low = int(cpu_buckets().ends[3] * 1000)
        assert parse_cpu(one.target["cpu"]) == cpu + int(cpu * 0.15)
        assert parse_memory(one.target["memory"]) == memory + int(memory * 0.15)
        assert parse_cpu(one.lower_bound["cpu"]) == int((low + int(low * 0.15)) * math.pow(1.001, -2))
        assert parse_cpu(one.upper_bound["cpu"]) == 2 * (cpu + int(cpu * 0.15))

    def test_it_outlives_what_was_measured(self) -> None:
        recommender = VerticalRecommender()
        recommender.load_checkpoint("app", checkpoint())
        one = recommender.recommend(vpa(), NOW).recommendation
        recommender.add_sample("pod", "app", START, None, 1e6)
        recommender.forget("pod")
        for _ in range(2):
            assert set(found(recommender.recommend(vpa(), LATER + dt.timedelta(hours=1)))) == {"app"}
        assert recommender.recommend(vpa(), NOW).recommendation == one

    def test_new_samples_are_added_to_it(self) -> None:
        recommender = VerticalRecommender()
        recommender.add_sample("pod", "app", START + 90_000, 100.0, 1e11)
        before = found(recommender.recommend(vpa(), NOW))["app"]
        recommender.load_checkpoint("app", checkpoint())
        after = found(recommender.recommend(vpa(), NOW))["app"]
        assert parse_cpu(before.target["cpu"]) > 100_000 > parse_cpu(after.target["cpu"])

    @pytest.mark.parametrize(
        "changes",
        [
            {"firstSampleStart": None, "lastSampleStart": None, "totalSamplesCount": 0},
            {"firstSampleStart": "0001-01-01T00:00:00Z", "lastSampleStart": "0001-01-01T00:00:00Z"},
        ],
    )
    def test_one_without_samples(self, changes: dict[str, object]) -> None:
        empty: dict[str, object] = {"referenceTimestamp": None, "bucketWeights": {}, "totalWeight": 0}
        recommender = VerticalRecommender()
        recommender.load_checkpoint("app", checkpoint(**changes, cpuHistogram=empty, memoryHistogram=empty))
        assert found(recommender.recommend(vpa(), NOW))["app"].target["cpu"] == "25m"

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"version": "v2"}, "unsupported version 'v2'"),
            ({"totalSamplesCount": -1}, "totalSamplesCount"),
            ({"cpuHistogram": {"bucketWeights": {"176": 1}, "totalWeight": 1}}, "bucket 176"),
            ({"memoryHistogram": {"totalWeight": -1}}, "negative"),
            ({"cpuHistogram": {"bucketWeights": {"x": 1}}}, "cpuHistogram"),
        ],
    )
    def test_what_can_not_be_read_is_told_and_changes_nothing(
        self, changes: dict[str, object], message: str
    ) -> None:
        recommender = VerticalRecommender()
        with pytest.raises(CheckpointError, match=message):
            recommender.load_checkpoint("app", checkpoint(**changes))
        assert found(recommender.recommend(vpa(), NOW)) == {}
