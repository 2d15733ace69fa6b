"""The files that `hvpa validate` reads, and its findings.

Folders are read like `kubectl apply -f` reads them, and kustomizations by their local files. A finding is `FILE:LINE:
error: Hvpa NAMESPACE/NAME: field: reason; remedy`, or JSON. Nothing is rendered: the files that a kustomization names
are checked, and its fields that would change them are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from os.path import exists, isdir, isfile
from pathlib import Path
from typing import Any, Final, Literal

from hvpa.api.schema.base import FieldError
from hvpa.api.suggest import suggestion
from hvpa.api.values.documents import Plain
from hvpa.cli.errors import plain_line
from hvpa.cli.input.files import STANDARD_INPUT, Document, FileError, load_documents, yaml_trap
from hvpa.core.spec.review import Remark

SUFFIXES: Final = (".json", ".yaml", ".yml")
"""Suffixes of the files in a folder that are read (kubectl's `FileExtensions`)."""
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of a kustomization's file."""
LEFT_OUT: Final = "a kustomization is not a cluster object: skipped"
_REMOTE: Final = ("://", "?", "git@", "github.com/")
"""Signs of a resource that kustomize would fetch."""
_FOLLOWED: Final = ("resources", "bases", "components")
_CHANGES: Final = (
    "patches",
    "patchesStrategicMerge",
    "patchesJson6902",
    "replacements",
    "namespace",
    "namePrefix",
    "nameSuffix",
    "labels",
    "commonLabels",
    "replicas",
    "generators",
    "transformers",
    "helmCharts",
)
"""Fields of a kustomization that change its objects, or add objects."""


Severity = Literal["error", "warning", "note"]
"""An error is refused by the API server or the operator. A warning is valid and probably not intended. A note reports
skipped input."""


@dataclass(frozen=True, slots=True)
class InputFinding:
    """A finding: its severity, place, object, reason and remedy."""

    severity: Severity
    file: str
    line: int | None
    reason: str
    remedy: str = ""
    object: str = ""
    path: str = ""
    column: int | None = None

    def __str__(self) -> str:
        at = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        reason = f"{self.reason}; {self.remedy}" if self.remedy else self.reason
        parts = (at, self.severity, self.object, self.path, reason)
        return plain_line(": ".join(part for part in parts if part))

    def as_json(self) -> dict[str, Any]:
        """The finding as an object; fields that do not apply are null."""
        names = ("severity", "file", "line", "column", "object", "path", "reason", "remedy")
        return {"field" if name == "path" else name: getattr(self, name) or None for name in names}


def of_file(error: FileError) -> InputFinding:
    """The error of a file that does not contain objects."""
    return InputFinding("error", error.file, error.line, error.reason, column=error.column)


def of_field(document: Document, fault: FieldError | Remark) -> InputFinding:
    """The error of a field, with a suggestion, or its warning."""
    file, line, title, path = document.file, document.line(fault.path), document.title, fault.path
    if isinstance(fault, Remark):
        return InputFinding("warning", file, line, fault.reason, fault.remedy, title, path)
    return InputFinding("error", file, line, fault.message, _remedy(document, fault), title, path)


def _remedy(document: Document, problem: FieldError) -> str:
    if problem.message == "unknown field":
        return suggestion(problem.path) or ""
    return yaml_trap(document, problem)


# --- files -----------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Inputs:
    """The files to read, without duplicates, and the findings on folders and kustomizations."""

    files: dict[str, bool] = field(default_factory=dict)
    """Whether the user named the file; False for a file of a folder, which may contain other YAML."""
    findings: list[InputFinding] = field(default_factory=list)
    followed: set[Path] = field(default_factory=set)

    def count(self, severity: Severity) -> int:
        """The number of findings of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def error(self, path: object, reason: str, line: int | None = None) -> None:
        """Report a problem of a folder or a kustomization."""
        self.findings.append(InputFinding("error", str(path), line, reason))

    def note(self, path: object, line: int | None, reason: str, remedy: str = "") -> None:
        """Report skipped input."""
        self.findings.append(InputFinding("note", str(path), line, reason, remedy))


def from_names(names: Sequence[str], recursive: bool) -> Inputs:
    """The files for `-f`: files, `-`, and folders."""
    inputs = Inputs()
    for name in names:
        if name == STANDARD_INPUT or not isdir(name):
            _add(inputs, name, named=True)
            continue
        try:
            paths = list(_files_of(Path(name), recursive))
        except OSError as error:
            inputs.error(name, f"can't be read: {error.strerror}")
            continue
        for path in paths:
            _add(inputs, str(path), named=False)
        if not any(path.name not in KUSTOMIZATIONS for path in paths):
            hint = "" if recursive else "; -R includes its subfolders"
            inputs.error(name, f"no YAML or JSON file in it{hint}")
    return inputs


def from_kustomizations(folders: Sequence[str]) -> Inputs:
    """The files for `-k`: the local files of kustomizations, and of the kustomizations that they name."""
    inputs = Inputs()
    for folder in folders:
        _follow(Path(folder), inputs)
    return inputs


def _files_of(folder: Path, recursive: bool) -> Iterator[Path]:
    paths = folder.rglob("*") if recursive else folder.iterdir()
    return (path for path in sorted(paths) if path.suffix in SUFFIXES and isfile(path))


def _add(inputs: Inputs, path: str, named: bool) -> None:
    if Path(path).name in KUSTOMIZATIONS:
        inputs.note(path, None, LEFT_OUT, "-k FOLDER reads the files that it names")
    else:
        inputs.files.setdefault(path, named)


def _follow(folder: Path, inputs: Inputs) -> None:
    if folder.resolve() in inputs.followed:
        return
    inputs.followed.add(folder.resolve())
    path = next((folder / name for name in KUSTOMIZATIONS if isfile(folder / name)), None)
    if path is None:
        inputs.error(folder, "no kustomization.yaml in it")
        return
    try:
        source, documents = load_documents(str(path))
    except FileError as error:
        inputs.findings.append(of_file(error))
        return
    for number, content in documents:
        if isinstance(content, dict):
            _kustomization(path, inputs, content, partial(source.line, number))
        else:
            inputs.error(path, "must be a kustomization", source.line(number, ""))


def _kustomization(path: Path, inputs: Inputs, content: dict[str, Plain], line: Callable[[str], int]) -> None:
    """Add the files that it names, and report its fields that are not applied."""
    if changing := [name for name in _CHANGES if content.get(name)]:
        reason = f"{', '.join(changing)}: not applied; the files are checked as they are"
        remedy = "kustomize build FOLDER | hvpa validate -f - checks the result"
        inputs.note(path, line(changing[0]), reason, remedy)
    for name, entry, at in _entries(content):
        target = path.parent / entry
        if isdir(target):
            _follow(target, inputs)
        elif exists(target):
            inputs.files.setdefault(str(target), False)
        elif any(sign in entry for sign in _REMOTE):
            inputs.note(path, line(at), f"{name}: {entry} is not on this machine: not checked")
        else:
            inputs.error(path, f"{name}: {entry} does not exist", line(at))


def _entries(content: dict[str, Plain]) -> Iterator[tuple[str, str, str]]:
    for name in _FOLLOWED:
        entries = content.get(name)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, str):
                yield name, entry, f"{name}[{index}]"
