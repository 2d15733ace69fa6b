"""Histories from a Prometheus: what is asked for, in which parts, and what is said where something is missing. What a
real one answers: tests/e2e/monitoring/test_init.py."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.duration import DAY
from hvpa.cli.errors import CommandError
from hvpa_lab.init.source.present import TargetName, present
from hvpa_lab.init.source.prometheus import expressions, read_queries, spans, standard
from hvpa_lab.prometheus.server import quoted
from tests.unit.cli.api_server import Responder, listening
from tests.unit.cli.schema import check, schema_of
from tests.unit.cli.support import Ran, Shell
from tests.unit.lab.init.conftest import Init
from tests.unit.lab.init.documents import APP, CPU_70, LIMITED, START, hpa, load_at, rollout, workload

END = "2026-01-07T00:00:00Z"
FLAGS = ("--since", "2d", "--step", "5m", "--now", END)


@dataclass
class Fake:
    """What the server says: values by the beginning of an expression, and what it was asked for."""

    status: int = 200
    body: bytes | None = None
    wait: float = 0.0
    quick: int = 0
    """So many answers come without the wait."""
    empty: set[str] = field(default_factory=lambda: {"starts"})
    labels: dict[str, list[str]] = field(default_factory=dict)
    """By metric: the labels of its series; a metric in a selector that is not here has none."""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[str | None] = field(default_factory=list)

    def answer(self, path: str, form: dict[str, str]) -> Any:
        self.asked.append((path, form))
        if path.endswith("/series"):
            labels = self.labels.get(form["match[]"])
            return [] if labels is None else [dict.fromkeys(["__name__", *labels], "x")]
        kind = _kind(form["query"])
        start, end, step = (int(float(form[name])) for name in ("start", "end", "step"))
        values = [[at, str(_value(kind, at))] for at in range(start, end + 1, step)]
        metric = {"container": "app"} if kind in ("cpu", "memory", "starts") else {}
        result = [] if kind in self.empty else [{"metric": metric, "values": values}]
        return {"resultType": "matrix", "result": result}


def _kind(query: str) -> str:
    names = {
        "_cfs_": "starts",
        "container_cpu": "cpu",
        "container_memory": "memory",
        "kube_deployment": "replicas",
    }
    return next((kind for name, kind in names.items() if name in query), "load")


def _value(kind: str, at: int) -> float:
    units = load_at(at)
    count = 2 + round(units / 60) + at // 300 // 5 % 2
    return {
        "cpu": 0.15 * count + 0.01 * units,
        "memory": (400 * count + 2 * units) * 2**20,
        "replicas": count,
        "load": units,
        "starts": 0.5 + at // 300 % 3 / 10,
    }[kind]


@pytest.fixture
def fake() -> Fake:
    """What the server says."""
    return Fake()


@pytest.fixture
def url(fake: Fake) -> Iterator[str]:
    """Its address."""

    class Handler(Responder):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            fake.headers.append(self.headers.get("Authorization"))
            time.sleep(fake.wait if len(fake.asked) >= fake.quick else 0)
            data = fake.answer(urlsplit(self.path).path, {name: text[0] for name, text in form.items()})
            body = fake.body
            if body is None:
                body = json.dumps({"status": "success", "data": data}).encode()
            self.respond(fake.status, body)

    with listening(Handler) as address:
        yield address


@pytest.fixture
def asked(init: Init, url: str) -> Callable[..., Ran]:
    """Runs `hvpa init` on the server."""
    return lambda *flags, at=url, app=APP: init(
        [workload(app), hpa(CPU_70)], "--prometheus", at, *FLAGS, *flags
    )


def test_the_history_is_what_was_answered_day_by_day(asked: Callable[..., Ran], fake: Fake) -> None:
    ran = asked("--load", "sum(rate(requests[5m]))", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    assert (ran.json["history"]["rows"], ran.json["history"]["notes"]) == (2 * 288 + 1, [])
    app = ran.json["fit"]["containers"]["app"]
    assert (app["cpu"]["perReplica"], app["cpu"]["perUnit"]) == (pytest.approx(0.15), pytest.approx(0.01))
    ranges = {
        (float(form["start"]) - START, float(form["end"]) - START)
        for path, form in fake.asked
        if path == "/api/v1/query_range"
    }
    assert ranges == {(0, DAY - 300), (DAY, 2 * DAY - 300), (2 * DAY, 2 * DAY)}
    assert all(
        (float(form["end"]) - float(form["start"])) / float(form["step"]) < 11_000 for _, form in fake.asked
    )


def test_the_users_expressions_stand_for_the_workload(
    asked: Callable[..., Ran], fake: Fake, shell: Shell
) -> None:
    queries = shell.file(
        {"cpu": 'container_cpu:rate{ns="$namespace", app="$name", kind="$kind", r=~"a$"}'}, "q.yaml"
    )
    assert asked("--queries", queries, "--load", "load").code == 0
    assert "starts" not in {_kind(form["query"]) for _, form in fake.asked}, "it may need other labels too"
    assert {form["query"] for _, form in fake.asked if _kind(form["query"]) == "cpu"} == {
        'container_cpu:rate{ns="shop", app="web", kind="Deployment", r=~"a$"}'
    }


def test_the_token_is_sent(asked: Callable[..., Ran], fake: Fake, shell: Shell) -> None:
    fake.status = 401
    assert "answers 401: give --prometheus-token" in asked().err
    fake.status = 403
    assert (
        "answers 403: give another --prometheus-token"
        in asked("--prometheus-token", shell.file("secret\n", "token")).err
    )
    assert set(fake.headers) == {None, "Bearer secret"}
    assert "absent can't be read" in asked("--prometheus-token", "absent").err


def test_throttled_starts_become_a_boost(asked: Callable[..., Ran], fake: Fake, shell: Shell) -> None:
    fake.empty = set()
    ran = asked("--kubernetes", "1.33", "-o", "json", app=LIMITED)
    check(ran.json, schema_of("init"))
    boosts = [{"container": "app", "cpu": {"factor": 3}}]
    assert (ran.json["history"]["throttledStarts"], ran.json["hvpa"]["startupBoost"]) == (
        {"app": pytest.approx(0.6)}, boosts,
    )  # fmt: skip
    path = shell.folder / "out" / "hvpa.yaml"
    assert yaml.safe_load(path.read_text())["spec"]["startupBoost"] == boosts
    assert (
        "# its starts were throttled in 60% of their CPU periods (docs/startup-boost.md)" in path.read_text()
    )
    assert shell.run("validate", "-f", str(path)).code == 0


@pytest.mark.parametrize(
    ("minor", "boost"),
    [
        ("1.33", "the Hvpa has a startup boost"),
        ("1.32", "no startup boost, because the Hvpa does not resize pods in place"),
    ],
)
def test_throttled_starts_are_a_finding(
    asked: Callable[..., Ran], fake: Fake, minor: str, boost: str
) -> None:
    fake.empty = set()
    finding = (
        f"  app: starts are throttled in 60 percent of their CPU periods; {boost} (docs/startup-boost.md)"
    )
    assert finding in asked("--kubernetes", minor, app=LIMITED).out.splitlines()


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({}, "it has no metric container_cpu_usage_seconds_total; it has no metric container_memory_working_set_bytes;"
             " it has no metric kube_deployment_status_replicas_ready; it has no metric kube_pod_owner;"),
        ({"container_cpu_usage_seconds_total": ["pod_name", "container_name"]},
         'it has no container_cpu_usage_seconds_total{namespace="shop"}, but container_cpu_usage_seconds_total with the'
         " labels container_name, pod_name;"),
        ({f'{metric}{{namespace="shop"}}': ["pod"] for metric in (
            "container_cpu_usage_seconds_total", "container_memory_working_set_bytes",
            "kube_deployment_status_replicas_ready", "kube_pod_owner", "kube_replicaset_owner")},
         "it has the metrics of this namespace, but none of this workload's pods."),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(
    asked: Callable[..., Ran], fake: Fake, labels: dict[str, list[str]], reason: str
) -> None:
    fake.empty, fake.labels = {"cpu", "memory"}, labels
    ran = asked()
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (1, "", 1)
    assert "no values for cpu, memory of Deployment shop/web in the last 48h: " in ran.err
    assert reason in ran.err, ran.err


def test_an_expression_without_values_is_shown(asked: Callable[..., Ran], fake: Fake) -> None:
    fake.empty = {"load"}
    assert "load: the expression sum(up) has no values in the last 48h" in asked("--load", "sum(up)").err


def test_a_series_answer_that_is_none_counts_as_nothing(asked: Callable[..., Ran], fake: Fake) -> None:
    fake.empty = {"cpu"}
    answer = fake.answer
    fake.answer = lambda path, form: 3 if path.endswith("series") else answer(path, form)  # type: ignore[method-assign]
    assert "it has no metric kube_pod_owner" in asked().err


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"status": 400, "body": b'{"status": "error", "error": "parse error: oops"}'}, 1,
         "cpu: Prometheus responded with an error: parse error: oops; query: sum by (container) ("),
        ({"body": b"<html>a page</html>"}, 1, "cpu: is not a Prometheus response: it begins with '<html>a page"),
        ({"status": 404, "body": b"404 page not found"}, 3, "answers 404 to /api/v1/query_range: 404 page not found"),
        ({"status": 502, "body": b""}, 3, "answers 502 to /api/v1/query_range: nothing"),
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_one_line(
    asked: Callable[..., Ran], fake: Fake, shell: Shell, changes: dict[str, Any], code: int, reason: str
) -> None:
    for name, value in changes.items():
        setattr(fake, name, value)
    ran = asked()
    assert (ran.code, ran.out, reason in ran.err, len(ran.err.splitlines())) == (code, "", True, 1), ran.err
    assert not (shell.folder / "out").exists()


def test_one_that_is_slow_or_not_there_is_code_3(asked: Callable[..., Ran], fake: Fake, shell: Shell) -> None:
    fake.wait, fake.quick = 2.5, 4
    ran = asked("--timeout", "1s")
    assert (ran.code, "did not answer within 1s to the query for " in ran.err) == (3, True), ran.err
    assert len(fake.asked) >= fake.quick, "a part of the history has arrived"
    assert [path.name for path in shell.folder.iterdir()] == ["shop.yaml"]
    for address, reason in (
        ("http://127.0.0.1:9", "can't reach Prometheus at http://127.0.0.1:9: "),
        ("nowhere", ""),
    ):
        ran = asked(at=address)
        assert (ran.code, reason in ran.err, len(ran.err.splitlines())) == (3, True, 1), ran.err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "must be an object with some of cpu, memory, replicas, load"),
        ("[cpu]", "must be an object"),
        ("cpus: up", "cpus: must be one of cpu, memory, replicas, load"),
        ("cpu: 3", "cpu: must be an expression as text"),
        ("cpu: ' '", "cpu: must be an expression as text"),
        ("cpu: [", "is not YAML"),
        (b"\xff", "is not YAML"),
    ],
)
def test_a_file_of_expressions_that_is_none_is_refused(
    tmp_path: Path, content: str | bytes, reason: str
) -> None:
    path = tmp_path / "queries.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(CommandError, match=reason):
        read_queries(path)


def test_a_file_of_expressions_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="absent can't be read: No such file"):
        read_queries(tmp_path / "absent")


@given(st.text(max_size=8))
def test_a_name_stays_a_string_in_a_query(text: str) -> None:
    written = quoted(text)
    assert json.loads(f'"{written}"') == text
    assert re.fullmatch(r'([^"\\\n]|\\.)*', written)


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_other_kinds_own_their_pods_and_count_those_that_are_ready(kind: str) -> None:
    queries = standard(kind)
    label = kind.lower()
    assert 'owner_kind="$kind"' in queries["cpu"]
    assert (
        queries["replicas"]
        == f'max(kube_{label}_status_ready_replicas{{namespace="$namespace", {label}="$name"}})'
    )


def test_the_pods_of_a_custom_kind_are_its_own_or_those_of_its_replica_sets() -> None:
    now = present([rollout()], None, "shop", None)
    queries = expressions(now, {})
    assert 'kube_replicaset_owner{namespace="shop", owner_kind="Rollout", owner_name="web"}' in queries["cpu"]
    assert 'kube_pod_owner{namespace="shop", owner_kind="Rollout", owner_name="web"}' in queries["memory"]
    assert 'kube_pod_status_ready{namespace="shop", condition="true"}' in queries["replicas"]


def test_the_pods_of_a_stateful_set_are_its_own() -> None:
    now = present([workload(kind="StatefulSet")], TargetName("StatefulSet", "web"), "shop", None)
    queries = expressions(now, {})
    assert (
        queries["replicas"]
        == 'max(kube_statefulset_status_replicas_ready{namespace="shop", statefulset="web"})'
    )
    assert 'owner_kind="StatefulSet", owner_name="web"' in queries["cpu"]
    assert "replicaset" not in queries["memory"]
    assert (
        '"$1"' in expressions(present([workload()], TargetName("Deployment", "web"), "shop", None), {})["cpu"]
    )
    assert "$namespace" in standard("Deployment")["memory"]


@given(st.floats(1e6, 2e9), st.floats(1, 1e7), st.sampled_from([1.0, 7.5, 15, 60, 300, 3600, 90_000]))
def test_the_parts_of_a_query_have_every_step_once(since: float, length: float, step: float) -> None:
    since, until = since // step * step, (since + length) // step * step
    if (until - since) / step > 1e5:
        return
    times = [
        round(first / step) + at
        for first, last in spans(since, until, step)
        for at in range(round((last - first) / step) + 1)
    ]
    assert times == list(range(round(since / step), round(until / step) + 1))
    assert all((last - first) / step < 11_000 for first, last in spans(since, until, step))
