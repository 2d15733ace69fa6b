"""This version takes the objects of the last release, and decides about them as that did (docs/releases.md). Where it
is meant to decide otherwise: `python -m tests.recorded.released --again`, and a line in CHANGELOG.md."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hvpa.api.crd import render_crd
from hvpa.api.hvpa.resource import API_VERSION, KIND, validate_manifest
from tests.recorded import answers
from tests.recorded.released.decisions import decided
from tests.recorded.replay import differences
from tools.crd_changes import refusals

FOLDER = Path(__file__).resolve().parents[1] / "recorded/released"
RECORDED = answers.read("released/decisions")


NARROWED = (
    ".status.desired.readyPods: is gone",
    ".usualDemand[].peak",
    ".spec.targetRef.",
    ".spec.hpa.name: pattern is",
    ".spec.vpa.name: pattern is",
    ".containerResource.container: ",
    ".containerPolicies[].containerName: ",
    ".spec.hpa.schedule: maxItems is 20",
    ".spec.maintenanceWindows: maxItems is 20",
    ".spec.trajectory.intervals: maxItems is 30",
    ".spec.updateStrategy.type: default is None",
)
"""Refused since on purpose: names that no object can have (decision 0056), and more schedules and intervals than can be
worked on within the budget of a decision (0054). Computed: the default update strategy (0064). Gone from the status:
what the joint decision no longer remembers (0062)."""
NEW_FIELDS = (
    ".spec: has a new rule: !has(self.startupBoost)",
    ".spec: has a new rule: !has(self.hpa) || !has(self.hpa.fallback)",
    ".spec.hpa.template.spec: has a new rule: !has(self.scaleTargetRef)",
    ".spec.vpa.template.spec: has a new rule: !has(self.targetRef)",
    ".spec.vpa.template.spec: has a new rule: !has(self.updatePolicy)",
    ".containerPolicies[]: has a new rule: !has(self.startupBoost)",
)
"""Rules about fields that the last release did not have."""
WIDENED = ": x-kubernetes-preserve-unknown-fields is True, was None"
"""More is taken than by the last release, which dropped these fields (decision 0092)."""
MOVED = ".spec.hpa: has a new rule: !has(self.deploy) || !self.deploy || !has(self.template)"
"""Rules of minReplicas: the last release had them in the template, where they held without `deploy` as well."""


def test_the_crd_takes_what_that_of_the_last_release_took() -> None:
    problems = refusals(json.loads((FOLDER / "crd.json").read_text()), render_crd())
    others = [
        problem
        for problem in problems
        if not problem.endswith(WIDENED) and (MOVED not in problem or "minReplicas" not in problem)
    ]
    assert [
        problem for problem in others if not any(part in problem for part in (*NARROWED, *NEW_FIELDS))
    ] == []


@pytest.mark.parametrize("name", RECORDED)
def test_stored_objects_are_valid_and_decided_as_before(name: str) -> None:
    for number, step in enumerate(RECORDED[name]):
        manifest = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            **{key: step[key] for key in ("metadata", "spec")},
        }
        assert validate_manifest(manifest) == []
        assert differences(f"{name}, decision {number}", decided(step), step["decided"]) is None


def test_every_sort_of_decision_is_recorded() -> None:
    of_gardener = {name for name in RECORDED if "gardener" in name}
    assert len(of_gardener) == 3
    decisions = [step["decided"] for steps in RECORDED.values() for step in steps]
    patched = Counter(key for decision in decisions for key in decision["patch"] or ())
    assert patched["replicas"] > 20
    assert patched["template"] > 6
    assert sum(bool(decision["resizes"]) for decision in decisions) > 2
    assert len({reason for decision in decisions for _, _, reason, *_ in decision["blocked"]}) > 4
