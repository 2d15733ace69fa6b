"""Which pods are polled, what a decision gets of it, and which Hvpa decides."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from builders.build import NOW, container, pod
from hvpa.api.objects.read_models import Pod
from hvpa.core.fast.counters import Rate, Sample
from hvpa.core.model import FastUsage, PodUsage
from hvpa.kube.kubelets import signal
from hvpa.kube.kubelets.answer import PodName
from hvpa.kube.kubelets.poller import ContainerUsage, Listener, Node
from hvpa.kube.kubelets.signal import KubeletSignal
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import WorkQueue
from hvpa.reconcile.supervision import Supervisor

WEB, SHOP = Key("default", "web"), Key("default", "shop")
A, B = Node("10.0.0.1", 10250), Node("10.0.0.2", 10250)


MESH: dict[str, Any] = {**container("mesh", {"cpu": "100m"}), "restartPolicy": "Always"}


class Polled:
    """A poller that only records the pods that it should poll."""

    nodes, silent = 2, 1

    def __init__(self, _: object, listener: Listener, __: object) -> None:
        self.listener = listener
        self.problems: dict[Node, str] = {}
        self.samplings: dict[Node, float] = {}
        self.wanted: list[dict[Node, set[PodName]]] = []
        self.is_stopped = False

    def watch(self, wanted: Mapping[Node, Mapping[PodName, frozenset[str]]]) -> None:
        self.wanted.append({node: set(pods) for node, pods in wanted.items()})
        self.names = frozenset[str]().union(*[names for pods in wanted.values() for names in pods.values()])

    def stop(self) -> None:
        self.is_stopped = True

    def problem(self, node: Node) -> str:
        return self.problems.get(node, "")

    def sampling(self, node: Node) -> float | None:
        return self.samplings.get(node)


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> dt.datetime:
        return self.time


class Signal:
    """The signal over a poller that a test feeds."""

    def __init__(self) -> None:
        self.enqueued: list[Key] = []
        self.clock = Clock()
        kubelets: Any = None
        self.signal = KubeletSignal(kubelets, 10250, self.clock, self.enqueued.append, Supervisor())
        self.poller: Any = self.signal._poller
        self.samples = 0

    def report(
        self,
        name: str,
        cpu: int | None,
        memory: float | None = None,
        *,
        grows: bool = False,
        node: Node = A,
    ) -> bool:
        """The news of a pod; whether it may need more."""
        self.samples += 1
        rate = None if cpu is None else Rate(cpu, float(self.samples), 10.0)
        sample = None if memory is None else Sample(float(self.samples), memory)
        pod = PodName("default", name)
        return pod in self.signal.news(node, {pod: {"app": ContainerUsage(rate, sample, grows)}})

    def usage(self, *pods: Pod, key: Key = WEB) -> FastUsage:
        return self.signal.usage(key, pods, 90)

    async def polled(self) -> dict[Node, set[PodName]]:
        await asyncio.sleep(0.01)
        return dict(self.poller.wanted[-1])

    async def names(self) -> set[str]:
        """The containers that are polled."""
        await asyncio.sleep(0.01)
        return set(self.poller.names)


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Signal]:
    monkeypatch.setattr(signal, "Poller", Polled)
    monkeypatch.setattr(signal, "_SETTLES", 0.0)
    return Signal


def on(node: str, name: str, phase: str = "Running", uid: str = "1", cpu: str | None = "1") -> Pod:
    """A pod of 1 core with a limit of 1G."""
    size = container(requests={} if cpu is None else {"cpu": cpu}, limits={"memory": "1G"})
    change = {"status": {"hostIP": node, "phase": phase}, "metadata": {"uid": uid}}
    return pod(name, containers=[size], change=change)


async def test_pods_that_run_are_polled_at_their_nodes(signals: Callable[[], Signal]) -> None:
    made = signals()
    pods = [on("10.0.0.1", "a"), on("10.0.0.2", "b"), on("", "c"), on("10.0.0.1", "d", "Pending")]
    assert made.usage(*pods) == FastUsage(nodes=2)
    made.usage(on("10.0.0.1", "e"), key=SHOP)
    assert await made.polled() == {
        A: {PodName("default", "a"), PodName("default", "e")},
        B: {PodName("default", "b")},
    }
    assert made.usage() == FastUsage()
    assert await made.polled() == {A: {PodName("default", "e")}}
    made.signal.stop()
    assert made.poller.is_stopped


async def test_an_hvpa_decides_once_a_container_is_above_its_part(signals: Callable[[], Signal]) -> None:
    made, pods = signals(), (on("10.0.0.1", "a"), on("10.0.0.1", "b"))
    made.usage(*pods)
    assert not made.report("a", 900)
    assert made.enqueued == [WEB]  # its first news
    assert not made.report("a", 900)
    assert made.enqueued == [WEB]
    assert made.report("b", 901)
    assert made.enqueued == [WEB, WEB]
    usage = made.usage(*pods)
    assert {key: used.cpu for key, used in usage.of.items()} == {("a", "app"): 900, ("b", "app"): 901}
    assert (usage.time, usage.nodes) == (NOW, 1)


async def test_an_hvpa_decides_once_a_pod_is_above_its_part(signals: Callable[[], Signal]) -> None:
    """A pod of 1 core, whose containers have no requests of their own; its sidecar uses a part."""
    whole = {"resources": {"requests": {"cpu": "1"}}, "initContainers": [MESH]}
    change = {"spec": whole, "status": {"hostIP": "10.0.0.1", "phase": "Running"}, "metadata": {"uid": "1"}}
    made, one = signals(), pod("a", containers=[container("app", {})], change=change)
    made.usage(one)
    assert await made.names() == {"app", "mesh"}

    def report(app: int, mesh: int) -> bool:
        made.samples += 1
        rates = {
            name: ContainerUsage(Rate(used, float(made.samples), 10.0))
            for name, used in (("app", app), ("mesh", mesh))
        }
        name = PodName("default", "a")
        return name in made.signal.news(A, {name: rates})

    assert not report(500, 400)
    assert report(500, 401)
    assert {key: used.cpu for key, used in made.usage(one).of.items()} == {
        ("a", "app"): 500,
        ("a", "mesh"): 401,
    }


async def test_each_usage_has_the_time_of_its_own_sample(signals: Callable[[], Signal]) -> None:
    made, pods = signals(), (on("10.0.0.1", "a"), on("10.0.0.1", "b"))
    made.usage(*pods)
    made.report("a", 900, 5e6)
    made.clock.time = later = NOW + dt.timedelta(seconds=20)
    made.report("b", 700, 5e6)
    usage = made.usage(*pods)
    assert usage.time == later
    assert [(used.cpu_time, used.memory_time) for used in usage.of.values()] == [(NOW, NOW), (later, later)]
    memory = made.signal._known[PodName("default", "a")]["app"].memory
    news = {"app": ContainerUsage(Rate(800, 99.0, 10.0), memory)}
    made.signal.news(A, {PodName("default", "a"): news})
    assert made.usage(*pods).of["a", "app"] == PodUsage(800, later, 5_000_000, NOW)


async def test_memory_counts_by_the_limit_if_it_grows(signals: Callable[[], Signal]) -> None:
    made, web = signals(), on("10.0.0.1", "a")
    made.usage(web)
    assert not made.report("a", None, 9e8, grows=True)
    assert not made.report("a", None, 9.1e8)
    assert made.report("a", None, 9.1e8, grows=True)
    assert made.usage(web).of["a", "app"] == PodUsage(None, NOW, 910_000_000, NOW, grows=True)


async def test_a_container_without_a_request_never_needs_more(signals: Callable[[], Signal]) -> None:
    made = signals()
    made.usage(on("10.0.0.1", "a", cpu=None))
    assert not made.report("a", 2000)


async def test_pods_that_nobody_wants_any_more_are_forgotten(signals: Callable[[], Signal]) -> None:
    made, web = signals(), on("10.0.0.1", "a")
    made.usage(web)
    made.report("a", 500)
    made.usage()
    made.enqueued.clear()
    assert not made.report("a", 2000)
    assert made.enqueued == []
    assert made.usage(web) == FastUsage(nodes=1)


@pytest.mark.parametrize("now", [on("10.0.0.2", "a"), on("10.0.0.1", "a", uid="2")], ids=["moved", "new"])
async def test_another_pod_of_the_same_name_begins_anew(signals: Callable[[], Signal], now: Pod) -> None:
    made = signals()
    made.usage(on("10.0.0.1", "a"))
    made.report("a", 2000)
    assert made.usage(now).of == {}
    if now.status.host_ip != A.address:
        assert not made.report("a", 2000), "that is the node of the pod before"
        assert made.usage(now).of == {}
    assert made.report("a", 2000, node=Node(now.status.host_ip, 10250))


async def test_the_last_of_two_hvpas_still_gets_the_news_of_its_pods(signals: Callable[[], Signal]) -> None:
    made, web = signals(), on("10.0.0.1", "a")
    made.usage(web)
    made.usage(web, key=SHOP)
    made.report("a", 950)
    assert made.enqueued == [SHOP, WEB]
    made.usage(key=SHOP)
    made.enqueued.clear()
    assert made.report("a", 950)
    assert made.enqueued == [WEB]
    assert made.usage(web).of["a", "app"].cpu == 950


async def test_an_hvpa_learns_that_news_have_come_again(signals: Callable[[], Signal]) -> None:
    made = signals()
    made.usage(on("10.0.0.1", "a"))
    made.report("a", 100)
    made.clock.time = NOW + dt.timedelta(seconds=59)
    made.report("a", 100)
    assert made.enqueued == [WEB]
    made.clock.time = NOW + dt.timedelta(seconds=119)
    made.report("a", 100)
    assert made.enqueued == [WEB, WEB]


async def test_nodes_that_report_nothing_and_their_sampling_are_known(signals: Callable[[], Signal]) -> None:
    made = signals()
    pods = [on("10.0.0.1", "a"), on("10.0.0.2", "b"), on("10.0.0.3", "c")]
    made.usage(*pods)
    await made.polled()
    made.poller.samplings = {A: 2.0, Node("10.0.0.3", 10250): 15.0}
    made.poller.problems = {B: "HTTP 403"}
    made.signal.answers_changed(B)
    made.signal.answers_changed(Node("10.0.0.9", 10250))
    assert made.enqueued == [WEB]
    assert made.usage(*pods) == FastUsage(nodes=3, silent={"10.0.0.2": "HTTP 403"}, sampling=15.0)
    assert (made.signal.nodes, made.signal.silent) == (2, 1)


async def test_a_tenant_whose_every_pod_may_need_more_delays_nobody(signals: Callable[[], Signal]) -> None:
    """Two hundred Hvpas of a namespace have news with each sample. The Hvpa of another namespace does not wait for
    them: it is among the next two."""
    made, queue = signals(), WorkQueue()
    other = Key("other", "web")
    for number in range(200):
        made.usage(on("10.0.0.1", f"pod-{number}"), key=Key("default", f"web-{number}"))
    for number in range(200):
        assert made.report(f"pod-{number}", 5000)
    assert len(made.enqueued) == 200
    for key in (*made.enqueued, other):
        queue.add(key, 0.0)
    assert other in {queue.take(0.0), queue.take(0.0)}
