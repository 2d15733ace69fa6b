"""The changes of files: from the results of all workloads and the present files to new texts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from hvpa.api.objects.kinds import KINDS
from hvpa.api.objects.read_models import Workload
from hvpa.api.values.text import printable
from hvpa.cli.errors import CommandError
from hvpa.cli.output import Json
from hvpa_lab.export.document import (
    HEADER,
    component,
    is_near,
    kustomize_patch,
    partial_manifest,
    text_of,
)
from hvpa_lab.export.folder import Folder, file_name
from hvpa_lab.export.sizes import NotSized, Result, Sized, Sizes

KUSTOMIZATION: Final = "kustomization.yaml"
_NOWHERE: Final = "/dev/null"
_KINDS: Final = {name.lower(): kind for name, kind in KINDS.items()}
Document = Callable[[Workload, Sizes], Json]
"""The document of a workload in a format. Raises CommandError if it can't be written so."""


class Change(NamedTuple):
    """A file before and after; None: it does not exist."""

    name: str
    before: str | None
    after: str | None

    def lines(self) -> Iterator[str]:
        """The unified difference, without line breaks; text of others moves no cursor."""
        before, after = ((text or "").splitlines() for text in (self.before, self.after))
        old = _NOWHERE if self.before is None else f"a/{self.name}"
        new = _NOWHERE if self.after is None else f"b/{self.name}"
        yield from map(printable, difflib.unified_diff(before, after, old, new, lineterm=""))


class Plan(NamedTuple):
    """The changes, and workloads that are not exported, each with the reason."""

    changes: Sequence[Change]
    unchanged: int
    """Number of workloads without a change."""
    faults: Sequence[str]
    notes: Sequence[str]


class Scope(NamedTuple):
    """The files that may be removed."""

    namespace: str | None
    """None: those of all namespaces."""
    kept: frozenset[str] = frozenset()
    """Namespaces in which some object can't be read, so that all files stay."""


class _Lines:
    """Collects reasons."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.notes: list[str] = []

    def add(self, result: Result, why: str, *, is_fault: bool = True) -> None:
        line = f"Hvpa {result.hvpa.namespace}/{result.hvpa.name}: {why}"
        (self.faults if is_fault else self.notes).append(line)


def document_of(form: str) -> Document:
    """The document of a format other than Helm's."""
    document = kustomize_patch if form == "kustomize" else partial_manifest

    def checked(workload: Workload, sizes: Sizes) -> Json:
        if workload.kind not in KINDS:
            why = f"the lists of a {workload.kind}, a custom kind, can't be merged"
            raise CommandError(f"{why}; use --format helm")
        return document(workload, sizes)

    return checked


def against_cluster(results: Iterable[Result], within: int) -> Plan:
    """The differences between the present sizes and those to set, as partial manifests."""
    changes: list[Change] = []
    lines, unchanged = _Lines(), 0
    for result in results:
        if isinstance(result, NotSized):
            lines.add(result, result.why, is_fault=result.is_fault)
            continue
        before, wanted = (
            partial_manifest(result.workload, sizes) for sizes in (result.present, result.wanted)
        )
        if is_near(text_of(before), wanted, within):
            unchanged += 1
            continue
        texts = [text_of(document).removeprefix(HEADER) for document in (before, wanted)]
        changes.append(Change(file_name(result.target), *texts))
    return Plan(sorted(changes), unchanged, lines.faults, lines.notes)


def against_folder(
    results: Iterable[Result],
    folder: Folder,
    document: Document,
    within: int,
    *,
    with_components: bool,
    scope: Scope | None,
) -> Plan:
    """The changes of the folder's files. `scope` None: no file is removed."""
    lines, stay = _Lines(), set[str]()
    texts: dict[str, tuple[str | None, str]] = {}
    for result in results:
        name = file_name(result.target)
        if isinstance(result, NotSized):
            lines.add(result, result.why, is_fault=result.is_fault)
            stay.update(() if result.is_gone else (name,))
            continue
        try:
            before = folder.read(name)
            texts[name] = before, _text(result, before, document, within)
        except CommandError as error:
            lines.add(result, str(error))
            stay.add(name)
    present = set(folder.names(None if scope is None else scope.namespace))
    others = present - texts.keys() - stay
    removed = set() if scope is None else {name for name in others if _namespace(name) not in scope.kept}
    if with_components:
        patches = sorted((present - removed) | texts.keys())
        for name, text in _components(patches).items():
            removed.discard(name)
            try:
                texts[name] = folder.read(name), text
            except CommandError as error:
                lines.faults.append(str(error))
    changes = [Change(name, *both) for name, both in texts.items() if both[0] != both[1]]
    changes += [Change(name, folder.read(name), None) for name in removed]
    same = sum(both[0] == both[1] for name, both in texts.items() if not name.endswith(f"/{KUSTOMIZATION}"))
    return Plan(sorted(changes), same, lines.faults, lines.notes)


def _text(result: Sized, before: str | None, document: Document, within: int) -> str:
    """The text of a workload's file. A new file has the present size if that is near, so that merging it changes
    nothing."""
    wanted = document(result.workload, result.wanted)
    text = text_of(wanted)
    known = text_of(document(result.workload, result.present)) if before is None else before
    return known if known != text and is_near(known, wanted, within) else text


def _components(names: Iterable[str]) -> dict[str, str]:
    """The kustomization of each namespace, from the names of its patches."""
    patches: dict[str, dict[str, tuple[str, str, str]]] = {}
    for name in names:
        namespace, _, file = name.partition("/")
        lower, dash, rest = file.removesuffix(".yaml").partition("-")
        if dash and lower in _KINDS:
            kind = _KINDS[lower]
            patches.setdefault(namespace, {})[file] = (kind.group, kind.name, rest)
    return {f"{namespace}/{KUSTOMIZATION}": text_of(component(files)) for namespace, files in patches.items()}


def _namespace(name: str) -> str:
    return name.partition("/")[0]
