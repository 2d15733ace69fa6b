"""Errors of a scenario, or of a file that it names: a single line with the file, the line number, and the field."""

from __future__ import annotations

from hvpa.api.schema.base import FieldError


class ScenarioError(ValueError):
    """A scenario that can't be simulated. The text is a single line: `FILE:LINE: field: reason`."""

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        super().__init__(
            "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
        )


def refusal(file: str, line: int, problem: FieldError) -> ScenarioError:
    """Returns the error for a problem with a field in this line; a problem of the whole file has no field."""
    field = f"{problem.path}: " if problem.path else ""
    return ScenarioError(f"{file}:{line}: {field}{problem.message}")
