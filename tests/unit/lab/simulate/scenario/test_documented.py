"""The examples and the page about them: both are what the code says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from hvpa_lab.simulate.load.formula import NAMES
from hvpa_lab.simulate.scenario.read import load_scenario
from hvpa_lab.simulate.scenario.schema import (
    CsvLoad,
    FixedPart,
    FixedSize,
    PolicyModel,
    PrometheusLoad,
    ScenarioContainer,
    ScenarioModel,
)
from tests.unit.lab.simulate.scenario.build import HVPA, scenario, values

EXAMPLES = Path(__file__).resolve().parents[5] / "examples"


# --- the examples ---------------------------------------------------------------------------------------------------
SCENARIOS = sorted(
    path
    for path in EXAMPLES.rglob("*.yaml")
    if path.parent.name != "init" and "\nworkload:" in path.read_text()
)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_every_example_is_a_scenario(path: Path) -> None:
    scenario = load_scenario(path, seed=0)
    assert scenario.description
    assert max(values(scenario)) > 0


def test_there_is_an_example_of_each_kind_and_every_file_of_them_is_used() -> None:
    assert {path.parent.name for path in SCENARIOS} == {
        "busy-hours",
        "day-and-night",
        "flash-crowd",
        "growth",
        "hpa-delay",
        "hpa-two-pods",
        "java-heap",
        "large-base",
        "memory-leak",
        "noisy-neighbour",
        "pod-resources",
    }
    texts = {path: path.read_text() for path in SCENARIOS}
    others = {path for path in EXAMPLES.rglob("*.*") if path.suffix in (".yaml", ".csv", ".json")}
    pages = ("init", "first-day", "platform-team", "tutorial")
    of_pages = {path for page in pages for path in (EXAMPLES / page).iterdir()}
    others -= {*SCENARIOS, *of_pages}
    used = {
        path.parent / name
        for path, text in texts.items()
        for name in [file.name for file in others]
        if name in text
    }
    assert others <= used


def test_the_gap_of_the_example_is_reported() -> None:
    (note,) = load_scenario(EXAMPLES / "growth" / "scenario.yaml", seed=0).notes
    assert "load.csv:203: no values for 6h from 2026-01-13T09:00:00Z; held at" in note


def test_the_examples_series_are_what_their_program_writes() -> None:
    series = runpy.run_path(str(EXAMPLES / "series.py"))
    assert (EXAMPLES / "growth" / "load.csv").read_text() == series["growth_csv"]()
    assert (EXAMPLES / "flash-crowd" / "range.json").read_text() == series["crowds_json"]()
    assert (EXAMPLES / "init" / "usage.csv").read_text() == series["usage_csv"]()


# --- the documentation ----------------------------------------------------------------------------------------------
PAGE = (EXAMPLES.parent / "docs" / "simulate.md").read_text(encoding="utf-8")


def test_the_scenario_of_the_page_is_one(tmp_path: Path) -> None:
    text = PAGE.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "hvpa.yaml").write_text(HVPA)
    assert [policy.kind for policy in scenario(tmp_path, text).policies] == ["Hvpa", "HPA+VPA", "Fixed"]


def test_the_container_of_the_page_about_runtimes_is_that_of_the_example() -> None:
    page = (EXAMPLES.parent / "docs" / "runtimes.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(
        page.partition("## In the simulator")[2].partition("```yaml\n")[2].partition("```")[0]
    )
    example = yaml.safe_load((EXAMPLES / "java-heap" / "scenario.yaml").read_text(encoding="utf-8"))
    (container,) = example["workload"]["containers"]
    assert shown.items() <= container.items()


def _fields(model: type[BaseModel]) -> set[str]:
    own = {to_camel(name) for name in model.model_fields}
    inner = [field.annotation for field in model.model_fields.values()]
    models = [
        annotation
        for annotation in inner
        if isinstance(annotation, type) and issubclass(annotation, BaseModel)
    ]
    return own.union(*(_fields(nested_model) for nested_model in models))


def test_every_field_is_on_the_page() -> None:
    models = (
        ScenarioModel,
        CsvLoad,
        PrometheusLoad,
        ScenarioContainer,
        PolicyModel,
        FixedSize,
        FixedPart,
    )
    fields = set().union(*(_fields(model) for model in models))
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
    assert fields - named == set()


def test_every_function_of_formulas_is_on_the_page() -> None:
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
    assert set(NAMES) - named == set()


def test_every_example_is_on_the_page() -> None:
    folders = {path.parent.name for path in SCENARIOS}
    assert {folder for folder in folders if f"| `{folder}` |" in PAGE} == folders
