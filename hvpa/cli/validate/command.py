"""`hvpa validate`: the checks of the CRD and of the operator, and remarks of a reviewer, offline."""

from __future__ import annotations

import argparse
import json
import sys

from hvpa.api.hvpa.resource import API_VERSION, KIND, parse_spec, validate_manifest
from hvpa.api.policy.resource import SPECS, validate_policy
from hvpa.api.schema.base import FieldError
from hvpa.cli.arguments import add_output
from hvpa.cli.errors import DONE, WRONG
from hvpa.cli.input.files import STANDARD_INPUT, Document, FileError, read_documents
from hvpa.cli.validate.inputs import (
    LEFT_OUT,
    InputFinding,
    Inputs,
    from_kustomizations,
    from_names,
    of_field,
    of_file,
)
from hvpa.cli.validate.object_set import ValidHvpa, review_set
from hvpa.cli.validate.selection import selections
from hvpa.core.policies.check import policy_problems
from hvpa.core.spec.amounts import review_amounts
from hvpa.core.spec.check import spec_problems
from hvpa.core.spec.ranges import review_ranges, review_resizes
from hvpa.core.spec.review import review

_KUSTOMIZATION = "Kustomization"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    which = parser.add_mutually_exclusive_group(required=True)
    files = "YAML or JSON files, or folders; - is standard input; Hvpas are checked against the other objects in them"
    which.add_argument("-f", "--filename", nargs="+", action="extend", metavar="FILE", help=files)
    text = "folders with a kustomization.yaml: the local files that it names are checked, its patches not applied"
    which.add_argument("-k", "--kustomize", nargs="+", action="extend", metavar="FOLDER", help=text)
    add = parser.add_argument
    add("-R", "--recursive", action="store_true", help="with -f: include subfolders")
    add("--strict", action="store_true", help="treat warnings as errors")
    add_output(add)


def main(args: argparse.Namespace) -> int:
    """Check all files; returns 0 if they contain an Hvpa and each is valid, else 1."""
    inputs = (
        from_kustomizations(args.kustomize) if args.kustomize else from_names(args.filename, args.recursive)
    )
    hvpas, policies = _check(inputs)
    errors, warnings = inputs.count("error"), inputs.count("warning")
    failed = errors > 0 or (args.strict and warnings > 0)
    if args.output == "json":
        counts = {
            "files": len(inputs.files),
            "hvpas": hvpas,
            "policies": policies,
            "errors": errors,
            "warnings": warnings,
        }
        print(json.dumps({**counts, "findings": [entry.as_json() for entry in inputs.findings]}, indent=2))
        return WRONG if failed else DONE
    for finding in inputs.findings:
        print(finding, file=sys.stderr)
    totals = [_plural(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count]
    found = [_plural(hvpas, "Hvpa")] if hvpas or not policies else []
    found += [f"{policies} polic{'y' if policies == 1 else 'ies'}"] if policies else []
    where = f"{' and '.join(found)} in {_plural(len(inputs.files), 'file')}"
    print(
        f"{where}: {', '.join(totals if errors else ['valid', *totals])}",
        file=sys.stderr if failed else sys.stdout,
    )
    return WRONG if failed else DONE


def _check(inputs: Inputs) -> tuple[int, int]:
    """Add the findings of the files, in their order; returns the numbers of Hvpas and policies."""
    findings, count, policies = inputs.findings, 0, 0
    documents: list[Document] = []
    for path, named in inputs.files.items():
        try:
            documents += read_documents(path, lenient=not named)
        except FileError as error:
            findings.append(of_file(error))
    valid: list[ValidHvpa] = []
    valid_policies: list[Document] = []
    for document in documents:
        if document.kind == _KUSTOMIZATION:
            findings.append(InputFinding("note", document.file, document.line(), LEFT_OUT))
        elif document.kind in SPECS:
            policies += 1
            policy, faults = validate_policy(document.content)
            faults = faults if policy is None else policy_problems(policy)
            valid_policies += [] if faults else [document]
            findings += [of_field(document, fault) for fault in faults]
        elif is_hvpa(document):
            count += 1
            problems = problems_of(document)
            findings += [of_field(document, problem) for problem in problems]
            spec, _ = parse_spec(document.content.get("spec"))
            if spec is not None and not problems:
                valid.append(ValidHvpa(document, spec))
    for hvpa in valid:
        remarks = [*review(hvpa.spec), *review_ranges(hvpa.spec), *review_resizes(hvpa.spec)]
        remarks += [*review_amounts(hvpa.document.content["spec"]), *review_set(hvpa, valid, documents)]
        findings += [of_field(hvpa.document, remark) for remark in remarks]
    findings += selections(documents, valid_policies, [hvpa.document for hvpa in valid])
    if not count and not policies and not inputs.count("error"):
        files = ", ".join("standard input" if name == STANDARD_INPUT else name for name in inputs.files)
        findings.append(InputFinding("error", files, None, "no Hvpa in it"))
    order = {path: number for number, path in enumerate(inputs.files)}
    findings.sort(key=lambda finding: (order.get(finding.file, -1), finding.line or 0))
    return count, policies


def is_hvpa(document: Document) -> bool:
    """Whether this is an Hvpa, or probably meant as an Hvpa: the kind in another spelling, or another kind of our
    group."""
    if document.kind.lower() in (KIND.lower(), f"{KIND.lower()}s"):
        return True
    return bool(document.content.get("apiVersion") == API_VERSION)


def problems_of(document: Document) -> list[FieldError]:
    """The faults for which the API server or the operator would refuse an Hvpa."""
    if document.kind != KIND:
        return [FieldError("kind", f"there is no kind {document.kind}; did you mean {KIND}?")]
    version = document.content.get("apiVersion")
    if version != API_VERSION:
        given = "it is missing" if version is None else f"it is {version!r}"
        return [FieldError("apiVersion", f"must be {API_VERSION}; {given}")]
    problems = validate_manifest(document.content)
    spec, _ = parse_spec(document.content.get("spec"))
    return problems if spec is None else [*problems, *spec_problems(spec)]


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'s' if count != 1 else ''}"
