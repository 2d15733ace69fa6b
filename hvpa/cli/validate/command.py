"""`hvpa validate`: the checks of the CRD and of the operator, and what a reviewer would object to, offline."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from hvpa.api.hvpa.resource import API_VERSION, KIND, parse_spec, validate_manifest
from hvpa.api.schema.base import FieldError
from hvpa.cli.arguments import add_output
from hvpa.cli.errors import DONE, WRONG
from hvpa.cli.input.files import Document, FileError, read_documents
from hvpa.cli.validate.inputs import (
    LEFT_OUT,
    Finding,
    Inputs,
    from_kustomizations,
    from_names,
    of_field,
    of_file,
)
from hvpa.cli.validate.object_set import Read, review_set
from hvpa.core.spec.amounts import review_amounts
from hvpa.core.spec.check import spec_problems
from hvpa.core.spec.ranges import review_ranges
from hvpa.core.spec.resizes import review_resizes
from hvpa.core.spec.review import review

_KUSTOMIZATION = "Kustomization"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    which = parser.add_mutually_exclusive_group(required=True)
    files = (
        "YAML or JSON files, or folders of them; - is standard input; other objects than Hvpas are only looked at"
        " beside them"
    )
    which.add_argument("-f", "--filename", nargs="+", action="extend", metavar="FILE", help=files)
    text = "folders with a kustomization.yaml: the local files that it names are checked, its patches not applied"
    which.add_argument("-k", "--kustomize", nargs="+", action="extend", metavar="FOLDER", help=text)
    add = parser.add_argument
    add("-R", "--recursive", action="store_true", help="with -f: folders in folders too")
    add("--strict", action="store_true", help="a warning fails as an error does")
    add_output(add)


def main(args: argparse.Namespace) -> int:
    """Check all files: 0 when there is an Hvpa and each is valid, else 1."""
    found = (
        from_kustomizations(args.kustomize) if args.kustomize else from_names(args.filename, args.recursive)
    )
    report = _checked(found)
    failed = report.count("error") > 0 or (args.strict and report.count("warning") > 0)
    if args.output == "json":
        print(json.dumps(report.as_json(), indent=2))
    else:
        for finding in report.findings:
            print(finding, file=sys.stderr)
        print(report.summary(), file=sys.stderr if failed else sys.stdout)
    return WRONG if failed else DONE


@dataclass(slots=True)
class _Report:
    """What was looked at, and what was found."""

    files: int
    hvpas: int = 0
    findings: list[Finding] = field(default_factory=list)

    def count(self, severity: str) -> int:
        return sum(1 for one in self.findings if one.severity == severity)

    def summary(self) -> str:
        errors, warnings = self.count("error"), self.count("warning")
        found = [_plural(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count]
        return (
            f"{_plural(self.hvpas, 'Hvpa')} in {_plural(self.files, 'file')}:"
            f" {', '.join(found if errors else ['valid', *found])}"
        )

    def as_json(self) -> dict[str, object]:
        return {
            "files": self.files,
            "hvpas": self.hvpas,
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "findings": [one.as_json() for one in self.findings],
        }


def _checked(inputs: Inputs) -> _Report:
    report = _Report(len(inputs.files), findings=list(inputs.findings))
    documents: list[Document] = []
    for path, named in inputs.files.items():
        try:
            documents += read_documents(path, lenient=not named)
        except FileError as error:
            report.findings.append(of_file(error))
    hvpas: list[Read] = []
    for document in documents:
        if document.kind == _KUSTOMIZATION:
            report.findings.append(Finding("note", document.file, document.line(), LEFT_OUT))
        elif is_hvpa(document):
            report.hvpas += 1
            problems = problems_of(document)
            report.findings += [of_field(document, one) for one in problems]
            spec, _ = parse_spec(document.content.get("spec"))
            if spec is not None and not problems:
                hvpas.append(Read(document, spec))
    for read in hvpas:
        remarks = [*review(read.spec), *review_ranges(read.spec), *review_resizes(read.spec)]
        remarks += review_amounts(read.document.content["spec"])
        remarks += review_set(read, hvpas, documents)
        report.findings += [of_field(read.document, remark) for remark in remarks]
    if not report.hvpas and not report.count("error"):
        report.findings.append(Finding("error", _listed(inputs.files), None, "no Hvpa in it"))
    order = {path: number for number, path in enumerate(inputs.files)}
    report.findings.sort(key=lambda one: (order.get(one.file, -1), one.line or 0))
    return report


def is_hvpa(document: Document) -> bool:
    """Whether this is an Hvpa, or was meant to be one: the kind in another spelling, or another one of our group."""
    if document.kind.lower() in (KIND.lower(), f"{KIND.lower()}s"):
        return True
    return bool(document.content.get("apiVersion") == API_VERSION)


def problems_of(document: Document) -> list[FieldError]:
    """What the API server or the operator would refuse in an Hvpa."""
    if document.kind != KIND:
        return [FieldError("kind", f"there is no kind {document.kind}; did you mean {KIND}?")]
    version = document.content.get("apiVersion")
    if version != API_VERSION:
        given = "it is missing" if version is None else f"it is {version!r}"
        return [FieldError("apiVersion", f"must be {API_VERSION}; {given}")]
    problems = validate_manifest(document.content)
    spec, _ = parse_spec(document.content.get("spec"))
    return problems if spec is None else [*problems, *spec_problems(spec)]


def _listed(names: Iterable[str]) -> str:
    return ", ".join("standard input" if name == "-" else name for name in names)


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count != 1 else ''}"
