"""The text of a file, and whether a file that exists still says the same.

A small movement of a recommendation changes no file: if no number of the new document differs from the file's by more
than `within` percent, the file stays as it is, byte by byte. Otherwise all of its numbers are new, because replicas and
sizes are decided together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from hvpa.api.objects.read_models import Workload
from hvpa.api.values.documents import Plain, PlainError, SourceText
from hvpa.api.values.quantity import QuantityError, parse_quantity
from hvpa.cli.output import Json
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.containers import wire
from hvpa_lab.export.sizes import Sizes

HEADER: Final = "# Written by hvpa export, which overwrites changes made by hand.\n"
"""First line of each file. A file without it is somebody else's, and never changed."""
_NAMES: Final = frozenset({"apiVersion", "kind", "name", "namespace"})
"""Keys of names, which are never close to each other."""
_NUMBERLIKE: Final = re.compile(r"[yYnN]|[-+.0-9][-+.:_0-9a-fA-FxXoO]*")
"""Text that some reader of YAML takes for a number or a boolean: a container may have the name 1e3."""
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    """Writes no aliases, and quotes text that any YAML reader could take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quoted(dumper: _Dumper, text: str) -> yaml.Node:
    style = "'" if _NUMBERLIKE.fullmatch(text) else None
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_Dumper.add_representer(str, _quoted)


class _Unreadable(Exception):
    """A text that is no document."""


def kustomize_patch(workload: Workload, sizes: Sizes) -> Json:
    """A strategic merge patch. It has no namespace, so that it fits before and after an overlay sets the namespace."""
    return _partial(workload, {"name": workload.metadata.name}, sizes)


def partial_manifest(workload: Workload, sizes: Sizes) -> Json:
    """The exported fields of the workload alone, for server-side apply."""
    meta = workload.metadata
    return _partial(workload, {"name": meta.name, "namespace": meta.namespace}, sizes)


def component(patches: Mapping[str, tuple[str, str, str]]) -> Json:
    """The kustomize Component of a namespace: group, kind and name of the target by name of the patch file."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [{"path": file, "target": _selector(*patches[file])} for file in sorted(patches)],
    }


def resource_values(size: ResourceRequirements) -> Json:
    """Requests and limits in the form of a container's `resources`."""
    sections = {"requests": wire(size.requests), "limits": wire(size.limits)}
    return {section: amounts for section, amounts in sections.items() if amounts}


def text_of(document: Json) -> str:
    """The text of a file. The same document always has the same text."""
    return HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000)


def is_near(text: str, document: Json, within: int) -> bool:
    """Whether the text has the same fields as the document, and no number differs by more than `within` percent of the
    text's number. Example: with 10, 500m is near 550m, and far from 551m."""
    try:
        old, new = dict(_leaves(_read(text))), dict(_leaves(document))
    except _Unreadable:
        return False
    return old.keys() == new.keys() and all(
        old[path] == new[path] or (path[-1] not in _NAMES and _is_close(old[path], new[path], within))
        for path in new
    )


def _partial(workload: Workload, metadata: Json, sizes: Sizes) -> Json:
    containers = [
        {"name": name, "resources": resource_values(size)} for name, size in sizes.containers.items()
    ]
    spec: Json = {} if sizes.replicas is None else {"replicas": sizes.replicas}
    whole = {} if sizes.pod is None else resource_values(sizes.pod)
    pod = {**({"resources": whole} if whole else {}), **({"containers": containers} if containers else {})}
    if pod:
        spec["template"] = {"spec": pod}
    return {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _selector(group: str, kind: str, name: str) -> Json:
    """The target of a patch. The name is a regular expression."""
    return {**({"group": group} if group else {}), "kind": kind, "name": name.replace(".", "\\.")}


def _read(text: str) -> Plain:
    try:
        documents = SourceText(text).documents()
    except PlainError as error:
        raise _Unreadable from error
    if len(documents) != 1:
        raise _Unreadable
    return documents[0].content


def _leaves(value: Plain, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Plain]]:
    """The values that contain no others, by path; an empty list or object counts as a value."""
    entries: Sequence[tuple[str | int, Plain]] = ()
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    if not entries:
        yield path, value
    for key, entry in entries:
        yield from _leaves(entry, (*path, key))


def _is_close(old: Plain, new: Plain, within: int) -> bool:
    if not (isinstance(old, str | int | float) and isinstance(new, str | int)):
        return False
    try:
        before, after = parse_quantity(old), parse_quantity(new)
    except QuantityError:
        return False
    return abs(after - before) * 100 <= abs(before) * within
