"""The operator as a whole on a fake API server, with Hvpas made by chance: `python -m tests.fuzz operator
-max_total_time=600 [-seed=N]`. Needs no atheris.

Holds for whatever is drawn: no task of the operator ends in an exception, no reconcile crashes, no request leaves
the Hvpa's namespace and kinds, and no reconcile takes more than BUDGET of CPU. The dearest ones are reported.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hvpa.cli.run import add_arguments, run_settings
from hvpa.kube.client.credentials import Credentials
from hvpa.operator.operator import Operator, Parts
from hvpa.reconcile.ports import Key
from tests.fuzz.cluster import FakeCluster
from tests.fuzz.generate import Generator
from tests.unit.kube.fake_server import FakeServer, background, kubeconfig, until

AT_ONCE = 4
"""Namespaces that are there at once, each with one Hvpa."""
SETTLED = 0.25
"""Seconds for which an Hvpa is watched once it was decided on: its changes bring it back several times."""
UNREPORTED = 3.0
"""Seconds after which a status is waited for no longer."""
BUDGET = 0.05
"""Seconds of CPU that one reconcile may take (issue 36, requirement 1)."""
FLAGS = (
    "--metrics-bind-address=0",
    "--health-probe-bind-address=0",
    "--leader-elect",
    "--lease-namespace=default",
)


@dataclass
class Outcome:
    """What a run found."""

    rounds: int = 0
    requests: int = 0
    decided: int = 0
    faults: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    """Of Ready, as last reported of each Hvpa: what the objects were good for."""
    writes: Counter[str] = field(default_factory=Counter)
    dearest: float = 0.0
    dear: list[tuple[float, str]] = field(default_factory=list)
    """Reconciles over BUDGET: seconds and Hvpa; its namespace ends in its seed."""


class Run:
    """One operator, and namespaces that come and go."""

    def __init__(self, operator: Operator, cluster: FakeCluster, task: asyncio.Task[int]) -> None:
        self._operator, self._cluster, self._task = operator, cluster, task
        self.outcome = Outcome()
        queue = operator._work._queue
        done = queue.done

        def measured(key: Key, now: float, cost: float = 0.0) -> None:
            self.outcome.dearest = max(self.outcome.dearest, cost)
            self.outcome.decided += 1
            if cost > BUDGET:
                self.outcome.dear.append((cost, str(key)))
            done(key, now, cost)

        queue.done = measured  # type: ignore[method-assign]

    async def round(self, seed: int) -> None:
        """Create all of one Hvpa, and delete it once it was decided on some times."""
        namespace = f"ns-{seed}"
        objects = Generator(seed).objects(namespace)
        order = random.Random(seed)
        order.shuffle(objects)
        for kind, document in objects:
            self._cluster.put(kind, document)
            if order.random() < 0.2:
                await asyncio.sleep(0)
        with suppress(TimeoutError):  # of some, nothing is reported: their metadata says that they are going
            await until(lambda: self._task.done() or self._cluster.wrote_status(namespace), UNREPORTED)
        await asyncio.sleep(SETTLED)
        self.outcome.reasons[self._cluster.reason(namespace)] += 1
        self._cluster.empty(namespace)
        self.outcome.rounds += 1
        self._look(seed)

    def _look(self, seed: int) -> None:
        """Note what must not be, by the seed of the latest round."""
        faults = [f"request {fault}" for fault in self._cluster.faults]
        self._cluster.faults.clear()
        if self._task.done():
            faults.append(f"the operator ended: {self._task}")
        for family in self._operator.metrics.registry.collect():
            for sample in family.samples:
                is_crash = (
                    sample.name == "hvpa_write_failures_total" and sample.labels["outcome"] == "crashed"
                )
                if (is_crash or sample.name == "hvpa_task_failures_total") and sample.value:
                    faults.append(f"{sample.name} {dict(sample.labels)} {sample.value:.0f}")
        new = [fault for fault in faults if fault not in self.outcome.faults]
        self.outcome.faults += new
        for fault in new:
            print(f"seed {seed}, or one of the {AT_ONCE} before it: {fault}", file=sys.stderr)


async def fuzz(folder: Path, seconds: float, seed: int, rounds: int | None = None) -> Outcome:
    """Run for so long, or so many rounds."""
    cluster = FakeCluster()
    server = FakeServer(cluster.handle)
    server._serve = cluster.handle  # type: ignore[method-assign]  # keep no requests
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    async with server.running():
        path = kubeconfig(folder, server.url)
        settings = run_settings(parser.parse_args(["--kubeconfig", str(path), *FLAGS]))
        operator = Operator(settings, await Credentials.load(str(path)), Parts())
        end, seeds = time.monotonic() + seconds, iter(range(seed, seed + (rounds or 10**9)))
        async with background(operator.run()) as task:
            run = Run(operator, cluster, task)

            async def one_after_another() -> None:
                for number in seeds:
                    if time.monotonic() >= end or task.done():
                        return
                    await run.round(number)

            await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
            run._look(seed)
    run.outcome.requests, run.outcome.writes = cluster.requests, cluster.writes
    return run.outcome


def main(arguments: list[str]) -> int:
    """Fuzz for `-max_total_time` seconds from `-seed` on; 77 where something was found."""
    options = dict(argument.lstrip("-").split("=", 1) for argument in arguments if "=" in argument)
    seconds, seed = float(options.get("max_total_time", 60)), int(options.get("seed", time.time()))
    print(f"fuzzing the operator for {seconds:.0f} s from seed {seed}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="hvpa-fuzz-") as folder:
        outcome = asyncio.run(
            fuzz(Path(folder), seconds, seed, int(options["runs"]) if "runs" in options else None)
        )
    counts = f"{outcome.rounds} Hvpas, {outcome.decided} reconciles, {outcome.requests} requests"
    dear = f"{len(outcome.dear)} over {BUDGET * 1000:.0f} ms: {sorted(outcome.dear, reverse=True)[:5]}"
    dearest = f"dearest reconcile {outcome.dearest * 1000:.0f} ms of CPU, {dear}"
    print(f"{counts}, {len(outcome.faults)} faults; {dearest}", file=sys.stderr)
    print(f"Ready: {dict(outcome.reasons.most_common())}", file=sys.stderr)
    print(f"writes: {dict(outcome.writes.most_common())}", file=sys.stderr)
    return 77 if outcome.faults or outcome.dear else 0
