"""Which pods the updater resizes in place, and which it evicts instead. Cases of `pods_inplace_restriction_test.go` and
`updater_test.go`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hvpa.api.objects.read_models import VpaStatusRead
from hvpa.simulate.cluster.state import Resize, ResizeState, SimPod
from hvpa.simulate.policy.updater import InPlaceUpdater, UpdaterSettings
from tests.unit.simulate.policy.test_updater import NOW, vpa
from tests.unit.simulate.policy.test_updater import pod as updater_pod


def pod(name: str, cpu: str = "1", resize: ResizeState | None = None, **more: Any) -> SimPod:
    if resize is not None:
        more["resize"] = Resize(updater_pod(name, cpu), {}, 0.0)
        more["resize"].state = resize
    return updater_pod(name, cpu, **more)


def pods(number: int) -> list[SimPod]:
    return [pod(f"pod-{n}") for n in range(number)]


WANTED = vpa(mode="InPlaceOrRecreate")


class Updater:
    def __init__(self, **settings: Any) -> None:
        self._one = InPlaceUpdater(UpdaterSettings(**settings)) if settings else InPlaceUpdater()

    def loop(
        self, seen: list[SimPod], replicas: int = 4, now: float = NOW, refused: frozenset[str] = frozenset()
    ) -> tuple[list[str], list[str]]:
        updates = self._one.loop(seen, WANTED, replicas, now, lambda one: one.name in refused)
        return [one.name for one in updates.resize], [one.name for one in updates.evict]


@pytest.mark.parametrize(
    ("running", "replicas", "tolerance", "expected"),
    [
        (5, 5, 0.8, 4),
        (5, 5, 0.5, 2),
        (5, 5, 0.1, 1),
        (4, 5, 0.1, 0),
        (2, 2, 0.5, 1),
        (1, 1, 0.5, 0),
        (3, 0, 0.5, 0),
    ],
)
def test_as_many_are_resized_as_might_be_evicted(
    running: int, replicas: int, tolerance: float, expected: int
) -> None:
    found = Updater(eviction_tolerance=tolerance).loop(pods(running), replicas)
    assert found == ([f"pod-{n}" for n in range(expected)], [])


def test_in_the_order_of_their_priority() -> None:
    seen = [pod("shrinks", "1000"), pod("grows", "8"), pod("grows-more", "2"), pod("fits", "10")]
    assert Updater(eviction_tolerance=1.0).loop(seen) == (["grows-more", "grows", "shrinks"], [])


def test_without_a_recommendation_nothing_happens() -> None:
    none = msgspec.structs.replace(WANTED, status=VpaStatusRead())
    seen = [pod("stuck", resize="Infeasible"), *pods(3)]
    assert InPlaceUpdater().loop(seen, none, 4, NOW, lambda _: False) == ([], [])


@pytest.mark.parametrize("state", ["Infeasible", "Error"])
def test_what_can_not_be_resized_is_evicted_at_once(state: ResizeState) -> None:
    seen = [pod("stuck", resize=state), *(pod(f"fits-{n}", "10") for n in range(3))]
    assert Updater().loop(seen) == ([], ["stuck"])


def test_a_deferred_one_when_it_has_been_seen_so_for_more_than_five_minutes() -> None:
    seen = [pod("stuck", resize="Deferred"), *(pod(f"fits-{n}", "10") for n in range(3))]
    updater = Updater()
    assert [updater.loop(seen, now=NOW + at)[1] for at in (0.0, 60.0, 300.0, 360.0)] == [
        [],
        [],
        [],
        ["stuck"],
    ]


def test_one_that_was_deferred_long_ago_is_not_waited_for_again() -> None:
    """The updater never forgets when it first saw a pod of this name so."""
    rest = [pod(f"fits-{n}", "10") for n in range(3)]
    updater = Updater()
    assert updater.loop([pod("stuck", resize="Deferred"), *rest]) == ([], [])
    assert updater.loop([pod("stuck", "10"), *rest], now=NOW + 60.0) == ([], [])
    assert updater.loop([pod("stuck", resize="Deferred"), *rest], now=NOW + 3600.0) == ([], ["stuck"])


def test_while_too_many_are_missing_nothing_is_evicted_but_the_time_counts() -> None:
    seen = [pod("stuck", resize="Deferred"), pod("fits", "10")]
    updater = Updater()
    assert updater.loop(seen) == ([], [])
    assert updater.loop(seen, now=NOW + 360.0) == ([], [])
    assert updater.loop([*seen, pod("back", "10")], now=NOW + 361.0) == ([], ["stuck"])


def test_one_that_has_what_it_needs_is_not_evicted_however_long_it_waits() -> None:
    seen = [pod("stuck", "10", resize="Infeasible"), *(pod(f"fits-{n}", "10") for n in range(3))]
    assert Updater().loop(seen) == ([], [])


def test_evictions_come_out_of_what_resizes_leave() -> None:
    """Four of which two may be missing: two are resized, and the one that is stuck stays for now; with one to resize it
    goes."""
    stuck = pod("stuck", "9", resize="Infeasible", started=NOW - 13 * 3600.0)
    assert Updater().loop([stuck, *pods(3)]) == (["pod-0", "pod-1"], [])
    assert Updater().loop([stuck, pod("pod-0"), pod("a", "10"), pod("b", "10")]) == (["pod-0"], ["stuck"])


def test_where_the_api_server_refuses_a_resize_the_pod_is_evicted_after_the_others_were_resized() -> None:
    assert Updater().loop(pods(4), refused=frozenset({"pod-0"})) == (["pod-1", "pod-2"], [])
    assert Updater(eviction_tolerance=0.75).loop(pods(4), refused=frozenset({"pod-0", "pod-3"})) == (
        ["pod-1", "pod-2"],
        ["pod-0"],
    )
