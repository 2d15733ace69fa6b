"""docs/decision.md: its ten worked examples are what the code decides, and what it names is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders import build
from hvpa.api.values.quantity import format_cpu, format_memory, parse_cpu, parse_memory
from hvpa.core import Decision
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.lately import Lately, Minute
from tests.unit.core.trajectory import jointly

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/decision.md").read_text()
SHOP: dict[str, Any] = yaml.safe_load(
    re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/joint-scaling.md").read_text(), re.DOTALL)[-1]
)["spec"]
"""The manifest that the examples are about."""
HEADER = "| | pods | current | usage | usual CPU | VPA's memory | also | decided | held |"
OF_APP = "cpu app/cpu"
"""What is remembered of the metric."""
Row = dict[str, str]


def rows() -> list[Row]:
    """The page's examples, by column."""
    _, separator, rest = PAGE.partition(f"\n{HEADER}\n")
    assert separator
    names, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (HEADER, *rest.partition("\n\n")[0].splitlines()[1:])
    )
    return [dict(zip(names, line, strict=True)) for line in lines]


# --- an example as objects -------------------------------------------------------------------------------------------
def sized(text: str) -> tuple[int, int, int]:
    """`3 × 500m, 1G`: replicas, millicores and bytes."""
    count, _, sizes = text.partition(" × ")
    cpu, _, memory = sizes.partition(", ")
    return int(count), parse_cpu(cpu), parse_memory(memory)


def status(row: Row, called_for: int) -> dict[str, Any]:
    """What the status has: the usual demand, and since when lower requests have been wanted."""
    time = build.stamp(build.NOW)
    mean = {"container": "app", "resource": "cpu", "mean": parse_cpu(row["usual CPU"]), "weight": 86400}
    vertical: dict[str, Any] = {
        "base": {"app": {"cpu": "500m", "memory": "1G"}},
        "usualDemand": [{**mean, "time": time, "present": called_for}],
    }
    if lower := re.fullmatch(r"lower (\w+) wanted for 6 h", row["also"]):
        since = {"direction": "down", "since": build.stamp(build.at(hours=-6))}
        vertical["pending"] = [{"container": "app", "resource": lower[1], **since}]
    return {"axes": {"vertical": vertical}}


def pods(row: Row, replicas: int, container: Mapping[str, Any]) -> list[Any]:
    """The pods, some of which may refuse to be resized."""
    refuse = re.fullmatch(r"(\d+) pods can't be resized", row["also"])
    pending = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    ready = {"type": "Ready", "status": "True"}
    change = {
        "status": {
            "conditions": [
                {**condition, "lastTransitionTime": build.LONG_AGO} for condition in (ready, pending)
            ]
        }
    }
    refusing = 0 if refuse is None else int(refuse[1])
    return [
        build.pod(f"web-{index}", containers=[container], change=change if index < refusing else None)
        for index in range(replicas)
    ]


def decided(row: Row) -> Decision:
    """What is decided in an example."""
    replicas, cpu, memory = sized(row["current"])
    used, container = parse_cpu(row["usage"]), jointly.app(f"{cpu}m", str(memory))
    each = ceil_div(used, replicas)
    readings = [jointly.utilization("cpu", 50, each * 100 // cpu, f"{each}m")]
    if queue := re.fullmatch(r"a queue needs (\d+) pods", row["also"]):
        readings.append(jointly.external(str(replicas), queue[1]))
    objects = jointly.state(
        replicas,
        [container],
        readings,
        {"app": {"cpu": "1", "memory": row["VPA's memory"]}},
        {**SHOP, "targetRef": build.SPEC["targetRef"]},
        status=status(row, used * 2),
        desired=min(6, jointly.as_desired(replicas, *readings)),
        hpa={"spec": {"maxReplicas": 6}},
        pods=pods(row, replicas, container),
    )
    if earlier := re.fullmatch(r"demand of (\w+) cores 3 min ago", row["also"]):
        minute = Minute(build.at(minutes=-3), parse_cpu(earlier[1]))
        now = {OF_APP: used * 2}
        lately = Lately(build.at(hours=-1), now, {OF_APP: (minute,)}, build.at(minutes=-2))
        objects = replace(objects, lately=lately)
    return build.decided(objects, resizes=row["pods"] == "resized")


@pytest.mark.parametrize("row", rows(), ids=[row[""] for row in rows()])
def test_an_example_is_what_is_decided(row: Row) -> None:
    decision = decided(row)
    sizes = jointly.requests(decision)
    done = f"{jointly.count(decision)} × {format_cpu(sizes['cpu'])}, {format_memory(sizes['memory'])}"
    held = ", ".join(f"{what} {reason}" for _, what, reason in jointly.held(decision))
    assert (done, held) == (row["decided"], row["held"].replace("`", ""))


def test_there_are_ten_examples() -> None:
    assert [row[""] for row in rows()] == [str(number) for number in range(1, 11)]


def test_what_implements_a_sentence_is_there() -> None:
    sentences = re.findall(
        r"^\d+\. (.*?)(?=^\d+\. |\n\n)", PAGE.partition("## The joint decision")[2], re.M | re.S
    )
    named = [re.findall(r"`(hvpa/[\w/]+\.py):(\w+)`", sentence) for sentence in sentences[:13]]
    assert len(named) == 13
    assert all(named)
    missing = [
        (path, name)
        for path, name in chain.from_iterable(named)
        if not re.search(rf"^\s*(?:def |class ){name}\b|^{name}: ", (ROOT / path).read_text(), re.M)
    ]
    assert missing == []
