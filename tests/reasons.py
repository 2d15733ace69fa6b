"""The reasons that a condition of an Hvpa can have, found in the code of the core: the first argument of each
`Finding`, the `reason=` of each `StatusCondition`, and the gates. An expression that the search can't resolve raises an
error, so that no reason is overlooked."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import hvpa.core
from hvpa.core.gates import gates

POLICIES: Final = "policies"
"""Folder of the conditions of policies, which docs/policies.md lists (tests/unit/core/policies/test_report.py)."""
CORE: Final = Path(next(iter(hvpa.core.__path__)))
GATES: Final = frozenset(
    value for name, value in vars(gates).items() if name.isupper() and isinstance(value, str)
)
"""The names of the gates, which are the reasons of `ScalingBlocked`."""
SHORTS: Final = ("Hpa", "Vpa")
"""What `{rules.short}` in a reason stands for."""
PASSED_ON: Final[dict[str, tuple[str, ...]]] = {
    "observation.spec.mode": ("Recommend", "Paused"),
    "reasons[0]": (),  # a gate's
    "problems[0].reason": (),  # another finding's, as of all that follow
    "finding.reason": (),
    "why.reason": (),
    "condition.reason": (),  # as the operator has reported it
}
"""Expressions that pass a reason on, and what those reasons are where no finding or gate has them."""


@cache
def reasons() -> frozenset[str]:
    """Every reason that the core gives, those of gates included. Of the reasons that kube-controller-manager gives an
    HPA, which are passed on, only the one that replaces an unusable text."""
    return GATES | finding_reasons()


@cache
def finding_reasons() -> frozenset[str]:
    """The reasons of findings and conditions, without those that only gates have."""
    paths = [path for path in CORE.rglob("[!_]*.py") if path.parent != CORE / POLICIES]
    return frozenset(text for path in paths for text in _of_module(path))


def _of_module(path: Path) -> Iterator[str]:
    module = importlib.import_module(".".join(("hvpa.core", *path.relative_to(CORE).with_suffix("").parts)))
    constants = {key: value for key, value in vars(module).items() if isinstance(value, str)}
    for scope in ast.parse(path.read_text()).body:
        for node in ast.walk(scope):
            if (expression := _reason(node)) is not None:
                yield from _texts(expression, constants, scope)


def _reason(node: ast.AST) -> ast.expr | None:
    """The expression for the reason, in a call that makes a finding or a condition."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if node.func.id == "Finding":
        return node.args[0]
    if node.func.id == "StatusCondition":
        return next(keyword.value for keyword in node.keywords if keyword.arg == "reason")
    return None


def _texts(node: ast.expr, constants: dict[str, str], scope: ast.AST) -> Iterator[str]:
    """What an expression for a reason can be."""
    if ast.unparse(node) in PASSED_ON:
        yield from PASSED_ON[ast.unparse(node)]
    elif isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.Name) and node.id in constants:
        yield constants[node.id]
    elif isinstance(node, ast.Name) and (bound := list(_bound(node.id, scope))):
        for expression in bound:
            yield from _texts(expression, constants, scope)
    elif isinstance(node, ast.JoinedStr):
        for short in SHORTS:
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else short for part in node.values
            )
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body, constants, scope)
        yield from _texts(node.orelse, constants, scope)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "text.reason":
        yield from _texts(node.args[1], constants, scope)
    else:
        raise LookupError(f"line {node.lineno}: which reasons can `{ast.unparse(node)}` be?")


def _bound(name: str, scope: ast.AST) -> Iterator[ast.expr]:
    """The expressions that a function binds to a name: in assignments, and in loops over what is written out."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            yield node.value
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            if ast.unparse(node.target) == name:
                yield from node.iter.elts
            elif isinstance(node.target, ast.Tuple):
                names = [ast.unparse(element) for element in node.target.elts]
                if name in names:
                    rows = [row for row in node.iter.elts if isinstance(row, ast.Tuple)]
                    yield from (row.elts[names.index(name)] for row in rows)
