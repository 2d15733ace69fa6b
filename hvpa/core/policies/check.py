"""Errors in a policy that a schema can't detect: those in the schedules and time zones of its templates."""

from __future__ import annotations

from hvpa.api.policy.spec import HvpaPolicySpec
from hvpa.api.schema.base import FieldError
from hvpa.core.spec.check import spec_problems


def policy_problems(policy: HvpaPolicySpec) -> tuple[FieldError, ...]:
    """Returns the errors with their paths, each once: a case repeats those of the template."""
    where: dict[FieldError, str] = {}
    for at, spec in policy.specs():
        for problem in spec_problems(spec):
            where.setdefault(problem, at)
    return tuple(
        FieldError(f"spec.{at}.{problem.path.removeprefix('spec.')}", problem.message)
        for problem, at in where.items()
    )
