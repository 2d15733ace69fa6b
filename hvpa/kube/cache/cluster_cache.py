"""The local copy of the cluster: all stores and indexes, the objects of each Hvpa, and the Hvpas that a change
affects."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeVar

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.kinds import kind_key
from hvpa.api.objects.read_models import Hpa, HvpaSizes, Pod, Selector, Vpa, Workload
from hvpa.core.model import LargestNode, Objects, OtherHvpa, OwnedChange, Settings
from hvpa.core.recommenders.adoption import adoption_of, holder_of, returned
from hvpa.core.recommenders.ownership import AT_ONCE, O
from hvpa.core.recommenders.stale import silences
from hvpa.core.values.memo import remembered
from hvpa.core.workload.selector import has_too_many_terms
from hvpa.kube.cache import changes
from hvpa.kube.cache.checkpoints import Checkpoints
from hvpa.kube.cache.custom_targets import CustomTarget, CustomTargets, custom_target
from hvpa.kube.cache.indexes import Index, PodIndex, SelectorIndex
from hvpa.kube.cache.nodes import Nodes
from hvpa.kube.cache.policies import PolicyCache
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
    CLUSTER_POLICIES,
    HPAS,
    HVPA_POLICIES,
    HVPA_SIZES,
    HVPAS,
    NAMESPACES,
    NODES,
    PODS,
    VPAS,
    WORKLOADS,
    ApiResource,
    ObjectLike,
)
from hvpa.kube.objects.stored_hvpa import NO_LINKS, Links, StoredHvpa
from hvpa.kube.objects.workloads import with_newest_pod
from hvpa.reconcile.ports import Key

_OF_CUSTOM: Final = LargestNode(problem="HVPA does not know which nodes pods of a custom kind may use")
_VPA_PERIOD: Final = Settings().vpa_period
_without_resizes: Final[Callable[[HvpaSpec], HvpaSpec]] = remembered(HvpaSpec.without_resizes)


class LocalCluster:
    """Holds the stores.

    `enqueue` gets the key of each Hvpa that must be reconciled. `enqueue_later` gets the key of an Hvpa whose
    workload HVPA has just changed itself: that can wait, because the start of the rollout enqueues the Hvpa anyway.
    """

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
        """Why the workloads of a kind are not listed, by kind."""
        self.on_named: Callable[[Target], None] = lambda target: None
        """Called with each new target."""
        self.hpas: Store[Hpa] = Store(scopes, self._hpa_changed)
        self.vpas: Store[Vpa] = Store(scopes, self._vpa_changed)
        self.pods: Store[Pod] = Store(scopes, self._pod_changed)
        self.creation_sizes: Store[HvpaSizes] = Store(scopes, self._sizes_changed)
        self.checkpoints = Checkpoints(scopes)
        self.nodes = Nodes()
        self.policies = PolicyCache(scopes)
        self._silent: dict[str, dt.datetime] = {}
        """Last sign of life of each silent recommender, by name."""
        self._stores: dict[str, Store[Any]] = {
            HVPAS.kind: self.hvpas,
            HPAS.kind: self.hpas,
            VPAS.kind: self.vpas,
            PODS.kind: self.pods,
            HVPA_SIZES.kind: self.creation_sizes,
            CHECKPOINTS.kind: self.checkpoints.store,
            NODES.kind: self.nodes.store,
            HVPA_POLICIES.kind: self.policies.policies,
            CLUSTER_POLICIES.kind: self.policies.cluster_policies,
            NAMESPACES.kind: self.policies.namespaces,
        }
        self._resizes_pods = True
        self._served: dict[str, bool | None] = {
            VPAS.kind: True,
            HVPA_SIZES.kind: False,
            CHECKPOINTS.kind: False,
            NODES.kind: None,
        }
        self._sizes_of: dict[Key, tuple[tuple[str, str], ...]] = {}
        """The sizes of new pods written for each Hvpa, even if the Hvpa no longer exists."""
        self._targeting = Targeting()
        self._naming: dict[str, Index[Key, str]] = {HPAS.kind: Index(), VPAS.kind: Index()}
        """By kind, then by key of the HPA or VPA: the Hvpas that name it."""
        self._refs: dict[str, Index[RefToken, str]] = {HPAS.kind: Index(), VPAS.kind: Index()}
        """By kind, then by target or owner: the HPAs or VPAs."""
        self._pod_index = PodIndex()
        self._selectors: SelectorIndex[Target] = SelectorIndex()
        self._status_writes: dict[Key, bool] = {}
        """Hvpas whose status HVPA is writing now, and whether the watch has delivered another status in the
        meantime."""
        self._pods: dict[Target, tuple[Pod, ...]] = {}
        """The pods of each target that was read. A tuple stays the same object until one of its pods changes."""

    def store(self, resource: ApiResource[Any]) -> Store[Any]:
        """The store of a watched resource."""
        known = self._stores.get(resource.kind)
        return self._workload_store(resource.kind) if known is None else known

    def _workload_store(self, kind: str) -> Store[Workload]:
        """The store of a kind of workload. The store of a custom kind is created with its first workload."""
        if kind not in self.workloads:
            self.workloads[kind] = Store(self._scopes, self._workload_changed)
        return self.workloads[kind]

    def set_served(self, resource: ApiResource[Any], served: bool) -> None:
        """Note whether the cluster serves an optional resource; a change enqueues every Hvpa."""
        if served != self._served[resource.kind]:
            self._served[resource.kind] = served
            if resource is NODES:
                self.nodes.set_readable(served)
            for key in self.hvpas:
                self._enqueue(key)

    def set_resizes_pods(self, can: bool) -> None:
        """Note whether the API server can resize pods; a change enqueues every Hvpa."""
        if can != self._resizes_pods:
            self._resizes_pods = can
            for key in self.hvpas:
                self._enqueue(key)

    def note_silences(self, now: dt.datetime) -> None:
        """Update which VPA recommenders are silent at `now`; a change enqueues every Hvpa."""
        vpas = [vpa for key in self.vpas if (vpa := self.vpas.get(key)) is not None]
        silent = silences(vpas, self.checkpoints, now, self._vpa_period)
        if silent != self._silent:
            self._silent = silent
            for key in self.hvpas:
                self._enqueue(key)

    def set_unlisted(self, kind: str, why: str | None) -> None:
        """Note why workloads of a kind are not listed (NOT_YET during the first list); None if they are listed."""
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
        """The last known state of a target of a custom kind."""
        return self._workload(target)

    def set_custom(
        self, custom: CustomTarget, workload: Workload | None, unreadable: str | None = None
    ) -> None:
        """Store the result of reading a target of a custom kind; `unreadable` is why it can't be read."""
        if custom not in self.custom:
            return  # no Hvpa names it any more
        if workload is not None:
            self._workload_store(custom.target.kind).put(workload)
        elif unreadable is None:
            self._forget(custom.target)
        if self.custom.set_unreadable(custom, unreadable):
            self._wake_of(custom.target)

    def _forget(self, target: Target) -> None:
        """Drop a target of a custom kind that does not exist, or that no Hvpa names any more."""
        if (store := self.workloads.get(target.kind)) is not None:
            store.delete(Key(target.namespace, target.name))

    def put_scaled(self, workload: Workload) -> None:
        """Store the current state of a workload of a custom kind, whether or not an Hvpa names it."""
        kind = kind_key(workload.api_version, workload.kind)
        meta = workload.metadata
        target = Target(meta.namespace, kind, meta.name)
        named = CustomTarget(target, workload.api_version, workload.kind)
        if named in self.custom:
            self.set_custom(named, workload)
        else:
            self._workload_store(kind).put(workload)

    def begin_status_write(self, key: Key) -> None:
        """Note that a write to the Hvpa's status begins. A status that the watch delivers before the write ends is
        most likely that write."""
        self._status_writes[key] = False

    def end_status_write(self, key: Key, response: StoredHvpa | None) -> None:
        """Note that the write has ended. `response` is the Hvpa in the response, None if the write failed.

        Enqueues the Hvpa if the watch delivered a different status in the meantime.
        """
        stored = self.hvpas.get(key)
        if not self._status_writes.pop(key, False) or stored is None:
            return
        if response is None or stored.status_hash != response.status_hash:
            self._enqueue(key)

    # --- reading -----------------------------------------------------------------------------------------------------
    def objects(self, key: Key) -> Objects | None:
        """All objects that may affect the Hvpa of `key`; see `hvpa.core.model.Objects`."""
        stored = self.hvpas.get(key)
        if stored is None:
            return None
        target = target_in(key.namespace, stored.links)
        workload = self._workload(target)
        pods = self._pods_of(target, workload.spec.selector) if workload is not None else ()
        unlisted = self._unlisted.get(target.kind)
        custom = custom_target(key.namespace, stored.links)
        if custom is not None and custom in self.custom:
            unlisted = self.custom.unreadable(custom)
            workload = None if workload is None else with_newest_pod(workload, pods)
        others = self._targeting.beside(target, key.name) if target.name else ()
        vpas = tuple(self._related(VPAS, stored, target))
        keys = [Key(vpa.metadata.namespace, vpa.metadata.name) for vpa in vpas]
        hvpa, node = self._read(stored), None
        if workload is not None and hvpa.spec is not None and hvpa.spec.vpa.max_allowed is not None:
            node = _OF_CUSTOM if custom is not None else self.nodes.largest(workload.spec.template.spec)
        return Objects(
            hvpa=hvpa,
            workload=workload,
            others=others,
            hpas=tuple(self._related(HPAS, stored, target, others)),
            vpas=vpas,
            checkpoints=tuple([checkpoint for vpa in keys for checkpoint in self.checkpoints.of(vpa)]),
            pods=pods,
            vpa_served=bool(self._served[VPAS.kind]),
            creation_sizes=self._sizes_of.get(key, ()) if self._served[HVPA_SIZES.kind] else None,
            unlisted=unlisted,
            silent_recommenders=self._silent,
            largest_node=node,
        )

    def _read(self, stored: StoredHvpa) -> HvpaObject:
        """The Hvpa, with the default update strategy for this API server."""
        hvpa = stored.read()
        if self._resizes_pods or hvpa.spec is None or not hvpa.spec.joint:
            return hvpa
        return replace(hvpa, spec=_without_resizes(hvpa.spec))

    def owners_of_sizes(self, key: Key) -> list[str]:
        """The owners of pods whose sizes were written for the Hvpa of `key`."""
        return [owner for owner, _ in self._sizes_of.get(key, ())]

    def adopted_by(self, key: Key) -> list[OwnedChange]:
        """The writes that make the HPAs and VPAs that an Hvpa of this name adopted as they were, at most AT_ONCE. The
        responses enqueue the key again."""
        return list(islice(self._returns(key), AT_ONCE))

    def _returns(self, key: Key) -> Iterator[OwnedChange]:
        stores: dict[str, Store[Any]] = {HPAS.kind: self.hpas, VPAS.kind: self.vpas}
        for kind, store in stores.items():
            for name in self._refs[kind].get((key.namespace, HVPA_KIND, key.name)):
                obj = store.get(Key(key.namespace, name))
                if obj is None or obj.metadata.deletion_timestamp is not None:
                    continue
                if (adoption := adoption_of(obj)) is not None and adoption.hvpa == key.name:
                    yield returned(obj, adoption)

    def known(self) -> Iterable[Key]:
        """All Hvpas, and deleted Hvpas that left sizes of new pods, or HPAs and VPAs that they adopted, behind."""
        recommenders: list[Hpa | Vpa] = [*self.hpas.all(), *self.vpas.all()]
        held = [(obj.metadata.namespace, adoption_of(obj)) for obj in recommenders]
        adopters = [Key(namespace, adoption.hvpa) for namespace, adoption in held if adoption is not None]
        return dict.fromkeys((*self.hvpas, *self._sizes_of, *adopters))

    def changed_last(self, keys: Iterable[Key]) -> list[Key]:
        """Hvpas by the latest change of themselves, their workloads or their recommenders, latest first."""
        return sorted(keys, key=self._newest, reverse=True)

    def _newest(self, key: Key) -> int:
        """The newest resource version among an Hvpa and its objects except pods; 0 if versions are not numbers."""
        stored = self.hvpas.get(key)
        if stored is None:
            return 0
        target = target_in(key.namespace, stored.links)
        objects: list[ObjectLike | None] = [stored, self._workload(target)]
        objects += self._related(HPAS, stored, target)
        objects += self._related(VPAS, stored, target)
        return max(version(obj.metadata.resource_version) or 0 for obj in objects if obj is not None)

    def _workload(self, target: Target) -> Workload | None:
        store = self.workloads.get(target.kind)
        return store.get(Key(target.namespace, target.name)) if store is not None else None

    def _pods_of(self, target: Target, selector: Selector) -> tuple[Pod, ...]:
        pods = self._pods.get(target)
        if has_too_many_terms(selector):
            return ()  # the target is reported as unsupported
        if pods is None:
            names = self._pod_index.select(target.namespace, selector)
            selected = [self.pods.get(Key(target.namespace, name)) for name in names]
            pods = self._pods[target] = tuple([pod for pod in selected if pod is not None])
        return pods

    def _related(
        self, resource: ApiResource[O], hvpa: StoredHvpa, target: Target, others: Collection[OtherHvpa] = ()
    ) -> list[O]:
        """The HPAs or VPAs that may affect an Hvpa.

        These are the objects that the Hvpa owns or names, that target the workload or an Hvpa with this target, or
        that have a name that HVPA would give.
        """
        namespace, name, uid = target.namespace, hvpa.metadata.name, hvpa.metadata.uid
        tokens: list[RefToken] = [(namespace, uid), (namespace, HVPA_KIND, name)]
        tokens += [(namespace, HVPA_KIND, other.name) for other in others]
        refs, store = self._refs[resource.kind], self.store(resource)
        names = [referrer for token in (*tokens, target) for referrer in refs.get(token)]
        names += [name, f"{name}-{uid[:8]}", hvpa.links.recommenders()[resource.kind] or name]
        objects = [store.get(Key(namespace, candidate)) for candidate in dict.fromkeys(names)]
        return [obj for obj in objects if obj is not None]

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
            # The nodes are listed before the spec is decoded for the first decision, if possible.
            if b'"LargestNode"' in bytes(new.spec):
                self.nodes.want()
        self.policies.note_hvpa(old, new)
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
        """Update the custom workload that an Hvpa names, after it changed in name or version."""
        if left == joined:
            return
        if joined is not None:
            self.custom.join(joined, key.name)
        if left is not None:
            self.custom.leave(left, key.name)
        if joined is not None:
            self.on_named(joined.target)

    def _status_changed(self, key: Key) -> None:
        """Handle a status change that the watch delivered."""
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
        """Move an Hvpa to another target, or update how the other Hvpas of its target see it."""
        targets = dict.fromkeys(place[0] for place in (left, joined) if place is not None)
        before = {target: self._targeting.first(target) for target in targets}
        if left is not None:
            self._targeting.remove(*left)
        if joined is not None:
            self._targeting.add(*joined)
        for target in targets:
            self._pods.pop(target, None)  # an Hvpa that is being deleted may have read them
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
        """Index a workload's selector to find the owners of pods; omit a selector that is too large to compare with
        each pod."""
        if has_too_many_terms(workload.spec.selector):
            self._selectors.remove(target)
        else:
            self._selectors.put(target, target.namespace, workload.spec.selector)

    def _workload_changed(self, old: Workload | None, new: Workload | None, own: bool) -> None:
        self.policies.note_workload(old, new)
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
        self.policies.note_recommender(old, new)
        if old is None or new is None or changes.hpa_changed(old, new):
            self._recommender_changed(HPAS.kind, old, new)

    def _vpa_changed(self, old: Vpa | None, new: Vpa | None, own: bool) -> None:
        self.policies.note_recommender(old, new)
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
        for adoption in [adoption_of(obj) for obj in (old, new) if obj is not None]:
            if adoption is not None and self.hvpas.get(key := Key(meta.namespace, adoption.hvpa)) is None:
                self._enqueue(key)

    def _concerned(self, kind: str, obj: Hpa | Vpa) -> set[str]:
        """Names of the Hvpas that an HPA or VPA may affect."""
        meta, reference = obj.metadata, reference_of(obj)
        holder = holder_of(obj)
        names = {holder.name} if holder is not None and holder.kind == HVPA_KIND else set()
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
        before, sizes = (obj.by_hvpa() if obj is not None else {} for obj in (old, new))
        for hvpa in {*before, *sizes}:
            key, hvpa_sizes = Key(namespace, hvpa), sizes.get(hvpa, ())
            is_news = hvpa_sizes != self._sizes_of.pop(key, ())
            if hvpa_sizes:
                self._sizes_of[key] = hvpa_sizes
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
    """The new object, or the old object if it was deleted; at least one exists."""
    obj = new if new is not None else old
    assert obj is not None
    return obj
