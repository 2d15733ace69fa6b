"""The past usage of all workloads at once: five queries over the metrics of cAdvisor and kube-state-metrics, each with
a value per day, so that neither their number nor their answers grow with the number of pods or samples.

Prometheus samples each day at the query resolution, as the VPA's recommender does when it reads its history from
there, and answers with the day's mean, highest value or percentile.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from typing import Final

from hvpa.api.values.duration import DAY
from hvpa.cli.errors import CommandError
from hvpa_lab.prometheus.flags import Window
from hvpa_lab.prometheus.past import KIND, NAME, NAMESPACE, Past, past_usage
from hvpa_lab.prometheus.server import CPU, MEMORY, RATE, Server, connected, quoted
from hvpa_lab.simulate.load.series import readable_length

DAYS_AT_ONCE: Final = 5
"""Days in a query: Prometheus loads at most 50 million samples for a query (`--query.max-samples`)."""
PERCENTILE: Final = 0.9
"""The VPA's `target-cpu-percentile`."""
_METRICS: Final = (CPU, MEMORY, "kube_pod_owner", "kube_replicaset_owner")
_WORKLOAD: Final = f"{NAMESPACE}, {KIND}, {NAME}"
_OWNER: Final = 'owner_is_controller!="false", owner_kind!~"|<none>"'
_OWNED: Final = f"""
topk by (namespace, pod) (1,
  max by (pod, {_WORKLOAD}) (
    label_replace(
      kube_pod_owner{{owner_kind="ReplicaSet"{{also}}}}, "replicaset", "$1", "owner_name", "(.+)"
    )
    * on (namespace, replicaset) group_left ({KIND}, {NAME})
    topk by (namespace, replicaset) (1,
      max by (replicaset, {_WORKLOAD}) (kube_replicaset_owner{{{_OWNER}{{also}}}})
    )
  )
  or on (namespace, pod)
  max by (pod, {_WORKLOAD}) (kube_pod_owner{{{_OWNER}{{also}}}})
)"""
"""Each pod with its workload: the owner of its ReplicaSet, or else its own owner. If a pod or a ReplicaSet has two
owners for some minutes, `topk` leaves a single owner, because Prometheus refuses to join both."""
_USED: Final = f"""
max by (namespace, pod, container) ({{metric}})
* on (namespace, pod) group_left ({KIND}, {NAME})
{{owned}}"""
_CONTAINERS: Final = '{container!="", container!="POD"{also}}'
_OF_CPU: Final = f"rate({CPU}{_CONTAINERS}[{RATE}])"
_OF_MEMORY: Final = f"{MEMORY}{_CONTAINERS}"
_PEAK_OF_MEMORY: Final = f"max_over_time({MEMORY}{_CONTAINERS}[{{step}}])"
"""A peak may be shorter than a step."""


def expressions(namespace: str | None, step: float) -> dict[str, str]:
    """The queries, each with a value per day."""
    also = "" if namespace is None else f', namespace="{quoted(namespace)}"'

    def used(metric: str) -> str:
        return _USED.replace("{metric}", metric).replace("{owned}", _OWNED.strip())

    cpu, memory, peak = used(_OF_CPU), used(_OF_MEMORY), used(_PEAK_OF_MEMORY)
    by_container = f"{_WORKLOAD}, container"
    pods = f"count by ({_WORKLOAD}) (max by (pod, {_WORKLOAD}) ({memory}))"
    queries = {
        "cpu": f"avg_over_time((sum by ({_WORKLOAD}) ({cpu})){{days}})",
        "memory": f"avg_over_time((sum by ({_WORKLOAD}) ({memory})){{days}})",
        "replicas": f"avg_over_time(({pods}){{days}})",
        "busiest cpu": f"quantile_over_time({PERCENTILE}, (max by ({by_container}) ({cpu})){{days}})",
        "busiest memory": f"max_over_time((max by ({by_container}) ({peak})){{days}})",
    }
    length = f"{round(step * 1000)}ms"  # PromQL has no fractions of a unit
    values = {"{days}": f"[1d:{length}]", "{step}": length, "{also}": also}
    for placeholder, value in values.items():
        queries = {name: query.replace(placeholder, value) for name, query in queries.items()}
    return queries


def fetch_past(args: argparse.Namespace, namespace: str | None, until: float) -> Past:
    """The past usage of all workloads of the namespace (None: of all). Raises CommandError if there is none or the
    answers are wrong, ClusterError if Prometheus can't be reached."""
    days = int(args.since // DAY)
    window = Window(days * DAY, until // args.step * args.step, args.step)
    return asyncio.run(_fetched(args, namespace, window, days))


async def _fetched(args: argparse.Namespace, namespace: str | None, window: Window, days: int) -> Past:
    queries = expressions(namespace, window.step)
    async with connected(args) as server:
        usage = past_usage(await server.series(queries, spans(window.until, days), DAY))
        if not usage:
            raise CommandError(await _why_empty(server, namespace, window))
    return Past(args.prometheus, days, usage)


def spans(until: float, days: int) -> Iterator[tuple[float, float]]:
    """First and last end of a day of each query, oldest first."""
    for first in range(days - 1, -1, -DAYS_AT_ONCE):
        yield until - first * DAY, until - max(0, first - DAYS_AT_ONCE + 1) * DAY


async def _why_empty(server: Server, namespace: str | None, window: Window) -> str:
    matchers = "" if namespace is None else f'namespace="{quoted(namespace)}"'
    problems = await server.missing(_METRICS, matchers, window)
    if not problems:
        problems.append(
            "it has these metrics, but no pod with an owner has usage: check the labels namespace and pod"
        )
    within = readable_length(window.since)
    return f"Prometheus at {server.url}: no usage of any workload in the last {within}: {'; '.join(problems)}"
