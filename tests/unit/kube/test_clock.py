"""The system's clock."""

from __future__ import annotations

import datetime as dt

from hvpa.kube.clock import SystemClock

MOMENT = dt.timedelta(seconds=30)


def test_it_shows_the_system_s_time_in_utc() -> None:
    now = SystemClock().now()
    assert abs(now - dt.datetime.now(dt.UTC)) < MOMENT
    assert now.tzinfo is dt.UTC
