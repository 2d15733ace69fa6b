"""Which nodes are polled, how often, and what their samples come to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

import pytest

from hvpa.core.fast.counters import Rate, Sample
from hvpa.kube.kubelets import poller
from hvpa.kube.kubelets.answer import PodName
from hvpa.kube.kubelets.client import KubeletError
from hvpa.kube.kubelets.poller import ContainerUsage, Listener, Node, Poller
from hvpa.reconcile.supervision import Supervisor

WEB, OTHER = PodName("shop", "web-1"), PodName("shop", "web-2")
A, B = Node("10.0.0.1", 10250), Node("10.0.0.2", 10250)
APP = frozenset({"app"})
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


class Watched(Listener):
    """A poller with its news."""

    def __init__(self, answers: Mapping[Node, list[str | Exception]], hot: bool = False) -> None:
        self.hot = hot
        self.all_news: list[News] = []
        self.problems: list[str] = []
        self.pauses = Pauses()
        self.kubelets = Scripted(answers)
        self.poller = Poller(self.kubelets, self, Supervisor(), self.pauses)

    def news(self, node: Node, usage: News) -> Collection[PodName]:
        assert usage
        self.all_news.append(usage)
        return usage.keys() if self.hot else ()

    def answers_changed(self, node: Node) -> None:
        self.problems.append(self.poller.problem(node))

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
    watched.poller.watch({A: {WEB: APP}})
    await watched.polls(count)
    watched.poller.stop()
    return watched


async def test_usage_is_between_two_samples_and_an_old_sample_is_no_news() -> None:
    first = cpu(1.0625, 1000) + memory(5e6, 1000)
    watched = await polled([first, first, cpu(4.0625, 11000) + memory(7e6, 11000)], 4)
    assert watched.all_news == [
        {WEB: {"app": ContainerUsage(None, Sample(1.0, 5e6))}},
        {WEB: {"app": ContainerUsage(Rate(300, 11.0, 10.0), Sample(11.0, 7e6), grows=True)}},
    ]


async def test_a_pods_own_counter_counts_for_its_only_container() -> None:
    first = cpu(1.0625, 1000)
    watched = await polled([first + cpu(1.125, 5000, ""), first + cpu(6.125, 15000, "")], 3)
    assert watched.all_news[1][WEB]["app"].cpu == Rate(500, 15.0, 10.0)


@pytest.mark.parametrize("sidecar", [cpu(1.0625, 1000, "sidecar"), ""], ids=["runs", "does not run"])
async def test_a_pods_own_counter_says_nothing_of_two_containers(sidecar: str) -> None:
    def answer(seconds: float, time: int) -> str:
        return cpu(1.0625, 1000) + sidecar + cpu(seconds, time, "")

    watched = Watched({A: [answer(1.125, 5000), answer(6.125, 15000)]})
    watched.poller.watch({A: {WEB: frozenset({"app", "sidecar"})}})
    await watched.polls(3)
    watched.poller.stop()
    assert {usage.cpu for usage in watched.all_news[1][WEB].values()} == {None}


async def test_a_container_that_an_answer_lacks_has_no_samples() -> None:
    answers: list[str | Exception] = [cpu(1.0625, 1000), cpu(9.0625, 11000), memory(5e6, 12000, "other")]
    watched = Watched({A: [*answers, cpu(9.5625, 21000)]})
    watched.poller.watch({A: {WEB: frozenset({"app", "other"})}})
    await watched.polls(5)
    watched.poller.stop()
    assert [news[WEB]["app"].cpu for news in watched.all_news if "app" in news[WEB]] == [
        None,
        Rate(800, 11.0, 10.0),
        None,
    ]


async def test_containers_that_nobody_wants_are_not_kept() -> None:
    many = "".join(cpu(1.0625, 1000, f"made-up-{number}") for number in range(100))
    watched = await polled([many + cpu(1.0625, 1000)], 2)
    assert [list(news[WEB]) for news in watched.all_news] == [["app"]]


@pytest.mark.parametrize(("hot", "wait"), [(False, poller.LATER), (True, poller.SOON)])
async def test_a_node_is_polled_again_soon_while_a_container_may_need_more(hot: bool, wait: float) -> None:
    watched = await polled([cpu(1.0625, 1000)], poller.FREQUENT + 2, hot)
    first = [poller.SOON] * poller.FREQUENT
    assert watched.pauses.seconds[1 : poller.FREQUENT + 2] == [*first, wait]


async def test_polls_stay_frequent_until_news_say_otherwise_and_for_a_while_after() -> None:
    watched = Watched({A: [cpu(1.0625, 1000)]}, hot=True)
    watched.poller.watch({A: {WEB: APP}})
    await watched.polls(3 * poller.FREQUENT)
    watched.hot = False
    watched.kubelets.answers[A][:] = [cpu(2.0625, 11000)]
    polls = len(watched.pauses.seconds)
    await watched.polls(poller.FREQUENT + 3)
    watched.poller.stop()
    assert set(watched.pauses.seconds[1:polls]) == {poller.SOON}
    later = watched.pauses.seconds[polls:]
    assert poller.LATER not in later[: poller.FREQUENT - 2]
    assert later[-1] == poller.LATER


async def test_a_kubelet_that_samples_often_is_polled_at_its_pace() -> None:
    times = [1000 * second for second in range(0, 80, 4)]
    watched = await polled([memory(5e6, time) for time in times], len(times))
    assert set(watched.pauses.seconds[1:]) == {poller.SOON}


async def test_the_first_samples_of_a_container_say_nothing_of_the_interval() -> None:
    """A kubelet has a new one at each poll then."""
    started = 'container_start_time_seconds{container="app",namespace="shop",pod="web-1"} 1000\n'
    young = [started + memory(5e6, 1000 * (1000 + second)) for second in range(0, 30, 2)]
    watched = Watched({A: [*young, *(started + memory(5e6, time) for time in (1044000, 1059000, 1074000))]})
    watched.poller.watch({A: {WEB: APP}})
    await watched.polls(len(young))
    assert watched.poller.sampling(A) is None
    await watched.polls(5)
    watched.poller.stop()


async def test_the_interval_is_measured_once_containers_are_no_longer_young() -> None:
    """A kubelet with `--housekeeping-interval=1s`: the answers in the container's first half minute don't show that."""
    started = 'container_start_time_seconds{container="app",namespace="shop",pod="web-1"} 1000\n'
    times = [*range(1000, 1046, 2), *range(1046, 1100, 10)]
    watched = Watched({A: [started + memory(5e6, 1000 * time) for time in times]})
    watched.poller.watch({A: {WEB: APP}})
    await watched.polls(len(times))
    watched.poller.stop()
    assert set(watched.pauses.seconds[1 : len(times)]) == {poller.SOON}


async def test_a_kubelet_that_fails_is_asked_less_often_and_its_reason_is_kept() -> None:
    watched = Watched({A: [KubeletError("HTTP 403")]})
    watched.poller.watch({A: {WEB: APP}})
    await watched.polls(9)
    assert (watched.poller.problem(A), watched.poller.silent, watched.poller.nodes) == ("HTTP 403", 1, 1)
    assert watched.pauses.seconds[1:8] == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    watched.kubelets.answers[A][:] = [cpu(1.0625, 1000)]
    await until(lambda: not watched.poller.silent)
    watched.poller.stop()
    assert watched.problems == ["HTTP 403", ""]
    assert (watched.poller.problem(A), watched.poller.nodes) == ("", 0)


@pytest.mark.parametrize(
    ("times", "sampling"),
    [
        ([0, 0, 0], None),
        ([0, 2, 4, 6, 8, 10, 12, 14], 2.0),
        ([0, 0, 0, 0, 0, 14, 14, 30], None),  # too few
        ([0, 0, 0, 0, 0, 14, 14, 30, 44], 14.0),  # longer than the polls': the kubelet's own
        ([0, 2, 4, 90, 80, 82], 2.0),  # neither a gap of the polls nor a clock that was set back
    ],
)
async def test_how_often_a_kubelet_samples_is_measured(times: list[int], sampling: float | None) -> None:
    watched = Watched({A: [memory(5e6, 1000 * time) for time in times]})
    watched.poller.watch({A: {WEB: APP}})
    await watched.polls(len(times) + 1)
    assert watched.poller.sampling(A) == sampling
    watched.poller.stop()
    assert watched.poller.sampling(A) is None


async def test_a_kubelet_that_hangs_delays_no_other_node() -> None:
    class Hanging(Scripted):
        async def read(self, address: str, port: int) -> bytes:
            if address == A.address:
                await asyncio.Event().wait()
            return await super().read(address, port)

    kubelets = Hanging({B: [cpu(1.0625, 1000)]})
    polling = Poller(kubelets, Watched({}), Supervisor(), Pauses())
    polling.watch({A: {WEB: APP}, B: {WEB: APP}})
    await until(lambda: kubelets.polls.count(B) > 2)
    polling.stop()


async def test_only_nodes_with_wanted_pods_are_polled() -> None:
    watched = Watched({A: [cpu(1.0625, 1000)], B: [cpu(1.0625, 1000)]})
    watched.poller.watch({A: {WEB: APP}, B: {}})
    await watched.polls(3)
    assert set(watched.kubelets.polls) == {A}
    watched.poller.watch({B: {WEB: APP}})
    await watched.polls(1, B)
    polls = len(watched.kubelets.polls)
    await watched.polls(3, B)
    watched.poller.stop()
    assert set(watched.kubelets.polls[polls:]) == {B}


async def test_a_pod_that_comes_back_has_no_old_samples() -> None:
    def answer(seconds: float, time: int) -> str:
        return cpu(seconds, time) + cpu(seconds, time, pod=OTHER)

    watched = Watched({A: [answer(1.0625, 1000)]})
    watched.poller.watch({A: {WEB: APP, OTHER: APP}})
    await watched.polls(2)
    watched.poller.watch({A: {OTHER: APP}})
    await watched.polls(2)
    watched.kubelets.answers[A][:] = [answer(9.0625, 11000)]
    watched.poller.watch({A: {WEB: APP, OTHER: APP}})
    await watched.polls(3)
    watched.poller.stop()
    usage = {pod: containers["app"].cpu for news in watched.all_news for pod, containers in news.items()}
    assert usage == {WEB: None, OTHER: Rate(800, 11.0, 10.0)}
