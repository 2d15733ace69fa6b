"""Whatever stands in the files: a manifest and a scenario are made of it, or it is refused in one line."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvpa.api.hvpa.resource import validate_manifest
from hvpa.cli.errors import CommandError
from hvpa.cli.input.files import read_documents
from hvpa_lab.init.command import documents_present
from hvpa_lab.init.draft import drafts
from hvpa_lab.init.manifest import manifest
from hvpa_lab.init.scenario import MANIFEST, SCENARIO, load_csv, scenario
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.fit import fit
from hvpa_lab.simulate.history.table import read_history
from hvpa_lab.simulate.scenario.documents import read_documents as read_yaml
from hvpa_lab.simulate.scenario.read import load_scenario
from tests.unit.cli.support import Doc
from tests.unit.lab.init.documents import CPU_70, LIMITED, hpa, keda, resource, usage, vpa, workload

BEHAVIOR: Final = {"scaleDown": {"stabilizationWindowSeconds": 60, "policies": [
    {"type": "Pods", "value": 1, "periodSeconds": 60}]}}  # fmt: skip
POLICY: Final = {"containerName": "app", "minAllowed": {"cpu": "50m"}, "controlledResources": ["cpu"]}
CPU_STAYS: Final = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
SOUND: Final[list[Doc]] = [
    workload(
        {**LIMITED, "resizePolicy": [CPU_STAYS]},
        strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
    ),
    hpa(CPU_70, resource("memory", averageValue="1Gi"), behavior=BEHAVIOR),
    vpa("Recreate", POLICY, minReplicas=1),
    keda(minReplicaCount=1),
]
PAST: Final = usage(1, every=3600)


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of everything below."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield (*at, key)
        yield from places(below, (*at, key))


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8),
    st.sampled_from(["500m", "-1", "1e99", "0", "Auto", "*", "Utilization", "web", "app"]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "cpu", "spec", "target", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def make(documents: list[Doc]) -> None:
    """Everything up to the simulation. Raises what may be raised, and nothing else."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "shop.json").write_text(json.dumps({"kind": "List", "items": documents}))
        now = documents_present(read_documents(str(folder / "shop.json")), None, None, 33)
        history = read_history("usage.csv", PAST, now.shares())
        learnt = fit(history)
        draft = drafts(now, learnt, (None, None), {"app": 0.5})[0]
        text = manifest(now, learnt, draft, "", "why")
        (folder / MANIFEST).write_text(text)
        (folder / "load.csv").write_text(load_csv(history, learnt))
        (folder / SCENARIO).write_text(scenario(now, history, learnt, [(draft, MANIFEST)]))
        with suppress(ScenarioError):  # what the API server would have refused
            load_scenario(folder / SCENARIO, 0)
            (document,) = read_yaml("hvpa.yaml", text)
            assert validate_manifest(document.content) == []


def test_what_is_sound_is_made() -> None:
    make(SOUND)


@settings(max_examples=100, deadline=None)
@given(place=st.sampled_from(list(places(SOUND))), value=values)
def test_any_value_in_any_place(place: tuple[str | int, ...], value: Any) -> None:
    documents = copy.deepcopy(SOUND)
    where: Any = documents
    for part in place[:-1]:
        where = where[part]
    where[place[-1]] = value
    refusal = ""
    try:
        make(documents)
    except (CommandError, ScenarioError) as error:
        refusal = str(error)
    assert "\n" not in refusal


@pytest.mark.parametrize("place", sorted(set(places(SOUND)), key=str), ids=str)
def test_anything_may_be_missing(place: tuple[str | int, ...]) -> None:
    documents = copy.deepcopy(SOUND)
    where: Any = documents
    for part in place[:-1]:
        where = where[part]
    del where[place[-1]]
    with suppress(CommandError, ScenarioError):
        make(documents)
