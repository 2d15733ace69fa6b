"""Test access to etcd over its JSON gateway, bypassing the API server."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localcluster.controlplane.controlplane import ControlPlane

_ANY_KEY = "AA=="
_FLAG = "--listen-client-urls="
_DATA = "--data-dir="


def compact(plane: ControlPlane) -> int:
    """Compact etcd to the current revision and return it. Requests for older revisions then fail as too old."""
    revision = int(_ask(plane, "range", {"key": _ANY_KEY})["header"]["revision"])
    _ask(plane, "compaction", {"revision": revision, "physical": True})
    return revision


def _ask(plane: ControlPlane, what: str, question: dict[str, object]) -> dict[str, Any]:
    address = next(
        flag.removeprefix(_FLAG) for flag in plane.processes["etcd"].argv if flag.startswith(_FLAG)
    )
    request = urllib.request.Request(f"{address}/v3/kv/{what}", json.dumps(question).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        found: dict[str, Any] = json.load(response)
    return found


@contextlib.contextmanager
def away(plane: ControlPlane) -> Iterator[Path]:
    """Stop the API server and etcd for the duration of the block, which gets the folder of etcd's data. A copy of the
    folder is a backup; replacing the folder by a copy restores it."""
    etcd = plane.processes["etcd"]
    [folder] = [flag.removeprefix(_DATA) for flag in etcd.argv if flag.startswith(_DATA)]
    plane.stop_apiserver(graceful=False)
    etcd.terminate(15)
    yield Path(folder)
    etcd.start()
    plane.start_apiserver()
