"""A proxy in front of the API server with faults that a test controls: requests refused, redirected, delayed, held at a
chosen point, responses damaged, watches cut, ended, slow, or expired. It terminates TLS itself and passes the caller's
bearer token on, so its clients log in by token (client certificates end here). `wire.py` has faults of the connection
itself."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
from aiohttp import web

from localcluster.client.kubeconfig import token_user, write_kubeconfig
from localcluster.process import free_port
from localcluster.proxy.answers import OF_THE_CONNECTION, damaged, like, refusal, reset, slowly
from localcluster.proxy.faults import AnsweredRequest, Damage, Fault, Hold, Matcher
from localcluster.proxy.listening import end_connections, stop_accepting
from localcluster.proxy.watches import GONE, Cut, Watches

Value = TypeVar("Value")
ANSWER = 10.0
"""Maximum seconds to wait for the API server's response to a pending request."""


class Proxy:
    """Use it as a context manager. Faults apply to later requests; each counts its hits."""

    def __init__(self, server: str, authority: Path, certificate: Path, key: Path, folder: Path) -> None:
        """`server` is the API server behind the proxy, `certificate` and `key` are for clients."""
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
        self._watches = Watches()
        self._numbers = itertools.count(1)
        self._answered: list[AnsweredRequest] = []
        self._asked: set[object] = set()
        """Requests that the API server has not answered yet."""

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
        """The address for clients."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def answered(self) -> list[AnsweredRequest]:
        """Every answered request, in order; watches when they begin. It waits a short time for pending responses, so it
        includes the requests whose effect a test has just seen at the API server."""
        under_way, deadline = set(self._asked), time.monotonic() + ANSWER
        while under_way & self._asked and time.monotonic() < deadline:
            time.sleep(0.002)
        return self._answered

    def kubeconfig_for(self, token: str) -> Path:
        """A kubeconfig that goes through the proxy with a bearer token."""
        return self.kubeconfig_with(token_user(token))

    def kubeconfig_with(self, user: dict[str, Any]) -> Path:
        """A kubeconfig that goes through the proxy; `user` is its `user` entry (for example of an exec plugin)."""
        path = self._folder / f"{next(self._numbers)}.kubeconfig"
        return write_kubeconfig(path, self.address, self._authority, user)

    def fail(
        self,
        code: int,
        *,
        times: int | None = 1,
        verb: str | None = None,
        path: str | None = None,
        query: str | None = None,
        retry_after: int | str | None = None,
        location: str | None = None,
    ) -> Fault:
        """Answer the next `times` matching requests (None: all, until `remove`) with this code. `verb` is a Kubernetes
        verb (get, list, watch, create, update, patch, delete), `path` and `query` regular expressions searched in the
        URL's path and query; `retry_after` are seconds, or any text for the header; `location` is the target of a
        redirect."""
        matcher = Matcher(verb, path, query)
        return self._add(Fault(matcher, times, code=code, retry_after=retry_after, location=location))

    def damage(
        self,
        how: Damage,
        *,
        times: int | None = 1,
        verb: str | None = None,
        path: str | None = None,
        seconds: float = 1,
    ) -> Fault:
        """Pass matching requests on, and damage the responses. `seconds` is the duration of a slow response (for a
        watch: of each kilobyte)."""
        return self._add(Fault(Matcher(verb, path), times, damage=how, seconds=seconds))

    def delay(
        self, seconds: float, *, times: int | None = None, verb: str | None = None, path: str | None = None
    ) -> Fault:
        """Pass matching requests on after a delay."""
        return self._add(Fault(Matcher(verb, path), times, seconds=seconds))

    def hold(
        self,
        *,
        verb: str | None = None,
        path: str | None = None,
        answered: bool = False,
        times: int | None = 1,
    ) -> Hold:
        """Stop the next matching request: before it reaches the API server, or with `answered` after it was carried out
        but before its response reaches the caller. `Hold.wait` reports the first stopped request; `release` or `drop`
        it."""
        hold = Hold(Matcher(verb, path), times, answered=answered)
        self._add(hold)
        return hold

    def clear(self) -> None:
        """Remove all faults and release all held requests."""
        for fault in self._faults:
            fault.remove()
            if isinstance(fault, Hold):
                fault.release()
        self._faults = []
        self._rejected_tokens.clear()

    def reject_token(self, token: str) -> None:
        """Answer 401 to this token from now on, as if it had expired."""
        self._rejected_tokens.add(token)

    def cut_watches(self) -> int:
        """Reset the connections of all open watches; returns their number."""
        return self._call(self._watches.reset())

    def cut_in_event(self, path: str = "", how: Cut = "reset") -> int:
        """End the open watches whose path contains this text in the middle of their next event: by a reset of the
        connection, or in order, as if that half were the whole event. Returns the number of watches."""
        return self._call(self._watches.cut_in_event(path, how))

    def expire_watches(self) -> int:
        """End all open watches with the event for 410 Gone (resource version too old); returns their number."""
        return self._call(self._watches.end(GONE))

    def end_watches(self) -> int:
        """End all open watches in order, as the API server does when their time is over; returns their number."""
        return self._call(self._watches.end(b""))

    @property
    def open_watches(self) -> list[str]:
        """The URLs of the open watches."""
        return self._watches.urls

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
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._site = web.SockSite(self._runner, self._listener, ssl_context=self._tls)
        await self._site.start()

    async def _refuse(self) -> None:
        await stop_accepting([self._listener])
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
        await end_connections()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token in self._rejected_tokens:
            return self._refuse_request(request, Fault(Matcher(None, None), None, code=401))
        body = await request.read()
        matched: Fault | None = None
        for fault in self._faults:
            if not fault.take(request.method, request.path, dict(request.query)):
                continue
            if isinstance(fault, Hold) or fault.damage:
                matched = fault
            elif fault.code:
                return self._refuse_request(request, fault)
            else:
                await asyncio.sleep(fault.seconds)
        if isinstance(matched, Hold) and not matched.answered:
            if not await self._held(request, matched):
                return web.Response(status=502)
            matched = None
        return await self._forward(request, body, matched)

    def _refuse_request(self, request: web.Request, fault: Fault) -> web.Response:
        self._answered.append(AnsweredRequest.of(request, fault.code))
        return refusal(fault)

    async def _held(self, request: web.Request, hold: Hold) -> bool:
        """Wait for the test; return whether the request goes on (if not, its connection is reset)."""
        going_on = await hold.pass_by(request.method, str(request.rel_url))
        if not going_on:
            reset(request)
        return going_on

    async def _forward(self, request: web.Request, body: bytes, fault: Fault | None) -> web.StreamResponse:
        """Send the request to the API server, and pass its response on as far as the fault allows."""
        headers = {k: v for k, v in request.headers.items() if k.lower() not in OF_THE_CONNECTION}
        url = self._server + request.raw_path
        mark = object()
        self._asked.add(mark)
        try:
            upstream = await self._client.request(
                request.method, url, data=body or None, headers=headers, allow_redirects=False
            )
            self._answered.append(AnsweredRequest.of(request, upstream.status))
        except aiohttp.ClientError:
            reset(request)  # the API server is away, so the proxy resets too
            return web.Response(status=502)
        finally:
            self._asked.discard(mark)
        async with upstream:
            if isinstance(fault, Hold) and not await self._held(request, fault):
                return web.Response(status=502)
            chunks: AsyncIterator[bytes] = upstream.content.iter_any()
            is_watch = request.query.get("watch") in ("true", "1") and upstream.status == 200
            if is_watch:
                chunks = self._watches.relay(request, upstream)
            if fault and fault.damage is Damage.SLOW and is_watch:
                chunks = slowly(chunks, fault.seconds / 1000)
            elif fault and fault.damage:
                with contextlib.suppress(ConnectionError):
                    return await damaged(request, upstream, fault)
            response = like(upstream)
            with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                await response.prepare(request)
                async for chunk in chunks:
                    await response.write(chunk)
                await response.write_eof()
            return response
