"""CPU cost of one reconcile, in this process and without a cluster.

Each case drives the operator's own `Reconciler` with objects in memory: at rest, with only the clock advancing; after a
new recommendation that changes nothing; with a change held back; with a step; and with many pods. Times depend on the
machine; compare the ratios to the yardstick, which is reading an Hvpa's status from JSON, measured in the same run.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import json
import logging
import sys
import time
import timeit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import structlog

from builders import build
from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.resource import read_hvpa
from hvpa.api.hvpa.status import HvpaStatus, read_status, to_wire
from hvpa.api.objects.read_models import Hpa, Meta, Pod, RawHvpa, Vpa, Workload
from hvpa.core import Objects, Settings
from hvpa.core.model import Event, FastUsage, MetricValue, OwnedChange, PodCost, PodResize, WorkloadPatch
from hvpa.core.values.memo import REMEMBERED
from hvpa.reconcile.ports import Key, ResizeFailures, SizeChanges, WriteError
from hvpa.reconcile.reconciler import Reconciler
from hvpa.reconcile.telemetry import Silent

KEY = Key("default", "web")
PERIOD = dt.timedelta(seconds=15)
"""Virtual time between two reconciles: the HPA's period, and a step of the simulator."""
GOAL_US = 50.0
"""Most microseconds of a reconcile in the ordinary cases, so that a month is simulated in 20 seconds."""
ORDINARY = ("at rest", "HPA measured, nothing to do", "VPA held back, HPA says something new")
"""The cases of nearly all reconciles in a simulation."""
ROUND = 30
"""Reconciles that are timed together. The fastest round counts, because other load of the machine only adds time."""

ObjectSets = Sequence[Objects]
"""The objects of successive reconciles, repeated."""


@dataclass
class MemoryCluster:
    """The cluster port and the clock in memory. The status is kept; other writes are only counted, because the next
    objects are prepared."""

    stored: Objects
    time: dt.datetime = build.NOW
    status: HvpaStatus | None = None
    writes: int = 0

    def now(self) -> dt.datetime:
        """See the clock port."""
        return self.time

    def objects(self, key: Key) -> Objects:
        """See the cluster port."""
        return self.stored

    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """See the cluster port."""
        self.writes += 1

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """See the cluster port."""

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        """See the cluster port."""
        self.writes += len(resizes)
        return ()

    async def write_pod_costs(self, hvpa: Meta, costs: Sequence[PodCost]) -> Sequence[WriteError]:
        """See the cluster port."""
        self.writes += len(costs)
        return ()

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        """See the cluster port."""
        return {}

    def reported_usage(self, key: Key, pods: Sequence[Pod], above: int) -> FastUsage | None:
        """See the cluster port."""
        return None

    def canary_values(
        self, key: Key, metrics: Sequence[RollbackMetric], *, often: bool
    ) -> tuple[MetricValue, ...] | None:
        """See the cluster port."""
        return None

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        """See the cluster port."""
        self.writes += 1

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        """See the cluster port."""
        self.writes += 1
        self.status = status

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        """See the cluster port."""
        self.writes += 1

    async def give_back(self, hvpa: Meta) -> None:
        """See the cluster port."""

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        """See the cluster port. HPA and VPA already exist in their desired form."""
        raise AssertionError(f"{change.action} {change.kind}: the case does not begin at rest")

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        """See the cluster port."""


# --- cases ----------------------------------------------------------------------------------------------------------
SPEC: dict[str, Any] = {
    "hpa": {"scaleDown": {"stabilizationDuration": "5m"}, "template": {"spec": {"maxReplicas": 1000}}},
    "vpa": {"scaleDown": {"stabilizationDuration": "1h"}, "scaleUp": {"minChangeTimeout": "8760h"}},
    "weightBasedScalingIntervals": [
        {"vpaWeight": 0, "startReplicaCount": 1, "lastReplicaCount": 2},
        {"vpaWeight": 50, "startReplicaCount": 3, "lastReplicaCount": 1000},
    ],
}
TARGET = {"app": {"cpu": "1", "memory": "1Gi"}}


def view(desired: int, utilization: int, target: Mapping[str, Any], pods: int = 3) -> Objects:
    """Return an Hvpa with `pods` pods of 1 core and 1Gi, and these recommendations of HPA and VPA."""
    change = {"spec": {"maxReplicas": 1000}}
    return build.objects(
        build.hvpa({**SPEC, "replicas": desired}),
        build.workload(pods),
        build.hpa(desired, utilization, change, replicas=pods),
        build.vpa(target),
    )


def rested(objects: Objects) -> Objects:
    """Return the objects with HPA and VPA in their desired form, and the matching status."""
    for _ in range(3):
        objects = build.settled(objects)
    return objects


def later(rest: Objects, other: Objects) -> Objects:
    """Return the objects at rest with the recommendations of other objects."""
    return replace(
        rest,
        hpas=tuple(_with_status(old, new) for old, new in zip(rest.hpas, other.hpas, strict=True)),
        vpas=tuple(_with_status(old, new) for old, new in zip(rest.vpas, other.vpas, strict=True)),
    )


def _with_status(old: Any, new: Any) -> Any:
    return type(old)(metadata=old.metadata, raw_spec=old.raw_spec, status=new.status)


