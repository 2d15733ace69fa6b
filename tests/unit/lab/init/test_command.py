"""`hvpa init` on files: what is written and printed, that it is what `hvpa simulate` finds, and what is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa.api.hvpa.resource import validate_manifest
from tests.unit.cli.schema import check, schema_of
from tests.unit.cli.support import Shell
from tests.unit.lab.init.conftest import Init
from tests.unit.lab.init.documents import CPU_70, START, hpa, load_at, usage, vpa, workload

PLAIN = [workload(), hpa(CPU_70)]
IN_PLACE = ("--kubernetes", "1.33")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_what_is_written_is_valid_and_says_why(init: Init, shell: Shell) -> None:
    ran = init(PLAIN, *IN_PLACE)
    assert (ran.code, ran.err) == (0, "")
    out = shell.folder / "out"
    assert sorted(os.listdir(out)) == ["hvpa.yaml", "load.csv", "scenario.yaml"]
    assert validate_manifest(read(out / "hvpa.yaml")) == []
    assert shell.run("validate", "-f", str(out / "hvpa.yaml")).code == 0
    text = (out / "hvpa.yaml").read_text()
    numbers = [line for line in text.splitlines() if re.search(r": .*\d", line) and "#" not in line]
    # Beside each number, or beside the block that it stands in, is a reason.
    explained = re.findall(r"^ *#.*\n(?: *(?!#).*\n)+?(?= *#|\Z)", text, re.MULTILINE)
    assert all(any(line in block for block in explained) for line in numbers)
    assert [name for name in os.listdir(shell.folder) if name.startswith(".")] == []


def test_the_numbers_of_the_manifest_are_those_of_the_history(init: Init, shell: Shell) -> None:
    ran = init(PLAIN, *IN_PLACE, "-o", "json")
    check(ran.json, schema_of("init"))
    spec = read(shell.folder / "out" / "hvpa.yaml")["spec"]
    target = next(trial["target"] for trial in ran.json["tried"] if trial["chosen"])
    assert spec["updateStrategy"] == {"type": "InPlaceOrRollout"}
    hpa_spec = spec["hpa"]["template"]["spec"]
    assert (hpa_spec["minReplicas"], hpa_spec["maxReplicas"]) == (2, 12)
    assert [metric["resource"]["target"]["averageUtilization"] for metric in hpa_spec["metrics"]] == [
        target
    ] * 2
    assert spec["trajectory"]["baseResourcesPerReplica"] == {
        "cpu": {"value": "150m"}, "memory": {"value": "400Mi"},
    }  # fmt: skip
    (policy,) = spec["vpa"]["template"]["spec"]["resourcePolicy"]["containerPolicies"]
    # 2 pods at a load of 50 and a bit: 150m + 26 * 10m of the target's part of the request.
    assert policy["minAllowed"]["cpu"] == {70: "590m", 80: "520m"}[target]
    scenario = read(shell.folder / "out" / "scenario.yaml")
    (app,) = scenario["workload"]["containers"]
    assert float(app["cpu"]["perUnit"].rstrip("n")) / 1e9 == pytest.approx(0.01, rel=0.01)
    assert scenario["workload"]["resize"] == "InPlace"


@pytest.mark.parametrize("documents", [PLAIN, [workload(), hpa(CPU_70), vpa("Recreate")], [workload()]])
def test_the_scenario_is_what_was_simulated(init: Init, shell: Shell, documents: list[Any]) -> None:
    report = init(documents, "-o", "json", "--seeds", "2").json
    chosen = next(trial for trial in report["tried"] if trial["chosen"])
    for seed in (0, 1):
        path = str(shell.folder / "out" / "scenario.yaml")
        (scenario,) = shell.run("simulate", path, "-o", "json", "--jobs", "1", "--seed", str(seed)).json[
            "scenarios"
        ]
        counted = (scenario["durationSeconds"] - scenario["warmUpSeconds"]) / (7 * 86400)
        costs = [policy["figures"]["cost"] / counted for policy in scenario["policies"]]
        outcomes = [
            report["today"],
            *([chosen["todayAtThisTarget"]] if chosen["todayAtThisTarget"] else []),
            chosen["outcomes"],
        ]
        assert costs == pytest.approx([outcome[seed]["costPerWeek"] for outcome in outcomes])
        assert [policy["figures"]["restarts"] / counted for policy in scenario["policies"]] == pytest.approx(
            [outcome[seed]["restartsPerWeek"] for outcome in outcomes]
        )


def test_the_same_input_gives_the_same_output(init: Init, shell: Shell) -> None:
    first = init(PLAIN)
    written = {path.name: path.read_bytes() for path in (shell.folder / "out").iterdir()}
    assert init(PLAIN, "--force").out == first.out
    assert {path.name: path.read_bytes() for path in (shell.folder / "out").iterdir()} == written


def test_the_text_has_what_was_read_learnt_simulated_and_concluded(init: Init, shell: Shell) -> None:
    out = init([*PLAIN, vpa("Off")], *IN_PLACE).out
    assert out.startswith("Deployment shop/web, scaled by HPA web and VPA web (Off)\n")
    assert "app: CPU 150m per replica and 10m per unit of load; explains 100 percent" in out
    assert "daily load pattern: lowest about 00:00" in out
    assert re.search(r"^today, at 80 percent +[\d.]+ ", out, re.MULTILINE)
    assert "\nConclusion\n  " in out
    assert max(len(line) for line in out.splitlines() if str(shell.folder) not in line) <= 120


@pytest.mark.parametrize(("every", "is_said"), [(60, True), (300, False)])
def test_a_load_jump_is_a_finding_if_the_history_shows_how_fast_it_is(
    init: Init, every: int, is_said: bool
) -> None:
    head, *rows = usage(1, every=every).splitlines()
    middle = len(rows) // 2
    jumped = [
        row.rpartition(",")[0] + f",{100 if number < middle else 320}" for number, row in enumerate(rows)
    ]
    out = init(PLAIN, history="\n".join([head, *jumped]) + "\n").out
    jump = "  load jump: 3.2 times as much within 1m, at 2026-01-05T12:00:00Z; spec.fastSignal covers"
    assert ("Findings" in out, jump in out) == (True, is_said)


def test_the_namespace_and_the_workload_are_those_of_the_files(init: Init, shell: Shell) -> None:
    ran = init(PLAIN, "-o", "json")
    assert (ran.json["workload"]["namespace"], ran.json["workload"]["name"]) == ("shop", "web")
    other = workload()
    other["metadata"]["name"] = "other"
    assert (
        "name the workload: there are Deployment web, Deployment other"
        in init([*PLAIN, other], "--force").err
    )
    assert init([*PLAIN, other], "--force", "deployment/web").code == 0


def test_a_workload_that_already_is_the_cheapest_is_best_kept(init: Init, shell: Shell) -> None:
    tight = {"name": "app", "resources": {"requests": {"cpu": "900m", "memory": "600Mi"}}}
    ran = init([workload(tight), hpa(CPU_70)], *IN_PLACE)
    assert (ran.code, ran.err) == (0, "")
    words = " ".join(ran.out.partition("\nConclusion\n")[2].split())
    assert words.startswith("Keep today's configuration, because "), words
    out = shell.folder / "out"
    assert sorted(os.listdir(out)) == ["hvpa.yaml", "load.csv", "scenario.yaml"]
    assert f"Written: {out / 'hvpa.yaml'}, {out / 'scenario.yaml'}" in ran.out
    assert "Or watch it first: with `mode: Recommend` in its spec" in ran.out
    assert validate_manifest(read(out / "hvpa.yaml")) == []


@pytest.mark.parametrize(
    ("hours", "doubted"), [((0, 6), False), ((18, 24), True)], ids=["not counted", "counted"]
)
def test_replicas_that_no_load_explains_are_a_reason_for_doubt(
    init: Init, hours: tuple[int, int], doubted: bool
) -> None:
    """The simulation warms up for six hours of the day."""

    def replicas(at: int) -> int:
        first, last = hours
        usual = 2 + round(load_at(at) / 70)
        return 12 if first <= (at - START) / 3600 < last else usual

    doubts = init(PLAIN, "-o", "json", history=usage(replicas=replicas)).json["doubts"]
    assert any("replicas in the simulation" in doubt for doubt in doubts) is doubted


# --- bad input -------------------------------------------------------------------------------------------------------
def nothing_written(shell: Shell) -> bool:
    return not {name for name in os.listdir(shell.folder) if name not in ("shop.yaml", "usage.csv", "taken")}


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        ("time,replicas,cpu,memory\n0,1,1,1\n", "2: replicas: there is only one value"),
        (usage(0.5), "the history is 12h long: at least a day is needed"),
        ("", "1: time: there is no column of this name"),
    ],
)
def test_a_history_that_says_nothing_is_refused(init: Init, shell: Shell, history: str, reason: str) -> None:
    ran = init(PLAIN, history=history or "\n")
    assert (ran.code, ran.out, reason in ran.err, len(ran.err.splitlines())) == (1, "", True, 1), ran.err
    assert nothing_written(shell)


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([hpa(CPU_70)], "name the workload: there are none"),
        ([*PLAIN, hpa(CPU_70, name="second")], "2 objects of kind HorizontalPodAutoscaler scale Deployment web"),
        ([workload(), hpa({"type": "Pods", "pods": {"metric": {"name": "rps"},
          "target": {"type": "AverageValue", "averageValue": "50"}}})], "the HPA scales by rps, so the history must"),
    ],
)  # fmt: skip
def test_what_can_not_be_taken_over_is_refused(
    init: Init, shell: Shell, documents: list[Any], reason: str
) -> None:
    ran = init(documents, history=usage(load=False))
    assert (ran.code, reason in ran.err, len(ran.err.splitlines())) == (1, True, 1), ran.err
    assert nothing_written(shell)


def test_what_can_not_be_simulated_is_refused_by_its_place_in_the_folder(init: Init, shell: Shell) -> None:
    ran = init([workload(), hpa({"type": "Resource", "resource": {"name": "ephemeral-storage", "target": {
        "type": "AverageValue", "averageValue": "1Gi"}}})])  # fmt: skip
    assert ran.code == 1
    assert re.search(r"out/scenario\.yaml:\d+: policies\[0\]\.hpa\.metrics\[0\]", ran.err), ran.err
    assert nothing_written(shell)


def test_a_folder_that_is_there_is_left_alone_without_force(init: Init, shell: Shell) -> None:
    taken = shell.folder / "taken"
    taken.mkdir()
    (taken / "hvpa.yaml").write_text("mine")
    (taken / "notes").write_text("mine")
    ran = init(PLAIN, "--out", str(taken))
    assert (ran.code, "already exists; --force replaces" in ran.err) == (1, True)
    assert (taken / "hvpa.yaml").read_text() == "mine"
    assert init(PLAIN, "--out", str(taken), "--force").code == 0
    assert "kind: Hvpa" in (taken / "hvpa.yaml").read_text()
    assert (taken / "notes").read_text() == "mine"


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("--csv x --prometheus http://x deployment/web", "give the history: --csv FILE or --prometheus URL"),
        ("deployment/web", "give the history"),
        ("--csv x", "name a workload, such as deployment/web"),
        ("--csv x web", "'web' is not deployment/NAME, another kind, or KIND.GROUP/NAME"),
        ("--csv x pod/web", "is not deployment/NAME, another kind"),
        ("--csv x deployment/web --load up", "--load requires --prometheus"),
        (
            "--csv x deployment/web --prometheus-token x",
            "--prometheus-token requires --prometheus",
        ),
        ("--csv x deployment/web --step 1m", "--step requires --prometheus"),
        ("--csv x -f x --context c", "--kubeconfig and --context can't be used with -f"),
        ("--csv x deployment/web --kubernetes 2.0", "'2.0' is not a version such as 1.33"),
        ("--csv x deployment/web --since 0s", "'0s' is not a duration of a second or more"),
        ("--csv x deployment/web --days 0", "is not a whole number of at least 1"),
    ],
)
def test_a_wrong_command_line_is_one_line(shell: Shell, flags: str, reason: str) -> None:
    assert reason in shell.refuses("init", *flags.split(), code=2)


def test_a_file_that_is_not_there_is_named(shell: Shell) -> None:
    document = shell.file(PLAIN)
    assert "absent.csv can't be read: No such file" in shell.refuses(
        "init", "-f", document, "--csv", "absent.csv"
    )
