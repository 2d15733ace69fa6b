"""`spec.updateStrategy`."""

from __future__ import annotations

import datetime as dt

import pytest
from pydantic import ValidationError

from hvpa.api.hvpa.actuation import UpdateStrategy


def test_pods_are_replaced_unless_something_else_is_asked_for() -> None:
    found = UpdateStrategy.model_validate({})
    assert (found.type, found.in_place, found.timeout) == ("Rollout", False, dt.timedelta(minutes=5))
    assert UpdateStrategy.model_validate({"type": "InPlace"}).in_place
    assert UpdateStrategy.model_validate({"type": "InPlaceOrRollout"}).in_place


@pytest.mark.parametrize(
    ("given", "pods", "most"),
    [
        (None, 10, 2),
        (None, 3, 1),
        (None, 1, 1),
        ("100%", 10, 10),
        ("1%", 10, 1),
        (3, 10, 3),
        (3.0, 10, 3),
        (3, 1, 3),
    ],
)
def test_how_many_pods_may_be_unavailable(given: object, pods: int, most: int) -> None:
    fields = {} if given is None else {"maxUnavailable": given}
    assert UpdateStrategy.model_validate(fields).most_unavailable(pods) == most


@pytest.mark.parametrize("bad", [0, -1, 2**31, 1.5, True, "0%", "101%", "10", "1 %", "%", "", "١%", [1]])
def test_what_is_no_number_of_pods(bad: object) -> None:
    with pytest.raises(
        ValidationError, match="must be a number of pods from 1 on, or a percentage from 1% to 100%"
    ):
        UpdateStrategy.model_validate({"maxUnavailable": bad})


@pytest.mark.parametrize("bad", ["0s", "-1m", "soon", 5])
def test_what_is_no_timeout(bad: object) -> None:
    with pytest.raises(ValidationError):
        UpdateStrategy.model_validate({"timeout": bad})


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValidationError):
        UpdateStrategy.model_validate({"type": "Recreate"})


def test_a_canary_is_a_count_or_a_share_of_the_pods() -> None:
    one = UpdateStrategy.model_validate({"type": "InPlace", "canary": {}})
    assert one.canary is not None
    assert (one.canary.pods, one.canary.duration) == (1, dt.timedelta(minutes=5))
    assert one.canary.rollback_on == ("OOMKilled", "CrashLoopBackOff", "NotReady")
    assert one.canary_pods(30) == 1
    tenth = UpdateStrategy.model_validate({"type": "InPlaceOrRollout", "canary": {"pods": "10%"}})
    assert [tenth.canary_pods(pods) for pods in (1, 25, 30)] == [1, 2, 3]
    assert UpdateStrategy().canary_pods(30) == 30
    assert UpdateStrategy.model_validate({"canary": {}}).canary_pods(30) == 1
    with pytest.raises(ValidationError, match="rollbackOn"):
        UpdateStrategy.model_validate({"type": "InPlace", "canary": {"rollbackOn": ["Evicted"]}})
