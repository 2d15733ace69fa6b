"""How many Hvpas are in which state, and who has which problem: series that follow the last decision, and that are
gone with their Hvpa."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from builders import build
from hvpa.api.hvpa.status import BlockedScaling, HvpaStatus, OriginalSize, StatusCondition
from hvpa.core.model import Decision, ReplicaView, ResourceRequirements
from hvpa.kube.server.metrics import Metrics
from hvpa.reconcile.ports import Key
from tests.unit.kube.server.test_metrics import shown

WEB, API = Key("shop", "web"), Key("shop", "api")


def decision(ready: str, reason: str, *held: str) -> Decision:
    conditions = (StatusCondition(type="Ready", status=ready, reason=reason),)
    blocked = tuple(BlockedScaling(reason=hold, axis="horizontal", direction="up") for hold in held)
    return Decision(HvpaStatus(conditions=conditions, last_blocked_scaling=blocked))


def series(metrics: Metrics, name: str) -> dict[str, float]:
    """A metric's samples, by the values of their labels."""
    return {
        " ".join(value for _, value in sorted(labels)): amount
        for (metric, labels), amount in shown(metrics).items()
        if metric == name
    }


def test_hvpas_are_counted_by_the_state_of_the_last_decision() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.decided(WEB, decision("True", "HeldBack", "MinChange", "Rollout"), None)
    metrics.decided(API, decision("True", "HeldBack", "MinChange"), None)
    assert series(metrics, "hvpa_hvpas") == {"True HeldBack": 2}
    assert series(metrics, "hvpa_held_back") == {"horizontal up MinChange": 2, "horizontal up Rollout": 1}
    metrics.decided(WEB, decision("False", "Refused"), None)
    assert series(metrics, "hvpa_hvpas") == {"True HeldBack": 1, "False Refused": 1}
    assert series(metrics, "hvpa_problem") == {"web shop NotReady Refused": 1}
    for key in (WEB, API):
        metrics.forgotten(key)
    assert (
        not series(metrics, "hvpa_hvpas")
        | series(metrics, "hvpa_held_back")
        | series(metrics, "hvpa_problem")
    )


def test_a_status_that_is_decided_again_counts_once() -> None:
    metrics, same = Metrics(CollectorRegistry()), decision("True", "Reconciled")
    metrics.decided(WEB, same, None)
    metrics.decided(WEB, same, None)
    assert series(metrics, "hvpa_hvpas") == {"True Reconciled": 1}


def test_a_write_that_fails_is_a_problem_until_all_get_through() -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.decided(WEB, decision("True", "Saturated"), None)
    for _ in range(2):
        metrics.write_failed(WEB, "PatchStatus", "failed")
        metrics.finished(WEB, "failed", 0.1)
    both = {"web shop Saturated Saturated": 1, "web shop WriteFailed PatchStatus": 1}
    assert series(metrics, "hvpa_problem") == both
    metrics.decided(WEB, decision("True", "Saturated"), None)
    assert series(metrics, "hvpa_problem") == both
    metrics.finished(WEB, "done", 0.1)
    assert series(metrics, "hvpa_problem") == {"web shop Saturated Saturated": 1}
    metrics.write_failed(WEB, "PatchStatus", "conflict")
    metrics.write_failed(API, "Decide", "crashed")
    assert series(metrics, "hvpa_problem") == {
        "web shop Saturated Saturated": 1,
        "api shop WriteFailed Decide": 1,
    }
    metrics.forgotten(API)
    assert series(metrics, "hvpa_problem") == {"web shop Saturated Saturated": 1}


def sized(replicas: int, cpu: int) -> Decision:
    """A decision for this size of a workload that had 4 pods of a core and 1 GiB before its first change."""
    requests = {"app": {"cpu": "1", "memory": "1Gi"}}
    original = OriginalSize(since=build.NOW, replicas=4, requests=requests)
    sizes = {"app": ResourceRequirements({"cpu": cpu, "memory": build.GIB}, {})}
    view = ReplicaView(replicas, None, replicas, replicas)
    return Decision(HvpaStatus(original_size=original), replicas=view, containers=sizes)


def test_what_all_hvpas_have_saved_is_shown_from_0_on_and_follows_each_decision() -> None:
    metrics = Metrics(CollectorRegistry())
    assert series(metrics, "hvpa_saved_cpu_cores") == {"size": 0, "replicas": 0}
    metrics.decided(WEB, sized(5, 600), build.workload())
    metrics.decided(API, sized(3, 1500), build.workload())
    assert series(metrics, "hvpa_saved_cpu_cores") == {"size": 2.0 - 1.5, "replicas": -1.0 + 1.0}
    assert series(metrics, "hvpa_saved_memory_bytes") == {"size": 0, "replicas": 0}
    assert series(metrics, "hvpa_saved_hvpas") == {"": 2}
    metrics.decided(API, sized(3, 900), build.workload())
    assert series(metrics, "hvpa_saved_cpu_cores") == {"size": 2.0 + 0.3, "replicas": 0}
    metrics.decided(API, decision("False", "TargetNotFound"), None)
    metrics.forgotten(WEB)
    assert series(metrics, "hvpa_saved_cpu_cores") == {"size": 0, "replicas": 0}
    assert series(metrics, "hvpa_saved_hvpas") == {"": 0}


def test_what_each_hvpa_has_saved_is_shown_with_the_flag_alone() -> None:
    metrics = Metrics(CollectorRegistry(), per_object=True)
    metrics.decided(WEB, sized(5, 600), build.workload())
    metrics.decided(API, decision("True", "Recommend"), build.workload())
    assert series(metrics, "hvpa_saved_request") == {
        "web shop size cpu": 2,
        "web shop replicas cpu": -1,
        "web shop size memory": 0,
        "web shop replicas memory": -build.GIB,
    }
    assert series(metrics, "hvpa_saved_since_timestamp_seconds") == {"web shop": build.NOW.timestamp()}
    without = Metrics(CollectorRegistry())
    without.decided(WEB, sized(5, 600), build.workload())
    assert not series(without, "hvpa_saved_request") | series(without, "hvpa_saved_since_timestamp_seconds")
