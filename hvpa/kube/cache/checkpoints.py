"""The local copy of VerticalPodAutoscalerCheckpoints, by VPA."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hvpa.api.objects.checkpoints import VpaCheckpoint
from hvpa.kube.cache.indexes import Index
from hvpa.kube.cache.store import Store
from hvpa.reconcile.ports import Key


class Checkpoints:
    """Checkpoints, fed by the watch of `store`. A change enqueues no Hvpa: the recommender writes them every period."""

    def __init__(self, scopes: Collection[str]) -> None:
        self.store: Store[VpaCheckpoint] = Store(scopes, self._changed)
        self._of_vpa: Index[Key, str] = Index()

    def of(self, vpa: Key) -> tuple[VpaCheckpoint, ...]:
        """The checkpoints of a VPA, per container; empty also if they can't be read."""
        checkpoints = [self.store.get(Key(vpa.namespace, name)) for name in self._of_vpa.get(vpa)]
        return tuple([checkpoint for checkpoint in checkpoints if checkpoint is not None])

    def __iter__(self) -> Iterator[VpaCheckpoint]:
        return iter([checkpoint for key in self.store if (checkpoint := self.store.get(key)) is not None])

    def _changed(self, old: VpaCheckpoint | None, new: VpaCheckpoint | None, own: bool) -> None:
        before, after = _vpa_of(old), _vpa_of(new)
        if before == after:
            return
        if old is not None and before is not None:
            self._of_vpa.remove(before, old.metadata.name)
        if new is not None and after is not None:
            self._of_vpa.add(after, new.metadata.name)


def _vpa_of(checkpoint: VpaCheckpoint | None) -> Key | None:
    return None if checkpoint is None else Key(checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name)
