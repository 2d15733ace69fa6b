"""What the operator is started with."""

from __future__ import annotations

from dataclasses import dataclass

from hvpa.core.model import Settings
from hvpa.kube.leases.lease_api import Candidate


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The flags of `hvpa run`. `scopes`: the namespaces that are watched, or ALL_NAMESPACES alone."""

    decisions: Settings
    kubeconfig: str | None
    context: str | None
    scopes: tuple[str, ...]
    workers: int
    max_in_flight: int
    leader_elect: bool
    shards: int
    candidate: Candidate
    metrics_address: str
    metrics_secure: bool
    metrics_cert_dir: str | None
    health_address: str
    per_object_metrics: bool
    check_invariants: bool
    log_format: str
    log_level: str
