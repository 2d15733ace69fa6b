"""Every reason that a condition can have is in the documents, with what it means and what helps. Reasons are found in
the code: the first argument of a `Finding`, and the constants that stand for one."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from hvpa.core import gates

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "hvpa/core"
TABLE = (ROOT / "docs/operations.md").read_text().partition("## Conditions")[2].partition("\n## ")[0]
REMEDIES = (ROOT / "docs/troubleshooting.md").read_text()
GATES = {value for name, value in vars(gates).items() if name.isupper() and isinstance(value, str)}
NO_REMEDY = {"NotBlocked", "NotPaused", "NotContested", "Recommending", "Reconciled"}
"""Reasons of what is as it should be."""
OTHERS = {"WriteFailed", "DecisionFailed", "SetBack"}
"""Reasons of a condition that is made elsewhere than from a `Finding` with its reason."""
KINDS = ("ConfigUnsupported", "ConfigDeprecated", "LowConfidence")
"""Conditions of a VPA that are passed on as reasons."""


def texts(node: ast.expr, constants: dict[str, str]) -> Iterable[str]:
    """What an expression for a reason can be; nothing for one that another controller gave."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.Name) and node.id in constants:
        yield constants[node.id]
    elif isinstance(node, ast.JoinedStr):
        for short in ("Hpa", "Vpa"):
            parts = [str(one.value) if isinstance(one, ast.Constant) else short for one in node.values]
            yield "".join(parts)
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body, constants)
        yield from texts(node.orelse, constants)


def reasons() -> set[str]:
    found: set[str] = set()
    for path in CORE.rglob("*.py"):
        if path.name in ("events.py", "why.py") or path.name.startswith("review"):
            continue  # those of Events, and of remarks on manifests, are others
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        module = importlib.import_module(name)
        constants = {key: value for key, value in vars(module).items() if isinstance(value, str)}
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                for text in texts(node.value, constants):
                    if node.targets[0].id == "reason":
                        found.add(text)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                found.update(texts(node.args[0], constants))
    return found | OTHERS | GATES | set(KINDS) | {"HpaInactive", "VpaInactive"}


REASONS = sorted(reasons())


def test_they_are_found() -> None:
    expected = {
        "TargetNotFound",
        "ForeignVpa",
        "ReplicaFailure",
        "PodsUnschedulable",
        "PodsNotStarting",
        "MaxStep",
    }
    assert expected <= set(REASONS)
    assert len(REASONS) > 50


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_is_in_the_table_of_conditions_and_has_its_remedy(reason: str) -> None:
    assert f"`{reason}`" in TABLE
    if reason not in NO_REMEDY:
        assert re.search(rf"[`= ]{reason}`", REMEDIES)
