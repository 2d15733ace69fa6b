"""The dashboard beside the operators of a soak, served as in a cluster, and who asks it: a hostile user who opens
streams and reads none of them, and a well-behaved one who must be answered."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import shutil
import ssl
import urllib.error
import urllib.request
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from socket import create_connection
from typing import Final

import yaml

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, REPOSITORY
from localcluster.process import Process, free_port
from tests.e2e.bare.accounts import rule
from tests.e2e.soak.audit_trail import REVIEWS, Write, credential_of
from tests.e2e.soak.growth import Size, size_of
from tests.e2e.soak.objects import Place
from tools.browser.dashboard_page import dashboard

STREAMS: Final = 400
"""Connections over TLS that the hostile user keeps open: more than the dashboard serves at once."""
OPENED: Final = 10
"""Connections that the hostile user opens in one round; the oldest are given up for them."""
PATIENCE: Final = 5.0
"""Seconds that a user waits for a response, or for its next line."""
EXCUSED: Final = frozenset({403, 404, 503})
"""Answers that say nothing of the dashboard: the API server is away or just starts, the Hvpa was deleted."""
TOLD: Final = 5
"""Problems of one sort that are told."""
HOST: Final = "127.0.0.1"
PAGE: Final = "/"
TABLE: Final = "/api/hvpas"
ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:hvpa-dashboard"
_READER, _HOSTILE = "soak-reader", "soak-streams"
"""Namespaces of the two users, who may both read everything."""
_RBAC: Final = "rbac.authorization.k8s.io"


class Dashboard:
    """`hvpa dashboard` at work, and its well-behaved user. `credential` is the dashboard's own in the audit log;
    `reader` and `hostile` are tokens of users."""

    process: Final = "dashboard"

    def __init__(
        self, child: Process, port: int, trust: ssl.SSLContext, credential: str, reader: str, hostile: str
    ) -> None:
        self.port, self.trust, self.credential, self.hostile = port, trust, credential, hostile
        self.answers: Counter[str] = Counter()
        """What the well-behaved user got, by what was asked for."""
        self._child = child
        self._reader = reader
        self._asked = itertools.cycle([("", "")])
        self._writes: list[str] = []
        self._faults: list[str] = []

    def show(self, places: Sequence[Place]) -> None:
        """The Hvpas that the well-behaved user looks at, one after the other."""
        self._asked = itertools.cycle(places)

    @property
    def log(self) -> Path:
        """Its log."""
        return self._child.log

    def addresses(self) -> list[str]:
        """The port that it listens at."""
        return [f"{HOST}:{self.port}"]

    def probe(self) -> bool | None:
        """Whether the page, the stream of all Hvpas and that of the next one are answered; None if that was not the
        dashboard's to answer."""
        namespace, name = next(self._asked)
        asked = {"page": PAGE, "all": TABLE, "one": f"{TABLE}/{namespace}/{name}"}
        statuses = {what: self._ask(path) for what, path in asked.items()}
        self.answers.update(f"{what} {status or 'unanswered'}" for what, status in statuses.items())
        if statuses["page"] != 200 or not {statuses["all"], statuses["one"]} <= {200, *EXCUSED}:
            return False
        return True if statuses["all"] == statuses["one"] == 200 else None

    def note(self, write: Write) -> None:
        """It writes nothing but reviews of its users' tokens."""
        if write.credential == self.credential and write.resource not in REVIEWS:
            self._writes.append(f"dashboard sent {write}")

    def size(self) -> Size | None:
        """What its process needs; None where it has ended."""
        return size_of(self._child.pid)

    def problems(self) -> list[str]:
        """What it wrote, what it failed at, and how it ended if it did."""
        ended = (
            []
            if self._child.alive
            else [f"the dashboard ended with {self._child.returncode}:\n{self._child.tail()}"]
        )
        return ended + self._writes[:TOLD] + self._faults[:TOLD]

    def _ask(self, path: str) -> int:
        """Status of a response whose first lines came, the first two events' of a stream; 0 without one."""
        request = urllib.request.Request(
            f"https://{HOST}:{self.port}{path}", headers={"Authorization": f"Bearer {self._reader}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=self.trust) as response:
                for _ in range(1 if path == PAGE else 5):
                    line = response.readline()
                    if not line:
                        return 0
                    if b'"internal error' in line:
                        self._faults.append(f"the dashboard shows at {path}: {line.decode()[:500]}")
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return 503 if b"the API server did not review" in error.read() else error.code
        except (OSError, http.client.HTTPException):
            return 0


class Streams:
    """Keeps hundreds of connections over TLS open: idle ones, and requests whose responses are never read."""

    def __init__(self, served: Dashboard, places: Sequence[Place]) -> None:
        """`places` are Hvpas that exist."""
        self.done: Counter[str] = Counter()
        """How connections that were given up had been answered, by form."""
        self._served = served
        self._forms = itertools.cycle(_forms(places))
        self._lines: deque[tuple[str, ssl.SSLSocket]] = deque()

    def round(self) -> None:
        """Open further connections, and give up the oldest."""
        for form, path in itertools.islice(self._forms, OPENED):
            try:
                self._lines.append((form, self._open(path)))
            except OSError:
                self.done[f"{form} not opened"] += 1
        while len(self._lines) > STREAMS:
            self._give_up()

    def end(self) -> None:
        """Close all connections."""
        while self._lines:
            self._give_up()

    def problems(self) -> list[str]:
        """Whether it was no burden at all."""
        is_burden = any(self.done[f"{form} 200"] for form in ("one", "all"))
        return [] if is_burden else [f"no hostile stream was answered: {dict(self.done)}"]

    def _open(self, path: str) -> ssl.SSLSocket:
        """A connection with a request for `path`, idle if that is empty. Raises OSError."""
        plain = create_connection((HOST, self._served.port), timeout=PATIENCE)
        try:
            line = self._served.trust.wrap_socket(plain, server_hostname=HOST)
        except OSError:
            plain.close()
            raise
        if path:
            token = self._served.hostile
            head = f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n\r\n"
            try:
                line.sendall(head.encode())
            except OSError:
                line.close()
                raise
        return line

    def _give_up(self) -> None:
        form, line = self._lines.popleft()
        line.settimeout(0)
        try:
            status = line.recv(12)[9:].decode()
        except ssl.SSLWantReadError:
            status = ""
        except OSError:
            status = "closed"
        self.done[f"{form} {status or 'unanswered'}"] += 1
        line.close()


def _forms(places: Sequence[Place]) -> Iterator[tuple[str, str]]:
    """What hostile users ask for, by form: each of the Hvpas, with something of every other form."""
    odd = itertools.cycle(
        ("..%2f..%2fsecrets", "%2e%2e/x", "a/../../healthz", "a/b%3Fwatch=true", "a/%00", "a/b/what-if")
    )
    tables = itertools.cycle(("", "?namespace=soak-hostile", "?namespace=../x", "?namespace=a%0d%0ab"))
    for namespace, name in places:
        yield "one", f"{TABLE}/{namespace}/{name}"
        yield "all", TABLE + next(tables)
        yield "absent", f"{TABLE}/{namespace}/no-{name}"
        yield "odd path", f"{TABLE}/{next(odd)}"
        yield "idle", ""


@contextlib.contextmanager
def served(plane: ControlPlane) -> Iterator[Dashboard]:
    """The dashboard with the rights of `config/dashboard`, over HTTPS, and its users. It is killed at the end."""
    rendered = plane.kubectl("kustomize", REPOSITORY / "config/dashboard").stdout
    plane.apply_all([document for document in yaml.safe_load_all(rendered) if document])
    for path in sorted((REPOSITORY / "config/custom-kinds").glob("dashboard_*.yaml")):
        plane.apply_all([yaml.safe_load(path.read_text())])
    plane.apply_all(_users())
    plane.await_right(ACCOUNT, rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]))
    for user in (_READER, _HOSTILE):
        plane.await_right(f"system:serviceaccount:{user}:{user}", rule("", ["pods"], ["list"]))
    kubeconfig = plane.service_account_kubeconfig(NAMESPACE, "hvpa-dashboard", 7200)
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    folder, pair = plane.folder / "dashboard", plane.server_certificate
    folder.mkdir()
    for source, name in zip(pair, ("tls.crt", "tls.key"), strict=True):
        shutil.copy(source, folder / name)
    port, trust = free_port(), ssl.create_default_context(cafile=plane.authority)
    tokens = [plane.service_account_token(account, account, 7200) for account in (_READER, _HOSTILE)]
    flags = ("-A", "--secure-bind-address", f"{HOST}:{port}", "--cert-dir", str(folder))
    with dashboard(kubeconfig, plane.logs, *flags) as (child, _):
        yield Dashboard(child, port, trust, credential_of(token), *tokens)


def _users() -> list[Json]:
    """Two ServiceAccounts that may look at every Hvpa."""
    names = (_READER, _HOSTILE)
    rules = [rule("autoscaling.k8s.io", ["hvpas"], ["get", "list"]), rule("", ["pods"], ["list"])]
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _READER}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": name} for name in names]
    made: list[Json] = []
    for name in names:
        made += [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": name}},
        ]
    rbac = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": _READER}}
    return [
        *made,
        {**rbac, "kind": "ClusterRole", "rules": rules},
        {**rbac, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects},
    ]
