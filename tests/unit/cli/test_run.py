"""Flags of `hvpa run`, its logs, and how it fails to start."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hvpa.cli.run import add_arguments, on_loop_error, run_settings
from hvpa.operator.settings import RunSettings

CLOSED = RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")


def parsed(*flags: str) -> RunSettings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run_settings(parser.parse_args(flags))


def test_the_defaults_are_those_of_the_design() -> None:
    settings = parsed()
    assert settings.scopes == ("",)
    assert (settings.workers, settings.max_in_flight) == (16, 16)
    assert settings.decisions.hpa_tolerance_ppm == 100_000
    assert (settings.metrics_address, settings.health_address) == (":9569", ":8081")
    assert (settings.log_format, settings.log_level) == ("json", "info")
    assert not settings.leader_elect
    times = settings.candidate.times
    assert (times.duration, times.renew, times.retry) == (15.0, 10.0, 2.0)


def test_flags() -> None:
    settings = parsed("--namespace", "a", "--namespace", "b", "--namespace", "a", "--hpa-tolerance", "0.05")
    assert settings.scopes == ("a", "b")
    assert settings.decisions.hpa_tolerance_ppm == 50_000
    assert settings.decisions.vpa_period == dt.timedelta(minutes=1)
    assert parsed("--vpa-recommender-interval", "5m").decisions.vpa_period == dt.timedelta(minutes=5)
    limited = parsed("--max-in-flight", "4")
    assert (limited.workers, limited.max_in_flight) == (4, 4)
    assert parsed("--workers", "2").workers == 2


def test_sharing_the_work_takes_leases() -> None:
    assert parsed("--leader-elect", "--lease-name", "my.hvpa").shards == 1
    settings = parsed("--shards", "32")
    assert (settings.shards, settings.leader_elect) == (32, True)


@pytest.mark.parametrize(
    "flags",
    [
        "--namespace Not_One", "--workers 0", "--workers x", "--max-in-flight 0", "--hpa-tolerance 1",
        "--hpa-tolerance NaN", "--hpa-tolerance -0.1", "--vpa-recommender-interval soon",
        "--vpa-recommender-interval 0s", "--metrics-bind-address 9569", "--log-format xml", "--shards 0",
        "--shards 257", "--lease-name Hvpa", f"--lease-name {'x' * 64}",
    ],
)  # fmt: skip
def test_bad_flags_are_wrong_usage(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed(*flags.split())
    assert caught.value.code == 2
    assert flags.split()[0] in capsys.readouterr().err


def run(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hvpa", "run"]
    command += ["--metrics-bind-address", "0", "--health-probe-bind-address", "0", *flags]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)


def test_a_missing_kubeconfig_is_reported_in_one_line(tmp_path: Path) -> None:
    done = run("--kubeconfig", str(tmp_path / "none"))
    assert done.returncode == 3
    assert done.stderr == f"hvpa run: {tmp_path}/none: no such file\n"


LOGGING = """
import logging, sys
import structlog
from hvpa.operator.log import configure_logs
configure_logs(sys.argv[1], "info")
log = structlog.get_logger()
with structlog.contextvars.bound_contextvars(namespace="ns", name="h"):
    log.debug("not shown")
    log.info("scaled", replicas="2 -> 3", odd=object)
    try:
        raise ValueError("x\\ud800")
    except ValueError:
        log.exception("crashed")
logging.getLogger("library").warning("careful %s", 1)
"""


def test_logs_are_one_json_object_per_line_with_the_hvpa_s_name() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOGGING, "json"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["scaled", "crashed", "careful 1"]
    assert (lines[0]["namespace"], lines[0]["name"], lines[0]["replicas"]) == ("ns", "h", "2 -> 3")
    assert "ValueError" in lines[1]["exception"]


@pytest.mark.parametrize("style", ["json", "console"])
def test_logs_that_can_t_be_written_stop_nothing(style: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", LOGGING, style], stderr=full, timeout=120)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("message", "error", "reported"),
    [
        ("Fatal error on SSL protocol\nprotocol: <uvloop.loop.SSLProtocol>", CLOSED, False),
        ("Task exception was never retrieved", CLOSED, True),
        ("Future exception was never retrieved", ConnectionResetError(), False),
        ("Future exception was never retrieved", ConnectionResetError("Connection lost"), True),
        ("Task exception was never retrieved", ConnectionResetError(), True),
        ("Fatal error on SSL protocol", RuntimeError("something else"), True),
        ("Fatal error on SSL protocol", None, True),
    ],
)
def test_a_connection_that_is_reset_as_it_comes_about_is_no_fault_of_the_program(
    monkeypatch: pytest.MonkeyPatch, message: str, error: Exception | None, reported: bool
) -> None:
    complaints: list[dict[str, Any]] = []
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(loop, "default_exception_handler", complaints.append)
    loop.set_exception_handler(on_loop_error)
    loop.call_exception_handler({"message": message, "exception": error})
    loop.close()
    assert bool(complaints) is reported
