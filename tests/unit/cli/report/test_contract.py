"""The JSON contract of `report -o json` and its schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.explain.contract.test_decision import faults
from tests.unit.cli.report.documents import reported, with_fields
from tests.unit.cli.support import Doc, Shell, load

SCHEMA_FILE = Path(__file__).parents[4] / "docs" / "report.schema.json"


@pytest.mark.parametrize("name", ["shop.yaml", "gardener.yaml", "trajectory.yaml"])
def test_what_is_printed_fits_the_schema(shell: Shell, name: str) -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    assert faults(reported(shell, load(name)), schema, schema) == []


def test_what_others_wrote_moves_no_cursor(shell: Shell, shop: list[Doc]) -> None:
    message = {"status.conditions.0.message": "\x1b[2Jred\u202e"}
    documents = with_fields(shop, "HorizontalPodAutoscaler", "keda-hpa-database", message)
    ran = shell.run("report", "-f", shell.file(documents), "-o", "json")
    assert ran.out.replace("\n", "").isprintable()
    text = shell.run("report", "-f", shell.file(documents))
    assert text.out.replace("\n", "").isprintable()
