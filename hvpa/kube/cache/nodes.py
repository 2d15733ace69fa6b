"""The local copy of the nodes, for Hvpas whose sizes the largest node bounds (`spec.vpa.maxAllowed`).

Nodes are watched once such an Hvpa exists. A change of a node enqueues no Hvpa: the next decision sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hvpa.api.objects.read_models import Node, TemplateSpec
from hvpa.core.model import LargestNode
from hvpa.core.workload.nodes import largest_node
from hvpa.kube.cache.store import ALL_NAMESPACES, Store

_AWAITED: Final = LargestNode(problem="the nodes are not listed yet", is_awaited=True)
_NO_RIGHT: Final = "the operator may not read nodes (config/node-room)"
_MOST: Final = 1000
"""Maximum number of results to keep."""


class Nodes:
    """Nodes, fed by the watch of `store`."""

    def __init__(self) -> None:
        self.store: Store[Node] = Store((ALL_NAMESPACES,), self._changed)
        self.on_wanted: Callable[[], None] = lambda: None
        """Called when a decision asks for nodes for the first time."""
        self._is_wanted = False
        self._can_read: bool | None = None
        self._why_not = _NO_RIGHT
        self._known: dict[object, LargestNode] = {}
        """Results for the present nodes, by what a template requires of them."""

    def set_readable(self, can: bool, why_not: str = _NO_RIGHT) -> None:
        """Note whether the nodes can be read; they are listed by then."""
        self._can_read, self._why_not = can, why_not

    def largest(self, pod: TemplateSpec) -> LargestNode:
        """The largest node that pods of this template may use."""
        if not self._is_wanted:
            self._is_wanted = True
            self.on_wanted()
        if not self._can_read:
            return _AWAITED if self._can_read is None else LargestNode(problem=self._why_not)
        required = repr((pod.node_selector, pod.affinity, pod.tolerations))
        if required not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            nodes = [node for key in self.store if (node := self.store.get(key)) is not None]
            self._known[required] = largest_node(nodes, pod)
        return self._known[required]

    def _changed(self, old: Node | None, new: Node | None, own: bool) -> None:
        if old is None or new is None or _of(old) != _of(new):
            self._known.clear()


def _of(node: Node) -> object:
    return node.metadata.labels, node.spec, node.status
