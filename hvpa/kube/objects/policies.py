"""Policies as the local copy holds them: parsed for the next plan, since a template with many cases takes time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hvpa.api.objects.read_models import Meta, RawHvpa
from hvpa.api.policy.resource import PolicyKind, PolicyObject, read_policy, read_policy_status
from hvpa.core.policies.check import policy_problems


@dataclass(slots=True)
class StoredPolicy:
    """A policy as received."""

    kind: PolicyKind
    raw: RawHvpa
    parsed: PolicyObject | None = None

    @property
    def metadata(self) -> Meta:
        """The policy's metadata."""
        return self.raw.metadata

    def read(self) -> PolicyObject:
        """The parsed policy. Its spec counts as invalid if a schedule or time zone of its template is."""
        if self.parsed is None:
            policy = read_policy(self.kind, self.raw)
            problems = () if policy.spec is None else policy_problems(policy.spec)
            self.parsed = replace(policy, spec=None, problems=problems) if problems else policy
        return self.parsed

    def succeed(self, old: StoredPolicy) -> None:
        """Take over the spec of the previous version, if only the status has changed."""
        meta, before = self.metadata, old.metadata
        if old.parsed is not None and (meta.uid, meta.generation) == (before.uid, before.generation):
            status = read_policy_status(bytes(self.raw.status))
            self.parsed = replace(old.parsed, metadata=meta, status=status)


def stored_policy(kind: PolicyKind, raw: RawHvpa) -> StoredPolicy:
    """A policy for the local copy."""
    return StoredPolicy(kind, RawHvpa(raw.metadata, raw.spec.copy(), raw.status.copy()))
