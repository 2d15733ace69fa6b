"""What errors of the API server mean."""

from __future__ import annotations

import pytest

from hvpa.kube.client.errors import DEFAULT_RETRY_AFTER, MAX_RETRY_AFTER, Unreachable, api_error, write_error
from hvpa.reconcile.ports import Refused, Unavailable, WriteError


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-7", 0.0),
        ("-inf", 0.0),
        ("99999999999999999999", MAX_RETRY_AFTER),
        ("1e999", MAX_RETRY_AFTER),
        ("inf", MAX_RETRY_AFTER),
        ("nan", DEFAULT_RETRY_AFTER),
        ("", DEFAULT_RETRY_AFTER),
        ("soon", DEFAULT_RETRY_AFTER),
        ("Sat, 21 Nov 2026 10:00:00 GMT", DEFAULT_RETRY_AFTER),
    ],
)
def test_any_retry_after_is_a_time_that_can_be_waited_for(header: str | None, expected: float | None) -> None:
    assert api_error(429, b"", header).retry_after == expected


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Refused),
        (401, WriteError),
        (410, WriteError),
        (307, WriteError),
        (413, Refused),
        (451, Refused),
        (504, Unavailable),
    ],
)
def test_a_code_says_what_becomes_of_a_write(code: int, kind: type[WriteError]) -> None:
    """The usual ones are in `test_transport.py`."""
    assert type(write_error(api_error(code, b""), patched=True)) is kind


def test_no_answer_may_be_one_the_next_time() -> None:
    assert type(write_error(Unreachable("no answer in time"), patched=True)) is Unavailable
