"""The operator's life, against a server that is a Lease and a few lists."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.cli.run import add_arguments, run_settings
from hvpa.kube.client.credentials import Credentials
from hvpa.operator.operator import Operator, Parts, StartError
from tests.unit.kube.fake_server import (
    FakeServer,
    Stream,
    background,
    kubeconfig,
    listing,
    respond,
    status,
    until,
)


class Harness:
    """One Hvpa, and a Lease that somebody else holds until `free`."""

    def __init__(self) -> None:
        self.free = False
        self.server = FakeServer(self._handle)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if "/leases" in request.path:
            return web.json_response(self.server.bodies[-1] if request.method == "PUT" else self._lease())
        if request.query.get("watch") == "true":
            return await Stream().respond(request)
        if request.method == "PATCH":
            return web.json_response(hvpa(2))
        return listing([hvpa(1)] if request.path.endswith("/hvpas") else [], "1")

    def _lease(self) -> dict[str, Any]:
        holder = "" if self.free else "somebody"
        return {
            "metadata": {"name": "hvpa", "namespace": "default", "resourceVersion": "1"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
        }

    def patched(self) -> list[str]:
        return [path for method, path, _ in self.server.requests if method == "PATCH"]


def hvpa(version: int) -> dict[str, Any]:
    metadata = {"name": "h", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"targetRef": {"kind": "Deployment", "name": "web"}}}


def operator(path: Path, credentials: Credentials) -> Operator:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    flags = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--lease-duration", "1"]
    settings = run_settings(parser.parse_args(["--kubeconfig", str(path), "--leader-elect", *flags]))
    return Operator(settings, credentials, Parts())


async def test_a_cluster_with_another_version_of_hvpas_is_named_at_the_start(tmp_path: Path) -> None:
    answers = {
        "/apis/autoscaling.k8s.io": {"versions": [{"version": "v1beta1"}]},
        "/apis/autoscaling.k8s.io/v1beta1": {"resources": [{"name": "hvpas"}]},
    }

    async def handle(request: web.Request) -> web.StreamResponse:
        return respond(answers.get(request.path, status(404, "NotFound", "no such thing")))

    server = FakeServer(handle)
    async with server.running():
        path = kubeconfig(tmp_path, server.url)
        with pytest.raises(StartError, match="serves Hvpas as v1beta1 only") as error:
            await operator(path, await Credentials.load(str(path))).run()
        assert error.value.code == 1
        answers.clear()
        with pytest.raises(StartError, match="`make install` or"):
            await operator(path, await Credentials.load(str(path))).run()
    assert set(server.methods) == {"GET"}


async def test_nothing_waits_for_a_worker_before_the_lease_is_ours(tmp_path: Path) -> None:
    harness = Harness()
    async with harness.server.running():
        path = kubeconfig(tmp_path, harness.server.url)
        standing_by = operator(path, await Credentials.load(str(path)))
        async with background(standing_by.run()):
            await until(lambda: any("/leases" in path for path in harness.server.paths))
            assert standing_by.metrics.registry.get_sample_value("hvpa_queue_depth") == 0
            assert harness.patched() == []
            harness.free = True
            await until(lambda: bool(harness.patched()))
    assert harness.patched() == ["/apis/autoscaling.k8s.io/v1alpha1/namespaces/ns/hvpas/h/status"]
