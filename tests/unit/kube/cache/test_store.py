"""The store: which of two versions of an object counts."""

from __future__ import annotations

import pytest

from hvpa.api.objects.read_models import Meta, Pod
from hvpa.kube.cache.store import ALL_NAMESPACES, Store
from hvpa.reconcile.ports import Key

KEY = Key("ns", "a")


def pod(version: int | str, name: str = "a", namespace: str = "ns") -> Pod:
    return Pod(metadata=Meta(name=name, namespace=namespace, resource_version=str(version)))


class Watched:
    """A store and what it reported."""

    def __init__(self, *scopes: str) -> None:
        self.seen: list[tuple[str | None, str | None, bool]] = []
        self.store: Store[Pod] = Store(scopes or (ALL_NAMESPACES,), self._note)

    def _note(self, old: Pod | None, new: Pod | None, own: bool) -> None:
        versions = [one.metadata.resource_version if one is not None else None for one in (old, new)]
        self.seen.append((versions[0], versions[1], own))


@pytest.mark.parametrize(
    ("version", "is_news"),
    [
        pytest.param("10", True, id="a newer version counts"),
        pytest.param("9", False, id="an equal one does not"),
        pytest.param("8", False, id="nor does an older one"),
        pytest.param("a", True, id="versions that are no numbers are taken as they come"),
    ],
)
def test_of_two_versions(version: str, is_news: bool) -> None:
    watched = Watched()
    assert watched.store.put(pod(9))
    assert watched.store.put(pod(version)) == is_news
    assert watched.seen == [(None, "9", False), ("9", version, False)][: 1 + is_news]


def test_the_echo_of_our_own_write_is_no_news() -> None:
    watched = Watched()
    watched.store.put(pod(5))
    assert watched.store.put_own(pod(7), quiet=True)
    assert not watched.store.put(pod(7))
    assert not watched.store.put(pod(6))
    assert watched.seen[-1] == ("5", "7", True)


def test_an_answer_that_comes_after_the_deletion_brings_nothing_back() -> None:
    watched = Watched()
    watched.store.put(pod(5))
    watched.store.delete(KEY, "8")
    watched.store.seen(ALL_NAMESPACES, "8")
    assert not watched.store.put_own(pod(7), quiet=False)
    assert watched.store.get(KEY) is None
    assert watched.store.put_own(pod(9), quiet=False)


def test_a_late_deletion_does_not_touch_the_object_that_came_after() -> None:
    watched = Watched()
    watched.store.put_own(pod(9), quiet=False)
    assert not watched.store.delete(KEY, "8")
    assert watched.store.get(KEY) is not None


def test_what_a_new_list_lacks_is_deleted_but_not_what_is_newer_than_it() -> None:
    watched = Watched()
    watched.store.put(pod(1, "gone"))
    watched.store.put(pod(2, "stays"))
    watched.store.put_own(pod(11, "ours"), quiet=False)
    watched.store.restart(ALL_NAMESPACES, "10")
    watched.store.finish_list(ALL_NAMESPACES, {Key("ns", "stays")}, "10")
    assert sorted(key.name for key in watched.store) == ["ours", "stays"]
    assert watched.seen[-1] == ("1", None, False)


def test_a_list_of_one_namespace_leaves_the_others_alone() -> None:
    watched = Watched("one", "two")
    watched.store.put(pod(1, "a", "one"))
    watched.store.put(pod(2, "a", "two"))
    watched.store.finish_list("one", set(), "5")
    assert list(watched.store) == [Key("two", "a")]


def test_a_cluster_that_was_set_back_is_believed() -> None:
    watched = Watched()
    watched.store.put(pod(100))
    watched.store.seen(ALL_NAMESPACES, "120")
    watched.store.restart(ALL_NAMESPACES, "50")
    assert watched.store.put(pod(40))
    watched.store.finish_list(ALL_NAMESPACES, {KEY}, "50")
    kept = watched.store.get(KEY)
    assert kept is not None
    assert kept.metadata.resource_version == "40"
