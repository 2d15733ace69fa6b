"""What the operator asked for while control planes of the tests ran, and what `config/` allows it: taken from the audit
log of each when it stops, and judged over all of them at the end of a run."""

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
"""Environment variable: the folder that control planes leave their summaries in; none is left without it."""
CONFIG = Path(__file__).resolve().parents[2] / "config"
FOLDERS = ("rbac", "secure-metrics", "sharded", "custom-kinds")
ACCOUNT = ("hvpa-system", "hvpa")
"""Namespace and name of the operator's ServiceAccount."""
USER = f"system:serviceaccount:{':'.join(ACCOUNT)}"
PRIVATE = frozenset({"secrets", "configmaps"})
"""What the operator has no business with, whatever the response."""
EXAMPLES = 10
"""Requests that a complaint shows."""

Right = tuple[str, str, str]
"""API group, resource (with subresource), verb."""
Interval = tuple[dt.datetime, dt.datetime]


@dataclass(slots=True)
class Circumstances:
    """What is to be known of a control plane to judge its audit log."""

    operators: set[str] = field(default_factory=lambda: {USER})
    """Users that act as operators: their requests count."""
    starts: list[Interval] = field(default_factory=list)
    """When its API server was starting: until it is ready it knows no roles and denies everything."""
    meant: set[str] = field(default_factory=set)
    """Namespaces and users of tests that mean to be denied something; such a test adds its own."""

    def excuse(self, request: Request) -> bool:
        """Whether a denied request is none to complain of."""
        starting = any(begin <= request.time <= end for begin, end in self.starts)
        return starting or bool({request.namespace, request.user} & self.meant)


@dataclass(slots=True)
class Summary:
    """What one control plane, or all of them together, heard from the operator."""

    used: Counter[Right] = field(default_factory=Counter)
    denied: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)

    def add(self, other: Summary) -> None:
        """Take another one in."""
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
    """The rights that `config/` binds to the operator's account, those of options included."""
    documents = [
        document
        for folder in FOLDERS
        for path in sorted((CONFIG / folder).glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
        if isinstance(document, dict)
    ]
    roles = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in documents if one.get("rules")}
    subject = {"kind": "ServiceAccount", "namespace": ACCOUNT[0], "name": ACCOUNT[1]}
    bound = [one["roleRef"] for one in documents if subject in one.get("subjects", ())]
    return {right for role in bound for rule in roles[role["kind"], role["name"]] for right in expanded(rule)}


def used(requests: Iterable[Request]) -> Counter[Right]:
    """The rights that requests needed and had, and how often. (A 404 is a response, too.)"""
    rights: Counter[Right] = Counter()
    for one in requests:
        resource = "/".join(part for part in (one.resource, one.subresource) if part)
        if one.code not in (401, 403):
            rights[one.group, resource, one.verb] += 1
        if one.verb == "patch" and one.code == 201:  # server-side apply of what was not there
            rights[one.group, resource, "create"] += 1
    return rights


def summary(log: Path, known: Circumstances) -> Summary:
    """What an audit log says of operators."""
    requests = [one for one in parse(_lines(log, known.operators)) if one.user in known.operators]
    return Summary(
        used(requests),
        [str(one) for one in requests if one.is_forbidden and not known.excuse(one)],
        [str(one) for one in requests if one.resource in PRIVATE],
    )


def _lines(log: Path, users: Set[str]) -> Iterator[bytes]:
    """The lines that name one of them; most name others."""
    names = [user.encode() for user in users]
    with log.open("rb") as lines:
        yield from (line for line in lines if any(name in line for name in names))


def leave(folder: Path, log: Path, known: Circumstances) -> None:
    """Write the summary of a control plane that has stopped into the run's folder; nothing where it has no log."""
    if not (log.exists() and folder.is_dir()):
        return
    found = summary(log, known)
    content = {
        "used": [[*right, count] for right, count in sorted(found.used.items())],
        "denied": found.denied,
        "private": found.private,
    }
    (folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps(content))


def collect(folder: Path) -> Summary:
    """All summaries of a run together."""
    together = Summary()
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        counts = Counter({(group, what, verb): count for group, what, verb, count in content["used"]})
        together.add(Summary(counts, content["denied"], content["private"]))
    return together


def complaints(found: Summary, allowed: Set[Right], *, whole: bool) -> list[str]:
    """What is wrong with the roles or with the operator, a line each. Rights that were not used are a fault only when
    the `whole` of the tests ran."""
    lines = _shown(
        "requests of the operator were denied: config/rbac lacks a right, or they are too many", found.denied
    )
    lines += _shown(
        "requests of the operator for secrets or configmaps, which it has no use for", found.private
    )
    if whole:
        unused = [
            " ".join((verb, what, f"({group or 'core'})")) for group, what, verb in allowed - set(found.used)
        ]
        lines += _shown(
            "rights in config/ that no end-to-end test used: needless, or not tested", sorted(unused)
        )
    return lines


def _shown(what: str, cases: list[str]) -> list[str]:
    if not cases:
        return []
    more = [f"  … and {len(cases) - EXAMPLES} more"] if len(cases) > EXAMPLES else []
    return [f"{len(cases)} {what}:", *(f"  {case}" for case in cases[:EXAMPLES]), *more]
