"""Reading a VerticalPodAutoscalerCheckpoint: what the recommender wrote down of one container's history
(vertical-pod-autoscaler 1.7.3, `AggregateContainerState.LoadFromCheckpoint`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

import msgspec

from hvpa.api.objects.read_models import Instant, ReadModel
from hvpa.recommend.vpa.histogram import ZERO_TIME, DecayingHistogram
from hvpa.recommend.vpa.samples import Aggregate
from hvpa.recommend.vpa.settings import VpaSettings

VERSION: Final = "v3"


class CheckpointError(ValueError):
    """A checkpoint that can't be read."""


class HistogramCheckpoint(ReadModel, frozen=True):
    """A histogram: each bucket's share of the total weight, in whole numbers of any scale."""

    reference_timestamp: Instant | None = None
    bucket_weights: dict[int, int] = {}  # noqa: RUF012  # msgspec copies it
    total_weight: float = 0.0


class CheckpointStatus(ReadModel, frozen=True):
    """The status of a checkpoint, as far as it is read."""

    version: str = ""
    cpu_histogram: HistogramCheckpoint = HistogramCheckpoint()
    memory_histogram: HistogramCheckpoint = HistogramCheckpoint()
    first_sample_start: Instant | None = None
    last_sample_start: Instant | None = None
    total_samples_count: int = 0


def read_checkpoint(status: Mapping[str, object], settings: VpaSettings) -> Aggregate:
    """What the `status` of a checkpoint says about a container. Raises `CheckpointError` for another version, and for
    what no recommender writes."""
    try:
        found = msgspec.convert(status, CheckpointStatus, strict=False)
        return _aggregate(found, settings)
    except ValueError as error:
        raise CheckpointError(f"checkpoint: {error}") from error


def _aggregate(found: CheckpointStatus, settings: VpaSettings) -> Aggregate:
    if found.version != VERSION:
        raise ValueError(f"unsupported version {found.version!r}")
    if found.total_samples_count < 0:
        raise ValueError("totalSamplesCount is negative")
    aggregate = Aggregate(settings)
    aggregate.first_sample = _seconds(found.first_sample_start)
    aggregate.last_sample = _seconds(found.last_sample_start)
    aggregate.samples = found.total_samples_count
    _load(aggregate.memory, found.memory_histogram)
    _load(aggregate.cpu, found.cpu_histogram)
    return aggregate


def _load(histogram: DecayingHistogram, found: HistogramCheckpoint) -> None:
    reference = _seconds(found.reference_timestamp)
    histogram.load(found.bucket_weights, found.total_weight, ZERO_TIME if reference is None else reference)


def _seconds(instant: dt.datetime | None) -> float | None:
    """Seconds since the epoch; Go's zero time, which stands for none, is None."""
    seconds = None if instant is None else instant.timestamp()
    return None if seconds == ZERO_TIME else seconds
