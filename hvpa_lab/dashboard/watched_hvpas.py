"""The Hvpas that are viewed: each is read when it changes and every few seconds, like `hvpa status`, `hvpa explain`
and `hvpa history` read it. Recent measurements are kept in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from hvpa.cli.errors import CommandError, plain_line
from hvpa.cli.explain.json import as_json as explained
from hvpa.cli.history import as_json as history_of
from hvpa.cli.history import entries_of, read_events
from hvpa.cli.input.live import Reader
from hvpa.cli.input.operator import DEFAULT_LEASE, operator_state
from hvpa.cli.output import Json
from hvpa.cli.status import as_json as status_of
from hvpa.cli.status import view_of
from hvpa.core import decide, observe
from hvpa.core.model import Objects, Settings
from hvpa.core.workload.selector import selector_text
from hvpa.kube.client.errors import ApiError, Unreachable
from hvpa.kube.client.transport import Transport
from hvpa.kube.clock import SystemClock
from hvpa.kube.objects.usage import Usage, read_usage
from hvpa.kube.server.fair_limit import FairLimit
from hvpa.reconcile.ports import Key
from hvpa_lab.dashboard.board import Board
from hvpa_lab.dashboard.sample import sample
from hvpa_lab.plot.path import path

PERIOD: Final = 5.0
"""Seconds between reads: metrics-server measures every 15."""
AT_LEAST: Final = 1.0
"""Minimum seconds between reads, however often the Hvpa changes."""
SAMPLES: Final = 1440
"""Maximum samples of an Hvpa with few containers: two hours, some 3 MB."""
CONTAINERS: Final = 4
"""Containers up to which SAMPLES are kept; with more containers, fewer samples, so that memory stays similar."""
KEPT: Final = 600.0
"""Seconds for which an Hvpa is still read after the last page that shows it was closed."""
MOST: Final = 16
"""Maximum Hvpas that are read at the same time. Beyond it, an Hvpa without a page, or of the user with the most
Hvpas, is displaced."""


class WatchedHvpas:
    """The Hvpas that are read, by key, until `close`."""

    def __init__(self, transport: Transport, settings: Settings, lease: Key = DEFAULT_LEASE) -> None:
        """`lease`: the operator's Lease."""
        self._lease = lease
        self._transport = transport
        self._settings = settings
        self._watched: dict[Key, WatchedHvpa] = {}
        self._limit: FairLimit[Key] = FairLimit(
            MOST, MOST, lambda key: not self._watched[key].board.followers
        )

    def at(self, key: Key, owner: str = "") -> WatchedHvpa:
        """The watched Hvpa of this key, read from now on if it was not, on the account of `owner`."""
        if key in self._watched:
            self._limit.used(key)
            return self._watched[key]
        displaced = self._limit.add(key, owner)
        if displaced is not None:
            self._end(displaced)
        watched = self._watched[key] = WatchedHvpa(self._transport, key, self._settings, self._lease)
        watched.task = asyncio.create_task(self._run(watched))
        return watched

    def changed(self, key: Key) -> None:
        """Note that this Hvpa, or an object of it, changed."""
        if key in self._watched:
            self._watched[key].changed.set()

    async def close(self) -> None:
        """Stop reading all Hvpas."""
        tasks = [watched.task for watched in self._watched.values() if watched.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, key: Key) -> None:
        watched = self._watched.pop(key)
        watched.board.end()
        if watched.task is not None:
            watched.task.cancel()

    async def _run(self, watched: WatchedHvpa) -> None:
        await watched.run()
        if self._watched.get(watched.key) is watched:  # else it has just been displaced
            self._limit.discard(watched.key)
            del self._watched[watched.key]


class WatchedHvpa:
    """An Hvpa that is read repeatedly: `board` has the content of its page."""

    def __init__(self, transport: Transport, key: Key, settings: Settings, lease: Key) -> None:
        self.board = Board()
        self.key = key
        self.samples: deque[Json] = deque()
        """The samples of at most the last two hours, oldest first."""
        self.objects: Objects | None = None
        """The objects that were read last."""
        self.changed = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._transport = transport
        self._settings = settings
        self._lease = lease

    async def run(self) -> None:
        """Read the Hvpa until no page has shown it for KEPT seconds."""
        idle = 0.0
        while idle < KEPT:
            self.board.put("problem", await self._problem())
            await asyncio.sleep(AT_LEAST)
            with suppress(TimeoutError):
                async with asyncio.timeout(PERIOD - AT_LEAST):
                    await self.changed.wait()
            self.changed.clear()
            idle = 0.0 if self.board.followers else idle + PERIOD

    async def _problem(self) -> str | None:
        """Read the Hvpa; returns the problem, or None."""
        try:
            await self._read()
        except Unreachable as error:
            return f"no response from the cluster; trying again: {plain_line(error)}"
        except (CommandError, ApiError) as error:
            return plain_line(error)
        except Exception as error:  # one strange object must not end the page of all others
            return f"internal error: {type(error).__name__}: {plain_line(error)}"
        return None

    async def _read(self) -> None:
        reader = Reader(self._transport, self.key.namespace, self._settings.vpa_period)
        objects, operator = await asyncio.gather(
            reader.objects(self.key.name), operator_state(self._transport, self._lease, self.key)
        )
        usage, unmeasured = await self._usage(objects)
        events, unread = await read_events(reader, objects.hvpa.metadata)
        observation = observe(objects, SystemClock().now(), self._settings)
        decision = decide(observation)
        view = view_of(objects, observation)._replace(operator=operator)
        self.objects = objects
        self._keep(sample(view, decision, usage))
        # Pods are in `status` already, and a patch's body does not belong on a page.
        unused = {"operator", "actuation", "resizes", "patch", "nextStatus", "reported"}
        explanation = {
            name: part for name, part in explained(observation, decision).items() if name not in unused
        }
        parts = {
            "status": status_of(view),
            "explain": {**explanation, "steps": list(decision.steps)},
            "history": history_of(objects.hvpa, entries_of(objects.hvpa, events), unread),
            "path": path(decision),
            "unmeasured": unmeasured or None,
            "sample": self.samples[-1],
        }
        for name, content in parts.items():
            self.board.put(name, content)

    def _keep(self, newest: Json) -> None:
        """Keep a sample and drop the oldest."""
        containers = max(CONTAINERS, len(newest["sizes"]), len(newest["used"]))
        self.samples.append(newest)
        while len(self.samples) > max(1, SAMPLES * CONTAINERS // containers):
            self.samples.popleft()

    async def _usage(self, objects: Objects) -> tuple[Usage, str]:
        """The usage of the pods, and why it is unknown (empty: it is known)."""
        workload = objects.workload
        selector = None if workload is None else selector_text(workload.spec.selector)
        if not selector:
            return {}, ""
        try:
            return await read_usage(self._transport, self.key.namespace, selector), ""
        except (ApiError, Unreachable) as error:
            return {}, f"pod usage can't be read from metrics.k8s.io: {plain_line(error)}"

    @property
    def recent(self) -> Sequence[Json]:
        """The samples, with which a page draws its charts first."""
        return list(self.samples)
