"""Pods of the operator on real nodes, whose network is the machine's: `on_loopback.yaml` gives them the API server's
address, and addresses of their own to listen at."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from localcluster.client.api import wait_for
from localcluster.controlplane.cluster import Cluster

POLICY: Final = Path(__file__).parent / "on_loopback.yaml"
LABEL: Final = {"app.kubernetes.io/name": "hvpa"}
"""Of the operator's pods."""


def put_operator_on_loopback(cluster: Cluster) -> None:
    """Apply the policy, and wait until it is in force."""
    port = cluster.server.rpartition(":")[2]
    cluster.apply_all(list(yaml.safe_load_all(POLICY.read_text().replace("$PORT", port))))
    wait_for(lambda: _is_in_force(cluster), 30, "the policy is in force", 0.2)


def _is_in_force(cluster: Cluster) -> bool:
    """Whether a pod like the operator's would get what the policy adds."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trial", "namespace": "default", "labels": LABEL},
        "spec": {"containers": [{"name": "hvpa", "image": "hvpa", "args": ["run"]}]},
    }
    made = cluster.api.raw("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod)
    return len(made["spec"]["containers"][0]["args"]) > 1
