"""A workload's history from a Prometheus: range queries over the metrics of cAdvisor and kube-state-metrics, or over
the user's own expressions.

A query is split into days, so that no response comes near Prometheus' limit of 11,000 values per series.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any, Final

import yaml

from hvpa.api.values.duration import DAY
from hvpa.cli.errors import CommandError
from hvpa_lab.init.source.present import Present
from hvpa_lab.prometheus.flags import window_of
from hvpa_lab.prometheus.server import CPU, MEMORY, RATE, Server, connected, one_line, quoted
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.answers import (
    LOAD,
    REQUIRED,
    STARTS,
    history_of,
    missing_expressions,
)
from hvpa_lab.simulate.history.record import History
from hvpa_lab.simulate.load.series import readable_length

MOST: Final = 10_000
"""Maximum values of a series in a response: Prometheus refuses more than 11,000."""
_OF_REPLICA_SETS: Final = """
max by (namespace, pod) (
  label_replace(
    kube_pod_owner{namespace="$namespace", owner_kind="ReplicaSet"}, "replicaset", "$$1", "owner_name", "(.+)"
  )
  * on (namespace, replicaset) group_left ()
  max by (namespace, replicaset) (
    kube_replicaset_owner{namespace="$namespace", owner_kind="$kind", owner_name="$name"}
  )
)"""
_OWN: Final = """
max by (namespace, pod) (
  kube_pod_owner{namespace="$namespace", owner_kind="$kind", owner_name="$name"}
)"""
_USED: Final = """
sum by (container) (
  max by (namespace, pod, container) ({metric})
  * on (namespace, pod) group_left ()
  {pods}
)"""
_THROTTLED: Final = """
avg by (container) (
  max by (namespace, pod, container) (
    container_cpu_cfs_throttled_periods_total{containers} / (container_cpu_cfs_periods_total{containers} > 0)
    and time() - container_start_time_seconds{containers} < 300
  )
  * on (namespace, pod) group_left ()
  {pods}
  unless on (namespace, pod)
  kube_pod_status_ready{namespace="$namespace", condition="true"} == 1
)"""
"""The share of its CPU periods in which a container was throttled, while it is younger than five minutes and its pod is
not ready. The counters begin at 0 with the container. All three metrics have the same labels, among them the
container's ID: Prometheus finds the metrics of a container that has ended for five minutes."""
_CONTAINERS: Final = '{namespace="$namespace", container!="", container!="POD"}'
_READY: Final = {
    "Deployment": "kube_deployment_status_replicas_ready",
    "StatefulSet": "kube_statefulset_status_replicas_ready",
    "ReplicaSet": "kube_replicaset_status_ready_replicas",
    "ReplicationController": "kube_replicationcontroller_status_ready_replicas",
}
"""The metric for the number of ready pods, by kind."""
_READY_PODS: Final = "kube_pod_status_ready"
"""The metric for ready pods; for a custom kind, kube-state-metrics has no metric for their number."""


def standard(kind: str) -> dict[str, str]:
    """The expressions over the standard metrics."""
    pods = _pods(kind)

    def used(metric: str) -> str:
        return _USED.replace("{metric}", metric).replace("{pods}", pods).strip()

    ready = _READY.get(kind)
    if ready is None:
        is_ready = f'{_READY_PODS}{{namespace="$namespace", condition="true"}}'
        replicas = f"sum(\n  max by (namespace, pod) ({is_ready})\n  * on (namespace, pod) group_left ()\n  {pods}\n)"
    else:
        replicas = f'max({ready}{{namespace="$namespace", {kind.lower()}="$name"}})'
    return {
        "cpu": used(f"rate({CPU}{_CONTAINERS}[{RATE}])"),
        "memory": used(f"{MEMORY}{_CONTAINERS}"),
        "replicas": replicas,
        STARTS: _THROTTLED.replace("{containers}", _CONTAINERS).replace("{pods}", pods).strip(),
    }


def _pods(kind: str) -> str:
    """An expression for the workload's pods, each with value 1: its own, or those of its ReplicaSets; for a custom
    kind, whichever exist."""
    if kind == "Deployment":
        return _OF_REPLICA_SETS.strip()
    if kind in _READY:
        return _OWN.strip()
    return f"({_OF_REPLICA_SETS} or {_OWN})"


