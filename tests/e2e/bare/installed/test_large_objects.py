"""Workloads as large as etcd takes them: a list of all of them, at the start and anew, fits into the operator's memory.
On a control plane of its own: elsewhere, they would fill the audit log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import yaml

from hvpa.api.values.quantity import parse_memory
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.operator.operator import (
    NAMESPACE,
    REPOSITORY,
    SERVICE_ACCOUNT,
    Operator,
    install_crds,
    install_operator_rbac,
)
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import deployment
from localcluster.workloads.scenario import new_namespace

COUNT = 90
BYTES = 1_500_000
"""Of each object; etcd takes 1.5 MiB in a request."""
ANNOTATIONS = 250_000
"""Of these in annotations, of which an object may have 256 KiB. They are decoded; a container's environment is not."""
LISTS = 2
PATH = "/apis/apps/v1/deployments"


def limit() -> int:
    """The memory limit in bytes that `config/manager` sets."""
    manifest = yaml.safe_load((REPOSITORY / "config" / "manager" / "deployment.yaml").read_text())
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    return int(parse_memory(container["resources"]["limits"]["memory"]))


def most(operator: Operator) -> int:
    """The most resident memory that the operator ever had, in bytes."""
    status = Path(f"/proc/{operator.process.pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) * 1024


def large(name: str, namespace: str) -> Json:
    """A Deployment that is hardly smaller than the largest that there can be."""
    made = deployment(name, namespace)
    parts = 10
    made["metadata"]["annotations"] = {
        f"note-{number}": "x" * (ANNOTATIONS // parts) for number in range(parts)
    }
    (container,) = made["spec"]["template"]["spec"]["containers"]
    rest = BYTES - ANNOTATIONS
    container["env"] = [{"name": f"TEXT_{number}", "value": "x" * (rest // parts)} for number in range(parts)]
    return made


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(full=False, settings=AutoscalerSettings(audit=False)) as plane:
        install_crds(plane)
        install_operator_rbac(plane)
        namespace = new_namespace(plane.api, "large")
        with ThreadPoolExecutor(4) as pool:
            manifests = (large(f"app-{number}", namespace) for number in range(COUNT))
            list(pool.map(plane.api.create, manifests))
        yield plane


def has_listed(line: Proxy, times: int) -> bool:
    """Whether the Deployments were listed so often: a watch follows each list."""
    return sum(request.verb == "watch" and request.path == PATH for request in line.answered) >= times


def test_lists_of_the_largest_objects_fit_into_the_memory_limit(plane: ControlPlane, line: Proxy) -> None:
    """Into half of it: the caches of 10,000 Hvpas take the other. Lists that are read at once and held twice would take
    300 MiB."""
    kubeconfig = line.kubeconfig_for(plane.service_account_token(NAMESPACE, SERVICE_ACCOUNT))
    with Operator(plane, kubeconfig) as operator:
        for lists in range(1, LISTS + 1):
            wait_for(partial(has_listed, line, lists), 90, f"{lists} lists", 0.1)
            assert most(operator) < limit() / 2
            line.expire_watches()
        assert operator.process.alive
