"""The soak's judge finds what it is there for: a second writer, a step out of nothing, a step taken twice."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pytest

from hvpa.core.model import LAST_APPLIED
from localcluster.client.api import KubeApi
from tests.e2e.soak.audit_trail import Write
from tests.e2e.soak.check import Checker
from tests.e2e.soak.controllers import Controllers
from tests.e2e.soak.leases import Leases
from tests.e2e.soak.objects import Role

START = 1000.0
ROLES = [Role(0), Role(1), Role(2)]
HORIZONTAL, VERTICAL, BOTH = ROLES
SHARDS = 8
SHARD_OF = {HORIZONTAL: 2, VERTICAL: 1, BOTH: 7}


class NoApi(KubeApi):
    """The checker asks no server."""

    def __init__(self) -> None:
        pass


def judge(leases: Leases) -> Checker:
    controllers = Controllers(NoApi(), 1, ROLES)
    controllers.close()
    for role in ROLES:
        place = (role.namespace, role.name)
        controllers.recommended[place, "replicas"] |= {10: START, 12: START}
        controllers.recommended[place, "target"] |= {700: START, 900: START}
    places = {(role.namespace, role.name): role for role in ROLES}
    operators = {"a": "operator-a", "b": "operator-b", "c": "operator-c"}
    return Checker(controllers, places, operators, leases)


@pytest.fixture
def checker() -> Checker:
    checker = judge(Leases())
    checker.feed(lease("a", 1))
    return checker


@pytest.fixture
def sharded() -> Checker:
    """The shard of HORIZONTAL is a's, that of VERTICAL b's."""
    checker = judge(Leases(SHARDS))
    checker.feed(lease("a", 1, shard(HORIZONTAL)))
    checker.feed(lease("b", 1, shard(VERTICAL)))
    return checker


def write(role: Role, body: Any, at: float, by: str = "a", resource: str = "deployments") -> Write:
    """A patch that was received so many seconds after the start, and answered a moment later."""
    at += START
    return Write(at, at + 0.01, by, "patch", resource, role.namespace, role.name, body)


def lease(by: str, at: float, name: str = "hvpa", holder: str | None = None) -> Write:
    body = {"spec": {"holderIdentity": by if holder is None else holder}}
    return Write(START + at, START + at + 0.01, by, "update", "leases", "hvpa-system", name, body)


def shard(role: Role) -> str:
    return f"hvpa-shard-{SHARD_OF[role]}-of-{SHARDS}"


def status(role: Role, by: str, at: float) -> Write:
    return write(role, {"status": {}}, at, by, "hvpas/status")


def horizontal(role: Role, count: int, desired: int, at: float, by: str = "a", late: float = 0.0) -> Write:
    """A step that was decided so many seconds after the start, and that arrived `late` after that."""
    applied_from = {"replicas": count, "desired": desired, "weight": 0}
    decided = dt.datetime.fromtimestamp(START + at, dt.UTC)
    axis = {"appliedFrom": applied_from, "lastScaleTime": f"{decided:%Y-%m-%dT%H:%M:%S.%fZ}"}
    return write(role, body({"replicas": count}, axis, {}), at + late, by)


def vertical(role: Role, request: int, target: int, at: float) -> Write:
    applied_from = [
        {
            "container": "app",
            "resource": "cpu",
            "target": f"{target}m",
            "weight": 50,
            "request": f"{request}m",
        }
    ]
    container = {"name": "app", "resources": {"requests": {"cpu": f"{request}m"}}}
    spec = {"template": {"spec": {"containers": [container]}}}
    return write(role, body(spec, {}, {"appliedFrom": applied_from}), at)


def body(spec: Any, across: Any, along: Any) -> Any:
    record = json.dumps({"horizontal": across, "vertical": along})
    return {"metadata": {"annotations": {LAST_APPLIED: record}}, "spec": spec}


def test_steps_that_are_as_they_must_be_are_not_found_fault_with(checker: Checker) -> None:
    for request in (
        horizontal(HORIZONTAL, 10, 10, 2),
        horizontal(HORIZONTAL, 12, 12, 3),
        horizontal(HORIZONTAL, 10, 10, 4),
        vertical(VERTICAL, 700, 700, 5),
        horizontal(BOTH, 6, 10, 6, late=20),  # a write that was lost, and sent again
        vertical(BOTH, 600, 700, 7),
        vertical(BOTH, 600, 700, 8),  # no other result
        vertical(BOTH, 750, 900, 9),
        horizontal(BOTH, 8, 10, 66),  # measured anew
        write(BOTH, {"status": {}}, 71, resource="hvpas/status"),
    ):
        checker.feed(request)
    assert checker.violations() == []
    assert checker.writes["patch deployments"] == 9


def test_a_step_that_is_taken_twice_is_found(checker: Checker) -> None:
    for request in (horizontal(BOTH, 6, 10, 2), horizontal(BOTH, 8, 10, 61)):
        checker.feed(request)
    assert ["step to 8 from 10" in violation for violation in checker.violations()] == [True]
    for request in (vertical(BOTH, 600, 700, 31), vertical(BOTH, 650, 700, 500)):
        checker.feed(request)
    assert ["vertical step to 650m" in violation for violation in checker.violations()] == [False, True]


@pytest.mark.parametrize("at", [10, 30.5])
def test_after_another_clients_change_a_step_may_be_taken_again(checker: Checker, at: float) -> None:
    by_others = write(BOTH, {"spec": {"replicas": 3}}, at, by="")
    for request in sorted(
        [horizontal(BOTH, 6, 10, 2), horizontal(BOTH, 8, 10, 30), by_others], key=lambda w: w.answered
    ):
        checker.feed(request)
    assert checker.violations() == []


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (horizontal(BOTH, 6, 11, 2), "the HPA never wanted 11"),
        (horizontal(BOTH, 6, 10, -1), "the HPA never wanted 10"),
        (horizontal(BOTH, 61, 10, 2), "61 replicas"),
        (horizontal(HORIZONTAL, 9, 10, 2), "9 replicas, but the HPA wants 10"),
        (vertical(BOTH, 600, 701, 2), "the VPA never recommended 701m"),
        (vertical(VERTICAL, 600, 700, 2), "600m, but the VPA recommends 700m"),
        (write(BOTH, {"spec": {"replicas": 10}}, 2), "without the annotation"),
    ],
)
def test_a_step_out_of_nothing_or_to_elsewhere_is_found(checker: Checker, step: Write, text: str) -> None:
    checker.feed(step)
    assert [text in violation for violation in checker.violations()] == [True]


def test_a_writer_without_the_lease_is_found_unless_it_was_in_time_or_writes_an_event(
    checker: Checker,
) -> None:
    checker.feed(lease("b", 10))
    in_time = write(BOTH, {}, 9.9, resource="hvpas/status")
    checker.feed(in_time)
    checker.feed(write(BOTH, {}, 10.5, resource="events"))
    checker.feed(write(BOTH, {}, 10.5, by="b", resource="hvpas/status"))
    assert checker.violations() == []
    assert checker.late_events == 1
    checker.feed(write(BOTH, {}, 10.5, resource="hvpas/status"))
    assert [
        "operator-a sent" in violation and "operator-b" in violation for violation in checker.violations()
    ] == [True]
    assert checker.leases.takeovers == 2


def test_a_process_that_was_stopped_may_send_what_it_was_about_to_and_no_more(checker: Checker) -> None:
    conditional = {"metadata": {"resourceVersion": "1"}, "status": {}}
    checker.feed(lease("b", 10))
    checker.thaws.append(("a", START + 12))
    checker.feed(write(BOTH, conditional, 12.1, resource="hvpas/status"))
    assert checker.violations() == []
    assert checker.late_sends == 1
    checker.feed(write(BOTH, {"status": {}}, 12.1, resource="hvpas/status"))
    checker.feed(write(BOTH, conditional, 18, resource="hvpas/status"))
    checker.feed(write(BOTH, conditional, 11.5, resource="hvpas/status"))
    assert len(checker.violations()) == 3


def test_who_never_held_the_lease_or_has_given_it_back_writes_nothing(checker: Checker) -> None:
    checker.feed(status(BOTH, "b", 0.5))
    checker.feed(lease("a", 10, holder=""))
    checker.feed(status(BOTH, "a", 9.9))
    checker.feed(status(BOTH, "a", 11))
    never, late = checker.violations()
    assert "operator-b sent" in never
    assert "operator-a held the Lease hvpa, operator-b never held it" in never
    assert "operator-a sent" in late
    assert "no process held the Lease hvpa, operator-a had lost it 0.990 s before" in late
    checker.feed(lease("a", 12))
    checker.feed(status(BOTH, "a", 13))
    assert len(checker.violations()) == 2
    assert checker.leases.takeovers == 1


def test_each_shard_has_a_holder_of_its_own(sharded: Checker) -> None:
    owned = write(VERTICAL, {}, 2, "b", "verticalpodautoscalers")
    with_suffix = replace(owned, name=f"{VERTICAL.name}-0a1b2c3d")
    event = replace(owned, resource="events", name=f"{VERTICAL.name}.0123456789abcdef")
    for request in (status(HORIZONTAL, "a", 2), owned, with_suffix, event):
        sharded.feed(request)
    assert sharded.violations() == []
    assert sharded.late_events == 0
    for request in (status(VERTICAL, "a", 3), status(HORIZONTAL, "b", 3), status(BOTH, "a", 3)):
        sharded.feed(request)
    assert ["never held" in violation for violation in sharded.violations()] == [True] * 3
    assert f"no process held the Lease {shard(BOTH)}" in sharded.violations()[-1]


def test_a_shard_that_moves_takes_its_hvpas_with_it_and_no_others(sharded: Checker) -> None:
    for request in (
        lease("a", 5, shard(HORIZONTAL), holder=""),
        lease("c", 6, shard(HORIZONTAL)),
        status(HORIZONTAL, "a", 4.9),
        status(HORIZONTAL, "c", 6.1),
        status(VERTICAL, "b", 6.1),
    ):
        sharded.feed(request)
    assert sharded.violations() == []
    assert sharded.leases.takeovers == 3
    sharded.feed(status(HORIZONTAL, "a", 5.5))
    sharded.feed(status(VERTICAL, "c", 6.2))
    assert len(sharded.violations()) == 2


def test_leases_of_members_and_of_their_group_say_nothing_about_an_hvpa(sharded: Checker) -> None:
    for name in ("hvpa", "hvpa-member-1", "hvpa-shard-2-of-16"):
        sharded.feed(lease("c", 2, name))
    sharded.feed(status(HORIZONTAL, "a", 3))
    assert sharded.violations() == []
    assert sharded.leases.unheld({"a", "b"}) == [
        name for name in sharded.leases.names if name not in (shard(HORIZONTAL), shard(VERTICAL))
    ]
    assert shard(VERTICAL) in sharded.leases.unheld({"a", "c"})


def test_a_write_that_is_about_no_hvpa_is_found(checker: Checker) -> None:
    checker.feed(replace(status(BOTH, "a", 2), name="other"))
    assert ["concerns none of the Hvpas" in violation for violation in checker.violations()] == [True]
