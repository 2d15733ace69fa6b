"""Which files `hvpa validate` reads: folders as `kubectl apply -f` takes them, and local files of kustomizations.

Nothing is rendered: of a kustomization the files that it names are looked at, and what would change them is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from os.path import exists, isdir, isfile
from pathlib import Path
from typing import Final

from hvpa.cli.input.files import STANDARD_INPUT, FileError, Plain, load
from hvpa.cli.validate.findings import Finding, of_file

SUFFIXES: Final = (".json", ".yaml", ".yml")
"""Of the files of a folder these are read (kubectl's `FileExtensions`)."""
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of a kustomization's file."""
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
"""Fields of a kustomization that change its objects, or make further ones."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file to read; `named` by the user, or found in a folder, where other YAML may lie around."""

    path: str
    named: bool


@dataclass(slots=True)
class Inputs:
    """The files, each once, and what is to be said of folders and kustomizations."""

    files: list[Input] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, path: str, named: bool) -> None:
        """Read this file too."""
        if all(one.path != path for one in self.files):
            self.files.append(Input(path, named))


def from_names(names: Sequence[str], recursive: bool) -> Inputs:
    """What `-f` names: files, `-`, and folders."""
    found = Inputs()
    for name in names:
        if name != STANDARD_INPUT and isdir(name):
            before = len(found.files)
            try:
                for path in _files_of(Path(name), recursive):
                    _add(found, str(path), named=False)
            except OSError as error:
                found.findings.append(Finding("error", name, None, f"can't be read: {error.strerror}"))
                continue
            if len(found.files) == before:
                hint = "" if recursive else "; -R looks into its folders"
                found.findings.append(Finding("error", name, None, f"no YAML or JSON file in it{hint}"))
        else:
            _add(found, name, named=True)
    return found


def from_kustomizations(folders: Sequence[str]) -> Inputs:
    """What `-k` names: the local files of kustomizations, and of those that they name."""
    found = Inputs()
    seen: set[Path] = set()
    for folder in folders:
        _follow(Path(folder), found, seen)
    return found


def _files_of(folder: Path, recursive: bool) -> Iterator[Path]:
    paths = folder.rglob("*") if recursive else folder.iterdir()
    return (path for path in sorted(paths) if path.suffix in SUFFIXES and isfile(path))


def _add(found: Inputs, path: str, named: bool) -> None:
    name = Path(path).name
    if name in KUSTOMIZATIONS:
        reason = "a kustomization is no object of the cluster: left out"
        found.findings.append(Finding("note", path, None, reason, "-k FOLDER reads the files that it names"))
    else:
        found.add(path, named)


def _follow(folder: Path, found: Inputs, seen: set[Path]) -> None:
    place = folder.resolve()
    if place in seen:
        return
    seen.add(place)
    path = next((folder / name for name in KUSTOMIZATIONS if isfile(folder / name)), None)
    if path is None:
        found.findings.append(Finding("error", str(folder), None, "no kustomization.yaml in it"))
        return
    try:
        source, documents = load(str(path))
    except FileError as error:
        found.findings.append(of_file(error))
        return
    for number, content in documents:
        if not isinstance(content, dict):
            reason = "must be a kustomization"
            found.findings.append(Finding("error", str(path), source.line(number, ""), reason))
            continue
        changing = [name for name in _CHANGES if content.get(name)]
        if changing:
            reason = f"{', '.join(changing)}: not applied; the files are checked as they are"
            remedy = "kustomize build FOLDER | hvpa validate -f - checks what comes out"
            line = source.line(number, changing[0])
            found.findings.append(Finding("note", str(path), line, reason, remedy))
        for name, entry, at in _entries(content):
            missing = Finding("error", str(path), source.line(number, at), f"{name}: {entry} does not exist")
            _resource(folder / entry, missing, found, seen)


def _entries(content: dict[str, Plain]) -> Iterator[tuple[str, str, str]]:
    for name in _FOLLOWED:
        entries = content.get(name)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, str):
                yield name, entry, f"{name}[{index}]"


def _resource(target: Path, missing: Finding, found: Inputs, seen: set[Path]) -> None:
    """Read what a kustomization names; `missing` is what to say where it is not there."""
    entry = missing.reason.removesuffix(" does not exist")
    if not exists(target):
        remote = any(sign in entry for sign in _REMOTE)
        reason = f"{entry} is not on this machine: not checked"
        found.findings.append(replace(missing, severity="note", reason=reason) if remote else missing)
    elif isdir(target):
        _follow(target, found, seen)
    else:
        found.add(str(target), named=False)
