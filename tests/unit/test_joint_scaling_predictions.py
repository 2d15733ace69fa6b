"""docs/joint-scaling.md, "Predict it yourself": its answers are right, and so is everybody who follows its steps."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from builders import build
from hvpa.api.values.quantity import format_cpu, format_memory, parse_cpu
from hvpa.core.values.arithmetic import ceil_div
from tests.unit.core.trajectory import jointly
from tests.unit.joint_page import (
    CPU,
    GIGA,
    MEMORY,
    PLAIN,
    Pods,
    Row,
    Usually,
    decided,
    read_pods,
    result,
    short_for,
    table,
    wanted,
)


def test_the_lines_that_the_reader_writes_down() -> None:
    curves = jointly.view(decided((1, 500, GIGA), 100, Usually(500, 1), PLAIN)).path.curves
    rows = table("| replicas | cpu of each | serve | memory of each | serve |")
    assert len(rows) == 6
    for row in rows:
        cpu, memory = (curves[key].edge(int(row["replicas"])) for key in (CPU, MEMORY))
        assert [row["cpu of each"], row["serve"]] == [format_cpu(one or 0) for one in cpu]
        assert [row["memory of each"], row["serve'"]] == [format_memory(one or 0) for one in memory]


ANSWERS = table("| | now | usual memory | n₀ | replicas | cpu | memory |")


@pytest.mark.parametrize(
    ("asked", "answer"),
    list(
        zip(
            table("| | there is | pods use | usual cpu | mean replicas | VPA: cpu, memory |"),
            ANSWERS,
            strict=True,
        )
    ),
    ids=[row[""] for row in ANSWERS],
)
def test_the_five_demands(asked: Row, answer: Row) -> None:
    cpu, _, memory = asked["VPA: cpu, memory"].partition(", ")
    there, used = read_pods(asked["there is"]), parse_cpu(asked["pods use"])
    targets = {"cpu": cpu, "memory": memory}
    usual = Usually(parse_cpu(asked["usual cpu"]), float(asked["mean replicas"]))
    decision = decided(there, used, usual, targets)
    cpu, _, later = answer["cpu"].partition(", after 5 minutes ")
    items = {item.key: item for item in jointly.view(decision).items}
    assert answer[""] == asked[""]
    assert answer["now"] == format_cpu(items[CPU].present or 0)
    assert answer["usual memory"] == format_memory(items[MEMORY].usual or 0)
    assert int(answer["n₀"]) == max(items[key].usual_replicas or 0 for key in (CPU, MEMORY))
    assert read_pods(f"{answer['replicas']} × {cpu}, {answer['memory']}") == result(decision)
    assert [one.reason for one in decision.blocked] == (["SustainedDemand"] if later else [])
    if later:
        there, axes = result(decision), short_for(5)
        assert result(decided(there, used, usual, targets, None, short_for(4))) == there
        decision = decided(there, used, usual, targets, None, axes)
        assert read_pods(f"{answer['replicas']} × {later}, {answer['memory']}") == result(decision)
        assert not decision.blocked
    assert result(decided(result(decision), used, usual, targets)) == result(decision)  # and there it stays


SOON = build.at(minutes=5)


# --- who follows the steps -------------------------------------------------------------------------------------------
class Reader:
    """Somebody who has read the page, with its table of largest requests in mind. `vpa`: its CPU and memory targets."""

    cpus = (500, 1000, 1500, 2000, 2000, 2000)
    memories = tuple(one * GIGA for one in (1, 2, 3, 4, 4, 4))

    def __init__(self, there: Pods, now: int, usual: Usually, vpa: tuple[int, int]) -> None:
        self.there, self.now, self.cpu = there, now, usual.cpu
        ends = sorted((Fraction(usual.replicas), Fraction(self.lines(usual.cpu, 0)[0])))
        count = min(max(Fraction(usual.cpu, vpa[0]), ends[0]), ends[1])
        self.memory = math.ceil(vpa[1] * count)
        self.waits = False
        """Whether the CPU request is raised, but only after 5 minutes; known with the answer."""

    def answer(self) -> Pods:
        """Steps 3 to 6."""
        count, cpu, memory = self.there
        lines = self.lines(self.cpu, self.memory)
        larger = self.lines(tenth_more(self.cpu), tenth_more(self.memory))
        sizes = self.requests(max(lines))
        if any(self.stays(self.requests(one)) for one in range(max(lines), max(larger) + 1)):
            sizes = cpu, memory
        raised = sizes[0] > cpu
        if ceil_div(self.now, sizes[0]) > 6:
            sizes = min(2000, max(sizes[0], ceil_div(self.now, 6))), sizes[1]
        replaced = off(memory, sizes[1]) > 1 and abs(sizes[1] - memory) >= 200_000_000
        self.waits = sizes[0] > cpu and not raised and not replaced
        if off(cpu, sizes[0]) <= 1 and off(memory, sizes[1]) <= 1:
            sizes = cpu, memory
        needed = ceil_div(self.now, sizes[0])
        if needed >= count:
            replicas = needed if count * sizes[0] * 11 < self.now * 10 else count
        else:
            replicas = min(count, max(needed, ceil_div(tenth_more(self.now), sizes[0])))
        return max(1, min(6, replicas)), *sizes

    def lines(self, cpu: int, memory: int) -> tuple[int, int]:
        """The first lines that serve these."""
        found = [
            next((n for n, size in enumerate(sizes, 1) if n * size >= amount), 6)
            for sizes, amount in ((self.cpus, cpu), (self.memories, memory))
        ]
        return found[0], found[1]

    def requests(self, count: int) -> tuple[int, int]:
        """Usual demand over this count."""
        memory = ceil_div(ceil_div(self.memory, count), 1000) * 1000
        return min(2000, max(500, ceil_div(self.cpu, count))), min(4 * GIGA, max(GIGA, memory))

    def stays(self, sizes: tuple[int, int]) -> bool:
        """Whether what there is is near enough to these."""
        _, cpu, memory = self.there
        by_cpu, by_memory = self.lines(self.cpu, self.memory)
        takes = ceil_div(self.cpu, cpu) if by_cpu >= by_memory else ceil_div(self.memory, memory)
        shared = self.requests(max(1, min(6, takes)))[1]
        return off(cpu, sizes[0]) <= 2 and off(memory, sizes[1]) <= 2 and shared - memory <= memory // 10


def tenth_more(amount: int) -> int:
    """What, less 10 percent, is this amount."""
    return ceil_div(amount * 10, 9)


def off(there: int, size: int) -> float:
    """How far a request is off, in tenths of it."""
    return abs(size - there) / (there // 10)


@pytest.mark.parametrize("replicas", [1, 3, 4, 6])
def test_who_follows_the_steps_is_right(replicas: int) -> None:
    tried = waited = 0
    vpas = ((500, 500_000_000, 2), (500, GIGA, 8), (1000, 1_500_000_000, 4))
    for cpu, memory in product((500, 900, 2000), (GIGA, 4 * GIGA)):
        for now, usual, (target, of_memory, mean) in product(
            (340, 1700, 4400, 13000), (400, 2500, 9700), vpas
        ):
            there, known = (replicas, cpu, memory), Usually(usual, mean)
            used = ceil_div(now // 2, replicas) * replicas
            decision = decided(there, used, known, {"cpu": f"{target}m", "memory": str(of_memory)})
            reader = Reader(there, used * 2, known, (target, of_memory))
            answer, case = reader.answer(), (there, now, known, target, of_memory)
            assert wanted(decision) == answer, case
            told = [
                one.until
                for one in decision.blocked
                if (one.reason, one.direction) == ("SustainedDemand", "up")
            ]
            small = answer[1] - cpu < 200  # less than minChange: it may not come at all, or wait for that
            assert told in ([[], [SOON]] if reader.waits and small else [[SOON]] if reader.waits else [[]]), (
                case
            )
            waited += len(told)
            tried += 1
    assert (tried, waited > 0) == (216, True)
