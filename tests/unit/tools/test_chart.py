"""The generated files of the Helm chart: what is replaced in a manifest, and the table of values. That the chart
renders what kustomize renders is tested end to end."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tools import chart


def leaves(schema: dict[str, Any], prefix: str = "") -> set[str]:
    """The values that a schema knows, `image.tag`."""
    paths = set()
    for name, field in schema["properties"].items():
        below = leaves(field, f"{prefix}{name}.") if "properties" in field else {f"{prefix}{name}"}
        paths |= below
    return paths


def present(values: dict[str, Any], path: str) -> bool:
    """Whether a value has a default."""
    value: Any = values
    for name in path.split("."):
        if name not in value:
            return False
        value = value[name]
    return True


def test_schema_defaults_and_table_know_the_same_values() -> None:
    schema = json.loads((chart.CHART / "values.schema.json").read_text())
    # An entry of a list is no value of its own; `global` is Helm's, for charts that contain this one.
    known = {path for path in leaves(schema) if path != "global"}
    defaults = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    assert chart.values().keys() == known
    assert [path for path in known if not present(defaults, path)] == []
    assert set(defaults) == {path.split(".")[0] for path in known}


@pytest.mark.parametrize("name", chart.TEMPLATES)
def test_a_template_names_no_namespace_and_no_name_of_the_default_installation(name: str) -> None:
    # Where names stand in config: the release's take their place. The object of sizes has one name in all namespaces.
    lines = [line.strip() for line in chart.template(name).splitlines() if not line.strip().startswith("#")]
    fixed = [
        line
        for line in lines
        if "hvpa-system" in line or line.startswith(("name: hvpa-", "policyName: hvpa"))
    ]
    assert fixed == []
    assert lines.count("name: hvpa") == (1 if name == "size-at-creation.yaml" else 0)


def test_what_prometheus_is_to_evaluate_is_none_of_helm_s() -> None:
    rule = chart.template("prometheusrule.yaml")
    assert 'Hvpa {{ "{{" }} $labels.namespace }}/{{ "{{" }} $labels.name }}:' in rule
