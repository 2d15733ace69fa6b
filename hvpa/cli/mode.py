"""`hvpa pause` and `hvpa resume`, the commands that write.

They set spec.mode of Hvpas in a cluster, each by a conditional write, and name clients that may set the field back.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from hvpa.api.values.text import names
from hvpa.cli.arguments import add_cluster
from hvpa.cli.errors import DONE, CommandError, UsageError, plain_line
from hvpa.cli.input.live import Reader, is_of_the_server, read_cluster
from hvpa.cli.writing import BEFORE, HvpaMeta, ModeChange, PausableHvpa, change_mode, decode, paused
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.pages import read_list
from hvpa.kube.objects.resources import HVPAS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that select the Hvpas."""
    add, verb = parser.add_argument, parser.prog.split()[-1]
    parser.set_defaults(verb=verb)
    add("names", nargs="*", metavar="NAME", help=f"Hvpas to {verb}")
    add("--all", action="store_true", help="all Hvpas of the namespace")
    add("-A", "--all-namespaces", action="store_true", help="with --all: Hvpas of all namespaces")
    add("-n", "--namespace", help="the Hvpas' namespace (default: the kubeconfig's)")
    add_cluster(add)


def main(args: argparse.Namespace) -> int:
    """Change the selected Hvpas in turn, and print the result of each; a failure does not affect the others.

    Raises CommandError.
    """
    if bool(args.names) == args.all:
        raise UsageError("name Hvpas, or use --all")
    if args.all_namespaces and not args.all:
        raise UsageError("--all-namespaces requires --all")
    if args.all_namespaces and args.namespace is not None:
        raise UsageError("use either --namespace or --all-namespaces, not both")
    failed = read_cluster(partial(_change_all, args=args), f"hvpa-{args.verb}", args)
    if failed:
        raise CommandError(f"not changed: {names(failed)}")
    return DONE


def _resumed(hvpa: PausableHvpa) -> ModeChange | str:
    if hvpa.spec.mode != "Paused":
        return f"is not paused: its mode is {hvpa.spec.mode}"
    before = hvpa.metadata.annotations.get(BEFORE)
    mode = before if before in ("Apply", "Recommend") else "Apply"
    return ModeChange(mode, f"resumed, in mode {mode}")


async def _change_all(reader: Reader, args: argparse.Namespace) -> list[str]:
    """Change all; returns the names of the Hvpas that could not be changed."""
    decide = paused if args.verb == "pause" else _resumed
    failed: list[str] = []
    hvpas = [PausableHvpa(HvpaMeta(name, str(reader.namespace))) for name in dict.fromkeys(args.names)]
    if args.all:
        hvpas = await _listed(reader, None if args.all_namespaces else reader.namespace)
    for hvpa in hvpas:
        try:
            await change_mode(reader, hvpa, decide, known=args.all)
        except ApiError as error:
            if is_of_the_server(error):
                raise
            is_unserved = error.status == 404 and not error.is_of_an_object
            why = await reader.why_no_hvpas() if is_unserved else str(error)
            print(f"{hvpa}: {plain_line(why)}", file=sys.stderr)
            failed.append(f"{hvpa.metadata.namespace}/{hvpa.metadata.name}")
    if not hvpas:
        print("There are no Hvpas.")
    return failed


async def _listed(reader: Reader, namespace: str | None) -> list[PausableHvpa]:
    hvpas: list[PausableHvpa] = []
    try:
        path = HVPAS.path(namespace)
        await read_list(reader.transport, path, lambda page: hvpas.extend(map(decode, page.items or ())))
    except ApiError as error:
        if error.status == 404:
            raise CommandError(await reader.why_no_hvpas()) from error
        raise
    return hvpas
