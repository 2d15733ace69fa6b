"""A workload's history from a Prometheus: range queries over the metrics of cAdvisor and kube-state-metrics, or over
the user's own expressions.

A query is split into days, so that no response comes near Prometheus' limit of 11,000 values per series.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec
import yaml
from yarl import URL

from hvpa.api.values.duration import DAY
from hvpa.api.values.text import printable
from hvpa.cli.errors import ClusterError, CommandError
from hvpa_lab.init.source.present import Present
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.answers import (
    LOAD,
    REQUIRED,
    STARTS,
    PrometheusSeries,
    history_of,
    merged,
    missing_expressions,
    series_in,
)
from hvpa_lab.simulate.history.record import History
from hvpa_lab.simulate.load.series import readable_length

RATE: Final = "5m"
"""Window of the CPU rate: it covers four scrapes a minute apart, as Prometheus' documentation recommends."""
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
_CPU: Final = "container_cpu_usage_seconds_total"
_MEMORY: Final = "container_memory_working_set_bytes"
_READY: Final = {
    "Deployment": "kube_deployment_status_replicas_ready",
    "StatefulSet": "kube_statefulset_status_replicas_ready",
    "ReplicaSet": "kube_replicaset_status_ready_replicas",
    "ReplicationController": "kube_replicationcontroller_status_ready_replicas",
}
"""The metric for the number of ready pods, by kind."""
_READY_PODS: Final = "kube_pod_status_ready"
"""The metric for ready pods; for a custom kind, kube-state-metrics has no metric for their number."""


class Asked(NamedTuple):
    """The parameters of the queries."""

    url: str
    """The address of Prometheus."""
    token: str
    queries: Mapping[str, str]
    """The user's own expressions."""
    since: float
    """How far back to query, in seconds."""
    until: float
    """End of the query, in Unix seconds."""
    step: float
    """Query resolution, in seconds."""
    timeout: float
    """Timeout of a response, in seconds."""


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
        "cpu": used(f"rate({_CPU}{_CONTAINERS}[{RATE}])"),
        "memory": used(f"{_MEMORY}{_CONTAINERS}"),
        "replicas": replicas,
        STARTS: _THROTTLED.replace("{containers}", _CONTAINERS).replace("{pods}", pods).strip(),
    }


def quoted(text: str) -> str:
    """The text as it stands between the double quotes of a PromQL string. Example: `a\\"b` of `a"b`."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


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
    return (_CPU, _MEMORY, _READY.get(kind, _READY_PODS), *owners)


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


def fetch_history(asked: Asked, present: Present) -> History:
    """The history. Raises CommandError if data are missing or wrong, ClusterError if Prometheus can't be reached."""
    return asyncio.run(_History(asked, present).fetched())


