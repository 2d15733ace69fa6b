"""Groups by namespace, kind and labels, their sums, and the same figures as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tests.unit.cli.schema import DOCS
from tests.unit.cli.support import NOW, Doc, Shell, with_fields
from tests.unit.lab.report.documents import reported

NAMESPACE: Doc = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "labels": {"team": "green", "cost-center": "42"}},
}


@pytest.fixture
def teams(shop: list[Doc]) -> list[Doc]:
    """The shop: its web server and its worker have teams of their own, the database has its namespace's."""
    documents = with_fields(shop, "Deployment", "web", {"metadata.labels": {"team": "blue"}})
    documents = with_fields(documents, "StatefulSet", "worker", {"metadata.labels": {"team": "red"}})
    return [*documents, NAMESPACE]


def test_a_group_is_by_the_label_of_the_workload_or_its_namespace(shell: Shell, teams: list[Doc]) -> None:
    report = reported(shell, teams, "--by", "team")
    assert {tuple(group["values"]): group["workloads"] for group in report["groups"]} == {
        ("blue",): 1,
        ("red",): 1,
        ("green",): 1,
    }
    assert [group["values"] for group in report["groups"]] == [["red"], ["green"], ["blue"]]
    assert [group["savingPerMonth"] for group in report["groups"]] == [53.17, 0.0, -89.45]
    assert report["summary"]["savingPerMonth"] == pytest.approx(53.17 - 89.45, abs=0.011)
    assert {workload["name"]: workload["values"] for workload in report["workloads"]} == {
        "web": {"team": "blue"},
        "worker": {"team": "red"},
        "database": {"team": "green"},
    }


@pytest.mark.parametrize(
    "flags", [("--by", "cost-center,kind,team"), ("--by", "cost-center", "--by", "kind,team")]
)
def test_each_level_adds_up_to_the_one_above(shell: Shell, teams: list[Doc], flags: tuple[str, ...]) -> None:
    report = reported(shell, teams, *flags)
    groups = {tuple(group["values"]): group for group in report["groups"]}
    assert list(groups)[:2] == [("42",), ("42", "StatefulSet")]
    for values, group in [((), report["summary"]), *groups.items()]:
        parts = [part for below, part in groups.items() if below[:-1] == values]
        if parts:
            for field in ("workloads", "restarts", "withRisks"):
                assert sum(part[field] for part in parts) == group[field]
            for field in ("savingPerMonth", "sureSavingPerMonth"):
                assert sum(part[field] for part in parts) == pytest.approx(group[field], abs=0.03)
            for field in ("requested", "recommended", "used"):
                cores = sum(part[field]["cores"] for part in parts)
                assert cores == pytest.approx(group[field]["cores"], abs=0.003)


def test_what_has_no_such_label_is_a_group_of_its_own(shell: Shell, teams: list[Doc]) -> None:
    path = shell.file(teams[:-1])
    text = shell.run("report", "-f", path, "--now", NOW, "--by", "team").out
    assert "(none)" in text
    assert reported(shell, teams[:-1], "--by", "team")["groups"][1]["values"] == [""]


def test_figures_are_sure_if_they_rest_on_history_alone(shell: Shell, teams: list[Doc]) -> None:
    report = reported(shell, teams)
    bases = {workload["name"]: workload["basis"] for workload in report["workloads"]}
    assert bases == {"web": "Mixed", "worker": "History", "database": "None"}
    assert report["summary"]["sureSavingPerMonth"] == 53.17
    assert report["summary"]["bases"] == {
        "Measured": 0, "History": 1, "MeasuredReplicas": 0, "Mixed": 1, "Snapshot": 0, "YoungHistory": 0, "None": 1,
    }  # fmt: skip
    assert report["summary"]["risks"]["SingleReplica"] == 1


@pytest.mark.parametrize(
    ("fields", "basis"),
    [
        ({"metadata.creationTimestamp": "2026-11-21T09:00:00Z"}, "YoungHistory"),
        ({"metadata.creationTimestamp": None, "status.conditions.0.lastTransitionTime": None}, "Snapshot"),
        ({"status": {}}, "None"),
    ],
)
def test_a_young_vpa_is_no_history(shell: Shell, teams: list[Doc], fields: Doc, basis: str) -> None:
    report = reported(shell, with_fields(teams, "VPA", "worker", fields))
    assert {workload["name"]: workload["basis"] for workload in report["workloads"]}["worker"] == basis
    assert report["summary"]["sureSavingPerMonth"] == 0.0


# --- text ------------------------------------------------------------------------------------------------------------
def test_the_table_has_a_line_per_group_and_the_first_workloads(shell: Shell, teams: list[Doc]) -> None:
    path = shell.file(
        with_fields(teams, "Deployment", "web", {"metadata.labels": {"team": "the-team-of-web"}})
    )
    text = shell.run("report", "-f", path, "--now", NOW, "--by", "namespace,team", "--top", "1").out
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    shop = next(line for line in lines if line.startswith("shop "))
    assert shop.split() == [
        "shop",
        "3",
        "5.0",
        "26.1",
        "120%",
        "?",
        "7.0",
        "23.1",
        "-36.27",
        "53.17",
        "0",
        "3",
    ]
    assert "  the-team-of-web" in lines, "a long name has a line of its own"
    assert "The 1 of 3 workloads with the largest difference in cost (--top all shows all):" in lines
    assert "Deployment shop/web (" in text
    assert "StatefulSet shop/worker (" not in text
    assert "--top all" not in shell.run("report", "-f", path, "--top", "all").out


