"""The operator's life, against a server that is a Lease and a few lists."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hvpa.cli.run import add_arguments, run_settings
from hvpa.kube.cache.reflector import Reflector
from hvpa.kube.cache.scales import Scales
from hvpa.kube.cache.watches import Watches
from hvpa.kube.client.credentials import Credentials
from hvpa.kube.events import EventRecorder
from hvpa.kube.leases.election import LeaderElector
from hvpa.kube.objects.resources import PODS
from hvpa.operator import garbage
from hvpa.operator.operator import Operator, Parts, StartError
from hvpa.operator.roles import Leader
from hvpa.reconcile.loop import WorkLoop
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
        self.taken = False
        """Whether somebody takes the lease from its holder."""
        self.server = FakeServer(self._handle)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if "/leases" in request.path:
            if request.method == "PUT" and self.taken:
                return status(409, "Conflict")
            return web.json_response(self.server.bodies[-1] if request.method == "PUT" else self._lease())
        if request.query.get("watch") == "true":
            return await Stream().respond(request)
        if request.method == "PATCH":
            return web.json_response(hvpa(2))
        return listing([hvpa(1)] if request.path.endswith("/hvpas") else [], "1")

    def _lease(self) -> dict[str, Any]:
        holder = "" if self.free and not self.taken else "somebody"
        return {
            "metadata": {"name": "hvpa", "namespace": "default", "resourceVersion": "1"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
        }

    def patched(self) -> list[str]:
        return [path for method, path, _ in self.server.requests if method == "PATCH"]


def hvpa(version: int) -> dict[str, Any]:
    metadata = {"name": "h", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"targetRef": {"kind": "Deployment", "name": "web"}}}


def operator(path: Path, credentials: Credentials, *more: str) -> Operator:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    flags = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--lease-duration", "1"]
    settings = run_settings(parser.parse_args(["--kubeconfig", str(path), "--leader-elect", *flags, *more]))
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


async def test_policies_are_followed_if_that_is_wanted(tmp_path: Path) -> None:
    harness = Harness()
    harness.free = True
    async with harness.server.running():
        path = kubeconfig(tmp_path, harness.server.url)
        running = operator(path, await Credentials.load(str(path)), "--policies")
        async with background(running.run()):
            await until(lambda: bool(harness.patched()))
            assert any(path.endswith("/hvpapolicies") for path in harness.server.paths)


async def test_only_a_lost_lease_ends_the_process_and_no_exception_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, begun = Harness(), Counter[str]()
    harness.free = True
    tasks = {
        "watch pods": (Reflector, "_round"),
        "read workloads of custom kinds": (Scales, "run"),
        "compare versions": (Watches, "_compare"),
        "write Events": (EventRecorder, "run"),
        "look after garbage": (garbage, "look_after"),
        "work": (WorkLoop, "_work"),
        "lease hvpa": (LeaderElector, "keep"),
        "work loop": (WorkLoop, "run"),
        "watch": (Watches, "run"),
        "role": (Leader, "run"),
    }

    def break_once(name: str, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def broken(self: Any, *args: Any) -> Any:
            concerned = name != "watch pods" or self.resource is PODS
            if concerned:
                begun[name] += 1
            if concerned and begun[name] == 1:
                raise KeyError(name)
            return await original(self, *args)

        async def without_self() -> None:
            begun[name] += 1
            if begun[name] == 1:
                raise KeyError(name)
            await original()

        return without_self if name == "look after garbage" else broken

    for name, (where, attribute) in tasks.items():
        monkeypatch.setattr(where, attribute, break_once(name, getattr(where, attribute)))
    async with harness.server.running():
        path = kubeconfig(tmp_path, harness.server.url)
        running = operator(path, await Credentials.load(str(path)))
        async with background(running.run()) as task:
            await until(lambda: all(begun[name] >= 2 for name in tasks) and bool(harness.patched()))
            count = running.metrics.registry.get_sample_value
            failures = {name: count("hvpa_task_failures_total", {"task": name}) for name in tasks}
            assert failures == dict.fromkeys(tasks, 1.0)
            assert not task.done()
            harness.taken = True
            await until(task.done)
            assert task.result() == 1
