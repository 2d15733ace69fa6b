"""A Prometheus server: its requests, and its errors in words."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import msgspec
from yarl import URL

from hvpa.api.values.text import printable
from hvpa.cli.errors import ClusterError, CommandError
from hvpa_lab.prometheus.flags import Window
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.answers import PrometheusSeries, merged, series_in

RATE: Final = "5m"
"""Window of the CPU rate: it covers four scrapes a minute apart, as Prometheus' documentation recommends."""
CPU: Final = "container_cpu_usage_seconds_total"
MEMORY: Final = "container_memory_working_set_bytes"


def quoted(text: str) -> str:
    """The text as it stands between the double quotes of a PromQL string. Example: `a\\"b` of `a"b`."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def one_line(query: str) -> str:
    """A query for messages."""
    return " ".join(query.split())


class Server:
    """An open connection to the server."""

    def __init__(self, url: str, session: aiohttp.ClientSession, timeout: float, has_token: bool) -> None:
        self.url = url
        self._session, self._timeout, self._has_token = session, timeout, has_token

    async def series(
        self, queries: Mapping[str, str], spans: Iterable[tuple[float, float]], step: float
    ) -> dict[str, list[PrometheusSeries]]:
        """The series of range queries by name, each from the first to the last time of every span: all queries of a
        span at once. Raises CommandError if an answer is an error, ClusterError if there is none."""
        chunks: dict[str, list[list[PrometheusSeries]]] = {name: [] for name in queries}
        for first, last in spans:
            window = {"start": f"{first:.3f}", "end": f"{last:.3f}", "step": f"{step:g}"}
            bodies = await asyncio.gather(
                *(
                    self._post("query_range", {"query": query, **window}, name)
                    for name, query in queries.items()
                )
            )
            for (name, query), body in zip(queries.items(), bodies, strict=True):
                try:
                    chunks[name].append(series_in(name, body))
                except ScenarioError as error:
                    raise CommandError(
                        f"Prometheus at {self.url}: {error}; query: {one_line(query)}"
                    ) from error
        return {name: merged(series_lists) for name, series_lists in chunks.items()}

    async def missing(self, metrics: Sequence[str], matchers: str, window: Window) -> list[str]:
        """The metrics that the server lacks, in words: each without series that match, with the labels that it has."""
        problems = []
        for metric in metrics:
            selector = f"{metric}{{{matchers}}}"
            if await self._labels(selector if matchers else metric, window) is not None:
                continue
            labels = await self._labels(metric, window) if matchers else None
            if labels is None:
                problems.append(f"it has no metric {metric}")
            else:
                shown = ", ".join(sorted(labels)[:20])
                problems.append(f"it has no {selector}, but {metric} with the labels {shown}")
        return problems

    async def _labels(self, selector: str, window: Window) -> list[str] | None:
        """The labels of a series that matches; None if no series matches."""
        form = {
            "match[]": selector,
            "limit": "1",
            "start": f"{window.until - window.since:.3f}",
            "end": f"{window.until:.3f}",
        }
        body = await self._post("series", form, selector)
        try:
            answer = msgspec.json.decode(body, type=_Found)
        except msgspec.MsgspecError:
            return None
        return [label for label in answer.data[0] if label != "__name__"] if answer.data else None

    async def _post(self, path: str, form: Mapping[str, str], name: str) -> bytes:
        """The body of a response, including a response that reports a problem of the query."""
        url = URL(self.url.rstrip("/") + f"/api/v1/{path}")
        try:
            async with self._session.post(url, data=form) as response:
                body = await response.read()
        except TimeoutError:
            raise ClusterError(
                f"Prometheus at {self.url} did not answer within {self._timeout:g}s to the query for {name}:"
                " try a larger --timeout, or a larger --step"
            ) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ClusterError(f"can't reach Prometheus at {self.url}: {error}") from error
        if response.status in (401, 403):
            hint = "give another --prometheus-token" if self._has_token else "give --prometheus-token"
            raise ClusterError(f"Prometheus at {self.url} answers {response.status}: {hint}")
        if response.status >= 300 and not body.lstrip().startswith(b"{"):
            text = printable(body[:100].decode("utf-8", "replace")) or "nothing"
            raise ClusterError(f"Prometheus at {self.url} answers {response.status} to {url.path}: {text}")
        return body


class _Found(msgspec.Struct):
    """The used fields of a response about series."""

    data: list[dict[str, str]] = []


@asynccontextmanager
async def connected(args: argparse.Namespace) -> AsyncIterator[Server]:
    """The server of the command line. Raises CommandError."""
    token = ""
    if args.prometheus_token is not None:
        try:
            token = args.prometheus_token.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(
                f"--prometheus-token: {args.prometheus_token} can't be read: {error}"
            ) from None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=args.timeout)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, trust_env=True) as session:
        yield Server(args.prometheus, session, args.timeout, bool(token))
