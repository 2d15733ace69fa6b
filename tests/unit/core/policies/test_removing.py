"""How many Hvpas a policy removes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.api.objects.read_models import Hpa
from hvpa.core.policies.model import OPT_OUT, PolicyPlan
from hvpa.core.policies.removing import WINDOW
from tests.unit.core.policies.world import World, later, policy, workload

Json = dict[str, Any]
ONLY_KEPT: Json = {"workloads": {"selector": {"matchLabels": {"keep": "yes"}}}}


def names(count: int) -> list[str]:
    return [f"w{number:03}" for number in range(count)]


def world_of(*kept: str, others: int = 0, **spec: Any) -> World:
    """A policy at rest that selects all workloads; those in `kept` have the label of ONLY_KEPT."""
    labelled = [workload(name, labels={"keep": "yes"}) for name in kept]
    world = World([policy(spec=spec)], [*labelled, *map(workload, names(others))])
    world.settle()
    return world


def deleted(plans: list[PolicyPlan]) -> list[str]:
    return [change.name for plan in plans for change in plan.changes if change.action == "delete"]


def select_kept(world: World, **rollout: int) -> None:
    """Somebody edits the policy so that it selects only the kept workloads."""
    world.replace(policy(spec={**ONLY_KEPT, "rollout": rollout}))


# --- how many --------------------------------------------------------------------------------------------------------
def test_few_workloads_that_are_no_longer_selected_lose_their_hvpas_at_once() -> None:
    world = world_of("kept", others=10)
    select_kept(world)
    assert deleted([world.step()]) == names(10)
    world.settle()
    assert world.condition()[1] == "UpToDate"
    status = world.policies[0].status
    assert (status.removed, status.removed_since, status.awaiting_removal) == (10, build.NOW, 0)


def test_many_workloads_that_are_no_longer_selected_keep_their_hvpas_until_the_owner_raises_the_bound() -> (
    None
):
    world = world_of("kept", others=11)
    select_kept(world)
    assert deleted(world.settle()) == []
    assert deleted(world.settle(later(days=30))) == []
    assert world.plan().wait is None
    assert world.condition() == (
        "False",
        "RemovalHeld",
        "11 Hvpas stay although this policy no longer selects their workloads, since rollout.maxRemovals allows 10 "
        "removals within an hour; correct the selectors, or set rollout.maxRemovals to 11 to remove them",
    )
    status = world.policies[0].status
    assert (status.generated, status.up_to_date, status.awaiting_removal) == (12, 1, 11)
    select_kept(world, maxRemovals=11)
    assert deleted(world.settle()) == names(11)
    assert world.condition()[1] == "UpToDate"


def test_hvpas_that_stay_follow_the_policy_again_once_its_selector_is_corrected() -> None:
    world = world_of("kept", others=11)
    before = dict(world.hvpas)
    select_kept(world)
    world.settle()
    world.replace(policy())
    assert all(not plan.changes for plan in world.settle())
    assert world.hvpas == before
    assert world.condition()[1] == "UpToDate"


def test_a_policy_that_selects_nothing_any_more_removes_nothing_however_few_its_hvpas_are() -> None:
    world = world_of(others=1)
    select_kept(world, maxRemovals=1000)
    assert deleted(world.settle()) == []
    assert world.condition() == (
        "False",
        "RemovalHeld",
        "1 Hvpas stay although this policy no longer selects their workloads, since it selects no workload at all; "
        "correct the selectors, or, to remove the Hvpas, let the workloads opt out or delete the policy",
    )


def test_workloads_that_lose_their_labels_one_after_another_are_bounded_as_well() -> None:
    """As when GitOps applies a changed label to one Deployment after another."""
    world = world_of("kept", others=30)
    select_kept(world, maxRemovals=31)
    world.replace(policy(spec={"workloads": {"exclude": {"selector": {"matchLabels": {"app": "x"}}}}}))
    for index in range(30):
        world.workloads[1 + index] = workload(names(30)[index], labels={"app": "x"})
        world.step(later(seconds=index))
    assert len(world.hvpas) == 31 - 10
    assert world.condition()[2].startswith("20 Hvpas stay")
    assert "allows 10 removals within an hour, and 10 were made" in world.condition()[2]
    assert world.condition()[2].endswith("or set rollout.maxRemovals to 30 to remove them")


def test_few_that_come_after_others_go_when_the_hour_is_over() -> None:
    world = world_of("kept", others=13)
    world.replace(policy(spec={"workloads": {"exclude": {"names": names(13)[:8]}}}))
    world.settle()
    world.replace(policy(spec={"workloads": {"exclude": {"names": names(13)[:12]}}}))
    assert deleted(world.settle(later(minutes=20))) == []
    assert world.condition()[2] == (
        "4 Hvpas stay although this policy no longer selects their workloads, since rollout.maxRemovals allows 10 "
        "removals within an hour, and 8 were made; they are removed when the hour is over"
    )
    assert world.plan(later(minutes=20)).wait == WINDOW - (later(minutes=20) - build.NOW)
    assert deleted(world.settle(later(hours=1))) == names(13)[8:12]
    assert world.policies[0].status.removed == 4


@pytest.mark.parametrize("how", ["gone", "opted out", "going", "written by somebody"])
def test_workloads_that_are_gone_or_opt_out_lose_their_hvpas_however_many_they_are(how: str) -> None:
    world = world_of("kept", others=30, rollout={"maxRemovals": 0})
    for index, name in enumerate(names(30), start=1):
        if how == "opted out":
            world.workloads[index] = workload(name, annotations={OPT_OUT: "true"})
        elif how == "going":
            world.workloads[index] = workload(
                name, change={"metadata": {"deletionTimestamp": build.LONG_AGO}}
            )
        elif how == "written by somebody":
            world.write(f"own-{name}", name)
    if how == "gone":
        del world.workloads[1:]
    select_kept(world, maxRemovals=0)
    assert sorted(deleted([world.step()])) == names(30)
    assert world.policies[0].status.removed == 0


def test_a_workload_that_another_policy_selects_is_handed_over_and_not_removed() -> None:
    world = world_of("kept", others=30)
    world.policies.append(policy("all", namespace=""))
    select_kept(world)
    assert deleted(world.settle()) == []
    assert world.condition(name="all")[1] == "UpToDate"


def applying(count: int, taker: Json, **team: Any) -> World:
    """Hvpas of a team's policy in mode Apply, which selects only `kept` from now on, beside another policy."""
    world = world_of("kept", others=count, stage="Apply")
    world.policies.append(policy("all", taker, namespace=""))
    world.settle()
    world.replace(policy(spec={"stage": "Apply", **ONLY_KEPT, **team}))
    return world


