"""`hvpa explain`: the operator's decision about an Hvpa now, and its reasons. Writes nothing."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.policy.resource import SPECS
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli import laboratory
from hvpa.cli.arguments import (
    add_cluster,
    add_files,
    add_now,
    add_operator,
    add_output,
    add_recommenders,
    decision_settings,
    html_file,
)
from hvpa.cli.errors import DONE, CommandError, UsageError
from hvpa.cli.explain.json import to_json
from hvpa.cli.explain.text import to_text
from hvpa.cli.input.gather import Gathered, gather, invalid
from hvpa.cli.output import refuse_unwritable, write_drawing
from hvpa.core import Decision, decide, observe
from hvpa.core.model import Objects, Observation
from hvpa.core.policies.model import FROM_POLICY
from hvpa.kube.clock import SystemClock
from hvpa.reconcile.ports import Key

if TYPE_CHECKING:
    from hvpa.cli.input.operator import OperatorState


NAME: Final = (
    "the Hvpa to read from the cluster; deployment/NAME, statefulset/NAME or daemonset/NAME: why policies make an Hvpa"
    " for the workload, or why not"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help=NAME)
    add_files(add, "Hvpa, workload, HPA, VPA and Pods", "the Hvpa's namespace")
    add_cluster(add)
    add_now(add, "the present")
    add_output(add)
    plot = "blend Trajectory: also write a page that draws the path, the present point and the desired point"
    add("--plot", type=html_file, metavar="FILE.html", help=plot)
    add_recommenders(add)
    add_operator(add)


def main(args: argparse.Namespace) -> int:
    """Explain an Hvpa. Raises CommandError."""
    if args.plot is not None:
        laboratory.require("--plot", "jinja2")
        refuse_unwritable("--plot", args.plot)
    if "/" in (args.name or "") and not args.filename:
        from hvpa.cli.explain.workload import (
            explain_workload,
        )  # the client takes longer to import than the rest

        print(explain_workload(args))
        return DONE
    gathered, operator = _gathered(args)
    hvpa = gathered.objects.hvpa
    if problems := invalid(hvpa):
        text = "; ".join(map(str, problems))
        raise CommandError(f"Hvpa {hvpa.metadata.namespace}/{hvpa.metadata.name}: {text}")
    observation = observe(gathered.objects, args.now or SystemClock().now(), decision_settings(args))
    decision = decide(observation)
    if args.plot is not None:
        write_drawing(args.plot, _drawn(observation, decision))
    applied = _in_mode_apply(gathered.objects, observation)
    if args.output == "json":
        state = None if operator is None else operator.as_json()
        print(to_json(observation, decision, applied, state))
    else:
        silence = "" if operator is None else operator.text(SystemClock().now())
        notes = [*filter(None, (silence, _from_policy(hvpa))), *gathered.notes]
        print(to_text(observation, decision, notes, applied))
    return DONE


def _from_policy(hvpa: HvpaObject) -> str:
    """The policy that makes an Hvpa; empty if none does."""
    owner, spec = hvpa.metadata.controller(), hvpa.spec
    if owner is None or owner.kind not in SPECS or spec is None or FROM_POLICY not in hvpa.metadata.labels:
        return ""
    workload = f"{spec.target_ref.kind.lower()}/{spec.target_ref.name}"
    return (
        f"{owner.kind} {owner.name} makes this Hvpa, so change the policy; hvpa explain {workload} shows why"
    )


def _gathered(args: argparse.Namespace) -> tuple[Gathered, OperatorState | None]:
    """The objects, and the state of the operator (None for objects from files)."""
    if args.filename and args.name is not None:
        raise UsageError("name an Hvpa or give files with -f, not both")
    if args.filename:
        if args.kubeconfig is not None or args.context is not None:
            raise UsageError("--kubeconfig and --context can't be used with -f")
        return gather(args.filename, args.namespace), None
    if not args.name:
        raise UsageError("name an Hvpa, or give files with -f")
    # The client takes longer to import than the rest.
    from hvpa.cli.input.live import Reader, read_cluster
    from hvpa.cli.input.operator import DEFAULT_LEASE, operator_state

    async def read(reader: Reader) -> tuple[Gathered, OperatorState]:
        objects = await reader.objects(args.name)
        key = Key(str(reader.namespace), args.name)
        state = await operator_state(reader.transport, args.operator_lease or DEFAULT_LEASE, key)
        return Gathered(objects), state

    return read_cluster(read, "hvpa-explain", args)


def _in_mode_apply(objects: Objects, observation: Observation) -> Decision | None:
    """The decision if `spec.mode` were Apply; None if it changes the workload already."""
    spec = objects.hvpa.spec
    if spec is None or spec.applies:
        return None
    hvpa = replace(objects.hvpa, spec=spec.model_copy(update={"mode": "Apply"}))
    return decide(observe(replace(objects, hvpa=hvpa), observation.now, observation.settings))


def _drawn(observation: Observation, decision: Decision) -> bytes:
    """The path as an HTML page."""
    name = f"Hvpa {observation.metadata.namespace}/{observation.metadata.name}"
    if observation.spec is not None and not observation.spec.joint:
        raise CommandError(f"{name}: there is no path to draw: spec.blend is not Trajectory")
    view, replicas = decision.joint, decision.replicas
    if view is None or replicas is None or not view.path.curves:
        kind = "Ready" if view is None else "VpaActive"
        why = next(
            (f": {condition.message}" for condition in decision.status.conditions if condition.type == kind),
            "",
        )
        if view is not None and view.items:
            why = ": no HPA metric measures a resource that has a VPA target"
        raise CommandError(f"{name}: there is no path to draw{why}")
    page = laboratory.load_module("hvpa_lab.plot.page", "--plot")
    drawn: bytes = page.draw(decision, f"{name}, {format_timestamp(observation.now)}")
    return drawn
