"""Each reason that needs action has its remedy, in code and in the documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from builders import build
from hvpa.api.hvpa.status import HvpaStatus, StatusCondition
from hvpa.api.objects.read_models import Meta
from hvpa.core.report import remedies
from hvpa.core.report.remedies import LENGTH, REMEDIES, advised, entered, left, needs_action, remedy
from tests.reasons import finding_reasons
from tools.remedies import page

HEALTHY = {
    *("Reconciled", "HeldBack", "Recommend", "Recommending", "ReadAsIs", "YoungHistory"),
    *("NotBlocked", "NotPaused", "NotContested", "Reporting"),
}
"""Reasons of conditions that are as they should be. (`Recommend` and `Paused` are also modes.)"""


def one(kind: str, status: str, reason: str, message: str = "because") -> StatusCondition:
    return StatusCondition(type=kind, status=status, reason=reason, message=message)


def test_each_reason_of_a_condition_has_a_remedy_or_needs_none() -> None:
    assert sorted(finding_reasons() - HEALTHY - remedies.EXPECTED - set(REMEDIES)) == []


def test_no_remedy_is_for_a_reason_that_needs_none() -> None:
    assert not set(REMEDIES) & (HEALTHY | remedies.EXPECTED)
    assert set(REMEDIES) >= remedies.NOTEWORTHY


def test_the_page_of_remedies_is_up_to_date() -> None:
    assert (Path(__file__).parents[4] / "docs" / "remedies.md").read_text() == page()


@pytest.mark.parametrize("reason", ["FailedGetResourceMetric", "FailedComputeMetricsReplicas"])
def test_a_family_of_reasons_has_one_remedy(reason: str) -> None:
    assert "kubectl top pods" in remedy(reason)


def test_a_reason_that_is_not_known_leads_to_explain() -> None:
    assert "hvpa explain" in remedy("Unheard")


def test_a_command_names_the_hvpa() -> None:
    web = Meta(name="web", namespace="shop")
    assert "`hvpa resume web -n shop`" in remedy("Paused", web)
    assert "`hvpa resume web -n shop`" in advised("Paused", "spec.mode is Paused", web)
    assert remedy("TargetNotFound", web) == remedy("TargetNotFound")


@pytest.mark.parametrize(
    ("spec", "replaces"),
    [
        ({"updateStrategy": {"type": "InPlace"}}, False),
        ({"updateStrategy": {"type": "InPlaceOrRollout"}}, True),
        ({"blend": "Trajectory", "updateStrategy": None}, True),
        ({"updateStrategy": {"type": "Rollout"}}, True),
    ],
)
def test_no_remedy_names_the_strategy_that_counts_already(spec: dict[str, Any], replaces: bool) -> None:
    """Set, or by default, or for a day in place of InPlaceOrRollout."""
    hvpa_spec = build.hvpa(spec).spec
    text = remedy("PodsNotResized", None, hvpa_spec)
    assert ("to InPlaceOrRollout" in text, "HVPA replaces the pods" in text) == (not replaces, replaces)
    assert advised("PodsNotResized", "pod a: no room", None, hvpa_spec) == f"pod a: no room. {text}."
    assert remedy("TargetNotFound", None, hvpa_spec) == REMEDIES["TargetNotFound"]


def test_a_message_ends_with_its_remedy_once_and_is_cut_for_it() -> None:
    whole = advised("TargetNotFound", "Deployment web does not exist.")
    assert whole == f"Deployment web does not exist. {REMEDIES['TargetNotFound']}."
    assert advised("TargetNotFound", whole) == whole
    long = advised("Refused", "x" * 5000)
    assert len(long) <= LENGTH
    assert long.endswith(f"x… {REMEDIES['Refused']}.")


@pytest.mark.parametrize("message", ["no such host", "no such host.", "is it running?", "stop!", "gone…"])
def test_no_message_and_remedy_are_joined_by_two_marks(message: str) -> None:
    for reason in REMEDIES:
        whole = advised(reason, message)
        assert whole.endswith(f" {REMEDIES[reason]}.")
        assert not re.search(r"[.?!…;:] ?[.?!;]", whole)


@pytest.mark.parametrize(
    ("condition", "needed"),
    [
        (one("Ready", "False", "TargetNotFound"), True),
        (one("Ready", "False", "Unheard"), True),
        (one("Ready", "True", "Reconciled"), False),
        (one("Ready", "True", "Saturated"), True),
        (one("HpaActive", "False", "HpaCreated"), False),
        (one("VpaActive", "False", "ForeignVpa"), True),
        (one("ScalingBlocked", "True", "Refused"), False),
        (one("Contested", "True", "SetBack"), True),
        (one("Contested", "False", "NotContested"), False),
        (one("Paused", "True", "Paused"), True),
    ],
)
def test_what_needs_action(condition: StatusCondition, needed: bool) -> None:
    assert needs_action(condition) is needed


def test_a_state_is_entered_once_and_left_once() -> None:
    def status(value: str, reason: str, message: str = "because") -> HvpaStatus:
        contested = one("Contested", "False", "NotContested")
        return HvpaStatus(conditions=(one("Ready", value, reason, message), contested))

    nothing, healthy = HvpaStatus(), status("True", "Reconciled")
    broken, worse = status("False", "TargetShared"), status("False", "TargetNotFound")
    reworded = status("False", "TargetShared", "more")
    for before, after, begun in (
        (healthy, broken, ["TargetShared"]),
        (nothing, broken, ["TargetShared"]),  # the first status of all
        (broken, reworded, []),
        (broken, worse, ["TargetNotFound"]),
    ):
        assert [condition.reason for condition in entered(before, after)] == begun
        assert not list(left(before, after)), "of one that goes on, or is another one, nothing is over"
    over = [(was.reason, now.reason) for was, now in left(worse, healthy)]
    assert over == [("TargetNotFound", "Reconciled")]
    assert not list(left(broken, nothing)), "nothing is known"
