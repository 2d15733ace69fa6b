"""What metrics called for of late is kept for each Hvpa whose pods are resized in place, and forgotten with it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hvpa.core import Objects
from hvpa.core.rules import highest_demand
from tests.unit.core.trajectory.jointly import app, state, value
from tests.unit.reconcile.fakes import KEY, Harness

IN_PLACE = {"updateStrategy": {"type": "InPlace"}}


def using(cpu: str | None, spec: Any = IN_PLACE) -> Objects:
    """4 pods of 2 cores; a target of 2 cores, and so much is used. At 1 core each, 2 pods would do."""
    return state(4, [app("2")], [value("cpu", "2", cpu)], {"app": {"cpu": "1"}}, spec)


def pods(harness: Harness) -> int:
    assert harness.status.desired is not None
    return harness.status.desired.replicas


def test_after_the_start_nothing_shrinks_for_as_long_as_demand_counts() -> None:
    harness = Harness(using("1"))
    harness.reconcile()
    harness.reconcile(minutes=4)
    assert pods(harness) == 4
    harness.reconcile(minutes=1)
    assert pods(harness) < 4


def test_what_was_called_for_counts_for_as_long() -> None:
    harness = Harness(using("2"))
    harness.reconcile()
    harness.reconcile(minutes=10)
    harness.change(hpas=using("1").hpas)
    harness.reconcile()
    harness.reconcile(minutes=4)
    assert pods(harness) == 4
    harness.reconcile(minutes=2)
    assert pods(harness) < 4


def test_what_a_metric_without_a_value_called_for_counts_still() -> None:
    harness = Harness(using("2"))
    harness.reconcile()
    harness.reconcile(minutes=10)
    harness.change(hpas=using(None).hpas)
    harness.reconcile()
    harness.change(hpas=using("1").hpas)
    harness.reconcile()
    assert pods(harness) == 4


@pytest.mark.parametrize("gone", ["the Hvpa", "the process", "the shard"])
def test_it_is_forgotten_with_the_hvpa_the_process_and_the_shard(gone: str) -> None:
    harness = Harness(using("1"))
    harness.reconcile()
    if gone == "the process":
        harness.start()
    elif gone == "the shard":
        harness.reconciler.forget(KEY)
        assert harness.telemetry.reports[-1] == ("forgotten", KEY)
    else:
        objects, harness.cluster.one = harness.one, None
        assert harness.reconcile().outcome == "gone"
        harness.cluster.one = objects
    harness.reconcile(minutes=10)
    assert pods(harness) == 4


def test_it_is_forgotten_where_pods_are_no_longer_resized_in_place() -> None:
    harness = Harness(using("1"))
    harness.reconcile()
    assert harness.reconciler._records[KEY].lately is not None
    harness.change(hvpa=using("1", {}).hvpa)
    harness.reconcile()
    assert harness.reconciler._records[KEY].lately is None


def test_a_duration_of_days_keeps_an_hour() -> None:
    spec = {**IN_PLACE, "vpa": {"scaleDown": {"stabilizationDuration": "96h"}}}
    hvpa_spec = using("1", spec).hvpa.spec
    assert hvpa_spec is not None
    assert highest_demand(hvpa_spec).duration == dt.timedelta(hours=1)


def test_where_pods_are_replaced_nothing_is_looked_back_at() -> None:
    harness = Harness(using("1", {}))
    harness.reconcile()
    (patch,) = harness.written("workload")
    assert patch.body["spec"]["replicas"] < 4
