"""Who is alive, as seen from the changes of Leases."""

from __future__ import annotations

from hvpa.kube.leases.assignment import LABEL_SHARDS, Members, Names
from hvpa.kube.leases.lease import Lease, LeaseMeta, LeaseSpec

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
    assert (
        watch.members.next_end() == 11
    )  # it counts from the answer, as it may have been renewed just before
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


def test_an_empty_lease_is_nobody_s() -> None:
    watch = Watch()
    watch.look(0, member("", 1))
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


def test_whoever_was_never_seen_is_not_dead() -> None:
    watch = Watch()
    watch.look(0)
    assert not watch.members.is_dead("x_a")


def test_leases_of_the_long_dead_are_found() -> None:
    watch = Watch()
    watch.look(0, member("x_a", 1), member("x_b", 1, duration=None))
    watch.look(41, member("x_a", 1), member("x_b", 1, duration=None))
    assert [one.spec.holder_identity for one in watch.members.forgotten()] == ["x_a"]
    watch.look(61, member("x_b", 1, duration=None))
    assert [one.spec.holder_identity for one in watch.members.forgotten()] == ["x_b"]
