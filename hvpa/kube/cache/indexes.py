"""Look-up tables over the stores, so that an Hvpa's own objects are found without walking over everybody's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Generic, TypeVar

from hvpa.api.objects.read_models import Pod, Selector, SelectorRequirement

Token = TypeVar("Token")
Pair = tuple[str, str, str]
"""Namespace, label key, label value."""
Labels = tuple[tuple[str, str], ...]

GENERATED_LABELS = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    }
)
"""Labels that workload controllers put on pods: they differ where the user's labels don't."""


class Index(Generic[Token]):
    """Names by token, in the order in which they came."""

    def __init__(self) -> None:
        self._names: dict[Token, dict[str, None]] = {}

    def add(self, token: Token, name: str) -> None:
        """Put `name` under `token`."""
        self._names.setdefault(token, {})[name] = None

    def remove(self, token: Token, name: str) -> None:
        """Take `name` away from `token`."""
        names = self._names.get(token, {})
        names.pop(name, None)
        if not names:
            self._names.pop(token, None)

    def get(self, token: Token) -> Collection[str]:
        """All names under `token`. Good until the next change of the index."""
        return self._names.get(token, ())

    def __len__(self) -> int:
        return len(self._names)


def _requirement_holds(entry: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    values = entry.values or ()
    match entry.operator:
        case "In":
            return entry.key in labels and labels[entry.key] in values
        case "NotIn":
            return entry.key not in labels or labels[entry.key] not in values
        case "Exists":
            return entry.key in labels
        case "DoesNotExist":
            return entry.key not in labels
    return False


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether a workload's selector matches `labels`. An empty one matches nothing (the API server refuses it)."""
    pairs, expressions = selector.match_labels or {}, selector.match_expressions or ()
    if not pairs and not expressions:
        return False
    return all(labels.get(key) == value for key, value in pairs.items()) and all(
        _requirement_holds(entry, labels) for entry in expressions
    )


def _anchors(selector: Selector) -> list[tuple[str, str]]:
    """Label pairs that everything which the selector matches must have."""
    pairs = [
        (key, value) for key, value in (selector.match_labels or {}).items() if key not in GENERATED_LABELS
    ]
    for entry in selector.match_expressions or ():
        if entry.operator == "In" and len(entry.values or ()) == 1 and entry.key not in GENERATED_LABELS:
            pairs.append((entry.key, next(iter(entry.values or [""]))))
    return pairs


class PodIndex:
    """Pods by namespace and labels. Pods with the same labels (generated ones aside) are one group, so that a selector
    is compared with few groups instead of many pods."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, Labels], dict[str, Pod]] = {}
        self._by_pair: dict[Pair, set[Labels]] = {}
        self._by_namespace: dict[str, set[Labels]] = {}

    def put(self, pod: Pod) -> None:
        """Add a pod, or replace the one of the same name and labels."""
        namespace, labels = pod.metadata.namespace, _own_labels(pod)
        group = self._groups.get((namespace, labels))
        if group is None:
            group = self._groups[namespace, labels] = {}
            self._by_namespace.setdefault(namespace, set()).add(labels)
            for key, value in labels:
                self._by_pair.setdefault((namespace, key, value), set()).add(labels)
        group[pod.metadata.name] = pod

    def remove(self, pod: Pod) -> None:
        """Remove a pod that was put with these labels."""
        namespace, labels = pod.metadata.namespace, _own_labels(pod)
        group = self._groups.get((namespace, labels))
        if group is None or group.pop(pod.metadata.name, None) is None or group:
            return
        del self._groups[namespace, labels]
        _discard(self._by_namespace, namespace, labels)
        for key, value in labels:
            _discard(self._by_pair, (namespace, key, value), labels)

    def select(self, namespace: str, selector: Selector) -> Iterator[Pod]:
        """The pods of `namespace` that `selector` matches."""
        nothing: set[Labels] = set()
        candidates = min(
            (self._by_pair.get((namespace, key, value), nothing) for key, value in _anchors(selector)),
            key=len,
            default=self._by_namespace.get(namespace, nothing),
        )
        by_generated = _uses_generated(selector)
        for labels in candidates:
            group = self._groups[namespace, labels]
            if by_generated:
                yield from (pod for pod in group.values() if selects(selector, pod.metadata.labels))
            elif selects(selector, dict(labels)):
                yield from group.values()


class SelectorIndex(Generic[Token]):
    """Workloads by their pod selector: whose pod is this?"""

    def __init__(self) -> None:
        self._selectors: dict[Token, tuple[str, Selector, Pair | None]] = {}
        self._by_pair: dict[Pair, set[Token]] = {}
        self._unanchored: dict[str, set[Token]] = {}

    def put(self, token: Token, namespace: str, selector: Selector) -> None:
        """Register the selector of workload `token`, instead of the one that it had."""
        known = self._selectors.get(token)
        if known is not None:
            if known[1] == selector:
                return
            self.remove(token)
        pairs = [(namespace, key, value) for key, value in _anchors(selector)]
        # The least used pair says most: `app=web-17` rather than `team=shop`.
        anchor = min(pairs, key=lambda pair: len(self._by_pair.get(pair, ())), default=None)
        self._selectors[token] = (namespace, selector, anchor)
        if anchor is None:
            self._unanchored.setdefault(namespace, set()).add(token)
        else:
            self._by_pair.setdefault(anchor, set()).add(token)

    def remove(self, token: Token) -> None:
        """Forget the workload."""
        known = self._selectors.pop(token, None)
        if known is None:
            return
        namespace, _, anchor = known
        if anchor is None:
            _discard(self._unanchored, namespace, token)
        else:
            _discard(self._by_pair, anchor, token)

    def owners(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Token]:
        """The workloads whose selector matches a pod with `labels`."""
        for token in self._unanchored.get(namespace, ()):
            if selects(self._selectors[token][1], labels):
                yield token
        for key, value in labels.items():
            for token in self._by_pair.get((namespace, key, value), ()):
                if selects(self._selectors[token][1], labels):
                    yield token


Bucket = TypeVar("Bucket")
Member = TypeVar("Member")


def _discard(table: dict[Bucket, set[Member]], bucket: Bucket, member: Member) -> None:
    members = table.get(bucket)
    if members is not None:
        members.discard(member)
        if not members:
            del table[bucket]


def _own_labels(pod: Pod) -> Labels:
    return tuple(sorted(pair for pair in pod.metadata.labels.items() if pair[0] not in GENERATED_LABELS))


def _uses_generated(selector: Selector) -> bool:
    keys = [*(selector.match_labels or {}), *(entry.key for entry in selector.match_expressions or ())]
    return any(key in GENERATED_LABELS for key in keys)
