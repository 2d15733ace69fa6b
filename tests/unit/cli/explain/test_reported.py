"""What `hvpa explain` shows of the operator's last report, what to do about it, and what mode Apply would do."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.core.report.remedies import REMEDIES
from tests.unit.cli.support import NOW, Doc, Shell, changed

EARLIER = "2026-11-21T09:40:00Z"


def condition(kind: str, status: str, reason: str, message: str = "as it was", **rest: Any) -> Doc:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": EARLIER,
        **rest,
    }


def section(text: str, heading: str) -> list[str]:
    """The lines of a section, without their indentation; none where it is not shown."""
    found = [block for block in text.split("\n\n") if block.splitlines()[0] == heading]
    return [line[2:] for block in found for line in block.splitlines()[1:]]


def explained(shell: Shell, documents: list[Doc]) -> str:
    ran = shell.run("explain", "-f", shell.file(documents), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def test_a_write_that_failed_stands_beside_what_is_decided_now(shell: Shell, gardener: list[Doc]) -> None:
    error = {
        "description": "denied by policy small",
        "lastOperation": "PatchWorkload",
        "lastUpdateTime": EARLIER,
    }
    failed = condition("Ready", "False", "WriteFailed", "PatchWorkload: denied by policy small")
    documents = changed(gardener, Hvpa__status={"conditions": [failed], "lastError": error})
    text = explained(shell, documents)
    assert section(text, "Reported by the operator") == [
        f"Ready False since {EARLIER}, WriteFailed: PatchWorkload: denied by policy small",
        f"last error: PatchWorkload at {EARLIER}: denied by policy small",
    ]
    assert section(text, "Where the operator's report differs") == [
        "Ready was reported False WriteFailed and is now True Reconciled: a write of the operator failed; "
        "whether it still would, the next try shows, as nothing is written here",
        f"  to do: {REMEDIES['WriteFailed']}.",
    ]
    told = shell.explain(documents)
    assert told["reported"] == {
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "WriteFailed",
                "message": "PatchWorkload: denied by policy small",
                "since": EARLIER,
            }
        ],
        "lastError": {
            "operation": "PatchWorkload",
            "time": EARLIER,
            "description": "denied by policy small",
        },
        "refused": [],
    }
    [difference] = told["differences"]
    assert (difference["type"], difference["reported"], difference["decided"]) == (
        "Ready",
        "False WriteFailed",
        "True Reconciled",
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"Hvpa__metadata__generation": 4}, "the operator has not looked at the newest spec yet"),
        ({"Hvpa__metadata__generation": 3}, "the operator has the writes above still to do"),
        (
            {"Hvpa__metadata__generation": 3, "Hvpa__spec__targetRef__name": "gone"},
            "something has changed since the operator looked last; if this stays so, it is not running",
        ),
    ],
)
def test_why_a_report_may_differ(shell: Shell, gardener: list[Doc], change: Doc, why: str) -> None:
    active = condition("HpaActive", "False", "FailedGetResourceMetric", observedGeneration=3)
    text = explained(shell, changed(gardener, Hvpa__status={"conditions": [active]}, **change))
    [difference, remedy] = section(text, "Where the operator's report differs")
    assert difference.startswith("HpaActive was reported False FailedGetResourceMetric and is now ")
    assert difference.endswith(f": {why}")
    assert remedy.startswith("  to do: Check that metrics are served")


def test_without_a_report_it_says_so(shell: Shell, gardener: list[Doc]) -> None:
    [line] = section(explained(shell, gardener), "Reported by the operator")
    assert line == "nothing yet: is the operator running, and does it watch this namespace?"
    assert shell.explain(gardener)["reported"] == {"conditions": [], "lastError": None, "refused": []}


def test_a_report_that_is_still_true_has_no_section_of_its_own(shell: Shell, gardener: list[Doc]) -> None:
    ready = {"conditions": [condition("Ready", "True", "Reconciled"), condition("Unheard", "True", "X")]}
    documents = changed(gardener, Hvpa__status={**ready, "lastError": {"description": "?"}})
    text = explained(shell, documents)
    assert section(text, "Where the operator's report differs") == []
    assert "last error: a write: ?" in section(text, "Reported by the operator")


def test_each_condition_that_needs_somebody_to_act_has_its_remedy(shell: Shell, gardener: list[Doc]) -> None:
    text = explained(shell, changed(gardener, Hvpa__spec__targetRef__name="gone"))
    lines = section(text, "Conditions")
    assert lines[:2] == [
        "Ready False TargetNotFound: Deployment gone does not exist",
        f"  to do: {REMEDIES['TargetNotFound']}.",
    ]
    assert not lines[2].startswith("  "), "an axis that waits for that has none of its own"


def test_recommend_says_what_apply_would_do_now(shell: Shell, gardener: list[Doc]) -> None:
    documents = changed(gardener, Hvpa__spec__mode="Recommend")
    text = explained(shell, documents)
    assert section(text, "Result") == ["mode Recommend: the workload is left as it is"]
    assert section(text, "What mode Apply would do now") == [
        "replicas: 3 -> 5",
        "resource-consumer requests cpu: 500m -> 1100m",
        "resource-consumer limits cpu: 1 -> 2100m",
        "resource-consumer requests memory: 1Gi -> 1638Mi",
        "resource-consumer limits memory: 2Gi -> 2592Mi",
    ]
    assert "if nothing were held back" not in text
    told = shell.explain(documents)["inModeApply"]
    assert (told["replicas"], told["changes"], told["blocked"]) == (5, True, [])
    assert told["containers"]["resource-consumer"]["requests"] == {"cpu": "1100m", "memory": "1717987k"}
    assert (told["ready"]["status"], told["ready"]["reason"]) == ("True", "Reconciled")
    assert shell.explain(gardener)["inModeApply"] is None


def test_paused_says_what_apply_would_hold_back(shell: Shell, gardener: list[Doc]) -> None:
    off = {"updatePolicy": {"updateMode": "Off"}}
    documents = changed(gardener, Hvpa__spec__mode="Paused", Hvpa__spec__hpa__scaleUp=off)
    lines = section(explained(shell, documents), "What mode Apply would do now")
    assert lines[0] == "replicas: 3 (no change); recommended before gates: 5"
    assert lines[-1] == "held back: replicas 3 -> 5: UpdatePolicy"


def test_recommend_says_where_apply_would_not_scale(shell: Shell, gardener: list[Doc]) -> None:
    documents = changed(gardener, Hvpa__spec__mode="Recommend", Hvpa__spec__targetRef__name="gone")
    lines = section(explained(shell, documents), "What mode Apply would do now")
    assert lines == ["TargetNotFound: Deployment gone does not exist"]
    assert shell.explain(documents)["inModeApply"]["replicas"] is None


def test_recommend_says_which_axis_apply_could_not_scale(shell: Shell, gardener: list[Doc]) -> None:
    silent = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetResourceMetric",
        "message": "none",
    }
    mode = {"Hvpa__spec__mode": "Recommend", "HorizontalPodAutoscaler__status__conditions": [silent]}
    lines = section(explained(shell, changed(gardener, **mode)), "What mode Apply would do now")
    assert lines[:2] == ["FailedGetResourceMetric: none", "replicas: 3 (no change)"]
    assert "resource-consumer requests cpu: 500m -> 1100m" in lines


def test_a_recommendation_that_is_not_used_is_not_shown_as_one_that_is(
    shell: Shell, gardener: list[Doc]
) -> None:
    low = {"type": "LowConfidence", "status": "True", "reason": "few", "message": "too few samples"}
    documents = changed(gardener, VerticalPodAutoscaler__status__conditions=[low])
    lines = section(explained(shell, documents), "Demand")
    assert "VPA: not used, LowConfidence: too few samples" in lines
    assert "VPA hvpa-sample: recommended last, which is not used:" in lines
    silent = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "FailedGetResourceMetric",
        "message": "none",
    }
    documents = changed(gardener, HorizontalPodAutoscaler__status__conditions=[silent])
    lines = section(explained(shell, documents), "Demand")
    assert "HPA: not used, FailedGetResourceMetric: none" in lines
    assert "HPA hvpa-sample: asked last for 6 replicas, which is not used" in lines


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        ({"name": "memory", "current": {"averageValue": "380258472"}}, "Resource memory: 363Mi per pod"),
        ({"name": "memory", "current": {"averageValue": "-1"}}, "Resource memory: -1 per pod"),
        ({"name": "cpu", "current": {"averageValue": "324m"}}, "Resource cpu: 324m per pod"),
    ],
)
def test_measured_values_are_for_people(shell: Shell, gardener: list[Doc], metric: Doc, shown: str) -> None:
    measured = [{"type": "Resource", "resource": metric}]
    documents = changed(gardener, HorizontalPodAutoscaler__status__currentMetrics=measured)
    assert any(line.strip().startswith(shown) for line in section(explained(shell, documents), "Demand"))


@pytest.mark.parametrize(
    ("value", "shown"), [("2500", "2,500"), ("500m", "0.5"), ("3", "3"), ("1e9", "1,000,000,000")]
)
def test_other_metrics_are_plain_numbers(shell: Shell, gardener: list[Doc], value: str, shown: str) -> None:
    measured = [{"type": "External", "external": {"metric": {"name": "queue"}, "current": {"value": value}}}]
    documents = changed(gardener, HorizontalPodAutoscaler__status__currentMetrics=measured)
    assert any(
        line.strip().startswith(f"External queue: {shown}")
        for line in section(explained(shell, documents), "Demand")
    )


def test_a_recommendation_that_had_its_step_is_shown_as_that(shell: Shell, gardener: list[Doc]) -> None:
    applied_from = [
        {
            "container": "resource-consumer",
            "resource": "cpu",
            "request": "500m",
            "target": "1500m",
            "weight": 60,
        },
        {
            "container": "resource-consumer",
            "resource": "memory",
            "request": "1Gi",
            "target": "2Gi",
            "weight": 60,
        },
        {"container": "gone", "resource": "cpu", "request": "1", "target": "2", "weight": 60},
        {"container": "gone", "resource": "memory", "request": "?", "target": "2", "weight": 60},
    ]
    horizontal = {"lastScaleTime": EARLIER, "appliedFrom": {"replicas": 3, "desired": 6, "weight": 60}}
    axes = {"vertical": {"lastScaleTime": EARLIER, "appliedFrom": applied_from}, "horizontal": horizontal}
    text = explained(shell, changed(gardener, Hvpa__status={"axes": axes}))
    assert (
        "resource-consumer cpu: 500m now, 1500m recommended; this recommendation had its step at weight 60, "
        f"{EARLIER}, the next one is due when it moves by minChange"
    ) in section(text, "Blend")
    assert f"replicas: 3 applied when the HPA asked for 6, at weight 60, {EARLIER}" in section(
        text, "Applied from"
    )
    assert "resource-consumer memory: 1Gi applied from target 2Gi at weight 60" in section(
        text, "Applied from"
    )
