"""The command `hvpa simulate`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from hvpa_lab.simulate import command as simulate
from hvpa_lab.simulate import parallel, progress
from hvpa_lab.simulate.report import page
from hvpa_lab.simulate.report.json import schema
from tests.unit.cli.schema import check
from tests.unit.cli.support import Ran, Shell

ROOT = Path(__file__).parents[4]
APP = {
    "name": "app",
    "requests": {"cpu": "500m", "memory": "256Mi"},
    "cpu": {"perUnit": "10m"},
    "memory": {"base": "100Mi"},
}
SCENARIO: dict[str, Any] = {
    "name": "small",
    "duration": "10m",
    "load": {"formula": "100 + 50 * sin(t / hour)", "noise": 0.1},
    "workload": {"name": "web", "replicas": 2, "containers": [APP]},
    "policies": [{"name": "large", "fixed": {"replicas": 9}}, {"name": "small", "fixed": {"replicas": 1}}],
}


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """The command silences its process's logs; other tests want to read theirs."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture
def scenario(shell: Shell) -> str:
    """A small scenario's file."""
    return shell.file(SCENARIO)


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the work in this process, which is quicker to start."""
    monkeypatch.setattr(simulate, "processors", lambda: 1)


@pytest.fixture
def before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that begins is an error of the program."""
    monkeypatch.setattr(simulate, "simulate_all", None)


def test_the_table_is_printed(shell: Shell, scenario: str) -> None:
    ran = shell.run("simulate", scenario)
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[:2] for line in ran.out.splitlines()[6:8]] == [["1", "large"], ["2", "small"]]


def test_json_follows_the_schema_and_is_the_same_to_the_byte(shell: Shell, scenario: str) -> None:
    def with_seed(seed: str) -> Ran:
        return shell.run("simulate", scenario, scenario, "-o", "json", "--seed", seed)

    ran = with_seed("5")
    assert (ran.code, ran.err) == (0, "")
    check(ran.json, schema())
    assert [result["seed"] for result in ran.json["scenarios"]] == [5, 5]
    assert ran.json["scenarios"][0]["policies"][0]["series"] is None
    assert with_seed("5").out == ran.out
    assert with_seed("6").out.replace('"seed": 6', '"seed": 5') != ran.out


def test_series_are_printed_where_they_are_asked_for(shell: Shell, scenario: str) -> None:
    ran = shell.run("simulate", scenario, "-o", "json", "--series", "--policy", "small")
    (policy,) = ran.json["scenarios"][0]["policies"]
    assert (policy["name"], policy["series"]["replicas"]["values"]) == ("small", [1.0, 1.0])


def test_the_page_is_written_the_same_to_the_byte(shell: Shell, scenario: str) -> None:
    html = shell.folder / "page.html"
    written = []
    for _ in range(2):
        ran = shell.run("simulate", scenario, "--html", str(html))
        assert (ran.code, ran.err) == (0, "")
        assert "large" in ran.out
        written.append(html.read_bytes())
    assert written[0] == written[1]
    assert html.read_text().startswith("<!DOCTYPE html>")


def test_the_baseline_and_the_prices_are_the_users(shell: Shell, scenario: str) -> None:
    flags = ("--baseline", "small", "--cpu-price", "6", "--memory-price", "0")
    (result,) = shell.run("simulate", scenario, "-o", "json", *flags).json["scenarios"]
    assert result["baseline"] == "small"
    assert result["prices"] == {"cpuPerCoreHour": 6.0, "memoryPerGibHour": 0.0}
    # Ten minutes of nine pods, and of one, that request half a core: 0.75 and 0.0833 core-hours.
    assert [policy["figures"]["cost"] for policy in result["policies"]] == [4.5, 0.5]
    assert [policy["figures"]["costDifference"] for policy in result["policies"]] == [8.0, None]


