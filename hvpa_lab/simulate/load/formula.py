"""Load formulas: arithmetic over the time, parsed from text and compiled once.

A formula is a Python expression of numbers, operators, and the names and functions listed here. Anything else is
refused before the formula is run.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_LENGTH: Final = 2000
"""Maximum length of a formula in characters: far more than a load needs, few enough for the compiler's stack."""
MAX_EXPONENT: Final = 1000.0
"""Largest absolute exponent of `**`."""


class FormulaError(ValueError):
    """The text is not a formula, or the formula has no value at some time."""


def pulse(t: float, start: float, length: float) -> float:
    """1 for `length` seconds from `start`, else 0."""
    return 1.0 if start <= t < start + length else 0.0


def ramp(t: float, start: float, length: float) -> float:
    """0 until `start`, then rises linearly to 1 within `length` seconds and stays at 1."""
    if t < start:
        return 0.0
    return min((t - start) / length, 1.0) if length > 0 else 1.0


def power(base: float, exponent: float) -> float:
    """`base ** exponent`. Raises ValueError if the exponent is beyond `MAX_EXPONENT`, or the result is not real."""
    if abs(exponent) > MAX_EXPONENT:
        raise ValueError(f"an exponent beyond {MAX_EXPONENT:g}")
    return math.pow(base, exponent)


_NAMES: Final[Mapping[str, float]] = {
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
    "pi": math.pi,
}
"""Constants: units of time in seconds, and pi. The time `t` is passed with each call."""
_ANY_NUMBER: Final = 255
_FUNCTIONS: Final[Mapping[str, tuple[Callable[..., float], int, int]]] = {
    "sin": (math.sin, 1, 1),
    "cos": (math.cos, 1, 1),
    "exp": (math.exp, 1, 1),
    "log": (math.log, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "abs": (abs, 1, 1),
    "floor": (math.floor, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "min": (min, 2, _ANY_NUMBER),
    "max": (max, 2, _ANY_NUMBER),
    "pulse": (pulse, 3, 3),
    "ramp": (ramp, 3, 3),
}
"""Functions, each with the minimum and maximum number of arguments."""
NAMES: Final = ("t", *_NAMES, *_FUNCTIONS)
"""All names that a formula may use."""
_POWER: Final = "**"
"""Name of `power` in the compiled formula: it is no identifier, so no formula can contain it."""
_OPERATORS: Final = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.UAdd, ast.USub, ast.Not),
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq),
)
_NODES: Final = (
    *(ast.Constant, ast.Name, ast.Load, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(ast.boolop, *_OPERATORS),
)
"""Syntax nodes that a formula may contain. A comparison is 1 if it is true, else 0."""


class Formula:
    """A compiled formula of the time `t` in seconds: `Formula("200 + 150 * sin(2 * pi * t / day)")(3600.0)`.

    The constructor raises FormulaError with the column if the text is not a formula. A call raises it if there is no
    value at this time (division by zero, logarithm of 0, a number too large).
    """

    __slots__ = ("_evaluate", "text")

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        names = {name: function for name, (function, _, _) in _FUNCTIONS.items()}
        scope: dict[str, Any] = {"__builtins__": {}, _POWER: power, **_NAMES, **names}
        self._evaluate: Callable[[float], float] = eval(_compiled(self.text), scope)

    def __call__(self, t: float) -> float:
        """The value at `t` seconds."""
        try:
            value = float(self._evaluate(t))
        except ZeroDivisionError:
            raise FormulaError(f"has no value at t = {t:g}: division by zero") from None
        except (ValueError, OverflowError) as error:
            raise FormulaError(f"has no value at t = {t:g}: {error}") from None
        if not math.isfinite(value):
            raise FormulaError(f"is {value} at t = {t:g}")
        return value


def _compiled(text: str) -> Any:
    """The code object of a function of `t`."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"is longer than {MAX_LENGTH} characters")
    function = ast.parse("lambda t: 0", mode="eval")
    assert isinstance(function.body, ast.Lambda)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # refuse text that Python only warns about, such as 1if
            function.body.body = _Checked().visit(ast.parse(text, mode="eval").body)
            return compile(ast.fix_missing_locations(function), "formula", "eval")
    except FormulaError:
        raise
    except SyntaxError as error:
        raise FormulaError(f"column {error.offset or len(text) + 1}: {error.msg}") from None
    except (ValueError, MemoryError, RecursionError):  # a null character; deep nesting
        raise FormulaError("is not a readable formula: nested too deep, or not text") from None


class _Checked(ast.NodeTransformer):
    """Refuses all nodes that a formula may not contain. Converts integers to floats and `**` to a call of `power`, so
    that no number grows without bound."""

    def visit(self, node: ast.AST) -> Any:
        """The node, if a formula may contain its type."""
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.operator | ast.unaryop | ast.cmpop) and not isinstance(part, _OPERATORS):
                raise _fault(node, "the operators are + - * / % **, comparisons, and, or, not")
        if not isinstance(node, _NODES):
            raise _fault(node, "only numbers, operators and the listed names and functions are for formulas")
        return super().visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """The number as a float."""
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise _fault(node, f"{node.value!r} is not a number")
        try:
            return ast.copy_location(ast.Constant(float(node.value)), node)
        except OverflowError:
            raise _fault(node, "the number is too large") from None

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The node, if it is `t` or a constant."""
        if node.id in _FUNCTIONS:
            raise _fault(node, f"{node.id} is a function")
        if node.id != "t" and node.id not in _NAMES:
            raise _fault(node, f"{node.id!r} is not known; there are {', '.join(NAMES)}")
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The call, if the function is listed and the number of arguments is right."""
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
            raise _fault(node, f"only these can be called: {', '.join(_FUNCTIONS)}")
        _, least, most = _FUNCTIONS[node.func.id]
        if node.keywords or not least <= len(node.args) <= most:
            wanted = f"{least} or more arguments" if least != most else f"{least} argument{'s'[: least - 1]}"
            raise _fault(node, f"{node.func.id} takes {wanted}")
        node.args = [self.visit(argument) for argument in node.args]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """The operation, such as `a + b`; a call of `power` for `a ** b`."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        function = ast.Name(_POWER, ast.Load())
        return ast.copy_location(ast.Call(function, [node.left, node.right], []), node)


def _fault(node: ast.AST, message: str) -> FormulaError:
    return FormulaError(f"column {getattr(node, 'col_offset', 0) + 1}: {message}")
