"""What `hvpa validate` finds: `FILE:LINE: error: Hvpa NAMESPACE/NAME: field: reason; remedy` each, or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hvpa.api.schema.base import FieldError
from hvpa.api.suggest import suggestion
from hvpa.cli.errors import one_line
from hvpa.cli.input.files import Document, FileError, Plain
from hvpa.core.spec.review import Remark

Severity = Literal["error", "warning", "note"]
"""An error is refused by the API server or by the operator; a warning is valid and probably not meant; a note says what
was not looked at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know: how bad, where, of which object, what, and what to do about it."""

    severity: Severity
    file: str
    line: int | None
    reason: str
    remedy: str = ""
    object: str = ""
    path: str = ""
    column: int | None = None

    def __str__(self) -> str:
        at = ":".join(str(one) for one in (self.file, self.line, self.column) if one is not None)
        reason = f"{self.reason}; {self.remedy}" if self.remedy else self.reason
        parts = (at, self.severity, self.object, self.path, reason)
        return one_line(": ".join(part for part in parts if part))

    def as_json(self) -> dict[str, Any]:
        """The same as an object; what does not apply is null."""
        names = ("severity", "file", "line", "column", "object", "path", "reason", "remedy")
        return {"field" if name == "path" else name: getattr(self, name) or None for name in names}


def of_file(error: FileError) -> Finding:
    """The error of a file that does not hold objects."""
    return Finding("error", error.file, error.line, error.reason, column=error.column)


def of_field(document: Document, fault: FieldError | Remark) -> Finding:
    """The error of a field, with what may have been meant, or the warning of one."""
    file, line, title, path = document.file, document.line(fault.path), document.title, fault.path
    if isinstance(fault, Remark):
        return Finding("warning", file, line, fault.reason, fault.remedy, title, path)
    return Finding("error", file, line, fault.message, _remedy(document, fault), title, path)


def _remedy(document: Document, problem: FieldError) -> str:
    if problem.message == "unknown field":
        return suggestion(problem.path) or ""
    if "'Off'" in problem.message and isinstance(_value(document.content, problem.path), bool):
        return 'write it in quotes, such as "Off": without them YAML reads Off and On as false and true'
    return ""


def _value(content: Plain, path: str) -> Plain:
    """The value at a path of plain names."""
    for part in path.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content
