"""Replicas that share the work: each Hvpa is one replica's at any time, whoever joins or leaves; and no step is lost
or made twice. Judged by the API server's audit log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hvpa.kube.leases.assignment import Names
from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario
from tests.e2e.bare.leases.operators import Operators, Replica, needed, rights
from tests.e2e.bare.leases.steps import Steps, applied

SHARDS = 8
SCENARIOS = 4
LONG = 60
"""Seconds of Leases that don't run out in a test."""
DIVIDED = ("--shards", str(SHARDS))
SINGLE = ("--leader-elect",)


@pytest.fixture
def operators(plane: ControlPlane, space: str) -> Iterator[Operators]:
    with Operators(plane, space) as made:
        yield made


def scenarios(new_scenario: NewScenario) -> list[Scenario]:
    made = [new_scenario(create=False, changes=HORIZONTAL_ONLY) for _ in range(SCENARIOS)]
    for scenario in made:
        scenario.create(wait=False)
    for scenario in made:
        scenario.await_owned()
    return made


def await_held(replica: Replica, shards: int) -> None:
    wait_for(lambda: replica.held == shards, 120, f"{shards} shards held", 0.05)


def test_replicas_that_join_and_leave_under_load_make_each_step_once(
    operators: Operators, new_scenario: NewScenario, plane: ControlPlane
) -> None:
    first, two = (operators.join(*DIVIDED, duration=LONG) for _ in range(2))
    operators.await_shares(SHARDS, first, two)
    made = scenarios(new_scenario)
    mark = plane.audit.mark()
    with Steps(made) as steps:
        three = operators.join(*DIVIDED, duration=LONG)
        operators.await_shares(SHARDS, first, two, three)
        assert steps.go_on(2)
        for leaving, rest in ((first, (two, three)), (two, (three,))):
            assert leaving.operator.terminate(60) == 0
            operators.await_shares(SHARDS, *rest)  # far sooner than the Leases would have run out
            assert steps.go_on(2)
        first.operator.start()
        operators.await_shares(SHARDS, first, three)
        assert steps.go_on(2)
    assert steps.longest < LONG / 2
    assert applied(plane.audit, operators.namespace, mark) == steps.wanted
    assert operators.foreign_writes(SHARDS) == []
    assert len({request.user for request in operators.writes(mark)}) >= 2
    for replica in (first, three):
        assert replica.operator.terminate(60) == 0
    left = {
        lease["metadata"]["name"]: lease["spec"] for lease in plane.api.list("Lease", operators.namespace)
    }
    assert left.keys() == {"hvpa", *map(Names("hvpa", SHARDS).shard, range(SHARDS))}
    assert not any(spec.get("holderIdentity") for spec in left.values())
    requests = plane.audit.requests(namespace=operators.namespace, resource="leases")
    assert {("leases", request.verb) for request in requests if request.user == first.user} >= set(
        needed(rights())
    )
    assert [str(request) for request in requests if request.code == 403] == []


def test_a_rolling_update_to_shards_to_another_number_and_back_never_has_two_at_work(
    operators: Operators, new_scenario: NewScenario, plane: ControlPlane
) -> None:
    """One replica of each kind: the next one is ready, and waits, until the former has gone."""
    scenario = new_scenario(create=False, changes=HORIZONTAL_ONLY)
    former = operators.join(*SINGLE, duration=LONG)
    scenario.create()
    mark = plane.audit.mark()
    with Steps([scenario]) as steps:
        for flags, shards in ((DIVIDED, SHARDS), (("--shards", "3"), 3), (SINGLE, 1)):
            following = operators.join(*flags, duration=LONG)
            following.operator.await_ready()
            assert steps.go_on(2)
            assert following.held == 0
            assert former.operator.terminate(60) == 0
            await_held(following, shards)
            assert steps.go_on(2)
            former = following
    assert steps.longest < LONG / 2
    assert applied(plane.audit, operators.namespace, mark) == steps.wanted
    users = [request.user for request in operators.writes(mark)]
    order = [replica.user for replica in operators.replicas]
    assert users == sorted(users, key=order.index)  # none wrote after its successor
    assert set(users) == set(order)
