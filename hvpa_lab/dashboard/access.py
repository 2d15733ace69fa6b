"""Who may read the page: locally, anyone with the printed address; in a cluster, users whose token may read Hvpas."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence

from aiohttp import web

from hvpa.core.model import GROUP
from hvpa.kube.client.transport import Transport
from hvpa.kube.server.auth import USER, Right, TokenGuard
from hvpa.kube.server.endpoints import Guard, text_response


class OwnToken:
    """Admits the user who started the command, by a token that only the printed address contains.

    Other users of the machine can reach the port as well.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)

    async def __call__(self, request: web.BaseRequest) -> web.Response | None:
        """The refusal of a request without the token; None with the token."""
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            return None
        return text_response(401, "open the address that `hvpa dashboard` has printed: it ends in a token")


def token_guard(transport: Transport, scope: str) -> Guard:
    """A guard that admits users of a cluster by the permissions of their token.

    `scope` is the namespace shown, or ALL_NAMESPACES.
    """

    def needed(request: web.BaseRequest) -> Sequence[Right]:
        assert isinstance(request, web.Request)
        name = request.match_info.get("name")
        if name is None:
            return (_right("list", GROUP, "hvpas", namespace_of(request, scope)),)
        namespace = request.match_info["namespace"]
        return (_right("get", GROUP, "hvpas", namespace, name), _right("list", "", "pods", namespace))

    return TokenGuard(transport, needed=needed)


def owner_of(request: web.BaseRequest) -> str:
    """The owner that a request's stream counts for: the user, or all ServiceAccounts of a namespace.

    A user who may create a ServiceAccount may create many. Empty for the user who started the command.
    """
    user: str = request.get(USER, "")
    return user.rpartition(":")[0] if user.startswith("system:serviceaccount:") else user


def namespace_of(request: web.Request, scope: str) -> str:
    """The namespace of the Hvpas that a request reads; ALL_NAMESPACES for all."""
    return scope or request.query.get("namespace", "")


def _right(verb: str, group: str, resource: str, namespace: str, name: str = "") -> Right:
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    where = f"namespace {namespace}" if namespace else "all namespaces"
    if name:
        attributes["name"] = name
    return Right({"resourceAttributes": attributes}, f"{verb} {resource} in {where}")
