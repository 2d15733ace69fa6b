"""Recommendations older than three periods of their recommender, which is then down or has no metrics
(docs/decisions/0024).

The recommender writes a VPA's status only when it changes. While pods are measured, each period changes the upper bound
of memory: the 95th percentile × (1 + 1 / (days of history)) (`WithConfidenceMultiplier` in
pkg/recommender/logic/estimator.go). If that bound may stay the same, the status alone shows nothing.

The checkpoints, if they can be read, do (docs/decisions/0055): the recommender saves them in each of its rounds, with
the time (`StoreCheckpoints` in pkg/recommender/checkpoint/checkpoint_writer.go; with thousands, the oldest first and at
least ten per round).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final

from hvpa.api.objects.checkpoints import VpaCheckpoint
from hvpa.api.objects.read_models import ContainerRecommendation, Vpa
from hvpa.core.recommenders.history import DAY, MINUTES
from hvpa.core.values.clock import Clock, after
from hvpa.core.workload.containers import amount

PERIODS: Final = 3
"""Maximum age of a recommendation, in periods of the recommender."""
_SEEN_BYTES: Final = 2
"""A bound that moves by fewer bytes per minute may stay the same for some minutes."""
_ROUNDED_TO: Final = 1024
"""A bound that is a multiple of this, or has a suffix, comes from a recommender that rounds (`--round-memory-bytes`,
`--humanize-memory`), except in one of a thousand cases. Example: 380258472 is not rounded, 363Mi and 380633088 are."""


def recommender_of(vpa: Vpa) -> str:
    """Return the name of a VPA's recommender; empty for the default recommender."""
    return vpa.spec.recommenders[0].name if vpa.spec.recommenders else ""


def silences(
    vpas: Iterable[Vpa], checkpoints: Iterable[VpaCheckpoint], now: dt.datetime, period: dt.timedelta
) -> dict[str, dt.datetime]:
    """Return the last sign of life of each recommender that has been silent for three periods, by name: the last time
    it saved a checkpoint or wrote a VPA's status.

    It omits recommenders that still write after their checkpoints ended: they store their history elsewhere
    (`--storage=prometheus`). Example: last saved at 10:00 with a period of a minute: silent from 10:03 on.
    """
    names: dict[tuple[str, str], str] = {}
    written: dict[str, dt.datetime] = {}
    saved: dict[str, dt.datetime] = {}
    for vpa in vpas:
        name = names[vpa.metadata.namespace, vpa.metadata.name] = recommender_of(vpa)
        _keep_newest(written, name, vpa.metadata.written_at())
    for checkpoint in checkpoints:
        recommender = names.get((checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name))
        if recommender is not None:
            _keep_newest(saved, recommender, checkpoint.status.last_update_time)
    silent = {}
    for name, saved_at in saved.items():
        last = max(saved_at, written.get(name, saved_at))
        if last - saved_at < PERIODS * period <= now - last:
            silent[name] = last
    return silent


def _keep_newest(newest: dict[str, dt.datetime], name: str, time: dt.datetime | None) -> None:
    if time is not None:
        newest[name] = max(time, newest.get(name, time))


def silent_since(
    vpa: Vpa, clock: Clock, period: dt.timedelta, silent: Mapping[str, dt.datetime]
) -> dt.datetime | None:
    """Return when the recommender last wrote a VPA's status, if it should have written since; None if that is unknown
    or recent. `silent` is the result of `silences`.

    Example: last written at 10:00 with a period of a minute: reported from 10:03 on.
    """
    if (since := silent.get(recommender_of(vpa))) is not None:
        return since
    written = vpa.metadata.written_at()
    if written is None or not must_change(vpa):
        return None
    return written if clock.is_past(after(written, PERIODS * period)) else None


def must_change(vpa: Vpa) -> bool:
    """Return whether a VPA's status must change in each period of the recommender."""
    recommendation, created = vpa.status.recommendation, vpa.metadata.creation_timestamp
    written = vpa.metadata.written_at()
    if recommendation is None or created is None or written is None or vpa.spec.recommenders:
        return False
    days = max(1.0, (written - created) / DAY)
    return any(_is_moving(vpa, entry, days) for entry in recommendation.container_recommendations or ())


def _is_moving(vpa: Vpa, recommendation: ContainerRecommendation, days: float) -> bool:
    """Return whether a container's bound moves enough. U × (1 + 1 / days) falls by U / days² / 1440 per minute: 1 GiB
    after 100 days by 75 bytes."""
    target, upper = amount(recommendation.target, "memory"), amount(recommendation.upper_bound, "memory")
    if target is None or upper is None or upper <= target:
        return False
    text = str(recommendation.upper_bound["memory"])
    if not text.isdecimal() or int(text) % _ROUNDED_TO == 0:
        return False
    most = amount(vpa.spec.policy(recommendation.container_name).max_allowed, "memory")
    return (most is None or upper < most) and upper >= _SEEN_BYTES * MINUTES * days * days
