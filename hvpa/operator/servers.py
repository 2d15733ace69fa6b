"""The metrics server as the flags of `hvpa run` want it: open, or with TLS and token review."""

from __future__ import annotations

from pathlib import Path

from hvpa.kube.client.transport import Transport
from hvpa.kube.server.auth import TokenGuard
from hvpa.kube.server.endpoints import AddressError, Listener, metrics_routes, serve
from hvpa.kube.server.metrics_page import Page
from hvpa.kube.server.tls import Certificate
from hvpa.operator.settings import RunSettings


async def serve_metrics(settings: RunSettings, page: Page, transport: Transport) -> Listener | None:
    """Serve /metrics; None where it is switched off. Raises AddressError, also for a certificate that can't be used and
    for one of both flags without the other: neither a half-protected endpoint nor one that is meant to be protected."""
    folder = settings.metrics_cert_dir
    routes = metrics_routes(page.read)
    if settings.metrics_secure and folder is None:
        raise AddressError("--metrics-secure needs --metrics-cert-dir, a folder with tls.crt and tls.key")
    if folder is None:
        return await serve(settings.metrics_address, routes)
    if not settings.metrics_secure:
        raise AddressError("--metrics-cert-dir is of no use without --metrics-secure")
    tls = Certificate(Path(folder)).context
    return await serve(settings.metrics_address, routes, TokenGuard(transport), tls)
