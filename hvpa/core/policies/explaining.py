"""Why a workload has its Hvpa, or none: how each policy treats it."""

from __future__ import annotations

from collections.abc import Iterator

from hvpa.api.objects.read_models import Hpa, Vpa, Workload
from hvpa.api.policy.resource import PolicyObject
from hvpa.api.policy.spec import ClusterHvpaPolicySpec, HvpaPolicySpec
from hvpa.api.values import text
from hvpa.core.policies.model import (
    ADOPT,
    OPT_OUT,
    PolicyInput,
    PresentHvpa,
    acts,
    may_adopt,
    opts_out,
    target_of,
    target_of_workload,
)
from hvpa.core.policies.report import ready_of
from hvpa.core.policies.selecting import rank, why_not_namespace, why_not_workload


def explained(world: PolicyInput, workload: Workload) -> list[str]:
    """Returns how each policy treats a workload, most specific first, and its Hvpa or why it has none."""
    lines: list[str] = []
    chosen: PolicyObject | None = None
    for policy in sorted(world.policies, key=_turn):
        why = _why_not(world, policy, workload)
        if not why and chosen is not None:
            why = f"selects it, too, but {chosen.key} is more specific"
        lines.append(f"{policy.key}: {why or 'selects it'}")
        chosen = chosen or (None if why else policy)
    return [*lines, *_of_hvpa(world, workload, chosen)]


def _turn(policy: PolicyObject) -> tuple[bool, tuple[bool, int, bool, str]]:
    if policy.spec is None:
        return True, (True, 0, True, str(policy.key))
    return False, rank(policy, policy.spec)


def _why_not(world: PolicyInput, policy: PolicyObject, workload: Workload) -> str:
    spec, namespace = policy.spec, workload.metadata.namespace
    if spec is None:
        return f"does nothing, because its spec is not valid: {text.joined(map(str, policy.problems))}"
    if policy.metadata.deletion_timestamp is not None:
        return "is being deleted"
    if isinstance(spec, ClusterHvpaPolicySpec):
        if world.namespaces is None:
            return "can't tell whether it selects the namespace, whose labels can't be read"
        labels = world.namespaces.get(namespace, {})
        if why := why_not_namespace(spec, namespace, labels, world.operator_namespace):
            return f"does not select it: {why}"
    elif policy.metadata.namespace != namespace:
        return "is of another namespace"
    why = why_not_workload(spec, workload, world.operator_namespace)
    return f"does not select it: {why}" if why else ""


def _of_hvpa(world: PolicyInput, workload: Workload, chosen: PolicyObject | None) -> Iterator[str]:
    target = target_of_workload(workload)
    present = [hvpa for hvpa in world.hvpas if hvpa.target == target]
    written = [hvpa for hvpa in present if hvpa.is_of_others]
    made = [hvpa for hvpa in present if not hvpa.is_of_others]
    if opts_out(workload.metadata):
        yield f"No policy makes an Hvpa: the workload has the annotation {OPT_OUT}"
    elif written:
        yield f"No policy makes an Hvpa: somebody wrote {_listed(written)}"
    elif chosen is None and made:
        why = "although no policy selects the workload: see that policy's condition Ready"
        yield f"{_listed(made)} of {_owner(made[0])} stays {why}"
    elif chosen is None:
        yield "No policy makes an Hvpa: none selects the workload"
    elif not made:
        yield f"{chosen.key} makes its Hvpa next{_state(chosen)}"
    else:
        spec = made[0].read().spec
        mode = f"in mode {'?' if spec is None else spec.mode}"
        if made[0].policy_uid != chosen.metadata.uid:
            takeover = f"and {chosen.key} takes it over later: see the condition Ready of both"
            yield f"{_listed(made)} is still that of {_owner(made[0])}, {mode}, {takeover}"
            return
        yield f"{_listed(made)} of {chosen.key}, {mode}{_state(chosen)}"
        yield from _held(world, workload, chosen.spec)


def _listed(hvpas: list[PresentHvpa]) -> str:
    return f"Hvpa {text.names([hvpa.metadata.name for hvpa in hvpas])}"


def _owner(hvpa: PresentHvpa) -> str:
    """Returns the policy that made the Hvpa. It has one, or it would be somebody's own."""
    owner = hvpa.metadata.controller()
    assert owner is not None
    return f"{owner.kind} {owner.name}"


def _state(policy: PolicyObject) -> str:
    """Returns the message of the policy's condition, unless all is as it requires."""
    ready = ready_of(policy.status)
    return "" if ready is None or ready.status == "True" else f" ({ready.reason}: {ready.message})"


def _held(world: PolicyInput, workload: Workload, spec: HvpaPolicySpec | None) -> Iterator[str]:
    """Yields why the Hvpa stays in mode Recommend, if HPAs or VPAs act."""
    target = target_of_workload(workload)
    recommenders: list[Hpa | Vpa] = [*world.hpas, *world.vpas]
    acting = [each for each in recommenders if target_of(each) == target and acts(each)]
    if spec is None or spec.stage == "Recommend" or not acting or may_adopt(workload.metadata):
        return
    kinds = [f"{'HPA' if isinstance(each, Hpa) else 'VPA'} {each.metadata.name}" for each in acting]
    how = f"annotate the workload with {ADOPT}=true, and the Hvpa takes over"
    yield f"It stays in mode Recommend, because {text.names(kinds)} acts on the workload: {how}"
