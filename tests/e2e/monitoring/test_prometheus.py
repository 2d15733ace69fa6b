"""The Prometheus of the tests: what was scraped and what was made up is found, and nothing stays."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from localcluster.client.api import wait_for
from localcluster.programs.build import Programs
from localcluster.prometheus import Prometheus, promtool, scraping

HOUR = 3600
FORTNIGHT = 14 * 24 * HOUR


def test_two_weeks_that_were_made_up_are_found(prometheus: Programs, tmp_path: Path) -> None:
    end = int(time.time()) // HOUR * HOUR - HOUR
    hours = range(end - FORTNIGHT, end, HOUR)
    server = Prometheus(tmp_path, programs=prometheus)
    server.backfill([f'load{{pod="a"}} {at - hours[0]} {at}' for at in hours])
    with server:
        (series,) = server.get("query_range", query="load", start=hours[0], end=hours[-1], step=HOUR)[
            "result"
        ]
        assert series["metric"] == {"__name__": "load", "pod": "a"}
        assert [(at, float(value)) for at, value in series["values"]] == [(at, at - hours[0]) for at in hours]
    assert not server.process.alive


def test_a_target_is_scraped(prometheus: Programs, tmp_path: Path) -> None:
    with Prometheus(tmp_path, programs=prometheus) as target:
        address = target.url.removeprefix("http://")
        scraper = Prometheus(tmp_path / "second", scraping({"first": address}), programs=prometheus)
        with scraper:
            wait_for(lambda: scraper.query('up{job="first"} == 1'), 30, "the first is scraped")
            assert scraper.get("targets/metadata", metric="prometheus_build_info")


def test_what_is_wrong_is_reported(prometheus: Programs, tmp_path: Path) -> None:
    with Prometheus(tmp_path, programs=prometheus) as server, pytest.raises(ValueError, match="parse error"):
        server.query("sum(")
    with pytest.raises(ValueError, match="does not exist"):
        promtool(prometheus, "check", "rules", tmp_path / "absent.yaml")
    with pytest.raises(RuntimeError, match="field scrapes not found"):
        Prometheus(tmp_path, {"scrapes": 1}, programs=prometheus).__enter__()
