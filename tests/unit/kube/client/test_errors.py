"""What errors of the API server mean."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from hvpa.kube.client.errors import DEFAULT_RETRY_AFTER, MAX_RETRY_AFTER, Unreachable, api_error, write_error
from hvpa.reconcile.ports import Conflict, NodeTooSmall, Overloaded, Refused, Unavailable, WriteError


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
    ("code", "patched", "kind"),
    [
        (409, True, Conflict),
        (409, False, Conflict),
        (404, True, Conflict),
        (404, False, WriteError),
        (500, True, Unavailable),
        (503, True, Unavailable),
        (504, True, Unavailable),
        *[(code, True, Refused) for code in (400, 403, 405, 413, 422, 451)],
        *[(code, True, WriteError) for code in (307, 401, 410)],
    ],
)
def test_a_code_says_what_becomes_of_a_write(code: int, patched: bool, kind: type[WriteError]) -> None:
    error = write_error(api_error(code, b'{"message": "because"}'), patched)
    assert (type(error), str(error)) == (kind, "because")


@pytest.mark.parametrize(
    ("details", "kind"),
    [
        ({"causes": [{"reason": "Other"}, {"reason": "NodeCapacity"}]}, NodeTooSmall),
        ({"causes": [{"reason": "UnsupportedPlatform"}]}, Refused),
        ({"causes": None}, Refused),
        (None, Refused),
    ],
)
def test_a_resize_beyond_the_node_of_a_pod_is_known_by_its_cause(
    details: object, kind: type[WriteError]
) -> None:
    body = {"reason": "Forbidden", "message": "node didn't have enough", "details": details}
    error = write_error(api_error(403, msgspec.json.encode(body)), patched=True)
    assert (type(error), str(error)) == (kind, "node didn't have enough")


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_that_names_a_time_is_overloaded(code: int) -> None:
    error = write_error(api_error(code, b"", "2"), patched=True)
    assert isinstance(error, Overloaded)
    assert error.retry_after == dt.timedelta(seconds=2)


def test_a_request_without_a_response_may_get_one_the_next_time() -> None:
    assert type(write_error(Unreachable("no response in time"), patched=True)) is Unavailable


def test_a_body_that_is_no_status_is_reported_as_it_is() -> None:
    assert str(api_error(502, b"<html>bad gateway</html>")) == "<html>bad gateway</html>"
    assert str(api_error(500, b"")) == "HTTP 500"


def test_a_field_that_the_api_server_does_not_know_is_a_refusal_although_it_sends_a_500() -> None:
    message = (
        "failed to create typed patch object (a/b; autoscaling/v2, Kind=H): .spec.later: field not declared"
    )
    error = write_error(api_error(500, msgspec.json.encode({"message": message})), patched=False)
    assert (type(error), str(error)) == (Refused, message)
