"""Watches of the API server, on the standard library."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from localcluster.client.api import Json, read_kubeconfig

_SLACK_SECONDS = 30
"""How much later than the server the client gives up a watch."""


def watch(kubeconfig: Path, path: str, version: str, seconds: int, selector: str = "") -> Iterator[Json]:
    """Yields the events of the objects under a path from a resource version on, until the server ends the
    watch: after `seconds`, or when it stops. `selector` is a field selector. Raises `OSError` or
    `http.client.HTTPException` if the connection breaks."""
    credentials = read_kubeconfig(kubeconfig)
    url = urlsplit(credentials.server)
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": seconds}
    if selector:
        query["fieldSelector"] = selector
    connection = http.client.HTTPSConnection(
        url.hostname or "", url.port, context=credentials.tls, timeout=seconds + _SLACK_SECONDS
    )
    with closing(connection):
        headers = {"Authorization": f"Bearer {credentials.token}"} if credentials.token else {}
        connection.request("GET", f"{path}?{urlencode(query)}", headers=headers)
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            raise OSError(f"watch of {path}: {response.status} {response.reason}")
        while line := response.readline():
            yield json.loads(line)
