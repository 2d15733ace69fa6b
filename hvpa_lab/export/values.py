"""Paths in Helm values: a file that says once where a chart has the resources of a container.

    workloads:
      - match: {namespace: shop, name: "web-*", labels: {app.kubernetes.io/managed-by: Helm}}
        containers: {web: web.resources, "*": "sidecars.{container}.resources"}
        replicas: web.replicaCount

The first entry that matches a workload applies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, NoReturn

from hvpa.api.objects.read_models import Workload
from hvpa.api.values.documents import Plain
from hvpa.cli.errors import CommandError
from hvpa.cli.input.files import FileError, Source, load_documents
from hvpa.cli.output import Json
from hvpa.core.workload.pod_level import POD
from hvpa_lab.export.document import resource_values
from hvpa_lab.export.sizes import Sizes

_FIELDS: Final = ("namespace", "kind", "name")
"""Fields of `match` that are patterns; `labels` is the fourth."""
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_LABEL: Final = "label:"
ANY: Final = "*"
"""Key of the path for all other containers."""

Path = tuple[str, ...]
"""Keys of nested objects, with templates."""


class _Entry(NamedTuple):
    """The paths of the workloads that match."""

    fields: Mapping[str, str]
    labels: Mapping[str, str]
    containers: Mapping[str, Path | None]
    """By container, ANY or POD; None: not exported."""
    replicas: Path | None

    def matches(self, workload: Workload) -> bool:
        known = _known(workload)
        return all(fnmatchcase(known[name], pattern) for name, pattern in self.fields.items()) and all(
            name in workload.metadata.labels and fnmatchcase(workload.metadata.labels[name], pattern)
            for name, pattern in self.labels.items()
        )


class ValuePaths:
    """The paths of a file."""

    def __init__(self, file: str) -> None:
        """Raises FileError."""
        self.file = file
        self._entries = _Reader(file).entries()

    def document(self, workload: Workload, sizes: Sizes) -> Json:
        """The Helm values of a workload. Raises CommandError if a path is missing, or two paths collide."""
        entry = next((entry for entry in self._entries if entry.matches(workload)), None)
        if entry is None:
            raise CommandError(f"no entry of {self.file} matches it")
        values: Json = {}
        if sizes.replicas is not None and entry.replicas is not None:
            self._put(values, self._filled(entry.replicas, workload, ""), sizes.replicas)
        known = entry.containers
        others = {name: known[ANY] for name in sizes.containers if ANY in known}
        of_pod = {} if sizes.pod is None else {POD: sizes.pod}
        for name, size in {**sizes.containers, **of_pod}.items():
            if name not in {**others, **known}:
                what = "the pod itself, (pod)" if name == POD else f"container {name}"
                raise CommandError(f"{self.file} has no path for {what} (an empty path leaves it out)")
            path = {**others, **known}[name]
            if path is not None:
                self._put(values, self._filled(path, workload, name), resource_values(size))
        if not values:
            raise CommandError(f"its entry of {self.file} leaves everything out")
        return values

    def _filled(self, path: Path, workload: Workload, container: str) -> Path:
        known = {**_known(workload), "container": container}

        def fill(found: re.Match[str]) -> str:
            name = found[1]
            if not name.startswith(_LABEL):
                return known[name]
            label = name.removeprefix(_LABEL)
            if label not in workload.metadata.labels:
                raise CommandError(f"it has no label {label}, which {self.file} uses in a path")
            return workload.metadata.labels[label]

        return tuple(_TEMPLATE.sub(fill, part) for part in path)

    def _put(self, values: Json, path: Path, value: Plain) -> None:
        *parents, last = path
        place: Plain = values
        for part in parents:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last in place:
            raise CommandError(f"two paths of {self.file} collide at {'.'.join(path)}")
        place[last] = value


def _known(workload: Workload) -> dict[str, str]:
    meta = workload.metadata
    return {"namespace": meta.namespace, "kind": workload.kind, "name": meta.name}


class _Reader:
    """Reads the file; each error has the field and its line."""

    def __init__(self, file: str) -> None:
        self._source: Source
        self._source, documents = load_documents(file)
        if len(documents) != 1:
            raise FileError(file, f"must be a single document with a list `workloads`, has {len(documents)}")
        self._number, self._content = documents[0]

    def entries(self) -> Sequence[_Entry]:
        """The entries in the order of the file."""
        content = self._object(self._content, "", ("workloads",))
        workloads = content.get("workloads")
        if not isinstance(workloads, list) or not workloads:
            self._refuse("workloads", "must be a list with entries")
        return [self._entry(entry, f"workloads[{index}]") for index, entry in enumerate(workloads)]

    def _entry(self, content: Plain, at: str) -> _Entry:
        entry = self._object(content, at, ("match", "containers", "replicas"))
        match = self._object(entry.get("match", {}), f"{at}.match", (*_FIELDS, "labels"))
        fields = self._texts({name: match[name] for name in _FIELDS if name in match}, f"{at}.match")
        labels = self._texts(
            self._object(match.get("labels", {}), f"{at}.match.labels"), f"{at}.match.labels"
        )
        containers = self._object(entry.get("containers", {}), f"{at}.containers")
        paths = {
            name: self._path(path, f"{at}.containers.{name}", "container")
            for name, path in containers.items()
        }
        replicas = entry.get("replicas")
        return _Entry(
            fields, labels, paths, None if replicas is None else self._path(replicas, f"{at}.replicas")
        )

    def _object(self, content: Plain, at: str, known: Sequence[str] | None = None) -> dict[str, Plain]:
        if not isinstance(content, dict):
            self._refuse(at, "must be an object")
        for name in content:
            if known is not None and name not in known:
                self._refuse(f"{at}.{name}".lstrip("."), f"is unknown; known are {', '.join(known)}")
        return content

    def _texts(self, content: Mapping[str, Plain], at: str) -> dict[str, str]:
        texts = {}
        for name, value in content.items():
            if not isinstance(value, str):
                self._refuse(f"{at}.{name}", "must be text")
            texts[name] = value
        return texts

    def _path(self, content: Plain, at: str, *more: str) -> Path | None:
        """A path as text with dots, or as a list for keys with dots; empty text leaves it out."""
        if content == "":
            return None
        parts = content.split(".") if isinstance(content, str) else content
        if (
            not isinstance(parts, list)
            or not parts
            or not all(isinstance(part, str) and part for part in parts)
        ):
            self._refuse(at, "must be a path: keys with dots between them, or a list of keys")
        for part in parts:
            for name in _TEMPLATE.findall(part):
                if name not in (*_FIELDS, *more) and not name.startswith(_LABEL):
                    known = ", ".join(f"{{{field}}}" for field in (*_FIELDS, *more, "label:KEY"))
                    self._refuse(at, f"{{{name}}} is unknown; known are {known}")
        return tuple(parts)

    def _refuse(self, at: str, reason: str) -> NoReturn:
        raise FileError(
            self._source.file, f"{at}: {reason}" if at else reason, self._source.line(self._number, at)
        )
