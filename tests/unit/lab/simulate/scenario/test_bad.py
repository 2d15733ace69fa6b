"""Scenarios that can't be simulated: each is refused in one line that names file, line and field."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.model import Scenario
from hvpa_lab.simulate.scenario import documents as files
from hvpa_lab.simulate.scenario import read as reading
from hvpa_lab.simulate.scenario.read import load_scenario

GOOD = """\
name: Web
duration: 10m
load:
  formula: "5"
workload:
  name: web
  containers:
    - name: app
      requests: {cpu: 1, memory: 1Gi}
      limits: {memory: 1Gi}
policies:
  - name: Hvpa
    hvpa: hvpa.yaml
  - name: HPA
    hpa:
      maxReplicas: 3
  - name: VPA
    vpa: {}
  - name: Fixed
    fixed: {}
"""
HVPA = """\
apiVersion: autoscaling.k8s.io/v1alpha1
kind: Hvpa
metadata:
  name: web
spec:
  targetRef:
    kind: Deployment
    name: web
  hpa:
    deploy: true
    template:
      spec:
        maxReplicas: 3
"""
CSV = "timestamp,value\n0,1\n60,2\n120,3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hvpa.yaml").write_text(HVPA)
    (tmp_path / "load.csv").write_text(CSV)
    (tmp_path / "folder").mkdir()
    return tmp_path


def refused(folder: Path, text: str | bytes) -> str:
    """What is reason of the scenario, without the folder's name."""
    path = folder / "scenario.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, 0)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{folder}/", "")


def test_the_scenario_that_the_others_are_made_from_is_good(folder: Path) -> None:
    (folder / "scenario.yaml").write_text(GOOD)
    assert len(load_scenario(folder / "scenario.yaml", 0).policies) == 4


FORMULA = 'formula: "5"'
TABLE = yaml.load(
    (Path(__file__).parent / "bad_scenarios.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


def _id(case: dict[str, str]) -> str:
    return case["reason"][:60]


@pytest.mark.parametrize("case", TABLE["scenarios"], ids=_id)
def test_a_wrong_field_is_reported_with_its_line(folder: Path, case: dict[str, str]) -> None:
    assert case["replace"] in GOOD
    assert refused(folder, GOOD.replace(case["replace"], case["by"], 1)) == case["reason"]


@pytest.mark.parametrize("case", TABLE["manifests"], ids=_id)
def test_a_wrong_manifest_is_reported_with_its_own_line(folder: Path, case: dict[str, str]) -> None:
    assert HVPA.count(case["replace"]) == 1
    (folder / "hvpa.yaml").write_text(HVPA.replace(case["replace"], case["by"]))
    assert refused(folder, GOOD) == case["reason"]


NO_YAML = [
    ("", "1: must have a single scenario, but has nothing"),
    ("# nothing", "1: must have a single scenario, but has nothing"),
    ("a: 1\n---\nb: 2", "1: must have a single scenario, but has 2"),
    ("- 3", "1: a scenario must be an object with name, load, workload and policies"),
    ("\n\n3", "3: a scenario must be an object"),
    ("name: [", "2: not YAML: "),
    ("name: a\n\tb", "2: not YAML: "),
    ("name: *nobody", "1: not YAML: found undefined alias"),
    ("name: a\x00b", "1: not YAML: unacceptable character"),
    (b"name: a\nload: \xff\xfe", "2: not UTF-8 text: invalid start byte"),
    (b"\x89PNG\r\n\x1a\n\x00\x00", "1: not UTF-8 text"),
    ("? [a]\n: 1", "1: not YAML: found unhashable key"),
    (
        "name: !!python/name:os.system x",
        "1: not YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/name:os.system'",
    ),
    ("name: !!int x", "1: not YAML: invalid literal for int()"),
    ("name: " + "9" * 5000, "1: not YAML: Exceeds the limit"),
    ("name: 1e999", "1: name: inf is not a valid JSON number"),
    ("\n" + "[" * 100_000, "2: nested more than 100 deep"),
    ("name: &a [*a]", "1: too large after its aliases are expanded"),
    (
        "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40)),
        "1: too large after its aliases are expanded",
    ),
    ("<<: {names: a}", "1: names: unknown field"),
]


@pytest.mark.parametrize(("text", "reason"), NO_YAML, ids=lambda text: str(text[:30]))
def test_what_is_no_scenario_at_all_is_reported_with_its_line(
    folder: Path, text: str | bytes, reason: str
) -> None:
    assert refused(folder, text).startswith(f"scenario.yaml:{reason}")


def test_a_wrong_manifest_within_the_scenario_is_reported_with_the_scenarios_line(folder: Path) -> None:
    inline = "    hvpa:\n" + "".join(
        f"      {line}\n" for line in HVPA.replace("name: web", "name: shop").splitlines()
    )
    message = refused(folder, GOOD.replace("    hvpa: hvpa.yaml\n", inline))
    assert message.startswith("scenario.yaml:19: policies[0].hvpa.spec.targetRef: must be the workload")


def test_a_wrong_load_is_reported_with_its_own_line(folder: Path) -> None:
    (folder / "load.csv").write_text(CSV.replace("60,2", "60,-2"))
    text = GOOD.replace(FORMULA, "csv: {file: load.csv}")
    assert refused(folder, text) == "load.csv:3: value: -2 is negative"
    (folder / "load.csv").write_bytes(CSV.encode() + b"180,\xff\n")
    assert refused(folder, text) == "load.csv:5: not UTF-8 text: invalid start byte"
    (folder / "range.json").write_text("{")
    assert refused(folder, GOOD.replace(FORMULA, "prometheus: {file: range.json}")).startswith(
        "range.json:1: not JSON"
    )


def test_a_record_that_would_be_repeated_for_ever_is_refused(folder: Path) -> None:
    (folder / "load.csv").write_text("timestamp,value\n0,1\n0.00001,2\n")
    text = GOOD.replace(FORMULA, "csv: {file: load.csv}\n  repeat: true")
    assert refused(folder, text).startswith(
        "scenario.yaml:5: load.repeat: 10m would be more than 50000000 recorded"
    )


def test_a_file_that_is_missing_or_too_large_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ScenarioError, match=r"none\.yaml can't be read: No such file or directory$"):
        load_scenario(folder / "none.yaml", 0)
    with pytest.raises(ScenarioError, match=r"folder can't be read: Is a directory$"):
        load_scenario(folder / "folder", 0)
    monkeypatch.setattr(files, "MAX_SIZE", 100)
    assert refused(folder, GOOD) == "scenario.yaml can't be read: it is larger than 0 MB"


# --- whatever stands there ------------------------------------------------------------------------------------------
_WORDS = st.sampled_from(
    ["name", "load", "formula", "csv", "file", "load.csv", "workload", "containers", "policies", "hvpa", "hpa", "vpa",
     "fixed", "cpu", "10m", "500m", "5", "-1", "null", "[", "]", "{", "}", ":", ",", "- ", "\n", "  ", "&a", "*a",
     "!!set", "|", "'", '"', "#", "---"]
)  # fmt: skip


def _outcome(path: Path, text: str) -> Scenario | str:
    path.write_text(text, encoding="utf-8")
    try:
        return load_scenario(path, 0)
    except ScenarioError as error:
        return str(error)


_per_folder = settings(
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ]
)


