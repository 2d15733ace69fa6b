"""A proxy in front of the API server whose faults a test controls: requests refused, delayed, held at a
chosen point, watches cut or told that they are too old. It ends TLS itself and passes the caller's bearer
token on, so its clients log in by token (client certificates end here)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import ssl
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from aiohttp import web

from tests.e2e.world.faults import Fault, Hold, Matcher, Seen, status_body
from tests.e2e.world.kubeconfig import token_user, write_kubeconfig
from tests.e2e.world.process import free_port

Value = TypeVar("Value")

# Headers that belong to one connection (RFC 9110, 7.6.1), and what aiohttp sets itself.
_OF_THE_CONNECTION = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}
)


class _Watch:
    """An open watch that goes through the proxy."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        self.request = request
        self.response = response
        self.expired = asyncio.Event()


class Proxy:
    """Use as a context manager. Faults apply to requests that come after; each counts its hits."""

    def __init__(self, server: str, authority: Path, certificate: Path, key: Path, folder: Path) -> None:
        """`server` is the API server behind, `certificate` and `key` what clients are shown."""
        self._server = server
        self._authority = authority
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate, key)
        self._folder = folder
        self._port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._faults: list[Fault] = []
        self._rejected_tokens: set[str] = set()
        self._watches: set[_Watch] = set()
        self._numbers = itertools.count(1)
        self.seen: list[Seen] = []
        """Every answered request, in order; watches when they begin."""

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._call(self._open())
        return self

    def __exit__(self, *error: object) -> None:
        for fault in self._faults:
            if isinstance(fault, Hold):
                fault.drop()
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def address(self) -> str:
        """What clients connect to."""
        return f"https://127.0.0.1:{self._port}"

    def kubeconfig_for(self, token: str) -> Path:
        """A kubeconfig that goes through the proxy with a bearer token."""
        return self.kubeconfig_with(token_user(token))

    def kubeconfig_with(self, user: dict[str, Any]) -> Path:
        """A kubeconfig that goes through the proxy; `user` is its `user` entry (an exec plugin's, say)."""
        path = self._folder / f"{next(self._numbers)}.kubeconfig"
        return write_kubeconfig(path, self.address, self._authority, user)

    def fail(
        self,
        code: int,
        *,
        times: int | None = 1,
        verb: str | None = None,
        path: str | None = None,
        retry_after: int | None = None,
    ) -> Fault:
        """Answer the next `times` matching requests (None: all, until `remove`) with this code. `verb` is a
        Kubernetes verb (get, list, watch, create, update, patch, delete), `path` a regular expression
        searched in the URL's path; `retry_after` are seconds."""
        return self._add(Fault(Matcher(verb, path), times, code=code, retry_after=retry_after))

    def delay(
        self, seconds: float, *, times: int | None = None, verb: str | None = None, path: str | None = None
    ) -> Fault:
        """Pass matching requests on so much later."""
        return self._add(Fault(Matcher(verb, path), times, seconds=seconds))

    def hold(
        self,
        *,
        verb: str | None = None,
        path: str | None = None,
        answered: bool = False,
        times: int | None = 1,
    ) -> Hold:
        """Stop the next matching request: before it reaches the API server, or with `answered` after it was
        carried out but before its answer reaches the caller. `Hold.wait` tells when one is caught; `release`
        or `drop` it."""
        hold = Hold(Matcher(verb, path), times, answered=answered)
        self._add(hold)
        return hold

    def clear(self) -> None:
        """Take all faults back and let everything that is held go on."""
        for fault in self._faults:
            fault.remove()
            if isinstance(fault, Hold):
                fault.release()
        self._faults = []
        self._rejected_tokens.clear()

    def reject_token(self, token: str) -> None:
        """Answer 401 to this token from now on, as when it has expired."""
        self._rejected_tokens.add(token)

    def cut_watches(self) -> int:
        """Reset the connections of all open watches; how many there were."""
        return self._call(self._cut_watches())

    def expire_watches(self) -> int:
        """End all open watches with the event that says 410 Gone (resource version too old); how many there
        were."""
        return self._call(self._expire_watches())

    @property
    def open_watches(self) -> list[str]:
        """The URLs of the watches that are open."""
        return [str(watch.request.rel_url) for watch in list(self._watches)]

    @contextlib.contextmanager
    def refused(self) -> Iterator[None]:
        """For the time of the block, reset all connections and refuse new ones."""
        self._call(self._refuse())
        try:
            yield
        finally:
            self._call(self._listen())

    def _add(self, fault: Fault) -> Fault:
        self._faults = [*self._faults, fault]
        return fault

    def _call(self, work: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self) -> None:
        upstream = ssl.create_default_context(cafile=self._authority)
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=upstream, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        application = web.Application(client_max_size=64 * 2**20)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(
            self._runner, "127.0.0.1", self._port, ssl_context=self._tls, reuse_address=True
        )
        await self._site.start()

    async def _refuse(self) -> None:
        await self._site.stop()
        server = self._runner.server
        assert server is not None
        for connection in server.connections:
            if connection.transport is not None:
                connection.transport.abort()

    async def _close(self) -> None:
        await self._refuse()
        await self._runner.cleanup()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self._client.close()
        await asyncio.sleep(0.05)  # aiohttp's TLS connections end in the loop, after their `close`

    async def _cut_watches(self) -> int:
        watches = list(self._watches)
        for watch in watches:
            _reset(watch.request)
        return len(watches)

    async def _expire_watches(self) -> int:
        watches = list(self._watches)
        for watch in watches:
            watch.expired.set()
        return len(watches)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token in self._rejected_tokens:
            return self._answer(request, 401, None)
        body = await request.read()
        hold: Hold | None = None
        for fault in self._faults:
            if not fault.take(request.method, request.path, dict(request.query)):
                continue
            if isinstance(fault, Hold):
                hold = fault
            elif fault.code:
                return self._answer(request, fault.code, fault.retry_after)
            else:
                await asyncio.sleep(fault.seconds)
        if hold and not hold.answered and not await self._held(request, hold):
            return web.Response(status=502)
        return await self._forward(request, body, hold if hold and hold.answered else None)

    def _answer(self, request: web.Request, code: int, retry_after: int | None) -> web.Response:
        self.seen.append(Seen.of(request, code))
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return web.json_response(status_body(code, retry_after), status=code, headers=headers)

    async def _held(self, request: web.Request, hold: Hold) -> bool:
        """Wait for the test's word; whether the request goes on (if not, its connection is reset)."""
        going_on = await hold.pass_by(request.method, str(request.rel_url))
        if not going_on:
            _reset(request)
        return going_on

    async def _forward(self, request: web.Request, body: bytes, hold: Hold | None) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _OF_THE_CONNECTION}
        url = self._server + request.raw_path
        try:
            upstream = await self._client.request(
                request.method, url, data=body or None, headers=headers, allow_redirects=False
            )
        except aiohttp.ClientError:
            _reset(request)  # the API server is away: so are we
            return web.Response(status=502)
        async with upstream:
            self.seen.append(Seen.of(request, upstream.status))
            if hold and not await self._held(request, hold):
                return web.Response(status=502)
            response = web.StreamResponse(status=upstream.status, reason=upstream.reason)
            for name, value in upstream.headers.items():
                if name.lower() not in _OF_THE_CONNECTION:
                    response.headers[name] = value
            await response.prepare(request)
            with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                async for chunk in self._chunks(request, response, upstream):
                    await response.write(chunk)
                await response.write_eof()
            return response

    async def _chunks(
        self, request: web.Request, response: web.StreamResponse, upstream: aiohttp.ClientResponse
    ) -> AsyncIterator[bytes]:
        if request.query.get("watch") not in ("true", "1") or upstream.status != 200:
            async for chunk in upstream.content.iter_any():
                yield chunk
            return
        watch = _Watch(request, response)
        self._watches.add(watch)
        expired = asyncio.ensure_future(watch.expired.wait())
        try:
            while True:
                chunk_read = asyncio.ensure_future(upstream.content.readany())
                await asyncio.wait({chunk_read, expired}, return_when=asyncio.FIRST_COMPLETED)
                if expired.done():
                    chunk_read.cancel()
                    yield json.dumps({"type": "ERROR", "object": status_body(410, None)}).encode() + b"\n"
                    return
                chunk = chunk_read.result()
                if not chunk:
                    return
                yield chunk
        finally:
            expired.cancel()
            self._watches.discard(watch)


def _reset(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
