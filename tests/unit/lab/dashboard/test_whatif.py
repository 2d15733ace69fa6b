"""What-ifs: which changes are accepted, the scenario that they become, and a real simulation of it."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.hvpa.resource import validate_manifest
from hvpa.cli.input.gather import gather
from hvpa.core.model import Objects
from hvpa_lab.dashboard import whatif
from hvpa_lab.dashboard.whatif import (
    FieldChanges,
    Measured,
    Simulator,
    WhatIfError,
    changed,
    read_changes,
    read_manifest,
    scenario,
)
from hvpa_lab.simulate.scenario.read import load_scenario
from tests.unit.cli.support import Doc, Shell, of_kind, without
from tests.unit.kube.fake_server import FakeServer, always
from tests.unit.lab.dashboard import shop

MIB = 2**20
FIELDS = ("blend", "target", "minReplicas", "maxReplicas", "headroom")
QUERIES = st.dictionaries(
    st.sampled_from(FIELDS) | st.text(max_size=8),
    st.text(max_size=12)
    | st.integers(-5, 20_000).map(str)
    | st.sampled_from(["Additive", "Trajectory", " 7 ", "٣"]),
    max_size=6,
)


def objects(shell: Shell, **spec: Any) -> Objects:
    return gather([shell.file(shop.documents(**spec))], None).objects


def manifest(**spec: Any) -> Doc:
    hvpa = of_kind(shop.documents(**spec), "Hvpa")
    return {**hvpa, "metadata": {"name": "shop", "namespace": "default"}}


def sample(at: float, cpu: int, memory: int = 600 * MIB, ready: int = 2) -> Doc:
    """A sample of the time `at` with what all pods used."""
    return {
        "time": 1_800_000_000.0 + at,
        "replicas": {"current": ready, "ready": ready, "desired": ready, "wanted": ready},
        "sizes": {"app": {"cpu": 1000, "memory": 2**30}},
        "used": {"app": {"cpu": cpu, "memory": memory}} if cpu else {},
    }


WAVE = [sample(5.0 * at, 500 + 100 * (at % 12), (200 + 100 * (at % 12)) * MIB) for at in range(36)]


def measured(shell: Shell, samples: list[Doc] = WAVE, **spec: Any) -> Measured:
    return Measured(objects(shell, **spec), {}, samples)


# --- what is asked for ----------------------------------------------------------------------------------------------
@given(QUERIES)
def test_a_query_becomes_changes_in_bounds_or_an_error_that_names_the_field(query: dict[str, str]) -> None:
    known = {name: value for name, value in query.items() if name in FIELDS}
    fault = ""
    try:
        changes = read_changes(query)
    except WhatIfError as error:
        fault, changes = str(error), FieldChanges()
    if fault:
        assert fault.startswith(tuple(f"{name}: must" for name in known)) or fault.endswith(": unknown field")
        assert len(fault) < 100
    assert changes.blend in (None, "Additive", "Trajectory")
    assert changes.target is None or 1 <= changes.target <= 1000
    assert all(bound is None or 1 <= bound <= 10_000 for bound in (changes.least, changes.most))
    assert 0 <= changes.headroom <= 1000
    assert (changes.least or 0) <= (changes.most or 10_000)


def test_what_is_left_empty_stays_as_it_is() -> None:
    assert read_changes({"blend": "", "target": " ", "minReplicas": "3"}) == FieldChanges(least=3)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"target": "0"}, "target: must be a whole number from 1 to 1000"),
        ({"target": "50%"}, "target: must be a whole number from 1 to 1000"),
        ({"maxReplicas": "10001"}, "maxReplicas: must be a whole number from 1 to 10000"),
        ({"minReplicas": "5", "maxReplicas": "4"}, "minReplicas: must not be greater than maxReplicas"),
        ({"blend": "Both"}, "blend: must be Additive or Trajectory"),
        ({"cpu": "1"}, "cpu: unknown field"),
    ],
)
def test_what_makes_no_sense_is_refused(query: dict[str, str], message: str) -> None:
    with pytest.raises(WhatIfError, match=message):
        read_changes(query)


# --- the manifest ---------------------------------------------------------------------------------------------------
def test_changes_are_made_in_the_manifest_and_nowhere_else() -> None:
    before = manifest(trajectory={"overlap": {"cpu": {"percentage": 5}}})
    after = changed(before, FieldChanges("Additive", 60, 3, 7))
    spec = after["spec"]["hpa"]["template"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 7)
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 60
    assert after["spec"]["blend"] == "Additive"
    assert "trajectory" not in after["spec"], "which blend Additive refuses"
    assert validate_manifest(after) == []
    assert before == manifest(trajectory={"overlap": {"cpu": {"percentage": 5}}})
    assert changed(before, FieldChanges()) == before


def test_the_target_of_an_old_manifest_is_found() -> None:
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 80}}]
    document = manifest(hpa={"deploy": True, "template": {"spec": {"maxReplicas": 3, "metrics": metrics}}})
    assert changed(document, FieldChanges(target=50))["spec"]["hpa"]["template"]["spec"]["metrics"][0][
        "resource"
    ] == {
        "name": "cpu",
        "targetAverageUtilization": 50,
    }


@pytest.mark.parametrize(
    ("hpa", "message"),
    [
        ({}, "this Hvpa has no HPA"),
        (
            {"deploy": True, "template": {"spec": {"maxReplicas": 3}}},
            "target: the HPA has no CPU util",
        ),
    ],
)
def test_a_target_that_is_not_there_can_not_be_another(hpa: Doc, message: str) -> None:
    with pytest.raises(WhatIfError, match=message):
        changed(manifest(hpa=hpa), FieldChanges(target=50))


async def test_recommenders_that_are_named_become_ones_that_are_deployed(tmp_path: Path) -> None:
    documents = shop.documents(mode="Paused", hpa={"name": "mine"}, vpa={"name": "mine"})
    server = FakeServer()

    async def handle(request: Any) -> Any:
        kind = {"hvpas": "Hvpa", "horizontalpodautoscalers": "HPA", "verticalpodautoscalers": "VPA"}
        return await always(of_kind(documents, kind[request.path.split("/")[-2]]))(request)

    server.handler = handle
    async with server.connected(tmp_path) as transport:
        document = await read_manifest(transport, "default", "shop")
    assert document["spec"]["mode"] == "Apply"
    hpa = document["spec"]["hpa"]
    assert (hpa["deploy"], "name" in hpa, hpa["template"]["spec"]["maxReplicas"]) == (True, False, 10)
    assert document["spec"]["vpa"] == {"deploy": True, "template": {"spec": {}}}
    assert validate_manifest(document) == []


@pytest.mark.parametrize("name", ["../../secrets", "a/b", "mine?x=", "..", "a\x00b", 7, {}])
async def test_a_name_that_is_none_is_not_looked_for(tmp_path: Path, name: Any) -> None:
    documents = shop.documents(hpa={"name": name})
    server = FakeServer(always(of_kind(documents, "Hvpa")))
    async with server.connected(tmp_path) as transport:
        with pytest.raises(WhatIfError, match=r"can't be simulated: spec\.hpa\.name: must be"):
            await read_manifest(transport, "default", "shop")
    assert len(server.requests) == 1


# --- the scenario ---------------------------------------------------------------------------------------------------
def test_a_scenario_has_the_load_the_size_and_the_usage_that_were_measured(shell: Shell) -> None:
    size = {"app": {"requests": {"cpu": "800m"}, "limits": {"memory": "2Gi"}}}
    document, load = scenario(
        measured(shell)._replace(desired=size), manifest(), FieldChanges(headroom=0), "load.csv"
    )
    (container,) = document["workload"]["containers"]
    assert container["requests"] == {"cpu": "800m", "memory": "1Gi"}
    assert container["limits"] == {"memory": "2Gi"}
    assert container["cpu"] == {"base": "0m", "perUnit": "1000.000m"}
    # 200 MiB of both pods at 0.5 cores, 100 MiB more with each 0.1: -150 MiB each without a load, which can't be.
    assert container["memory"]["base"] == "0"
    assert document["nodes"] == {"headroom": "0%"}
    assert (document["workload"]["replicas"], document["workload"]["startUp"]) == (2, "0s")
    assert load.splitlines()[:3] == ["timestamp,value", "1800000000.000,0.5", "1800000005.000,0.6"]
    assert len(load.splitlines()) == 1 + len(WAVE)


def test_memory_that_does_not_follow_the_load_is_used_anyway(shell: Shell) -> None:
    flat = [sample(5.0 * at, 500 + 100 * (at % 12)) for at in range(36)]
    document, _ = scenario(measured(shell, flat), manifest(), FieldChanges(), "load.csv")
    assert document["workload"]["containers"][0]["memory"] == {"base": "300Mi", "perUnit": "0"}


def test_what_each_pod_uses_anyway_is_no_load(shell: Shell) -> None:
    base = {"baseResourcesPerReplica": {"cpu": {"value": "100m"}}}
    document, load = scenario(
        measured(shell, trajectory=base), manifest(trajectory=base), FieldChanges(), "load.csv"
    )
    assert document["workload"]["containers"][0]["cpu"]["base"] == "100m"
    assert load.splitlines()[1].endswith(",0.3")


def test_gaps_hold_the_value_before_and_looks_in_between_are_left_out(shell: Shell) -> None:
    samples = [sample(0, 100), sample(2, 200), sample(5, 300), sample(21, 400)]
    samples += [sample(25.0 + 5 * at, 500) for at in range(12)]
    _, load = scenario(measured(shell, samples), manifest(), FieldChanges(), "load.csv")
    values = [line.partition(",")[2] for line in load.splitlines()[1:]]
    assert values[:6] == ["0.1", "0.3", "0.3", "0.3", "0.4", "0.5"]


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "0 s of pod usage are known"),
        (WAVE[:11], "55 s of pod usage are known, at least a minute is needed"),
        ([sample(5.0 * at, 0) for at in range(36)], "0 s of pod usage are known"),
        ([sample(5.0 * at, 500, ready=0) for at in range(36)], "0 s of pod usage are known"),
    ],
)
def test_too_little_is_no_scenario(shell: Shell, samples: list[Doc], message: str) -> None:
    with pytest.raises(WhatIfError, match=message):
        scenario(measured(shell, samples), manifest(), FieldChanges(), "load.csv")


def test_without_a_load_there_is_nothing_to_simulate(shell: Shell) -> None:
    base = {"baseResourcesPerReplica": {"cpu": {"percentage": 90}}}
    with pytest.raises(WhatIfError, match="there is no load"):
        scenario(measured(shell, trajectory=base), manifest(), FieldChanges(), "load.csv")


def test_without_a_workload_there_is_nothing_to_simulate(shell: Shell) -> None:
    objects = gather([shell.file(without(shop.documents(), "Deployment"))], None).objects
    with pytest.raises(WhatIfError, match="the workload does not exist"):
        scenario(Measured(objects, {}, WAVE), manifest(), FieldChanges(), "load.csv")


def test_a_pod_takes_as_long_to_start_as_the_median_did(shell: Shell) -> None:
    documents = shop.documents()
    for pod, seconds in zip(
        (document for document in documents if document["kind"] == "Pod"), (20, 40), strict=True
    ):
        pod["status"]["conditions"][0]["lastTransitionTime"] = f"2026-11-20T00:00:{seconds}Z"
    measurement = Measured(gather([shell.file(documents)], None).objects, {}, WAVE)
    assert scenario(measurement, manifest(), FieldChanges(), "load.csv")[0]["workload"]["startUp"] == "30s"


@given(
    st.lists(
        st.tuples(st.floats(0.1, 400), st.integers(0, 10**6), st.integers(0, 2**42), st.integers(1, 500)),
        min_size=12,
        max_size=60,
    ),
    st.builds(
        FieldChanges,
        st.sampled_from([None, "Additive", "Trajectory"]),
        st.none() | st.integers(1, 1000),
        st.just(1),
        st.integers(1, 10_000),
        st.integers(0, 1000),
    ),
)
def test_whatever_was_measured_is_a_scenario_that_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[float, int, int, int]], changes: FieldChanges
) -> None:
    folder, at, samples = tmp_path_factory.mktemp("what-if"), 0.0, []
    (folder / "case.yaml").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": shop.documents()})
    )
    for length, cpu, memory, ready in steps:
        samples.append(sample(at, cpu, memory, ready))
        at += length
    measurement = Measured(gather([str(folder / "case.yaml")], None).objects, {}, samples)
    if not any(point["used"] for point in samples):
        return  # see above
    made = load = None
    with suppress(WhatIfError):  # there is no load, or for too short a time
        made, load = scenario(measurement, manifest(), changes, "load.csv")
    if made is None or load is None:
        return
    (folder / "load.csv").write_text(load)
    (folder / "scenario.yaml").write_text(json.dumps(made))
    read = load_scenario(folder / "scenario.yaml", 0)
    assert [policy.name for policy in read.policies] == ["as it is", "what if"]
    assert all(
        container.memory_base >= 0 and container.memory_per_unit >= 0
        for container in read.workload.containers
    )


# --- the run --------------------------------------------------------------------------------------------------------
async def test_what_can_not_be_simulated_is_refused_with_the_field_and_without_a_files_name(
    shell: Shell,
) -> None:
    external = {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}},
    }
    document = manifest()
    document["spec"]["hpa"]["template"]["spec"]["metrics"] = [external]
    with pytest.raises(WhatIfError) as error:
        await Simulator().run(measured(shell), document, FieldChanges())
    assert error.value.status == 422
    assert str(error.value).startswith("policies[0].hvpa.spec.hpa.template.spec.metrics[0].external")
    assert "no metric queue" in str(error.value)


async def test_one_at_a_time_and_none_for_longer_than_the_limit(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whatif, "TIME_LIMIT", 0.5)
    monkeypatch.setattr(whatif, "DURATION", "1000h")
    simulator, began = Simulator(), time.monotonic()
    running = asyncio.ensure_future(simulator.run(measured(shell), manifest(), FieldChanges()))
    waiting = asyncio.ensure_future(simulator.run(measured(shell), manifest(), FieldChanges(), "ann"))
    await asyncio.sleep(0)
    for user in ("", "ann"):
        with pytest.raises(WhatIfError, match="another simulation of yours is running") as error:
            await simulator.run(measured(shell), manifest(), FieldChanges(), user)
        assert error.value.status == 429
    for late in (running, waiting):
        with pytest.raises(WhatIfError, match="took longer than") as limited:
            await late
        assert limited.value.status == 504
    assert time.monotonic() - began < 30
    with pytest.raises(WhatIfError, match="are known"):  # the next one may begin
        await simulator.run(measured(shell, []), manifest(), FieldChanges())


async def test_a_page_that_is_closed_ends_its_simulation(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whatif, "DURATION", "1000h")
    started: list[asyncio.subprocess.Process] = []
    create = asyncio.create_subprocess_exec

    async def remember(*args: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await create(*args, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", remember)
    running = asyncio.ensure_future(Simulator().run(measured(shell), manifest(), FieldChanges()))
    while not started:
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert started[0].returncode == -9
