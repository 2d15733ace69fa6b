"""A test's view of a cluster, whoever started it: requests as administrator, kubectl, identities of ServiceAccounts, a
proxy with faults. `controlplane.py` adds the operations that need an owned control plane."""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import subprocess
import unittest
from collections.abc import Iterator
from pathlib import Path

import yaml

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.client.audit import Audit
from localcluster.client.kubeconfig import token_user, write_kubeconfig
from localcluster.proxy.proxy import Proxy

DAY = 24 * 3600
"""Seconds that a token is valid: benchmarks and a cluster for trying out run for hours."""


class Cluster:
    """A cluster that is reached by an administrator's kubeconfig."""

    audit: Audit
    """The API server's audit log, if the control plane is owned."""

    def __init__(self, folder: Path, kubeconfig: Path, kubectl: Path) -> None:
        """`folder` takes temporary files; `kubectl` is the program."""
        self.folder = folder
        self.kubeconfig = kubeconfig
        self._kubectl = kubectl
        self._api: KubeApi | None = None
        self._numbers = itertools.count(1)

    @property
    def api(self) -> KubeApi:
        """A JSON client as administrator."""
        if self._api is None:
            self._api = KubeApi(self.kubeconfig)
        return self._api

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self._cluster_entry()["server"])

    @property
    def authority(self) -> Path:
        """The certificate authority (PEM) of the API server's certificate."""
        raise unittest.SkipTest("needs a control plane that the tests start themselves")

    @property
    def server_certificate(self) -> tuple[Path, Path]:
        """Certificate and key that clients of this cluster trust on 127.0.0.1."""
        raise unittest.SkipTest("needs a control plane that the tests start themselves")

    def kubectl(
        self, *args: str | Path, input: str | None = None, check: bool = True, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator; raises `AssertionError` with its output when it fails and `check`
        is set."""
        argv = [str(self._kubectl), f"--kubeconfig={self.kubeconfig}", *map(str, args)]
        environment = {**os.environ, "HOME": str(self.folder)}
        done = subprocess.run(
            argv, input=input, capture_output=True, text=True, timeout=timeout, env=environment
        )
        if check and done.returncode:
            output = done.stderr.strip() or done.stdout.strip()
            raise AssertionError(f"kubectl {' '.join(map(str, args))}: {output}")
        return done

    def apply_all(self, documents: list[Json]) -> None:
        """Apply objects, namespaces and CRDs first, and wait until the CRDs are served."""
        first = ("Namespace", "CustomResourceDefinition")
        for document in sorted(documents, key=lambda d: first.index(d["kind"]) if d["kind"] in first else 2):
            self.api.apply(document)
            if document["kind"] == "CustomResourceDefinition":
                self.await_crd(document["metadata"]["name"])

    def delete_all(self, documents: list[Json]) -> None:
        """Delete objects, in reverse order; objects that do not exist are skipped."""
        for document in reversed(documents):
            meta = document["metadata"]
            kind = f"{document['apiVersion']}/{document['kind']}"
            self.api.delete(kind, meta["name"], meta.get("namespace"))

    def await_crd(self, name: str) -> None:
        """Wait until a CRD's objects can be written and listed."""

        def served() -> bool:
            crd = self.api.get("CustomResourceDefinition", name)
            conditions = {c["type"]: c["status"] for c in crd.get("status", {}).get("conditions") or ()}
            version = next(v["name"] for v in crd["spec"]["versions"] if v["storage"])
            if conditions.get("Established") != "True":
                return False
            self.api.list(f"{crd['spec']['group']}/{version}/{crd['spec']['names']['kind']}")
            return True

        wait_for(served, 60, f"the API server serves {name}", interval=0.05)

    def await_right(self, user: str, rule: Json, namespace: str = "") -> None:
        """Wait until the API server grants a user the rights of a rule: new roles and bindings take effect after a
        short delay."""
        verb = rule["verbs"][0]
        if "nonResourceURLs" in rule:
            requested = {"nonResourceAttributes": {"path": rule["nonResourceURLs"][0], "verb": verb}}
        else:
            resource, _, subresource = rule["resources"][0].partition("/")
            attributes = {"group": rule["apiGroups"][0], "resource": resource, "subresource": subresource}
            attributes |= {"verb": verb, "namespace": namespace, "name": rule.get("resourceNames", [""])[0]}
            requested = {"resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        body = review | {"spec": {"user": user, **requested}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        wait_for(
            lambda: self.api.raw("POST", path, body)["status"]["allowed"], 60, f"that {user} may {rule}", 0.02
        )

    def service_account_token(self, namespace: str, name: str, seconds: int = DAY) -> str:
        """A token of a ServiceAccount (at least ten minutes, the minimum of the API server)."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": max(600, seconds)},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.api.raw("POST", path, body)["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, name: str, seconds: int = DAY) -> Path:
        """A kubeconfig that acts as a ServiceAccount, with its own rights."""
        token = self.service_account_token(namespace, name, seconds)
        path = self.folder / f"sa-{namespace}-{name}-{next(self._numbers)}.kubeconfig"
        return write_kubeconfig(path, self.server, self._authority_file(), token_user(token), namespace)

    @contextlib.contextmanager
    def proxy(self) -> Iterator[Proxy]:
        """A proxy in front of the API server, with faults that the test controls."""
        certificate, key = self.server_certificate
        folder = self.folder / f"proxy-{next(self._numbers)}"
        with Proxy(self.server, self.authority, certificate, key, folder) as proxy:
            yield proxy

    def _authority_file(self) -> Path:
        return self.authority

    def _cluster_entry(self) -> Json:
        config = yaml.safe_load(self.kubeconfig.read_text())
        entry: Json = config["clusters"][0]["cluster"]
        return entry


class ExternalCluster(Cluster):
    """A cluster that was started elsewhere (kind, for example): no audit log, no faults; tests that need these are
    skipped."""

    @property
    def audit(self) -> Audit:  # type: ignore[override]
        """Not available."""
        raise unittest.SkipTest("needs the audit log of a control plane that the tests start themselves")

    def _authority_file(self) -> Path:
        path = self.folder / "ca.crt"
        entry = self._cluster_entry()
        if "certificate-authority-data" in entry:
            path.write_bytes(base64.b64decode(entry["certificate-authority-data"]))
            return path
        return self.kubeconfig.parent / str(entry["certificate-authority"])
