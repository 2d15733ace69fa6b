"""What a VPA needs to resize pods, and not only to recommend: its updater, and its webhook for new pods, for as long as

    with VpaActs(plane, namespace):
        ...     # VPAs of that namespace act

lasts. The recommender is part of the control plane. Both are the VPA's own code; the updater acts as fast as the
recommender here recommends."""

from __future__ import annotations

import base64
import socket
from typing import Final

from localcluster.client.api import Json, wait_for
from localcluster.client.kubeconfig import certificate_user, write_kubeconfig
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.process import Process, free_port
from localcluster.programs.build import build_vpa

UPDATER_SECONDS: Final = 10
"""Between two looks at the pods; by default a minute."""
LIFETIME_SECONDS: Final = 30
"""From this age on a pod is resized for any difference of a tenth. 12 hours by default: before, only a request beyond
the recommendation's bounds counts. These are wide after minutes of measurements: no pod would get smaller."""


class VpaActs:
    """A context manager: registered at the API server meanwhile, and killed at the end."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        """Nothing is started yet, but built. Raises `BuildError`."""
        programs = build_vpa()
        self._plane = plane
        self._port = free_port()
        user = certificate_user(plane.pki.client("vpa", "system:masters"))
        kubeconfig = plane.folder / "vpa.kubeconfig"
        write_kubeconfig(kubeconfig, plane.server, plane.authority, user)
        certificate, key = plane.server_certificate
        updater = [
            programs["vpa-updater"],
            f"--kubeconfig={kubeconfig}",
            f"--address=127.0.0.1:{free_port()}",
            f"--vpa-object-namespace={namespace}",
            f"--updater-interval={UPDATER_SECONDS}s",
            f"--in-recommendation-bounds-eviction-lifetime-threshold={LIFETIME_SECONDS}s",
            "--use-admission-controller-status=false",  # the Lease by which the updater knows that the webhook runs
        ]
        webhook = [
            programs["vpa-webhook"],
            f"--kubeconfig={kubeconfig}",
            f"--listen=127.0.0.1:{self._port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
        ]
        self.processes = [
            Process(name, [str(part) for part in argv], plane.logs / f"{name}.log")
            for name, argv in (("vpa-updater", updater), ("vpa-webhook", webhook))
        ]
        self._registration = _registration(self._port, plane.authority.read_bytes(), namespace)

    def __enter__(self) -> VpaActs:
        try:
            for process in self.processes:
                process.start()
            wait_for(self._webhook_answers, 60, "the VPA's webhook answers", 0.1)
            self._plane.api.create(self._registration)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the registration, and end both."""
        self._plane.delete_all([self._registration])
        for process in self.processes:
            process.kill()

    def check(self) -> None:
        """Raises `RuntimeError` if one of them has ended."""
        for process in self.processes:
            if not process.alive:
                raise RuntimeError(f"{process.name} ended with {process.returncode}:\n{process.tail(15)}")

    def _webhook_answers(self) -> bool:
        self.check()
        with socket.create_connection(("127.0.0.1", self._port), timeout=1):
            return True


def _registration(port: int, authority: bytes, namespace: str) -> Json:
    """As the admission controller registers itself, for the pods of one namespace."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "vpa-webhook-config"},
        "webhooks": [
            {
                "name": "vpa.k8s.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "timeoutSeconds": 10,
                "clientConfig": {
                    "url": f"https://127.0.0.1:{port}/",
                    "caBundle": base64.b64encode(authority).decode(),
                },
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["pods"],
                        "operations": ["CREATE"],
                    }
                ],
            }
        ],
    }
