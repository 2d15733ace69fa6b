"""Fixtures of the command line's tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hvpa.api.values.timestamp import parse_timestamp
from hvpa.kube.clock import SystemClock
from tests.unit.cli.api_server import Api, config, serving
from tests.unit.cli.support import NOW, Doc, Live, Shell, load


@pytest.fixture(autouse=True)
def no_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """No authority of this machine is trusted: to load all of them takes 50 ms for each client."""
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    """Runs commands."""
    return Shell(capsys, monkeypatch, tmp_path)


@pytest.fixture
def gardener() -> list[Doc]:
    """The first example of gardener's README with its objects."""
    return load("gardener.yaml")


@pytest.fixture
def trajectory() -> list[Doc]:
    """An Hvpa whose load has just risen. Both pods use 90 percent of 1 core, and 50 are wanted: 3600m are needed."""
    return load("trajectory.yaml")


@pytest.fixture
def shop() -> list[Doc]:
    """A namespace without an Hvpa."""
    return load("shop.yaml")


@pytest.fixture
def at_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ten o'clock."""
    monkeypatch.setattr(SystemClock, "now", lambda self: parse_timestamp(NOW))


@pytest.fixture
def api() -> Api:
    """The content of a small API server."""
    return Api()


@pytest.fixture
def server(api: Api) -> Iterator[str]:
    """The server's address."""
    with serving(api) as address:
        yield address


@pytest.fixture
def kubeconfig(server: str, tmp_path: Path) -> str:
    """A kubeconfig with a context that names a namespace and one that does not."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config(server)))
    return str(path)


@pytest.fixture
def live(shell: Shell, kubeconfig: str) -> Live:
    """Runs commands on the small API server."""
    return lambda *argv: shell.run(*argv, "--kubeconfig", kubeconfig)
