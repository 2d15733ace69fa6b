"""Nodes, as the local copy holds them."""

from __future__ import annotations

import json

import pytest

from hvpa.api.objects.read_models import (
    Affinity,
    Expression,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    TemplateSpec,
)
from hvpa.core.model import LargestNode
from hvpa.kube.cache import nodes as cache
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.nodes import Nodes
from hvpa.kube.cache.store import ALL_NAMESPACES
from hvpa.kube.objects.resources import HVPAS, NODES
from hvpa.reconcile.ports import Key

POD = TemplateSpec()


def node(name: str = "a", cpu: str = "4", version: str = "1", ready: str = "True") -> Node:
    """As a kubelet reports it."""
    manifest = {
        "metadata": {
            "name": name,
            "resourceVersion": version,
            "labels": {"zone": "a"},
            "annotations": {"x": "y"},
        },
        "spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    return NODES.decode(json.dumps(manifest).encode())


def largest(cpu: int) -> LargestNode:
    return LargestNode({"cpu": cpu, "memory": 2**30})


def test_only_what_bounds_pods_is_kept() -> None:
    kept = node()
    assert (kept.metadata.annotations, kept.status.allocatable) == ({}, {"cpu": "4", "memory": "1Gi"})


def test_the_largest_node_is_that_of_the_present_nodes() -> None:
    nodes = Nodes()
    nodes.set_readable(True)
    assert nodes.largest(POD).problem == "there is no node that the pods may use"
    nodes.store.put(node())
    first = nodes.largest(POD)
    assert first == largest(4000)
    nodes.store.put(node(version="2", ready="Unknown"))
    assert nodes.largest(POD) is first
    nodes.store.put(node("b", cpu="8", version="3"))
    nodes.store.put(node("c"))
    assert nodes.largest(POD) == largest(8000)
    nodes.store.delete(Key("", "b"))
    assert nodes.largest(POD) == largest(4000)


def test_a_pod_may_name_its_node() -> None:
    nodes = Nodes()
    nodes.set_readable(True)
    nodes.store.put(node())
    nodes.store.put(node("b"))
    terms = [NodeSelectorTerm(match_fields=[Expression("metadata.name", "In", ["a"])])]
    by_name = TemplateSpec(affinity=Affinity(NodeAffinity(NodeSelector(terms))))
    assert nodes.largest(by_name) == largest(4000)


def test_the_last_known_bound_stands_while_nodes_are_gone_or_cant_be_read() -> None:
    nodes = Nodes()
    nodes.set_readable(True)
    nodes.store.put(node())
    assert nodes.largest(POD) == largest(4000)
    nodes.store.delete(Key("", "a"))
    assert nodes.largest(POD) == largest(4000)
    nodes.set_readable(False)
    assert nodes.largest(POD) == largest(4000)


def test_results_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST", 2)
    nodes = Nodes()
    nodes.set_readable(True)
    nodes.store.put(node())
    for zone in "abcabc":
        assert bool(nodes.largest(TemplateSpec(node_selector={"zone": zone})).problem) == (zone != "a")


def test_nodes_are_watched_once_an_hvpa_needs_them() -> None:
    now, asked = [0.0], list[None]()
    nodes = Nodes(lambda: now[0])
    nodes.on_wanted = lambda: asked.append(None)
    assert not asked
    assert nodes.largest(POD).is_awaited
    now[0] = 59.0
    assert nodes.largest(POD).is_awaited
    assert len(asked) == 1
    now[0] = 60.0
    assert nodes.largest(POD) == LargestNode(problem="the nodes can't be listed")
    nodes.set_readable(False)
    assert nodes.largest(POD).problem == "the operator may not read nodes (config/node-room)"


def test_nodes_are_listed_before_the_first_decision() -> None:
    local, asked = LocalCluster((ALL_NAMESPACES,), lambda key: None), list[None]()
    local.nodes.on_wanted = lambda: asked.append(None)
    for name, vpa in (("a", {}), ("b", {"maxAllowed": "LargestNode"})):
        manifest = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"vpa": vpa}}
        local.hvpas.put(HVPAS.decode(json.dumps(manifest).encode()))
        assert len(asked) == (name == "b")


def test_every_hvpa_is_decided_again_once_nodes_can_be_read() -> None:
    woken: list[Key] = []
    local = LocalCluster((ALL_NAMESPACES,), woken.append)
    local.set_served(NODES, True)
    assert not local.nodes.largest(POD).is_awaited
