"""The texts of a policy's Events, and that they are few."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.policy.resource import PolicyKey
from hvpa.core.policies.events import of_changes, of_status
from hvpa.core.policies.model import PolicyChange
from hvpa.core.policies.report import PROBLEMS
from tests.unit.core.policies.world import World, policy, workload

KEY = PolicyKey("HvpaPolicy", "default", "team")


def change(action: Any, name: str, **more: Any) -> PolicyChange:
    return PolicyChange(action, "shop", name, policy=KEY, **more)


def test_writes_of_the_same_kind_are_a_single_event() -> None:
    changes = [
        *(change("create", f"w{number}") for number in range(1500)),
        change("patch", "b"),
        change("patch", "a"),
        change("delete", "c", removed_by=KEY),
        change("delete", "d"),
    ]
    events = {event.message: (event.type, event.reason) for event in of_changes(policy(), changes)}
    assert list(events.values()) == [
        ("Normal", "HvpasCreated"),
        ("Normal", "HvpasChanged"),
        ("Normal", "HvpasRemoved"),
        ("Normal", "HvpasRemoved"),
    ]
    created, *others = events
    assert created.startswith("created: 1500 Hvpas (shop/w0, shop/w1, ")
    assert others == [
        "changed: 2 Hvpas (shop/a, shop/b)",
        "no longer selected, so removed: 1 Hvpas (shop/c)",
        "workload gone, opted out or with an Hvpa that somebody wrote, so removed: 1 Hvpas (shop/d)",
    ]
    (first, *_) = of_changes(policy(), changes)
    assert first.involved is not None
    assert (first.involved.kind, first.involved.uid) == ("HvpaPolicy", "uid-HvpaPolicy-default-team")


def test_without_a_write_of_a_kind_there_is_no_event_of_it() -> None:
    (event,) = of_changes(policy(), [change("patch", "a")])
    assert event.reason == "HvpasChanged"


@given(
    st.lists(
        st.builds(
            change,
            st.sampled_from(["create", "patch", "delete"]),
            st.text(max_size=300),
            removed_by=st.sampled_from([None, KEY]),
        ),
        max_size=40,
    )
)
def test_whatever_is_written_there_are_few_short_events(changes: list[PolicyChange]) -> None:
    events = list(of_changes(policy(), changes))
    assert len(events) <= 5
    assert all(len(event.message) <= 1024 and "\n" not in event.message for event in events)


def test_the_status_is_an_event_when_the_policy_begins_to_need_a_person_and_when_it_no_longer_does() -> None:
    world = World([policy()], [workload("a"), workload("b")])
    found = []
    for spec in ({}, {"workloads": {"names": ["x"]}}, {"workloads": {"names": ["y"]}}, {}):
        world.replace(policy(spec=spec))
        for _ in range(3):
            (before,) = world.policies
            made = world.step()
            for status in made.statuses.values():
                event = of_status(before, status)
                found += [] if event is None else [(event.type, event.reason)]
    assert found == [("Warning", "RemovalHeld"), ("Normal", "UpToDate")]


def test_removals_that_go_on_when_the_hour_is_over_are_a_warning_only_once_they_are_held() -> None:
    condition = {"type": "Ready", "status": "False", "reason": "RemovalHeld", "message": "m"}
    waits, held = (
        policy(status={"conditions": [condition], "awaitingRemoval": 2, "removalHeld": held})
        for held in (False, True)
    )
    assert of_status(policy(), waits.status) is None
    event = of_status(waits, held.status)
    assert event is not None
    assert (event.type, event.reason) == ("Warning", "RemovalHeld")
    assert of_status(held, held.status) is None
    up = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": "m"}
    assert of_status(waits, policy(status={"conditions": [up]}).status) is None


@pytest.mark.parametrize("reason", sorted(PROBLEMS))
def test_a_status_without_conditions_is_no_event(reason: str) -> None:
    made = policy(status={"conditions": [{"type": "Ready", "status": "False", "reason": reason}]})
    assert of_status(made, replace(made, status=policy().status).status) is None
