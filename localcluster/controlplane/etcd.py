"""Operations on etcd that bypass the API server, over etcd's JSON gateway."""

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
    """Delete all revisions except the present revision, which is returned: a request for an older revision fails as too
    old."""
    revision = int(_ask(plane, "range", {"key": _ANY_KEY})["header"]["revision"])
    _ask(plane, "compaction", {"revision": revision, "physical": True})
    return revision


def _ask(plane: ControlPlane, operation: str, question: dict[str, object]) -> dict[str, Any]:
    address = next(
        flag.removeprefix(_FLAG) for flag in plane.processes["etcd"].argv if flag.startswith(_FLAG)
    )
    request = urllib.request.Request(f"{address}/v3/kv/{operation}", json.dumps(question).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        content: dict[str, Any] = json.load(response)
    return content


@contextlib.contextmanager
def away(plane: ControlPlane) -> Iterator[Path]:
    """For the time of the block, the API server and etcd are stopped. The block gets the folder of etcd's data: a copy
    of it is a backup, and a copy in its place restores the backup."""
    etcd = plane.processes["etcd"]
    [folder] = [flag.removeprefix(_DATA) for flag in etcd.argv if flag.startswith(_DATA)]
    plane.stop_apiserver(graceful=False)
    etcd.terminate(15)
    yield Path(folder)
    etcd.start()
    plane.start_apiserver()
