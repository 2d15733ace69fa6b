"""Conditional writes to Hvpas in a cluster, for the commands that write: pause, resume, approve and undo."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from hvpa.api.values.text import names
from hvpa.cli.arguments import add_cluster
from hvpa.cli.errors import DONE, CommandError, UsageError, plain_line
from hvpa.cli.input.live import Reader, is_of_the_server, read_cluster
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.pages import read_list
from hvpa.kube.client.transport import MERGE_PATCH, Body
from hvpa.kube.objects.resources import HVPAS
from hvpa.kube.objects.slim import DROPPED_ANNOTATION

BEFORE: Final = "hvpa.autoscaling.k8s.io/mode-before-pause"
"""Annotation of a paused Hvpa: the mode before `hvpa pause`."""
MANAGER: Final = "kubectl-hvpa"
"""Field manager of these writes."""
TRIES: Final = 5
"""Maximum attempts of a write that conflicts with other clients' writes."""
_BY_HAND: Final = frozenset(
    {MANAGER, "hvpa", "kubectl-create", "kubectl-edit", "kubectl-patch", "kubectl-replace"}
)
"""Managers that write once: the operator, these commands, and kubectl unless it applies a file."""
_CLIENT_SIDE_APPLY: Final = "kubectl-client-side-apply"


class _Manager(msgspec.Struct, rename="camel"):
    manager: str = ""
    operation: str = ""
    fields: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class HvpaMeta(msgspec.Struct, rename="camel"):
    """The used metadata."""

    name: str
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}
    managed_fields: list[_Manager] = []


class _Spec(msgspec.Struct):
    mode: str = "Apply"


class _Applied(msgspec.Struct):
    spec: dict[str, Any] = {}


class WrittenHvpa(msgspec.Struct):
    """The used fields of an Hvpa."""

    metadata: HvpaMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: msgspec.Raw = msgspec.Raw(b"{}")

    def __str__(self) -> str:
        return f"Hvpa {self.metadata.namespace}/{self.metadata.name}"


class HvpaChange(NamedTuple):
    """The change of an Hvpa."""

    done: str
    """The message after the change."""
    annotations: Mapping[str, str | None]
    """Annotations to set; None removes one."""
    mode: str | None = None
    """The new mode; None: it stays."""


Decide = Callable[[WrittenHvpa], HvpaChange | str]
"""Returns the change of an Hvpa, or why it is not changed."""
_decode = msgspec.json.Decoder(WrittenHvpa).decode