# --- what is refused before the work ---------------------------------------------------------------------------------
@pytest.mark.usefixtures("before_the_work")
def test_without_the_extra_the_line_names_it(
    shell: Shell, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jinja2" else find(name))
    error = shell.refuses("simulate", scenario, "--html", str(shell.folder / "out"))
    assert error == "hvpa: error: --html needs jinja2, which is not installed: pip install 'hvpa[lab]'\n"


@pytest.mark.usefixtures("before_the_work")
def test_the_removed_picture_names_the_page(shell: Shell, scenario: str) -> None:
    error = shell.refuses("simulate", scenario, "--png", "out.png", code=2)
    assert "error: argument --png: removed; --html writes the plots as a page" in error
    assert "--png" not in shell.run("simulate", "--help").out


@pytest.mark.usefixtures("before_the_work")
def test_a_baseline_that_is_not_simulated_is_one_line(shell: Shell, scenario: str) -> None:
    error = shell.refuses("simulate", scenario, "--policy", "large", "--baseline", "small", code=2)
    assert error == "hvpa: error: --baseline: no policy 'small' is simulated; there are: large\n"


@pytest.mark.usefixtures("before_the_work")
@pytest.mark.parametrize("path", ["{folder}", "{folder}/none/page.html"])
def test_a_file_that_cannot_be_written_is_reported(shell: Shell, scenario: str, path: str) -> None:
    error = shell.refuses("simulate", scenario, "--html", path.format(folder=shell.folder))
    assert error.startswith("hvpa: error: --html: ")


@pytest.mark.usefixtures("before_the_work")
@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_may_not_be_written_is_reported(
    shell: Shell, scenario: str, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    target = shell.folder / "page.html"
    if there:
        target.touch()
    guarded = target if there else shell.folder
    monkeypatch.setattr(os, "access", lambda path, mode: (Path(path), mode) != (guarded, os.W_OK))
    error = shell.refuses("simulate", scenario, "--html", str(target))
    assert error == f"hvpa: error: --html: {target} can't be written: permission denied\n"


# --- what goes wrong -------------------------------------------------------------------------------------------------
def test_a_file_that_cannot_be_written_after_all_is_one_line(
    shell: Shell, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "to_html", lambda results: "")

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    target = str(shell.folder / "page.html")
    error = shell.refuses("simulate", scenario, "--html", target)
    assert error == f"hvpa: error: {target}: can't be written: No space left on device\n"


def test_a_wrong_scenario_is_one_line_with_its_place(shell: Shell, scenario: str) -> None:
    shell.refuses("simulate", str(shell.folder / "none.yaml"))
    unknown = shell.refuses("simulate", scenario, "--policy", "none")
    assert unknown == "hvpa: error: there is no policy 'none'; there are: large, small\n"
    path = shell.file({**SCENARIO, "durration": "1h"})
    error = shell.refuses("simulate", path)
    assert error.startswith(f"hvpa: error: {path}:")
    assert "durration" in error


@pytest.mark.parametrize(("debug", "traceback"), [((), False), (("--debug",), True)])
def test_an_error_of_ours_shows_where_with_debug_only(
    shell: Shell, scenario: str, monkeypatch: pytest.MonkeyPatch, debug: tuple[str, ...], traceback: bool
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("first\nsecond")

    monkeypatch.setattr(parallel, "simulate", broken)
    ran = shell.run("simulate", scenario, *debug)
    assert ran.code == 1
    assert "policy large: internal error: ValueError: first second" in ran.err.splitlines()[-1]
    assert ("Traceback" in ran.err) == traceback


@pytest.mark.parametrize(
    "flags",
    [
        "--series", "--seed -1", "--seed x", f"--seed {'9' * 30}", "--jobs 0", "--jobs ١", "--progress perhaps",
        "--cpu-price -1", "-o xml",
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_line(shell: Shell, scenario: str, flags: str) -> None:
    shell.refuses("simulate", scenario, *flags.split(), code=2)


# --- progress --------------------------------------------------------------------------------------------------------
def test_progress_is_shown_where_it_is_asked_for(shell: Shell, scenario: str) -> None:
    assert "simulating" in shell.run("simulate", scenario, "--progress", "always").err
    assert shell.run("simulate", scenario, "--progress", "never").err == ""
    assert shell.run("simulate", scenario).err == ""


def test_without_the_extra_a_bar_is_refused_if_it_was_requested(
    shell: Shell, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tqdm" else find(name))
    needs = "hvpa: error: --progress always needs tqdm, which is not installed: pip install 'hvpa[lab]'\n"
    assert shell.refuses("simulate", scenario, "--progress", "always") == needs
    monkeypatch.setattr(progress, "QUIET_FOR", 0.0)
    monkeypatch.setattr(sys.stderr.__class__, "isatty", lambda _: True)
    assert shell.run("simulate", scenario).err == ""


def test_progress_on_a_terminal_waits_a_while(
    shell: Shell, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr.__class__, "isatty", lambda _: True)
    monkeypatch.setattr(progress, "QUIET_FOR", 1e9)
    assert "simulating" not in shell.run("simulate", scenario).err
    monkeypatch.setattr(progress, "QUIET_FOR", 0.0)
    assert "simulating" in shell.run("simulate", scenario).err


def test_without_a_terminal_the_progress_is_lines(
    shell: Shell, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    assert shell.run("simulate", scenario).err.splitlines()[-1] == "simulating: 100%"
    assert shell.run("simulate", scenario, "--progress", "never").err == ""


def test_as_many_processes_as_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert progress.processors() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert progress.processors() == 1


def test_the_table_needs_no_library_for_drawing_and_no_client(scenario: str) -> None:
    program = (
        "import sys; from hvpa.cli.main import main; code = main(sys.argv[1:]); "
        "unwanted = {'jinja2', 'matplotlib', 'numpy', 'tqdm', 'kubernetes_asyncio', 'aiohttp'}; "
        "sys.exit(code or bool(unwanted & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", program, "simulate", scenario, "--jobs", "1"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, b"")


# --- a sweep ----------------------------------------------------------------------------------------------------------
CPU_METRIC = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
HPA = {"maxReplicas": 5, "metrics": [{"type": "Resource", "resource": CPU_METRIC}]}
SWEPT = SCENARIO | {"policies": [{"name": "mine", "hpa": HPA}, {"name": "small", "fixed": {"replicas": 1}}]}


def test_a_sweep_shows_each_target_and_reads_off_the_cheapest_that_serves_enough(shell: Shell) -> None:
    ran = shell.run("simulate", shell.file(SWEPT), "--sweep", "--unmet", "100")
    assert ran.code == 0
    assert [f"cpu {percent} %: mine" in ran.out for percent in (56, 64, 72, 80, 88, 96)] == [True] * 6
    assert "\n7  " not in ran.out, "a fixed size has no target"
    last = ran.out.rstrip().splitlines()[-1]
    assert last.startswith("The cheapest with at most 100.00 % unmet demand is cpu ")
    assert "The cheapest with at most 0.10 % " in shell.run("simulate", shell.file(SWEPT), "--sweep").out


def test_a_sweep_as_json_has_the_targets_as_policies(shell: Shell) -> None:
    ran = shell.run("simulate", shell.file(SWEPT), "--sweep", "-o", "json")
    assert ran.code == 0
    check(ran.json, schema())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--unmet", "1"], "--unmet requires --sweep and -o table"),
        (["--sweep", "-o", "json", "--unmet", "1"], "--unmet requires --sweep and -o table"),
        (["--sweep", "--unmet", "-1"], "must be a number from 0 to 100: '-1'"),
        (["--sweep", "--unmet", "few"], "must be a number from 0 to 100: 'few'"),
        (["--sweep", "--unmet", "nan"], "must be a number from 0 to 100: 'nan'"),
    ],
)
def test_what_a_sweep_can_not_read_off_is_refused(shell: Shell, options: list[str], problem: str) -> None:
    ran = shell.run("simulate", shell.file(SWEPT), *options)
    assert ran.code == 2
    assert problem in ran.err


def test_a_scenario_without_a_target_has_no_sweep(shell: Shell, scenario: str) -> None:
    ran = shell.run("simulate", scenario, "--sweep")
    assert ran.code == 1
    assert "small: no policy has an HPA with a CPU or memory target" in ran.err
