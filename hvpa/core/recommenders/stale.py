"""Recommendations that are older than three periods of their recommender, which is down then, or has no metrics
(docs/decisions/0024).

It writes a VPA's status only where that changes. What changes with each of its periods, as long as pods are measured,
is the upper bound of memory: the 95th percentile times 1 + 1 / (days of history) (`WithConfidenceMultiplier` in
pkg/recommender/logic/estimator.go). Where that bound may stand still, a VPA's own status reports nothing.

Its checkpoints, if they can be read, are its heartbeat (docs/decisions/0055): it saves them with each of its rounds,
each with the time (`StoreCheckpoints` in pkg/recommender/checkpoint/checkpoint_writer.go; of thousands, the oldest
first, ten a round at least).
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
"""How many of the recommender's periods a recommendation may be old."""
_SEEN_BYTES: Final = 2
"""A bound that moves by less than this in a minute may stand for some."""
_ROUNDED_TO: Final = 1024
"""A bound that is a multiple of this, or has a suffix, is one of a recommender that rounds (`--round-memory-bytes`,
`--humanize-memory`), but for one in a thousand. Example: 380258472 is not rounded, 363Mi and 380633088 are."""


def recommender_of(vpa: Vpa) -> str:
    """The name of the recommender that a VPA asks for; empty for the default one."""
    return vpa.spec.recommenders[0].name if vpa.spec.recommenders else ""


def silences(
    vpas: Iterable[Vpa], checkpoints: Iterable[VpaCheckpoint], now: dt.datetime, period: dt.timedelta
) -> dict[str, dt.datetime]:
    """The last sign of life of each recommender that gave none for three periods, by its name: when it last saved a
    checkpoint or wrote a VPA's status. Without those that go on after their checkpoints ended: they keep their history
    elsewhere (`--storage=prometheus`). Example: last saved at 10:00, and its period is a minute: from 10:03 on."""
    names: dict[tuple[str, str], str] = {}
    written: dict[str, dt.datetime] = {}
    saved: dict[str, dt.datetime] = {}
    for vpa in vpas:
        name = names[vpa.metadata.namespace, vpa.metadata.name] = recommender_of(vpa)
        _note(written, name, vpa.metadata.written_at())
    for one in checkpoints:
        of = names.get((one.metadata.namespace, one.spec.vpa_object_name))
        if of is not None:
            _note(saved, of, one.status.last_update_time)
    found = {}
    for name, at in saved.items():
        last = max(at, written.get(name, at))
        if last - at < PERIODS * period <= now - last:
            found[name] = last
    return found


def _note(newest: dict[str, dt.datetime], name: str, time: dt.datetime | None) -> None:
    if time is not None:
        newest[name] = max(time, newest.get(name, time))


def silent_since(
    vpa: Vpa, clock: Clock, period: dt.timedelta, silent: Mapping[str, dt.datetime]
) -> dt.datetime | None:
    """When the recommender last wrote the status of a VPA that it should have written since; None where that is not
    known, or not long ago. Example: last written at 10:00, and its period is a minute: reported from 10:03 on.
    `silent`: as `silences` gives it."""
    if (since := silent.get(recommender_of(vpa))) is not None:
        return since
    written = vpa.metadata.written_at()
    if written is None or not must_change(vpa):
        return None
    return written if clock.is_past(after(written, PERIODS * period)) else None


def must_change(vpa: Vpa) -> bool:
    """Whether the status of a VPA must change with each of the recommender's periods."""
    recommendation, created = vpa.status.recommendation, vpa.metadata.creation_timestamp
    written = vpa.metadata.written_at()
    if recommendation is None or created is None or written is None or vpa.spec.recommenders:
        return False
    days = max(1.0, (written - created) / DAY)
    return any(_is_moving(vpa, one, days) for one in recommendation.container_recommendations or ())


def _is_moving(vpa: Vpa, one: ContainerRecommendation, days: float) -> bool:
    """U × (1 + 1 / days) falls by U / days² / 1440 in a minute: of 1 GiB after 100 days, by 75 bytes."""
    target, upper = amount(one.target, "memory"), amount(one.upper_bound, "memory")
    if target is None or upper is None or upper <= target:
        return False
    text = str(one.upper_bound["memory"])
    if not text.isdecimal() or int(text) % _ROUNDED_TO == 0:
        return False
    most = amount(vpa.spec.policy(one.container_name).max_allowed, "memory")
    return (most is None or upper < most) and upper >= _SEEN_BYTES * MINUTES * days * days
