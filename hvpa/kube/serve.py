"""The operator's own HTTP servers: /metrics on one address, /healthz and /readyz on another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Check = Callable[[], str | None]
"""None when all is well, else what isn't."""


class AddressError(ValueError):
    """A bind address that can't be read or used."""


def parse_address(text: str) -> tuple[str | None, int] | None:
    """Host (None: all interfaces) and port of `HOST:PORT` or `:PORT`; None for "0", which switches a server off.
    Raises AddressError."""
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
        raise AddressError(f"{text!r} is not an address like :8081 or 127.0.0.1:8081, nor 0")
    return host or None, int(port)


async def serve(address: str, routes: dict[str, Callable[[], web.Response]]) -> web.AppRunner | None:
    """Serve `routes` (path to answer) at `address` until the runner's `cleanup`. Raises AddressError."""
    where = parse_address(address)
    if where is None:
        return None
    app = web.Application()
    for path, answer in routes.items():
        app.router.add_get(path, _handler(answer))
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, where[0], where[1]).start()
    except OSError as error:
        await runner.cleanup()
        raise AddressError(f"can't listen on {address}: {error.strerror or error}") from error
    return runner


def metrics_routes(registry: CollectorRegistry) -> dict[str, Callable[[], web.Response]]:
    """`/metrics` in Prometheus' text format."""

    def answer() -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return {"/metrics": answer}


def health_routes(healthy: Check, ready: Check) -> dict[str, Callable[[], web.Response]]:
    """`/healthz` and `/readyz`: 200 and "ok", or 503 and what is wrong."""
    return {"/healthz": lambda: _verdict(healthy()), "/readyz": lambda: _verdict(ready())}


def _verdict(problem: str | None) -> web.Response:
    if problem is None:
        return web.Response(text="ok")
    return web.Response(status=503, text=problem)


def _handler(answer: Callable[[], web.Response]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return answer()

    return handle
