"""All observations of one cluster, most of them at the same time."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.pods import Pods
from localcluster.workloads.real_pods import RealPods
from localcluster.workloads.simulated_pods import SimulatedPods
from tests.e2e.kubelets.facts import ALONE, FACTS, Fact, Place

Answers = dict[str, str | Exception]


@contextmanager
def namespace_of(cluster: ControlPlane) -> Iterator[Pods]:
    """The pods of a new namespace; it and they are deleted afterwards."""
    namespace, api = f"test-{uuid.uuid4().hex[:8]}", cluster.api
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    with tempfile.TemporaryDirectory(prefix="hvpa-pods-") as control:
        pods: Pods = (
            RealPods(api, cluster.nodes, namespace, Path(control))
            if cluster.real
            else SimulatedPods(api, namespace)
        )
        try:
            yield pods
        finally:
            for pod in api.list("Pod", namespace):
                pods.delete(pod["metadata"]["name"])
            api.delete("Namespace", namespace)


def observe(cluster: ControlPlane, more: Mapping[str, Fact] | None = None) -> Answers:
    """The answer to each question, and to `more`; the error where there is none."""
    together = {name: fact for name, fact in FACTS.items() if name not in ALONE} | dict(more or {})
    answers = side_by_side(cluster, together)
    for name in ALONE:
        answers |= side_by_side(cluster, {name: FACTS[name]})
    return answers


def side_by_side(cluster: ControlPlane, facts: Mapping[str, Fact]) -> Answers:
    """What each of these finds in a namespace of its own, at the same time."""

    def one(fact: Fact) -> str | Exception:
        try:
            with namespace_of(cluster) as pods:
                return fact(Place(cluster.kubeconfig, pods))
        except Exception as error:  # whatever it is, the others go on, and its test shows it
            return error

    with ThreadPoolExecutor(len(facts)) as threads:
        return dict(zip(facts, threads.map(one, facts.values()), strict=True))
