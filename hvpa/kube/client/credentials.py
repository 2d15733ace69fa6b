"""The address of the API server and the credentials for it, and when to renew them.

They come from a kubeconfig (tokens, token files, client certificates, exec plugins) or from the Pod's ServiceAccount,
read by kubernetes-asyncio.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from hvpa.kube.client import plugin
from hvpa.kube.client.address import address_of
from hvpa.kube.client.errors import ConfigError, in_one_line
from hvpa.kube.client.library import (
    ConfigException,
    Configuration,
    incluster_config,
    kube_config,
    parse_rfc3339,
)
from hvpa.kube.clock import SystemClock

plugin.install()
log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

TOKEN_FILE_AGE = 10.0
"""Seconds after which a token file is read again (client-go: 60; short-lived tokens are renewed in place)."""
RENEW_AT = 0.8
"""Fraction of an exec credential's lifetime after which HVPA runs the plugin again."""
RENEW_RETRY = 5.0
"""Seconds until a failed renewal is retried."""
LOAD_TIMEOUT = plugin.TIMEOUT + 10.0
"""Maximum seconds to load credentials, including the run of a plugin and its termination."""
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Credentials:
    """The current configuration.

    A request that is sent late in the credential's lifetime starts a renewal in the background. Requests use the
    current credential until it expires.
    """

    def __init__(self, kubeconfig: str | None, context: str | None, monotonic: Callable[[], float]) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._renew_at: float | None = None
        self._expires_at: float | None = None
        """When the current credential expires; None if unknown."""
        self._renewal: asyncio.Task[None] | None = None
        self.proxy_authorization: str | None = None
        """Value of the Proxy-Authorization header."""
        self._token_file: str | None = None
        self.configuration = Configuration()
        self.generation = 0
        """Counts renewals that affect the TLS session; a new session is needed when it changes."""
        self._identity: tuple[object, ...] = ()
        """The inputs of this generation's TLS session, with the content of files when they were read."""

    @classmethod
    async def load(
        cls,
        kubeconfig: str | None,
        context: str | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Credentials:
        """Read the configuration.

        Uses `kubeconfig` if given, else $KUBECONFIG or ~/.kube/config if they exist, else the Pod's ServiceAccount.
        Raises ConfigError.
        """
        credentials = cls(kubeconfig, context, monotonic)
        await credentials._renew()
        return credentials

    async def authorization(self) -> str | None:
        """The value of the Authorization header for a request that is sent now."""
        if self._renew_at is not None and self._monotonic() >= self._renew_at:
            if self._token_file is not None:
                self._read_token_file()
            else:
                await self._renewed()
        return self.configuration.api_key.get("BearerToken")

    async def _renewed(self) -> None:
        """Renew the credential in the background. Returns at once while the current credential is valid, else after
        the renewal."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.get_running_loop().create_task(self._renew_in_time())
        if self._expires_at is not None and self._monotonic() >= self._expires_at:
            await asyncio.shield(self._renewal)

    async def refused(self, sent: str | None, generation: int) -> bool:
        """Read all credentials again after a 401 to the header `sent` over the session of `generation`; returns
        whether other credentials were found."""
        async with self._lock:
            if self._are(sent, generation):
                await self._renew()
        return not self._are(sent, generation)

    def _are(self, sent: str | None, generation: int) -> bool:
        return (self.configuration.api_key.get("BearerToken"), self.generation) == (sent, generation)

    async def _renew_in_time(self) -> None:
        async with self._lock:
            if self._renew_at is None or self._monotonic() < self._renew_at:
                return  # another request was refused in the meantime, and led to a renewal
            try:
                await self._renew()
            except ConfigError as error:
                # The current credential is still valid for a while; otherwise a 401 follows.
                log.warning("credentials not renewed", error=str(error))
                self._renew_at = self._monotonic() + RENEW_RETRY

    async def _renew(self) -> None:
        configuration = Configuration()
        started = self._monotonic()
        try:
            async with asyncio.timeout(LOAD_TIMEOUT):
                loader = await self._load(configuration)
            proxy_authorization = _without_passwords(configuration)
            identity = _tls_identity(configuration)
            self._schedule(loader, configuration, started)
        except TimeoutError as error:
            raise ConfigError(f"no credentials within {LOAD_TIMEOUT:.0f} s") from error
        except (ConfigError, ConfigException) as error:
            raise ConfigError(in_one_line(error)) from error
        except Exception as error:  # the library lets YAML, type and key errors through
            raise ConfigError(f"kubeconfig can't be used: {in_one_line(error)}") from error
        if identity != self._identity:
            self.generation += 1
            self._identity = identity
        token = configuration.api_key.get("BearerToken")
        if token is not None:
            configuration.api_key["BearerToken"] = token.strip()  # a newline in a header would be refused
        self.configuration, self.proxy_authorization = configuration, proxy_authorization
        if self._token_file is not None:
            self._read_token_file()

    async def _load(self, configuration: Configuration) -> kube_config.KubeConfigLoader | None:
        path = self._kubeconfig or kube_config.KUBE_CONFIG_DEFAULT_LOCATION
        exists = _exists(path)
        if self._kubeconfig is not None and not exists:
            raise ConfigError(f"{self._kubeconfig}: no such file")
        if exists:
            return await kube_config.load_kube_config(
                path, self._context, configuration, persist_config=False
            )
        if incluster_config.SERVICE_HOST_ENV_NAME not in os.environ:
            raise ConfigError("no kubeconfig given or found, and not running in a cluster")
        incluster_config.load_incluster_config(configuration, try_refresh_token=False)  # type: ignore[no-untyped-call]
        return None

    def _schedule(
        self, loader: kube_config.KubeConfigLoader | None, configuration: Configuration, started: float
    ) -> None:
        """Set when these credentials must be renewed.

        The library's own expiry check has five minutes of slack (a plugin with shorter-lived tokens would run for
        every request), and the library reads token files only once.
        """
        self._token_file = None
        self._renew_at = self._expires_at = None
        if loader is None:
            self._token_file = incluster_config.SERVICE_TOKEN_FILENAME
        elif loader._user is not None:
            file = loader._user.safe_get("tokenFile")
            if file:
                self._token_file = os.path.join(loader._get_base_path(loader._user.path), str(file))
            elif str(loader.provider) in ("gcp", kube_config.PROVIDER_TYPE_OIDC):
                self._renew_at = started + 60.0
        if loader is not None and hasattr(loader, "exec_plugin_expiry"):
            left = parse_rfc3339(loader.exec_plugin_expiry).timestamp() - SystemClock().now().timestamp()
            self._renew_at = started + max(1.0, left * RENEW_AT)
            self._expires_at = started + max(1.0, left)

    def _read_token_file(self) -> None:
        """Put the token file's content into the configuration; the last valid token stays if the file can't be read."""
        self._renew_at = self._monotonic() + TOKEN_FILE_AGE
        assert self._token_file is not None
        try:
            token = Path(self._token_file).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return
        if token:
            self.configuration.api_key["BearerToken"] = f"Bearer {token}"


def _without_passwords(configuration: Configuration) -> str | None:
    """Remove user and password from the URLs of the server and its proxy, and use them as headers instead; returns
    the proxy's header.

    After this, no text that names the server contains them. Raises ConfigError.
    """
    server = address_of(str(configuration.host), "the server")
    configuration.host = server.url
    if server.basic is not None:
        configuration.api_key.setdefault("BearerToken", server.basic)
    if not configuration.proxy:
        return None
    proxy = address_of(str(configuration.proxy), "the proxy")
    configuration.proxy = proxy.url
    return proxy.basic


def own_namespace(default: str) -> str:
    """The namespace of the Pod that HVPA runs in, or `default` outside of a cluster."""
    try:
        return NAMESPACE_FILE.read_text().strip() or default
    except OSError:
        return default


def _exists(paths: str) -> bool:
    """Whether any file of a $KUBECONFIG-like list exists."""
    return any(Path(part).expanduser().exists() for part in paths.split(os.pathsep) if part)


def _tls_identity(configuration: Configuration) -> tuple[object, ...]:
    """All inputs of a TLS session; file contents instead of names, since files are replaced in place."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    contents = tuple(Path(name).read_bytes() if name and os.path.isfile(name) else None for name in files)
    verified = (configuration.verify_ssl, configuration.tls_server_name)
    return (configuration.host, *verified, configuration.proxy, *contents)
