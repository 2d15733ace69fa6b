"""Read models of VerticalPodAutoscalerCheckpoints: how much history the recommender has for a container, and when it
last saved it."""

from __future__ import annotations

from hvpa.api.objects.read_models import Instant, Int, Meta, ReadModel


class VpaCheckpointSpec(ReadModel, frozen=True):
    """The VPA and the container of a checkpoint."""

    vpa_object_name: str = ""
    container_name: str = ""


class VpaCheckpointStatus(ReadModel, frozen=True):
    """The saved state of the recommender, without its histograms."""

    last_update_time: Instant | None = None
    """Time of the last save. The recommender saves in each of its rounds, or less often if it has very many
    containers."""
    first_sample_start: Instant | None = None
    last_sample_start: Instant | None = None
    total_samples_count: Int = 0


class VpaCheckpoint(ReadModel, frozen=True):
    """A VerticalPodAutoscalerCheckpoint."""

    metadata: Meta
    spec: VpaCheckpointSpec = VpaCheckpointSpec()
    status: VpaCheckpointStatus = VpaCheckpointStatus()
