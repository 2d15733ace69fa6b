"""Which recommenders are silent, by their checkpoints."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.checkpoints import VpaCheckpoint, VpaCheckpointSpec, VpaCheckpointStatus
from hvpa.api.objects.read_models import Meta, Vpa
from hvpa.core.recommenders.stale import PERIODS, silences

NOW = dt.datetime(2026, 11, 27, 10, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)


def vpa(name: str, recommender: str = "", written: float | None = None) -> Vpa:
    """A VPA whose status was written that many seconds ago."""
    meta: dict[str, Any] = {"name": name, "namespace": "shop"}
    if written is not None:
        at = (NOW - dt.timedelta(seconds=written)).isoformat()
        meta["managedFields"] = [{"subresource": "status", "time": at}]
    spec = {"recommenders": [{"name": recommender}]} if recommender else {}
    return msgspec.json.decode(json.dumps({"metadata": meta, "spec": spec}), type=Vpa)


def saved(name: str, seconds: float | None) -> VpaCheckpoint:
    """A checkpoint of a VPA that was saved that many seconds ago."""
    at = None if seconds is None else NOW - dt.timedelta(seconds=seconds)
    meta, spec = Meta(name=f"{name}-app", namespace="shop"), VpaCheckpointSpec(name, "app")
    return VpaCheckpoint(meta, spec, VpaCheckpointStatus(at))


CASES: dict[str, tuple[list[Vpa], list[VpaCheckpoint], dict[str, float]]] = {
    "nothing can be read": ([vpa("a")], [], {}),
    "saved within three periods": ([vpa("a")], [saved("a", 179)], {}),
    "not saved for three periods": ([vpa("a")], [saved("a", 180)], {"": 180}),
    "another VPA's is newer": ([vpa("a"), vpa("b")], [saved("a", 999), saved("b", 10)], {}),
    "another recommender's is newer": (
        [vpa("a"), vpa("b", "mine")],
        [saved("a", 999), saved("b", 10)],
        {"": 999},
    ),
    "a status was written within three periods": ([vpa("a", written=60)], [saved("a", 200)], {}),
    "the last sign of life is a status": ([vpa("a", written=190)], [saved("a", 200)], {"": 190}),
    "it goes on without checkpoints": ([vpa("a", written=999)], [saved("a", 9999)], {}),
    "of a VPA that is gone": ([vpa("a")], [saved("b", 999)], {}),
    "never saved": ([vpa("a")], [saved("a", None)], {}),
    "saved in the future": ([vpa("a")], [saved("a", -999)], {}),
}


@pytest.mark.parametrize(("vpas", "checkpoints", "silent"), CASES.values(), ids=CASES)
def test_a_recommender_that_saves_nothing_for_three_periods_is_silent(
    vpas: list[Vpa], checkpoints: list[VpaCheckpoint], silent: dict[str, float]
) -> None:
    expected = {name: NOW - dt.timedelta(seconds=seconds) for name, seconds in silent.items()}
    assert silences(vpas, checkpoints, NOW, MINUTE) == expected


@given(st.lists(st.floats(-1e6, 1e6), max_size=5), st.lists(st.floats(-1e6, 1e6), max_size=5))
def test_no_sign_of_life_within_three_periods_is_silence(written: list[float], saves: list[float]) -> None:
    vpas = [vpa("a", written=seconds) for seconds in written] or [vpa("a")]
    last_signs = silences(vpas, [saved("a", seconds) for seconds in saves], NOW, MINUTE)
    if last_signs:
        assert NOW - last_signs[""] >= PERIODS * MINUTE
        assert min(*written, *saves, 1e9) >= 179