def test_workloads_that_a_less_specific_policy_would_only_recommend_for_keep_scaling() -> None:
    world = applying(11, {})
    assert all(not plan.changes for plan in world.settle())
    assert set(world.modes().values()) == {"Apply"}
    assert world.condition()[1] == "RemovalHeld"
    assert world.condition()[2].startswith(
        "11 Hvpas stay although this policy no longer selects their workloads"
    )
    why = "11 workloads still have the Hvpa of another policy, which is invalid, being deleted or RemovalHeld"
    assert world.condition(name="all") == ("False", "RollingOut", why)
    world.replace(policy(spec={"stage": "Apply", **ONLY_KEPT, "rollout": {"maxRemovals": 11}}))
    world.settle()
    assert sorted(world.modes().values()) == ["Apply", *11 * ["Recommend"]]
    assert world.policies[0].status.removed + world.policies[1].status.removed == 11
    assert world.condition()[1] == world.condition(name="all")[1] == "UpToDate"


def test_few_of_them_are_taken_over_at_once() -> None:
    world = applying(10, {})
    world.settle()
    assert sorted(world.modes().values()) == ["Apply", *10 * ["Recommend"]]


@pytest.mark.parametrize(
    ("taker", "team"),
    [({"stage": "Apply"}, {}), ({"stage": "Review"}, {}), ({}, {"stage": "Recommend"})],
)
def test_a_takeover_that_stops_nothing_is_not_held(taker: Json, team: Json) -> None:
    if team:
        world = world_of("kept", others=11, **team)
        world.policies.append(policy("all", taker, namespace=""))
        world.replace(policy(spec={**team, **ONLY_KEPT}))
    else:
        world = applying(11, taker)
    world.settle()
    assert world.condition()[1] == world.condition(name="all")[1] == "UpToDate"


def test_a_policy_that_is_as_specific_takes_over_as_it_says() -> None:
    """As when a namespace gets the label of another stage."""
    names_of = {"namespaces": {"names": ["default"]}}
    world = World([policy("apply", {**names_of, "stage": "Apply"}, "")], list(map(workload, names(12))))
    world.settle()
    world.policies.append(policy("recommend", names_of, ""))
    world.replace(policy("apply", {"namespaces": {"names": ["other"]}, "stage": "Apply"}, ""))
    world.settle()
    assert set(world.modes().values()) == {"Recommend"}


def test_an_hpa_that_acts_is_reason_enough_to_stop() -> None:
    world = applying(12, {})
    world.settle()
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w000"}
    acting = {"scaleTargetRef": reference, "maxReplicas": 2}
    world.hpas = [build.decoded(Hpa, {"metadata": {"name": "h", "namespace": "default"}, "spec": acting})]
    world.settle()
    assert world.modes()["default/w000"] == "Recommend"
    assert world.modes()["default/w001"] == "Apply"


def test_hvpas_that_stay_do_so_until_the_policy_changes_also_if_they_become_fewer() -> None:
    world = world_of("kept", others=11)
    select_kept(world)
    world.settle()
    del world.workloads[-1]  # its Hvpa goes, and 10 are left
    assert deleted(world.settle(later(days=2))) == ["w010"]
    assert world.condition()[1] == "RemovalHeld"
    assert world.condition()[2].endswith("or set rollout.maxRemovals to 11 to remove them")
    assert world.plan(later(days=2)).wait is None
    world.replace(policy(spec={**ONLY_KEPT, "rollout": {"maxRemovals": 11}}, metadata={"generation": 2}))
    assert deleted(world.settle()) == names(10)


