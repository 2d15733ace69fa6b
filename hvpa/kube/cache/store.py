"""The local copy of one kind of object: fed by watches and by the responses to our own writes, whichever is newer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Generic

from hvpa.kube.objects.resources import T
from hvpa.reconcile.ports import Key

ALL_NAMESPACES = ""

OnChange = Callable[[T | None, T | None, bool], None]
"""Gets each change: the object before and after (None: absent), and whether it answers a write of our own."""


def version(resource_version: str) -> int | None:
    """A resource version as a number; None when it isn't one (comparable since Kubernetes 1.35; etcd's always were)."""
    try:
        return int(resource_version)
    except ValueError:
        return None


def below(one: str, other: str) -> bool:
    """Whether `one` is surely older than `other`."""
    return one != other and _older(one, other)


def _older(one: str, other: str) -> bool:
    """Whether `one` is surely not newer than `other`."""
    first, second = version(one), version(other)
    return first is not None and second is not None and first <= second


class Store(Generic[T]):
    """Objects by namespace and name.

    A *scope* is what one watch covers: a namespace, or all of them. `seen` is the newest resource version that a
    scope's watch has delivered: what is older than that and not here was deleted.
    """

    def __init__(self, scopes: Collection[str], on_change: OnChange[T]) -> None:
        self._objects: dict[Key, T] = {}
        self._on_change = on_change
        self._seen: dict[str, str] = dict.fromkeys(scopes, "")
        self._set_back: set[str] = set()
        """Scopes of which what is here may be of a state that was lost: the next list replaces all of it."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._objects)

    def get(self, key: Key) -> T | None:
        """The object, or None."""
        return self._objects.get(key)

    def seen(self, scope: str, resource_version: str) -> None:
        """The watch of `scope` has delivered everything up to `resource_version`."""
        self._seen[scope] = resource_version

    def put(self, obj: T) -> bool:
        """A watch delivered `obj`; whether it was news."""
        return self._put(obj, own=False)

    def put_listed(self, obj: T, scope: str, resource_version: str) -> bool:
        """A list of `scope` at `resource_version` has `obj`; whether it was news. The list says what there was at its
        version: an object here that claims to be as old and newer than that is of a state that was lost."""
        key = Key(obj.metadata.namespace, obj.metadata.name)
        old = self._objects.get(key)
        before, now = "" if old is None else old.metadata.resource_version, obj.metadata.resource_version
        is_lost = scope in self._set_back or (below(now, before) and _older(before, resource_version))
        if old is None or not is_lost:
            return self._put(obj, own=False)
        self._replace(key, old, obj, own=False)
        return True

    def put_own(self, obj: T, quiet: bool) -> bool:
        """The response to a write of ours is `obj`; whether it was news. `quiet`: it is what we wanted."""
        meta = obj.metadata
        seen = self._seen.get(meta.namespace, self._seen.get(ALL_NAMESPACES, ""))
        if Key(meta.namespace, meta.name) not in self._objects and _older(meta.resource_version, seen):
            return False  # deleted since, and the watch has shown that already
        return self._put(obj, own=quiet)

    def delete(self, key: Key, resource_version: str = "") -> bool:
        """The object was deleted, at `resource_version`; ignored when a newer one has taken its place."""
        old = self._objects.get(key)
        if old is None:
            return False
        stored = old.metadata.resource_version
        if resource_version and stored != resource_version and _older(resource_version, stored):
            return False
        del self._objects[key]
        self._on_change(old, None, False)
        return True

    def finish_list(self, scope: str, listed: Collection[Key], resource_version: str) -> None:
        """A complete list of `scope` at `resource_version` was put; what is not among `listed` is gone, unless it is
        newer than the list (created by us while it was made)."""
        is_set_back = scope in self._set_back
        for key in self._keys(scope):
            version_here = self._objects[key].metadata.resource_version
            if key not in listed and (is_set_back or _older(version_here, resource_version)):
                self.delete(key)
        self._seen[scope] = resource_version
        self._set_back.discard(scope)

    def restart(self, scope: str, resource_version: str) -> bool:
        """A list begins, at `resource_version`. True when that is older than what was seen before: the cluster was set
        back (etcd restored from a backup)."""
        if not below(resource_version, self._seen[scope]):
            return False
        self.distrust(scope)
        return True

    def distrust(self, scope: str) -> None:
        """The cluster was set back: the next list that is complete replaces all that is here of `scope`, whatever its
        versions; object by object, so that what stays is never missing meanwhile."""
        self._set_back.add(scope)
        self._seen[scope] = ""  # so that responses to writes count, whose versions are low again

    def clear(self, scope: str) -> None:
        """Nothing of `scope` is there: the resource is not served (any more)."""
        for key in self._keys(scope):
            self.delete(key)

    def _keys(self, scope: str) -> list[Key]:
        return [key for key in self._objects if scope in (ALL_NAMESPACES, key.namespace)]

    def _put(self, obj: T, own: bool) -> bool:
        meta = obj.metadata
        key = Key(meta.namespace, meta.name)
        old = self._objects.get(key)
        if old is not None and _older(meta.resource_version, old.metadata.resource_version):
            return False
        self._replace(key, old, obj, own)
        return True

    def _replace(self, key: Key, old: T | None, obj: T, own: bool) -> None:
        self._objects[key] = obj
        self._on_change(old, obj, own)
