"""Scenarios from their files: what fields and loads become."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

from hvpa_lab.recommend.hpa.controller import HpaSettings
from hvpa_lab.recommend.vpa.recommender import VpaSettings
from hvpa_lab.simulate.model import MetricsModel, NodeModel, RuntimeModel
from tests.unit.lab.simulate.scenario.build import SMALL, scenario, values, with_policies

MIB = 1024 * 1024

FULL = """
name: Full
description: All fields.
start: 2026-03-01T12:00:00+01:00
duration: 1d12h
step: 30s
warmUp: 1h
load: {formula: "t / 30", scale: 2, backlog: 20s}
workload:
  kind: Deployment
  name: web
  namespace: shop
  replicas: 3
  startUp: 30s
  maxSurge: 1
  maxUnavailable: 0%
  resizeDelay: 4s
  terminationGrace: 45s
  containers:
    - name: app
      requests: {cpu: 500m, memory: 512Mi}
      limits: {cpu: 1.5, memory: 1Gi}
      cpu: {base: 20m, perUnit: 3500u, startUp: 800m}
      memory: {base: 200Mi, perUnit: 0.5Ki, leakPerHour: 36Mi, kept: 0.4}
      runtime: {kind: Java, heap: 75%}
    - name: proxy
      cpu: {perUnit: 0.0035}
      runtime: {kind: Node, heap: 400Mi}
nodes: {cpu: 8, memory: 32Gi, headroom: 500m, count: 10, startUp: 2m}
metrics: {resolution: 1m, delay: 13s, offset: 5s, load: requests}
controllers:
  hpa:
    syncPeriod: 30s
    tolerance: 0.2
    downscaleStabilization: 1m
    cpuInitializationPeriod: 2m
    initialReadinessDelay: 10s
    offset: 7s
  vpa:
    period: 2m
    offset: 20s
    updaterPeriod: 3m
    updaterOffset: 50s
    safetyMargin: 0.1
    targetCpuPercentile: 0.8
    lowerBoundCpuPercentile: 0.4
    upperBoundCpuPercentile: 0.99
    targetMemoryPercentile: 0.85
    lowerBoundMemoryPercentile: 0.45
    upperBoundMemoryPercentile: 1
    confidenceIntervalCpu: 12h
    confidenceIntervalMemory: 2d
    podMinCpu: 10m
    podMinMemory: 100Mi
    memoryAggregationInterval: 1h
    memoryAggregationIntervalCount: 24
    cpuHalfLife: 6h
    memoryHalfLife: 7h
    oomBumpUpRatio: 1.5
    oomMinBumpUp: 50Mi
policies:
  - {name: As it is, fixed: {}}
