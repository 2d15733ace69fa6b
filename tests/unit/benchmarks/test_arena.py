"""The arena: what is drawn, that all that is drawn can run, what it is judged by, and what its model of response times
says."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from benchmarks.arena import run
from benchmarks.arena.command import main
from benchmarks.arena.draw import METRICS, WEIGHTS, drawn
from benchmarks.arena.outcome import SERVICE, TIMEOUT, Outcome, outcome_of, percentile, response_means
from benchmarks.arena.policies import AGAIN, BOTH, HPA, HVPA, VPA, policies, rival, scenario_of
from benchmarks.arena.report import compared, report, verdict
from benchmarks.arena.run import Result, run_one
from hvpa_lab.simulate.model import SimulationEvent
from hvpa_lab.simulate.scenario.read import load_scenario
from tests.unit.lab.simulate import build, joint_build

FINE = Outcome(
    cost=100.0,
    cpu_cost=60.0,
    unmet=0.001,
    below=60.0,
    starting=0.2,
    at_most=0.0,
    ooms=0,
    restarts=0,
    p99=0.5,
    replicas=4.0,
    cpu=1.0,
    memory=2.0,
    writes=2,
    replica_changes=4,
    violations=0,
)


def result(number: int = 0, **changes: Any) -> Result:
    own = msgspec.structs.replace(FINE, **changes)
    outcomes = {HVPA: own, BOTH: FINE, AGAIN: FINE, HPA: FINE}
    return Result(number, "text", "CPU", 50, "Trajectory", True, "constant", True, BOTH, outcomes, {})


# --- what is drawn --------------------------------------------------------------------------------------------------
def test_a_workload_depends_on_seed_and_number_alone() -> None:
    assert drawn(1, 7) == drawn(1, 7)
    assert drawn(1, 7) != drawn(2, 7)


def test_each_metric_meets_each_weight_once_in_36() -> None:
    pairs = Counter(
        (workload.metric, workload.weight) for workload in (drawn(3, number) for number in range(36))
    )
    assert set(pairs) == {(metric, weight) for metric in METRICS for weight in WEIGHTS}
    assert set(pairs.values()) == {1}


def test_what_is_drawn_is_ordinary_and_can_be_run(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    kinds = Counter[str]()
    for number in range(150):
        workload = drawn(1, number)
        least, first, most = workload.replicas
        assert 1 <= least <= first <= most <= 50
        assert 0.5 <= workload.target <= 0.9
        cpu, memory = workload.containers[0].requests
        assert 50 <= cpu <= 4000
        assert 64 <= memory <= 8192
        assert (workload.metric == "container CPU") <= (len(workload.containers) > 1)
        path.write_text(yaml.safe_dump(scenario_of(workload, *policies(workload))))
        assert load_scenario(path, number).workload.replicas == first
        kinds.update(
            (
                workload.strategy,
                workload.blend,
                workload.shape,
                workload.kind_of_nodes,
                workload.kubelet.split(" for")[0],
            )
        )
        kinds.update(
            field
            for field in ("blips", "spread", "resizeRefused", "resizeDeferred")
            if field in workload.further
        )
        kinds[f"{len(workload.containers)} containers"] += 1
    assert len(kinds) == 3 + 2 + 4 + 2 + 3 + 4 + 3
    assert min(kinds.values()) >= 3


def test_an_explicit_weight_of_one_axis_is_judged_against_that_axis() -> None:
    rivals = {workload.weight: rival(workload) for workload in (drawn(1, number) for number in range(36))}
    assert rivals == {None: BOTH, 0: HPA, 30: BOTH, 50: BOTH, 80: BOTH, 100: VPA}


def test_all_have_the_same_headroom_and_bounds() -> None:
    workload = next(
        workload
        for workload in map(lambda at: drawn(1, at), range(200))
        if (workload.metric, workload.weight) == ("CPU", 50)
    )
    workload = workload._replace(target=0.8, utilization=True, blend="Trajectory", least=0.5)
    scenario = scenario_of(workload, HVPA, BOTH, HPA)
    hvpa, both, hpa = scenario["policies"]
    spec = hvpa["hvpa"]["spec"]

    def target(policy: dict[str, Any]) -> dict[str, Any]:
        (metric,) = policy["metrics"]
        return dict(metric["resource"]["target"])

    request = sum(container.requests[0] for container in workload.containers)
    assert target(both["hpa"]) == {"type": "AverageValue", "averageValue": f"{round(request * 0.8)}m"}
    assert target(hpa["hpa"]) == {"type": "Utilization", "averageUtilization": 80}
    assert target(spec["hpa"]["template"]["spec"]) == {"type": "Utilization", "averageUtilization": 87}
    assert scenario["controllers"]["vpa"]["safetyMargin"] == 0.15
    assert both["vpa"]["resourcePolicy"] == spec["vpa"]["template"]["spec"]["resourcePolicy"]


# --- response times -------------------------------------------------------------------------------------------------
def test_a_queue_at_half_of_its_capacity_has_the_known_percentile() -> None:
    means = response_means([500.0] * 3, [0.0] * 3, [500.0] * 3, [1000.0] * 3)
    assert {mean for _, mean in means} == {2 * SERVICE}
    assert percentile(means, 0.99) == pytest.approx(2 * SERVICE * math.log(100), abs=1e-3)


def test_what_is_not_served_takes_the_timeout() -> None:
    means = response_means([500.0, 2000.0], [0.0, 1000.0], [500.0, 1000.0], [1000.0] * 2)
    assert means == [(500.0, 0.1), (1000.0, TIMEOUT), (1000.0, TIMEOUT)]
    assert percentile(means, 0.99) == pytest.approx(TIMEOUT, abs=1e-3)
    assert percentile([(99.5, 0.1), (0.5, TIMEOUT)], 0.99) == pytest.approx(
        0.1 * math.log(99.5 / 0.5), abs=1e-3
    )
    assert response_means([10.0], [10.0], [0.0], [0.0]) == [(0.0, TIMEOUT), (10.0, TIMEOUT)], (
        "no pod is ready"
    )


# --- verdicts -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "kinds", "reason"),
    [
        ({"cost": 114.0}, None, ""),
        ({"cost": 116.0}, ("cost",), "cost +16%"),
        ({"cost": 116.0, "unmet": 0.0}, ("cost",), "cost"),
        ({"cost": 60.0, "unmet": 0.012}, ("unmet",), "unmet 1.2% (0.1%), while all pods were ready"),
        ({"unmet": 0.012, "starting": 0.8}, ("unmet",), "80% of it while pods were missing or not ready"),
        ({"unmet": 0.012, "at_most": 0.8}, ("unmet",), "80% of it at maxReplicas"),
        ({"ooms": 2}, ("OOMs",), "2 OOMs (0): memory follows the load, and is not measured"),
        ({"cost": 130.0, "ooms": 2, "memory": 4.0}, ("OOMs", "cost"), "memory of a pod ×2.00"),
    ],
)
def test_what_is_worse_has_its_reason(
    changes: dict[str, Any], kinds: tuple[str, ...] | None, reason: str
) -> None:
    found = verdict(result(**changes))
    assert (None if found is None else found.kinds) == kinds
    assert found is None or reason in found.reason


def test_more_cost_that_serves_more_is_not_worse() -> None:
    own = result(cost=200.0)
    short = msgspec.structs.replace(FINE, unmet=0.05)
    assert verdict(msgspec.structs.replace(own, outcomes={**own.outcomes, BOTH: short})) is None


def test_decisions_that_break_an_invariant_are_counted() -> None:
    scenario = build.scenario(step=60.0)
    simulated = joint_build.run(joint_build.joint(), build.constant(2.0), scenario.duration / 86400).result
    assert outcome_of(scenario, simulated, 30, 0.0).violations == 0
    broken = SimulationEvent(60.0, "Violation", "capacity", "memory: 1 of 2 served by 1 pods")
    events = (*simulated.events, broken, broken)
    assert outcome_of(scenario, dataclasses.replace(simulated, events=events), 30, 0.0).violations == 2


def test_the_tables_have_a_row_for_each_group_that_there_is() -> None:
    text = report(1, [result(0, cost=50.0), result(1, cost=200.0, ooms=3, violations=2)])
    (row,) = [line for line in text.splitlines() if line.startswith("in place ")][:1]
    assert row.split()[2:7] == ["2", "1.00", "0.88", "to", "1.62"]
    assert "#1 OOMs+cost: text" in text
    assert "requests (2 workloads)" in text
    assert "Decisions that break an invariant: 2, #1\n" in text
    assert "replaced" not in text


def test_the_report_says_how_often_chance_alone_makes_a_workload_worse() -> None:
    unlucky = result(0)
    unlucky = msgspec.structs.replace(
        unlucky, outcomes={**unlucky.outcomes, AGAIN: msgspec.structs.replace(FINE, cost=FINE.cost * 1.2)}
    )
    text = report(1, [unlucky, result(1)])
    assert "By chance: HPA+VPA is worse than itself with other noise in 1 of 2 workloads" in text
    assert "Worse than the rival: 0" in text


def test_the_same_policy_runs_again_with_other_noise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    noises = []

    def loaded(_: Path, noise: int) -> object:
        noises.append(noise)
        raise ValueError

    monkeypatch.setattr(run, "load_scenario", loaded)
    for name in (BOTH, AGAIN):
        run_one(7, 4, name, tmp_path)
    assert noises == [11, 5011]


def test_two_results_are_compared_by_workload() -> None:
    before = [result(0), result(1)]
    after = [result(0), result(1, cost=200.0)]
    text = compared(before, after)
    assert "#0" not in text
    assert "#1" in text
    assert "fine > cost" in text
    assert "2 workloads: cost 1.000 > 1.414, worse 0 > 1" in text


# --- running --------------------------------------------------------------------------------------------------------
def test_what_was_run_is_found_again_and_faults_have_their_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def simulated(*_: object) -> object:
        ran.append("")
        raise ValueError("no good")

    monkeypatch.setattr(run, "simulate", simulated)
    assert run_one(1, 0, HPA, tmp_path) == (None, "ValueError: no good")
    assert list(tmp_path.iterdir()) == [], "a fault is not kept"
    monkeypatch.setattr(run, "simulate", lambda *_: ran.append(""))
    monkeypatch.setattr(run, "outcome_of", lambda *_: FINE)
    assert run_one(1, 0, HPA, tmp_path) == (FINE, "")
    assert run_one(1, 0, HPA, tmp_path) == (FINE, "")
    assert len(ran) == 2
    assert run_one(1, 0, BOTH, tmp_path) == (FINE, "")
    assert len(ran) == 3


def test_one_workload_is_printed_as_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {(4, name): (FINE, "") for name in policies(drawn(1, 4))}
    monkeypatch.setattr("benchmarks.arena.command.run_all", lambda *_: found)
    assert main(["--only", "4", "--json", str(tmp_path / "all.json"), "--keep", str(tmp_path)]) == 0
    text = capsys.readouterr().out.partition("---")[0]
    assert yaml.safe_load(text)["name"] == "Arena 4"
    assert main(["--only", "4", "--compare", str(tmp_path / "all.json"), "--keep", str(tmp_path)]) == 0
    assert "1 workloads: cost 1.000 > 1.000" in capsys.readouterr().out


def test_hvpas_in_place_have_the_fast_signal_if_wanted() -> None:
    found = {False: 0, True: 0}
    for number in range(40):
        workload = drawn(1, number)
        scenario = scenario_of(workload, HVPA, BOTH, kubelets="Housekeeping1s")
        spec = scenario["policies"][0]["hvpa"]["spec"]
        assert ("fastSignal" in spec) == workload.in_place == ("kubelets" in scenario["metrics"])
        found[workload.in_place] += 1
    assert min(found.values()) > 0


def test_the_report_takes_the_place_of_the_last_one_on_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {(4, name): (FINE, "") for name in policies(drawn(1, 4))}
    monkeypatch.setattr("benchmarks.arena.command.run_all", lambda *_: found)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- arena -->\nthe last one\n<!-- end -->\nafter\n")
    command = ["--only", "4", "--keep", str(tmp_path), "--page", str(page)]
    for _ in range(2):
        assert main(command) == 0
    text = page.read_text()
    assert text.startswith("before\n<!-- arena -->\n```text\nSeed 1, 1 workloads")
    assert text.endswith("\n```\n<!-- end -->\nafter\n")
    assert "the last one" not in text
    page.write_text("no marks")
    with pytest.raises(SystemExit, match=r"page\.md: no <!-- arena -->"):
        main(command)


@pytest.mark.long
def test_a_workload_runs(tmp_path: Path) -> None:
    done, why = run_one(1, 6, HPA, tmp_path)
    assert not why
    assert done is not None
    assert done.cost > 0
    assert 0 <= done.unmet < 1
    assert done.writes == 0
