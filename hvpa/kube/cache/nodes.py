"""The local copy of the nodes, for Hvpas whose sizes the largest node bounds (`spec.vpa.maxAllowed`).

Nodes are watched once such an Hvpa exists. A change of a node enqueues no Hvpa: the next decision sees it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from hvpa.api.objects.read_models import Node, TemplateSpec
from hvpa.core.model import LargestNode
from hvpa.core.workload.nodes import largest_node
from hvpa.kube.cache.store import ALL_NAMESPACES, Store

_AWAITED: Final = LargestNode(problem="the nodes are not listed yet", is_awaited=True)
_NOT_LISTED: Final = LargestNode(problem="the nodes can't be listed")
_NO_RIGHT: Final = "the operator may not read nodes (config/node-room)"
_MOST: Final = 5000
"""Maximum number of results to keep."""
_PATIENCE: Final = 60.0
"""Seconds for which no request rises because the nodes are not listed yet."""
_HOST: Final = "kubernetes.io/hostname"


class Nodes:
    """Nodes, fed by the watch of `store`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.store: Store[Node] = Store((ALL_NAMESPACES,), self._changed)
        self.on_wanted: Callable[[], None] = lambda: None
        """Called when an Hvpa needs nodes for the first time."""
        self._monotonic = monotonic
        self._wanted_at: float | None = None
        self._can_read: bool | None = None
        self._why_not = _NO_RIGHT
        self._alike: list[Node] | None = None
        """One of the present nodes of each kind; None if they have changed."""
        self._results: dict[str, LargestNode] = {}
        """Results for the present nodes, by what a template requires of them."""
        self._last: dict[str, LargestNode] = {}
        """The last known results. They stand while no node matches, and while nodes can't be read."""

    def want(self) -> None:
        """Note that an Hvpa needs nodes."""
        if not self.is_wanted:
            self._wanted_at = self._monotonic()
            self.on_wanted()

    @property
    def is_wanted(self) -> bool:
        """Whether an Hvpa needs nodes."""
        return self._wanted_at is not None

    def set_readable(self, can: bool, why_not: str = _NO_RIGHT) -> None:
        """Note whether the nodes can be read; they are listed by then."""
        self._can_read, self._why_not = can, why_not

    def largest(self, pod: TemplateSpec) -> LargestNode:
        """The largest node that pods of this template may use."""
        self.want()
        required = repr((pod.node_selector, pod.affinity, pod.tolerations))
        result = self._of_present_nodes(required, pod) if self._can_read else None
        if result is not None and not result.problem:
            _keep(self._last, required, result)
            return result
        if (known := self._last.get(required)) is not None:
            return known
        if result is not None:
            return result
        if self._can_read is None:
            waits = self._wanted_at is not None and self._monotonic() - self._wanted_at < _PATIENCE
            return _AWAITED if waits else _NOT_LISTED
        return LargestNode(problem=self._why_not)

    def _of_present_nodes(self, required: str, pod: TemplateSpec) -> LargestNode:
        result = self._results.get(required)
        if result is None:
            if self._alike is None:
                nodes = [node for key in self.store if (node := self.store.get(key)) is not None]
                self._alike = list({_kind(node): node for node in nodes}.values())
            by_name = _HOST in required or "match_fields=[E" in required
            nodes = (
                [node for key in self.store if (node := self.store.get(key)) is not None]
                if by_name
                else self._alike
            )
            result = largest_node(nodes, pod)
            _keep(self._results, required, result)
        return result

    def _changed(self, old: Node | None, new: Node | None, own: bool) -> None:
        if old is None or new is None or _of(old) != _of(new):
            self._results.clear()
            self._alike = None


def _keep(results: dict[str, LargestNode], required: str, result: LargestNode) -> None:
    """Store a result; the oldest one goes if there are too many."""
    results[required] = result
    if len(results) > _MOST:
        del results[next(iter(results))]


def _of(node: Node) -> object:
    return node.metadata.labels, node.spec, node.status


def _kind(node: Node) -> str:
    labels = {key: value for key, value in sorted(node.metadata.labels.items()) if key != _HOST}
    return repr((labels, node.spec, node.status))
