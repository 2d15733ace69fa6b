"""Makes the bundle for OperatorHub and the Operator Lifecycle Manager (OLM): the objects of an overlay of `config`,
with the Deployment and its rights in a ClusterServiceVersion."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from tools.dependencies.lockfile import PROJECT
from tools.distributions import ReleaseError

Json = dict[str, Any]

OVERLAY: Final = "without-operator-policy"
"""OLM creates no admission policies."""
PACKAGE: Final = PROJECT
CHANNEL: Final = "preview"
NAMESPACE: Final = "hvpa-system"
KEPT: Final = {
    "ClusterRole", "CustomResourceDefinition", "PodDisruptionBudget", "PriorityClass", "Role", "RoleBinding", "Service",
}  # fmt: skip
"""Kinds that OLM creates from files next to the ClusterServiceVersion."""
ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><g fill="#326ce5">'
    '<rect x="6" y="40" width="14" height="18" rx="2"/><rect x="25" y="24" width="14" height="34" rx="2"/>'
    '<rect x="44" y="8" width="14" height="50" rx="2"/></g></svg>'
)
DESCRIPTION: Final = """\
HVPA scales one workload horizontally and vertically at once. The HPA and the VPA only recommend. HVPA turns both
recommendations into one decision, and is the only component that changes replicas, requests and limits.

Needed: metrics-server and, for requests and limits, the CRDs and the recommender of the Vertical Pod Autoscaler.

OLM installs no ValidatingAdmissionPolicy. The chart and the manifests of a release also restrict which fields of
workloads the operator's account may change.
"""


def bundle(
    manifests: str, sample: str, image: str, version: str, kubernetes: str, epoch: int
) -> dict[str, bytes]:
    """Return the files of the bundle, in the layout of OperatorHub's repositories, from rendered manifests and an
    example of an Hvpa. `kubernetes` is the oldest supported version. Raises ReleaseError."""
    objects = [document for document in yaml.safe_load_all(manifests) if document]
    hvpas = [document for document in yaml.safe_load_all(sample) if document and document["kind"] == "Hvpa"]
    csv = _csv(objects, hvpas, version)
    csv["metadata"]["annotations"] |= {
        "containerImage": image,
        "createdAt": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    csv["spec"]["minKubeVersion"] = kubernetes
    files = {f"manifests/{PACKAGE}.clusterserviceversion.yaml": csv}
    in_csv = {role["metadata"]["name"] for role in _roles(objects)}
    for found in objects:
        name, kind = found["metadata"]["name"], found["kind"]
        referred = found["roleRef"]["name"] if "roleRef" in found else name
        if kind in KEPT and referred not in in_csv:
            files[f"manifests/{name.replace('.', '-')}-{kind.lower()}.yaml"] = _without_namespace(found)
    files["metadata/annotations.yaml"] = {"annotations": _annotations()}
    folder = f"{PACKAGE}/{version}"
    return {f"{folder}/{name}": _text(content) for name, content in files.items()}


def _csv(objects: Iterable[Json], examples: list[Json], version: str) -> Json:
    objects = list(objects)
    (deployment,) = _of_kind(objects, "Deployment")
    (crd,) = _of_kind(objects, "CustomResourceDefinition")
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    rights: dict[str, list[Json]] = {"ClusterRole": [], "Role": []}
    for role in _roles(objects):
        rights[role["kind"]].append({"serviceAccountName": account, "rules": role["rules"]})
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{PACKAGE}.v{version}",
            "annotations": {
                "alm-examples": json.dumps(examples, indent=2),
                "capabilities": "Seamless Upgrades",
                "categories": "Application Runtime",
                "description": "Scales one workload in number and in size of its pods.",
                "operatorframework.io/suggested-namespace": NAMESPACE,
            },
        },
        "spec": {
            "displayName": "HVPA",
            "description": DESCRIPTION,
            "version": version,
            "maturity": "alpha",
            "provider": {"name": "HVPA"},
            "keywords": ["autoscaling", "hpa", "vpa"],
            "icon": [{"base64data": base64.b64encode(ICON.encode()).decode(), "mediatype": "image/svg+xml"}],
            "installModes": [
                {"type": mode, "supported": mode == "AllNamespaces"}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "customresourcedefinitions": {
                "owned": [_owned(crd, served) for served in crd["spec"]["versions"]]
            },
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": rights["ClusterRole"],
                    "permissions": rights["Role"],
                    "deployments": [
                        {
                            "name": deployment["metadata"]["name"],
                            "label": deployment["metadata"]["labels"],
                            "spec": deployment["spec"],
                        }
                    ],
                },
            },
        },
    }


def _owned(crd: Json, served: Json) -> Json:
    kind = crd["spec"]["names"]["kind"]
    return {
        "name": crd["metadata"]["name"],
        "version": served["name"],
        "kind": kind,
        "displayName": kind,
        "description": "Configures HVPA for one workload.",
    }


def _roles(objects: Iterable[Json]) -> list[Json]:
    """The roles that are bound to the operator's account. OLM binds the roles of a ClusterServiceVersion itself."""
    objects = list(objects)
    bound = {
        (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for binding in _of_kind(objects, kind)
        if any(subject["kind"] == "ServiceAccount" for subject in binding["subjects"])
    }
    roles = {
        (role["kind"], role["metadata"]["name"]): role
        for kind in ("ClusterRole", "Role")
        for role in _of_kind(objects, kind)
    }
    if missing := bound - roles.keys():
        raise ReleaseError(f"config/{OVERLAY} binds roles that it does not have: {sorted(missing)}")
    return [roles[key] for key in sorted(bound)]


def _of_kind(objects: Iterable[Json], kind: str) -> list[Json]:
    return [found for found in objects if found["kind"] == kind]


def _without_namespace(found: Mapping[str, Any]) -> Json:
    """OLM creates the objects in the namespace of the installation."""
    metadata = {key: value for key, value in found["metadata"].items() if key != "namespace"}
    return {**found, "metadata": metadata}


def _annotations() -> dict[str, str]:
    prefix = "operators.operatorframework.io.bundle"
    return {
        f"{prefix}.mediatype.v1": "registry+v1",
        f"{prefix}.manifests.v1": "manifests/",
        f"{prefix}.metadata.v1": "metadata/",
        f"{prefix}.package.v1": PACKAGE,
        f"{prefix}.channels.v1": CHANNEL,
        f"{prefix}.channel.default.v1": CHANNEL,
    }


def _text(content: Json) -> bytes:
    return yaml.safe_dump(content, sort_keys=False, width=120).encode()
