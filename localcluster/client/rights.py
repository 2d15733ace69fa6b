"""Compares the operator's requests to the tests' control planes with its rights in `config/`: read from the audit log
of each control plane when it stops, and judged together at the end of a run."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from localcluster.client.api import Json
from localcluster.client.audit import Request, parse

VARIABLE = "HVPA_E2E_RIGHTS"
"""Environment variable: the folder for the summaries of control planes; without it they write none."""
CONFIG = Path(__file__).resolve().parents[2] / "config"
FOLDERS = ("rbac", "secure-metrics", "sharded", "custom-kinds", "deletion-cost", "hvpa-policy")
ACCOUNT = ("hvpa-system", "hvpa")
"""Namespace and name of the operator's ServiceAccount."""
USER = f"system:serviceaccount:{':'.join(ACCOUNT)}"
PRIVATE = frozenset({"secrets", "configmaps"})
"""Resources that the operator must never request, for any response."""
EXAMPLES = 10
"""Maximum number of requests in a complaint."""

Right = tuple[str, str, str]
"""API group, resource (with subresource), verb."""
Interval = tuple[dt.datetime, dt.datetime]


@dataclass(slots=True)
class Circumstances:
    """The facts about a control plane that are necessary to judge its audit log."""

    operators: set[str] = field(default_factory=lambda: {USER})
    """Users that act as operators: their requests count."""
    starts: list[Interval] = field(default_factory=list)
    """The times when its API server was starting: until it is ready it has no roles and denies everything."""
    meant: set[str] = field(default_factory=set)
    """Namespaces and users of tests in which a denial is intended; such a test adds its own."""

    def excuse(self, request: Request) -> bool:
        """Whether a denied request is no fault."""
        starting = any(begin <= request.time <= end for begin, end in self.starts)
        return starting or bool({request.namespace, request.user} & self.meant)


@dataclass(slots=True)
class Summary:
    """The operator's requests to a control plane, or to all of them."""

    used: Counter[Right] = field(default_factory=Counter)
    denied: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)

    def add(self, other: Summary) -> None:
        """Add another summary."""
        self.used.update(other.used)
        self.denied += other.denied
        self.private += other.private


def expanded(rule: Json) -> set[Right]:
    """The rights that a rule of a role gives (resources only)."""
    return {
        (group, resource, verb)
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def granted() -> set[Right]:
    """The rights that `config/` binds to the operator's account, including those of options."""
    documents = [
        document
        for folder in FOLDERS
        for path in sorted((CONFIG / folder).glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
        if isinstance(document, dict)
    ]
    roles = {
        (document["kind"], document["metadata"]["name"]): document["rules"]
        for document in documents
        if document.get("rules")
    }
    subject = {"kind": "ServiceAccount", "namespace": ACCOUNT[0], "name": ACCOUNT[1]}
    bound = [document["roleRef"] for document in documents if subject in document.get("subjects", ())]
    return {right for role in bound for rule in roles[role["kind"], role["name"]] for right in expanded(rule)}


def used(requests: Iterable[Request]) -> Counter[Right]:
    """The rights that requests needed and had, with the number of requests. (A 404 is a response, too.)"""
    rights: Counter[Right] = Counter()
    for request in requests:
        resource = "/".join(part for part in (request.resource, request.subresource) if part)
        if request.code not in (401, 403):
            rights[request.group, resource, request.verb] += 1
        if request.verb == "patch" and request.code == 201:  # server-side apply of a new object
            rights[request.group, resource, "create"] += 1
    return rights


def summary(log: Path, known: Circumstances) -> Summary:
    """Summarize the requests of operators in an audit log."""
    requests = [request for request in parse(_lines(log, known.operators)) if request.user in known.operators]
    return Summary(
        used(requests),
        [str(request) for request in requests if request.is_forbidden and not known.excuse(request)],
        [str(request) for request in requests if request.resource in PRIVATE],
    )


def _lines(log: Path, users: Set[str]) -> Iterator[bytes]:
    """The lines that name at least one of the users; most lines name others."""
    names = [user.encode() for user in users]
    with log.open("rb") as lines:
        yield from (line for line in lines if any(name in line for name in names))


def leave(folder: Path, log: Path, known: Circumstances) -> None:
    """Write the summary of a stopped control plane to the run's folder; nothing if it has no log."""
    if not (log.exists() and folder.is_dir()):
        return
    totals = summary(log, known)
    content = {
        "used": [[*right, count] for right, count in sorted(totals.used.items())],
        "denied": totals.denied,
        "private": totals.private,
    }
    (folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps(content))


def collect(folder: Path) -> Summary:
    """All summaries of a run together."""
    together = Summary()
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        counts = Counter({(group, resource, verb): count for group, resource, verb, count in content["used"]})
        together.add(Summary(counts, content["denied"], content["private"]))
    return together


def complaints(totals: Summary, allowed: Set[Right], *, whole: bool) -> list[str]:
    """The faults of the roles or of the operator, a line each. Unused rights are a fault only if the `whole` of the
    tests ran."""
    lines = _shown(
        "requests of the operator were denied: config/rbac lacks a right, or they are too many", totals.denied
    )
    lines += _shown(
        "requests of the operator for secrets or configmaps, which it has no use for", totals.private
    )
    if whole:
        unused = [
            " ".join((verb, resource, f"({group or 'core'})"))
            for group, resource, verb in allowed - set(totals.used)
        ]
        lines += _shown(
            "rights in config/ that no end-to-end test used: needless, or not tested", sorted(unused)
        )
    return lines


def _shown(fault: str, cases: list[str]) -> list[str]:
    if not cases:
        return []
    more = [f"  … and {len(cases) - EXAMPLES} more"] if len(cases) > EXAMPLES else []
    return [f"{len(cases)} {fault}:", *(f"  {case}" for case in cases[:EXAMPLES]), *more]
