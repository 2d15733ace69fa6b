"""The plan: which Hvpas to create, update, delete or release, and the status of each policy.

1. Each workload belongs to the most specific policy that selects it. An Hvpa without the mark is somebody's own: then
   the policy makes none, and deletes one that it has made.
2. A new Hvpa is created in mode Recommend. Its change to the policy's stage, and every change of the policy, is an
   update, and only so many workloads change at the same time.
3. An Hvpa whose policy can't be read, is being deleted, or is unknown stays as it is: the garbage collector deletes it
   with its policy.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from hvpa.api.hvpa.resource import API_VERSION, KIND, parse_spec
from hvpa.api.hvpa.spec import APPLYING, HvpaSpec, Mode
from hvpa.api.objects.read_models import Hpa, Meta, Vpa, Workload
from hvpa.api.policy.resource import PolicyKey, PolicyObject
from hvpa.api.policy.spec import ClusterHvpaPolicySpec, HvpaPolicySpec, merged, targeting
from hvpa.api.policy.status import PolicyStatus
from hvpa.api.values.timestamp import TimestampError, format_timestamp, parse_timestamp
from hvpa.core.policies.model import (
    APPLIED,
    APPLIED_AT,
    FIRST_SIZE,
    FROM_POLICY,
    Document,
    PolicyChange,
    PolicyInput,
    PolicyPlan,
    PresentHvpa,
    Target,
    acts,
    may_adopt,
    opts_out,
    target_of,
    target_of_workload,
)
from hvpa.core.policies.removing import WINDOW, removal_window
from hvpa.core.policies.report import Tally, status_of
from hvpa.core.policies.selecting import (
    Size,
    case_of,
    rank,
    read_size,
    selects_namespace,
    selects_workload,
    size_of,
)
from hvpa.core.values.patch import difference, wire
from hvpa.core.workload.rollout import rollout_gaps

PATIENCE: Final = dt.timedelta(hours=1)
"""How long a workload whose pods are not as decided keeps the next workload waiting."""
NAME_LENGTH: Final = 253
LABEL_LENGTH: Final = 63
_encode = msgspec.json.Encoder(order="sorted").encode


class _Claim(NamedTuple):
    """A workload and the policy that it belongs to."""

    policy: PolicyObject
    spec: HvpaPolicySpec
    workload: Workload
    target: Target
    selecting: Collection[PolicyKey]
    """All policies that select the workload."""


class _Update(NamedTuple):
    """An Hvpa that differs from what its policy requires."""

    claim: _Claim
    hvpa: PresentHvpa
    applied: str
    """The spec that the policy requires, as in the annotation."""
    removed_by: PolicyKey | None = None
    """The policy that no longer selects the workload, if its `rollout.maxRemovals` bounds this update."""


def plan(world: PolicyInput, now: dt.datetime) -> PolicyPlan:
    """Returns the next writes."""
    steps = plan_in_steps(world, now)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: PolicyPlan = end.value
            return made


def plan_in_steps(world: PolicyInput, now: dt.datetime) -> Generator[None, None, PolicyPlan]:
    """Returns the next writes, after many short steps, between which the caller may do something else."""
    return _Planner(world, now).plan()


class _Planner:
    def __init__(self, world: PolicyInput, now: dt.datetime) -> None:
        self._world, self._now = world, now
        self._tallies: dict[PolicyKey, Tally] = {policy.key: Tally() for policy in world.policies}
        self._active = [
            (policy, spec)
            for policy in world.policies
            if (spec := policy.spec) is not None
            and policy.metadata.deletion_timestamp is None
            and (policy.metadata.namespace or world.namespaces is not None)
        ]
        self._active.sort(key=lambda each: rank(*each))
        self._of_namespace: dict[str, list[tuple[PolicyObject, HvpaPolicySpec]]] = defaultdict(list)
        """HvpaPolicies. There may be one for each of many namespaces."""
        self._of_cluster: list[tuple[PolicyObject, ClusterHvpaPolicySpec]] = []
        for policy, spec in self._active:
            if isinstance(spec, ClusterHvpaPolicySpec):
                self._of_cluster.append((policy, spec))
            else:
                self._of_namespace[policy.metadata.namespace].append((policy, spec))
        self._owners = {policy.metadata.uid: policy for policy, _ in self._active}
        self._by_target: dict[Target, list[PresentHvpa]] = defaultdict(list)
        self._names: set[tuple[str, str]] = set()
        self._acting: dict[Target, list[Hpa | Vpa]] = defaultdict(list)
        self._changes: list[PolicyChange] = []
        self._updates: dict[PolicyKey, list[_Update]] = defaultdict(list)
        self._up_to_date: dict[PolicyKey, list[tuple[_Claim, PresentHvpa]]] = defaultdict(list)
        self._stopping: dict[PolicyKey, list[_Update]] = defaultdict(list)
        """Hvpas that would stop scaling, by the policy that no longer selects their workloads."""
        self._is_rolling = False
        self._edited: list[tuple[str, str]] = []
        self._windows = {
            policy.key: removal_window(policy, world.removed.get(policy.key, 0), now)
            for policy in world.policies
        }
        self._wait: dt.timedelta | None = None
        self._kept: set[Target] = set()
        """Workloads whose Hvpas must not be deleted."""
        self._written: dict[str, Document | None] = {}
        """Specs as policies last wrote them, by their annotation."""
        self._applying: dict[str, bool] = {}
        """Whether these specs have mode Review or Apply, by their annotation."""
        self._texts: dict[tuple[PolicyKey, int | None, Mode], str] = {}

    def plan(self) -> Generator[None, None, PolicyPlan]:
        yield from self._index()
        order = sorted(
            self._world.workloads, key=lambda each: (each.metadata.namespace, each.kind, each.metadata.name)
        )
        by_namespace: dict[str, list[tuple[PolicyObject, HvpaPolicySpec]]] = {}
        for workload in order:
            yield
            namespace = workload.metadata.namespace
            if namespace not in by_namespace:
                by_namespace[namespace] = self._policies_in(namespace)
            if by_namespace[namespace] and workload.metadata.deletion_timestamp is None:
                self._place(workload, by_namespace[namespace])
        yield from self._remove_the_rest()
        for key in list(self._updates):
            yield from self._roll_out(key)
        edited, statuses = frozenset(self._edited), dict(self._statuses())
        return PolicyPlan(tuple(self._changes), statuses, self._is_rolling, edited, self._wait)

    def _index(self) -> Iterator[None]:
        """Indexes Hvpas, HPAs and VPAs."""
        for hvpa in self._world.hvpas:
            yield
            self._by_target[hvpa.target].append(hvpa)
            self._names.add((hvpa.metadata.namespace, hvpa.metadata.name))
        for recommender in self._recommenders():
            yield
            if acts(recommender):
                self._acting[target_of(recommender)].append(recommender)

    def _recommenders(self) -> Iterator[Hpa | Vpa]:
        yield from self._world.hpas
        yield from self._world.vpas

    def _policies_in(self, namespace: str) -> list[tuple[PolicyObject, HvpaPolicySpec]]:
        """Returns the policies for workloads of a namespace, most specific first."""
        labels, operator = (self._world.namespaces or {}).get(namespace, {}), self._world.operator_namespace
        of_cluster = [
            each for each in self._of_cluster if selects_namespace(each[1], namespace, labels, operator)
        ]
        return [*self._of_namespace.get(namespace, ()), *of_cluster]

    # --- a workload ---------------------------------------------------------------------------------------------------
    def _place(self, workload: Workload, policies: Sequence[tuple[PolicyObject, HvpaPolicySpec]]) -> None:
        """Finds the policy of a workload, and the change of its Hvpa."""
        operator, meta = self._world.operator_namespace, workload.metadata
        chosen = [each for each in policies if selects_workload(each[1], workload, operator)]
        if not chosen:
            return
        (policy, spec), *others = chosen
        for other, _ in others:
            self._tallies[policy.key].won[other.key] += 1
            self._tallies[other.key].lost[policy.key] += 1
        tally = self._tallies[policy.key]
        tally.selected += 1
        target = target_of_workload(workload)
        present = self._by_target.get(target, ())
        if opts_out(meta):
            tally.opted_out += 1
        elif any(hvpa.is_of_others for hvpa in present):
            tally.written_by_others += 1
        else:
            self._kept.add(target)
            self._make(_Claim(policy, spec, workload, target, {each.key for each, _ in chosen}), present)

    def _make(self, claim: _Claim, present: Sequence[PresentHvpa]) -> None:
        tally = self._tallies[claim.policy.key]
        tally.awaiting_adoption += self._is_held(claim)
        if not present:
            self._create(claim)
            return
        hvpa, *doubles = sorted(present, key=lambda each: each.metadata.name)
        self._delete(doubles)
        if hvpa.metadata.deletion_timestamp is not None:
            tally.missing += 1
            return
        if hvpa.policy_uid not in self._owners:
            tally.left += 1  # the garbage collector deletes it, unless that policy becomes valid
            return
        applied = self._applied(claim, self._mode(claim), hvpa)
        is_ours = hvpa.policy_uid == claim.policy.metadata.uid
        tally.generated += is_ours
        if is_ours and hvpa.metadata.annotations.get(APPLIED) == applied:
            tally.up_to_date += 1
            self._up_to_date[claim.policy.key].append((claim, hvpa))
            return
        update = _Update(claim, hvpa, applied)
        owner = self._owners[hvpa.policy_uid]
        if self._stops(update, owner):
            self._stopping[owner.key].append(update)
        else:
            self._updates[claim.policy.key].append(update)

    def _stops(self, update: _Update, owner: PolicyObject) -> bool:
        """Whether an Hvpa would stop scaling because its policy no longer selects the workload, so that a less specific
        policy takes it over in mode Recommend. `rollout.maxRemovals` of its policy bounds that."""
        claim = update.claim
        if owner.key in claim.selecting or owner.spec is None or claim.spec.stage != "Recommend":
            return False
        is_less_specific = rank(claim.policy, claim.spec)[:3] > rank(owner, owner.spec)[:3]
        return is_less_specific and self._applies(update.hvpa) and not self._is_held(claim)

    def _mode(self, claim: _Claim) -> Mode:
        """Returns the mode of the workload's Hvpa: Recommend while an HPA or VPA acts that it may not adopt."""
        return "Recommend" if self._is_held(claim) else claim.spec.stage

    def _is_held(self, claim: _Claim) -> bool:
        return bool(self._acting.get(claim.target)) and not may_adopt(claim.workload.metadata)

    def _create(self, claim: _Claim) -> None:
        namespace, name = claim.target.namespace, claim.target.name
        if namespace in self._world.terminating:
            return
        if (namespace, name) in self._names:
            name = f"{name}-{claim.target.kind.lower()}"
        tally = self._tallies[claim.policy.key]
        if (namespace, name) in self._names or len(name) > NAME_LENGTH:
            tally.taken.append(f"{namespace}/{claim.target.name}")
            return
        self._names.add((namespace, name))
        self._note_failure(claim.policy, namespace, name)
        tally.missing += 1
        size = size_of(claim.workload)
        applied = self._applied(claim, "Recommend", None)
        metadata = {"name": name, "namespace": namespace, **self._marks(claim, applied, size)}
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": _spec(claim, applied)}
        self._changes.append(PolicyChange("create", namespace, name, body, policy=claim.policy.key))

    def _marks(self, claim: _Claim, applied: str, size: Size) -> Document:
        """Returns labels, annotations and owner of the workload's Hvpa."""
        meta, kind = claim.policy.metadata, claim.policy.kind
        owner = {
            "apiVersion": API_VERSION,
            "kind": kind,
            "name": meta.name,
            "uid": meta.uid,
            "controller": True,
        }
        at = format_timestamp(self._now.replace(microsecond=0))
        return {
            "labels": {FROM_POLICY: meta.name[:LABEL_LENGTH].rstrip("-.")},
            "annotations": {APPLIED: applied, APPLIED_AT: at, FIRST_SIZE: str(size)},
            "ownerReferences": [owner],
        }

    # --- what the policy requires -------------------------------------------------------------------------------------
    def _applied(self, claim: _Claim, mode: Mode, hvpa: PresentHvpa | None) -> str:
        """Returns the spec that the policy requires, without the target, as canonical JSON."""
        known = None if hvpa is None else read_size(hvpa.metadata.annotations.get(FIRST_SIZE))
        case = case_of(claim.spec, claim.workload, known or size_of(claim.workload))
        adopting = self._adopting(claim)
        key = claim.policy.key, case, mode
        if adopting or key not in self._texts:
            document = {**merged(adopting, claim.spec.document(case)), "mode": mode}
            text = _encode(document).decode()
            if adopting:
                return text
            self._texts[key] = text
        return self._texts[key]

    def _adopting(self, claim: _Claim) -> Document:
        """Returns selectors by which the Hvpa adopts the HPA and VPA that act, if the workload's owner wants that. The
        Hvpa keeps what it has adopted when the selectors are gone."""
        if not may_adopt(claim.workload.metadata):
            return {}
        selectors: Document = {}
        for recommender in sorted(self._acting.get(claim.target, ()), key=lambda each: each.metadata.name):
            if labels := recommender.metadata.labels:
                axis = "hpa" if isinstance(recommender, Hpa) else "vpa"
                selectors[axis] = {"selector": {"matchLabels": labels}}
        return selectors

    # --- updates ------------------------------------------------------------------------------------------------------
    def _is_changing(self, claim: _Claim, hvpa: PresentHvpa) -> bool:
        """Whether an Hvpa has yet to settle after its last update: the operator has not decided with its new spec, or,
        in modes Review and Apply, pods are not as decided or not available. After PATIENCE it counts as settled."""
        try:
            at = parse_timestamp(hvpa.metadata.annotations.get(APPLIED_AT, ""))
        except TimestampError:
            return False
        if abs(self._now - at) >= PATIENCE:  # who may edit the Hvpa may have written any time
            return False
        status = hvpa.read().status
        ready = next((condition for condition in status.conditions if condition.type == "Ready"), None)
        if ready is None or (ready.observed_generation or 0) < hvpa.metadata.generation:
            return True
        if not self._applies(hvpa):
            return False
        pods = status.actuation
        return bool(rollout_gaps(claim.workload)) or (
            pods is not None and bool(pods.in_progress or pods.waiting)
        )

    def _applies(self, hvpa: PresentHvpa) -> bool:
        """Whether the mode of an Hvpa is Review or Apply, as the policy last wrote it."""
        applied = hvpa.metadata.annotations.get(APPLIED, "")
        if applied not in self._applying:
            self._applying[applied] = str(_read_applied(hvpa).get("mode")) in APPLYING
        return self._applying[applied]

    def _roll_out(self, key: PolicyKey) -> Iterator[None]:
        """Updates as many Hvpas as may change at the same time. Workloads that still change because of the last update
        come first, and count. Those that lack pods anyway come last, so that they don't keep others waiting."""
        updates, tally = self._updates[key], self._tallies[key]
        for claim, hvpa in self._up_to_date[key]:
            yield
            if self._is_changing(claim, hvpa):
                tally.waits_for.append(hvpa.metadata.name)
        room = updates[0].claim.spec.rollout.max_concurrent - len(tally.waits_for)
        turns = []
        for update in updates:
            yield
            turns.append((self._turn(update), update))
        turns.sort(key=itemgetter(0))
        for _, update in turns:
            yield
            self._note_failure(update.claim.policy, update.claim.target.namespace, update.hvpa.metadata.name)
            if room > 0 and self._is_edited(update.hvpa):
                tally.edited.append(_named(update.hvpa.metadata))
                self._edited.append((update.claim.target.namespace, update.hvpa.metadata.name))
                continue
            tally.waiting += 1
            if room > 0:
                self._changes.append(self._patch(update))
            room -= 1
        self._is_rolling = self._is_rolling or tally.waiting > 0

    def _is_edited(self, hvpa: PresentHvpa) -> bool:
        """Whether somebody changed the spec since the policy wrote it. The HPA and the operator write `replicas`."""
        applied, present = hvpa.metadata.annotations.get(APPLIED, ""), hvpa.read().spec
        if applied not in self._written:
            written, _ = parse_spec(targeting(_read_applied(hvpa), "apps/v1", hvpa.target.kind, "name"))
            self._written[applied] = None if written is None else _comparable(written)
        return present is None or self._written[applied] != _comparable(present)

    def _turn(self, update: _Update) -> tuple[bool, bool, bool, Target]:
        meta, claim = update.hvpa.metadata, update.claim
        is_changing = self._applies(update.hvpa) and self._is_changing(claim, update.hvpa)
        has_failed = (meta.namespace, meta.name) in self._world.failures
        return not is_changing, has_failed, bool(rollout_gaps(claim.workload)), claim.target

    def _patch(self, update: _Update) -> PolicyChange:
        meta = update.hvpa.metadata
        size = read_size(meta.annotations.get(FIRST_SIZE)) or size_of(update.claim.workload)
        marks = self._marks(update.claim, update.applied, size)
        body = {
            "metadata": {**marks, "uid": meta.uid, "resourceVersion": meta.resource_version},
            "spec": difference(_read_applied(update.hvpa), msgspec.json.decode(update.applied)),
        }
        key = update.claim.policy.key
        return PolicyChange(
            "patch", meta.namespace, meta.name, body, policy=key, removed_by=update.removed_by
        )

    # --- Hvpas that no policy wants -----------------------------------------------------------------------------------
    def _remove_the_rest(self) -> Iterator[None]:
        """Deletes the Hvpas whose workloads are gone, opt out or have an Hvpa that somebody wrote, and the Hvpas of
        workloads that no policy selects any more, as far as their policies may remove them. Releases the Hvpas whose
        mark somebody removed."""
        unwanted: list[PresentHvpa] = []
        for hvpa in self._world.hvpas:
            yield
            if hvpa.policy_uid is None or hvpa.metadata.deletion_timestamp is not None:
                continue
            if not hvpa.is_marked:
                self._release(hvpa)
            elif hvpa.target not in self._kept and hvpa.target.kind in self._world.listed_kinds:
                unwanted.append(hvpa)
        deselected: dict[PolicyKey, list[PresentHvpa]] = defaultdict(list)
        workloads = self._workloads() if unwanted else {}
        for hvpa in unwanted:
            yield
            owner, workload = self._owners.get(hvpa.policy_uid or ""), workloads.get(hvpa.target)
            by_others = any(each.is_of_others for each in self._by_target[hvpa.target])
            if owner is None or workload is None or opts_out(workload.metadata) or by_others:
                self._delete([hvpa])
            else:
                deselected[owner.key].append(hvpa)
        for policy, spec in self._active:
            removed, stopping = deselected[policy.key], self._stopping[policy.key]
            if removed or stopping:
                self._remove_deselected(policy, spec.rollout.max_removals, removed, stopping)

    def _workloads(self) -> dict[Target, Workload]:
        """Returns the workloads that are not being deleted."""
        return {
            target_of_workload(workload): workload
            for workload in self._world.workloads
            if workload.metadata.deletion_timestamp is None
        }

    def _remove_deselected(
        self, policy: PolicyObject, limit: int, removed: Sequence[PresentHvpa], stopping: Sequence[_Update]
    ) -> None:
        """Deletes Hvpas of workloads that a policy no longer selects, and lets others take over those that stop
        scaling; none if these are more than it may remove now, or if it selects no workload at all. Those that it does
        not remove stay until it changes, also if they become fewer."""
        key, count = policy.key, len(removed) + len(stopping)
        tally, window, before = self._tallies[key], self._windows[key], policy.status
        is_held = before.removal_held and before.observed_generation == policy.metadata.generation
        may_remove = tally.selected and not is_held and count <= limit
        if may_remove and count + window.removed <= limit:
            self._delete(removed, key)
            for update in stopping:
                self._updates[update.claim.policy.key].append(update._replace(removed_by=key))
            return
        tally.held, tally.limit, tally.holds_until_change = count, limit, not may_remove
        tally.generated += count
        for update in stopping:
            self._tallies[update.claim.policy.key].left += 1
        if may_remove:
            left = window.since + WINDOW - self._now
            self._wait = left if self._wait is None else min(self._wait, left)

    def _delete(self, hvpas: Iterable[PresentHvpa], removed_by: PolicyKey | None = None) -> None:
        for hvpa in hvpas:
            meta = hvpa.metadata
            if (policy := self._owners.get(hvpa.policy_uid or "")) is not None:
                self._note_failure(policy, meta.namespace, meta.name)
                self._changes.append(
                    PolicyChange(
                        "delete",
                        meta.namespace,
                        meta.name,
                        uid=meta.uid,
                        resource_version=meta.resource_version,
                        policy=policy.key,
                        removed_by=removed_by,
                    )
                )

    def _release(self, hvpa: PresentHvpa) -> None:
        """Removes the policy from the owners, so that the Hvpa outlives it."""
        meta = hvpa.metadata
        others = [wire(owner) for owner in meta.owner_references if owner.uid != hvpa.policy_uid]
        metadata = {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "ownerReferences": others or None,
            "annotations": dict.fromkeys((APPLIED, APPLIED_AT, FIRST_SIZE)),
        }
        self._changes.append(PolicyChange("patch", meta.namespace, meta.name, {"metadata": metadata}))

    # --- statuses -----------------------------------------------------------------------------------------------------
    def _note_failure(self, policy: PolicyObject, namespace: str, name: str) -> None:
        if (why := self._world.failures.get((namespace, name))) is not None:
            self._tallies[policy.key].failures.append(f"{namespace}/{name}: {why}")

    def _statuses(self) -> Iterator[tuple[PolicyKey, PolicyStatus]]:
        active = {policy.key for policy, _ in self._active}
        for policy in self._world.policies:
            if policy.metadata.deletion_timestamp is None:
                tally = self._tallies[policy.key] if policy.key in active else None
                status = status_of(policy, tally, self._windows[policy.key], self._now)
                if status != policy.status:
                    yield policy.key, status


def _spec(claim: _Claim, applied: str) -> Document:
    workload = claim.workload
    return targeting(
        msgspec.json.decode(applied), workload.api_version, workload.kind, workload.metadata.name
    )


def _comparable(spec: HvpaSpec) -> Document:
    return spec.model_dump(exclude={"replicas", "target_ref"})


def _read_applied(hvpa: PresentHvpa) -> Document:
    """Returns the spec as the policy last wrote it; empty if somebody changed the annotation to something else."""
    try:
        applied: Any = msgspec.json.decode(hvpa.metadata.annotations.get(APPLIED, ""))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return applied if isinstance(applied, dict) else {}


def _named(meta: Meta) -> str:
    return f"{meta.namespace}/{meta.name}"