def _metrics(kind: str) -> tuple[str, ...]:
    """The metrics in the expressions."""
    owners = (
        ("kube_pod_owner",)
        if kind in _READY and kind != "Deployment"
        else ("kube_pod_owner", "kube_replicaset_owner")
    )
    return (CPU, MEMORY, _READY.get(kind, _READY_PODS), *owners)


def expressions(present: Present, queries: Mapping[str, str]) -> dict[str, str]:
    """The expressions of this workload: the user's own replace the standard expressions.

    `$namespace`, `$name` and `$kind` are replaced by the workload's. If the user's own expression replaces `cpu`,
    `starts` is left out, because it may need other labels too.
    """
    kind = present.workload.kind
    texts = {**standard(kind), **queries}
    if "cpu" in queries:
        del texts[STARTS]
    values = {"namespace": quoted(present.namespace), "name": quoted(present.name), "kind": kind}
    return {name: Template(text).safe_substitute(values) for name, text in texts.items()}


def read_queries(path: Path) -> dict[str, str]:
    """The user's own expressions, from a YAML file with some of `cpu`, `memory`, `replicas` and `load`. Raises
    CommandError."""
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"--queries: {path} can't be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"--queries: {path} is not YAML: {error}") from None
    known = (*REQUIRED, LOAD)
    if not isinstance(content, dict) or not content:
        raise CommandError(f"--queries: {path}: must be an object with some of {', '.join(known)}")
    for name, text in content.items():
        if name not in known:
            raise CommandError(f"--queries: {path}: {name}: must be one of {', '.join(known)}")
        if not isinstance(text, str) or not text.strip():
            raise CommandError(f"--queries: {path}: {name}: must be an expression as text")
    return {str(name): text.strip() for name, text in content.items()}


def fetch_history(args: argparse.Namespace, present: Present, until: float) -> History:
    """The history. Raises CommandError if data are missing or wrong, ClusterError if Prometheus can't be reached."""
    queries = {} if args.queries is None else read_queries(args.queries)
    if args.load is not None:
        queries[LOAD] = args.load
    return asyncio.run(_History(args, present, queries, until).fetched())


def spans(since: float, until: float, step: float) -> Iterator[tuple[float, float]]:
    """First and last time of each query: a day's worth of steps, at most MOST."""
    count = int((until - since) // step) + 1
    per_query = max(1, min(MOST, int(DAY // step)))
    for first in range(0, count, per_query):
        last = min(first + per_query, count) - 1
        yield since + first * step, since + last * step


class _History:
    def __init__(
        self, args: argparse.Namespace, present: Present, queries: Mapping[str, str], until: float
    ) -> None:
        self._args, self._present, self._queries = args, present, queries
        self._window = window_of(args, until)
        self._expressions = expressions(present, queries)

    async def fetched(self) -> History:
        since, until, step = self._window
        async with connected(self._args) as server:
            by_name = await server.series(self._expressions, spans(until - since, until, step), step)
            if empty := missing_expressions(by_name):
                raise CommandError(await self._why_empty(server, empty))
        try:
            return history_of(f"Prometheus at {server.url}", by_name, self._present.shares())
        except ScenarioError as error:
            raise CommandError(str(error)) from error

    async def _why_empty(self, server: Server, empty: list[str]) -> str:
        """The missing data: the metric, this workload's series, or the values of the user's own expression."""
        present, within = self._present, f"in the last {readable_length(self._window.since)}"
        reasons = [
            f"{name}: the expression {one_line(self._expressions[name])} has no values {within}"
            for name in empty
            if name in self._queries
        ]
        standards = [name for name in empty if name not in self._queries]
        if standards:
            matchers = f'namespace="{quoted(present.namespace)}"'
            problems = await server.missing(_metrics(present.workload.kind), matchers, self._window)
            if not problems:
                problems.append("it has the metrics of this namespace, but none of this workload's pods")
            reasons.append(
                f"no values for {', '.join(standards)} of {present.title} {within}: {'; '.join(problems)}."
                " --queries names other expressions (docs/init.md)"
            )
        return f"Prometheus at {server.url}: {'; '.join(reasons)}"
