"""The local copy of a kind of object, fed by watches and by the responses to HVPA's own writes; the newer wins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Generic

from hvpa.kube.objects.resources import T
from hvpa.reconcile.ports import Key

ALL_NAMESPACES = ""

OnChange = Callable[[T | None, T | None, bool], None]
"""Called with each change: the object before and after (None: absent), and whether HVPA's own write caused it."""


def version(resource_version: str) -> int | None:
    """A resource version as a number; None if it is not numeric (comparable since Kubernetes 1.35; etcd's always
    were)."""
    try:
        return int(resource_version)
    except ValueError:
        return None


def is_older(resource_version: str, other: str) -> bool:
    """Whether `resource_version` is certainly older than `other`."""
    return resource_version != other and _older(resource_version, other)


def _older(resource_version: str, other: str) -> bool:
    """Whether `resource_version` is certainly not newer than `other`."""
    first, second = version(resource_version), version(other)
    return first is not None and second is not None and first <= second


class Store(Generic[T]):
    """Objects by namespace and name.

    A *scope* is the range of a watch: a namespace, or all namespaces. `_delivered` is the newest resource version
    that the watch of a scope has delivered: an object that is older and not stored was deleted.
    """

    def __init__(self, scopes: Collection[str], on_change: OnChange[T]) -> None:
        self._objects: dict[Key, T] = {}
        self._on_change = on_change
        self._delivered: dict[str, str] = dict.fromkeys(scopes, "")
        self._set_back: set[str] = set()
        """Scopes whose stored objects may belong to a lost state; the next list replaces all of them."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._objects)

    def get(self, key: Key) -> T | None:
        """The object, or None."""
        return self._objects.get(key)

    def all(self) -> list[T]:
        """All objects, as they are now."""
        return list(self._objects.values())

    def note_delivered(self, scope: str, resource_version: str) -> None:
        """Note that the watch of `scope` has delivered everything up to `resource_version`."""
        self._delivered[scope] = resource_version

    def put(self, obj: T) -> bool:
        """Store `obj` from a watch; returns whether it was new."""
        return self._put(obj, own=False)

    def put_listed(self, obj: T, scope: str, resource_version: str) -> bool:
        """Store `obj` from a list of `scope` at `resource_version`; returns whether it was new.

        The list shows the state at its version. A stored object whose version is newer than the listed object's, but
        not newer than the list, belongs to a lost state.
        """
        key = Key(obj.metadata.namespace, obj.metadata.name)
        old = self._objects.get(key)
        before, now = "" if old is None else old.metadata.resource_version, obj.metadata.resource_version
        is_lost = scope in self._set_back or (is_older(now, before) and _older(before, resource_version))
        if old is None or not is_lost:
            return self._put(obj, own=False)
        self._replace(key, old, obj, own=False)
        return True

    def put_own(self, obj: T, quiet: bool) -> bool:
        """Store `obj` from the response to a write; returns whether it was new. `quiet`: the response is as
        expected."""
        meta = obj.metadata
        delivered = self._delivered.get(meta.namespace, self._delivered.get(ALL_NAMESPACES, ""))
        if Key(meta.namespace, meta.name) not in self._objects and _older(meta.resource_version, delivered):
            return False  # deleted since, as the watch has already shown
        return self._put(obj, own=quiet)

    def delete(self, key: Key, resource_version: str = "") -> bool:
        """Remove an object that was deleted at `resource_version`; ignored if a newer object has replaced it."""
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
        """Remove the objects of `scope` that a complete list at `resource_version` does not contain (`listed`).

        Objects newer than the list stay: HVPA created them during the list.
        """
        is_set_back = scope in self._set_back
        for key in self._keys(scope):
            version_here = self._objects[key].metadata.resource_version
            if key not in listed and (is_set_back or _older(version_here, resource_version)):
                self.delete(key)
        self._delivered[scope] = resource_version
        self._set_back.discard(scope)

    def restart(self, scope: str, resource_version: str) -> bool:
        """Begin a list at `resource_version`; returns whether that is older than the versions seen before.

        If it is, the cluster was set back (etcd restored from a backup).
        """
        if not is_older(resource_version, self._delivered[scope]):
            return False
        self.distrust(scope)
        return True

    def distrust(self, scope: str) -> None:
        """Note that the cluster was set back: the next complete list replaces all objects of `scope`, whatever their
        versions.

        It replaces each of them individually, so that an object that still exists is never missing.
        """
        self._set_back.add(scope)
        self._delivered[scope] = ""  # responses to writes count again, although their versions are low

    def clear(self, scope: str) -> None:
        """Remove all objects of `scope`: the resource is not served (any more)."""
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
