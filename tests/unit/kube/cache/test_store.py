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
        versions = [pod.metadata.resource_version if pod is not None else None for pod in (old, new)]
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
    watched.store.note_delivered(ALL_NAMESPACES, "8")
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
    watched.store.put_own(pod(119, "ghost"), quiet=False)
    watched.store.note_delivered(ALL_NAMESPACES, "120")
    assert watched.store.restart(ALL_NAMESPACES, "50")
    assert not watched.store.restart(ALL_NAMESPACES, "51"), "the first list failed after a page: it is known"
    assert watched.store.get(KEY) is not None, "what stays is never missing"
    assert watched.store.put_own(pod(52, "new"), quiet=False), "its version was too old before"
    assert watched.store.put_listed(pod(40), ALL_NAMESPACES, "51")
    watched.store.finish_list(ALL_NAMESPACES, {KEY, Key("ns", "new")}, "51")
    assert watched.seen[-2:] == [("100", "40", False), ("119", None, False)]
    assert not watched.store.put(pod(39)), "from here on all is as before"
    assert not watched.store.restart(ALL_NAMESPACES, "51")


def test_a_list_counts_more_than_versions_that_are_no_newer_than_it() -> None:
    """As after a restore of etcd with `--bump-revision`: the server's version is higher, the objects' are as before."""
    watched = Watched()
    watched.store.put(pod(100))
    watched.store.put_own(pod(10_007, "written meanwhile"), quiet=False)
    assert not watched.store.restart(ALL_NAMESPACES, "10000")
    assert watched.store.put_listed(pod(40), ALL_NAMESPACES, "10000")
    assert not watched.store.put_listed(pod(41, "written meanwhile"), ALL_NAMESPACES, "10000")
    assert not watched.store.put_listed(pod(40), ALL_NAMESPACES, "10000")


def test_a_list_of_a_cluster_that_was_set_back_replaces_objects_of_the_same_version() -> None:
    watched = Watched()
    watched.store.put(pod(45))
    watched.store.distrust(ALL_NAMESPACES)
    assert watched.store.put_listed(pod(45), ALL_NAMESPACES, "50")
    watched.store.finish_list(ALL_NAMESPACES, {KEY}, "50")
    assert not watched.store.put_listed(pod(45), ALL_NAMESPACES, "50")
