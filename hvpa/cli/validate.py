"""`hvpa validate`: the checks of the CRD and of the operator, offline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from hvpa.api.hvpa import KIND, FieldError, parse_spec, validate_manifest, warnings
from hvpa.cli.errors import DONE, WRONG, CommandError, one_line
from hvpa.cli.files import Document, read_documents
from hvpa.core.spec_check import spec_problems

NAME = "validate"
HELP = "check Hvpa manifests without a cluster"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument(
        "-f",
        "--filename",
        nargs="+",
        action="extend",
        required=True,
        metavar="FILE",
        help="YAML or JSON files; - is standard input; objects that are no Hvpa are left out",
    )


def main(args: argparse.Namespace) -> int:
    """Check all files: 0 when each holds an Hvpa and every Hvpa is valid, else 1 and a line per problem."""
    paths = list(dict.fromkeys(args.filename))
    valid, wrong = 0, 0
    for path in paths:
        try:
            hvpas = [one for one in read_documents(path) if one.kind == KIND]
        except CommandError as error:
            _tell(error)
            wrong += 1
            continue
        if not hvpas:
            _tell(f"{path}: no Hvpa in it")
            wrong += 1
        for document in hvpas:
            found = _problems(document)
            for problem in found:
                _tell(f"{document.label}: {problem}")
            for warning in () if found else _warnings(document):
                _tell(f"{document.label}: warning: {warning}")
            valid += not found
            wrong += bool(found)
    if wrong:
        return WRONG
    print(
        f"{valid} Hvpa{'s' if valid != 1 else ''} in {len(paths)} file{'s' if len(paths) != 1 else ''}: valid"
    )
    return DONE


def _problems(document: Document) -> list[FieldError]:
    problems = validate_manifest(document.content)
    spec, _ = parse_spec(document.content.get("spec"))
    return problems if spec is None else [*problems, *spec_problems(spec)]


def _warnings(document: Document) -> Iterator[str]:
    spec, _ = parse_spec(document.content.get("spec"))
    return iter(warnings(spec) if spec is not None else ())


def _tell(line: object) -> None:
    print(one_line(line), file=sys.stderr)