def test_a_workload_that_a_wrong_selector_selects_by_chance_confirms_nothing() -> None:
    world = world_of(others=3)
    select_kept(world)
    world.settle()
    world.workloads.append(workload("new", labels={"keep": "yes"}))
    assert deleted(world.settle()) == []
    assert world.condition()[2].startswith(
        "3 Hvpas stay although this policy no longer selects their workloads, since"
    )


def test_a_correction_in_small_steps_removes_none_of_those_that_it_has_yet_to_reach() -> None:
    """As when GitOps takes a label away from one Deployment after another, and somebody brings it back."""
    world = world_of("kept", others=30)
    world.replace(policy(spec={"workloads": {"exclude": {"selector": {"matchLabels": {"app": "x"}}}}}))
    for index, name in enumerate(names(30), start=1):
        world.workloads[index] = workload(name, labels={"app": "x"})
        world.settle()
    for index, name in enumerate(names(30)[:25], start=1):
        world.workloads[index] = workload(name)
        assert deleted(world.settle(later(minutes=20 + index))) == []
    assert world.condition()[2] == (
        "5 Hvpas stay although this policy no longer selects their workloads, since rollout.maxRemovals allows 10 "
        "removals within an hour, and 10 were made; correct the selectors, or set rollout.maxRemovals to 15 to remove "
        "them"
    )
    assert deleted(world.settle(later(days=1))) == []
    assert (world.policies[0].status.awaiting_removal, world.policies[0].status.removal_held) == (5, True)


def test_an_edited_hvpa_counts_as_any_other() -> None:
    world = world_of("kept", others=11)
    world.edit("w000", {"spec": {"mode": "Apply"}})
    select_kept(world)
    assert deleted(world.settle()) == []


def test_a_clock_that_was_ahead_holds_nothing_for_longer() -> None:
    world = world_of("kept", others=20)
    world.replace(policy(spec={"workloads": {"exclude": {"names": names(20)[:10]}}}))
    world.settle(later(days=300))
    world.replace(policy(spec={"workloads": {"exclude": {"names": names(20)}}}))
    assert len(deleted(world.settle())) == 10


def test_a_clock_that_is_set_back_or_that_of_the_next_leader_allows_no_more_removals() -> None:
    world = world_of("kept", others=20)
    world.replace(policy(spec={"workloads": {"exclude": {"names": names(20)[:10]}}}))
    assert len(deleted(world.settle(later(seconds=5)))) == 10
    world.replace(policy(spec={"workloads": {"exclude": {"names": names(20)}}}))
    assert deleted(world.settle()) == []
    assert world.plan().wait == WINDOW + dt.timedelta(seconds=5)
    assert len(deleted(world.settle(later(hours=1, seconds=5)))) == 10


def test_each_policy_has_its_own_bound() -> None:
    teams = [policy(namespace=space) for space in ("a", "b")]
    world = World(teams, [workload(name, space) for space in ("a", "b") for name in (*names(10), "kept")])
    world.settle()
    for space in ("a", "b"):
        world.replace(policy(namespace=space, spec={"workloads": {"names": ["kept"]}}))
    assert sorted(deleted([world.step()])) == sorted(2 * names(10))


@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.sets(st.integers(0, 11), max_size=12), st.integers(0, 50)), min_size=1, max_size=8),
    st.sets(st.integers(0, 7)),
)
def test_whatever_is_selected_when_no_more_than_allowed_are_removed_within_an_hour(
    limit: int, edits: list[tuple[set[int], int]], crashes: set[int]
) -> None:
    """Each edit excludes workloads, some minutes after the last. A removed Hvpa comes back once its workload is
    selected again. Some deletions fail."""
    world = world_of("kept", others=12, rollout={"maxRemovals": limit})
    minute, removals = 0, list[int]()
    for number, (excluded, minutes) in enumerate(edits):
        minute += minutes
        exclude = {"names": [names(12)[index] for index in excluded]}
        world.replace(
            policy(spec={"workloads": {"exclude": exclude}, "rollout": {"maxRemovals": limit}}),
        )
        if number in crashes:  # the plan is made, but nothing of it is written
            world.plan(later(minutes=minute))
        removals += [minute for _ in deleted(world.settle(later(minutes=minute)))]
        held = world.policies[0].status.awaiting_removal
        assert len(world.hvpas) == 13 - len(excluded) + held
        assert held == 0 or world.condition()[1] == "RemovalHeld"
    since: int | None = None
    counts = dict[int, int]()
    for at in removals:  # hours begin with the first removal
        since = at if since is None or at >= since + 60 else since
        counts[since] = counts.get(since, 0) + 1
    assert all(count <= limit for count in counts.values())
