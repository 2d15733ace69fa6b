"""A real Prometheus that scrapes an operator, as the PodMonitor of `config/monitoring` says: each query of the
dashboard finds data, and alerts fire for the Hvpas that have a problem, and no longer when it is over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from localcluster.client.api import wait_for
from localcluster.monitoring import CONFIG, rules, scraping_operator
from localcluster.operator.operator import Operator
from localcluster.programs.build import Programs
from localcluster.prometheus import Prometheus
from localcluster.workloads.bare_manifests import VERTICAL_ONLY, merged, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.actuation.test_canary import CANARY, fails_a_canary
from tests.e2e.bare.conditions.gates import HPA_OF_10, contested, mode, scale_up
from tests.e2e.bare.conditions.row import content
from tests.e2e.bare.conditions.spec import most
from tests.e2e.bare.conftest import NewScenario, Start
from tests.e2e.bare.scaling.test_starving import RAISED, oom_killed

DASHBOARD: Final = json.loads((CONFIG / "dashboard.json").read_text())
TARGETS: Final = [
    (panel["title"], target) for panel in DASHBOARD["panels"] for target in panel.get("targets", ())
]
VARIABLES: Final = DASHBOARD["templating"]["list"]
SOON: Final = 60


def at_once(folder: Path) -> Path:
    """The rules, with alerts that wait for nothing."""
    document = rules()
    for rule in document["groups"][0]["rules"]:
        for wait in ("for", "keep_firing_for"):
            rule.pop(wait, None)
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def chosen(query: str, space: str) -> str:
    """A query as Grafana sends it for the Hvpas of a namespace."""
    prices = {f"${box['name']}": box["query"] for box in VARIABLES if box["type"] == "textbox"}
    for name, value in {"$__rate_interval": "30s", "$namespace": space, "$name": ".*", **prices}.items():
        query = query.replace(name, value)
    assert "$" not in query
    return query


@pytest.fixture
def operator(start: Start, space: str) -> Operator:
    """An operator with series for each Hvpa of this test's namespace. (Alerts leave out what many Hvpas share, and
    other tests leave Hvpas behind.)"""
    return start("--per-object-metrics", "--namespace", space)


@pytest.fixture
def server(operator: Operator, prometheus: Programs, tmp_path: Path) -> Iterator[Prometheus]:
    """Prometheus, which scrapes that operator."""
    made = scraping_operator(operator.metrics_address)
    with Prometheus(tmp_path, made, rules=[at_once(tmp_path)], programs=prometheus) as running:
        yield running


def firing(server: Prometheus, space: str) -> set[tuple[str, str, str]]:
    """The alerts about the Hvpas of a namespace: name, Hvpa, reason."""
    alerts = [
        sample["metric"] for sample in server.query(f'ALERTS{{alertstate="firing",namespace="{space}"}}')
    ]
    return {(alert["alertname"], alert["name"], alert["reason"]) for alert in alerts}


def some_problems(new_scenario: NewScenario) -> Scenario:
    """Hvpas with problems; the first of them is the one whose container runs out of memory."""
    starving = new_scenario("starving", changes=scale_up("vpa", **mode("Off")))
    starving.vpa_is_content()
    oom_killed(starving, "a")
    saturated = new_scenario("saturated", changes=most(cpu="500m"))
    saturated.scales()
    content(saturated)
    opposed = new_scenario("contested")
    opposed.vpa_is_content()
    contested(opposed)
    refused = new_scenario("refused")
    HPA_OF_10.impose(refused)
    refused.change({"hpa": {"template": {"spec": {"maxReplicas": 12}}}})
    tried = new_scenario("tried", changes=merged(merged(VERTICAL_ONLY, weight(100)), CANARY))
    fails_a_canary(tried)
    silent = new_scenario("silent")
    silent.await_condition("HpaActive", "False", "NoMetrics")
    alone = new_scenario("alone", create=False)
    alone.api.create(alone.manifest)
    return starving


def test_alerts_fire_for_hvpas_with_problems_and_every_query_of_the_dashboard_finds_data(
    new_scenario: NewScenario, space: str, operator: Operator, server: Prometheus
) -> None:
    starving = some_problems(new_scenario)
    expected = {
        ("HvpaStarving", "starving", "UpdatePolicy"),
        ("HvpaSaturated", "saturated", "Saturated"),
        ("HvpaContested", "contested", "SetBack"),
        ("HvpaRecommenderSilent", "silent", "NoMetrics"),
        ("HvpaNotReady", "alone", "TargetNotFound"),
        ("HvpaWritesFail", "refused", "ChangeOwned"),
        ("HvpaRolledBack", "tried", "RolledBack"),
    }
    wait_for(lambda: firing(server, space) >= expected, SOON, lambda: f"not only {firing(server, space)}")
    assert not server.query('ALERTS{alertname="HvpaOperatorDown"}')
    for title, target in TARGETS:
        finds_data(server, title, target, space)
    for variable in [known for known in VARIABLES if known["type"] == "query"]:
        matching, _, label = (
            chosen(variable["query"]["query"], space).removeprefix("label_values(").rpartition(", ")
        )
        values = server.get(f"label/{label.removesuffix(')')}/values", **{"match[]": matching})
        assert {space, "starving"} & set(values)
    starving.change(scale_up("vpa", **mode("Auto")))
    starving.await_requests(memory=RAISED)
    ended = ("HvpaStarving", "starving", "UpdatePolicy")
    wait_for(lambda: ended not in firing(server, space), SOON, "the alert ends")
    operator.kill()
    wait_for(
        partial(server.query, 'ALERTS{alertname="HvpaOperatorDown",alertstate="firing"}'), SOON, "it is down"
    )


def finds_data(server: Prometheus, title: str, target: dict[str, Any], space: str) -> None:
    """A query has series, and these have the labels that its legend names."""
    query = chosen(target["expr"], space)
    series = wait_for(partial(server.query, query), SOON, f"{title}: {query}")
    labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    assert labels <= series[0]["metric"].keys(), f"{title}: {query}"
