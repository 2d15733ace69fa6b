"""Metrics that judge canaries are read in the background: how often, for whom, and at whose cost."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from builders.build import NOW, hvpa
from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.core.gates.verdict import metric_name
from hvpa.core.model import MetricValue
from hvpa.kube import service_metrics
from hvpa.kube.service_metrics import MOST, MOST_OF_NAMESPACE, ServiceMetrics
from hvpa.reconcile.ports import Key
from hvpa.reconcile.supervision import Supervisor

WEB, SHOP = Key("default", "web"), Key("default", "shop")


def metrics(*names: str) -> tuple[RollbackMetric, ...]:
    listed = [{"external": {"metric": {"name": name}}, "above": "1"} for name in names]
    spec = hvpa({"updateStrategy": {"canary": {"rollbackOnMetrics": listed}}}).spec
    assert spec is not None
    assert spec.strategy.canary is not None
    return spec.strategy.canary.rollback_on_metrics


class Clock:
    def now(self) -> dt.datetime:
        return NOW


class Adapter:
    """Answers at once, except about metrics that hang."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.enqueued: list[Key] = []
        self.read: list[tuple[str, str]] = []
        self.answer = MetricValue("1", NOW)
        self.error: Exception | None = None
        monkeypatch.setattr(service_metrics, "read_metric", self._read)
        transport: Any = None
        self.metrics = ServiceMetrics(transport, Clock(), self.enqueued.append, Supervisor())

    async def _read(
        self, transport: object, namespace: str, metric: RollbackMetric, now: dt.datetime, plurals: object
    ) -> MetricValue:
        assert now == NOW
        self.read.append((namespace, metric_name(metric)))
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if metric_name(metric) == "External hangs":
            await asyncio.sleep(3600)
        return self.answer


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Adapter:
    return Adapter(monkeypatch)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0)


async def test_values_are_there_once_they_are_read(adapter: Adapter) -> None:
    assert adapter.metrics.values(WEB, metrics("p99", "errors"), often=False) is None
    await until(lambda: adapter.metrics.values(WEB, metrics("p99", "errors"), often=False) is not None)
    value = MetricValue("1", NOW)
    assert adapter.metrics.values(WEB, metrics("p99", "errors"), often=False) == (value, value)
    assert adapter.read == [("default", "External p99"), ("default", "External errors")]
    assert adapter.enqueued == []
    adapter.metrics.stop()


async def test_a_trial_reads_at_once_and_again_and_enqueues_its_hvpa(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter.metrics.values(WEB, metrics("p99"), often=False)
    await until(lambda: len(adapter.read) == 1)
    monkeypatch.setattr(service_metrics, "TRIAL_PERIOD", 0.0)
    adapter.metrics.values(WEB, metrics("p99"), often=True)
    await until(lambda: len(adapter.read) >= 4)
    assert set(adapter.enqueued) == {WEB}
    adapter.metrics.stop()


async def test_nothing_is_read_after_the_metrics_are_gone(adapter: Adapter) -> None:
    adapter.metrics.values(WEB, metrics("p99"), often=True)
    await until(lambda: bool(adapter.enqueued))
    assert adapter.metrics.values(WEB, (), often=False) is None
    assert adapter.metrics.values(WEB, (), often=False) is None
    assert len(asyncio.all_tasks()) == 2  # the cancelled one is about to end
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def test_other_metrics_replace_those_before(adapter: Adapter) -> None:
    adapter.metrics.values(WEB, metrics("p99"), often=False)
    await until(lambda: len(adapter.read) == 1)
    assert adapter.metrics.values(WEB, metrics("errors"), often=False) is None
    await until(lambda: adapter.metrics.values(WEB, metrics("errors"), often=False) is not None)
    assert adapter.read[-1] == ("default", "External errors")
    adapter.metrics.stop()


async def test_a_metric_that_hangs_has_no_value_and_delays_no_other_namespace(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2 * MOST_OF_NAMESPACE):
        adapter.metrics.values(Key("hostile", f"web-{number}"), metrics("hangs"), often=True)
    adapter.metrics.values(WEB, metrics("p99"), often=True)
    await until(lambda: bool(adapter.enqueued))
    assert adapter.enqueued == [WEB]
    assert len([read for read in adapter.read if read[0] == "hostile"]) == MOST_OF_NAMESPACE
    monkeypatch.setattr(service_metrics, "MOST_TIME", 0.0)
    adapter.metrics.values(SHOP, metrics("hangs"), often=True)
    expected = MetricValue(problem="no answer within 0 s")
    await until(lambda: adapter.metrics.values(SHOP, metrics("hangs"), often=True) == (expected,))
    adapter.metrics.stop()


async def test_no_more_metrics_are_read_at_once_than_allowed(adapter: Adapter) -> None:
    for number in range(MOST):
        adapter.metrics.values(
            Key(f"hostile-{number % 20}", f"web-{number}"), metrics("hangs", "hangs"), often=True
        )
    await until(lambda: len(adapter.read) == MOST)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(adapter.read) == MOST
    adapter.metrics.stop()


async def test_a_defect_of_a_reading_ends_no_other(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter.error = RuntimeError("a defect")
    adapter.metrics.values(WEB, metrics("p99"), often=True)
    adapter.metrics.values(SHOP, metrics("errors"), often=True)
    await until(lambda: WEB in adapter.enqueued and SHOP in adapter.enqueued)
    adapter.metrics.stop()
