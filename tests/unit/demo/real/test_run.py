"""Which nodes the demo has, its manifests, and what its story lacks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from demo.demo_cluster import with_mode
from demo.options import Options
from demo.real import run
from demo.real.comparison import Run
from demo.scenario import Scenario
from hvpa.api.hvpa.resource import validate_manifest
from localcluster.node import node
from localcluster.workloads.traffic import Answers

HERE = Path(run.__file__).parent


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that can run real nodes."""
    monkeypatch.setattr(node, "why_not", lambda: "")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


@pytest.mark.usefixtures("able")
class TestWhySimulated:
    def test_a_machine_that_can_has_real_nodes(self) -> None:
        assert run.why_simulated(Options()) == run.why_simulated(Options(nodes="real")) == ""

    @pytest.mark.parametrize(
        ("chosen", "reason"),
        [
            (Options(nodes="simulated"), "NODES=simulated"),
            (Options(keep=True), "KEEP=1 is for them alone"),
            (Options(sizes="Rollout"), "DEMO=rollout is for them alone"),
        ],
    )
    def test_an_option_may_need_simulated_ones(self, chosen: Options, reason: str) -> None:
        assert run.why_simulated(chosen) == reason

    def test_a_machine_that_can_not_has_a_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(node, "why_not", lambda: "real nodes need Linux")
        assert run.why_simulated(Options()) == "real nodes need Linux"

    def test_one_core_is_too_few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
        assert run.why_simulated(Options()) == "real nodes need 2 cores, and there is 1"


class TestFaults:
    SCENARIO = Scenario(seconds=100)
    FAST, SLOW = Answers(0, (5.0,)), Answers(1, ())

    def test_a_story_that_held_has_none(self) -> None:
        answers = {second: self.SLOW if 15 < second < 30 else self.FAST for second in range(100)}
        assert run.faults(Run("x", answers, (), 0), {"web-1"}, self.SCENARIO) == []

    def test_no_larger_container_and_no_recovery_are_faults(self) -> None:
        answers = {second: self.SLOW if second > 15 else self.FAST for second in range(100)}
        assert run.faults(Run("x", answers, (), 0), set(), self.SCENARIO) == [
            "no running container was granted more CPU",
            "latency did not come back within its goal while the load was high",
        ]


class TestManifests:
    def test_the_hvpa_is_valid(self) -> None:
        hvpa = yaml.safe_load((HERE / "hvpa.yaml").read_text().replace("$NAMESPACE", "x"))
        assert validate_manifest(with_mode(hvpa, "Off")) == []

    def test_hpa_and_vpa_have_its_bounds_and_its_hold(self) -> None:
        hvpa = yaml.safe_load((HERE / "hvpa.yaml").read_text())["spec"]
        hpa, vpa = (document["spec"] for document in yaml.safe_load_all((HERE / "rivals.yaml").read_text()))
        own = hvpa["hpa"]["template"]["spec"]
        assert [hpa[name] for name in ("minReplicas", "maxReplicas")] == [
            own["minReplicas"],
            own["maxReplicas"],
        ]
        hold = hpa["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
        assert hvpa["hpa"]["scaleDown"]["stabilizationDuration"] == f"{hold}s"
        assert hvpa["vpa"]["template"]["spec"]["resourcePolicy"] == vpa["resourcePolicy"]
