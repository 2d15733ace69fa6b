"""The generated pages of docs/reference have all that the code has (`make verify` holds the files against them)."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hvpa.api.crd import render_crd
from hvpa.cli.main import COMMANDS
from tools import reference


def objects(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Each object of a schema with its fields."""
    if "properties" in schema:
        yield schema["properties"]
    for inner in schema.get("properties", {}).values():
        yield from objects(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from objects(schema[key])


@pytest.mark.parametrize("part", ["spec", "status"])
def test_each_object_of_the_crd_has_a_section_with_its_fields(part: str) -> None:
    page = reference.PAGES[part]()
    sections = [re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) for text in page.split("\n## ")[1:]]
    (version,) = render_crd()["spec"]["versions"]
    there = [list(fields) for fields in objects(version["schema"]["openAPIV3Schema"]["properties"][part])]
    assert {tuple(fields) for fields in there} == set(map(tuple, sections))
    anchors = {
        re.sub(r"[^a-z0-9_-]", "", name.lower()) for name in re.findall("^## (.*)$", page, re.MULTILINE)
    }
    assert set(re.findall(r"\(#([^)]*)\)", page)) <= anchors


def test_types_bounds_defaults_and_rules_are_there() -> None:
    page = reference.PAGES["spec"]()
    assert "| `mode` | `Apply` or `Review` or `Recommend` or `Paused` | `Apply` |" in page
    assert "| `deploy` | boolean | `false` |" in page
    assert "| `quantile` | integer, 0 to 100 | `50` |" in page
    assert "| `maxUnavailable` | number or percentage | `25%` |" in page
    assert "| `maxAllowed` | map of quantity |" in page
    assert "- `template.spec.minReplicas`: must not be greater than maxReplicas" in page


def test_each_command_and_flag_is_there() -> None:
    page = reference.commands_page()
    for name, (module, _) in COMMANDS.items():
        section = page.partition(f"\n## `hvpa {name}`\n")[2].partition("\n## ")[0]
        parser = argparse.ArgumentParser(prog=f"hvpa {name}", add_help=False)
        importlib.import_module(module).add_arguments(parser)
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        flags = {flag for action in shown for flag in action.option_strings}
        assert set(re.findall(r"`(-[-\w]+)`(?=,| )", section)) >= flags, name
    assert "| `--log-level` | `debug` or `info` or `warning` or `error`; default: info |" in page
    assert "| `[NAME]` | the Hvpa to read from the cluster; deployment/NAME, " in page


def test_metrics_have_their_type_and_labels() -> None:
    rows = re.findall(r"^\| `(hvpa_\w+)` \| (\w+) \| (.*?) \|", reference.metrics_page(), re.MULTILINE)
    metrics = {name: (kind, re.findall(r"\w+", labels)) for name, kind, labels in rows}
    assert metrics["hvpa_problem"] == ("gauge", ["namespace", "name", "problem", "reason"])
    assert metrics["hvpa_scalings_applied_total"] == ("counter", ["axis", "direction"])
    assert metrics["hvpa_hvpas"] == ("gauge", ["ready", "reason"])
    assert metrics["hvpa_queue_wait_seconds"] == ("histogram", [])
    assert metrics["hvpa_request"] == ("gauge", ["namespace", "name", "container", "resource"])
    assert metrics["hvpa_watch_last_success_timestamp_seconds"] == ("gauge", ["resource"])
