"""docs/joint-scaling.md as its tests read it: its tables and manifests, and what the code makes of these."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from builders import build
from hvpa.api.values.quantity import format_cpu, format_memory, parse_cpu, parse_memory
from hvpa.core import Decision
from hvpa.core.path.path import Path as ScalingPath
from hvpa.core.path.path import ResourceKey
from hvpa.core.trajectory.config import path_of
from hvpa.core.values.arithmetic import RequestBounds, ceil_div
from hvpa.core.values.weight import Bounds
from hvpa.core.workload.containers import ContainerResource
from tests.unit.core.trajectory import jointly

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "joint-scaling.md").read_text()
ONE_LINE = " ".join(PAGE.split())
CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")
GIB, GIGA = 1024**3, 10**9
BLOCKS: list[dict[str, Any]] = [
    yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
]
FIVE_ROWS, WEIGHTS, WRITTEN, BASE_USAGE, SHOP = BLOCKS
Row = dict[str, str]
Pods = tuple[int, int, int]
"""How many, and what each requests: millicores, bytes."""


class Usually(NamedTuple):
    """What the status remembers: the mean CPU demand of all pods (millicores), and the mean count."""

    cpu: int
    replicas: float


def table(header: str) -> list[Row]:
    """The rows of the page's table that begins with this header, by column (a second column of a name gets a `'`)."""
    _, _, rest = PAGE.partition(f"\n{header}\n")
    assert rest, header
    names: list[str] = []
    for cell in _cells(header):
        names.append(f"{cell}'" if cell in names else cell)
    lines = rest.partition("\n\n")[0].splitlines()[1:]
    return [dict(zip(names, _cells(line), strict=True)) for line in lines]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def pods(count: int, cpu: int, memory: int | None = None) -> str:
    """Pods as the page writes them."""
    return f"{count} × {format_cpu(cpu)}" + ("" if memory is None else f", {format_memory(memory)}")


def read_pods(text: str) -> Pods:
    """The pods that the page writes; memory 1G where it names none."""
    count, _, sizes = text.partition(" × ")
    cpu, _, memory = sizes.partition(", ")
    return int(count), parse_cpu(cpu), parse_memory(memory or "1G")


# --- what the code makes of it ---
def path(change: Mapping[str, Any], base: int, upper: int, counts: Bounds, memory: int = 0) -> ScalingPath:
    """The path of an Hvpa with minAllowed `base` and maxAllowed `upper` (millicores)."""
    spec = build.hvpa({"blend": "Trajectory", "weightBasedScalingIntervals": None, **change}).spec
    assert spec is not None
    items = [ContainerResource("app", "cpu", base, None, base, RequestBounds(base, upper), True)]
    if memory:
        items.append(ContainerResource("app", "memory", memory, None, memory, RequestBounds(), True))
    return path_of(spec, items, {CPU: base, MEMORY: memory}, counts, vertical_only=False)


def decided(
    there: Pods,
    used: int,
    usual: Usually,
    targets: Mapping[str, str],
    change: Mapping[str, Any] | None = None,
    axes: Mapping[str, Any] | None = None,
) -> Decision:
    """What is decided about the page's manifest: pods that are there, CPU that all of them use (millicores), the usual
    demand, and the VPA's targets; a `change` of the spec, and what `axes` remember besides."""
    replicas, cpu, memory = there
    each = ceil_div(used, replicas)
    reading = jointly.utilization("cpu", 50, each * 100 // cpu, f"{each}m")
    means = {"container": "app", "resource": "cpu", "mean": usual.cpu, "weight": 86400, "present": used * 2}
    time = build.stamp(build.NOW)
    counts = {"mean": usual.replicas, "weight": 3 * 86400, "time": time, "replicas": replicas}
    known = {
        "base": {"app": {"cpu": "500m", "memory": "1G"}},
        "usualDemand": [{**means, "time": time}],
        "usualReplicas": counts,
    }
    asked = build.merged(SHOP["spec"], change or {})
    asked.setdefault("weightBasedScalingIntervals", None)
    return build.decided(
        jointly.state(
            replicas,
            [jointly.app(f"{cpu}m", str(memory))],
            [reading],
            {"app": targets},
            {**asked, "targetRef": build.SPEC["targetRef"]},
            status={"axes": build.merged({"vertical": known}, axes or {})},
            desired=min(6, jointly.as_desired(replicas, reading), ceil_div(used * 2, cpu)),
            hpa={"spec": {"maxReplicas": 6}},
        )
    )


PLAIN = {"cpu": "1", "memory": "1G"}


def short_for(minutes: int) -> dict[str, Any]:
    """The axes where more CPU is wanted for so long."""
    since = build.stamp(build.at(minutes=-minutes))
    waits = {"container": "app", "resource": "cpu", "direction": "up", "since": since}
    return {"vertical": {"pending": [waits]}}


def result(decision: Decision) -> Pods:
    """What is set."""
    sizes = jointly.requests(decision)
    return jointly.count(decision), sizes["cpu"], sizes["memory"]


def wanted(decision: Decision) -> Pods:
    """What is wanted while nothing is held."""
    point = jointly.view(decision).wanted
    return point.replicas, point.sizes[CPU], point.sizes[MEMORY]
