"""Programs for several runtimes, as pods of real nodes: each serves by HTTP what its runtime makes of the container's
limits."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from localcluster.client.api import Json
from localcluster.node.config import IMAGE as GO_IMAGE
from localcluster.process import free_port
from localcluster.workloads.real_pods import RealPods

IMAGE: Final = "hvpa.test/runtimes:1"
"""The image with Java, Node and Python; `tools/image/runtimes.py` builds it."""
_PROGRAMS: Final = Path(__file__).resolve().parents[1] / "programs/runtimes"
_SOURCES: Final = {"java": "Service.java", "node": "service.js", "python3.11": "service.py"}
_ADDRESS: Final = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def java(pods: RealPods, *options: str, cpu_seconds: float = 0, env: Sequence[Json] = ()) -> Json:
    """A JVM with these options, as arguments for `RealPods.create`, `spec` and `deploy`. It is ready when it serves
    HTTP. Its start takes about two seconds of CPU (mostly the compiler's), and then `cpu_seconds` on one core."""
    return _interpreted(pods, ["java", *options], env, str(cpu_seconds))


def node(pods: RealPods, *options: str, env: Sequence[Json] = ()) -> Json:
    """Node with these options, as `java`."""
    return _interpreted(pods, ["node", *options], env)


def python(pods: RealPods, env: Sequence[Json] = ()) -> Json:
    """Python, as `java`."""
    return _interpreted(pods, ["python3.11"], env)


def go(env: Sequence[Json] = ()) -> Json:
    """A Go program, as `java`."""
    port = free_port()
    return _served(GO_IMAGE, ["/bin/web", f"--listen=$(POD_IP):{port}"], port, env)


def limits(pod: Json) -> dict[str, Any]:
    """What the runtime of a pod makes of its limits: `cpus`, `memory` in bytes, and more. Raises `OSError` if the pod
    does not serve yet."""
    (port,) = pod["spec"]["containers"][0]["ports"]
    connection = http.client.HTTPConnection(pod["status"]["podIP"], port["containerPort"], timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/limits")
        found: dict[str, Any] = json.load(connection.getresponse())
        return found


def _interpreted(pods: RealPods, command: Sequence[str], env: Sequence[Json], *arguments: str) -> Json:
    port, source = free_port(), _SOURCES[command[0]]
    shutil.copy(_PROGRAMS / source, pods.control)
    return _served(IMAGE, [*command, f"/ctl/{source}", "$(POD_IP)", str(port), *arguments], port, env)


def _served(image: str, command: Sequence[str], port: int, env: Sequence[Json]) -> Json:
    return {
        "own_address": True,
        "image": image,
        "command": command,
        "env": [_ADDRESS, *env],
        "ports": [{"containerPort": port}],
        "readinessProbe": {
            "httpGet": {"path": "/limits", "port": port},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
        },
    }
