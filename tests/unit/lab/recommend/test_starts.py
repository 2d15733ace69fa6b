"""What the VPA makes of starts, with and without more CPU for them (docs/startup-boost.md)."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from hvpa.api.objects.read_models import Vpa
from hvpa_lab.recommend.vpa.recommender import VerticalRecommender

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
VPA = msgspec.json.decode(b'{"metadata": {"name": "web"}}', type=Vpa)


def target(minutes: int, start: tuple[float, int]) -> object:
    """The target after three days of a container that uses 300m and starts every so many minutes. `start`: its CPU, and
    the minutes that it takes."""
    recommender, (cpu, length) = VerticalRecommender(), start
    now = BEGIN
    for minute in range(3 * 24 * 60):
        now = BEGIN + dt.timedelta(minutes=minute)
        used = cpu if minute % minutes < length else 0.3
        recommender.add_sample("web-1", "app", now.timestamp(), used, 100e6)
    recommendation = recommender.recommend(VPA, now).recommendation
    assert recommendation is not None
    assert recommendation.container_recommendations is not None
    (recommended,) = recommendation.container_recommendations
    return recommended.target["cpu"]


@pytest.mark.parametrize(("minutes", "slow"), [(24 * 60, "350m"), (30, "350m"), (20, "587m")])
def test_a_boost_changes_the_target_less_than_a_longer_start(minutes: int, slow: str) -> None:
    assert target(minutes, (0.5, 3)) == slow
    assert target(minutes, (1.5, 1)) == "350m"
