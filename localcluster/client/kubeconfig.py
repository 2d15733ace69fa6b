"""Writing kubeconfig files: by client certificate, by token, by exec plugin."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from localcluster.client.pki import KeyPair, inline


def certificate_user(pair: KeyPair) -> dict[str, Any]:
    """The `user` entry of a client certificate, with inlined content, so that the file stands alone."""
    return {"client-certificate-data": inline(pair.certificate), "client-key-data": inline(pair.key)}


def token_user(token: str) -> dict[str, Any]:
    """The `user` entry of a bearer token."""
    return {"token": token}


def write_kubeconfig(
    path: Path, server: str, authority: Path, user: dict[str, Any], namespace: str = "default"
) -> Path:
    """Write a kubeconfig with a single context that trusts `authority` (a PEM file); only its owner can read it."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [
            {"name": "test", "cluster": {"server": server, "certificate-authority-data": inline(authority)}}
        ],
        "users": [{"name": "test", "user": user}],
        "contexts": [
            {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(yaml.safe_dump(document))
    temporary.chmod(0o600)
    temporary.replace(path)
    return path
