"""Since when a store is out of date, and who learns of it."""

from __future__ import annotations

from structlog.testing import capture_logs

from hvpa.kube.cache.freshness import STALE, Freshness
from hvpa.kube.client.errors import ApiError, Unreachable

FORBIDDEN = ApiError(403, "Forbidden", 'User "system:serviceaccount:a:b" cannot list resource "pods"')


class Time:
    """A monotonic clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def is_stale(fresh: Freshness) -> bool:
    return fresh.stale


def test_a_store_is_out_of_date_once_list_and_watch_have_failed_for_a_minute() -> None:
    time = Time()
    fresh = Freshness("pods", "", time)
    fresh.succeeded()
    time.now += 1000  # quiet, until the watch breaks
    fresh.failed(FORBIDDEN)
    assert not is_stale(fresh)
    time.now += STALE
    fresh.failed(FORBIDDEN)
    assert is_stale(fresh)
    assert fresh.succeeded_at == 1000.0
    fresh.succeeded()
    assert not is_stale(fresh)
    assert fresh.problem is None
    assert fresh.succeeded_at == time.now


def test_a_failure_that_passes_within_a_minute_is_none() -> None:
    time = Time()
    fresh = Freshness("pods", "", time)
    for _ in range(5):
        fresh.failed(FORBIDDEN)
        time.now += STALE - 1
        assert not is_stale(fresh)
        fresh.succeeded()


def test_a_quiet_watch_that_breaks_now_and_then_is_not_out_of_date() -> None:
    time = Time()
    fresh = Freshness("pods", "", time)
    fresh.succeeded()
    for _ in range(10):
        time.now += STALE
        fresh.failed(FORBIDDEN, had_worked=True)
        time.now += 1
        fresh.failed(FORBIDDEN)
        assert not is_stale(fresh)


def test_a_watch_that_broke_once_and_is_open_again_is_not_out_of_date_while_it_is_quiet() -> None:
    time = Time()
    fresh = Freshness("pods", "", time)
    fresh.failed(FORBIDDEN)
    time.now += STALE + 1
    assert not is_stale(fresh)


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
