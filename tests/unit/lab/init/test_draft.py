"""The numbers of an Hvpa: bounds, targets, base usage, and what is taken over from today."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.hvpa.resource import validate_manifest
from hvpa_lab.init.draft import Draft, drafts
from hvpa_lab.init.lines import Lines, shown
from hvpa_lab.init.manifest import manifest
from hvpa_lab.init.scenario import headroom, rivals, today
from hvpa_lab.init.source.present import Present, TargetName, present
from hvpa_lab.simulate.history.fit import fit
from hvpa_lab.simulate.history.record import History
from tests.unit.cli.support import Doc
from tests.unit.lab.init.documents import APP, CPU_70, LIMITED, hpa, keda, resource, rollout, vpa, workload
from tests.unit.lab.simulate.history.build import history

NOTHING = (None, None)


def found(*documents: Doc, minor: int | None = 33) -> Present:
    return present([workload(), *documents], TargetName("Deployment", "web"), "shop", minor)


def made(
    *documents: Doc, replicas: tuple[int | None, int | None] = NOTHING, past: History | None = None
) -> list[Draft]:
    return drafts(found(*documents), fit(past or history()), replicas)


def spec_of(now: Present, draft: Draft, past: History | None = None) -> Any:
    content = yaml.safe_load(manifest(now, fit(past or history()), draft, "", ""))
    assert validate_manifest(content) == []
    return content["spec"]


@pytest.mark.parametrize(
    ("metrics", "targets"),
    [
        ([CPU_70], [70, 80]),
        ([resource("cpu", averageUtilization=60)], [60, 70, 80]),
        ([resource("cpu", averageUtilization=20)], [70, 80]),
        ([resource("cpu", averageValue="750m")], [75, 70, 80]),
        ([], [80, 70]),
        ([resource("memory", averageUtilization=60)], [70, 80]),
        ([{"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "app", "target": {"type": "Utilization", "averageUtilization": 50}}}],
         [50, 70, 80]),
    ],
)  # fmt: skip
def test_todays_target_is_tried_beside_others(metrics: list[Doc], targets: list[int]) -> None:
    assert [draft.target for draft in made(hpa(*metrics))] == targets


def test_without_an_hpa_replicas_stay_unless_the_user_says_how_many() -> None:
    (draft,) = made(vpa("Recreate"))
    assert (draft.target, draft.min_replicas, draft.max_replicas, draft.name) == (None, 3, 3, "Hvpa")
    assert "hpa" not in spec_of(found(vpa("Recreate")), draft)
    assert [draft.min_replicas for draft in made(replicas=(2, 9))] == [2, 2]
    assert [(draft.min_replicas, draft.max_replicas) for draft in made(hpa(CPU_70), replicas=(3, 20))] == [
        (3, 20)
    ] * 2
    assert {draft.min_replicas for draft in made(hpa(CPU_70, minReplicas=0))} == {1}


def test_the_path_begins_with_the_lowest_load_and_ends_beyond_the_highest() -> None:
    draft = made(hpa(CPU_70))[0]
    bounds = draft.bounds["app"]
    # 2 pods at a load of about 52: (150m + 26 * 10m) / 0.7 = 586m; at 350, 6 pods: (150m + 58 * 10m) / 0.7 = 1043m.
    assert (bounds.least["cpu"], bounds.most["cpu"]) == (590, 2200)
    assert draft.base == {"cpu": 150, "memory": int(4e8 // 2**20 * 2**20)}


def test_todays_bounds_and_policies_stay() -> None:
    policies = (
        {"containerName": "app", "minAllowed": {"cpu": "100m"}, "maxAllowed": {"cpu": "3", "memory": "5Gi"},
         "controlledValues": "RequestsOnly"},
        {"containerName": "*", "mode": "Off"},
    )  # fmt: skip
    now = present(
        [workload(APP, {"name": "proxy"}), hpa(CPU_70), vpa("Off", *policies)],
        TargetName("Deployment", "web"),
        "shop",
        33,
    )
    past = history(containers=("app", "proxy"))
    (draft, _) = drafts(now, fit(past), NOTHING)
    assert set(draft.bounds) == {"app"}
    app, proxy = spec_of(now, draft, past)["vpa"]["template"]["spec"]["resourcePolicy"]["containerPolicies"]
    assert app["maxAllowed"] == {"cpu": "3", "memory": "5Gi"}
    assert (app["minAllowed"]["cpu"], app["controlledValues"]) == ("100m", "RequestsOnly")
    assert proxy == {"containerName": "proxy", "mode": "Off"}


def test_bounds_never_cross() -> None:
    above = {"containerName": "app", "minAllowed": {"cpu": "9"}}
    below = {"containerName": "app", "maxAllowed": {"cpu": "200m"}}
    assert [
        (bounds.least["cpu"], bounds.most["cpu"])
        for policy in (above, below)
        for bounds in (made(hpa(CPU_70), vpa("Off", policy))[0].bounds["app"],)
    ] == [(9000, 9000), (200, 200)]


@pytest.mark.parametrize(
    ("resource_name", "amount", "text"),
    [("cpu", 0.00035, "0.35m"), ("cpu", 0.0, "0"), ("cpu", 0.15, "150m"), ("memory", 350.4, "350")],
)
def test_small_amounts_can_be_seen(resource_name: Any, amount: float, text: str) -> None:
    assert shown(resource_name, amount) == text


def test_no_name_ends_a_comment() -> None:
    lines = Lines("a\u2028b: 1\x85c: 1\nd: 1")
    assert yaml.safe_load(lines.text) is None


@given(
    st.text(max_size=8),
    st.recursive(st.text(max_size=8), lambda values: st.dictionaries(st.text(max_size=4), values)),
)
def test_no_text_is_more_than_the_field_that_it_stands_in(name: str, value: Any) -> None:
    lines = Lines("a heading")
    lines.add(0, "above:")
    lines.item(1, "type", value)
    lines.field(2, name, value)
    lines.add(0, "below: {}")
    assert yaml.safe_load(lines.text) == {"above": [{"type": value, name: value}], "below": {}}
    assert lines.text.isascii()
    assert all(line.isprintable() for line in lines.text.splitlines())


def test_a_resource_that_is_not_controlled_has_no_bounds() -> None:
    draft = made(hpa(CPU_70), vpa("Off", {"containerName": "app", "controlledResources": ["cpu"]}))[0]
    assert (set(draft.bounds["app"].least), set(draft.bounds["app"].most)) == ({"cpu"}, {"cpu"})


def test_memory_that_follows_the_load_is_a_metric_too() -> None:
    moving = history(memory=lambda count, units: 1e8 * count + 1e7 * units)
    still = history(memory=lambda count, units: 1e9 * count)
    names = [
        [metric["resource"]["name"] for metric in made(hpa(CPU_70), past=past)[0].metrics]
        for past in (moving, still)
    ]
    assert names == [["cpu", "memory"], ["cpu"]]
    own = made(hpa(CPU_70, resource("memory", averageUtilization=55)), past=moving)[1].metrics
    assert [metric["resource"]["target"]["averageUtilization"] for metric in own] == [80, 55]


def test_the_metrics_that_keda_serves_go_with_it() -> None:
    target = {"type": "AverageValue", "averageValue": "5"}
    queue = {"type": "External", "external": {"metric": {"name": "s0-queue"}, "target": target}}
    with_keda = (hpa(queue, name="keda-hpa-web"), keda(minReplicaCount=1))
    assert [metric["type"] for metric in made(*with_keda)[0].metrics] == ["Resource", "Resource"]
    assert [metric["type"] for metric in made(hpa(queue))[0].metrics] == ["External", "Resource", "Resource"]
    now = found(*with_keda)
    assert now.notes == (
        "s0-queue: KEDA's metrics go with the ScaledObject, so the Hvpa scales by CPU instead",
    )
    assert today(now)["hpa"]["metrics"] == [queue]


def test_the_behavior_and_its_window_are_taken_over() -> None:
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 120}, "scaleUp": {"policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 60}]}}  # fmt: skip
    now = found(hpa(CPU_70, behavior=behavior))
    spec = spec_of(now, made(hpa(CPU_70, behavior=behavior))[0])
    assert spec["hpa"]["template"]["spec"]["behavior"] == behavior
    assert spec["hpa"]["scaleDown"] == {"stabilizationDuration": "120s"}


@pytest.mark.parametrize(
    ("minor", "strategy"), [(None, "Rollout"), (32, "Rollout"), (33, "InPlaceOrRollout")]
)
def test_pods_are_resized_where_the_api_server_can(minor: int | None, strategy: str) -> None:
    now = found(hpa(CPU_70), minor=minor)
    assert spec_of(now, made(hpa(CPU_70))[0])["updateStrategy"] == {"type": strategy}


BOOST = [{"container": "app", "cpu": {"factor": 3}}]
CPU_RESTARTS = {**LIMITED, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
MEMORY_RESTARTS = {
    **LIMITED,
    "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
}
REQUESTS_ONLY = vpa("Off", {"containerName": "app", "controlledValues": "RequestsOnly"})


MEMORY_LIMIT = {"resource": "limits.memory"}


def limited(**resources: Doc) -> Doc:
    return workload({"name": "app", "resources": {"limits": {"cpu": "1"}, **resources}})


@pytest.mark.parametrize(
    ("documents", "minor", "share", "boosts", "obstacles"),
    [
        pytest.param([workload(LIMITED)], 33, 0.5, BOOST, [""], id="half of the periods"),
        pytest.param([limited()], 33, 1.0, BOOST, [""], id="the limit is the request"),
        pytest.param([workload(MEMORY_RESTARTS)], 33, 1.0, BOOST, [""], id="memory restarts it"),
        pytest.param([workload(LIMITED)], 33, 0.49, [], [], id="less than half"),
        pytest.param([workload(LIMITED)], 33, None, [], [], id="no starts seen"),
        pytest.param([workload(APP)], 33, 1.0, [], [], id="no CPU limit"),
        pytest.param([limited(requests={"cpu": "0"})], 33, 1.0, [], [], id="no CPU request"),
        pytest.param(
            [workload(LIMITED)], 32, 1.0, [], ["the Hvpa does not resize pods in place"], id="Kubernetes 1.32"),
        pytest.param([workload(CPU_RESTARTS)], 33, 1.0, [], ["a resize of its CPU restarts it"], id="restart"),
        pytest.param(
            [workload(LIMITED), REQUESTS_ONLY], 33, 1.0, [],
            ["controlledValues is RequestsOnly: its limit would stay"], id="RequestsOnly"),
    ],
)  # fmt: skip
def test_throttled_starts_get_a_boost(
    documents: list[Doc], minor: int, share: float | None, boosts: list[Doc], obstacles: list[str]
) -> None:
    now = present(documents, None, "shop", minor)
    (draft,) = drafts(now, fit(history()), NOTHING, {} if share is None else {"app": share})
    assert spec_of(now, draft).get("startupBoost", []) == draft.boosts == boosts
    assert [start.obstacle for start in draft.starts.values()] == obstacles


def test_a_custom_kind_gets_a_boost_too() -> None:
    custom = rollout()
    custom["spec"]["template"]["spec"]["containers"] = [LIMITED]
    now = present([custom], None, "shop", None)
    (draft,) = drafts(now, fit(history()), NOTHING, {"app": 1.0})
    spec = spec_of(now, draft)
    assert (spec["updateStrategy"], spec["startupBoost"]) == ({"type": "InPlace"}, BOOST)


@pytest.mark.parametrize(
    ("shown", "runtimes", "why"),
    [
        pytest.param({"command": ["java", "-jar", "app.jar"]}, [{"container": "app", "kind": "Java"}],
                     "its command or environment shows it", id="a JVM"),
        pytest.param({"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-XX:MaxRAMPercentage=75"}]},
                     [{"container": "app", "kind": "Java", "heapPercent": 75}],
                     "the pod template sets -XX:MaxRAMPercentage=75 in JAVA_TOOL_OPTIONS", id="with a percentage"),
        pytest.param({"command": ["node", "x.js"]}, [{"container": "app", "kind": "Node"}], "its command", id="Node"),
        pytest.param({"env": [{"name": "GOMEMLIMIT", "valueFrom": {"resourceFieldRef": MEMORY_LIMIT}}]},
                     [{"container": "app", "kind": "Go", "heapPercent": 95}],
                     "the pod template sets GOMEMLIMIT from limits.memory", id="Go with its limit"),
        pytest.param({"env": [{"name": "GOMEMLIMIT", "value": "400MiB"}]}, [], "", id="Go with a size"),
        pytest.param({"command": ["python3", "app.py"]}, [], "", id="Python"),
        pytest.param({"command": ["java"]} | MEMORY_RESTARTS, [], "", id="a restart for memory"),
        pytest.param({}, [], "", id="nothing is shown"),
    ],
)  # fmt: skip
def test_runtimes_that_size_their_heap_at_their_start_are_declared(
    shown: Doc, runtimes: list[Doc], why: str
) -> None:
    now = present([workload(APP | shown)], None, "shop", 33)
    (draft,) = drafts(now, fit(history()), NOTHING)
    assert spec_of(now, draft).get("runtimes", []) == draft.runtimes == runtimes
    assert why in manifest(now, fit(history()), draft, "", "")


def test_todays_configuration_as_a_policy() -> None:
    assert today(found()) == {"name": "today", "fixed": {}}
    assert today(found(vpa("Off")))["fixed"] == {}
    policy = today(found(vpa("InPlaceOrRecreate", {"containerName": "*", "mode": "Off"}, minReplicas=1)))
    assert policy["vpa"] == {
        "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1},
        "resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Off"}]},
    }
    whole = today(found(hpa(CPU_70)))["hpa"]
    assert whole == {"minReplicas": 2, "maxReplicas": 12, "metrics": [CPU_70]}
    other = today(found(hpa()), 90)
    assert other["name"] == "today, at 90 percent"
    assert other["hpa"]["metrics"] == [resource("cpu", averageUtilization=90)]


def test_other_targets_are_todays_too() -> None:
    assert rivals(found(hpa(CPU_70)), made(hpa(CPU_70))) == [80]
    assert rivals(found(vpa("Recreate")), made(vpa("Recreate"))) == []


@pytest.mark.parametrize(
    ("cpu", "percent"), [(lambda count, units: count * 0.5, 20), (lambda count, units: count * 1.42, 45)]
)
def test_headroom_is_what_pods_used_beyond_their_requests(cpu: Any, percent: int) -> None:
    assert headroom(found(), history(cpu=cpu)) == percent
    bare = present([workload({"name": "app"})], TargetName("Deployment", "web"), "shop", 33)
    assert headroom(bare, history(cpu=cpu)) == 20
    assert headroom(found(), history(cpu=cpu, replicas=lambda row: 0)) == 20


@given(
    base=st.floats(0, 4),
    per_unit=st.floats(0, 0.1),
    memory=st.floats(0, 1e10),
    target=st.integers(1, 100),
    least=st.integers(1, 5),
)
def test_every_draft_is_a_valid_manifest(
    base: float, per_unit: float, memory: float, target: int, least: int
) -> None:
    past = history(
        48,
        cpu=lambda count, units: base * count + per_unit * units,
        memory=lambda count, units: memory * count,
    )
    scaler = hpa(resource("cpu", averageUtilization=target), minReplicas=least)
    for draft in made(scaler, past=past):
        spec_of(found(scaler), draft, past)
