"""The settings of the operator."""

from __future__ import annotations

from dataclasses import dataclass

from hvpa.core.model import Settings
from hvpa.kube.leases.lease_api import Candidate


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The flags of `hvpa run`."""

    decisions: Settings
    kubeconfig: str | None
    context: str | None
    scopes: tuple[str, ...]
    """The namespaces to watch, or only ALL_NAMESPACES."""
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
    kubelet_port: int
    kubelet_account: str
    """The ServiceAccount in the operator's namespace whose token kubelets get."""
    kubelet_authority: str | None
    """A file with the certificate authorities of the kubelets; None: the API server's."""
    kubelet_insecure: bool
    """Do not verify the kubelets' certificates."""
    log_format: str
    log_level: str
    policies: bool
    """Whether HvpaPolicies and ClusterHvpaPolicies are followed."""
