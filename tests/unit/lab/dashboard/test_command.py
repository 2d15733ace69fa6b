"""`hvpa dashboard` as a user starts it: what it prints, how it ends, and what it refuses."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from hvpa_lab.dashboard.command import add_arguments
from tests.unit.cli.api_server import NEXT_VERSION, Api, config
from tests.unit.cli.resizing import hvpa
from tests.unit.cli.support import Live, Shell

PAGE = Path(__file__).resolve().parents[4] / "docs/dashboard.md"


def opened(monkeypatch: pytest.MonkeyPatch, use: Callable[[str], None]) -> list[str]:
    """The addresses that are opened; `use` is called with each in a thread, and then the command gets a signal."""
    addresses: list[str] = []

    def run(address: str) -> None:
        try:
            use(address)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def open_page(address: str) -> bool:
        addresses.append(address)
        threading.Thread(target=run, args=(address,)).start()
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    return addresses


def test_it_prints_and_opens_an_address_with_a_token_and_ends_with_a_signal(
    live: Live, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.put([hvpa()])
    answers: list[tuple[int, str]] = []

    def use(address: str) -> None:
        base, _, token = address.partition("#token=")
        for headers in ({}, {"Authorization": f"Bearer {token}"}, {"Host": "evil.example"}):
            request = urllib.request.Request(f"{base}api/hvpas", headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=20) as response:
                    answers.append((response.status, response.readline().decode()))
            except urllib.error.HTTPError as error:
                with error:
                    answers.append((error.code, error.read().decode()))

    addresses = opened(monkeypatch, use)
    ran = live("dashboard", "-A", "--open")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{addresses[0]}\nCtrl-C ends it.\n"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{32}", addresses[0])
    assert [status for status, _ in answers] == [401, 200, 421]
    assert answers[1][1] == "event: first\n"


def test_it_listens_at_loopback_only(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def use(address: str) -> None:
        port = int(re.findall(r":(\d+)/", address)[0])
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
            try:
                other.connect(
                    ("127.0.0.2", port)
                )  # every address of the machine would have an all-interfaces server
            except ConnectionRefusedError:
                tried.append("refused")

    opened(monkeypatch, use)
    assert live("dashboard", "--open").code == 0
    assert tried == ["refused"]


@pytest.mark.parametrize(
    "line", re.findall(r"^hvpa (dashboard.*?)(?: *#.*)?$", PAGE.read_text(), re.MULTILINE)
)
def test_the_commands_of_the_page_can_be_typed(line: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parser.parse_args(line.split()[1:])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--port", "65536"], "'65536' is not a port: a number from 0 to 65535"),
        (["--port", "-1"], "is not a port"),
        (["-A", "-n", "shop"], "use either -n or -A, not both"),
        (["--secure-bind-address", ":8443"], "require each other"),
        (["--cert-dir", "x"], "require each other"),
        (
            ["--secure-bind-address", ":8443", "--cert-dir", "x", "--open"],
            "--port and --open can't be used",
        ),
    ],
)
def test_flags_that_make_no_sense_are_refused(shell: Shell, flags: list[str], message: str) -> None:
    assert message in shell.refuses("dashboard", *flags, code=2)


@pytest.mark.parametrize(("address", "message"), [("0", "0 is not an address"), (":18443", "tls.crt")])
def test_an_address_or_a_certificate_that_can_not_be_used(
    kubeconfig: str, tmp_path: Path, address: str, message: str
) -> None:
    """In a process of its own, whose log is configured as the operator's."""
    flags = ("--secure-bind-address", address, "--cert-dir", str(tmp_path), "--kubeconfig", kubeconfig)
    argv = [sys.executable, "-m", "hvpa", "dashboard", *flags]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, message in ran.stderr) == (2, True), ran.stderr


def test_a_port_that_is_taken(live: Live) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = live("dashboard", "--port", str(taken.getsockname()[1]))
    assert ran.code == 1
    assert "can't listen on 127.0.0.1:" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_without_a_cluster(shell: Shell) -> None:
    path = shell.file(config("http://127.0.0.1:9"), "kubeconfig")
    assert "can't reach the cluster at http://127.0.0.1:9" in shell.refuses(
        "dashboard", "--kubeconfig", path, code=3
    )


@pytest.mark.parametrize(
    ("flags", "code", "unserved", "message"),
    [
        ([], 404, False, "the CRD is not installed"),
        ([], 403, True, "the CRD is not installed"),
        (
            ["-A"],
            403,
            False,
            "no right to list hvpas: no hvpas for you; -n NAMESPACE shows a single namespace",
        ),
        (["-n", "shop"], 403, False, "no right to list hvpas: no hvpas for you\n"),
    ],
)
def test_what_can_not_be_listed_is_said_before_anything_is_served(
    live: Live, api: Api, flags: list[str], code: int, unserved: bool, message: str
) -> None:
    api.fail = {"hvpas": code}
    api.unserved = {"/apis/autoscaling.k8s.io/v1alpha1"} if unserved else set()
    ran = live("dashboard", *flags)
    assert (ran.code, ran.out, message in ran.err) == (1, "", True), ran.err


@pytest.mark.parametrize("code", [404, 403])
def test_hvpas_of_another_version_are_named(live: Live, api: Api, code: int) -> None:
    api.serve_next_version()
    api.fail["hvpas"] = code
    ran = live("dashboard")
    assert (ran.code, ran.out, NEXT_VERSION in ran.err) == (1, "", True), ran.err


def test_an_hvpa_that_can_not_be_read_does_not_end_it(
    live: Live, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.raw["hvpas"] = b'{"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": 7}}]}'
    opened(monkeypatch, lambda address: None)
    assert live("dashboard", "--open").code == 0
