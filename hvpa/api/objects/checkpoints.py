"""What is read of VerticalPodAutoscalerCheckpoints: how much history the recommender has of a container, and when it
last saved that."""

from __future__ import annotations

from hvpa.api.objects.read_models import Instant, Int, Meta, ReadModel


class VpaCheckpointSpec(ReadModel, frozen=True):
    """Which container of which VPA a checkpoint is of."""

    vpa_object_name: str = ""
    container_name: str = ""


class VpaCheckpointStatus(ReadModel, frozen=True):
    """What the recommender saved, without its histograms."""

    last_update_time: Instant | None = None
    """When it last saved: with each of its rounds, or less often if it has very many."""
    first_sample_start: Instant | None = None
    last_sample_start: Instant | None = None
    total_samples_count: Int = 0


class VpaCheckpoint(ReadModel, frozen=True):
    """A VerticalPodAutoscalerCheckpoint."""

    metadata: Meta
    spec: VpaCheckpointSpec = VpaCheckpointSpec()
    status: VpaCheckpointStatus = VpaCheckpointStatus()