def spans(since: float, until: float, step: float) -> Iterator[tuple[float, float]]:
    """First and last time of each query: a day's worth of steps, at most MOST."""
    count = int((until - since) // step) + 1
    per_query = max(1, min(MOST, int(DAY // step)))
    for first in range(0, count, per_query):
        last = min(first + per_query, count) - 1
        yield since + first * step, since + last * step


class _History:
    def __init__(self, asked: Asked, present: Present) -> None:
        self._asked = asked
        self._present = present
        self._expressions = expressions(present, asked.queries)

    async def fetched(self) -> History:
        asked = self._asked
        headers = {"Authorization": f"Bearer {asked.token}"} if asked.token else {}
        timeout = aiohttp.ClientTimeout(total=asked.timeout)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout, trust_env=True) as session:
            chunks: dict[str, list[list[PrometheusSeries]]] = {name: [] for name in self._expressions}
            for first, last in spans(asked.until - asked.since, asked.until, asked.step):
                texts = await asyncio.gather(
                    *(self._range(session, name, first, last) for name in self._expressions)
                )
                for name, text in zip(self._expressions, texts, strict=True):
                    chunks[name].append(self._read(name, text))
            answers = {name: merged(series_lists) for name, series_lists in chunks.items()}
            if empty := missing_expressions(answers):
                raise CommandError(await self._why_empty(session, empty))
        try:
            return history_of(f"Prometheus at {asked.url}", answers, self._present.shares())
        except ScenarioError as error:
            raise CommandError(str(error)) from error

    def _read(self, name: str, text: bytes) -> list[PrometheusSeries]:
        try:
            return series_in(name, text)
        except ScenarioError as error:
            asked = f"; query: {self._one_line(name)}"
            raise CommandError(f"Prometheus at {self._asked.url}: {error}{asked}") from error

    def _one_line(self, name: str) -> str:
        return " ".join(self._expressions[name].split())

    async def _range(self, session: aiohttp.ClientSession, name: str, first: float, last: float) -> bytes:
        query = {"query": self._expressions[name], "start": f"{first:.3f}", "end": f"{last:.3f}"}
        return await self._post(session, "query_range", {**query, "step": f"{self._asked.step:g}"}, name)

    async def _post(
        self, session: aiohttp.ClientSession, path: str, form: Mapping[str, str], name: str
    ) -> bytes:
        """The body of a response, including a response that reports a problem of the query."""
        asked = self._asked
        url = URL(asked.url.rstrip("/") + f"/api/v1/{path}")
        try:
            async with session.post(url, data=form) as response:
                body = await response.read()
        except TimeoutError:
            raise ClusterError(
                f"Prometheus at {asked.url} did not answer within {asked.timeout:g}s to the query for {name}:"
                " try a larger --timeout, or a larger --step"
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ClusterError(f"can't reach Prometheus at {asked.url}: {error}") from error
        if response.status in (401, 403):
            hint = "give another --prometheus-token" if asked.token else "give --prometheus-token"
            raise ClusterError(f"Prometheus at {asked.url} answers {response.status}: {hint}")
        if response.status >= 300 and not body.lstrip().startswith(b"{"):
            text = printable(body[:100].decode("utf-8", "replace")) or "nothing"
            raise ClusterError(f"Prometheus at {asked.url} answers {response.status} to {url.path}: {text}")
        return body

    # --- missing data ---------------------------------------------------------------------------------------------
    async def _why_empty(self, session: aiohttp.ClientSession, empty: list[str]) -> str:
        """The missing data: the metric, this workload's series, or the values of the user's own expression."""
        asked, present = self._asked, self._present
        within = f"in the last {readable_length(asked.since)}"
        reasons = []
        for name in empty:
            if name in asked.queries:
                reasons.append(f"{name}: the expression {self._one_line(name)} has no values {within}")
        standards = [name for name in empty if name not in asked.queries]
        if standards:
            reasons.append(
                f"no values for {', '.join(standards)} of {present.title} {within}:"
                f" {await self._what_is_there(session)}"
            )
        return f"Prometheus at {asked.url}: {'; '.join(reasons)}"

    async def _what_is_there(self, session: aiohttp.ClientSession) -> str:
        """The standard metrics that have series, with their labels."""
        problems = []
        for metric in _metrics(self._present.workload.kind):
            namespaced = f'{metric}{{namespace="{quoted(self._present.namespace)}"}}'
            if await self._labels(session, namespaced) is not None:
                continue
            labels = await self._labels(session, metric)
            if labels is None:
                problems.append(f"it has no metric {metric}")
            else:
                problems.append(
                    f"it has no {namespaced}, but {metric} with the labels {', '.join(sorted(labels)[:20])}"
                )
        if not problems:
            problems.append("it has the metrics of this namespace, but none of this workload's pods")
        return f"{'; '.join(problems)}. --queries names other expressions (docs/init.md)"

    async def _labels(self, session: aiohttp.ClientSession, selector: str) -> list[str] | None:
        """The labels of a series that matches; None if no series matches."""
        asked = self._asked
        form = {
            "match[]": selector,
            "limit": "1",
            "start": f"{asked.until - asked.since:.3f}",
            "end": f"{asked.until:.3f}",
        }
        body = await self._post(session, "series", form, selector)
        try:
            answer = msgspec.json.decode(body, type=_Found)
        except msgspec.MsgspecError:
            return None
        return [label for label in answer.data[0] if label != "__name__"] if answer.data else None


class _Found(msgspec.Struct):
    """The used fields of a response about series."""

    data: list[dict[str, str]] = []


def asked_of(args: argparse.Namespace, until: float) -> Asked:
    """The parameters from the command line. Raises CommandError."""
    token = ""
    if args.prometheus_token is not None:
        try:
            token = args.prometheus_token.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(
                f"--prometheus-token: {args.prometheus_token} can't be read: {error}"
            ) from None
    queries = {} if args.queries is None else read_queries(args.queries)
    if args.load is not None:
        queries[LOAD] = args.load
    step = args.step
    return Asked(
        args.prometheus, token, queries, args.since // step * step, until // step * step, step, args.timeout
    )
