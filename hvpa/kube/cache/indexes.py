"""Look-up tables over the stores, to find the objects of an Hvpa without a walk over all objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Generic, TypeVar

from hvpa.api.objects.read_models import Pod, Selector, SelectorRequirement

Token = TypeVar("Token")
Value = TypeVar("Value")
Pair = tuple[str, str, str]
"""Namespace, label key, label value. Key and value are empty for all pods of a namespace."""


class Index(Generic[Token, Value]):
    """Values by token, in insertion order."""

    def __init__(self) -> None:
        self._values: dict[Token, dict[Value, None]] = {}

    def add(self, token: Token, value: Value) -> None:
        """Add `value` under `token`."""
        self._values.setdefault(token, {})[value] = None

    def remove(self, token: Token, value: Value) -> None:
        """Remove `value` from `token`."""
        values = self._values.get(token, {})
        values.pop(value, None)
        if not values:
            self._values.pop(token, None)

    def get(self, token: Token) -> Collection[Value]:
        """All values under `token`; valid until the index next changes."""
        return self._values.get(token, ())

    def __len__(self) -> int:
        return len(self._values)


def _requirement_holds(entry: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    match entry.operator:
        case "In":
            return labels.get(entry.key) in (entry.values or ())
        case "NotIn":
            return labels.get(entry.key) not in (entry.values or ())
        case "Exists":
            return entry.key in labels
        case "DoesNotExist":
            return entry.key not in labels
    return False


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether a workload's selector matches `labels`. An empty selector matches nothing (the API server refuses it)."""
    pairs, expressions = selector.match_labels or {}, selector.match_expressions or ()
    if not pairs and not expressions:
        return False
    return all(labels.get(key) == value for key, value in pairs.items()) and all(
        _requirement_holds(entry, labels) for entry in expressions
    )


def _anchors(namespace: str, selector: Selector) -> list[Pair]:
    """The pairs that every match of the selector must have; at least the namespace."""
    pairs = [(namespace, key, value) for key, value in (selector.match_labels or {}).items()]
    for entry in selector.match_expressions or ():
        if entry.operator == "In" and len(entry.values or ()) == 1:
            pairs += [(namespace, entry.key, value) for value in entry.values or ()]
    return pairs or [(namespace, "", "")]


def _pairs(namespace: str, labels: Mapping[str, str]) -> list[Pair]:
    """The pairs to look up for a pod with these labels, including the pair for selectors without label pairs."""
    return [(namespace, "", ""), *[(namespace, key, value) for key, value in labels.items()]]


class PodIndex:
    """Names of pods by namespace and by label pair. A selector is compared only with the pods that have its rarest
    pair."""

    def __init__(self) -> None:
        self._pods: Index[Pair, str] = Index()
        self._labels: dict[tuple[str, str], Mapping[str, str]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def put(self, pod: Pod) -> None:
        """Add a pod, or replace the pod of the same name."""
        meta = pod.metadata
        if self._labels.get((meta.namespace, meta.name)) != meta.labels:
            self.remove(pod)
            self._labels[meta.namespace, meta.name] = meta.labels
            for pair in _pairs(meta.namespace, meta.labels):
                self._pods.add(pair, meta.name)

    def remove(self, pod: Pod) -> None:
        """Remove the pod of this name."""
        namespace, name = pod.metadata.namespace, pod.metadata.name
        labels = self._labels.pop((namespace, name), None)
        for pair in () if labels is None else _pairs(namespace, labels):
            self._pods.remove(pair, name)

    def select(self, namespace: str, selector: Selector) -> list[str]:
        """The names of the pods in `namespace` that `selector` matches."""
        candidates = min(map(self._pods.get, _anchors(namespace, selector)), key=len)
        return [name for name in candidates if selects(selector, self._labels[namespace, name])]


class SelectorIndex(Generic[Token]):
    """Workloads by pod selector, to find the workload of a pod."""

    def __init__(self) -> None:
        self._selectors: dict[Token, tuple[Selector, Pair]] = {}
        self._tokens: Index[Pair, Token] = Index()

    def __len__(self) -> int:
        return len(self._tokens)

    def put(self, token: Token, namespace: str, selector: Selector) -> None:
        """Register the selector of workload `token`, in place of its previous selector."""
        known = self._selectors.get(token)
        if known is not None and known[0] == selector:
            return
        self.remove(token)
        # The least used pair narrows the search most: `app=web-17` rather than `team=shop`.
        anchor = min(_anchors(namespace, selector), key=lambda pair: len(self._tokens.get(pair)))
        self._selectors[token] = (selector, anchor)
        self._tokens.add(anchor, token)

    def remove(self, token: Token) -> None:
        """Remove the workload."""
        known = self._selectors.pop(token, None)
        if known is not None:
            self._tokens.remove(known[1], token)

    def owners(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Token]:
        """The workloads whose selector matches a pod with `labels`."""
        for pair in _pairs(namespace, labels):
            for token in self._tokens.get(pair):
                if selects(self._selectors[token][0], labels):
                    yield token
