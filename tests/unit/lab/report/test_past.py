"""Reports with past usage from a Prometheus: figures for a month instead of this instant, and how sure they are. What
a real one answers: tests/e2e/monitoring/test_report.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hvpa.api.values.duration import DAY
from tests.unit.cli.api_server import Api, Responder, listening
from tests.unit.cli.support import NOW, Doc, Live, Shell, without
from tests.unit.lab.report.documents import of, reported
from tests.unit.lab.report.test_command import hvpa
from tests.unit.lab.report.test_groups import read_csv

PREFIXES = {
    "avg_over_time((sum": "used",
    "avg_over_time((count": "replicas",
    "quantile_over_time": "busiest",
    "max_over_time": "busiest",
}


@dataclass
class Fake:
    """A Prometheus: by workload, its days, mean replicas, and the CPU and memory of each pod, which are the same at
    all times."""

    usage: dict[tuple[str, str], tuple[int, float, float, float]] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    """The labels of any metric; without labels there is no metric."""
    error: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)

    def answer(self, path: str, form: dict[str, str]) -> Any:
        if path.endswith("/series"):
            is_bare = "{" not in form["match[]"]
            return [dict.fromkeys(["__name__", *self.labels], "x")] if self.labels and is_bare else []
        self.asked.append(form)
        query, (first, last) = form["query"], (float(form[name]) for name in ("start", "end"))
        kind = next(kind for prefix, kind in PREFIXES.items() if query.startswith(prefix))
        result = []
        for (owner, name), (days, replicas, cpu, memory) in self.usage.items():
            value = cpu if "cpu_usage" in query else memory
            value = {"used": replicas * value, "replicas": replicas, "busiest": value}[kind]
            metric = {"namespace": "shop", "owner_kind": owner, "owner_name": name}
            if kind == "busiest":
                metric["container"] = "app"
            times = [first + day * DAY for day in range(round((last - first) / DAY) + 1)]
            values = [[at, str(value)] for at in times if at > self.until - days * DAY]
            result.append({"metric": metric, "values": values})
        return {"resultType": "matrix", "result": result}

    @property
    def until(self) -> float:
        """NOW."""
        return 1795255200.0


@pytest.fixture
def fake() -> Fake:
    """Web, which has an HPA and a VPA, ran with 12 pods on average; the cache has neither."""
    return Fake({
        ("Deployment", "web"): (30, 12.0, 0.3, 0.5 * 2**30),
        ("Deployment", "cache"): (30, 1.0, 0.04, 300 * 2**20),
    })  # fmt: skip


@pytest.fixture
def url(fake: Fake) -> Iterator[str]:
    """Its address."""

    class Handler(Responder):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            path = urlsplit(self.path).path
            data = fake.answer(path, {name: text[0] for name, text in form.items()})
            answer = (
                {"status": "error", "error": fake.error}
                if fake.error
                else {"status": "success", "data": data}
            )
            self.respond(200, json.dumps(answer).encode())

    with listening(Handler) as address:
        yield address


def test_the_queries_are_few_and_cover_every_day(shell: Shell, shop: list[Doc], fake: Fake, url: str) -> None:
    report = reported(shell, shop, "--prometheus", url)
    assert report["past"] == {"source": url, "days": 30, "workloads": 2}
    assert len(fake.asked) == 5 * 6
    assert {form["step"] for form in fake.asked} == {"86400"}
    starts = [float(form["start"]) for form in fake.asked]
    assert (min(starts), max(float(form["end"]) for form in fake.asked)) == (
        fake.until - 29 * DAY,
        fake.until,
    )
    assert reported(shell, shop)["past"] is None


def test_the_busiest_pod_has_the_percentile_of_a_vpa_and_peaks_shorter_than_a_step(
    shell: Shell, shop: list[Doc], fake: Fake, url: str
) -> None:
    reported(shell, shop, "--prometheus", url, "--step", "10m")
    queries = {form["query"] for form in fake.asked}
    (cpu,) = (query for query in queries if query.startswith("quantile_over_time("))
    assert cpu.startswith("quantile_over_time(0.9, ")
    (memory,) = (query for query in queries if query.startswith("max_over_time("))
    peak = 'max_over_time(container_memory_working_set_bytes{container!="", container!="POD"}[600000ms])'
    assert peak in memory
    assert all(query.endswith("[1d:600000ms])") for query in queries)


def test_usage_and_replicas_of_an_hpa_are_means_of_the_past(shell: Shell, shop: list[Doc], url: str) -> None:
    before, after = (of(reported(shell, shop, *flags), "web") for flags in ((), ("--prometheus", url)))
    assert after["used"] == {"cores": 3.6, "memoryGib": 6.0}
    assert (after["basis"], after["usageDays"]) == ("MeasuredReplicas", 30)
    assert (after["current"]["replicas"], after["current"]["meanReplicas"]) == (6, 12.0)
    assert after["current"]["total"]["cores"] == 2 * before["current"]["total"]["cores"]
    # The HPA wants 9 replicas now; Additive would have 8 of them, Trajectory 6.
    means = {blend: view["recommended"]["meanReplicas"] for blend, view in after["blends"].items()}
    assert means == {"Additive": 10.67, "Trajectory": 8.0}
    assert before["current"]["meanReplicas"] is None


def test_a_workload_without_a_vpa_is_sized_by_its_past(shell: Shell, shop: list[Doc], url: str) -> None:
    report = reported(shell, shop, "--prometheus", url)
    cache = of(report, "cache")
    # 40m and 300Mi with 15 percent, which HVPA rounds up.
    assert cache["blends"]["Trajectory"]["recommended"]["containers"]["app"]["requests"] == {
        "cpu": "46m", "memory": "361759k",
    }  # fmt: skip
    assert (cache["basis"], cache["current"]["meanReplicas"]) == ("Measured", None)
    sure = sum(workload["savingPerMonth"] for workload in report["workloads"]
               if workload["basis"] in ("Measured", "History"))  # fmt: skip
    assert report["summary"]["sureSavingPerMonth"] == pytest.approx(sure, abs=0.011)
    assert report["summary"]["bases"]["Measured"] == 1


def test_less_than_a_week_is_not_sure(shell: Shell, shop: list[Doc], fake: Fake, url: str) -> None:
    fake.usage = {key: (6, *rest) for key, (_, *rest) in fake.usage.items()}  # type: ignore[misc]
    report = reported(shell, shop, "--prometheus", url)
    assert (of(report, "cache")["basis"], of(report, "cache")["usageDays"]) == ("YoungHistory", 6)
    assert (of(report, "web")["basis"], of(report, "web")["current"]["meanReplicas"]) == ("Mixed", None)


def test_replicas_stay_within_the_hpas_bounds_unless_the_past_left_them(
    shell: Shell, shop: list[Doc], fake: Fake, url: str
) -> None:
    fake.usage["Deployment", "web"] = (30, 1.5, 0.3, 0.5 * 2**30)
    web = of(reported(shell, shop, "--prometheus", url), "web")
    assert web["blends"]["Trajectory"]["recommended"]["meanReplicas"] == 1.5


def test_replicas_of_an_hvpa_are_scaled_by_its_own_and_stay_within_the_bounds(
    shell: Shell, shop: list[Doc], fake: Fake, url: str
) -> None:
    """The Hvpa has 6 replicas now. Trajectory keeps 6, Additive would have 8; with vertical weight 20 both have 9."""
    objects: dict[str, Doc] = {"hpa": {"name": "web"}, "vpa": {"name": "web"}}

    def means(weight: float) -> dict[str, float]:
        documents = [*shop, hvpa("Trajectory", "Deployment", "web", weight=weight, **objects)]
        blends = of(reported(shell, documents, "--prometheus", url), "web")["blends"]
        return {blend: view["recommended"]["meanReplicas"] for blend, view in blends.items()}

    assert means(0.5) == {"Additive": 16.0, "Trajectory": 12.0}
    fake.usage["Deployment", "web"] = (30, 19.0, 0.3, 0.5 * 2**30)
    assert means(0.2) == {"Additive": 20, "Trajectory": 20}, "maxReplicas"


def test_an_hpa_alone_has_requests_by_its_past(shell: Shell, shop: list[Doc], url: str) -> None:
    web = of(reported(shell, without(shop, "VPA"), "--prometheus", url), "web")
    assert (web["vpas"], web["basis"]) == ([], "MeasuredReplicas")
    assert web["blends"]["Trajectory"]["recommended"]["containers"]["app"]["requests"]["memory"] != "1Gi"


def test_the_text_and_the_csv_have_the_means(shell: Shell, shop: list[Doc], url: str) -> None:
    text = shell.run("report", "-f", shell.file(shop), "--now", NOW, "--prometheus", url).out
    assert f"Used: the mean of the last 30 days, by Prometheus at {url}, for 2 of 4" in " ".join(text.split())
    assert "  now         12.0     0.50" in text
    assert "basis: MeasuredReplicas, VPA for 20d 9h, usage of 30 days" in " ".join(text.split())
    assert "(no VPA: requests estimated from past usage)" in text
    rows = {row["name"]: row for row in read_csv(shell, shop, "--prometheus", url)}
    assert (rows["web"]["meanReplicas"], rows["web"]["recommendedMeanReplicas"]) == ("12.0", "8.0")
    assert (rows["cache"]["meanReplicas"], rows["cache"]["usageDays"]) == ("", "30")
    assert rows["worker"]["usageDays"] == "0"


def test_the_page_has_the_past(shell: Shell, shop: list[Doc], url: str) -> None:
    pytest.importorskip("jinja2")
    path = shell.folder / "page.html"
    flags = ("--now", NOW, "--prometheus", url, "--html", str(path))
    assert shell.run("report", "-f", shell.file(shop), *flags).code == 0
    page = path.read_text()
    assert "is used on average of 30 days" in page
    assert "for HPAs the mean replicas of the last 30 days" in page
    assert "At least a week of usage, and a fixed number of replicas" in page


def test_a_namespace_is_queried_alone(shell: Shell, live: Live, api: Api, fake: Fake, url: str) -> None:
    ran = live("report", "-n", "shop", "--now", NOW, "--prometheus", url)
    assert (ran.code, ran.err) == (0, "")
    assert len(fake.asked) == 30
    assert all('namespace="shop"' in form["query"] for form in fake.asked)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"usage": {}}, "no usage of any workload in the last 720h: it has no metric container_cpu_usage_seconds"),
        ({"usage": {}, "labels": ["pod_name"]}, "it has these metrics, but no pod with an owner has usage"),
        ({"error": "query processing would load too many samples"}, "too many samples; query: avg_over_time"),
    ],
)  # fmt: skip
def test_what_is_missing_is_one_line(
    shell: Shell, shop: list[Doc], fake: Fake, url: str, changes: dict[str, Any], reason: str
) -> None:
    for name, value in changes.items():
        setattr(fake, name, value)
    error = shell.refuses("report", "-f", shell.file(shop), "--now", NOW, "--prometheus", url)
    assert reason in error, error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("flags", [("--since", "1h"), ("--step", "2d")])
def test_a_day_is_the_least(shell: Shell, flags: tuple[str, ...]) -> None:
    error = shell.refuses("report", "-f", "x.yaml", "--prometheus", "http://127.0.0.1:9", *flags, code=2)
    assert "--since must be a day or longer, and --step a day or shorter" in error


@pytest.mark.parametrize(
    ("flag", "given"),
    [("--prometheus-token", "token"), ("--since", "30d"), ("--step", "1h"), ("--timeout", "1m")],
)
def test_a_flag_of_the_server_without_a_server_is_refused(shell: Shell, flag: str, given: str) -> None:
    error = shell.refuses("report", "-f", "x.yaml", flag, given, code=2)
    assert f"{flag} requires --prometheus" in error