def paused(hvpa: WrittenHvpa) -> HvpaChange | str:
    """Decide to pause an Hvpa."""
    if hvpa.spec.mode == "Paused":
        return "is paused already"
    return HvpaChange(f"paused (its mode was {hvpa.spec.mode})", {BEFORE: hvpa.spec.mode}, "Paused")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that select the Hvpas."""
    add, verb = parser.add_argument, parser.prog.split()[-1]
    parser.set_defaults(verb=verb)
    add("names", nargs="*", metavar="NAME", help=f"Hvpas to {verb}")
    add("--all", action="store_true", help="all Hvpas of the namespace")
    add("-l", "--selector", help="Hvpas of the namespace with these labels (as in kubectl)")
    add("-A", "--all-namespaces", action="store_true", help="with --all or -l: Hvpas of all namespaces")
    add("-n", "--namespace", help="the Hvpas' namespace (default: the kubeconfig's)")
    add_cluster(add)


def change_selected(args: argparse.Namespace, decider: Callable[[Reader], Any]) -> int:
    """Change the selected Hvpas in turn, and print the result of each; a failure does not affect the others. `decider`
    returns, for the cluster, the coroutine of a `Decide`.

    Raises CommandError.
    """
    if bool(args.names) + args.all + bool(args.selector) != 1:  # an empty selector would select all
        raise UsageError("name Hvpas, or use --all or --selector")
    if args.all_namespaces and args.names:
        raise UsageError("--all-namespaces requires --all or --selector")
    if args.all_namespaces and args.namespace is not None:
        raise UsageError("use either --namespace or --all-namespaces, not both")

    async def change(reader: Reader) -> list[str]:
        return await _change_all(reader, args, await decider(reader))

    failed = read_cluster(change, f"hvpa-{args.verb}", args)
    if failed:
        raise CommandError(f"not changed: {names(failed)}")
    return DONE


async def _change_all(reader: Reader, args: argparse.Namespace, decide: Decide) -> list[str]:
    """Change all; returns the names of the Hvpas that could not be changed."""
    failed: list[str] = []
    hvpas = [WrittenHvpa(HvpaMeta(name, str(reader.namespace))) for name in dict.fromkeys(args.names)]
    if not args.names:
        hvpas = await _listed(reader, None if args.all_namespaces else reader.namespace, args.selector)
    for hvpa in hvpas:
        try:
            await change_hvpa(reader, hvpa, decide, known=not args.names)
        except ApiError as error:
            if is_of_the_server(error):
                raise
            is_unserved = error.status == 404 and not error.is_of_an_object
            why = await reader.why_no_hvpas() if is_unserved else str(error)
            print(f"{hvpa}: {plain_line(why)}", file=sys.stderr)
            failed.append(f"{hvpa.metadata.namespace}/{hvpa.metadata.name}")
    if not hvpas:
        print("There are no Hvpas." if args.selector is None else "There are no Hvpas with these labels.")
    return failed


async def _listed(reader: Reader, namespace: str | None, selector: str | None) -> list[WrittenHvpa]:
    hvpas: list[WrittenHvpa] = []
    query = {} if selector is None else {"labelSelector": selector}
    try:
        path = HVPAS.path(namespace)
        await read_list(
            reader.transport, path, lambda page: hvpas.extend(map(_decode, page.items or ())), query
        )
    except ApiError as error:
        if error.status == 404:
            raise CommandError(await reader.why_no_hvpas()) from error
        raise
    return hvpas


async def change_hvpa(reader: Reader, hvpa: WrittenHvpa, decide: Decide, *, known: bool) -> None:
    """Change an Hvpa in its current state (`known`: as listed). After a conflict, it is read and decided again."""
    path = HVPAS.path(hvpa.metadata.namespace, hvpa.metadata.name)
    for left in reversed(range(TRIES)):
        if not known:
            hvpa = await read_written(reader, hvpa)
        known = False
        change = decide(hvpa)
        if isinstance(change, str):
            print(f"{hvpa}: {change}", flush=True)
            return
        metadata = {"resourceVersion": hvpa.metadata.resource_version, "annotations": change.annotations}
        spec = {} if change.mode is None else {"spec": {"mode": change.mode}}
        body = Body(msgspec.json.encode({"metadata": metadata, **spec}), MERGE_PATCH)
        try:
            await reader.transport.request("PATCH", path, {"fieldManager": MANAGER}, body)
        except ApiError as error:
            if error.status != 409 or not left:
                raise
            continue
        print(f"{hvpa}: {change.done}", flush=True)
        if change.mode is not None and (owners := list(_owners(hvpa))):
            print(
                f"warning: {hvpa}: spec.mode is also set by {plain_line(', '.join(owners))}, which may set it back:"
                f" change it to {change.mode} there too",
                file=sys.stderr,
            )
        return


async def read_written(reader: Reader, hvpa: WrittenHvpa) -> WrittenHvpa:
    """The present state of an Hvpa. Raises ApiError."""
    path = HVPAS.path(hvpa.metadata.namespace, hvpa.metadata.name)
    return _decode(await reader.transport.request("GET", path))


def _owners(hvpa: WrittenHvpa) -> Iterator[str]:
    """The managers that have set spec.mode and may set it again: tools that compare the cluster with a source."""
    for manager in hvpa.metadata.managed_fields:
        if "f:mode" not in (manager.fields.get("f:spec") or {}) or manager.manager in _BY_HAND:
            continue
        # kubectl also owns the defaults of the API server, but sets only the fields in its file.
        if manager.manager != _CLIENT_SIDE_APPLY or _is_in_file(hvpa):
            yield f"{manager.manager} ({manager.operation})"


def _is_in_file(hvpa: WrittenHvpa) -> bool:
    """Whether the last file of `kubectl apply` contains spec.mode."""
    applied = hvpa.metadata.annotations.get(DROPPED_ANNOTATION, "{}")
    try:
        return "mode" in msgspec.json.decode(applied, type=_Applied).spec
    except msgspec.MsgspecError:
        return False
