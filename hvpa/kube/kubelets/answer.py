"""A kubelet's answer at `/metrics/resource`, in the text format of Prometheus: the samples of some pods.

The format is that of `ResourceMetricsCollector` in pkg/kubelet/metrics/collectors/resource_metrics.go, with the labels
in the order of their names. Lines of other metrics, of other pods, and lines that are not as expected are skipped: a
kubelet may have any version.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Final, NamedTuple

from hvpa.core.fast.counters import Sample

_LINE: Final = re.compile(
    rb"^(container|pod)_(cpu_usage_seconds_total|memory_working_set_bytes|start_time_seconds)"
    rb'\{(?:container="([^"\n]*)",)?namespace="([^"\n]*)",pod="([^"\n]*)"\} ([0-9.eE+-]{1,32})(?: ([0-9]{1,16}))?$',
    re.MULTILINE,
)


class PodName(NamedTuple):
    """Namespace and name of a pod."""

    namespace: str
    name: str


class Usage(NamedTuple):
    """What a kubelet measured of a container, or of a whole pod."""

    cpu: Sample | None = None
    """CPU seconds that it has used since it started."""
    memory: Sample | None = None
    """Bytes of its working set."""
    started: float | None = None
    """When it started (seconds since 1970, by the node's clock)."""


def read_answer(text: bytes, wanted: Mapping[PodName, Container[str]]) -> dict[PodName, dict[str, Usage]]:
    """Returns the samples by pod and container ("": the whole pod), of the `wanted` pods and their containers. A pod
    with other containers as well (native sidecars, ephemeral containers) has none of the whole pod."""
    found: dict[PodName, dict[str, Usage]] = {}
    mixed: set[PodName] = set()
    for line in _LINE.finditer(text):  # one after the other: all at once take as much memory as the text
        name = PodName(line[4].decode(errors="replace"), line[5].decode(errors="replace"))
        if (containers := wanted.get(name)) is None:
            continue
        scope, metric, container, _, _, value, time = line.groups(default=b"")
        of = container.decode(errors="replace")
        if (scope == b"container") != bool(of):
            continue
        if of and of not in containers:
            mixed.add(name)
            continue
        try:
            sample = Sample(int(time or b"0") / 1000, float(value))
        except ValueError:
            continue
        before = found.get(name, {}).get(of, Usage())
        if metric.startswith(b"start"):
            found.setdefault(name, {})[of] = before._replace(started=sample.value)
        elif time:
            is_cpu = metric.startswith(b"cpu")
            now = before._replace(cpu=sample) if is_cpu else before._replace(memory=sample)
            found.setdefault(name, {})[of] = now
    for name in mixed & found.keys():
        found[name].pop("", None)
    return {name: containers for name, containers in found.items() if containers}
