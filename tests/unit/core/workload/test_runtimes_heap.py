"""What HVPA reads as a heap from a pod template, and the memory that it keeps for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from builders.build import MIB, at, condition, container, decided, hvpa, merged, objects, vpa, workload
from hvpa.api.objects.read_models import Workload
from hvpa.core.model import Decision, ResourceRequirements
from hvpa.core.workload.runtimes import heap_of, shown_by
from hvpa.kube.objects.slim import slim_workload
from tests.unit.core.actuation.sized_pods import size_status

JAVA = {"runtimes": [{"container": "app", "kind": "Java"}]}
ALONE = {"hpa": {"deploy": False}, "weightBasedScalingIntervals": [{"vpaWeight": 100}]}
MUCH = container(requests={"cpu": "1", "memory": "5Gi"}, limits={"memory": "5Gi"})


def deciding(
    target: Workload, spec: Mapping[str, Any] | None = None, status: Any = None, wanted: str = "100Mi"
) -> Decision:
    own = hvpa(merged(merged(ALONE, JAVA), spec or {}), status)
    return decided(objects(own, target, None, vpa({"app": {"cpu": "1", "memory": wanted}})))


def recommended(
    target: Workload, spec: Mapping[str, Any] | None = None, status: Any = None
) -> ResourceRequirements:
    """What is recommended where the VPA wants 100Mi."""
    return deciding(target, spec, status).recommended["app"]


# --- what the operator keeps of a template ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shown",
    [
        {"args": ["-Xmx4g", "-jar", "app.jar"]},  # an image whose entrypoint is java, such as distroless
        {"command": ["/opt/app/bin/start"], "args": ["-Xmx4g"]},
        {"command": ["/usr/lib/jvm/bin/java17", "-Xmx4g", "-jar", "app.jar"]},
        {"command": ["sh", "-c", 'exec "$JAVA_HOME/bin/java" -Xmx4g -jar app.jar']},
    ],
)
def test_the_heap_of_a_declared_runtime_counts_without_the_name_of_its_program(
    shown: dict[str, Any],
) -> None:
    """The runtime is declared, so nothing needs to be guessed. But the operator's copy of the workload has no command
    and no arguments if no program that it knows is in them. So memory falls below a heap of 4Gi. Tests do not see it:
    their workloads are not slimmed."""
    target = workload(1, [MUCH | shown])
    assert recommended(target).limits["memory"] >= 5 * 1024 * MIB
    assert recommended(slim_workload(workload(1, [MUCH | shown]))).limits["memory"] >= 5 * 1024 * MIB


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "exec java '-Xmx4g' -jar app.jar"],
        ["sh", "-c", 'java "-Xmx4g" -jar app.jar'],
        ["sh", "-c", 'export JAVA_TOOL_OPTIONS="-Xmx4g"; exec java -jar app.jar'],
    ],
)
def test_a_heap_in_quotes_is_a_heap(command: list[str]) -> None:
    """A quote ends a word as well as a space does."""
    heap = heap_of(workload(1, [MUCH | {"command": command}]).spec.template.spec.containers[0], "Java")
    assert heap is not None
    assert heap.size == 4 * 1024 * MIB


@pytest.mark.parametrize(
    "command",
    [
        ["java", "-Xmx512m", "-Dorg.gradle.jvmargs=-Xmx8g", "-jar", "gradle-launcher.jar"],
        ["java", "-Xmx512m", "-jar", "agent.jar", "--child-opts=-Xmx8g"],
        ["java", "-Xmx512m", "-cp", "spark.jar", "Main", "--conf", "spark.executor.extraJavaOptions=-Xmx8g"],
    ],
)
def test_options_of_other_processes_are_not_the_heap(command: list[str]) -> None:
    """`-Xmx8g` is in the middle of a word: an option of a process that this one starts, perhaps elsewhere. Today the
    container gets 10Gi instead of 1Gi, by a rollout."""
    heap = heap_of(workload(1, [container() | {"command": command}]).spec.template.spec.containers[0], "Java")
    assert heap is not None
    assert heap.size == 512 * MIB


# --- numbers ---------------------------------------------------------------------------------------------------------
HUGE = container() | {"command": ["java", "-XX:MaxRAMPercentage=" + "9" * 400]}


def test_a_percentage_of_many_digits_stops_no_decision() -> None:
    """float() makes infinity of it, and round() raises OverflowError in `decide`: this Hvpa is never decided again."""
    spec = {"runtimes": [{"container": "app", "kind": "Java", "heapPercent": 75}]}
    assert deciding(workload(1, [HUGE]), spec).status is not None


def test_a_percentage_of_many_digits_stops_no_report() -> None:
    """One such pod template ends `hvpa report` and `hvpa init`."""
    assert shown_by(workload(1, [HUGE]).spec.template.spec.containers)


# --- the least memory ------------------------------------------------------------------------------------------------
FIXED = container(requests={"cpu": "1", "memory": "1Gi"}, limits={"memory": "2Gi"}) | {
    "command": ["java", "-Xmx1g"]
}
LEAST = 1280 * MIB
"""A heap of 1Gi and a quarter."""


def test_without_other_settings_the_limit_is_enough_for_the_heap() -> None:
    assert recommended(workload(1, [FIXED])).limits["memory"] >= LEAST


@pytest.mark.parametrize("gap", [{"value": "100Mi"}, {"percentage": 10}])
def test_a_limit_by_gap_parameters_is_enough_for_the_heap(gap: Mapping[str, Any]) -> None:
    """The least request assumes that the limit keeps its ratio to the request. With `limitsRequestsGapScaleParams` it
    does not: the limit becomes 740Mi for a heap of 1Gi, and the container is killed."""
    spec = {"vpa": {"limitsRequestsGapScaleParams": {"memory": gap}}}
    assert recommended(workload(1, [FIXED]), spec).limits["memory"] >= LEAST


def test_a_limit_by_another_ratio_of_the_template_is_enough_for_the_heap() -> None:
    """In place, the limit follows the ratio in the pod template (1:2), but the least request follows that of the
    decided size (1:4, decided before the template's limit was lowered): the limit becomes 640Mi for a heap of 1Gi."""
    status = size_status(
        1, {"app": {"requests": {"memory": "1Gi"}, "limits": {"memory": "4Gi"}}}, at(days=-3)
    )
    spec = {"updateStrategy": {"type": "InPlace"}}
    assert recommended(workload(1, [FIXED]), spec, status).limits["memory"] >= LEAST


def test_a_heap_larger_than_the_container_is_no_reason_for_a_rollout() -> None:
    """A JVM with `-Xmx16g` runs well with a request of 1Gi and no limit, as the VPA has seen for long. Declaring it
    makes HVPA request 20Gi for each pod at once, which may fit on no node, though nothing ran out of memory. The floor
    should keep memory from falling, not raise it: HeapFixed, or a condition of its own, can say that the heap is too
    large."""
    java = container(requests={"cpu": "1", "memory": "1Gi"}) | {"command": ["java", "-Xmx16g"]}
    assert deciding(workload(1, [java]), wanted="1Gi").recommended["app"].requests["memory"] == 1024 * MIB


# --- conditions ------------------------------------------------------------------------------------------------------
def active(app: Mapping[str, Any], wanted: str = "100Mi") -> tuple[str, str]:
    shown = condition(deciding(workload(1, [app]), wanted=wanted), "VpaActive")
    return shown.reason, shown.message


def test_the_size_that_hvpa_sets_for_a_heap_is_not_called_too_large() -> None:
    """1342178k is what HVPA itself writes as the limit for a heap of 1Gi: rounded up, so above the least. The Hvpa
    keeps the reason HeapFixed for ever: "needs about 1280Mi, 1280Mi recommended"."""
    app = container(requests={"cpu": "1", "memory": "640Mi"}, limits={"memory": "1342178k"})
    why = "the heap and all else need more: app: 640Mi at least, 100Mi recommended"
    assert active(app | {"command": ["java", "-Xmx1g"]}) == ("HeapKept", why)


def test_a_present_limit_is_not_called_recommended() -> None:
    """The VPA recommends 100Mi, and the limit is 5Gi today: "5Gi recommended" is false. HVPA lowers it to 1280Mi."""
    assert "5Gi recommended" not in active(MUCH | {"command": ["java", "-Xmx1g"]})[1]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (["sh", "-c", "python wait_for_db.py && exec java -jar app.jar"], "Java"),
        (["/server", "--language", "java"], "Go"),
    ],
)
def test_a_program_that_is_only_mentioned_contradicts_nothing(command: list[str], kind: str) -> None:
    """The first name of a program anywhere in the command counts, in spite of what is declared."""
    spec = {"runtimes": [{"container": "app", "kind": kind}]}
    shown = condition(deciding(workload(1, [container() | {"command": command}]), spec), "VpaActive")
    assert shown.reason == "Recommending"


