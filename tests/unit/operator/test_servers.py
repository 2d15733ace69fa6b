"""The metrics server that the flags ask for. (TLS and tokens at work: tests of hvpa/kube, and end to end.)"""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from hvpa.cli.run import add_arguments, run_settings
from hvpa.kube.server.endpoints import AddressError
from hvpa.kube.server.metrics import MetricsPage
from hvpa.operator.operator import serve_metrics
from hvpa.operator.settings import RunSettings
from tests.unit.cli.test_run import run
from tests.unit.kube.fake_server import FakeServer, kubeconfig


def settings(*flags: str) -> RunSettings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run_settings(parser.parse_args(["--metrics-bind-address", "127.0.0.1:1", *flags]))


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--metrics-secure"], "--metrics-secure requires --metrics-cert-dir"),
        (["--metrics-cert-dir", "somewhere"], "--metrics-cert-dir requires --metrics-secure"),
        (["--metrics-secure", "--metrics-cert-dir", "nowhere"], "nowhere: tls.crt: No such file"),
    ],
)
async def test_what_would_not_protect_is_refused(flags: list[str], error: str, tmp_path: Path) -> None:
    async with FakeServer().transport(tmp_path) as transport:
        with pytest.raises(AddressError, match=error):
            await serve_metrics(settings(*flags), MetricsPage(lambda: iter(())), transport)


def test_it_is_wrong_usage(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    done = run("--kubeconfig", str(path), "--metrics-secure")
    assert (done.returncode, done.stderr) == (
        2,
        "hvpa run: --metrics-secure requires --metrics-cert-dir, a folder with tls.crt and tls.key\n",
    )
