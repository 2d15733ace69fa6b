"""Replaying a scenario of the VPA recommender to our model, and comparing its answers with the real one's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec

from hvpa.api.objects.read_models import Vpa, VpaMeta, VpaStatusRead
from hvpa.api.values.quantity import parse_quantity
from hvpa_lab.recommend.vpa.recommender import VerticalRecommender, VpaSettings
from hvpa_lab.recommend.vpa.samples import Aggregate
from tests.recorded.replay import START, Json, differences, instant
from tests.recorded.vpa.build import NANOSECONDS

# Field of the recommender's configuration -> ours.
_FLAGS = {
    "SafetyMarginFraction": "safety_margin",
    "PodMinCPUMillicores": "pod_min_cpu_millicores",
    "PodMinMemoryMb": "pod_min_memory_mb",
    "TargetCPUPercentile": "target_cpu_percentile",
    "LowerBoundCPUPercentile": "lower_bound_cpu_percentile",
    "UpperBoundCPUPercentile": "upper_bound_cpu_percentile",
    "TargetMemoryPercentile": "target_memory_percentile",
    "LowerBoundMemoryPercentile": "lower_bound_memory_percentile",
    "UpperBoundMemoryPercentile": "upper_bound_memory_percentile",
    "RoundCPUMillicores": "round_cpu_millicores",
    "RoundMemoryBytes": "round_memory_bytes",
    "MemoryAggregationIntervalCount": "memory_aggregation_interval_count",
    "OOMBumpUpRatio": "oom_bump_up_ratio",
    "OOMMinBumpUp": "oom_min_bump_up",
    "MaxAllowedCPU": "max_allowed_cpu",
    "MaxAllowedMemory": "max_allowed_memory",
}
_DURATIONS = {
    "ConfidenceIntervalCPU": "confidence_interval_cpu",
    "ConfidenceIntervalMemory": "confidence_interval_memory",
    "MemoryAggregationInterval": "memory_aggregation_interval",
    "MemoryHistogramDecayHalfLife": "memory_half_life",
    "CpuHistogramDecayHalfLife": "cpu_half_life",
}


def settings(flags: Json) -> VpaSettings:
    """Our settings for the recommender's flags."""
    fields: dict[str, Any] = {_FLAGS[name]: value for name, value in flags.items() if name in _FLAGS}
    fields |= {_DURATIONS[n]: value / NANOSECONDS for n, value in flags.items() if n in _DURATIONS}
    assert len(fields) == len(flags), "a flag has no counterpart"
    return VpaSettings(**fields)


def load_checkpoint(model: VerticalRecommender, container: str, status: Json) -> None:
    """Let the model go on from the `status` of a container's VerticalPodAutoscalerCheckpoint, as the real recommender
    does after its start (`AggregateContainerState.LoadFromCheckpoint`)."""
    aggregate = Aggregate(model.settings)
    aggregate.first_sample = dt.datetime.fromisoformat(status["firstSampleStart"]).timestamp()
    aggregate.last_sample = dt.datetime.fromisoformat(status["lastSampleStart"]).timestamp()
    aggregate.samples = status["totalSamplesCount"]
    for histogram, saved in (
        (aggregate.cpu, status["cpuHistogram"]),
        (aggregate.memory, status["memoryHistogram"]),
    ):
        shares = {int(bucket): share for bucket, share in saved.get("bucketWeights", {}).items()}
        histogram.reference = dt.datetime.fromisoformat(saved["referenceTimestamp"]).timestamp()
        histogram.total = saved.get("totalWeight", 0.0)
        histogram.low, histogram.high = min(shares, default=histogram.low), max(shares, default=0)
        for bucket, share in shares.items():
            histogram.weights[bucket] = share * (histogram.total / sum(shares.values()))
        histogram._narrow()
    model._aggregates[container] = aggregate


class Replay:
    """Our model in a scenario. Where the real recommender was restarted, ours begins anew with the real one's
    checkpoints."""

    def __init__(self, scenario: Json) -> None:
        self._settings = settings(scenario["flags"])
        self._model = VerticalRecommender(self._settings)
        self._steps = iter(scenario["steps"])
        self._meta = msgspec.convert(scenario["vpa"]["metadata"], VpaMeta)
        self._spec = msgspec.json.encode(scenario["vpa"]["spec"])
        self._status = VpaStatusRead()

    def answer(self, checkpoints: Json) -> VpaStatusRead | None:
        """Go on to the next question or restart; None is a restart, with these checkpoints by container."""
        for step in self._steps:
            self._take(step)
            if step.get("restart"):
                self._model = VerticalRecommender(self._settings)
                for container, status in checkpoints.items():
                    load_checkpoint(self._model, container, status)
                return None
            if step.get("recommend"):
                vpa = Vpa(metadata=self._meta, raw_spec=msgspec.Raw(self._spec), status=self._status)
                self._status = self._model.recommend(vpa, instant(step["at"]))
                return self._status
        raise AssertionError("the real recommender answered more often than it was asked")

    def _take(self, step: Json) -> None:
        at = START.timestamp() + step["at"]
        if given := step.get("sample"):
            measured = (given["cpu"], given["memory"])
            self._model.add_sample(given["pod"], given["container"], at, *measured)
        if given := step.get("oom"):
            self._model.record_oom(given["pod"], given["container"], at - given["ago"], given["memory"])
        if "gone" in step:
            self._model.forget(step["gone"])
        if "spec" in step:
            self._spec = msgspec.json.encode(step["spec"])


def amounts_and_conditions(status: Json) -> Json:
    """A VPA's status in numbers: cores and bytes, exactly, by container, what is recommended and resource."""
    recommendation = (status.get("recommendation") or {}).get("containerRecommendations") or []
    amounts = {
        f"{entry['containerName']} {kind} {resource}": str(parse_quantity(quantity))
        for entry in recommendation
        for kind in ("target", "lowerBound", "upperBound", "uncappedTarget")
        for resource, quantity in (entry.get(kind) or {}).items()
    }
    conditions = {
        entry["type"]: [
            entry["status"],
            entry.get("reason", ""),
            entry.get("message", ""),
            dt.datetime.fromisoformat(entry["lastTransitionTime"]).strftime("%Y-%m-%dT%H:%M:%SZ"),
        ]
        for entry in status.get("conditions") or ()
    }
    return {**amounts, **conditions}


def theirs(answer: Json) -> Json:
    """One answer of the real recommender: what it recommends, and the checkpoints that it wrote before a restart."""
    return {
        "at": answer["at"],
        "recommended": amounts_and_conditions(answer.get("status") or {}),
        "checkpoints": answer.get("checkpoints") or {},
    }


def first_difference(scenario: Json, real: Sequence[Json]) -> str | None:
    """The first answer in which our model and the real recommender (`theirs` of each answer) differ, with both sides;
    None where they agree."""
    steps = [step for step in scenario["steps"] if step.get("recommend") or step.get("restart")]
    assert [answer["at"] for answer in real] == [step["at"] for step in steps]
    replay = Replay(scenario)
    for number, answer in enumerate(real, 1):
        given = replay.answer(answer["checkpoints"])
        if given is None:
            continue
        our, their = amounts_and_conditions(msgspec.to_builtins(given)), answer["recommended"]
        where = f"{scenario['name']}: answer {number}, second {answer['at']}"
        if difference := differences(where, our, their):
            return difference
    return None