def reported(rest: Objects) -> ObjectSets:
    """Return an increase that MinChange holds back and the status reports; each status of the HPA is new."""
    raised = rested(later(rest, view(3, 50, {"app": {"cpu": "1010m", "memory": "1Gi"}})))
    object_sets = []
    for number in range(REMEMBERED + 1):
        other = later(raised, view(3, 46 + number % 9, {"app": {"cpu": "1010m", "memory": "1Gi"}}))
        object_sets.append(replace(other, hpas=tuple(_again(hpa, Hpa) for hpa in other.hpas)))
    return [
        replace(
            objects,
            hpas=tuple(
                Hpa(had.metadata, had.raw_spec, new.status)
                for had, new in zip(raised.hpas, objects.hpas, strict=True)
            ),
        )
        for objects in object_sets
    ]


def with_pods(count: int) -> ObjectSets:
    """Return objects at rest with this number of pods, listed again for every reconcile: too many to cache."""
    rest = rested(view(count, 50, TARGET, count))
    return [replace(rest, pods=tuple(list(rest.pods))) for _ in range(REMEMBERED + 1)]


def decoded_anew(rest: Objects) -> ObjectSets:
    """Return objects at rest, all decoded again for every reconcile, as from a watch: no cache helps."""
    object_sets = []
    for _ in range(REMEMBERED + 1):
        hvpa = rest.hvpa
        raw = {
            "metadata": hvpa.metadata,
            "spec": build.merged(build.SPEC, SPEC),
            "status": to_wire(hvpa.status),
        }
        object_sets.append(
            Objects(
                hvpa=replace(read_hvpa(_again(raw, RawHvpa)), spec=hvpa.spec),
                workload=_again(rest.workload, Workload),
                hpas=tuple(_again(hpa, Hpa) for hpa in rest.hpas),
                vpas=tuple(_again(vpa, Vpa) for vpa in rest.vpas),
                pods=tuple(_again(pod, Pod) for pod in rest.pods),
            )
        )
    return object_sets


def _again(obj: object, model: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(obj), type=model)


def cases() -> dict[str, ObjectSets]:
    """Return all cases by name."""
    rest = rested(view(3, 50, TARGET))
    return {
        "at rest": [rest],
        "HPA measured, nothing to do": [later(rest, view(3, usage, TARGET)) for usage in (49, 51, 52)],
        "VPA held back, HPA says something new": reported(rest),
        "VPA rose a little, held back and reported": [
            later(rest, view(3, 50, {"app": {"cpu": f"{cpu}m", "memory": "1Gi"}}))
            for cpu in (1010, 1020, 1030)
        ],
        "a step out": [later(rest, view(6, 100, TARGET))],
        "a step up": [later(rest, view(3, 50, {"app": {"cpu": "2", "memory": "2Gi"}}))],
        "at rest, all decoded anew": decoded_anew(rest),
        "at rest, 30 pods listed anew": with_pods(30),
        "at rest, 300 pods listed anew": with_pods(300),
    }


# --- measurement ----------------------------------------------------------------------------------------------------
def once(reconciler: Reconciler) -> None:
    """Run a reconcile without an event loop."""
    try:
        reconciler.reconcile(KEY).send(None)
    except StopIteration as end:
        if end.value.outcome != "done":
            raise AssertionError(end.value) from None


def cost(object_sets: ObjectSets, seconds: float) -> tuple[float, float]:
    """Return the microseconds of a reconcile, and its number of writes."""
    memory = MemoryCluster(object_sets[0])
    reconciler = Reconciler(memory, memory, Settings(), Silent())
    for memory.stored in object_sets:
        once(reconciler)
    calls, least, end = 0, float("inf"), time.perf_counter() + seconds
    memory.writes = 0
    while time.perf_counter() < end:
        spent = 0.0
        for _ in range(ROUND):
            memory.stored = object_sets[calls % len(object_sets)]
            memory.time += PERIOD
            began = time.thread_time()
            once(reconciler)
            spent += time.thread_time() - began
            calls += 1
        least = min(least, spent / ROUND)
    return least * 1e6, memory.writes / calls


def yardstick(status: HvpaStatus, seconds: float) -> float:
    """Return the microseconds of reading a status from JSON."""
    raw = json.dumps(to_wire(status)).encode()
    repeat = max(3, int(seconds * 500))
    took = timeit.repeat(lambda: read_status(raw), timer=time.thread_time, number=ROUND, repeat=repeat)
    return min(took) / ROUND * 1e6


def main(argv: Sequence[str]) -> int:
    """Run the benchmark; 0 if the goal is met, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks decision", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    sets_by_case = cases()
    unit = yardstick(sets_by_case["at rest"][0].hvpa.status, args.seconds / 2)
    gc.collect()
    gc.freeze()
    results = {}
    for name, object_sets in sets_by_case.items():
        microseconds, writes = cost(object_sets, args.seconds)
        results[name] = {
            "us": round(microseconds, 1),
            "ratio": round(microseconds / unit, 2),
            "writes": round(writes, 2),
        }
    met = all(results[name]["us"] < GOAL_US for name in ORDINARY)
    if args.json:
        print(json.dumps({"yardstick_us": round(unit, 1), "cases": results, "goal_met": met}, indent=2))
        return 0 if met else 1
    print(f"reading a status from JSON: {unit:.1f} us, the yardstick")
    for name, result in results.items():
        print(
            f"{name:<38} {result['us']:>8.1f} us  {result['ratio']:>6.2f} yardsticks, {result['writes']:g} writes each"
        )
    print(f"goal (the first three below {GOAL_US:g} us): {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