@_per_folder
@given(st.one_of(st.text(), st.lists(_WORDS, max_size=40).map("".join)))
def test_any_text_is_refused_in_one_line(folder: Path, text: str) -> None:
    message = _outcome(folder / "scenario.yaml", text)
    assert isinstance(message, str)
    assert message.isprintable()


_PLAIN = yaml.safe_load(GOOD)
_PLAIN["workload"]["resources"] = {"requests": {"cpu": 2}, "limits": {"memory": "2Gi"}}
_PLAIN["policies"][2]["vpa"] = {"updatePolicy": {"updateMode": "Off"}}
_PLAIN["workload"]["containers"][0]["runtime"] = {"kind": "Java", "heap": "75%"}


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, element in inner for place in _places(element, (*path, key)))]


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["10m", "1Gi", "a", "", "hvpa.yaml", "load.csv", "7d", "25%", "t", "scenario.yaml"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def _put(content: Any, path: tuple[Any, ...], value: Any) -> None:
    """Set the value at this path, if an earlier change has left something there."""
    *parents, last = path
    for part in parents:
        if not _has(content, part):
            return
        content = content[part]
    if _has(content, last):
        content[last] = value


def _has(content: Any, part: Any) -> bool:
    if isinstance(content, dict):
        return part in content
    return isinstance(content, list) and isinstance(part, int) and part < len(content)


@_per_folder
@given(st.lists(st.tuples(st.sampled_from(_places(_PLAIN)[1:]), _VALUES), min_size=1, max_size=3))
def test_any_value_of_any_field_is_read_or_refused_in_one_line(folder: Path, changes: list[Any]) -> None:
    content = copy.deepcopy(_PLAIN)
    for path, value in changes:
        _put(content, path, value)
    outcome = _outcome(folder / "scenario.yaml", json.dumps(content))
    if isinstance(outcome, str):
        assert outcome.isprintable()
        assert outcome.startswith(str(folder))
    else:
        assert outcome.policies


def test_the_largest_number_of_steps_is_what_it_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_STEPS", 39)
    assert refused(folder, GOOD) == "scenario.yaml:1: step: 10m would be more than 39 steps"
