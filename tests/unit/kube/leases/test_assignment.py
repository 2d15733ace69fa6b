"""Which shard an Hvpa belongs to, who wins a shard, and what a member does about it; and who is alive, as seen from the
changes of Leases."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.kube.leases.assignment import LABEL_SHARDS, Members, Names, Plan, plan, shard_of, winner
from hvpa.kube.leases.lease_api import Lease, LeaseMeta, LeaseSpec
from hvpa.reconcile.ports import Key

identities = st.text(min_size=1, max_size=12)
members = st.frozensets(identities, max_size=8)
numbers = st.integers(1, 256)


def test_an_hvpa_s_shard_never_changes() -> None:
    """Written down: replicas of different releases must agree."""
    shards = [shard_of(Key("shoot--dev", name), 16) for name in ("etcd-main", "kube-apiserver", "prometheus")]
    assert shards == [1, 14, 0]
    assert winner(3, ["a", "b", "c"]) == "b"


def test_hvpas_are_spread_evenly() -> None:
    counts = Counter(shard_of(Key(f"ns-{i % 100}", f"app-{i}"), 16) for i in range(16_000))
    assert counts.keys() == set(range(16))
    assert 850 < min(counts.values()) <= max(counts.values()) < 1150  # within 5 standard deviations


@given(shard=numbers, known=st.lists(identities, unique=True, min_size=1), order=st.randoms())
@settings(deadline=None, derandomize=True)
def test_a_shard_has_one_winner_in_whatever_order_the_members_are_known(
    shard: int, known: list[str], order: st.DataObject
) -> None:
    identity = winner(shard, known)
    assert identity in known
    order.shuffle(known)  # type: ignore[attr-defined]
    assert winner(shard, known) == identity
    assert winner(shard, []) is None


@given(shards=numbers, known=members, other=identities)
@settings(deadline=None, derandomize=True)
def test_who_joins_or_leaves_moves_only_the_shards_that_it_wins(
    shards: int, known: frozenset[str], other: str
) -> None:
    without, with_it = known - {other}, known | {other}
    for shard in range(shards):
        before, after = winner(shard, without), winner(shard, with_it)
        assert after in (before, other)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_members_have_about_equal_shares(count: int) -> None:
    known = [f"hvpa-{i}_uid{i}" for i in range(count)]
    shares = Counter(winner(shard, known) for shard in range(6000))
    expected = 6000 / count
    assert all(abs(shares[identity] - expected) < 0.15 * expected for identity in known)


@given(
    shards=numbers,
    known=members.filter(bool),
    strangers=members,
    data=st.data(),
)
@settings(deadline=None, derandomize=True)
def test_members_with_the_same_view_divide_all_shards_and_take_nothing_from_the_living(
    shards: int, known: frozenset[str], strangers: frozenset[str], data: st.DataObject
) -> None:
    holder = st.sampled_from([None, *sorted(known | strangers)])
    holders = {shard: data.draw(holder) for shard in range(min(shards, 12))}
    taken: Counter[int] = Counter()
    for me in known:
        held = frozenset(shard for shard, identity in holders.items() if identity == me)
        step = plan(me, known, holders, held)
        taken.update(step.take)
        assert all(holders[shard] is None for shard in step.take)
        assert all(holders[shard] == me for shard in step.leave)
        assert step.lost == frozenset()
        for shard in holders:  # what stays, and what changes hands, goes to the winner
            keeps = shard in held and shard not in step.leave
            assert (keeps or shard in step.take) == (
                winner(shard, known) == me and holders[shard] in (None, me)
            )
    assert all(taken[shard] == (identity is None) for shard, identity in holders.items())


def test_a_lease_that_names_us_without_our_knowing_is_taken_or_given_up() -> None:
    """The answer of our write was lost."""
    shards = {shard: "a" for shard in range(20)}
    step = plan("a", {"a", "b"}, shards, frozenset())
    won = {shard for shard in shards if winner(shard, ["a", "b"]) == "a"}
    assert 0 < len(won) < 20
    assert step == Plan(take=frozenset(won), leave=frozenset(shards.keys() - won))


@pytest.mark.parametrize("holder", ["b", None])
def test_what_another_client_has_taken_from_us_is_lost(holder: str | None) -> None:
    step = plan("a", {"a"}, {0: holder, 1: "a"}, frozenset({0, 1}))
    assert step.lost == {0}
    assert step.leave == frozenset()
    assert step.take == (frozenset({0}) if holder is None else frozenset())


def test_who_is_not_listed_yet_counts_itself() -> None:
    assert plan("a", frozenset(), {0: None}, frozenset()).take == {0}


def test_names() -> None:
    names = Names("my.hvpa", 4)
    member = names.member("pod-1_0f3d")
    assert (member, names.shard(3), names.group) == (
        "my.hvpa-member-0f3d",
        "my.hvpa-shard-3-of-4",
        "shards-4",
    )
    assert names.is_member(member)
    assert not names.is_shard(member)
    assert names.is_shard("my.hvpa-shard-11-of-16")
    assert not names.is_shard("myxhvpa-shard-1-of-4")
    assert not names.is_member(names.shard(3))
    assert Names("my.hvpa", 8).shard(3) != names.shard(3)
    assert names.labels[names.selector.partition("=")[0]] == "my.hvpa"


# --- members ---
NAMES = Names("hvpa", 4)


def member(identity: str, version: int, shards: int = 4, duration: int | None = 10) -> Lease:
    labels = {LABEL_SHARDS: str(shards)}
    meta = LeaseMeta(name=NAMES.member(identity), resource_version=str(version), labels=labels)
    return Lease(meta, LeaseSpec(identity, duration))


def shard(number: int, holder: str) -> Lease:
    return Lease(LeaseMeta(name=NAMES.shard(number), resource_version="1"), LeaseSpec(holder))


class Watch:
    def __init__(self) -> None:
        self.members = Members(NAMES, 15.0)

    def look(self, at: float, *leases: Lease) -> None:
        """A list that takes a second."""
        self.members.look(leases, at, at + 1.0)


def test_a_member_lives_for_as_long_as_its_lease_changes() -> None:
    watch = Watch()
    watch.look(0, member("x_a", 1), member("x_b", 1))
    watch.look(10, member("x_a", 1), member("x_b", 2))
    assert watch.members.live() == {"x_a", "x_b"}
    # It counts from the response, as it may have been renewed just before.
    assert watch.members.next_end() == 11
    assert not watch.members.is_dead("x_a")
    watch.look(11, member("x_a", 1), member("x_b", 2))
    assert watch.members.live() == {"x_b"}
    assert watch.members.is_dead("x_a")
    assert not watch.members.is_dead("x_b")
    assert watch.members.next_end() == 21


def test_members_of_another_number_of_shards_are_none_of_ours() -> None:
    watch = Watch()
    watch.look(0, member("x_a", 1, shards=8), member("x_b", 1))
    assert watch.members.live() == {"x_b"}
    assert not watch.members.is_dead("x_a")


def test_an_empty_lease_has_no_holder_and_whoever_was_never_seen_is_not_dead() -> None:
    watch = Watch()
    watch.look(0, member("", 1))
    assert not watch.members.is_dead("x_a")
    assert watch.members.live() == frozenset()
    assert watch.members.next_end() is None


def test_a_holder_without_lease_lives_for_one_duration() -> None:
    watch = Watch()
    watch.look(0, shard(0, "x_a"))
    assert not watch.members.is_dead("x_a")
    assert watch.members.next_end() == 16
    watch.look(15.9, shard(0, "x_a"))
    assert not watch.members.is_dead("x_a")
    watch.look(16, shard(0, "x_a"))
    assert watch.members.is_dead("x_a")


def test_a_holder_whose_lease_comes_back_lives_again() -> None:
    watch = Watch()
    watch.look(0, shard(0, "x_a"))
    watch.look(10, shard(0, "x_a"), member("x_a", 5))
    watch.look(18, shard(0, "x_a"))
    watch.look(20, shard(0, "x_a"))
    assert not watch.members.is_dead("x_a")


def test_leases_of_the_long_dead_are_found() -> None:
    watch = Watch()
    watch.look(0, member("x_a", 1), member("x_b", 1, duration=None))
    watch.look(41, member("x_a", 1), member("x_b", 1, duration=None))
    assert [lease.spec.holder_identity for lease in watch.members.forgotten()] == ["x_a"]
    watch.look(61, member("x_b", 1, duration=None))
    assert [lease.spec.holder_identity for lease in watch.members.forgotten()] == ["x_b"]
