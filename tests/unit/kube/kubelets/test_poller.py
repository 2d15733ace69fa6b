"""Which nodes are polled, how often, and what their samples come to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from hvpa.core.fast.counters import Rate, Sample
from hvpa.kube.kubelets import poller
from hvpa.kube.kubelets.answer import PodName
from hvpa.kube.kubelets.client import KubeletError
from hvpa.kube.kubelets.poller import ContainerUsage, Node, Poller
from hvpa.reconcile.supervision import Supervisor

WEB, OTHER = PodName("shop", "web-1"), PodName("shop", "web-2")
A, B = Node("10.0.0.1", 10250), Node("10.0.0.2", 10250)
News = Mapping[PodName, Mapping[str, ContainerUsage]]


def line(metric: str, value: float, time: int, container: str = "app", pod: PodName = WEB) -> str:
    scope = f'container="{container}",' if container else ""
    return f'{metric}{{{scope}namespace="{pod.namespace}",pod="{pod.name}"}} {value!r} {time}\n'


def cpu(value: float, time: int, container: str = "app", pod: PodName = WEB) -> str:
    scope = "container" if container else "pod"
    return line(f"{scope}_cpu_usage_seconds_total", value, time, container, pod)


def memory(value: float, time: int, container: str = "app") -> str:
    return line("container_memory_working_set_bytes", value, time, container)


class Scripted:
    """Kubelets whose answers are written down; an exception is raised, and the last answer repeats."""

    def __init__(self, answers: Mapping[Node, list[str | Exception]]) -> None:
        self.answers = answers
        self.polls: list[Node] = []

    async def read(self, address: str, port: int) -> bytes:
        node = Node(address, port)
        self.polls.append(node)
        answers = self.answers[node]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer.encode()


class Pauses:
    """Pauses that take no time."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


class Watched:
    """A poller with its news."""

    def __init__(self, answers: Mapping[Node, list[str | Exception]], hot: bool = False) -> None:
        self.hot = hot
        self.news: list[News] = []
        self.pauses = Pauses()
        self.kubelets = Scripted(answers)
        self.poller = Poller(self.kubelets, self._take, Supervisor(), self.pauses)

    def _take(self, _: Node, usage: News) -> bool:
        self.news.append(usage)
        return self.hot

    async def polls(self, count: int, node: Node = A) -> None:
        """Wait for so many further polls of a node."""
        polls = len(self.kubelets.polls)
        await until(lambda: self.kubelets.polls[polls:].count(node) >= count)


async def until(test: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if test():
            return
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    raise AssertionError("it never happened")


async def polled(answers: list[str | Exception], count: int, hot: bool = False) -> Watched:
    """One node after so many polls."""
    watched = Watched({A: answers}, hot)
    watched.poller.watch({A: [WEB]})
    await watched.polls(count)
    watched.poller.stop()
    return watched


async def test_usage_is_between_two_samples_and_an_old_sample_is_no_news() -> None:
    first = cpu(1.0625, 1000) + memory(5e6, 1000)
    watched = await polled([first, first, cpu(4.0625, 11000) + memory(7e6, 11000)], 4)
    assert watched.news[:3] == [
        {WEB: {"app": ContainerUsage(None, Sample(1.0, 5e6), None)}},
        {},
        {WEB: {"app": ContainerUsage(Rate(300, 11.0, 10.0), Sample(11.0, 7e6), 5e6)}},
    ]


async def test_a_pods_own_counter_counts_for_its_only_container() -> None:
    first = cpu(1.0625, 1000)
    watched = await polled([first + cpu(1.125, 5000, ""), first + cpu(6.125, 15000, "")], 3)
    assert watched.news[1][WEB]["app"].cpu == Rate(500, 15.0, 10.0)


async def test_a_pods_own_counter_says_nothing_of_two_containers() -> None:
    def answer(seconds: float, time: int) -> str:
        return cpu(1.0625, 1000) + cpu(1.0625, 1000, "sidecar") + cpu(seconds, time, "")

    watched = await polled([answer(1.125, 5000), answer(6.125, 15000)], 3)
    assert [usage.cpu for usage in watched.news[1][WEB].values()] == [None, None]


@pytest.mark.parametrize(("hot", "wait"), [(False, poller.LATER), (True, poller.SOON)])
async def test_a_node_is_polled_again_soon_while_a_container_may_need_more(hot: bool, wait: float) -> None:
    watched = await polled([cpu(1.0625, 1000)], 3, hot)
    assert watched.pauses.seconds[1:3] == [wait, wait]


async def test_a_kubelet_that_fails_is_asked_less_often_and_its_reason_is_kept() -> None:
    watched = Watched({A: [KubeletError("HTTP 403")]})
    watched.poller.watch({A: [WEB]})
    await watched.polls(9)
    assert watched.poller.problems == {A: "HTTP 403"}
    assert watched.pauses.seconds[1:8] == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    watched.kubelets.answers[A][:] = [cpu(1.0625, 1000)]
    await until(lambda: not watched.poller.problems)
    watched.poller.stop()


async def test_a_kubelet_that_hangs_delays_no_other_node() -> None:
    class Hanging(Scripted):
        async def read(self, address: str, port: int) -> bytes:
            if address == A.address:
                await asyncio.Event().wait()
            return await super().read(address, port)

    kubelets = Hanging({B: [cpu(1.0625, 1000)]})
    polling = Poller(kubelets, lambda node, _: False, Supervisor(), Pauses())
    polling.watch({A: [WEB], B: [WEB]})
    await until(lambda: kubelets.polls.count(B) > 2)
    polling.stop()


async def test_only_nodes_with_wanted_pods_are_polled() -> None:
    watched = Watched({A: [cpu(1.0625, 1000)], B: [cpu(1.0625, 1000)]})
    watched.poller.watch({A: [WEB], B: []})
    await watched.polls(3)
    assert set(watched.kubelets.polls) == {A}
    watched.poller.watch({B: [WEB]})
    await watched.polls(1, B)
    polls = len(watched.kubelets.polls)
    await watched.polls(3, B)
    watched.poller.stop()
    assert set(watched.kubelets.polls[polls:]) == {B}


async def test_a_pod_that_comes_back_has_no_old_samples() -> None:
    def answer(seconds: float, time: int) -> str:
        return cpu(seconds, time) + cpu(seconds, time, pod=OTHER)

    watched = Watched({A: [answer(1.0625, 1000)]})
    watched.poller.watch({A: [WEB, OTHER]})
    await watched.polls(2)
    watched.poller.watch({A: [OTHER]})
    await watched.polls(2)
    watched.kubelets.answers[A][:] = [answer(9.0625, 11000)]
    watched.poller.watch({A: [WEB, OTHER]})
    await watched.polls(3)
    watched.poller.stop()
    usage = {pod: containers["app"].cpu for news in watched.news for pod, containers in news.items()}
    assert usage == {WEB: None, OTHER: Rate(800, 11.0, 10.0)}
