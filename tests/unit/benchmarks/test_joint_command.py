"""The options of `python -m benchmarks joint`: which seeds run, and what slow pods are."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.joint import command, kept
from benchmarks.joint.generated import generated
from benchmarks.joint.kept import Kept
from benchmarks.joint.policies import BASELINE, LINE, POLICIES, POLICY, WORKLOADS, Case, headroom
from benchmarks.joint.run import SCENARIO, Job, Run, scenario_of, write_scenario
from hvpa_lab.simulate.scenario.read import load_scenario
from tests.unit.benchmarks.test_joint_kept import run

ONLY = "leak,cpu,HPA+VPA/Recreate"


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """What would be run; nothing is."""
    planned_jobs: list[Job] = []

    def pretended(jobs: list[Job], *_: object) -> list[Run]:
        planned_jobs.extend(jobs)
        return [run(job.policy, job.seed, 10) for job in jobs]

    monkeypatch.setattr(command, "run_all", pretended)
    monkeypatch.setattr(command, "report", lambda _: "tables")
    monkeypatch.setattr(command, "_oracles", lambda _: {("wave", "cpu", "Recreate"): [7]})
    return planned_jobs


def test_seeds_begin_where_they_are_said_to(jobs: list[Job], tmp_path: Path) -> None:
    arguments = ["--out", str(tmp_path), "--only", ONLY, "--first-seed", "5", "--seeds", "2"]
    assert command.main(arguments) == 0
    assert {job.seed for job in jobs} == {5, 6}
    results = msgspec.json.decode((tmp_path / "results.json").read_bytes(), type=Kept)
    assert (results.first_seed, results.seeds, results.processes) == (5, 2, 1)


def test_each_policy_runs_with_all_headrooms_of_the_line(jobs: list[Job], tmp_path: Path) -> None:
    only = "leak,cpu,Trajectory 50/Recreate"
    assert command.main(["--out", str(tmp_path), "--only", only, "--seeds", "1", "--line"]) == 0
    pairs = {(job.policy, job.target) for job in jobs}
    assert pairs == {(policy, target) for policy in (BASELINE, POLICY) for target in LINE}


def test_results_are_kept_by_their_name(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    command.main(["--out", str(tmp_path), "--only", ONLY, "--seeds", "1", "--slow", "--keep", "slow"])
    command.main(["--out", str(tmp_path), "--only", ONLY, "--seeds", "1", "--keep"])
    assert [job.scenario["workload"].get("terminationGrace") for job in jobs] == ["30s"] * 3 + [None] * 3
    assert kept.read("slow").seeds == kept.read().seeds == 1


@pytest.mark.parametrize("slow", [False, True], ids=["usual", "slow"])
def test_slow_pods_start_stop_and_give_back_slowly(slow: bool, tmp_path: Path) -> None:
    (policy,) = [policy for policy in POLICIES if policy.full_name == "HPA/Recreate"]
    (load, *_) = generated(0, 2)
    case = Case(WORKLOADS[0]._replace(slow=slow), headroom(800), "Recreate")
    scenario = load_scenario(
        write_scenario(tmp_path / SCENARIO, scenario_of(load, case, [policy]), load.file, load.text), 0
    )
    container = scenario.workload.containers[0]
    figures = (scenario.workload.termination_grace, container.cpu_start_up, container.memory_kept)
    assert figures == ((30, 500, 0.5) if slow else (0, None, 0))
