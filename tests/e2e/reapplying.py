"""GitOps tools at work, by the real kubectl: as Argo CD and Flux do, it applies the manifests of workloads again and
again, also those that do not differ from what is there."""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable
from typing import NamedTuple

import yaml

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.cluster import Cluster

EVERY = 2.0
"""Seconds between two rounds."""


class Tool(NamedTuple):
    """How a tool applies. `ignores`: it leaves replicas and resources as they are in the cluster, as Argo CD does with
    `ignoreDifferences` and `RespectIgnoreDifferences=true`: it puts the cluster's values into what it applies."""

    manager: str
    server_side: bool
    ignores: bool = False

    @property
    def flags(self) -> list[str]:
        """The flags of `kubectl apply`. It does without the schemas of the API server, which take it a second."""
        how = ["--server-side", "--force-conflicts"] if self.server_side else ["--openapi-patch=false"]
        return [f"--field-manager={self.manager}", "--validate=false", *how]


ARGO = Tool("argocd-controller", server_side=False)
ARGO_SERVER_SIDE = Tool("argocd-controller", server_side=True)
FLUX = Tool("kustomize-controller", server_side=True)
"""Flux sends what Argo CD sends with `ServerSideApply=true`, under its own name."""
HELM = Tool("helm", server_side=True)
"""Run itself, not by kubectl."""


class Reapplying:
    """One tool applies manifests as long as the block lasts. They are asked for anew in each round, and `after` is
    called when they are applied."""

    def __init__(
        self,
        cluster: Cluster,
        tool: Tool,
        manifests: Callable[[], list[Json]],
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster, self.tool, self.manifests, self.after = cluster, tool, manifests, after
        self.rounds = 0
        self.failure: Exception | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=tool.manager, daemon=True)

    def __enter__(self) -> Reapplying:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)
        if self.failure is not None:
            raise self.failure

    def go_on(self, rounds: int) -> None:
        """Wait until so many further rounds have begun and ended."""
        until = self.rounds + rounds + 1
        wait_for(
            lambda: self.failure is not None or self.rounds >= until, 120, f"{rounds} rounds", interval=0.1
        )

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            try:
                self.apply()
            except Exception as failure:
                self.failure = failure
                return
            self.rounds += 1

    def apply(self) -> None:
        """One round."""
        text = yaml.safe_dump_all(self.manifests())
        done = self.cluster.kubectl("apply", *self.tool.flags, "-f", "-", input=text, check=False)
        assert not done.returncode or (self.tool.ignores and _refusals(done.stderr) == {True}), done.stderr
        self.after()


def _refusals(complaint: str) -> set[bool]:
    """Whether each refusal is one since the object has changed. (Server-side, kubectl takes it for a conflict of field
    managers, and leaves out the reason; of several refusals, it leaves out "error:" too.)"""
    starts = re.findall(
        r"^(?:Error from server \((\w+)\)|(?:error: )?(Operation cannot be fulfilled)|error: )",
        complaint,
        re.MULTILINE,
    )
    return {reason == "Conflict" or bool(outdated) for reason, outdated in starts}


def in_git(workload: Json, *, replicas: bool, resources: bool) -> Json:
    """A workload's manifest as it is in Git: with or without these fields, and with one that only Git sets."""
    manifest = copy.deepcopy(workload)
    manifest["metadata"]["labels"] = {"from": "git"}
    if not replicas:
        del manifest["spec"]["replicas"]
    if not resources:
        for container in manifest["spec"]["template"]["spec"]["containers"]:
            del container["resources"]
    return manifest


def with_ignored(manifest: Json, live: Json) -> Json:
    """What is applied of a manifest where replicas and resources are ignored: with those of the cluster. A step that
    comes after this look is not undone: the write is refused, and made in the next round."""
    wanted = copy.deepcopy(manifest)
    wanted["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    wanted["spec"]["replicas"] = live["spec"]["replicas"]
    (container,), (present,) = (
        workload["spec"]["template"]["spec"]["containers"] for workload in (wanted, live)
    )
    container["resources"] = present["resources"]
    return wanted