"""


# --- fields ---------------------------------------------------------------------------------------------------------
def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    parsed = scenario(tmp_path, SMALL.replace("step: 15s\n", ""))
    assert (parsed.name, parsed.description, parsed.step, parsed.warm_up, parsed.notes) == (
        "Small",
        "",
        5,
        0,
        (),
    )
    assert parsed.start == dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert parsed.nodes == NodeModel()
    assert (parsed.metrics.resolution, parsed.metrics.delay) == (15, 10)
    assert (parsed.controllers.hpa, parsed.controllers.vpa) == (HpaSettings(), VpaSettings())
    workload = parsed.workload
    assert workload.resize_delay == 2
    assert (workload.kind, workload.namespace, workload.replicas, workload.start_up) == (
        "Deployment",
        "default",
        1,
        0,
    )
    assert (workload.max_surge, workload.max_unavailable) == ("25%", "25%")
    assert values(parsed) == [5] * 12


def test_every_field_arrives_in_its_unit(tmp_path: Path) -> None:
    parsed = scenario(tmp_path, FULL)
    assert parsed.start == dt.datetime(2026, 3, 1, 11, tzinfo=dt.UTC)
    assert (parsed.description, parsed.duration, parsed.step, parsed.warm_up) == (
        "All fields.",
        129_600,
        30,
        3600,
    )
    assert parsed.nodes == NodeModel(8000, 32 * 1024 * MIB, 500, 10, 120)
    assert parsed.metrics == MetricsModel(60, 13, 5, "requests")
    workload = parsed.workload
    assert (workload.name, workload.namespace, workload.replicas, workload.start_up) == ("web", "shop", 3, 30)
    assert (workload.resize_delay, workload.termination_grace, parsed.backlog) == (4, 45, 20)
    assert (workload.max_surge, workload.max_unavailable) == (1, "0%")
    app, proxy = workload.containers
    assert app.requests == {"cpu": 500, "memory": 512 * MIB}
    assert app.limits == {"cpu": 1500, "memory": 1024 * MIB}
    assert (app.cpu_base, app.cpu_per_unit, app.cpu_start_up, app.memory_kept) == (20, 3.5, 800, 0.4)
    assert (app.memory_base, app.memory_per_unit, app.memory_leak) == (200 * MIB, 512, 36 * MIB / 3600)
    assert (proxy.requests, proxy.limits, proxy.cpu_per_unit) == ({}, {}, 3.5)
    assert app.runtime == RuntimeModel("Java", "75%")
    assert proxy.runtime == RuntimeModel("Node", 400 * MIB)


def test_headroom_may_be_a_share_of_the_request(tmp_path: Path) -> None:
    parsed = scenario(tmp_path, SMALL.replace("policies:", "nodes: {headroom: 20%}\npolicies:"))
    assert parsed.nodes.headroom == "20%"


def test_controllers_look_at_times_of_their_own_that_the_seed_gives(tmp_path: Path) -> None:
    def offsets(seed: int, text: str = SMALL) -> tuple[float, ...]:
        parsed = scenario(tmp_path, text, seed)
        controllers = parsed.controllers
        others = (controllers.hpa_offset, controllers.vpa_offset, controllers.updater_offset)
        return parsed.metrics.offset, *others

    assert offsets(1) == offsets(1) != offsets(2)
    for seed in range(20):
        for offset, period in zip(offsets(seed), (15, 15, 60, 60), strict=True):
            assert 0 <= offset < period
    given = SMALL.replace("policies:", "metrics: {offset: 4s}\npolicies:")
    assert offsets(1, given) == (4, *offsets(1)[1:])


def test_the_controllers_flags_arrive_in_their_unit(tmp_path: Path) -> None:
    controllers = scenario(tmp_path, FULL).controllers
    assert controllers.hpa == HpaSettings(30, 0.2, 60, 120, 10)
    assert (controllers.hpa_offset, controllers.vpa_period, controllers.vpa_offset) == (7, 120, 20)
    assert (controllers.updater_period, controllers.updater_offset) == (180, 50)
    assert controllers.vpa == VpaSettings(
        safety_margin=0.1,
        target_cpu_percentile=0.8,
        lower_bound_cpu_percentile=0.4,
        upper_bound_cpu_percentile=0.99,
        target_memory_percentile=0.85,
        lower_bound_memory_percentile=0.45,
        upper_bound_memory_percentile=1,
        confidence_interval_cpu=43_200,
        confidence_interval_memory=172_800,
        pod_min_cpu_millicores=10,
        pod_min_memory_mb=100,
        memory_aggregation_interval=3600,
        memory_aggregation_interval_count=24,
        cpu_half_life=21_600,
        memory_half_life=25_200,
        oom_bump_up_ratio=1.5,
        oom_min_bump_up=50 * MIB,
    )


def test_a_stateful_set_needs_no_surge(tmp_path: Path) -> None:
    parsed = scenario(tmp_path, SMALL.replace("  name: web", "  kind: StatefulSet\n  name: web"))
    assert parsed.workload.kind == "StatefulSet"


def test_anchors_are_followed_and_nulls_count_as_absent(tmp_path: Path) -> None:
    text = SMALL.replace(
        "[{name: app}]", "[&c {name: app, limits: null, requests: &r {cpu: 1}}, {name: b, requests: *r}]"
    )
    app, other = scenario(tmp_path, text).workload.containers
    assert app.requests == other.requests == {"cpu": 1000}


# --- load -----------------------------------------------------------------------------------------------------------
_TIMES = zip(("00:00", "00:30", "02:00", "02:30"), (1, 2, 3, 4), strict=True)
CSV = "timestamp,value\n" + "".join(f"2026-02-01T00:{time}Z,{value}\n" for time, value in _TIMES)


def test_a_recorded_load_gives_start_and_duration_and_reports_its_gaps(tmp_path: Path) -> None:
    (tmp_path / "load.csv").write_text(CSV)
    text = SMALL.replace('formula: "5"', "csv: {file: load.csv}").replace("duration: 1m\n", "")
    parsed = scenario(tmp_path, text)
    assert parsed.start == dt.datetime(2026, 2, 1, tzinfo=dt.UTC)
    assert parsed.duration == 180
    assert values(parsed) == [1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 4, 4]
    assert parsed.notes == (
        f"{tmp_path}/load.csv:3: no values for 1m30s from 2026-02-01T00:00:30Z; held at 2",
    )


def test_a_record_may_be_cut_shifted_and_repeated(tmp_path: Path) -> None:
    (tmp_path / "load.csv").write_text(CSV.replace("timestamp", "when").replace("value", "rps"))
    load = "csv: {file: load.csv, timestamp: when, value: rps}, scale: 10"
    text = SMALL.replace('formula: "5"', load)
    parsed = scenario(tmp_path, text + "start: 2026-05-01T00:00:00Z\n")
    assert (parsed.start.month, values(parsed)) == (5, [10, 10, 20, 20])
    text = (
        text.replace("scale: 10", "repeat: true")
        .replace("duration: 1m", "duration: 4m")
        .replace("step: 15s", "step: 30s")
    )
    assert values(scenario(tmp_path, text)) == [1, 2, 2, 2, 3, 4, 1, 2]


def test_the_answer_of_prometheus_is_a_load(tmp_path: Path) -> None:
    series = [
        {"metric": {"zone": zone}, "values": [[0, value], [15, value]]}
        for zone, value in (("a", "1"), ("b", "2"))
    ]
    content = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    (tmp_path / "range.json").write_text(json.dumps(content))
    for choice, value in (("series: 1", 2), ("series: {zone: a}", 1), ("sum: true", 3)):
        text = SMALL.replace('formula: "5"', f"prometheus: {{file: range.json, {choice}}}").replace(
            "1m", "30s"
        )
        assert values(scenario(tmp_path, text)) == [value, value]


def test_noise_comes_from_the_seed(tmp_path: Path) -> None:
    text = SMALL.replace('"5"', '"5", noise: 0.1')
    first = values(scenario(tmp_path, text, seed=1))
    assert first == values(scenario(tmp_path, text, seed=1))
    assert first != values(scenario(tmp_path, text, seed=2))


def test_a_duration_that_is_no_multiple_of_the_step_has_a_last_short_step(tmp_path: Path) -> None:
    assert len(values(scenario(tmp_path, SMALL.replace("1m", "61s")))) == 5


def test_blips_come_from_the_seed(tmp_path: Path) -> None:
    text = SMALL.replace("duration: 1m", "duration: 10h").replace(
        "  name: web", "  name: web\n  blips: {every: 10m, length: 20s}"
    )
    workload = scenario(tmp_path, text, 3).workload
    assert workload.blip_length == 20.0
    assert 40 <= len(workload.blips) <= 80
    assert all(0 <= place < 1 for _, place in workload.blips)
    assert list(workload.blips) == sorted(workload.blips)
    assert (
        workload.blips
        == scenario(tmp_path, text, 3).workload.blips
        != scenario(tmp_path, text, 4).workload.blips
    )


def test_metrics_that_are_made_of_the_load_have_the_names_that_are_given(tmp_path: Path) -> None:
    metric = "{type: External, external: {metric: {name: depth}, target: {type: Value, value: 3}}}"
    hpa = f"{{maxReplicas: 3, metrics: [{metric}]}}"
    text = with_policies(
        f"  - {{name: one, hpa: {hpa}}}\nmetrics: {{queue: depth, share: each, offset: 2s}}\n"
    )
    assert scenario(tmp_path, text).metrics == MetricsModel(15, 10, 2, "load", "each", "depth")


def test_noise_may_begin_later(tmp_path: Path) -> None:
    text = SMALL.replace('{formula: "5"}', '{formula: "5", noise: 0.1, noiseFrom: 30s}')
    loads = values(scenario(tmp_path, text))
    assert loads[:2] == [5, 5]
    assert 5 not in loads[2:]
