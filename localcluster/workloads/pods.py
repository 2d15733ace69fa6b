"""Pods with controlled usage, on nodes of any kind, and their resizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.workloads.load import is_ready

MIB = 2**20
Amounts = Mapping[str, str]


class InForce(NamedTuple):
    """The limits that a container runs with: millicores and bytes."""

    cpu: int
    memory: int


class Pods(ABC):
    """The pods of one namespace. Each has one container, `app`."""

    api: KubeApi
    namespace: str

    @abstractmethod
    def use(self, name: str, cpu: int = 0, memory: int = 0, cache: int = 0) -> None:
        """Set the usage of the pods named `name`: millicores, MiB, and MiB of page cache."""

    @abstractmethod
    def begin(
        self, name: str, requests: Amounts, limits: Amounts | None, priority: str, container: Json
    ) -> None:
        """Create a pod; `container` are further fields of its container."""

    @abstractmethod
    def await_used(self, name: str, memory: int) -> None:
        """Wait until a pod uses more than `memory` MiB, page cache included."""

    @abstractmethod
    def in_force(self, name: str) -> InForce:
        """The limits that its container currently runs with, whatever its spec says."""

    def create(
        self,
        name: str,
        requests: Amounts,
        limits: Amounts | None = None,
        *,
        priority: str = "",
        **container: Any,
    ) -> Json:
        """Create a pod, and wait until it is ready."""
        self.begin(name, requests, limits, priority, container)
        return self.until(name, is_ready, "is ready")

    def resize(self, name: str, requests: Amounts | None = None, limits: Amounts | None = None) -> Json:
        """Request other resources for the container."""
        parts = {"requests": requests, "limits": limits}
        resources = {part: dict(amounts) for part, amounts in parts.items() if amounts is not None}
        body = {"spec": {"containers": [{"name": "app", "resources": resources}]}}
        return self.api.patch("Pod", name, self.namespace, body, type="strategic", subresource="resize")

    def get(self, name: str) -> Json:
        return self.api.get("Pod", name, self.namespace)

    def until(self, name: str, test: Callable[[Json], object], expected: str, timeout: float = 60) -> Json:
        """The pod, once it passes the test."""

        def passing() -> Json | None:
            pod = self.get(name)
            return pod if test(pod) else None

        return wait_for(passing, timeout, f"{name} {expected}", 0.05) or {}

    def delete(self, name: str) -> None:
        """Delete it, and wait until it is gone."""
        self.api.delete("Pod", name, self.namespace, grace=0)
        wait_for(lambda: self.api.find("Pod", name, self.namespace) is None, 60, f"{name} is gone", 0.05)
