"""Since when a store is out of date, and who learns of it."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from hvpa.kube.cache.reflector import STALE, Freshness
from hvpa.kube.client.errors import ApiError, Unreachable

FORBIDDEN = ApiError(403, "Forbidden", 'User "system:serviceaccount:a:b" cannot list resource "pods"')


class Time:
    """A monotonic clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("steps", "stale"),
    [
        pytest.param("ok 1000 fail", False, id="a quiet watch that breaks now is not out of date"),
        pytest.param("ok 1000 fail 60 fail", True, id="one that fails for a minute is"),
        pytest.param("ok 1000 fail 60 fail ok", False, id="and is not once it succeeds"),
        pytest.param("fail 59 ok fail 59 ok fail", False, id="a failure that passes within a minute is none"),
        pytest.param(
            "ok 60 worked 1 fail 60 worked 1 fail", False, id="a quiet watch may break now and then"
        ),
        pytest.param(
            "fail 61", False, id="a watch that broke once and is open again is fresh while it is quiet"
        ),
    ],
)
def test_a_store_is_out_of_date_once_list_and_watch_have_failed_for_a_minute(steps: str, stale: bool) -> None:
    time, last = Time(), None
    fresh = Freshness("pods", "", time)
    for step in steps.split():
        match step:
            case "ok":
                fresh.succeeded()
                last = time.now
            case "fail" | "worked":
                fresh.failed(FORBIDDEN, had_worked=step == "worked")
            case seconds:
                time.now += float(seconds)
    assert (fresh.stale, fresh.succeeded_at) == (stale, last)


def test_it_is_logged_once_and_so_is_the_end_of_it() -> None:
    time = Time()
    fresh = Freshness("pods", "ns", time)
    with capture_logs() as logs:
        fresh.succeeded()
        for _ in range(4):
            fresh.failed(FORBIDDEN)
            time.now += STALE / 2
        fresh.succeeded()
        fresh.succeeded()
    assert [(one["log_level"], one["event"], one["resource"], one["scope"]) for one in logs] == [
        ("warning", "cache is out of date: neither list nor watch succeeds", "pods", "ns"),
        ("info", "cache is up to date again", "pods", "ns"),
    ]
    assert "cannot list" in logs[0]["error"]
    assert (logs[0]["seconds"], logs[1]["seconds"]) == (60, 120)


def test_the_problem_names_neither_accounts_nor_addresses() -> None:
    fresh = Freshness("pods", "", Time())
    fresh.failed(FORBIDDEN)
    assert fresh.problem == "403 Forbidden"
    fresh.failed(Unreachable("Cannot connect to host 10.0.0.1:443"))
    assert fresh.problem == "no response that can be used"
