"""ServiceAccounts with rights that a test gives them."""

from __future__ import annotations

from pathlib import Path

from localcluster.client.api import Json, KubeApi
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.controlplane import ControlPlane

_RBAC = "rbac.authorization.k8s.io"


def new_account(cluster: Cluster, namespace: str, name: str, *rules: Json) -> str:
    """Make a ServiceAccount with a Role of these rules, which are in force then; its user name."""
    api, metadata = cluster.api, {"name": name, "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    if rules:
        api.create({"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)})
        bound = {"roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name}}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        binding = {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", "metadata": metadata}
        api.create(binding | bound | {"subjects": [subject]})
        cluster.await_right(f"system:serviceaccount:{namespace}:{name}", rules[-1], namespace)
    return f"system:serviceaccount:{namespace}:{name}"


def bind_cluster_role(cluster: ControlPlane, role: str, namespace: str, name: str) -> None:
    """Give a ClusterRole to a ServiceAccount, which has its rights then. Who gets the operator's acts as one, and is
    judged as one."""
    if role == "hvpa-operator":
        cluster.circumstances.operators.add(f"system:serviceaccount:{namespace}:{name}")
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    metadata = {"name": f"{role}-{namespace}-{name}"}
    binding = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": metadata}
    bound = {"roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}}
    cluster.api.create(binding | bound | {"subjects": [subject]})
    rules = cluster.api.get("ClusterRole", role)["rules"]
    cluster.await_right(f"system:serviceaccount:{namespace}:{name}", rules[-1], namespace)


def rule(group: str, resources: list[str], verbs: list[str], names: list[str] | None = None) -> Json:
    """A rule of a Role, for these objects only where `names` are given."""
    policy_rule: Json = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    return policy_rule if names is None else policy_rule | {"resourceNames": names}


def api_of(cluster: Cluster, namespace: str, name: str) -> KubeApi:
    """A client that acts as a ServiceAccount."""
    path: Path = cluster.service_account_kubeconfig(namespace, name)
    return KubeApi(path)
