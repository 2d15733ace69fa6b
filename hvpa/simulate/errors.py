"""How a scenario, or a file that it names, is refused: one line with the file, the line in it, and the field."""

from __future__ import annotations

from hvpa.api.schema.base import FieldError


class ScenarioError(ValueError):
    """A scenario that can't be simulated. The text is one line: `FILE:LINE: field: reason`."""

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        super().__init__(
            "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
        )


def refusal(file: str, line: int, problem: FieldError) -> ScenarioError:
    """The error for a problem with a field that stands in this line; a problem of the file as a whole has no field."""
    field = f"{problem.path}: " if problem.path else ""
    return ScenarioError(f"{file}:{line}: {field}{problem.message}")
