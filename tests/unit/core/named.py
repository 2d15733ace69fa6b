"""Tables of test cases whose names are sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


def named(rows: Mapping[str, Any]) -> list[Any]:
    """The cases of a `parametrize`: by name, the values of its arguments (a tuple where there are several)."""
    return [pytest.param(*(row if isinstance(row, tuple) else (row,)), id=name) for name, row in rows.items()]
