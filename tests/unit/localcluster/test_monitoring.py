"""Which pods of the operator a Prometheus scrapes."""

from __future__ import annotations

import json
from pathlib import Path

from localcluster.client.api import Json
from localcluster.monitoring import scraping_operator, scraping_pods, write_pods


def pod(name: str, address: str | None) -> Json:
    return {"metadata": {"name": name}, "status": {"podIP": address} if address else {}}


def test_pods_are_scraped_as_the_operator_is(tmp_path: Path) -> None:
    ((config,), (other,)) = (
        made["scrape_configs"] for made in (scraping_operator("127.0.0.1:1"), scraping_pods(tmp_path / "f"))
    )
    (target,) = config.pop("static_configs")
    (file,) = other.pop("file_sd_configs")
    assert config == other
    assert file["files"] == [str(tmp_path / "f")]
    write_pods(tmp_path / "f", [pod("hvpa-1", "127.101.0.2"), pod("hvpa-2", None)])
    assert json.loads((tmp_path / "f").read_text()) == [target | {"targets": ["127.101.0.2:9569"]}]
