"""Samples are read from a kubelet's answer, whatever else is in it."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from hvpa.core.fast.counters import Sample
from hvpa.kube.kubelets.answer import PodName, Usage, read_answer

ANSWER = b"""# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-1"} 49.894 1790706612345
container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-2"} 1.5 1790706610000
container_memory_working_set_bytes{container="app",namespace="shop",pod="web-1"} 3.1457280e+07 1790706612345
container_start_time_seconds{container="app",namespace="shop",pod="web-1"} 1.7907e+09
node_cpu_usage_seconds_total 1234.5 1790706612345
pod_cpu_usage_seconds_total{namespace="shop",pod="web-1"} 50.1 1790706615000
pod_memory_working_set_bytes{namespace="shop",pod="web-1"} 3.2e+07 1790706615000
resource_scrape_error 0
"""
WEB = PodName("shop", "web-1")
NAMES = st.text(string.ascii_lowercase + string.digits + "-.", min_size=1, max_size=20)


def test_samples_of_the_wanted_pods_are_read() -> None:
    whole = Usage(Sample(1790706615.0, 50.1), Sample(1790706615.0, 3.2e7))
    app = Usage(Sample(1790706612.345, 49.894), Sample(1790706612.345, 31457280.0), 1.7907e9)
    assert read_answer(ANSWER, {WEB: {"app"}}) == {WEB: {"app": app, "": whole}}
    assert read_answer(ANSWER, {WEB: {"other"}}) == {}


def test_the_pods_own_counter_counts_only_without_other_containers() -> None:
    """A native sidecar runs beside the app; so do ephemeral containers."""
    lines = (
        b'container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-1"} 1 1000',
        b'container_cpu_usage_seconds_total{container="mesh",namespace="shop",pod="web-1"} 2 1000',
        b'pod_cpu_usage_seconds_total{namespace="shop",pod="web-1"} 3 1000',
    )
    for text in (lines, lines[::-1]):
        assert read_answer(b"\n".join(text), {WEB: {"app"}}) == {WEB: {"app": Usage(Sample(1.0, 1.0))}}


def test_a_node_with_250_pods_is_read() -> None:
    lines = [
        f'container_cpu_usage_seconds_total{{container="c{number}",namespace="shop",pod="web-{pod}"}} 1.5 1000'
        for pod in range(250)
        for number in range(4)
    ]
    wanted = {
        PodName("shop", f"web-{pod}"): {f"c{number}" for number in range(4)} for pod in range(0, 250, 5)
    }
    found = read_answer("\n".join(lines).encode(), wanted)
    assert found.keys() == wanted.keys()
    assert all(len(containers) == 4 for containers in found.values())


def test_lines_that_are_not_as_expected_are_skipped() -> None:
    lines = [
        b'container_cpu_usage_seconds_total{namespace="shop",pod="web-1"} 1 1790706612345',  # no container
        b'pod_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-1"} 1 1790706612345',
        b'container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-1"} 1.2.3 1790706612345',
        b'container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-1"} 1',  # no time
        b'container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web-1"} NaN 1790706612345',
    ]
    assert read_answer(b"\n".join(lines), {WEB: {"app"}}) == {}


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read(text: bytes) -> None:
    assert read_answer(text, {WEB: {"app"}}) == {}
    read_answer(ANSWER[:200] + text + ANSWER[200:], {WEB: {"app"}})


@given(st.dictionaries(st.tuples(NAMES, NAMES, NAMES), st.tuples(st.floats(0, 1e12), st.integers(0, 10**13))))
def test_samples_are_those_that_were_written(written: dict[tuple[str, str, str], tuple[float, int]]) -> None:
    text = "".join(
        f'container_cpu_usage_seconds_total{{container="{container}",namespace="{namespace}",pod="{pod}"}}'
        f" {value!r} {time}\n"
        for (namespace, pod, container), (value, time) in written.items()
    )
    pods: dict[PodName, dict[str, Usage]] = {}
    for (namespace, pod, container), (value, time) in written.items():
        of_pod = pods.setdefault(PodName(namespace, pod), {})
        of_pod[container] = Usage(cpu=Sample(time / 1000, value))
    assert read_answer(text.encode(), pods) == pods
