"""The local copy of the cluster: all stores and indexes, an Hvpa's own objects, and which Hvpas a change is about."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any, Final, TypeVar

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.kinds import kind_key
from hvpa.api.objects.read_models import Hpa, HvpaSizes, Pod, Selector, Vpa, Workload
from hvpa.core.model import Objects, OtherHvpa, Settings
from hvpa.core.recommenders.ownership import O
from hvpa.core.recommenders.stale import silences
from hvpa.core.values.memo import remembered
from hvpa.core.workload.selector import has_too_many_terms
from hvpa.kube.cache import changes
from hvpa.kube.cache.checkpoints import Checkpoints
from hvpa.kube.cache.custom_targets import CustomTarget, CustomTargets, custom_target
from hvpa.kube.cache.indexes import Index, PodIndex, SelectorIndex
from hvpa.kube.cache.store import Store, version
from hvpa.kube.cache.targeting import (
    HVPA_KIND,
    Place,
    RefToken,
    Target,
    Targeting,
    place_of,
    reference_of,
    target_in,
    tokens_of,
)
from hvpa.kube.objects.resources import (
    CHECKPOINTS,
    HPAS,
    HVPA_SIZES,
    HVPAS,
    PODS,
    VPAS,
    WORKLOADS,
    ObjectLike,
    Resource,
)
from hvpa.kube.objects.stored_hvpa import NO_LINKS, Links, StoredHvpa
from hvpa.kube.objects.workloads import with_newest_pod
from hvpa.reconcile.ports import Key

_VPA_PERIOD: Final = Settings().vpa_period
_without_resizes: Final[Callable[[HvpaSpec], HvpaSpec]] = remembered(HvpaSpec.without_resizes)


class LocalCluster:
    """Holds the stores. `enqueue` gets the key of each Hvpa that has to be looked at again; `enqueue_later` that of
    one whose workload we have just changed ourselves: there is time until the rollout begins, which wakes it anyway."""

    def __init__(
        self,
        scopes: Collection[str],
        enqueue: Callable[[Key], None],
        enqueue_later: Callable[[Key], None] | None = None,
        vpa_period: dt.timedelta = _VPA_PERIOD,
    ) -> None:
        """`vpa_period`: how often the VPA's recommender writes."""
        self._scopes = scopes
        self._vpa_period = vpa_period
        self._enqueue = enqueue
        self._enqueue_later = enqueue_later or enqueue
        self.hvpas: Store[StoredHvpa] = Store(scopes, self._hvpa_changed)
        self.workloads: dict[str, Store[Workload]] = {
            kind: Store(scopes, self._workload_changed) for kind in WORKLOADS
        }
        self.custom = CustomTargets()
        self._unlisted: dict[str, str] = {}
        self.on_named: Callable[[Target], None] = lambda target: None
        """Called with each new target."""
        self.hpas: Store[Hpa] = Store(scopes, self._hpa_changed)
        self.vpas: Store[Vpa] = Store(scopes, self._vpa_changed)
        self.pods: Store[Pod] = Store(scopes, self._pod_changed)
        self.creation_sizes: Store[HvpaSizes] = Store(scopes, self._sizes_changed)
        self.checkpoints = Checkpoints(scopes)
        self._silent: dict[str, dt.datetime] = {}
        self._stores: dict[str, Store[Any]] = {
            HVPAS.kind: self.hvpas,
            HPAS.kind: self.hpas,
            VPAS.kind: self.vpas,
            PODS.kind: self.pods,
            HVPA_SIZES.kind: self.creation_sizes,
            CHECKPOINTS.kind: self.checkpoints.store,
        }
        self._resizes_pods = True
        self._served = {VPAS.kind: True, HVPA_SIZES.kind: False, CHECKPOINTS.kind: False}
        self._sizes_of: dict[Key, tuple[tuple[str, str], ...]] = {}
        """By Hvpa, be it there or not: the sizes of new pods that were written for it."""
        self._targeting = Targeting()
        self._naming: dict[str, Index[Key, str]] = {HPAS.kind: Index(), VPAS.kind: Index()}
        """By kind and key of an HPA or VPA: the Hvpas that name it."""
        self._refs: dict[str, Index[RefToken, str]] = {HPAS.kind: Index(), VPAS.kind: Index()}
        """By kind and what it is for, or who owns it: the HPAs or VPAs."""
        self._pod_index = PodIndex()
        self._selectors: SelectorIndex[Target] = SelectorIndex()
        self._status_writes: dict[Key, bool] = {}
        """Hvpas whose status is being written by us, and whether the watch has brought another status meanwhile."""
        self._pods: dict[Target, tuple[Pod, ...]] = {}
        """The pods of targets that were asked for: the same tuple for as long as they are the same pods."""

    def store(self, resource: Resource[Any]) -> Store[Any]:
        """The store of a watched resource."""
        known = self._stores.get(resource.kind)
        return self._workload_store(resource.kind) if known is None else known

    def _workload_store(self, kind: str) -> Store[Workload]:
        """The store of a kind of workload; that of a custom one is made when the first workload was read."""
        if kind not in self.workloads:
            self.workloads[kind] = Store(self._scopes, self._workload_changed)
        return self.workloads[kind]

    def set_served(self, resource: Resource[Any], served: bool) -> None:
        """A resource that a cluster need not serve is, or is not, known to it; a change concerns every Hvpa."""
        if served != self._served[resource.kind]:
            self._served[resource.kind] = served
            for key in self.hvpas:
                self._enqueue(key)

    def set_resizes_pods(self, can: bool) -> None:
        """Whether the API server can resize pods; a change concerns every Hvpa."""
        if can != self._resizes_pods:
            self._resizes_pods = can
            for key in self.hvpas:
                self._enqueue(key)

    def note_silences(self, now: dt.datetime) -> None:
        """Look which of the VPA's recommenders are silent at `now`; a change concerns every Hvpa."""
        vpas = [vpa for key in self.vpas if (vpa := self.vpas.get(key)) is not None]
        found = silences(vpas, self.checkpoints, now, self._vpa_period)
        if found != self._silent:
            self._silent = found
            for key in self.hvpas:
                self._enqueue(key)

    def set_unlisted(self, kind: str, why: str | None) -> None:
        """Why workloads of a kind are not listed, NOT_YET while the list is under way; None: they are listed."""
        before = self._unlisted.pop(kind, None)
        if why is not None:
            self._unlisted[kind] = why
        if before == why:
            return
        for key in self.hvpas:
            stored = self.hvpas.get(key)
            if stored is not None and stored.links.target_ref.kind == kind:
                self._enqueue(key)

    def custom_workload(self, target: Target) -> Workload | None:
        """What was last read of a target of a custom kind."""
        return self._workload(target)

    def set_custom(self, one: CustomTarget, found: Workload | None, unreadable: str | None = None) -> None:
        """What was read of a target of a custom kind: None for one that does not exist, or that can't be read."""
        if one not in self.custom:
            return  # no Hvpa names it any more
        if found is not None:
            self._workload_store(one.target.kind).put(found)
        elif unreadable is None:
            self._forget(one.target)
        if self.custom.set_unreadable(one, unreadable):
            self._wake_of(one.target)

    def _forget(self, target: Target) -> None:
        """A target of a custom kind does not exist, or no Hvpa names it any more."""
        if (store := self.workloads.get(target.kind)) is not None:
            store.delete(Key(target.namespace, target.name))

    def put_scaled(self, workload: Workload) -> None:
        """Hold a workload of a custom kind as it is now, whether or not an Hvpa names it."""
        kind = kind_key(workload.api_version, workload.kind)
        meta = workload.metadata
        target = Target(meta.namespace, kind, meta.name)
        named = CustomTarget(target, workload.api_version, workload.kind)
        if named in self.custom:
            self.set_custom(named, workload)
        else:
            self._workload_store(kind).put(workload)

    def begin_status_write(self, key: Key) -> None:
        """A write of ours to the Hvpa's status begins. What the watch brings of the status until it ends is most likely
        that write."""
        self._status_writes[key] = False

    def end_status_write(self, key: Key, response: StoredHvpa | None) -> None:
        """The write has ended; `response` is the Hvpa as it left it, None where it failed. The Hvpa is looked at
        again if the status that the watch brought meanwhile is another one."""
        stored = self.hvpas.get(key)
        if not self._status_writes.pop(key, False) or stored is None:
            return
        if response is None or stored.status_hash != response.status_hash:
            self._enqueue(key)

    # --- reading -----------------------------------------------------------------------------------------------------
    def objects(self, key: Key) -> Objects | None:
        """All that may have to do with the Hvpa of `key`; see `hvpa.core.model.Objects`."""
        stored = self.hvpas.get(key)
        if stored is None:
            return None
        target = target_in(key.namespace, stored.links)
        workload = self._workload(target)
        pods = self._pods_of(target, workload.spec.selector) if workload is not None else ()
        unlisted = self._unlisted.get(target.kind)
        if (custom := custom_target(key.namespace, stored.links)) is not None and custom in self.custom:
            unlisted = self.custom.unreadable(custom)
            workload = None if workload is None else with_newest_pod(workload, pods)
        others = self._targeting.beside(target, key.name) if target.name else ()
        vpas = tuple(self._related(VPAS, stored, target))
        keys = [Key(one.metadata.namespace, one.metadata.name) for one in vpas]
        return Objects(
            hvpa=self._read(stored),
            workload=workload,
            others=others,
            hpas=tuple(self._related(HPAS, stored, target, others)),
            vpas=vpas,
            checkpoints=tuple([one for vpa in keys for one in self.checkpoints.of(vpa)]),
            pods=pods,
            vpa_served=self._served[VPAS.kind],
            creation_sizes=self._sizes_of.get(key, ()) if self._served[HVPA_SIZES.kind] else None,
            unlisted=unlisted,
            silent_recommenders=self._silent,
        )

    def _read(self, stored: StoredHvpa) -> HvpaObject:
        """The Hvpa, with the update strategy that is the default of this API server."""
        found = stored.read()
        if self._resizes_pods or found.spec is None or not found.spec.joint:
            return found
        return replace(found, spec=_without_resizes(found.spec))

    def owners_of_sizes(self, key: Key) -> list[str]:
        """The owners of pods whose sizes were written for the Hvpa of `key`."""
        return [owner for owner, _ in self._sizes_of.get(key, ())]

    def known(self) -> Iterable[Key]:
        """All Hvpas, and those that are gone and have left sizes of new pods behind."""
        return dict.fromkeys((*self.hvpas, *self._sizes_of))

    def changed_last(self, keys: Iterable[Key]) -> list[Key]:
        """Hvpas in the order in which they, their workloads or their recommenders changed, the last one first."""
        return sorted(keys, key=self._newest, reverse=True)

    def _newest(self, key: Key) -> int:
        """The newest resource version of what an Hvpa depends on (but its pods); 0 where versions are no numbers."""
        stored = self.hvpas.get(key)
        if stored is None:
            return 0
        target = target_in(key.namespace, stored.links)
        found: list[ObjectLike | None] = [stored, self._workload(target)]
        found += self._related(HPAS, stored, target)
        found += self._related(VPAS, stored, target)
        return max(version(one.metadata.resource_version) or 0 for one in found if one is not None)

    def _workload(self, target: Target) -> Workload | None:
        store = self.workloads.get(target.kind)
        return store.get(Key(target.namespace, target.name)) if store is not None else None

    def _pods_of(self, target: Target, selector: Selector) -> tuple[Pod, ...]:
        pods = self._pods.get(target)
        if has_too_many_terms(selector):
            return ()  # the target is reported as unsupported
        if pods is None:
            names = self._pod_index.select(target.namespace, selector)
            found = [self.pods.get(Key(target.namespace, name)) for name in names]
            pods = self._pods[target] = tuple([pod for pod in found if pod is not None])
        return pods

    def _related(
        self, resource: Resource[O], hvpa: StoredHvpa, target: Target, others: Collection[OtherHvpa] = ()
    ) -> list[O]:
        """HPAs or VPAs that are owned, targeting (the workload, or an Hvpa with this target), named, or in the way of a
        name that we would give."""
        namespace, name, uid = target.namespace, hvpa.metadata.name, hvpa.metadata.uid
        tokens: list[RefToken] = [(namespace, uid), (namespace, HVPA_KIND, name)]
        tokens += [(namespace, HVPA_KIND, other.name) for other in others]
        refs, store = self._refs[resource.kind], self.store(resource)
        names = [one for token in (*tokens, target) for one in refs.get(token)]
        names += [name, f"{name}-{uid[:8]}", hvpa.links.recommenders()[resource.kind] or name]
        found = [store.get(Key(namespace, one)) for one in dict.fromkeys(names)]
        return [obj for obj in found if obj is not None]

    # --- changes -----------------------------------------------------------------------------------------------------
    def _wake(
        self, namespace: str, names: Iterable[str], enqueue: Callable[[Key], None] | None = None
    ) -> None:
        for name in names:
            key = Key(namespace, name)
            if self.hvpas.get(key) is not None:
                (enqueue or self._enqueue)(key)

    def _wake_of(self, target: Target) -> None:
        self._wake(target.namespace, self._targeting.concerned(target))

    def _hvpa_changed(self, old: StoredHvpa | None, new: StoredHvpa | None, own: bool) -> None:
        if new is not None:
            new.succeed(old)
        meta = _either(old, new).metadata
        key = Key(meta.namespace, meta.name)
        if old is not None and new is not None and not changes.hvpa_spec_changed(old, new):
            if not own and old.status_hash != new.status_hash:
                self._status_changed(key)
            return
        before = old.links if old is not None else NO_LINKS
        after = new.links if new is not None else NO_LINKS
        self._rename(key, before, after)
        left, joined = place_of(old), place_of(new)
        self._recustom(
            key,
            None if left is None else custom_target(key.namespace, before),
            None if joined is None else custom_target(key.namespace, after),
        )
        if left != joined:
            self._retarget(key, left, joined)
        else:
            self._enqueue(key)

    def _recustom(self, key: Key, left: CustomTarget | None, joined: CustomTarget | None) -> None:
        """An Hvpa names a workload of a custom kind, names it no longer, or in another version."""
        if left == joined:
            return
        if joined is not None:
            self.custom.join(joined, key.name)
        if left is not None:
            self.custom.leave(left, key.name)
        if joined is not None:
            self.on_named(joined.target)

    def _status_changed(self, key: Key) -> None:
        """The watch has brought another status."""
        if key in self._status_writes:
            self._status_writes[key] = True
        else:
            self._enqueue(key)

    def _rename(self, key: Key, before: Links, after: Links) -> None:
        """Note which HPA and VPA an Hvpa names."""
        names = after.recommenders()
        for kind, old in before.recommenders().items():
            if old != names[kind]:
                if old:
                    self._naming[kind].remove(Key(key.namespace, old), key.name)
                if new := names[kind]:
                    self._naming[kind].add(Key(key.namespace, new), key.name)

    def _retarget(self, key: Key, left: Place | None, joined: Place | None) -> None:
        """An Hvpa comes to a target, leaves one, or is another one for the Hvpas beside it."""
        targets = dict.fromkeys(place[0] for place in (left, joined) if place is not None)
        before = {target: self._targeting.first(target) for target in targets}
        if left is not None:
            self._targeting.remove(*left)
        if joined is not None:
            self._targeting.add(*joined)
        for target in targets:
            self._pods.pop(target, None)  # one that is going may have asked for them
            if target not in self._targeting:
                self._selectors.remove(target)
                if target.kind not in WORKLOADS:
                    self._forget(target)
            elif (workload := self._workload(target)) is not None:
                self._put_selector(target, workload)
        if joined is not None:
            self.on_named(joined[0])
        self._enqueue(key)
        for target, first in before.items():
            if self._targeting.first(target) != first:
                self._wake(key.namespace, set(self._targeting.onlookers(target)) - {key.name})

    def _put_selector(self, target: Target, workload: Workload) -> None:
        """Note whose pods a workload's selector matches; nobody's, if it is too large to be compared with each pod."""
        if has_too_many_terms(workload.spec.selector):
            self._selectors.remove(target)
        else:
            self._selectors.put(target, target.namespace, workload.spec.selector)

    def _workload_changed(self, old: Workload | None, new: Workload | None, own: bool) -> None:
        workload = _either(old, new)
        meta = workload.metadata
        target = Target(meta.namespace, kind_key(workload.api_version, workload.kind), meta.name)
        if target not in self._targeting:
            return
        if new is None:
            self._selectors.remove(target)
        else:
            self._put_selector(target, new)
        if old is None or new is None or old.spec.selector != new.spec.selector:
            self._pods.pop(target, None)
        if old is None or new is None or changes.workload_changed(old, new):
            names = self._targeting.concerned(target)
            self._wake(target.namespace, names, self._enqueue_later if own else self._enqueue)

    def _hpa_changed(self, old: Hpa | None, new: Hpa | None, own: bool) -> None:
        if old is None or new is None or changes.hpa_changed(old, new):
            self._recommender_changed(HPAS.kind, old, new)

    def _vpa_changed(self, old: Vpa | None, new: Vpa | None, own: bool) -> None:
        if old is None or new is None or changes.vpa_changed(old, new, self._vpa_period):
            self._recommender_changed(VPAS.kind, old, new)

    def _recommender_changed(self, kind: str, old: O | None, new: O | None) -> None:
        meta = _either(old, new).metadata
        before = tokens_of(old) if old is not None else ()
        after = tokens_of(new) if new is not None else ()
        if before != after:
            for token in before:
                self._refs[kind].remove(token, meta.name)
            for token in after:
                self._refs[kind].add(token, meta.name)
        concerned = [self._concerned(kind, obj) for obj in (old, new) if obj is not None]
        self._wake(meta.namespace, set[str]().union(*concerned))

    def _concerned(self, kind: str, obj: Hpa | Vpa) -> set[str]:
        """Names of the Hvpas that an HPA or VPA may have to do with."""
        meta, reference = obj.metadata, reference_of(obj)
        controller = meta.controller()
        names = {controller.name} if controller is not None and controller.kind == HVPA_KIND else set()
        named = kind_key(reference.api_version, reference.kind)
        target: Target | None = Target(meta.namespace, named, reference.name)
        if reference.kind == HVPA_KIND:
            names.add(reference.name)
            place = place_of(self.hvpas.get(Key(meta.namespace, reference.name)))
            target = None if place is None else place[0]
        if target is not None:
            names.update(self._targeting.concerned(target))
        names.update(self._naming[kind].get(Key(meta.namespace, meta.name)))
        names.add(meta.name)
        names.add(meta.name.rpartition("-")[0])
        return names

    def _sizes_changed(self, old: HvpaSizes | None, new: HvpaSizes | None, own: bool) -> None:
        namespace = _either(old, new).metadata.namespace
        before, sizes = (one.by_hvpa() if one is not None else {} for one in (old, new))
        for hvpa in {*before, *sizes}:
            key, found = Key(namespace, hvpa), sizes.get(hvpa, ())
            is_news = found != self._sizes_of.pop(key, ())
            if found:
                self._sizes_of[key] = found
            if is_news and not own:
                self._enqueue(key)

    def _pod_changed(self, old: Pod | None, new: Pod | None, own: bool) -> None:
        if new is not None:
            self._pod_index.put(new)
        elif old is not None:
            self._pod_index.remove(old)
        is_news = changes.pod_changed(old, new)
        targets: set[Target] = set()
        for pod in (old, new):
            if pod is not None:
                targets.update(self._selectors.owners(pod.metadata.namespace, pod.metadata.labels))
        for target in targets:
            self._pods.pop(target, None)
            if is_news:
                self._wake_of(target)


Either = TypeVar("Either")


def _either(old: Either | None, new: Either | None) -> Either:
    """The one that is there; at least one is."""
    found = new if new is not None else old
    assert found is not None
    return found
