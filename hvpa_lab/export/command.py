"""`hvpa export` writes the sizes that HVPA would set into files for Git; `hvpa diff` prints them as a difference to the
cluster. Both only read the cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hvpa.cli.arguments import (
    add_cluster,
    add_files,
    add_now,
    add_recommenders,
    decision_settings,
    percentage,
)
from hvpa.cli.errors import DONE, USAGE, WRONG, CommandError, UsageError, plain_line, report_skipped
from hvpa.cli.input.files import read_documents
from hvpa.cli.input.gather import DEFAULT_NAMESPACE, Filled
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.targeting import Target
from hvpa.kube.clock import SystemClock
from hvpa_lab.export.folder import Folder
from hvpa_lab.export.plan import Plan, Scope, against_cluster, against_folder, document_of
from hvpa_lab.export.sizes import Result, all_sizes
from hvpa_lab.export.values import ValuePaths

CHANGES: Final = 1
"""Exit code of `diff` and `export --check` if there are changes."""
FAILED: Final = USAGE
"""Their exit code if something is wrong, even if there are changes, too."""
WITHIN: Final = 10
"""Percent by which a number must differ to change a file."""


class _Failed(CommandError):
    """Something is wrong, in a command whose code 1 means changes."""

    code = FAILED


class _Found(NamedTuple):
    """What the cluster or the files contain."""

    local: LocalCluster
    faults: list[str]
    """Objects that can't be read."""
    unread: Mapping[Target, str]
    scope: Scope | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add, verb = parser.add_argument, parser.prog.split()[-1]
    parser.set_defaults(verb=verb)
    add_files(add, "Hvpas, workloads, HPAs, VPAs and Pods", "the namespace")
    add("-A", "--all-namespaces", action="store_true", help="all namespaces")
    add_cluster(add)
    add_now(add, "now")
    if verb == "export":
        text = "folder for the files: NAMESPACE/KIND-NAME.yaml for each workload"
        add("--to", type=Path, required=True, metavar="DIR", help=text)
        text = "kustomize patches (default), Helm values, or manifests for server-side apply"
        add("--format", choices=("kustomize", "helm", "manifests"), default="kustomize", help=text)
        text = "with --format helm: file with the paths of resources in the values of charts"
        add("--values", metavar="FILE", help=text)
        text = "write nothing; print the differences, and exit with 1 if there are any, with 2 if something is wrong"
        add("--check", action="store_true", help=text)
    text = f"a file changes only if a number differs by more than this (default {WITHIN})"
    add("--within", type=percentage, default=WITHIN, metavar="PERCENT", help=text)
    text = "leave replicas out (default: included if neither an HPA nor the operator scales the workload)"
    add("--no-replicas", action="store_true", help=text)
    add_recommenders(add)


def main(args: argparse.Namespace) -> int:
    """Export, or print the differences. Raises CommandError."""
    only_checks = args.verb == "diff" or args.check
    try:
        found, plan = _planned(args)
    except CommandError as error:
        if not only_checks or error.code != WRONG:
            raise
        raise _Failed(str(error)) from error
    if not only_checks:
        failed = _write(Folder(args.to), plan)
        return WRONG if _report(found, plan, failed) else DONE
    for change in plan.changes:
        print("\n".join(change.lines()))
    if _report(found, plan):
        return FAILED
    return CHANGES if plan.changes else DONE


def _planned(args: argparse.Namespace) -> tuple[_Found, Plan]:
    if args.verb == "diff":
        found = _found(args)
        return found, against_cluster(_results(args, found), args.within)
    if (args.format == "helm") != (args.values is not None):
        raise UsageError("--format helm needs --values FILE, and no other format has it")
    document = document_of(args.format) if args.values is None else ValuePaths(args.values).document
    folder, found = Folder(args.to), _found(args)
    with_components = args.format == "kustomize"
    results, scope = _results(args, found), found.scope
    return found, against_folder(
        results, folder, document, args.within, with_components=with_components, scope=scope
    )


def _write(folder: Folder, plan: Plan) -> list[str]:
    """Write the changes; returns the files that can't be written, with the reasons. Raises CommandError."""
    folder.check()
    written = removed = 0
    failed: list[str] = []
    for name, _, after in plan.changes:
        try:
            if after is None:
                folder.remove(name)
                removed += 1
            else:
                folder.write(name, after)
                written += 1
        except CommandError as error:
            failed.append(str(error))
            continue
        print(f"{name} {'removed' if after is None else 'written'}")
    print(f"{written} written, {removed} removed; workloads without a change: {plan.unchanged}")
    return failed


def _results(args: argparse.Namespace, found: _Found) -> Iterator[Result]:
    now = args.now or SystemClock().now()
    settings, with_replicas = decision_settings(args), not args.no_replicas
    return all_sizes(found.local, now, settings, found.unread, with_replicas=with_replicas)


def _report(found: _Found, plan: Plan, failed: Sequence[str] = ()) -> bool:
    """Print what is not exported; returns whether something is wrong."""
    faults = [*found.faults, *plan.faults, *failed]
    for line in [*plan.notes, *faults]:
        print(f"hvpa: not exported: {plain_line(line)}", file=sys.stderr)
    return bool(faults)


def _found(args: argparse.Namespace) -> _Found:
    if args.filename:
        if args.kubeconfig is not None or args.context is not None or args.all_namespaces:
            raise UsageError("--kubeconfig, --context and --all-namespaces can't be used with -f")
        return _in_files(args)
    if args.namespace is not None and args.all_namespaces:
        raise UsageError("use either --namespace or --all-namespaces, not both")
    from hvpa_lab.report.live import fetch  # its client takes longer to import than the rest

    found = fetch(args, args.verb, of_hvpas=True)
    faults = [f"{one.kind} {one.namespace}/{one.name}: {one.why}" for one in found.unreadable]
    scope = Scope(found.namespace, frozenset(one.namespace for one in found.unreadable))
    return _Found(found.local, faults, found.unread, scope)


def _in_files(args: argparse.Namespace) -> _Found:
    paths = list(dict.fromkeys(args.filename))
    skipped: list[CommandError] = []
    documents = [document for path in paths for document in read_documents(path, skip=skipped.append)]
    filled = Filled(documents, args.namespace or DEFAULT_NAMESPACE, skip=skipped.append)
    if not filled.hvpas:
        for error in skipped:
            report_skipped(error)
        raise CommandError(f"no Hvpa in {', '.join(paths)}")
    # Files may contain a part of the namespace, so no file is removed.
    return _Found(filled.local, [str(error) for error in skipped], {}, None)
