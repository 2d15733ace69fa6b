"""Death at named points, for tests of what survives it; `with_faults` runs an operator with them.

`HVPA_FAULT_POINT=before-patch-deployments` kills the process (SIGKILL) right before it sends its first patch of a
Deployment; `after-patch-deployments:3` when the API server has carried out the third one, before anybody in the process
has seen the response. The points lie in the transport, which every write passes.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping

from hvpa.kube.client.credentials import Credentials
from hvpa.kube.client.transport import REQUEST_TIMEOUT, Body, OnRequest, Transport

VARIABLE = "HVPA_FAULT_POINT"
WRITES = (
    "patch-deployments",
    "patch-statefulsets",
    "patch-daemonsets",
    "patch-replicasets",
    "patch-replicationcontrollers",
    "patch-deployments-scale",
    "patch-statefulsets-scale",
    "patch-replicasets-scale",
    "patch-replicationcontrollers-scale",
    "patch-pods-resize",
    "patch-hvpasizes",
    "create-hvpasizes",
    "patch-hvpas-status",
    "patch-hvpas",
    "apply-horizontalpodautoscalers",
    "apply-verticalpodautoscalers",
    "patch-horizontalpodautoscalers",
    "patch-verticalpodautoscalers",
    "delete-horizontalpodautoscalers",
    "delete-verticalpodautoscalers",
    "create-events",
    "patch-events",
    "create-leases",
    "update-leases",
    "delete-leases",
)
"""Every write that the operator makes: VERB-RESOURCE[-SUBRESOURCE], the verb as the transport gets it. (A `patch` of
an HPA or VPA gives it up; everything else about them is applied.)"""
REVIEWS = ("create-tokenreviews", "create-subjectaccessreviews")
"""Questions that are asked by a POST and change nothing."""
POINTS = tuple(f"{when}-{write}" for write in WRITES for when in ("before", "after"))


class FaultPointError(ValueError):
    """HVPA_FAULT_POINT names no point, or a write has none."""


class FaultyTransport(Transport):
    """A transport that dies at `point`, the `left`-th time that it comes by. A write that is not in the table is
    refused with FaultPointError: no test could reach it."""

    def __init__(self, credentials: Credentials, on_request: OnRequest, point: str, left: int = 1) -> None:
        super().__init__(credentials, on_request)
        self._point = point
        self._left = left

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        timeout: float = REQUEST_TIMEOUT,
        verb: str = "",
    ) -> bytes:
        """See `Transport.request`. `after-` counts writes that succeeded."""
        if method == "GET":
            return await super().request(method, path, query, body, timeout, verb)
        write = write_of(verb or method.lower(), path)
        if write in REVIEWS:
            return await super().request(method, path, query, body, timeout, verb)
        self._pass(f"before-{write}")
        response = await super().request(method, path, query, body, timeout, verb)
        self._pass(f"after-{write}")
        return response

    def _pass(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def write_of(verb: str, path: str) -> str:
    """The entry of WRITES or REVIEWS that a request is. Raises FaultPointError where there is none."""
    parts = [part for part in path.split("/") if part]
    parts = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    write = "-".join([verb, *parts[:1], *parts[2:]])
    if write not in WRITES + REVIEWS:
        raise FaultPointError(f"{verb} {path}: no fault point for {write}")
    return write


def parse_point(setting: str | None) -> tuple[str, int] | None:
    """Point and count of `POINT` or `POINT:N`; None when nothing is set. Raises FaultPointError."""
    if not setting:
        return None
    point, colon, count = setting.partition(":")
    if point not in POINTS or not re.fullmatch("[1-9][0-9]*" if colon else "", count):
        raise FaultPointError(f"{VARIABLE}={setting}: must be one of {', '.join(POINTS)}, with or without :N")
    return point, int(count or "1")


def transport_with_faults(credentials: Credentials, on_request: OnRequest, setting: str | None) -> Transport:
    """A transport that dies where `setting` says; a plain one where that is empty. Raises FaultPointError."""
    parsed = parse_point(setting)
    return (
        Transport(credentials, on_request)
        if parsed is None
        else FaultyTransport(credentials, on_request, *parsed)
    )