def test_the_page_in_docs_shows_this_table(shell: Shell, teams: list[Doc]) -> None:
    text = shell.run("report", "-f", shell.file(teams), "--now", NOW, "--by", "team").out
    table = next(block for block in text.split("\n\n") if "with Hvpas -" in block)
    assert table in (DOCS / "report.md").read_text()


# --- CSV -------------------------------------------------------------------------------------------------------------
def read_csv(shell: Shell, documents: list[Doc], *flags: str) -> list[dict[str, str]]:
    ran = shell.run("report", "-f", shell.file(documents), "--now", NOW, "-o", "csv", *flags)
    assert (ran.code, ran.err) == (0, "")
    return list(csv.DictReader(io.StringIO(ran.out)))


def test_csv_has_a_line_per_workload_with_the_figures_of_json(shell: Shell, teams: list[Doc]) -> None:
    report: Any = reported(shell, teams, "--by", "namespace,team")
    rows = read_csv(shell, teams, "--by", "namespace,team")
    assert [row["name"] for row in rows] == [workload["name"] for workload in report["workloads"]]
    for row, workload in zip(rows, report["workloads"], strict=True):
        assert row["label:team"] == workload["values"]["team"]
        assert "label:namespace" not in row
        assert (row["basis"], row["blend"]) == (workload["basis"], workload["chosen"])
        assert float(row["savingPerMonth"]) == workload["savingPerMonth"]
        assert float(row["requestedCores"]) == workload["current"]["total"]["cores"]
        recommended = workload["blends"][row["blend"]]["recommended"]
        assert float(row["recommendedCost"]) == recommended["total"]["costPerMonth"]
        assert row["usedMemoryGib"] == ""
    assert rows[0]["risks"] == "LimitTooSmall RequestTooSmall UtilizationBesideVpa"


def test_csv_of_an_undecided_workload_has_no_recommendation(shell: Shell, gardener: list[Doc]) -> None:
    rival = {**gardener[0], "metadata": {**gardener[0]["metadata"], "name": "rival"}}
    (row,) = read_csv(shell, [*gardener, rival])
    assert (row["recommendedReplicas"], row["recommendedCost"], row["savingPerMonth"]) == ("", "", "0.0")


@pytest.mark.parametrize("reason", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "a,b\n"])
def test_no_cell_of_csv_is_a_formula(shell: Shell, shop: list[Doc], reason: str) -> None:
    broken = with_fields(shop, "HPA", "keda-hpa-database", {"status.conditions.0.reason": reason})
    label = {"metadata.labels": {"team": reason}}
    rows = read_csv(shell, with_fields(broken, "Deployment", "web", label), "--by", "team")
    assert len(rows) == 3
    for row in rows:
        assert not row["label:team"].startswith(("=", "+", "-", "@", "\t"))
        assert row["label:team"].isprintable()
        assert row["risks"].isprintable()


# --- flags -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--by", ""), "'' is not namespace, kind, or the key of a label"),
        (("--by", "team,a b"), "'a b' is not namespace, kind, or the key of a label"),
        (("--top", "most"), "'most' is not a whole number of at least 0"),
        (("--html", "page.txt"), "must end in .html"),
    ],
)
def test_a_wrong_flag_exits_2(shell: Shell, flags: tuple[str, ...], message: str) -> None:
    assert message in shell.refuses("report", *flags, code=2)


def test_prices_come_from_a_file_unless_a_flag_sets_them(shell: Shell, shop: list[Doc]) -> None:
    prices = shell.file('{"CPU": "0.03", "RAM": "0.004", "currencyCode": "EUR"}', "prices.json")
    used = {"coreHour": 0.03, "gibHour": 0.004, "hoursPerMonth": 730, "currency": "EUR"}
    assert reported(shell, shop, "--prices", prices)["prices"] == used
    own = reported(shell, shop, "--prices", prices, "--cpu-price", "0.05", "--memory-price", "0")["prices"]
    assert own == {**used, "coreHour": 0.05, "gibHour": 0.0}
    assert "Currency: EUR." in shell.run("report", "-f", shell.file(shop), "--prices", prices).out


@pytest.mark.parametrize("command", ["init", "simulate"])
def test_prices_are_read_before_the_work(shell: Shell, command: str) -> None:
    work = {"init": ["deployment/web", "--csv", "x.csv"], "simulate": ["x.yaml"]}[command]
    error = shell.refuses(command, *work, "--prices", "missing.json")
    assert error == "hvpa: error: --prices: missing.json can't be read: No such file or directory\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"CPU": "0.03"}', "prices.json: RAM: is required: the price of a GiB-hour"),
        (b"\xff", "prices.json is not UTF-8 text"),
        (None, "prices.json can't be read: No such file or directory"),
    ],
)
def test_a_file_without_prices_exits_1(shell: Shell, content: bytes | None, message: str) -> None:
    path = str(shell.folder / "prices.json")
    if content is not None:
        shell.file(content, "prices.json")
    assert message in shell.refuses("report", "-f", "x.yaml", "--prices", path)
