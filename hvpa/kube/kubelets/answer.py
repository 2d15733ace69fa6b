"""A kubelet's answer at `/metrics/resource`, in the text format of Prometheus: the samples of some pods.

The format is that of `ResourceMetricsCollector` in pkg/kubelet/metrics/collectors/resource_metrics.go, with the labels
in the order of their names. Lines of other metrics, of other pods, and lines that are not as expected are skipped: a
kubelet may have any version.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final, NamedTuple

from hvpa.core.fast.counters import Sample

_LINE: Final = re.compile(
    rb"^(container|pod)_(cpu_usage_seconds_total|memory_working_set_bytes)"
    rb'\{(?:container="([^"\n]*)",)?namespace="([^"\n]*)",pod="([^"\n]*)"\} ([0-9.eE+-]{1,32}) ([0-9]{1,16})$',
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


def read_answer(text: bytes, wanted: Container[PodName]) -> dict[tuple[PodName, str], Usage]:
    """Returns the samples by pod and container ("": the whole pod), of the `wanted` pods."""
    found: dict[tuple[PodName, str], Usage] = {}
    for line in _LINE.finditer(text):  # one after the other: all at once take as much memory as the text
        name = PodName(line[4].decode(errors="replace"), line[5].decode(errors="replace"))
        if name not in wanted:
            continue
        scope, metric, container, _, _, value, time = line.groups(default=b"")
        if (scope == b"container") != bool(container):
            continue
        try:
            sample = Sample(int(time) / 1000, float(value))
        except ValueError:
            continue
        key = name, container.decode(errors="replace")
        before = found.get(key, Usage())
        found[key] = (
            before._replace(cpu=sample) if metric.startswith(b"cpu") else before._replace(memory=sample)
        )
    return found
