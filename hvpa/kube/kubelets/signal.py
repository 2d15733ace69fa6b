"""Connects Hvpas with the poller of kubelets: keeps the pods that each Hvpa wants polled, stores the usage that
kubelets report of them, and enqueues the Hvpas that have to decide because of it."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import Pod
from hvpa.core.model import FastUsage, PodUsage
from hvpa.core.values.tuning import FAST_SILENT
from hvpa.core.workload.containers import present_resources
from hvpa.core.workload.pod_level import POD, own_resources
from hvpa.kube.kubelets.answer import PodName
from hvpa.kube.kubelets.poller import ContainerUsage, Kubelets, Listener, Node, Poller
from hvpa.recommend.hpa.pods import lasting
from hvpa.reconcile.ports import Key, TimeSource
from hvpa.reconcile.supervision import Supervisor

_SETTLES = 0.2
"""Seconds until the poller gets the wanted pods: at the start, thousands of Hvpas name theirs."""


class _Above(NamedTuple):
    """The usage above which a container may need more: millicores and bytes; 0: it never does."""

    cpu: float
    memory: float


_NEVER: Final = _Above(0, 0)


class _Pod(NamedTuple):
    """A pod that is polled."""

    node: Node
    uid: str
    above: Mapping[str, _Above]
    """By container, and by `POD` of the pod itself if it has resources."""


class _Wish(NamedTuple):
    """The pods of an Hvpa."""

    given: tuple[Pod, ...]
    above: int
    pods: Mapping[PodName, _Pod]


class KubeletSignal(Listener):
    """Polls the kubelets of the pods that Hvpas want. All methods are called in one event loop."""

    def __init__(
        self,
        kubelets: Kubelets,
        port: int,
        clock: TimeSource,
        enqueue: Callable[[Key], None],
        supervisor: Supervisor,
    ) -> None:
        self._port = port
        self._clock = clock
        self._enqueue = enqueue
        self._poller = Poller(kubelets, self, supervisor)
        self._wishes: dict[Key, _Wish] = {}
        self._keys_of: dict[PodName, set[Key]] = {}
        self._usage: dict[PodName, dict[str, PodUsage]] = {}
        self._known: dict[PodName, Mapping[str, ContainerUsage]] = {}
        """The samples that `_usage` is from."""
        self._newest: dict[Key, dt.datetime] = {}
        self._reported: dict[Key, FastUsage] = {}
        self._wanted: dict[Node, dict[PodName, frozenset[str]]] = {}
        """The pods that are polled, and their containers."""
        self._change: asyncio.TimerHandle | None = None

    def usage(self, key: Key, pods: Sequence[Pod], above: int) -> FastUsage:
        """See `hvpa.reconcile.ports.Cluster`."""
        known = self._wishes.get(key)
        if known is None or known.given != tuple(pods) or known.above != above:
            self._set(key, self._wish(pods, above))
        if (reported := self._reported.get(key)) is None:
            reported = self._summed_up(key)
            if key in self._wishes:
                self._reported[key] = reported
        return reported

    def stop(self) -> None:
        """Polls no more."""
        if self._change is not None:
            self._change.cancel()
        self._poller.stop()

    @property
    def nodes(self) -> int:
        """Number of nodes that are polled."""
        return self._poller.nodes

    @property
    def silent(self) -> int:
        """Number of nodes whose kubelets gave no usable answer to the last poll."""
        return self._poller.silent

    # --- wanted pods -------------------------------------------------------------------------------------------------
    def _wish(self, pods: Sequence[Pod], above: int) -> _Wish:
        wanted = {}
        for pod in pods:
            if not pod.status.host_ip or pod.status.phase != "Running":
                continue
            limits = {one.name: _NEVER for one in lasting(pod.spec)}
            whole = {} if pod.spec.resources is None else {POD: own_resources(pod.spec)}
            for container, size in {**present_resources(pod.spec.containers), **whole}.items():
                cpu, memory = size.requests.get("cpu", 0), size.limits.get("memory", 0)
                limits[container] = _Above(cpu * above / 100, memory * above / 100)
            name = PodName(pod.metadata.namespace, pod.metadata.name)
            wanted[name] = _Pod(Node(pod.status.host_ip, self._port), pod.metadata.uid, limits)
        return _Wish(tuple(pods), above, wanted)

    def _set(self, key: Key, wish: _Wish) -> None:
        known = self._wishes.pop(key, None)
        before = {} if known is None else known.pods
        self._reported.pop(key, None)
        for name, pod in before.items():
            now = wish.pods.get(name)
            if now is None:
                self._keys_of[name].discard(key)
            if now is None or (now.node, now.uid) != (pod.node, pod.uid):
                self._usage.pop(name, None)
                self._known.pop(name, None)
            if not self._keys_of[name]:
                del self._keys_of[name]
        for name in wish.pods:
            self._keys_of.setdefault(name, set()).add(key)
        if wish.pods:
            self._wishes[key] = wish
        else:
            self._newest.pop(key, None)
        is_same = {name: (pod.node, pod.above.keys()) for name, pod in before.items()} == {
            name: (pod.node, pod.above.keys()) for name, pod in wish.pods.items()
        }
        if not is_same and self._change is None:
            self._change = asyncio.get_running_loop().call_later(_SETTLES, self._watch)

    def _watch(self) -> None:
        """Has the poller poll what is wanted now."""
        self._change = None
        self._wanted = {}
        for wish in self._wishes.values():
            for name, pod in wish.pods.items():
                self._wanted.setdefault(pod.node, {})[name] = frozenset(pod.above.keys() - {POD})
        self._poller.watch(self._wanted)

    # --- reports -----------------------------------------------------------------------------------------------------
    def news(self, node: Node, usage: Mapping[PodName, Mapping[str, ContainerUsage]]) -> Collection[PodName]:
        """Stores the news; returns the pods of which a container may need more. Their Hvpas decide, and those that have
        had no news for a while."""
        now, hot, due = self._clock.now(), set[PodName](), set[Key]()
        for name, containers in usage.items():
            for key in self._keys_of.get(name, ()):
                pod = self._wishes[key].pods[name]
                if pod.node != node:
                    continue
                if self._known.get(name) is not containers:
                    self._store(name, containers, now)
                self._reported.pop(key, None)
                if key not in self._newest or now - self._newest[key] >= FAST_SILENT:
                    due.add(key)
                self._newest[key] = now
                used = self._usage[name]
                if POD in pod.above:
                    used = {**used, POD: PodUsage.together(list(used.values()))}
                if any(_is_above(usage_of, pod.above.get(of)) for of, usage_of in used.items()):
                    hot.add(name)
                    due.add(key)
        for key in sorted(due):
            self._enqueue(key)
        return hot

    def answers_changed(self, node: Node) -> None:
        """Has the Hvpas of this node's pods report it."""
        keys = {key for name in self._wanted.get(node, ()) for key in self._keys_of.get(name, ())}
        for key in sorted(keys):
            self._reported.pop(key, None)
            self._enqueue(key)

    def _store(self, name: PodName, containers: Mapping[str, ContainerUsage], now: dt.datetime) -> None:
        """Stores the usage of a pod's containers, with the times at which their samples arrived."""
        known, usage = self._known.get(name, {}), self._usage.get(name, {})
        self._known[name] = containers
        self._usage[name] = {
            container: _read(new, known.get(container), usage.get(container, PodUsage()), now)
            for container, new in containers.items()
        }

    def _summed_up(self, key: Key) -> FastUsage:
        """Returns the usage of the pods of an Hvpa in the form that a decision reads."""
        pods = self._wishes[key].pods if key in self._wishes else {}
        nodes = sorted({pod.node for pod in pods.values()})
        samplings = [seconds for node in nodes if (seconds := self._poller.sampling(node)) is not None]
        return FastUsage(
            self._newest.get(key),
            {
                (name.name, container): usage
                for name in pods
                for container, usage in self._usage.get(name, {}).items()
            },
            len(nodes),
            {node.address: problem for node in nodes if (problem := self._poller.problem(node))},
            max(samplings, default=None),
        )


def _is_above(usage: PodUsage, above: _Above | None) -> bool:
    if above is None:
        return False
    busy = usage.cpu is not None and 0 < above.cpu < usage.cpu
    return busy or (usage.memory is not None and usage.grows and 0 < above.memory < usage.memory)


def _read(new: ContainerUsage, known: ContainerUsage | None, usage: PodUsage, now: dt.datetime) -> PodUsage:
    """Returns the usage of a container, now that these samples are `known`."""
    is_new_cpu = known is None or new.cpu != known.cpu
    is_new_memory = known is None or new.memory != known.memory
    return PodUsage(
        cpu=None if new.cpu is None else new.cpu.millicores,
        cpu_time=now if is_new_cpu else usage.cpu_time,
        memory=None if new.memory is None else int(new.memory.value),
        memory_time=now if is_new_memory else usage.memory_time,
        grows=new.grows,
        lasting_cpu=None if new.lasting is None else new.lasting.millicores,
    )