@pytest.mark.parametrize(
    ("java", "memory"),
    [
        ({}, 1024),  # a quarter of 1Gi is a heap of 256Mi: 320Mi with everything else
        ({"command": ["java", "-XX:MaxRAMPercentage=50"]}, 589),
        ({"command": ["java", "-XX:MaxRAMPercentage=80"]}, 368),
    ],
)
def test_memory_is_not_lowered_below_a_share_that_holds_the_usage(
    java: Mapping[str, Any], memory: int
) -> None:
    """Otherwise a heap that is full shrinks with its limit, the VPA sees less usage, and recommends even less."""
    app = container(requests={"cpu": "1", "memory": "1Gi"}, limits={"memory": "1Gi"}) | dict(java)
    decision = deciding(workload(1, [app]), wanted="368Mi")
    kept = decision.recommended["app"]
    assert kept.limits["memory"] == kept.requests["memory"]
    assert round(kept.limits["memory"] / MIB) == memory
    active = condition(decision, "VpaActive")
    assert active.reason == ("Recommending" if memory == 368 else "HeapKept")
    if memory == 1024:
        assert active.message == "the heap and all else need more: app: 1Gi at least, 368Mi recommended"


def test_a_request_without_a_limit_follows_the_vpa() -> None:
    """Its heap is a share of the node's memory."""
    app = container(requests={"cpu": "1", "memory": "1Gi"})
    kept = deciding(workload(1, [app]), wanted="368Mi").recommended["app"]
    assert round(kept.requests["memory"] / MIB) == 368


def test_heaps_that_are_shares_of_the_same_memory_need_it_once() -> None:
    """Both are shares of the pod's limit, and both hold the target of 2Gi at 2184.5Mi."""
    java = {"resources": {"requests": {"cpu": "1"}}, "command": ["java", "-XX:MaxRAMPercentage=75"]}
    whole = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "8Gi"}}
    target = workload(
        1,
        [{"name": name, **java} for name in ("app", "side")],
        {"spec": {"template": {"spec": {"resources": whole}}}},
    )
    runtimes = [{"container": name, "kind": "Java"} for name in ("app", "side")]
    own = hvpa(merged(ALONE, {"runtimes": runtimes}))
    wanted = {"cpu": "1", "memory": "1Gi"}
    kept = decided(objects(own, target, None, vpa({"app": wanted, "side": wanted}))).recommended["(shared)"]
    assert round(kept.limits["memory"] / MIB) == 2185
