"""What changed lately, for one who takes over."""

from __future__ import annotations

from hvpa.kube.leases.recent import Recent
from hvpa.reconcile.ports import Key


class World:
    def __init__(self, most: int = 100) -> None:
        self.now = 0.0
        self.recent = Recent(30.0, lambda: self.now, most)

    def note(self, *names: str) -> None:
        for name in names:
            self.recent.note(Key("ns", name))

    @property
    def names(self) -> list[str]:
        return [key.name for key in self.recent.latest()]


def test_the_latest_comes_last_and_once() -> None:
    world = World()
    world.note("a", "b", "a")
    assert world.names == ["b", "a"]


def test_what_is_older_is_forgotten() -> None:
    world = World()
    world.note("a", "b")
    world.now = 20.0
    world.note("a")
    world.now = 31.0
    assert world.names == ["a"]
    world.recent.clear()
    assert world.names == []


def test_no_more_than_so_many_are_remembered() -> None:
    world = World(most=3)
    world.note("a", "b", "c", "b", "d")
    assert world.names == ["c", "b", "d"]
