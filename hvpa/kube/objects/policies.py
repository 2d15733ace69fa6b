"""Policies as the local copy holds them."""

from __future__ import annotations

from dataclasses import replace

from hvpa.api.objects.read_models import RawHvpa
from hvpa.api.policy.resource import PolicyKind, PolicyObject, read_policy
from hvpa.core.policies.check import policy_problems


def stored_policy(kind: PolicyKind, raw: RawHvpa) -> PolicyObject:
    """A policy as received. Its spec counts as invalid if a schedule or time zone of its template is."""
    policy = read_policy(kind, raw)
    if policy.spec is None:
        return policy
    problems = policy_problems(policy.spec)
    return replace(policy, spec=None, problems=problems) if problems else policy
