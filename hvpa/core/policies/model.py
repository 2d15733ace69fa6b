"""Input and result of a plan, and the marks of Hvpas that a policy made."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from hvpa.api.hvpa.resource import GROUP, HvpaObject
from hvpa.api.objects.kinds import kind_key
from hvpa.api.objects.read_models import Hpa, HpaSpecRead, Meta, Vpa, Workload
from hvpa.api.policy.resource import SPECS, PolicyKey, PolicyObject
from hvpa.api.policy.status import PolicyStatus

PREFIX: Final = f"hvpa.{GROUP}"
FROM_POLICY: Final = f"{PREFIX}/from-policy"
"""Label of an Hvpa that a policy made; its value is the policy's name."""
APPLIED: Final = f"{PREFIX}/from-policy-spec"
"""Annotation of such an Hvpa: its spec without the target, as the policy last wrote it."""
APPLIED_AT: Final = f"{PREFIX}/from-policy-at"
"""Annotation of such an Hvpa: when the policy last wrote it."""
FIRST_SIZE: Final = f"{PREFIX}/from-policy-size"
"""Annotation of such an Hvpa: the requests of a pod, in millicores and bytes, when the Hvpa was created."""
OPT_OUT: Final = f"{PREFIX}/opt-out"
"""Annotation of a workload: no policy makes an Hvpa for it."""
ADOPT: Final = f"{PREFIX}/adopt"
"""Annotation of a workload: its Hvpa may take over from an HPA or VPA that acts."""
Document = dict[str, Any]


def opts_out(workload: Meta) -> bool:
    """Whether the workload has the annotation OPT_OUT, except with the value `false`."""
    return workload.annotations.get(OPT_OUT, "false") != "false"


def may_adopt(workload: Meta) -> bool:
    """Whether the workload has the annotation ADOPT with the value `true`; any other value adopts nothing."""
    return workload.annotations.get(ADOPT) == "true"


class Target(NamedTuple):
    """A workload. `kind` is a `hvpa.api.objects.kinds.kind_key`."""

    namespace: str
    kind: str
    name: str


def target_of_workload(workload: Workload) -> Target:
    """Returns the target that an Hvpa for this workload has."""
    meta = workload.metadata
    return Target(meta.namespace, kind_key(workload.api_version, workload.kind), meta.name)


def target_of(recommender: Hpa | Vpa) -> Target:
    """Returns the target of an HPA or VPA."""
    spec = recommender.spec
    reference = spec.scale_target_ref if isinstance(spec, HpaSpecRead) else spec.target_ref
    kind = kind_key(reference.api_version, reference.kind)
    return Target(recommender.metadata.namespace, kind, reference.name)


def acts(recommender: Hpa | Vpa) -> bool:
    """Whether an HPA or VPA changes its target itself. (An HPA whose target is an Hvpa changes no workload.)"""
    policy = recommender.spec.update_policy if isinstance(recommender, Vpa) else None
    return policy is None or policy.update_mode != "Off"


@dataclass(frozen=True)
class PresentHvpa:
    """An Hvpa in the cluster."""

    metadata: Meta
    target: Target
    read: Callable[[], HvpaObject]
    """Returns the parsed Hvpa; used for few Hvpas, since parsing takes time."""

    @cached_property
    def policy_uid(self) -> str | None:
        """Returns the uid of the policy that owns this Hvpa; None if no policy does."""
        owner = self.metadata.controller()
        return owner.uid if owner is not None and owner.kind in SPECS else None

    @property
    def is_marked(self) -> bool:
        """Whether this Hvpa has the mark. Whoever removes it takes the Hvpa over."""
        return FROM_POLICY in self.metadata.labels

    @property
    def is_of_others(self) -> bool:
        """Whether somebody wrote this Hvpa, or took it over."""
        return self.policy_uid is None or not self.is_marked


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """All that a plan depends on."""

    policies: Sequence[PolicyObject]
    namespaces: Mapping[str, Mapping[str, str]] | None
    """Labels of the namespaces; None if they can't be read."""
    workloads: Sequence[Workload]
    listed_kinds: frozenset[str]
    """Kinds whose workloads are known completely."""
    hvpas: Sequence[PresentHvpa]
    hpas: Sequence[Hpa] = ()
    vpas: Sequence[Vpa] = ()
    operator_namespace: str = ""
    failures: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Why the last write to an Hvpa failed, by namespace and name."""
    terminating: Collection[str] = ()
    """Namespaces that are being deleted, if namespaces are read."""
    removed: Mapping[PolicyKey, int] = field(default_factory=dict)
    """Writes that `rollout.maxRemovals` bounds, and that no status counts yet."""


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A write to an Hvpa: `body` is a manifest (create) or a JSON merge patch (patch)."""

    action: Literal["create", "patch", "delete"]
    namespace: str
    name: str
    body: Document = field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""
    policy: PolicyKey | None = None
    """The policy that this write is for; None to release an Hvpa."""
    removed_by: PolicyKey | None = None
    """The policy whose `rollout.maxRemovals` bounds this write; None for most."""


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """The next writes."""

    changes: tuple[PolicyChange, ...]
    statuses: Mapping[PolicyKey, PolicyStatus]
    """The statuses that differ from the present statuses."""
    is_rolling: bool
    """Whether Hvpas wait for their turn."""
    edited: frozenset[tuple[str, str]] = frozenset()
    """Hvpas that are not updated because somebody changed their specs, by namespace and name."""
    wait: dt.timedelta | None = None
    """Time until removals that wait for the end of the hour may go on; None if none do."""
